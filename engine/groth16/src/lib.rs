//! proofkeep-groth16
