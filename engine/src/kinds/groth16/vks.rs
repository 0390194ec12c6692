//! Verification keys that were read already: reading one checks every point of it, which takes longer than a proof.

use std::sync::Arc;

use parking_lot::Mutex;
use proofkeep_groth16::vk::VerifyingKey;
use proofkeep_store::ids::Digest;
use proofkeep_store::records::Failure;

/// How many are kept.
const KEPT: usize = 16;

/// The keys that were used last, the latest at the end.
#[derive(Debug, Default)]
pub(super) struct Parsed(Mutex<Vec<(Digest, Arc<VerifyingKey>)>>);

impl Parsed {
    /// The key in these bytes.
    pub fn get(&self, bytes: &[u8]) -> Result<Arc<VerifyingKey>, Failure> {
        let digest = Digest::of(bytes);
        let found = {
            let mut kept = self.0.lock();
            let place = kept.iter().position(|(found, _)| *found == digest);
            place.map(|place| {
                let entry = kept.remove(place);
                kept.push(entry.clone());
                entry.1
            })
        };
        if let Some(vk) = found {
            return Ok(vk);
        }
        let vk = Arc::new(super::read_vk(bytes)?);
        let mut kept = self.0.lock();
        if kept.len() >= KEPT {
            kept.remove(0);
        }
        kept.push((digest, Arc::clone(&vk)));
        Ok(vk)
    }
}
