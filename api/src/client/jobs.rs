//! Waiting for a job, also across restarts of the daemon.

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Client, ClientError, escape};

/// The longest wait that is asked for at once.
const LONGEST: Duration = Duration::from_secs(30);

/// How long a daemon that answered before may be away: it is started again after a crash.
const AWAY: Duration = Duration::from_secs(60);

/// Between two tries to reach a daemon that is away.
const PAUSE: Duration = Duration::from_millis(300);

/// What a wait came to.
#[derive(Clone, Debug)]
pub enum Ended {
    /// The job ended; what the daemon shows of it.
    Job(Value),
    /// The time is over; what the daemon showed last, if anything.
    TimedOut(Option<Value>),
}

impl Client {
    /// Waits until a job has ended or `timeout` is over. `changed` hears of every change that is seen. A daemon that
    /// answered once may be away for a minute: the job goes on when it is started again.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn wait(
        &self,
        job: &str,
        timeout: Option<Duration>,
        changed: &mut dyn FnMut(&Value),
    ) -> Result<Ended, ClientError> {
        let start = Instant::now();
        let path = format!("/v1/jobs/{}", escape(job));
        let mut known: Option<(String, Value)> = None;
        let mut away_since = None;
        loop {
            let left = timeout.map_or(LONGEST, |timeout| timeout.saturating_sub(start.elapsed()));
            // Rounded up, so that the last wait isn't one of none.
            let wait = format!("wait={}", left.min(LONGEST).as_millis().div_ceil(1000));
            // The first look doesn't wait, so that the daemon is known to have the job should it be killed meanwhile.
            let headers = match &known {
                Some((etag, _)) => vec![("Prefer", wait.as_str()), ("If-None-Match", etag.as_str())],
                None => Vec::new(),
            };
            match self.get(&path, &headers) {
                Ok(reply) => {
                    away_since = None;
                    if reply.status != 304 {
                        changed(&reply.body);
                        if is_ended(&reply.body) {
                            return Ok(Ended::Job(reply.body));
                        }
                        known = Some((reply.etag.unwrap_or_else(|| "\"none\"".to_owned()), reply.body));
                    }
                }
                Err(error) if known.is_some() && passes(&error) => {
                    let since = *away_since.get_or_insert_with(Instant::now);
                    if since.elapsed() > AWAY {
                        return Err(error);
                    }
                    pause(PAUSE);
                }
                Err(error) => return Err(error),
            }
            if timeout.is_some_and(|timeout| start.elapsed() >= timeout) {
                return Ok(Ended::TimedOut(known.map(|(_, job)| job)));
            }
        }
    }
}

/// Whether a job, as the daemon shows it, has ended.
#[must_use]
pub fn is_ended(job: &Value) -> bool {
    matches!(
        job["state"].as_str(),
        Some("succeeded" | "failed" | "cancelled" | "expired")
    )
}

/// The daemon is away, or starts or ends just now.
fn passes(error: &ClientError) -> bool {
    match error {
        ClientError::Unreachable { .. } => true,
        ClientError::Problem { status, .. } => *status == 503,
        _ => false,
    }
}

/// Nothing tells a client that a daemon was started again, so it asks from time to time.
pub(crate) fn pause(time: Duration) {
    let (_keep, receive) = channel::<()>();
    let _ = receive.recv_timeout(time);
}
