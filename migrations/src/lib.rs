//! proofkeep-migrations
