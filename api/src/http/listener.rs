//! Where connections come from: an address, with TLS or without, or a socket in the file system.
//!
//! A socket is for its owner: it has mode 0600 before anybody can connect to it. What a killed daemon left is removed,
//! but only if nobody listens there: a lock on `PATH.lock`, held as long as the socket is served, says so among daemons,
//! and a connection that is refused says so of other programs.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener as StdUnixListener, UnixStream as StdUnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, flock};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio_rustls::TlsAcceptor;

use super::auth::Peer;
use super::tls::Tls;
use crate::config::Listen;

/// Connections that wait to be taken.
const BACKLOG: i32 = 1024;

/// Both directions of one connection.
pub(super) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// One connection, of whatever kind.
pub(super) type Connection = Box<dyn Duplex>;

/// A connection that was just taken.
pub(super) struct Accepted {
    stream: Connection,
    tls: Option<TlsAcceptor>,
    peer: Peer,
}

impl Accepted {
    /// Where it comes from.
    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// The connection, after TLS's handshake if there is one.
    pub async fn ready(self) -> io::Result<Connection> {
        match self.tls {
            Some(tls) => Ok(Box::new(tls.accept(self.stream).await?)),
            None => Ok(self.stream),
        }
    }

    /// The connection, to be told something at once; none where only a handshake would get that across.
    pub fn plain(self) -> Option<Connection> {
        self.tls.is_none().then_some(self.stream)
    }
}

/// What is listened on.
pub(crate) enum Listener {
    /// An address.
    Tcp(TcpListener, Option<Arc<Tls>>),
    /// A socket in the file system.
    Unix(UnixListener, SocketFile),
}

impl Listener {
    /// Listens from here on.
    ///
    /// # Errors
    /// When somebody else does, or the system refuses.
    pub async fn bind(at: &Listen, tls: Option<Arc<Tls>>) -> io::Result<Self> {
        match at {
            Listen::Tcp(address) => Ok(Self::Tcp(TcpListener::bind(address).await?, tls)),
            Listen::Unix(path) => {
                let (listener, file) = SocketFile::serve(&std::path::absolute(path)?)?;
                Ok(Self::Unix(UnixListener::from_std(listener)?, file))
            }
        }
    }

    /// What is spoken: `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        match self {
            Self::Tcp(_, Some(_)) => "https",
            Self::Tcp(_, None) | Self::Unix(..) => "http",
        }
    }

    /// What clients are told: `http://127.0.0.1:8420`, `https://…` or `unix:/path`.
    ///
    /// # Errors
    /// When the system doesn't say.
    pub fn url(&self) -> io::Result<String> {
        Ok(match self {
            Self::Tcp(listener, _) => format!("{}://{}", self.scheme(), listener.local_addr()?),
            Self::Unix(_, file) => format!("unix:{}", file.path.display()),
        })
    }

    /// What clients on this machine are told, who can't call an address that stands for all of them.
    ///
    /// # Errors
    /// When the system doesn't say.
    pub fn local_url(&self) -> io::Result<String> {
        let Self::Tcp(listener, _) = self else {
            return self.url();
        };
        let mut address = listener.local_addr()?;
        match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
            IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
            _ => {}
        }
        Ok(format!("{}://{address}", self.scheme()))
    }

    /// The address that is listened on; loopback's for a socket in the file system.
    ///
    /// # Errors
    /// When the system doesn't say.
    pub fn ip(&self) -> io::Result<IpAddr> {
        match self {
            Self::Tcp(listener, _) => Ok(listener.local_addr()?.ip()),
            Self::Unix(..) => Ok(Ipv4Addr::LOCALHOST.into()),
        }
    }

    /// The next connection.
    pub(super) async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Self::Tcp(listener, tls) => {
                let (stream, address) = listener.accept().await?;
                // Answers are small; one that waits for another packet helps nobody.
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "a connection is slower than it could be");
                }
                Ok(Accepted {
                    stream: Box::new(stream),
                    tls: tls.as_deref().map(Tls::acceptor),
                    peer: Peer::of(address),
                })
            }
            Self::Unix(listener, _) => Ok(Accepted {
                stream: Box::new(listener.accept().await?.0),
                tls: None,
                peer: Peer::Local,
            }),
        }
    }
}

/// A socket that this process serves; it is removed in the end.
pub(crate) struct SocketFile {
    path: PathBuf,
    /// Held until the socket is removed. The file stays: who removes a lock's file may remove another one's lock.
    _lock: File,
}

impl SocketFile {
    fn serve(path: &Path) -> io::Result<(StdUnixListener, Self)> {
        let lock = lock(path)?;
        remove_stale(path)?;
        let kind = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, kind, None)?;
        bind(&socket, &SocketAddrUnix::new(path)?)?;
        let file = Self {
            path: path.to_owned(),
            _lock: lock,
        };
        // Before `listen` nobody can connect, whatever the umask was.
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        listen(&socket, BACKLOG)?;
        Ok((StdUnixListener::from(socket), file))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::debug!(%error, path = %self.path.display(), "the socket was removed by somebody else");
        }
    }
}

fn lock(path: &Path) -> io::Result<File> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(name)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(error) if io::Error::from(error).kind() == ErrorKind::WouldBlock => Err(in_use()),
        Err(error) => Err(error.into()),
    }
}

/// Removes what a killed daemon left. Anything but a socket that nobody serves stays.
fn remove_stale(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !found.file_type().is_socket() {
        return Err(io::Error::new(
            ErrorKind::AlreadyExists,
            "there is a file of that name that is no socket",
        ));
    }
    match StdUnixStream::connect(path) {
        Ok(_) => Err(in_use()),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) => Err(error),
    }
}

fn in_use() -> io::Error {
    io::Error::new(ErrorKind::AddrInUse, "somebody else listens there")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_socket_is_its_owners_and_only_one_nobody_serves_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let (listener, file) = SocketFile::serve(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(
            SocketFile::serve(&path).err().unwrap().kind(),
            ErrorKind::AddrInUse
        );
        drop((listener, file));
        assert!(!path.exists(), "it is removed in the end");

        // As a killed daemon leaves it, and as another program has it.
        let other = StdUnixListener::bind(&path).unwrap();
        assert_eq!(
            SocketFile::serve(&path).err().unwrap().kind(),
            ErrorKind::AddrInUse
        );
        drop(other);
        assert!(path.exists());
        drop(SocketFile::serve(&path).unwrap());

        fs::write(&path, "precious").unwrap();
        assert_eq!(
            SocketFile::serve(&path).err().unwrap().kind(),
            ErrorKind::AlreadyExists
        );
        assert_eq!(fs::read(&path).unwrap(), b"precious");
    }
}
