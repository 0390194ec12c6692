//! Moments in RFC 3339, always UTC and with milliseconds.

use proofkeep_store::ids::Millis;
use serde_json::Value;

const DAY: u64 = 86_400_000;

/// Such as `2026-11-30T15:47:00.123Z`.
pub(crate) fn write(at: Millis) -> String {
    let (days, rest) = (at.0 / DAY, at.0 % DAY);
    let (year, month, day) = date(days);
    let (seconds, millis) = (rest / 1000, rest % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// As JSON; `null` for none.
pub(crate) fn json(at: Option<Millis>) -> Value {
    at.map_or(Value::Null, |at| write(at).into())
}

/// Reads what [`write`] writes, any number of digits after the second, and whole milliseconds since 1970.
pub(crate) fn parse(text: &str) -> Option<Millis> {
    if let Ok(millis) = text.parse() {
        return Some(Millis(millis));
    }
    let (day, time) = text.strip_suffix(['Z', 'z'])?.split_once(['T', 't'])?;
    let (year, month, day) = three(day, '-')?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let (hour, minute, second) = three(time, ':')?;
    let valid = (1970..=9999).contains(&year) && hour < 24 && minute < 60 && second < 60;
    if !valid || fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let millis: u64 = format!("{fraction:0<3}")[..3].parse().ok()?;
    let days = days(year, month, day)?;
    Some(Millis(
        days * DAY + (hour * 3600 + minute * 60 + second) * 1000 + millis,
    ))
}

fn three(text: &str, separator: char) -> Option<(u64, u64, u64)> {
    let mut parts = text.split(separator).map(|part| {
        part.bytes()
            .all(|byte| byte.is_ascii_digit())
            .then(|| part.parse().ok())?
    });
    let found = (parts.next()??, parts.next()??, parts.next()??);
    parts.next().is_none().then_some(found)
}

/// Year, month and day of a day since 1970: Howard Hinnant, "chrono-compatible low-level date algorithms". Years begin in
/// March there, so that a leap day is the last of its year.
fn date(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

/// The day since 1970; `None` for a date that there isn't.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    let (year_shifted, shifted_month) = if month > 2 {
        (year, month.checked_sub(3)?)
    } else {
        (year - 1, month + 9)
    };
    let (era, year_of_era) = (year_shifted / 400, year_shifted % 400);
    let day_of_year = (153 * shifted_month + 2) / 5 + day.checked_sub(1)?;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = (era * 146_097 + of_era).checked_sub(719_468)?;
    (date(days) == (year, month, day)).then_some(days)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn known_moments_are_written_and_read() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_796_053_620_123, "2026-11-30T15:47:00.123Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
        ] {
            assert_eq!(write(Millis(millis)), text);
            assert_eq!(parse(text), Some(Millis(millis)));
        }
        assert_eq!(parse("1796053620123"), Some(Millis(1_796_053_620_123)));
        assert_eq!(parse("2026-11-30T15:47:00Z"), Some(Millis(1_796_053_620_000)));
        assert_eq!(
            parse("2026-11-30T15:47:00.1234567Z"),
            Some(Millis(1_796_053_620_123))
        );
    }

    #[test]
    fn what_is_no_moment_is_not_read() {
        for text in [
            "",
            "yesterday",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-11-30",
            "2026-11-30T24:00:00Z",
            "2026-11-30T15:47:00.123",
            "2026-11-30T15:47:00.Z",
            "2026-11-00T15:47:00Z",
            "2026-+1-30T15:47:00Z",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn every_day_of_four_centuries_comes_back() {
        for day in 0..146_097 {
            let (year, month, of_month) = date(day);
            assert_eq!(days(year, month, of_month), Some(day));
        }
    }
}
