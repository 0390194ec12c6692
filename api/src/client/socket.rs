//! Requests over a socket in the file system, for [`ureq`].

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport,
};

/// Connects to one socket, whatever the URI says.
#[derive(Debug)]
pub(super) struct Socket {
    path: PathBuf,
}

impl Socket {
    /// The socket at `path`.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }
}

impl Connector for Socket {
    type Out = SocketTransport;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        _chained: Option<()>,
    ) -> Result<Option<SocketTransport>, ureq::Error> {
        let stream = UnixStream::connect(&self.path)?;
        let config = details.config;
        Ok(Some(SocketTransport {
            stream,
            buffers: LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size()),
        }))
    }
}

/// A name needs no address where there is but one socket.
#[derive(Debug)]
pub(super) struct Nowhere;

impl Resolver for Nowhere {
    fn resolve(&self, _: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        // One is expected; nobody connects to it.
        let mut addresses = self.empty();
        addresses.push(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)));
        Ok(addresses)
    }
}

/// One connection.
#[derive(Debug)]
pub(super) struct SocketTransport {
    stream: UnixStream,
    buffers: LazyBuffers,
}

impl Transport for SocketTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        let left = timeout.not_zero().map(|left| *left);
        self.stream.set_write_timeout(left)?;
        let written = self.stream.write_all(&self.buffers.output()[..amount]);
        written.map_err(|error| in_time(error, timeout))
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        let left = timeout.not_zero().map(|left| *left);
        self.stream.set_read_timeout(left)?;
        let into = self.buffers.input_append_buf();
        let amount = loop {
            match self.stream.read(into) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => break read.map_err(|error| in_time(error, timeout))?,
            }
        };
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        // A daemon sends nothing unasked: what can be read is its end.
        let mut byte = [0];
        let peeked = self.stream.set_nonblocking(true).and_then(|()| {
            rustix::io::retry_on_intr(|| peek(&self.stream, &mut byte)).map_err(io::Error::from)
        });
        let waits = matches!(&peeked, Err(error) if error.kind() == ErrorKind::WouldBlock);
        self.stream.set_nonblocking(false).is_ok() && waits
    }
}

fn peek(stream: &UnixStream, into: &mut [u8; 1]) -> rustix::io::Result<usize> {
    rustix::net::recv(stream, into, rustix::net::RecvFlags::PEEK).map(|(length, _)| length)
}

/// A time-out by its reason, other errors as they are.
fn in_time(error: io::Error, timeout: NextTimeout) -> ureq::Error {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => ureq::Error::Timeout(timeout.reason),
        _ => ureq::Error::Io(error),
    }
}
