//! proofkeep-store
