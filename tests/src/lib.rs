//! What the tests share: the real daemon under a harness, and machines that cut its power.

pub mod crash_report;
pub mod fixtures;
pub mod harness;
pub mod judge;
pub mod kill;
pub mod ledger;
pub mod machine;
pub mod plot;
pub mod powercut;
pub mod probe;
pub mod report;
pub mod setting;
pub mod shim;
pub mod trend;
