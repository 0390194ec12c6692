//! The kinds themselves: a request becomes a job in the daemon, a partition becomes a proof in a worker process.

use proofkeep_engine::budget::AskedKey;
use proofkeep_engine::kinds::groth16::{Check, Ready};
use proofkeep_engine::kinds::{
    Defaults, Desk, Kind, Kinds, LoadTask, Needs, Plan, Prepared, SynthTask, Watch,
};
use proofkeep_engine::problem::Problem;
use proofkeep_engine::request::{common_fields, unknown_field};
use proofkeep_groth16::backend::Backend as _;
use proofkeep_groth16::memory::ticket_bytes;
use proofkeep_groth16::proof::Proof;
use proofkeep_groth16::verify::verify;
use proofkeep_groth16::vk::VerifyingKey;
use proofkeep_groth16::witness::Witness;
use proofkeep_store::ids::Digest;
use proofkeep_store::records::{Failure, FailureClass, OnFailure, Priority};
use serde_json::{Map, Value};

use crate::beat::watched;
use crate::circuit::{Circuit, KINDS};
use crate::directory::{Content, Directory};
use crate::header::Header;
use crate::invalid::Invalid;
use crate::params::Verdict;
use crate::statement::Pinned;
use crate::{read, ready, resident, room};

/// The fields of the four kinds, for the text about an unknown one.
const FIELDS: [&[&str]; 4] = [
    &[
        "miner_id",
        "partitions",
        "prover_id",
        "registered_proof",
        "sector_number",
        "sector_size",
        "vanilla_proof",
    ],
    &[
        "comm_d_new",
        "comm_r_new",
        "comm_r_old",
        "registered_proof",
        "sector_size",
        "vanilla_proofs",
    ],
    &[
        "miner_id",
        "partition_index",
        "prover_id",
        "randomness",
        "registered_proof",
        "sector_size",
        "vanilla_proofs",
    ],
    &[
        "miner_id",
        "prover_id",
        "randomness",
        "registered_proof",
        "sector_size",
        "vanilla_proofs",
    ],
];

/// One of the kinds of [`KINDS`].
#[derive(Clone, Debug)]
pub struct Filecoin {
    /// Its place in [`KINDS`].
    place: usize,
}

/// These kinds too, with the parameter directory of [`Directory::of_environment`] when they are asked.
#[must_use]
pub fn with_all(kinds: Kinds) -> Kinds {
    (0..KINDS.len()).fold(kinds, |kinds, place| kinds.with(Filecoin { place }))
}

