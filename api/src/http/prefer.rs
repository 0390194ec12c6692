//! `Prefer: wait=N` (RFC 7240): answer when it is over, but within N seconds.

use std::time::Duration;

use proofkeep_engine::problem::Problem;
use warp::http::{HeaderMap, HeaderName};

use super::answer::{Answer, with};
use super::problem::{malformed, shown};

/// The longest wait that is granted; a client that wants more asks again.
pub(super) const MOST: Duration = Duration::from_secs(300);

/// The name of the header that says which preference was followed.
const APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// How long the client would wait; `None` if it doesn't say. Preferences that aren't known are no error.
pub(super) fn wait(headers: &HeaderMap) -> Result<Option<Duration>, Problem> {
    let preferences = headers
        .get_all("prefer")
        .iter()
        .filter_map(|value| value.to_str().ok());
    for preference in preferences.flat_map(|value| value.split(',')) {
        let (name, value) = preference.split_once('=').unwrap_or((preference, ""));
        if !name.trim().eq_ignore_ascii_case("wait") {
            continue;
        }
        let value = value.split(';').next().unwrap_or("").trim().trim_matches('"');
        let seconds: u64 = value.parse().map_err(|_| {
            let detail = format!(
                "prefer: expected wait=SECONDS, up to {}, found wait={:?}",
                MOST.as_secs(),
                shown(value)
            );
            malformed("malformed-header", detail)
        })?;
        return Ok(Some(Duration::from_secs(seconds).min(MOST)));
    }
    Ok(None)
}

/// The answer, saying how long a wait was granted.
pub(super) fn applied(answer: Answer, wait: Option<Duration>) -> Answer {
    match wait {
        Some(wait) => with(answer, APPLIED, &format!("wait={}", wait.as_secs())),
        None => answer,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use warp::http::HeaderValue;

    use super::*;

    fn read(text: &'static str) -> Result<Option<Duration>, Problem> {
        let mut headers = HeaderMap::new();
        headers.insert("prefer", HeaderValue::from_static(text));
        wait(&headers)
    }

    #[test]
    fn a_wait_is_found_among_others_and_bounded() {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(read("respond-async, Wait=7").unwrap(), seconds(7));
        assert_eq!(read("wait=\"9\"; foo=1").unwrap(), seconds(9));
        assert_eq!(read("wait=100000").unwrap(), seconds(300));
        assert_eq!(read("return=minimal").unwrap(), None);
        assert!(read("wait=soon").unwrap_err().detail.contains("soon"));
        assert_eq!(wait(&HeaderMap::new()).unwrap(), None);
    }
}
