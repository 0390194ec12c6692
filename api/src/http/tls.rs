//! TLS by rustls: a chain of certificates and its key from two PEM files, read again when somebody renewed them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The one protocol that is spoken inside.
const HTTP_1: &[u8] = b"http/1.1";

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    /// A file can't be read, or isn't what it should be. The text says nothing of what is in it.
    #[error("{}: expected {expected} in PEM: {reason}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What should be there.
        expected: &'static str,
        /// Why it isn't.
        reason: String,
    },
    /// They don't go together, or rustls can't use them.
    #[error("{} and {} can't be used together: {reason}", certificate.display(), key.display())]
    Pair {
        /// The certificates.
        certificate: PathBuf,
        /// The key.
        key: PathBuf,
        /// Why.
        reason: String,
    },
}

/// What new connections are given.
pub(crate) struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    acceptor: Mutex<TlsAcceptor>,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// When they are no certificates and the key of the first.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        Ok(Self {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            acceptor: Mutex::new(acceptor(certificate, key)?),
        })
    }

    /// Reads them again, for connections from now on. If they can't be used, what there was stays.
    ///
    /// # Errors
    /// See [`read`](Self::read).
    pub fn read_again(&self) -> Result<(), TlsError> {
        let renewed = acceptor(&self.certificate, &self.key)?;
        *self.acceptor.lock() = renewed;
        Ok(())
    }

    /// For the next connection.
    pub fn acceptor(&self) -> TlsAcceptor {
        self.acceptor.lock().clone()
    }
}

fn acceptor(certificate: &Path, key: &Path) -> Result<TlsAcceptor, TlsError> {
    let file = |path: &Path, expected, reason: String| TlsError::File {
        path: path.to_owned(),
        expected,
        reason,
    };
    let read = |path: &Path, expected| {
        std::fs::read(path).map_err(|error: io::Error| file(path, expected, error.to_string()))
    };
    let (chain_of, key_of) = ("certificates", "a private key");
    let pem = read(certificate, chain_of)?;
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<_, _>>()
        .map_err(|error| file(certificate, chain_of, error.to_string()))?;
    if chain.is_empty() {
        return Err(file(certificate, chain_of, "there is none".to_owned()));
    }
    let secret = PrivateKeyDer::from_pem_slice(&read(key, key_of)?).map_err(|error| {
        // What the file says stays in it: a parser's error may quote a line.
        tracing::debug!(kind = ?std::mem::discriminant(&error), "the key can't be read");
        file(key, key_of, "there is none that can be read".to_owned())
    })?;
    let pair = |reason: String| TlsError::Pair {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
        reason,
    };
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, secret))
        .map_err(|error| pair(error.to_string()))?;
    config.alpn_protocols = vec![HTTP_1.to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
