//! The words between daemon and worker process, and how they travel.

mod frame;
mod message;

pub use frame::{FrameError, MAX_FRAME, read, write};
pub use message::{CircuitFiles, FromWorker, ToWorker, WireFacts, WireFailure, WirePiece, WireToken, Work};

/// The build, as `Hello` says it: a worker process of another one is refused.
pub const BUILD: &str = concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_PKG_VERSION"));
