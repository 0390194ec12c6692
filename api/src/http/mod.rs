//! The daemon over HTTP, by warp: one file a resource. A handler reads what came in, asks the engine or the store, and
//! draws the answer; it decides nothing about jobs.
//!
//! 1. [`access`] lets a request in, [`auth`] says who sends it.
//! 2. [`route`] finds its handler.
//! 3. The handler's [`Outcome`](answer::Outcome) goes out; every error is a problem of [`problem`].

mod access;
mod answer;
mod auth;
mod backup;
mod blobs;
mod circuits;
mod connections;
mod context;
mod etag;
mod events;
mod health;
mod jobs;
mod listener;
mod params;
mod partitions;
mod percent;
mod prefer;
mod problem;
mod proofs;
mod prove;
mod query;
mod request;
mod route;
mod status;
mod tls;
mod tokens;
mod upload;
mod verify;

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use hyper::body::Incoming;
use hyper::service::HttpService;
use hyper_util::service::TowerToHyperService;
use parking_lot::Mutex;
use proofkeep_engine::problem::Problem;
use proofkeep_engine::service::Engine;
use tokio::sync::watch;
use warp::filters::path::FullPath;
use warp::http::Method;
use warp::http::uri::Authority;
use warp::{Filter, Rejection};

use crate::tokens::Tokens;
use access::Access;
use answer::Answer;
use auth::{Guard, Peer};
pub(crate) use connections::Limits;
use context::Context;
pub(crate) use context::Settings;
pub(crate) use listener::Listener;
use request::{Body, Request};
use route::Target;
use status::LastStatus;
pub(crate) use tls::{Tls, TlsError};

/// What the daemon can answer at the moment.
#[derive(Clone)]
enum Phase {
    /// The store is opened and recovered.
    Starting,
    /// Everything.
    Serving(Arc<Engine>),
    /// What is known, but nothing new is taken.
    Stopping(Arc<Engine>),
}

/// The HTTP side of a daemon. It answers from the first moment on, and says what it can't do yet.
#[derive(Clone)]
pub(crate) struct Server {
    phase: Arc<Mutex<Phase>>,
    stopping: watch::Sender<bool>,
    access: Arc<Access>,
    guard: Arc<Guard>,
    settings: Arc<Settings>,
    last_status: Arc<LastStatus>,
}

impl Server {
    /// A server that answers 503 until [`serve`](Self::serve) gives it an engine.
    pub fn new(settings: Settings, tokens: Tokens) -> Self {
        Self {
            phase: Arc::new(Mutex::new(Phase::Starting)),
            stopping: watch::Sender::new(false),
            access: Arc::new(Access::new(
                settings.allowed_hosts.clone(),
                settings.listen,
                settings.scheme,
            )),
            guard: Arc::new(Guard::new(tokens, settings.require_token)),
            settings: Arc::new(settings),
            last_status: Arc::default(),
        }
    }

    /// Recovery is over.
    pub fn serve(&self, engine: Arc<Engine>) {
        *self.phase.lock() = Phase::Serving(engine);
    }

    /// Takes nothing new from here on, and ends every wait.
    pub fn stop(&self) {
        let mut phase = self.phase.lock();
        if let Phase::Serving(engine) = &*phase {
            *phase = Phase::Stopping(Arc::clone(engine));
        }
        drop(phase);
        self.stopping.send_replace(true);
    }

    /// Answers requests until `end` is over, and then those that have begun.
    pub async fn run(self, listener: Listener, end: impl Future<Output = ()> + Send + 'static) {
        let limits = self.settings.connections;
        connections::serve(listener, move |peer| self.clone().service(peer), limits, end).await;
    }

