//! The right to use a device.
//!
//! Device calls take `&Lease`. In the daemon's world only decoding a `Prove` frame makes one, and that frame goes out
//! only after `gpu_start` is durable; the CLI without a daemon makes one in [`crate::standalone`], which supervisor and
//! worker never name. A lease ends by a method that says how; one that is dropped says `attempt_failed` by itself, so
//! nobody can forget to report.

use std::sync::Arc;

use proofkeep_store::ids::Token;
use proofkeep_store::records::{Failure, FailureClass};

use crate::device::{Device, LeasedBackend};
use crate::protocol::{FromWorker, WireToken};

/// How a lease reports its end.
pub(crate) type Report = Box<dyn FnOnce(FromWorker) + Send>;

/// The right to use one device for one attempt, until it is released or failed.
pub struct Lease {
    token: WireToken,
    device: Arc<dyn Device>,
    report: Option<Report>,
}

impl Lease {
    pub(crate) fn new(token: WireToken, device: Arc<dyn Device>, report: Report) -> Self {
        Self {
            token,
            device,
            report: Some(report),
        }
    }

    /// What the device does, for as long as the lease is held.
    #[must_use]
    pub fn backend(&self) -> LeasedBackend<'_> {
        self.device.backend(self)
    }

    /// Its token.
    #[must_use]
    pub fn token(&self) -> Token {
        self.token.into()
    }

    /// The device is free: its work is done.
    pub fn release(mut self, gpu_ms: u64, reused: Vec<String>, saved_ms: u64) {
        let token = self.token;
        self.end(FromWorker::Released {
            token,
            gpu_ms,
            reused,
            saved_ms,
        });
    }

    /// The device is free: its work failed.
    pub fn fail(mut self, failure: &Failure, peak_bytes: Option<u64>) {
        let token = self.token;
        self.end(FromWorker::Failed {
            token,
            failure: failure.into(),
            peak_bytes,
        });
    }

    fn end(&mut self, word: FromWorker) {
        if let Some(report) = self.report.take() {
            report(word);
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let failure = Failure::coded(
            FailureClass::DeviceError,
            "lease-dropped",
            "the work under this lease ended without saying how; this is a fault of proofkeep, please report it",
        );
        let token = self.token;
        self.end(FromWorker::Failed {
            token,
            failure: (&failure).into(),
            peak_bytes: None,
        });
    }
}
