//! Files to the daemon, by their digest: what is there already is not sent again.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::Path;

use serde_json::Value;
use sha2::{Digest, Sha256};
use ureq::http::Method;

use super::{Client, ClientError};

/// Read at once while a file is digested.
const CHUNK: usize = 1 << 20;

const BYTES: (&str, &str) = ("Content-Type", "application/octet-stream");

impl Client {
    /// Sends a file unless the daemon has it; answers its name, `sha256:…`.
    ///
    /// # Errors
    /// When it can't be read, and see [`ClientError`].
    pub fn upload_file(&self, path: &Path) -> Result<String, ClientError> {
        let unreadable = |error: io::Error| ClientError::File {
            path: path.display().to_string(),
            reason: error.to_string(),
        };
        let mut file = File::open(path).map_err(unreadable)?;
        let name = digest(&mut file).map_err(unreadable)?;
        if !self.has(&name)? {
            file.rewind().map_err(unreadable)?;
            self.good(self.send(Method::PUT, &format!("/v1/blobs/{name}"), &[BYTES], &file)?)?;
        }
        Ok(name)
    }

    /// Sends bytes unless the daemon has them; answers their name, `sha256:…`.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn upload(&self, bytes: &[u8]) -> Result<String, ClientError> {
        let name = format!("sha256:{}", hex::encode(Sha256::digest(bytes)));
        if !self.has(&name)? {
            self.good(self.send(Method::PUT, &format!("/v1/blobs/{name}"), &[BYTES], bytes)?)?;
        }
        Ok(name)
    }

    fn has(&self, name: &str) -> Result<bool, ClientError> {
        let answer = self.send(Method::HEAD, &format!("/v1/blobs/{name}"), &[], ())?;
        match answer.status().as_u16() {
            200..300 => Ok(true),
            404 => Ok(false),
            // An answer to HEAD has no words of its own.
            status @ (401 | 403 | 429) => Err(ClientError::Problem {
                status,
                code: match status {
                    401 => "token-missing",
                    403 => "scope",
                    _ => "rate-limit",
                }
                .to_owned(),
                detail: match status {
                    401 => "the daemon wants a token that it knows",
                    403 => "uploads need a token with the scope submit",
                    _ => "the token is used more often than it allows; go on in a second",
                }
                .to_owned(),
                retryable: status == 429,
                body: Value::Null,
            }),
            status => Err(ClientError::Strange {
                server: self.server.clone(),
                status,
            }),
        }
    }
}

fn digest(file: &mut File) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; CHUNK];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(format!("sha256:{}", hex::encode(hasher.finalize()))),
            length => hasher.update(&buffer[..length]),
        }
    }
}