    /// What answers the requests of one connection.
    fn service(
        self,
        peer: Peer,
    ) -> impl HttpService<
        Incoming,
        ResBody: hyper::body::Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>>
                     + Send
                     + 'static,
        Error = Infallible,
        Future: Send,
    > + Send
    + 'static {
        let server = self;
        let body = warp::body::stream().map(Body::new);
        let host = warp::host::optional()
            .map(Some)
            .or(warp::any().map(|| None))
            .unify();
        let query = warp::query::raw().or(warp::any().map(String::new)).unify();
        // A request line without a path (`CONNECT host:80`) makes warp's `full` panic; `end` takes it first.
        let root = warp::path::end().map(|| "/".to_owned());
        let path = root
            .or(warp::path::full().map(|path: FullPath| path.as_str().to_owned()))
            .unify();
        let everything = warp::method()
            .and(path)
            .and(query)
            .and(warp::header::headers_cloned())
            .and(host)
            .and(body)
            .then(
                move |method: Method, path: String, query, headers, host: Option<Option<Authority>>, body| {
                    let request = Request::new(method, path, query, headers, body);
                    server.clone().answer(request, peer, host.flatten())
                },
            )
            .recover(|rejection: Rejection| async move {
                tracing::error!(?rejection, "a request was not routed");
                Ok::<_, Infallible>(answer::finished(problem::answer(&problem::internal(), "/")))
            });
        TowerToHyperService::new(warp::service(everything))
    }

    async fn answer(self, mut request: Request, peer: Peer, host: Option<Authority>) -> Answer {
        let path = request.path.clone();
        let outcome = AssertUnwindSafe(self.dispatch(&mut request, peer, host.as_ref()))
            .catch_unwind()
            .await;
        let answer = outcome.unwrap_or_else(|_| {
            tracing::error!(%path, "a request's handler panicked");
            problem::answer(&problem::internal(), &path)
        });
        if answer.status().is_client_error() || answer.status().is_server_error() {
            request.drain().await;
        }
        tracing::debug!(method = %request.method, %path, status = answer.status().as_u16(), "answered");
        answer::finished(answer)
    }

    async fn dispatch(&self, request: &mut Request, peer: Peer, host: Option<&Authority>) -> Answer {
        let path = request.path.clone();
        let refuse = |problem: &Problem| problem::answer(problem, &path);
        if let Err(problem) = self.access.check(&request.method, host, &request.headers) {
            return refuse(&problem);
        }
        let phase = self.phase.lock().clone();
        if let Some(answer) = health::answer(&phase, &request.method, &path) {
            return answer;
        }
        let caller = match self.guard.caller(peer, &request.headers) {
            Ok(caller) => caller,
            Err(problem) => return refuse(&problem),
        };
        let (handler, params) = match route::find(&request.method, &path) {
            Target::Found(handler, scope, params) => match caller.check(scope) {
                Ok(()) => (handler, params),
                Err(problem) => return refuse(&problem),
            },
            Target::OtherMethods(allowed) => {
                return problem::method_not_allowed(&request.method, &path, &allowed);
            }
            Target::Nothing => return refuse(&problem::no_such_path(&path)),
        };
        let engine = match phase {
            Phase::Starting => return refuse(&problem::starting()),
            Phase::Stopping(_) if !matches!(request.method, Method::GET | Method::HEAD) => {
                return refuse(&problem::draining());
            }
            Phase::Serving(engine) | Phase::Stopping(engine) => engine,
        };
        // A page of the status shows the last picture; everything else would only wait as well.
        if !matches!(path.as_str(), "/status" | "/v1/status")
            && let Some(silent) = health::stuck_for(&engine)
        {
            return refuse(&problem::stuck(silent));
        }
        request.params = params;
        request.set_caller(caller);
        let context = Context {
            engine,
            settings: Arc::clone(&self.settings),
            last_status: Arc::clone(&self.last_status),
            guard: Arc::clone(&self.guard),
            stopping: self.stopping.subscribe(),
        };
        handler(&context, request)
            .await
            .unwrap_or_else(|problem| problem::answer(&problem, &path))
    }
}
