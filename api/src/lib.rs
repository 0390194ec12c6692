//! proofkeep
