//! The kind itself.

use std::path::{Path, PathBuf};

use proofkeep_engine::kinds::{Defaults, Desk, Kind, Plan, Prepared, Proved, SynthTask, Watch};
use proofkeep_engine::lease::Lease;
use proofkeep_engine::problem::Problem;
use proofkeep_store::ids::Digest;
use proofkeep_store::records::{Failure, FailureClass, OnFailure, Piece, Priority};
use serde_json::{Map, Value};

use crate::act::Act;
use crate::script::{Request, Script};

/// The names of its pieces, in the order in which they are made.
const PIECES: [&str; 5] = ["h", "l", "a", "b1", "b2"];

/// A kind that does what its request says; for tests only.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scripted;

/// How often a stage of a partition was reached (or a misfortune happened: `crash-{stage}`, `fail-{stage}`).
#[must_use]
pub fn mark_count(marks: &Path, partition: u32, name: &str) -> u64 {
    std::fs::metadata(marks.join(format!("p{partition}-{name}"))).map_or(0, |meta| meta.len())
}

/// The witness of a partition, which is all of its public signals too.
#[must_use]
pub fn witness_of(partition: u32, salt: u64) -> Digest {
    Digest::of(format!("witness {partition} {salt}").as_bytes())
}

/// The one proof that the verifier accepts.
#[must_use]
pub fn proof_of(public: &[u8]) -> Vec<u8> {
    let mut proof: Vec<u8> = PIECES.iter().flat_map(|name| piece(public, name)).collect();
    proof.extend(piece(public, "proof"));
    proof
}

fn piece(public: &[u8], name: &str) -> [u8; 32] {
    Digest::of(&[public, name.as_bytes()].concat()).0
}

fn key() -> Digest {
    Digest::of(b"the scripted kind has one key")
}

impl Kind for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn defaults(&self) -> Defaults {
        Defaults {
            priority: Priority::Normal,
            on_failure: OnFailure::Continue,
            max_attempts: 3,
        }
    }

    fn plan(&self, fields: Map<String, Value>, desk: &dyn Desk) -> Result<Plan, Problem> {
        let request: Request = serde_json::from_value(Value::Object(fields))
            .map_err(|error| Problem::input("bad-field", error.to_string()))?;
        let objects = match &request.needs {
            None => Vec::new(),
            Some(text) => {
                let needed = Digest::parse(text)
                    .ok_or_else(|| Problem::input("bad-field", "needs: expected sha256:…"))?;
                if desk.size(needed).is_none() {
                    return Err(Problem::input("blob-missing", format!("{needed} is not there")));
                }
                vec![needed]
            }
        };
        let partitions = u32::try_from(request.inputs.len()).unwrap_or(u32::MAX);
        let ticket_bytes = request.ticket_bytes;
        match serde_json::to_value(&request) {
            Ok(Value::Object(fields)) => Ok(Plan {
                fields,
                circuit: None,
                partitions,
                ticket_bytes,
                objects,
            }),
            _ => Err(Problem::input("bad-field", "the request can't be written again")),
        }
    }

    fn synthesize(&self, task: &SynthTask<'_>, watch: &dyn Watch) -> Result<Box<dyn Prepared>, Failure> {
        let broken = |text: String| Failure::new(FailureClass::InputInvalid, text);
        let mut fields: Map<String, Value> =
            serde_json::from_slice(task.request).map_err(|error| broken(error.to_string()))?;
        for common in proofkeep_engine::request::common_fields() {
            fields.remove(*common);
        }
        let request: Request =
            serde_json::from_value(Value::Object(fields)).map_err(|error| broken(error.to_string()))?;
        let script = request.inputs.get(task.partition as usize).cloned();
        let script = script.ok_or_else(|| broken("there is no such partition".to_owned()))?;
        let marks = request.marks.map(PathBuf::from);
        let witness = witness_of(task.partition, script.salt);
        let run = Run {
            script,
            marks,
            partition: task.partition,
            witness,
            public: witness.0,
            pieces: Vec::new(),
        };
        run.act(watch).stage("synth", run.script.synth_ms)?;
        Ok(Box::new(run))
    }

    fn verify(&self, _: Option<&[u8]>, public: &[u8], proof: &[u8]) -> Result<(), Failure> {
        if proof == proof_of(public) {
            Ok(())
        } else {
            Err(Failure::new(
                FailureClass::InvalidProof,
                "the proof is not the one that its public signals ask for",
            ))
        }
    }
}

struct Run {
    script: Script,
    marks: Option<PathBuf>,
    partition: u32,
    witness: Digest,
    public: [u8; 32],
    pieces: Vec<Piece>,
}

impl Run {
    fn act<'a>(&'a self, watch: &'a dyn Watch) -> Act<'a> {
        Act {
            marks: self.marks.as_deref(),
            partition: self.partition,
            script: &self.script,
            watch,
        }
    }
}

impl Prepared for Run {
    fn witness(&self) -> Digest {
        self.witness
    }

    fn public(&self) -> &[u8] {
        &self.public
    }

    fn key(&self) -> Digest {
        key()
    }

    fn prove(
        &mut self,
        _: &Lease,
        known: &[Piece],
        sink: &mut dyn FnMut(Piece),
        watch: &dyn Watch,
    ) -> Result<Proved, Failure> {
        let mut proved = Proved::default();
        self.act(watch).stage("prove", 0)?;
        for name in PIECES {
            if let Some(known) = known.iter().find(|known| known.name == name) {
                proved.reused.push(name.to_owned());
                proved.saved_ms += known.millis;
                self.pieces.push(known.clone());
                continue;
            }
            let spoil = self.act(watch).stage(name, self.script.piece_ms)?;

            let mut bytes = piece(&self.public, name).to_vec();
            if spoil {
                bytes[0] ^= 1;
            }
            let piece = Piece {
                name: name.to_owned(),
                bytes,
                millis: self.script.piece_ms,
                attempt: 0,
            };
            self.pieces.push(piece.clone());
            sink(piece);
        }
        Ok(proved)
    }

    /// A proof that was to be spoilt in stage `finish` is handed out as if it were good: only the daemon can tell.
    fn finish(self: Box<Self>, watch: &dyn Watch) -> Result<Vec<u8>, Failure> {
        let spoil = self.act(watch).stage("finish", self.script.finish_ms)?;
        let mut proof: Vec<u8> = self.pieces.iter().flat_map(|piece| piece.bytes.clone()).collect();
        proof.extend(piece(&self.public, "proof"));
        if spoil {
            proof[0] ^= 1;
            return Ok(proof);
        }
        Scripted.verify(None, &self.public, &proof)?;
        Ok(proof)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn its_verifier_accepts_its_proof_and_no_other() {
        let public = witness_of(3, 4).0;
        let mut proof = proof_of(&public);
        assert_eq!(proof.len(), 192);
        Scripted.verify(None, &public, &proof).unwrap();
        assert!(Scripted.verify(None, &witness_of(3, 5).0, &proof).is_err());
        proof[191] ^= 1;
        assert!(Scripted.verify(None, &public, &proof).is_err());
    }
}
