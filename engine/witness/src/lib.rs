//! proofkeep-witness