impl Kind for Filecoin {
    fn name(&self) -> &'static str {
        KINDS[self.place]
    }

    fn defaults(&self) -> Defaults {
        let priority = match self.name() {
            // A block is lost in seconds, a deadline in half an hour.
            "winning-post" => Priority::Critical,
            "window-post" => Priority::High,
            _ => Priority::Normal,
        };
        Defaults {
            priority,
            on_failure: OnFailure::Stop,
            max_attempts: 3,
        }
    }

    fn plan(&self, mut fields: Map<String, Value>, desk: &dyn Desk) -> Result<Plan, Problem> {
        let known = FIELDS[self.place];
        if let Some(unknown) = fields.keys().find(|field| !known.contains(&field.as_str())) {
            let all: Vec<&str> = known.iter().chain(common_fields()).copied().collect();
            return Err(unknown_field(unknown, &all));
        }
        // Before anything is read: a request that names its sector size needs no upload to be refused for it.
        room::check_named(self.name(), &fields, desk)?;
        let (statement, partitions) = read::statement(self.name(), &mut fields, desk)?;
        let identifier = statement.circuit().identifier()?;
        let (directory, id) = (self.directory(), Directory::id(&identifier));
        let header = ready::header(&directory, &id)?;
        let known = ready::known(&directory, &id, desk.allow_unofficial_params())?;
        if known.verdict != Verdict::Published && !desk.allow_insecure_setup() {
            let detail = format!(
                "{} isn't the published file, and allow_insecure_setup = false refuses such keys",
                self.directory().file(&identifier, Content::Params).display()
            );
            return Err(Problem::input("insecure-setup", detail));
        }
        let largest = partitions.iter().map(|input| input.len() as u64).max();
        let mut objects = Vec::with_capacity(partitions.len());
        for input in &partitions {
            objects.push(desk.keep(input)?);
        }
        let pinned = Pinned {
            statement,
            inputs: objects.clone(),
            key: header.digest(),
            file: known.found,
        };
        objects.sort_unstable();
        objects.dedup();
        Ok(Plan {
            fields: pinned.to_fields(),
            circuit: None,
            partitions: u32::try_from(partitions.len()).unwrap_or(u32::MAX),
            ticket_bytes: working_bytes(&header, largest, desk)
                .saturating_add(ready::key_bytes(&directory, &id, &header)),
            objects,
        })
    }

    fn needs(&self, request: &[u8], desk: &dyn Desk) -> Option<Needs> {
        let pinned = Pinned::of_request(self.name(), request).ok()?;
        let id = Directory::id(&pinned.statement.circuit().identifier().ok()?);
        let directory = self.directory();
        let header = ready::header(&directory, &id).ok()?;
        let largest = pinned.inputs.iter().filter_map(|input| desk.size(*input)).max();
        Some(Needs {
            ticket_bytes: working_bytes(&header, largest, desk),
            key: AskedKey {
                key: pinned.key,
                bytes: ready::key_bytes(&directory, &id, &header),
                private: true,
            },
        })
    }

    fn synthesize(&self, task: &SynthTask<'_>, watch: &dyn Watch) -> Result<Box<dyn Prepared>, Failure> {
        let go_on = |permille| {
            watch.progress(permille);
            watch.stopped().map_or(Ok(()), Err)
        };
        let pinned = Pinned::of_request(self.name(), task.request).map_err(|invalid| input(&invalid))?;
        let k = task.partition as usize;
        let object = pinned.inputs.get(k).copied().ok_or_else(|| {
            Failure::coded(
                FailureClass::InputInvalid,
                "request",
                "there is no such partition",
            )
        })?;
        let bytes = task
            .shelf
            .map_verified(object, "vanilla proof", &mut || go_on(10))?;
        if task.recheck {
            // The key is read again, too, as soon as nobody uses it.
            task.keys.evict(pinned.key);
        }
        let key = task.keys.pin(pinned.key, watch, || {
            resident::load(
                &self.directory(),
                &pinned.statement.circuit(),
                pinned.key,
                pinned.file.as_deref(),
                task.threads,
                watch,
            )
        })?;
        go_on(300)?;
        let made = watched(watch, task.threads.backend().threads(), || {
            pinned.statement.witness(k, &bytes)
        })?
        .map_err(|invalid| input(&invalid))?;
        go_on(800)?;
        let matrices = key.key.matrices();
        let (expected, found) = (matrices.wires() as usize, made.values.len());
        let public = key.key.vk().public();
        if expected != found || made.public.len() != public {
            let detail = format!(
                "the circuit has {expected} wires and {public} public signals, these vanilla proofs give {found} and {}",
                made.public.len()
            );
            return Err(Failure::coded(
                FailureClass::InputInvalid,
                "witness-length",
                detail,
            ));
        }
        let witness = Witness::new(&made.values)
            .map_err(|error| Failure::coded(FailureClass::InputInvalid, error.code(), error.to_string()))?;
        let products = task.threads.run(|| matrices.products(&witness)).ok_or_else(|| {
            Failure::coded(
                FailureClass::DeviceError,
                "no-thread",
                "no thread checked the witness",
            )
        })?;
        let unsatisfied = |what: String| {
            let detail = format!("the vanilla proofs verify, but {what}");
            Failure::new(FailureClass::Unsatisfied, detail)
        };
        let products =
            products.map_err(|row| unsatisfied(format!("constraint {row} of the circuit doesn't hold")))?;
        if made.values[1..=public] != made.public[..] {
            return Err(unsatisfied("the public signals aren't the verifier's".to_owned()));
        }
        go_on(1000)?;
        let (digest, signals) = (
            Digest::of(made.values.as_flattened()),
            made.public.as_flattened().to_vec(),
        );
        let ready = Ready::new(
            made.values,
            digest,
            signals,
            key,
            task.threads.clone(),
            Check::Done,
        );
        // After an invalid proof nothing is taken over from the check: it is part of what may have gone wrong.
        Ok(Box::new(match task.recheck {
            true => ready,
            false => ready.with_products(products),
        }))
    }

    fn load(&self, task: &LoadTask<'_>, watch: &dyn Watch) -> Result<(), Failure> {
        let circuit = Circuit::of_id(task.name).ok_or_else(|| {
            let detail = format!(
                "this build has no circuit whose parameters are called {}",
                task.name
            );
            Failure::coded(FailureClass::ParamsMismatch, "unknown-key", detail)
        })?;
        let load = || {
            let directory = self.directory();
            resident::load(&directory, &circuit.1, task.key, task.file, task.threads, watch)
        };
        task.keys.pin(task.key, watch, load).map(drop)
    }

    fn verify(&self, vk: Option<&[u8]>, public: &[u8], proof: &[u8]) -> Result<(), Failure> {
        let invalid = |code: &str, detail: String| Failure::coded(FailureClass::InvalidProof, code, detail);
        let vk = vk.ok_or_else(|| invalid("vk-missing", "there is no verification key".to_owned()))?;
        let vk = VerifyingKey::from_bellperson_bytes(vk)
            .map_err(|error| invalid(error.code(), error.to_string()))?;
        let (signals, rest) = public.as_chunks::<32>();
        if !rest.is_empty() {
            return Err(invalid(
                "public-length",
                "the public signals are cut off".to_owned(),
            ));
        }
        let proof = Proof::from_bytes(proof).map_err(|error| invalid(error.code(), error.to_string()))?;
        verify(&vk, signals, &proof).map_err(|error| invalid(error.code(), error.to_string()))
    }

    fn verification_key(
        &self,
        request: &mut dyn FnMut() -> Result<Vec<u8>, Failure>,
    ) -> Result<Option<Vec<u8>>, Failure> {
        let pinned = Pinned::of_request(self.name(), &request()?).map_err(|invalid| input(&invalid))?;
        Ok(Some(self.pinned_key(&pinned)?))
    }

    fn verify_joined(&self, request: &[u8], proofs: &[Vec<u8>]) -> Result<(), Failure> {
        let invalid = |detail: String| Failure::coded(FailureClass::JoinInvalid, "join-invalid", detail);
        let pinned = Pinned::of_request(self.name(), request).map_err(|error| invalid(error.to_string()))?;
        let vk = self.pinned_key(&pinned)?;
        match pinned.statement.verify_joined(&vk, &proofs.concat()) {
            Ok(true) => Ok(()),
            Ok(false) => Err(invalid(
                "the published verifier refuses the joined proof".to_owned(),
            )),
            Err(error) => Err(invalid(error.to_string())),
        }
    }
}

impl Filecoin {
    fn directory(&self) -> Directory {
        Directory::of_environment()
    }

    fn pinned_key(&self, pinned: &Pinned) -> Result<Vec<u8>, Failure> {
        let identifier = pinned
            .statement
            .circuit()
            .identifier()
            .map_err(|invalid| input(&invalid))?;
        Ok(resident::header(&self.directory(), &identifier, pinned.key)?.vk)
    }
}

/// Bytes for one partition, its key not among them.
fn working_bytes(header: &Header, largest_input: Option<u64>, desk: &dyn Desk) -> u64 {
    let prover = ticket_bytes(header.domain, header.wires, desk.threads() as usize);
    prover.saturating_add(largest_input.unwrap_or(0).saturating_mul(8))
}

/// The input's own fault.
fn input(invalid: &Invalid) -> Failure {
    Failure::coded(FailureClass::InputInvalid, invalid.code, invalid.to_string())
}
