//! Where the daemon listens.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// An address, or a socket in the file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// `127.0.0.1:8420`; port 0 picks one.
    Tcp(SocketAddr),
    /// `unix:/run/proofkeep/socket`: for who may write to that file, its owner alone.
    Unix(PathBuf),
}

/// What one looks like, for errors.
pub(crate) const LISTEN: &str = "an address like 127.0.0.1:8420 or unix:/path";

impl FromStr for Listen {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.strip_prefix("unix:") {
            Some("") => Err(LISTEN),
            Some(path) => Ok(Self::Unix(path.into())),
            None => text.parse().map(Self::Tcp).map_err(|_| LISTEN),
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(formatter),
            Self::Unix(path) => write!(formatter, "unix:{}", path.display()),
        }
    }
}
