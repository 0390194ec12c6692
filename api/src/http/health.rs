//! `GET /livez`: is the daemon alive? `GET /readyz`: does it take work? Both answer from the first moment on, and take no
//! lock of the store.

use std::time::Duration;

use proofkeep_engine::problem::Problem;
use proofkeep_engine::service::Engine;
use serde_json::json;
use warp::http::{Method, StatusCode};

use super::Phase;
use super::answer::{Answer, json};
use super::problem::{self, draining, method_not_allowed, starting, stuck};

/// A commit thread that wasn't seen for so long is stuck: it looks up once a second, and a sync may be slow.
pub(super) const STUCK: Duration = Duration::from_secs(30);

/// The answer, if the path is one of these.
pub(super) fn answer(phase: &Phase, method: &Method, path: &str) -> Option<Answer> {
    let health = match path {
        "/livez" => live(phase),
        "/readyz" => ready(phase),
        _ => return None,
    };
    if !matches!(*method, Method::GET | Method::HEAD) {
        return Some(method_not_allowed(method, path, &[Method::GET, Method::HEAD]));
    }
    Some(match health {
        Ok(word) => json(StatusCode::OK, &json!({ "status": word })),
        Err(found) => problem::answer(&found, path),
    })
}

fn live(phase: &Phase) -> Result<&'static str, Problem> {
    match phase {
        Phase::Starting => Ok("starting"),
        Phase::Stopping(_) => Ok("stopping"),
        Phase::Serving(engine) => match stuck_for(engine) {
            None => Ok("live"),
            Some(silent) => Err(stuck(silent)),
        },
    }
}

/// How long the commit thread was not seen, if that is too long.
pub(super) fn stuck_for(engine: &Engine) -> Option<Duration> {
    let silent = engine.handle().heartbeat();
    (silent > STUCK).then_some(silent)
}

fn ready(phase: &Phase) -> Result<&'static str, Problem> {
    match phase {
        Phase::Starting => Err(starting()),
        Phase::Stopping(_) => Err(draining()),
        Phase::Serving(engine) if !engine.is_ready() => Err(draining()),
        Phase::Serving(engine) => match stuck_for(engine) {
            None => Ok("ready"),
            Some(silent) => Err(stuck(silent)),
        },
    }
}
