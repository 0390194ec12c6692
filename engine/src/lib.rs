//! Everything between the store and the proof: kinds of proofs, worker processes and their devices.
//!
//! The daemon half decides and watches; it parses no key and runs no circuit. The worker half ([`worker`]) is a child
//! process for each device; it alone maps keys, makes witnesses and proves, and speaks to the daemon in the words of
//! [`protocol`]. A device is used only under a [`lease::Lease`].

pub mod budget;
pub mod circuits;
pub mod damage;
pub mod desk;
pub mod device;
pub mod kinds;
pub mod lease;
pub mod params;
pub mod problem;
pub mod protocol;
pub mod recover;
pub mod request;
pub mod schedule;
pub mod scrub;
pub mod service;
mod shared;
pub mod shelf;
pub mod standalone;
pub mod worker;
pub mod workers;
