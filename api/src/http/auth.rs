//! Who asks, and whether they may: by a token, or from the daemon's own machine without one.
//!
//! A request without a token is `local` if it comes over loopback, nobody in between says that it was passed on, and the
//! setting `require_token` isn't there. Such a caller may do everything: who has an account on the machine is kept out by
//! `require_token`, and so is what a proxy on the machine passes on without saying so.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Mutex, RwLock};
use proofkeep_engine::problem::Problem;
use proofkeep_store::ids::Millis;
use warp::http::HeaderMap;
use warp::http::header::{AUTHORIZATION, FORWARDED, HeaderValue, VIA};

use crate::tokens::{self, Bucket, Hash, LOCAL, Scope, Secret, Token, TokenError, Tokens, Wanted};

/// Where a connection comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    /// This machine.
    Local,
    /// Another one.
    Remote,
}

impl Peer {
    /// By its address.
    pub fn of(address: SocketAddr) -> Self {
        match address.ip().to_canonical().is_loopback() {
            true => Self::Local,
            false => Self::Remote,
        }
    }
}

/// Who asks.
#[derive(Clone, Debug)]
pub(super) enum Caller {
    /// Somebody on this machine.
    Local,
    /// The holder of a token.
    Holder(Token),
}

impl Caller {
    /// What records and the journal call them.
    pub fn actor(&self) -> &str {
        match self {
            Self::Local => LOCAL,
            Self::Holder(token) => &token.name,
        }
    }

    /// Refuses what needs a scope that they haven't.
    pub fn check(&self, scope: Scope) -> Result<(), Problem> {
        match self {
            Self::Holder(token) if !token.allows(scope) => {
                let has: Vec<_> = token.scopes.iter().map(|scope| scope.name()).collect();
                let detail = format!(
                    "this needs a token with the scope {}; the token {:?} has {}",
                    scope.name(),
                    token.name,
                    has.join(", ")
                );
                Err(Problem::new(403, "scope", "the token doesn't allow this", detail)
                    .with("scope", scope.name().into()))
            }
            _ => Ok(()),
        }
    }
}

/// Tokens as requests see them; changes are on disk before anybody sees them.
#[derive(Debug)]
pub(super) struct Guard {
    require_token: bool,
    list: RwLock<Arc<[Token]>>,
    used: Mutex<HashMap<Hash, Bucket>>,
    file: Mutex<Tokens>,
}

impl Guard {
    /// With what the file says.
    pub fn new(tokens: Tokens, require_token: bool) -> Self {
        Self {
            require_token,
            list: RwLock::new(tokens.list().into()),
            used: Mutex::default(),
            file: Mutex::new(tokens),
        }
    }

    /// Who asks; 401 if that can't be told, 429 if they ask too often.
    pub fn caller(&self, peer: Peer, headers: &HeaderMap) -> Result<Caller, Problem> {
        let mut given = headers.get_all(AUTHORIZATION).iter();
        let Some(first) = given.next() else {
            let passed_on = [FORWARDED.as_str(), VIA.as_str(), "x-forwarded-for", "x-real-ip"]
                .iter()
                .any(|name| headers.contains_key(*name));
            return match peer {
                Peer::Local if !passed_on && !self.require_token => Ok(Caller::Local),
                _ => Err(missing()),
            };
        };
        let secret = match given.next() {
            Some(_) => None,
            None => bearer(first),
        };
        let list = Arc::clone(&self.list.read());
        let token = secret
            .and_then(|secret| tokens::find(&list, &secret))
            .ok_or_else(wrong)?;
        let now = Instant::now();
        let mut used = self.used.lock();
        let bucket = used.entry(token.hash).or_insert_with(|| Bucket::new(now));
        match bucket.take(token.rate, now) {
            true => Ok(Caller::Holder(token.clone())),
            false => Err(too_often(token)),
        }
    }

    /// Each token.
    pub fn list(&self) -> Arc<[Token]> {
        Arc::clone(&self.list.read())
    }

    /// Makes one. Writes to the disk.
    pub fn add(&self, wanted: Wanted, now: Millis) -> Result<(Token, Secret), TokenError> {
        let mut file = self.file.lock();
        let made = file.add(wanted, now)?;
        *self.list.write() = file.list().into();
        Ok(made)
    }

