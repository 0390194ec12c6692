//! proofkeep-tests
