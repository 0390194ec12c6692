//! proofkeep-engine
