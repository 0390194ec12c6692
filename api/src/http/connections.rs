//! Connections: how many there are, and how long one may keep its place without getting anywhere.
//!
//! warp's own server has no limit of either kind, so the filters are served by hyper here. HTTP/1.1 only: who speaks it
//! can be given up at any byte, and nobody needs more of such a daemon. A handshake counts as waiting for a header.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::HttpService;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep, sleep, sleep_until, timeout};

use super::auth::Peer;
use super::listener::{Accepted, Connection, Listener};
use super::{answer, problem};

/// What connections may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// So many at once; the next one is told to come back.
    pub most: usize,
    /// One that sends no whole header, or reads nothing of what it asked for, for so long is given up.
    pub patience: Duration,
}

/// Those who are told to come back, at once; more than these are hung up on.
const REFUSED_AT_ONCE: usize = 64;

/// What one of them may take to read that.
const REFUSED_WITHIN: Duration = Duration::from_secs(2);

/// The system gives no descriptor: some are given back meanwhile.
const NO_DESCRIPTOR: Duration = Duration::from_millis(100);

/// Serves each connection by what `service` makes for it until `end` is over, and then the requests that have begun.
pub(super) async fn serve<S>(
    listener: Listener,
    service: impl Fn(Peer) -> S + Send,
    limits: Limits,
    end: impl Future<Output = ()> + Send,
) where
    S: HttpService<Incoming, Error = Infallible> + Send + 'static,
    S::Future: Send,
    S::ResBody: Send + 'static,
    <S::ResBody as Body>::Data: Send,
    <S::ResBody as Body>::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let places = Arc::new(Semaphore::new(limits.most));
    let refusals = Arc::new(Semaphore::new(REFUSED_AT_ONCE));
    let refusal: Arc<str> = refusal(limits.most).into();
    let (ending, ended) = watch::channel(false);
    let mut open = JoinSet::new();
    let mut end = std::pin::pin!(end);
    loop {
        let accepted = tokio::select! {
            () = &mut end => break,
            Some(closed) = open.join_next() => {
                noted(closed);
                continue;
            }
            accepted = listener.accept() => accepted,
        };
        let accepted = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                not_accepted(&error).await;
                continue;
            }
        };
        if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
            let service = service(accepted.peer());
            let connection = one(accepted, service, limits.patience, ended.clone());
            open.spawn(async move {
                connection.await;
                drop(place);
            });
        } else if let Ok(place) = Arc::clone(&refusals).try_acquire_owned()
            && let Some(stream) = accepted.plain()
        {
            let refusal = Arc::clone(&refusal);
            open.spawn(async move {
                // Whether it was read or not, the place is needed.
                let _ = timeout(REFUSED_WITHIN, refuse(stream, &refusal)).await;
                drop(place);
            });
        }
    }
    drop(listener);
    ending.send_replace(true);
    while let Some(closed) = open.join_next().await {
        noted(closed);
    }
}

/// One connection, until it or the daemon ends.
async fn one<S>(accepted: Accepted, service: S, patience: Duration, mut ended: watch::Receiver<bool>)
where
    S: HttpService<Incoming, Error = Infallible> + Send,
    S::Future: Send,
    S::ResBody: Send + 'static,
    <S::ResBody as Body>::Data: Send,
    <S::ResBody as Body>::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let stream = tokio::select! {
        stream = timeout(patience, accepted.ready()) => stream,
        // Nobody has asked for anything yet.
        _ = ended.wait_for(|ended| *ended) => return,
    };
    let stream = match stream {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            tracing::debug!(%error, "a connection came to no handshake");
            return;
        }
        Err(_) => return,
    };
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience)
        .serve_connection(TokioIo::new(Patient::new(stream, patience)), service);
    let mut connection = std::pin::pin!(connection);
    let stops = async move {
        // The other end is dropped only after this was sent.
        let _ = ended.wait_for(|ended| *ended).await;
    };
    let closed = tokio::select! {
        closed = connection.as_mut() => Some(closed),
        () = stops => None,
    };
    let closed = match closed {
        Some(closed) => closed,
        None => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = closed {
        tracing::debug!(%error, "a connection was cut off");
    }
}

/// The answer to a connection too many, of whose request nothing was read.
fn refusal(most: usize) -> String {
    let problem = problem::too_many_connections(most);
    let body = problem::body(&problem, "/");
    format!(
        "HTTP/1.1 {} Service Unavailable\r\ncontent-type: {}\r\nretry-after: 1\r\nconnection: close\r\n{}\
         content-length: {}\r\n\r\n{body}",
        problem.status,
        problem::MEDIA_TYPE,
        answer::as_lines(),
        body.len()
    )
}

/// Says that there is no place, and reads on for a moment: with something unread the close would take the answer along.
async fn refuse(mut stream: Connection, refusal: &str) {
    let said = async {
        stream.write_all(refusal.as_bytes()).await?;
        stream.shutdown().await?;
        let mut unread = [0; 4096];
        while stream.read(&mut unread).await? > 0 {}
        io::Result::Ok(())
    };
    if let Err(error) = said.await {
        tracing::debug!(%error, "a connection too many did not wait for its answer");
    }
}

/// A connection that was closed before it was taken is its own business; a system without descriptors is everybody's.
#[expect(
    clippy::disallowed_methods,
    reason = "the system doesn't say when a descriptor is given back"
)]
async fn not_accepted(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    if !matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    ) {
        tracing::error!(%error, "no connection can be taken");
        sleep(NO_DESCRIPTOR).await;
    }
}

/// Handlers catch their panics; one in between costs its connection only.
fn noted(closed: Result<(), tokio::task::JoinError>) {
    if let Err(error) = closed {
        tracing::error!(%error, "a connection's task failed");
    }
}

/// A stream whose writes fail when the other side takes nothing for so long.
struct Patient {
    stream: Connection,
    patience: Duration,
    /// There while a write waits.
    waits: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    fn new(stream: Connection, patience: Duration) -> Self {
        Self {
            stream,
            patience,
            waits: None,
        }
    }

    /// What a write came to, unless it has waited for too long.
    fn within<T>(&mut self, wrote: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if wrote.is_ready() {
            self.waits = None;
            return wrote;
        }
        let patience = self.patience;
        let waits = self
            .waits
            .get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + patience)));
        waits.as_mut().poll(context).map(|()| {
            Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the client reads nothing",
            ))
        })
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.within(wrote, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.within(wrote, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
