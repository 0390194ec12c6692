//! A client of the daemon's HTTP interface, as the command line uses it.

mod jobs;
mod socket;
mod upload;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio_rustls::rustls::crypto::ring::default_provider;
use ureq::http::{Method, Request, Response};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, AsSendBody, Body};

use crate::tokens::Secret;

pub(crate) use jobs::pause;
pub use jobs::{Ended, is_ended};

/// The largest JSON answer that is read: a status of many jobs has some megabytes.
const MOST_JSON: u64 = 256 << 20;

/// How long a daemon on this machine may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// Why there is no good answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Not an address of a daemon.
    #[error(
        "{server:?} is no address of a daemon; expected something like http://127.0.0.1:8420, https://proofs.example:8420 or unix:/path"
    )]
    Address {
        /// What was given.
        server: String,
    },
    /// Nobody answers.
    #[error(
        "no daemon answers at {server} ({reason}); start one with `proofkeep serve`, or name another with --server"
    )]
    Unreachable {
        /// Where.
        server: String,
        /// What the system said.
        reason: String,
    },
    /// The daemon says no, in its own words.
    #[error("{detail}")]
    Problem {
        /// The HTTP status.
        status: u16,
        /// The stable code.
        code: String,
        /// One sentence.
        detail: String,
        /// Whether the same may work later.
        retryable: bool,
        /// The whole answer.
        body: Value,
    },
    /// It is no answer of a daemon.
    #[error(
        "{server} answers with something that no proofkeep daemon says (status {status}); is another program there?"
    )]
    Strange {
        /// Where.
        server: String,
        /// The HTTP status.
        status: u16,
    },
    /// A file can't be read.
    #[error("{path} can't be read: {reason}")]
    File {
        /// Which.
        path: String,
        /// Why.
        reason: String,
    },
}

/// A good answer.
#[derive(Debug)]
pub struct Reply {
    /// The HTTP status, below 400.
    pub status: u16,
    /// The `ETag`, if there is one.
    pub etag: Option<String>,
    /// The body; `null` if there is none.
    pub body: Value,
}

/// A client of one daemon.
#[derive(Clone, Debug)]
pub struct Client {
    agent: Agent,
    /// As people name it.
    server: String,
    /// What paths follow in a request's URI.
    base: String,
    token: Option<Secret>,
}

/// A request's headers.
pub type Headers<'a> = &'a [(&'a str, &'a str)];

impl Client {
    /// A client of the daemon at `http://HOST:PORT`, `https://HOST:PORT` or `unix:/path`. Nothing is sent yet. By `https`
    /// it must have a certificate that this system trusts.
    ///
    /// # Errors
    /// When that is no such address.
    pub fn new(server: &str) -> Result<Self, ClientError> {
        Self::trusting(server, None)
    }

    /// The same, but of certificates it trusts those in a PEM file and what they have signed, and no others.
    ///
    /// # Errors
    /// When that is no such address, or there is no certificate in the file.
    pub fn trusting(server: &str, authorities: Option<&Path>) -> Result<Self, ClientError> {
        let bad = || ClientError::Address {
            server: server.to_owned(),
        };
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .timeout_connect(Some(CONNECT))
            .tls_config(tls(authorities)?)
            .user_agent(concat!("proofkeep/", env!("CARGO_PKG_VERSION")))
            .build();
        if let Some(path) = server.strip_prefix("unix:") {
            if path.is_empty() {
                return Err(bad());
            }
            return Ok(Self {
                agent: Agent::with_parts(config, socket::Socket::at(path), socket::Nowhere),
                server: server.to_owned(),
                base: "http://localhost".to_owned(),
                token: None,
            });
        }
        let base = server.trim_end_matches('/');
        let host = base
            .strip_prefix("http://")
            .or_else(|| base.strip_prefix("https://"))
            .ok_or_else(bad)?;
        let port_is_none = match host.rsplit_once(':') {
            Some((_, port)) if !port.ends_with(']') => port.parse::<u16>().is_err(),
            _ => false,
        };
        if host.is_empty() || host.contains(['/', '?', '#', '@']) || port_is_none {
            return Err(bad());
        }
        Ok(Self {
            agent: config.into(),
            server: base.to_owned(),
            base: base.to_owned(),
            token: None,
        })
    }

    /// The same, with a token in every request.
    pub(crate) fn with_token(mut self, token: Secret) -> Self {
        self.token = Some(token);
        self
    }