    /// Removes one; from now on it opens nothing. Writes to the disk.
    pub fn remove(&self, name: &str) -> Result<(), TokenError> {
        let mut file = self.file.lock();
        file.remove(name)?;
        *self.list.write() = file.list().into();
        let known: Vec<Hash> = file.list().iter().map(|token| token.hash).collect();
        self.used.lock().retain(|hash, _| known.contains(hash));
        Ok(())
    }
}

/// The secret in an `Authorization` header.
fn bearer(value: &HeaderValue) -> Option<Secret> {
    let (scheme, secret) = value.to_str().ok()?.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| Secret::parse(secret.trim()))
        .flatten()
}

fn missing() -> Problem {
    let detail = "a token is needed: send the header Authorization: Bearer pk_…; `proofkeep token add` on the daemon's \
                  machine makes one";
    Problem::new(401, "token-missing", "a token is needed", detail)
}

/// Says nothing of what was sent.
fn wrong() -> Problem {
    let detail = "expected one header Authorization: Bearer pk_… with a token that this daemon knows; it may have been \
                  removed: `proofkeep token ls` on the daemon's machine lists those there are";
    Problem::new(401, "token-unknown", "the token is not known", detail)
}

fn too_often(token: &Token) -> Problem {
    let detail = format!(
        "the token {:?} allows {} requests a second; go on in a second, or ask for a token with a higher rate",
        token.name, token.rate
    );
    Problem::new(429, "rate-limit", "there are too many requests", detail)
        .with("rate", token.rate.into())
        .retryable()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn guard(require_token: bool) -> (tempfile::TempDir, Guard) {
        let directory = tempfile::tempdir().unwrap();
        let guard = Guard::new(Tokens::load(directory.path()).unwrap(), require_token);
        (directory, guard)
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, value.parse().unwrap());
        }
        map
    }

    fn code(guard: &Guard, peer: Peer, pairs: &[(&'static str, &str)]) -> String {
        match guard.caller(peer, &headers(pairs)) {
            Ok(caller) => caller.actor().to_owned(),
            Err(problem) => problem.code,
        }
    }

    #[test]
    fn without_a_token_only_this_machine_gets_in_and_nobody_through_a_proxy() {
        let (_directory, open) = guard(false);
        assert_eq!(code(&open, Peer::Local, &[]), "local");
        assert_eq!(code(&open, Peer::Remote, &[]), "token-missing");
        for name in ["forwarded", "via", "x-forwarded-for", "x-real-ip"] {
            assert_eq!(
                code(&open, Peer::Local, &[(name, "x")]),
                "token-missing",
                "{name}"
            );
        }
        let (_directory, strict) = guard(true);
        assert_eq!(code(&strict, Peer::Local, &[]), "token-missing");
    }

    #[test]
    fn a_token_names_its_holder_and_a_wrong_one_nobody_even_here() {
        let (_directory, guard) = guard(false);
        let wanted = Wanted {
            name: "ci".to_owned(),
            scopes: vec![Scope::Read],
            rate: 3,
        };
        let (_, secret) = guard.add(wanted, Millis(1)).unwrap();
        let good = format!("Bearer {}", secret.show());
        let other = format!("bearer {}", Secret::random().unwrap().show());
        for peer in [Peer::Local, Peer::Remote] {
            for bad in [&other[..], "Basic eDp5", "Bearer", "Bearer pk_00", &secret.show()] {
                assert_eq!(
                    code(&guard, peer, &[("authorization", bad)]),
                    "token-unknown",
                    "{bad}"
                );
            }
            let twice = [("authorization", &good[..]), ("authorization", &good[..])];
            assert_eq!(code(&guard, peer, &twice), "token-unknown");
        }
        for _ in 0..3 {
            assert_eq!(code(&guard, Peer::Remote, &[("authorization", &good)]), "ci");
        }
        assert_eq!(
            code(&guard, Peer::Remote, &[("authorization", &good)]),
            "rate-limit"
        );
        guard.remove("ci").unwrap();
        assert_eq!(
            code(&guard, Peer::Remote, &[("authorization", &good)]),
            "token-unknown"
        );
    }
}
