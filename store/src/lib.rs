//! The store of proofkeep: the only truth about jobs, partitions, attempts, devices and circuits.
//!
//! Nothing is answered, shown or handed to a worker before it is durable, and nothing outside this crate ever sees
//! sled. The state machine decides and does no I/O; the commit thread writes and decides nothing; queries read.

pub mod backup;
pub mod clock;
pub mod codec;
pub mod commit;
pub mod dump;
mod error;
pub mod event;
pub mod format;
pub mod fsck;
pub mod ids;
pub mod keys;
mod lookout;
pub mod machine;
pub mod mend;
pub mod migrate;
pub mod objects;
mod open;
pub mod query;
pub mod records;
pub mod scrub;
mod tree;
pub mod view;
mod vital;

pub use commit::{CommitError, Committed, Handle, Limits};
pub use error::{EXIT_STORE, OpenError};
pub use objects::{ObjectError, Objects};
pub use open::{Options, Store};
pub use vital::vital;
