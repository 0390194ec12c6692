//! proofkeep-formats
