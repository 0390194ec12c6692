//! Sizes and durations as people write them.

use std::time::Duration;

/// What a size looks like, for errors.
pub const SIZE: &str = "bytes, or a number with KiB, MiB, GiB, TiB, kB, MB, GB or TB";

/// What a duration looks like, for errors.
pub const DURATION: &str = "a number with ms, s, m or h";

/// Bytes: `4096`, `64 KiB`, `2GiB`, `1.5 GB`.
#[must_use]
pub fn parse_size(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    let factor: u64 = match unit {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        "kB" => 1000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        _ => return None,
    };
    scale(number, factor)
}

/// A duration: `250ms`, `20s`, `5 m`, `1h`; a number alone is refused, since nobody can tell its unit. 0 needs none.
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    let (number, unit) = split(text)?;
    let factor = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "" if number == "0" => 1,
        _ => return None,
    };
    scale(number, factor).map(Duration::from_millis)
}

fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (!number.is_empty()).then(|| (number, unit.trim()))
}

/// `number` times `factor`, exactly: at most three decimals, and only where the result is whole enough to mean it.
fn scale(number: &str, factor: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.len() > 3 || fraction.contains('.') || (number.contains('.') && fraction.is_empty()) {
        return None;
    }
    let whole = whole.parse::<u64>().ok()?.checked_mul(factor)?;
    if fraction.is_empty() {
        return Some(whole);
    }
    let digits = u32::try_from(fraction.len()).ok()?;
    let part = u128::from(fraction.parse::<u64>().ok()?) * u128::from(factor) / 10u128.pow(digits);
    whole.checked_add(u64::try_from(part).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_exactly_or_not_at_all() {
        assert_eq!(parse_size("4096"), Some(4096));
        assert_eq!(parse_size("1.5 GiB"), Some(3 << 29));
        assert_eq!(parse_size("2GB"), Some(2_000_000_000));
        for bad in [
            "",
            "GiB",
            "1.2.3 GiB",
            "1. GiB",
            "-1",
            "10 gb",
            "1e3",
            "99999999999 TiB",
        ] {
            assert_eq!(parse_size(bad), None, "{bad}");
        }
    }

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(parse_duration("250ms"), Some(Duration::from_millis(250)));
        assert_eq!(parse_duration("1.5 h"), Some(Duration::from_secs(5400)));
        assert_eq!(parse_duration("0"), Some(Duration::ZERO));
        for bad in ["5", "s", "5 sec", "1d", "-1s"] {
            assert_eq!(parse_duration(bad), None, "{bad}");
        }
    }
}
