//! Percent-encoding in paths and queries (RFC 3986).

/// The text that `encoded` stands for; `None` if it isn't UTF-8 or an escape is broken.
pub(super) fn decode(encoded: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first != b'%' {
            bytes.push(*first);
            rest = after;
            continue;
        }
        let (digits, after) = after.split_at_checked(2)?;
        let mut byte = [0];
        hex::decode_to_slice(digits, &mut byte).ok()?;
        bytes.push(byte[0]);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

/// A value as it may stand in a query.
pub(super) fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:,".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_was_encoded_is_decoded() {
        for text in ["", "sha256:ab", "a b&c=d%/é"] {
            assert_eq!(decode(&encode(text)).unwrap(), text);
        }
        assert_eq!(decode("%3a").unwrap(), ":");
        for broken in ["%", "%1", "%zz", "%ff"] {
            assert_eq!(decode(broken), None, "{broken}");
        }
    }
}
