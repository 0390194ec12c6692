//! `ETag` of what is read from records: the store's name and the number of the last event that changed it.

use proofkeep_store::ids::JournalNumber;
use uuid::Uuid;
use warp::http::HeaderMap;
use warp::http::header::IF_NONE_MATCH;

/// The tag of a state, in quotes.
pub(super) fn of(store: Uuid, journal: JournalNumber) -> String {
    format!("\"{store}-{journal}\"")
}

/// The client has that state already.
pub(super) fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let lists = headers
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok());
    lists
        .flat_map(|list| list.split(','))
        .map(str::trim)
        .any(|known| known == "*" || known.trim_start_matches("W/") == tag)
}

/// The client says which state it has.
pub(super) fn is_given(headers: &HeaderMap) -> bool {
    headers.contains_key(IF_NONE_MATCH)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_tag_is_known_in_a_list_weak_or_by_a_star() {
        let tag = of(Uuid::nil(), JournalNumber(7));
        assert_eq!(tag, "\"00000000-0000-0000-0000-000000000000-7\"");
        let known = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(IF_NONE_MATCH, text.parse().unwrap());
            is_known(&headers, &tag)
        };
        assert!(known(&tag) && known(&format!("\"x\", W/{tag}")) && known("*"));
        assert!(!known("\"x\"") && !is_known(&HeaderMap::new(), &tag));
    }
}
