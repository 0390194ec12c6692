//! What must be kept out before anybody is asked for a token: a web page in a browser on the same machine, or on one from
//! which the daemon can be reached. It may send requests to any address, by name tricks (DNS rebinding) too.
//!
//! * `Host` must be a loopback name, the address that is listened on, or one in `allowed_hosts`; a rebound name is none of
//!   them: 421.
//! * `Origin`, which browsers send with every request that could change something, must be the daemon's own: 403.
//! * `Sec-Fetch-Site`, where a browser sends it, must not say that another site asks for a change: 403.
//! * A body needs its media type, and none of those that a form can send: 415. Resources see to that.

use std::net::IpAddr;

use proofkeep_engine::problem::Problem;
use warp::http::header::{HOST, ORIGIN};
use warp::http::uri::Authority;
use warp::http::{HeaderMap, Method};

use super::problem::shown;

/// Names that are answered.
#[derive(Clone, Debug)]
pub(super) struct Access {
    allowed_hosts: Vec<String>,
    listen: IpAddr,
    scheme: &'static str,
}

impl Access {
    /// Loopback names, the address that is listened on, and `allowed_hosts` (with or without a port), by `http` or `https`.
    pub fn new(allowed_hosts: Vec<String>, listen: IpAddr, scheme: &'static str) -> Self {
        Self {
            allowed_hosts,
            listen,
            scheme,
        }
    }

    /// Lets a request in, or says why not.
    pub fn check(
        &self,
        method: &Method,
        host: Option<&Authority>,
        headers: &HeaderMap,
    ) -> Result<(), Problem> {
        let Some(host) = host.filter(|_| headers.get_all(HOST).iter().count() <= 1) else {
            return Err(misdirected(
                "expected one Host header with a name, found none or several",
            ));
        };
        if !self.is_ours(host) {
            let detail = format!(
                "the host {:?} is not served here: expected a loopback address or a name in the setting allowed_hosts",
                shown(host.as_str())
            );
            return Err(misdirected(detail));
        }
        if let Some(origin) = headers.get(ORIGIN)
            && origin.as_bytes() != format!("{}://{host}", self.scheme).as_bytes()
        {
            return Err(foreign(&String::from_utf8_lossy(origin.as_bytes())));
        }
        let changes = !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
        if let Some(site) = headers.get("sec-fetch-site")
            && changes
            && !matches!(site.as_bytes(), b"same-origin" | b"none")
        {
            return Err(foreign("another site"));
        }
        Ok(())
    }

    /// An address can't be rebound; where every address is listened on, any of them may be this machine's.
    fn is_our_address(&self, ip: IpAddr) -> bool {
        ip.is_loopback() || self.listen.is_unspecified() || ip == self.listen
    }

    fn is_ours(&self, host: &Authority) -> bool {
        let name = host.host();
        let loopback = name.eq_ignore_ascii_case("localhost")
            || name
                .trim_start_matches('[')
                .trim_end_matches(']')
                .parse::<IpAddr>()
                .is_ok_and(|ip| self.is_our_address(ip));
        loopback
            || self.allowed_hosts.iter().any(|allowed| {
                allowed.eq_ignore_ascii_case(name) || allowed.eq_ignore_ascii_case(host.as_str())
            })
    }
}

fn misdirected(detail: impl Into<String>) -> Problem {
    Problem::new(
        421,
        "unknown-host",
        "this daemon doesn't answer under that name",
        detail,
    )
}

fn foreign(origin: &str) -> Problem {
    let detail = format!(
        "requests from web pages of {:?} are refused; use the command line or another client",
        shown(origin)
    );
    Problem::new(
        403,
        "foreign-origin",
        "web pages of other origins are refused",
        detail,
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn check(method: Method, host: &'static str, headers: &[(&'static str, &'static str)]) -> u16 {
        let access = Access::new(
            vec!["proofs.example".to_owned(), "other.example:99".to_owned()],
            IpAddr::from([10, 0, 0, 7]),
            "http",
        );
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        let host = Authority::from_static(host);
        access
            .check(&method, Some(&host), &map)
            .map_or_else(|problem| problem.status, |()| 200)
    }

    #[test]
    fn only_loopback_names_and_allowed_ones_are_answered() {
        for host in [
            "127.0.0.1:8420",
            "127.9.9.9",
            "localhost",
            "LOCALHOST:1",
            "[::1]:8420",
            "proofs.example:8420",
            "other.example:99",
            "10.0.0.7:8420",
        ] {
            assert_eq!(check(Method::GET, host, &[]), 200, "{host}");
        }
        for host in [
            "evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "localhost.evil.example:8420",
            "other.example",
        ] {
            assert_eq!(check(Method::GET, host, &[]), 421, "{host}");
        }
        assert_eq!(
            Access::new(Vec::new(), IpAddr::from([0, 0, 0, 0]), "http")
                .check(&Method::GET, None, &HeaderMap::new())
                .unwrap_err()
                .status,
            421
        );
    }

    #[test]
    fn no_web_page_of_another_origin_gets_in() {
        let host = "127.0.0.1:8420";
        assert_eq!(
            check(Method::POST, host, &[("origin", "http://127.0.0.1:8420")]),
            200
        );
        for origin in [
            "http://evil.example",
            "null",
            "http://127.0.0.1:3000",
            "https://127.0.0.1:8420",
            "http://localhost:8420",
        ] {
            assert_eq!(check(Method::POST, host, &[("origin", origin)]), 403, "{origin}");
            assert_eq!(check(Method::GET, host, &[("origin", origin)]), 403, "{origin}");
        }
        assert_eq!(
            check(Method::POST, host, &[("sec-fetch-site", "cross-site")]),
            403
        );
        assert_eq!(check(Method::POST, host, &[("sec-fetch-site", "same-site")]), 403);
        assert_eq!(
            check(Method::POST, host, &[("sec-fetch-site", "same-origin")]),
            200
        );
        assert_eq!(check(Method::GET, host, &[("sec-fetch-site", "cross-site")]), 200);
    }
}
