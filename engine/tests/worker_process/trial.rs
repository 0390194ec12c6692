//! A kind that does what worker processes must survive, or must die of in the right way.

use proofkeep_engine::kinds::{Defaults, Desk, Kind, Plan, Prepared, Proved, SynthTask, Watch};
use proofkeep_engine::lease::Lease;
use proofkeep_engine::problem::Problem;
use proofkeep_store::ids::Digest;
use proofkeep_store::records::{Failure, FailureClass, OnFailure, Piece, Priority};
use serde_json::{Map, Value};

pub struct Trial;

impl Kind for Trial {
    fn name(&self) -> &'static str {
        "trial"
    }

    fn defaults(&self) -> Defaults {
        Defaults {
            priority: Priority::Normal,
            on_failure: OnFailure::Stop,
            max_attempts: 1,
        }
    }

    fn plan(&self, _fields: Map<String, Value>, _desk: &dyn Desk) -> Result<Plan, Problem> {
        Err(Problem::input("trial", "this kind is not planned"))
    }

    fn synthesize(&self, task: &SynthTask<'_>, watch: &dyn Watch) -> Result<Box<dyn Prepared>, Failure> {
        match task.request {
            b"panic" => panic!("a secret value"),
            b"panic in a pool" => {
                task.threads.run(|| panic!("a secret value"));
            }
            b"allocate" => {
                // More than any address space; the allocator says no at once.
                let _ = std::hint::black_box(Vec::<u8>::with_capacity(1 << 62));
            }
            b"abort" => std::process::abort(),
            b"wait to be stopped" => loop {
                watch.progress(1);
                if let Some(reason) = watch.stopped() {
                    return Err(reason);
                }
                std::thread::yield_now();
            },
            b"prove one piece and wait" => return Ok(Box::new(Waits)),
            _ => {}
        }
        Err(Failure::new(
            FailureClass::InputInvalid,
            "this kind proves nothing",
        ))
    }

    fn verify(&self, _vk: Option<&[u8]>, _public: &[u8], _proof: &[u8]) -> Result<(), Failure> {
        Err(Failure::new(
            FailureClass::InvalidProof,
            "this kind proves nothing",
        ))
    }
}

/// Makes one piece on its device, then waits to be stopped.
struct Waits;

impl Prepared for Waits {
    fn witness(&self) -> Digest {
        Digest([1; 32])
    }

    fn public(&self) -> &[u8] {
        &[]
    }

    fn key(&self) -> Digest {
        Digest([2; 32])
    }

    fn prove(
        &mut self,
        _lease: &Lease,
        known: &[Piece],
        sink: &mut dyn FnMut(Piece),
        watch: &dyn Watch,
    ) -> Result<Proved, Failure> {
        if known.is_empty() {
            sink(Piece {
                name: "one".to_owned(),
                bytes: vec![7; 48],
                millis: 20,
                attempt: 0,
            });
        }
        loop {
            watch.progress(500);
            if let Some(reason) = watch.stopped() {
                return Err(reason);
            }
            std::thread::yield_now();
        }
    }

    fn finish(self: Box<Self>, _watch: &dyn Watch) -> Result<Vec<u8>, Failure> {
        Err(Failure::new(
            FailureClass::InvalidProof,
            "this kind proves nothing",
        ))
    }
}