    /// Where the daemon is.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Reads something.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn get(&self, path: &str, headers: Headers<'_>) -> Result<Reply, ClientError> {
        self.json(Method::GET, path, headers, None)
    }

    /// Sends JSON by `POST`.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn post(&self, path: &str, headers: Headers<'_>, body: &Value) -> Result<Reply, ClientError> {
        self.json(Method::POST, path, headers, Some(body))
    }

    /// Sends JSON by `PUT`.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn put(&self, path: &str, headers: Headers<'_>, body: &Value) -> Result<Reply, ClientError> {
        self.json(Method::PUT, path, headers, Some(body))
    }

    /// Removes something.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn delete(&self, path: &str) -> Result<Reply, ClientError> {
        self.json(Method::DELETE, path, &[], None)
    }

    /// Reads bytes, whatever they are.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn get_bytes(&self, path: &str) -> Result<Vec<u8>, ClientError> {
        let mut answer = self.good(self.send(Method::GET, path, &[], ())?)?;
        answer
            .body_mut()
            .with_config()
            .limit(u64::MAX)
            .read_to_vec()
            .map_err(|error| self.unreachable(&error))
    }

    fn json(
        &self,
        method: Method,
        path: &str,
        headers: Headers<'_>,
        body: Option<&Value>,
    ) -> Result<Reply, ClientError> {
        let answer = match body {
            Some(body) => {
                let headers = [headers, &[("Content-Type", "application/json")]].concat();
                self.send(method, path, &headers, body.to_string())?
            }
            None => self.send(method, path, headers, ())?,
        };
        let mut answer = self.good(answer)?;
        let status = answer.status().as_u16();
        let header = answer.headers().get("etag").and_then(|value| value.to_str().ok());
        let etag = header.map(str::to_owned);
        let text = self.read(&mut answer)?;
        let body = if text.is_empty() {
            Some(Value::Null)
        } else {
            serde_json::from_slice(&text).ok()
        };
        let body = body.ok_or_else(|| ClientError::Strange {
            server: self.server.clone(),
            status,
        })?;
        Ok(Reply { status, etag, body })
    }

    fn send(
        &self,
        method: Method,
        path: &str,
        headers: Headers<'_>,
        body: impl AsSendBody,
    ) -> Result<Response<Body>, ClientError> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {}", token.show()));
        }
        let request = request.body(body).map_err(|_| ClientError::Address {
            server: self.server.clone(),
        })?;
        self.agent.run(request).map_err(|error| self.unreachable(&error))
    }

    /// An answer that says no becomes an error.
    fn good(&self, mut answer: Response<Body>) -> Result<Response<Body>, ClientError> {
        let status = answer.status().as_u16();
        if status < 400 {
            return Ok(answer);
        }
        let body: Value = serde_json::from_slice(&self.read(&mut answer)?).unwrap_or(Value::Null);
        let member = |name: &str| body[name].as_str().map(str::to_owned);
        match (member("code"), member("detail").or_else(|| member("title"))) {
            (Some(code), Some(detail)) => {
                let retryable = body["retryable"].as_bool().unwrap_or(false);
                Err(ClientError::Problem {
                    status,
                    code,
                    detail,
                    retryable,
                    body,
                })
            }
            _ => Err(ClientError::Strange {
                server: self.server.clone(),
                status,
            }),
        }
    }

    fn read(&self, answer: &mut Response<Body>) -> Result<Vec<u8>, ClientError> {
        let body = answer.body_mut().with_config().limit(MOST_JSON);
        body.read_to_vec().map_err(|error| self.unreachable(&error))
    }

    fn unreachable(&self, error: &ureq::Error) -> ClientError {
        ClientError::Unreachable {
            server: self.server.clone(),
            reason: match error {
                ureq::Error::Io(error) => error.to_string(),
                other => other.to_string(),
            },
        }
    }
}

/// Whose certificates are trusted.
fn tls(authorities: Option<&Path>) -> Result<TlsConfig, ClientError> {
    let roots = match authorities {
        None => RootCerts::PlatformVerifier,
        Some(path) => RootCerts::Specific(Arc::new(certificates(path)?)),
    };
    Ok(TlsConfig::builder()
        .unversioned_rustls_crypto_provider(Arc::new(default_provider()))
        .root_certs(roots)
        .build())
}

fn certificates(path: &Path) -> Result<Vec<Certificate<'static>>, ClientError> {
    let unusable = |reason: String| ClientError::File {
        path: path.display().to_string(),
        reason,
    };
    let pem = std::fs::read(path).map_err(|error| unusable(error.to_string()))?;
    let mut found = Vec::new();
    for item in parse_pem(&pem) {
        if let PemItem::Certificate(certificate) = item.map_err(|error| unusable(error.to_string()))? {
            found.push(certificate);
        }
    }
    if found.is_empty() {
        return Err(unusable("expected certificates in PEM, found none".to_owned()));
    }
    Ok(found)
}

/// A part of a path or query, with everything escaped that could be taken for something else.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_http_and_a_host() {
        for good in [
            "http://127.0.0.1:8420",
            "http://localhost:1/",
            "http://[::1]:8420",
            "http://[::1]",
            "unix:/run/proofkeep/socket",
            "https://localhost",
        ] {
            assert!(Client::new(good).is_ok(), "{good}");
        }
        for bad in [
            "127.0.0.1:8420",
            "ftp://localhost",
            "https://",
            "http://",
            "http://a/b",
            "http://user@host",
            "http://127.0.0.1:99999",
            "http://127.0.0.1:",
            "unix:",
        ] {
            assert!(
                matches!(Client::new(bad), Err(ClientError::Address { .. })),
                "{bad}"
            );
        }
    }

    #[test]
    fn nobody_there_is_unreachable() {
        // Port 1 of this machine: nothing listens there.
        let error = Client::new("http://127.0.0.1:1")
            .unwrap()
            .get("/v1/status", &[])
            .unwrap_err();
        assert!(matches!(error, ClientError::Unreachable { .. }), "{error}");
        assert!(error.to_string().contains("proofkeep serve"), "{error}");
    }

    #[test]
    fn names_are_escaped() {
        assert_eq!(escape("a b/ü?&=%"), "a%20b%2F%C3%BC%3F%26%3D%25");
        assert_eq!(escape("sha256_v1.2-x~"), "sha256_v1.2-x~");
    }
}
