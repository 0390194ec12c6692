//! Counts in sentences.

/// A count and what is counted, as people say it: `1 wire`, `2 wires`.
#[must_use]
pub fn count(number: impl TryInto<u64>, noun: &str) -> String {
    // Nothing is counted that doesn't fit.
    let number = number.try_into().unwrap_or(u64::MAX);
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        assert_eq!(count(0_u32, "job"), "0 jobs");
        assert_eq!(count(1_usize, "public signal"), "1 public signal");
        assert_eq!(count(2_u64, "job"), "2 jobs");
    }
}
