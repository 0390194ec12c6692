//! The store of proofkeep: the only truth about jobs, partitions, attempts, devices and circuits.
//!
//! Nothing is answered, shown or handed to a worker before it is durable, and nothing outside this crate ever sees
//! sled. The state machine decides and does no I/O; the commit thread writes and decides nothing; queries read.

pub mod codec;
pub mod event;
pub mod ids;
pub mod keys;
pub mod records;
pub mod view;
