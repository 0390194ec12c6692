//! A small HTTP client that shows every answer as it is: status, headers, body.

use std::time::Duration;

use serde_json::Value;
use sha2::{Digest, Sha256};
use ureq::http::Response;
use ureq::{Agent, Body};

use super::wait::until_some;

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// When it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("status {}: not JSON ({error}): {}", self.status, self.text()))
    }

    /// The first header of that name (lower case).
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(found, _)| found == name)
            .map(|(_, value)| value.as_str())
    }

    /// The `code` of a problem.
    #[must_use]
    pub fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }

    /// The same, if it has that status.
    ///
    /// # Panics
    /// If it hasn't, showing the body.
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }
}

/// A client of one daemon.
#[derive(Clone, Debug)]
pub struct Http {
    agent: Agent,
    base: String,
}

impl Http {
    /// For the daemon at `base` (`http://127.0.0.1:PORT`).
    #[must_use]
    pub fn new(base: &str) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(400)))
            .max_idle_connections_per_host(0)
            .build();
        Self {
            agent: config.into(),
            base: base.to_owned(),
        }
    }

    /// `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Sends a request; `None` when there is no answer (the daemon was killed meanwhile).
    #[must_use]
    pub fn try_send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> Option<Answer> {
        let mut request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = match body {
            Some(body) => self.agent.run(request.body(body).ok()?),
            None => self.agent.run(request.body(()).ok()?),
        };
        answer.ok().and_then(read)
    }

    /// Sends a request.
    ///
    /// # Panics
    /// When there is no answer.
    #[must_use]
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<&[u8]>) -> Answer {
        self.try_send(method, path, headers, body)
            .unwrap_or_else(|| panic!("no answer to {method} {path} from {}", self.base))
    }

    /// `GET`.
    #[must_use]
    pub fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], None)
    }

    /// `POST` with a JSON body.
    #[must_use]
    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, &[JSON], Some(body.to_string().as_bytes()))
    }

    /// `PUT` with a JSON body.
    #[must_use]
    pub fn put(&self, path: &str, body: &Value) -> Answer {
        self.send("PUT", path, &[JSON], Some(body.to_string().as_bytes()))
    }

    /// Uploads bytes; answers their name, `sha256:…`.
    ///
    /// # Panics
    /// When the daemon doesn't take them.
    #[must_use]
    pub fn upload(&self, bytes: &[u8]) -> String {
        let name = sha256_name(bytes);
        let answer = self.send("PUT", &format!("/v1/blobs/{name}"), &[BYTES], Some(bytes));
        assert!(matches!(answer.status, 200 | 201), "{}", answer.text());
        name
    }

    /// Registers a circuit of these files (members of the body such as `zkey`, each uploaded here) and waits until it
    /// is ready; answers what the daemon shows of it.
    ///
    /// # Panics
    /// When it isn't taken, or its import fails.
    pub fn register(&self, name: &str, files: &[(&str, &[u8])]) -> Value {
        let mut body = serde_json::Map::new();
        for (member, bytes) in files {
            body.insert((*member).to_owned(), self.upload(bytes).into());
        }
        let answer = self.put(&format!("/v1/circuits/{name}"), &Value::Object(body));
        assert!(matches!(answer.status, 200..=202), "{}", answer.text());
        until_some("the circuit is imported", || {
            let circuit = self.get(&format!("/v1/circuits/{name}")).expect(200).json();
            match circuit["state"].as_str() {
                Some("ready") => Some(circuit),
                Some("importing") => None,
                _ => panic!("the import failed: {circuit}"),
            }
        })
    }

    /// Waits until a job has ended; answers what the daemon shows of it.
    ///
    /// # Panics
    /// When it doesn't end.
    pub fn wait_for_end(&self, job: &str) -> Value {
        until_some("the job ends", || {
            let answer = self.send("GET", &format!("/v1/jobs/{job}"), &[("Prefer", "wait=30")], None);
            let job = answer.expect(200).json();
            ended(&job).then_some(job)
        })
    }
}

/// Whether a job, as the daemon shows it, has ended.
fn ended(job: &Value) -> bool {
    matches!(
        job["state"].as_str(),
        Some("succeeded" | "failed" | "cancelled" | "expired")
    )
}

/// The name of bytes: `sha256:` and 64 hex digits.
#[must_use]
pub fn sha256_name(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

const JSON: (&str, &str) = ("Content-Type", "application/json");
const BYTES: (&str, &str) = ("Content-Type", "application/octet-stream");

fn read(answer: Response<Body>) -> Option<Answer> {
    let (parts, mut body) = answer.into_parts();
    let headers = parts
        .headers
        .iter()
        .map(|(name, value)| {
            (
                name.as_str().to_owned(),
                String::from_utf8_lossy(value.as_bytes()).into_owned(),
            )
        })
        .collect();
    let body = body.with_config().limit(1 << 30).read_to_vec().ok()?;
    Some(Answer {
        status: parts.status.as_u16(),
        headers,
        body,
    })
}
