//! snarkjs on the same circuit and witness, under a key in its own form, each proof by a process of its own, as its users
//! run it. It takes the cores that it finds; with one thread it is held to one core.

use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use blstrs::Scalar;
use ff::Field;
use proofkeep_formats::json::ProofJson;
use proofkeep_formats::r1cs::{R1cs, R1csBuilder};
use proofkeep_formats::wtns;
use proofkeep_formats::zkey::Zkey;
use proofkeep_groth16::backend::CpuBackend;
use proofkeep_groth16::field::{ScalarBytes, scalar_to_bytes};
use proofkeep_groth16::proof::Proof;
use proofkeep_groth16::setup::insecure_setup;
use proofkeep_groth16::verify::verify;
use proofkeep_groth16::vk::VerifyingKey;

use crate::cost::{Cost, processor};
use crate::system::{System, Terms};

/// A circuit in snarkjs's files.
pub struct Snarkjs {
    /// Its `cli.cjs`.
    program: PathBuf,
    directory: tempfile::TempDir,
    vk: VerifyingKey,
    public: Vec<ScalarBytes>,
    one_core: bool,
}

impl Snarkjs {
    /// Writes the files; `None` where `PROOFKEEP_PEERS_SNARKJS` doesn't name the program.
    pub fn new(system: &System, threads: usize) -> Option<Self> {
        let program = PathBuf::from(std::env::var_os("PROOFKEEP_PEERS_SNARKJS")?);
        let (wires, public) = (system.values.len() as u32, system.public as u32);
        let mut builder = R1csBuilder::new(wires, public, 0, wires - public - 1);
        for row in &system.rows {
            let [a, b, c] = row.each_ref().map(terms);
            builder.constraint(&a, &b, &c);
        }
        let file = builder.build();
        let r1cs = R1cs::parse(&file).unwrap();
        let backend = CpuBackend::named("auto", threads).unwrap();
        let mut go_on = |_, _| ControlFlow::Continue(());
        let out = std::io::Cursor::new(Vec::new());
        let zkey = insecure_setup(&r1cs, b"peers", out, &backend, &mut go_on)
            .unwrap()
            .into_inner();
        let values: Vec<ScalarBytes> = system.values.iter().map(scalar_to_bytes).collect();
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("circuit.zkey"), &zkey).unwrap();
        fs::write(directory.path().join("witness.wtns"), wtns::write(&values)).unwrap();
        Some(Self {
            program,
            directory,
            vk: VerifyingKey::from_zkey(&Zkey::parse(&zkey).unwrap()).unwrap(),
            public: values[1..=system.public].to_vec(),
            one_core: threads == 1,
        })
    }

    /// One proof, verified.
    pub fn round(&self) -> Cost {
        let mut command = if self.one_core {
            let mut command = Command::new("taskset");
            command.args(["-c", "0", "node"]);
            command
        } else {
            Command::new("node")
        };
        command.arg(&self.program).args([
            "groth16",
            "prove",
            "circuit.zkey",
            "witness.wtns",
            "proof.json",
            "public.json",
        ]);
        let (wall, before) = (Instant::now(), processor(libc::RUSAGE_CHILDREN));
        let status = command
            .current_dir(self.directory.path())
            .stdout(Stdio::null())
            .status()
            .unwrap();
        let cost = Cost {
            wall: wall.elapsed().as_secs_f64(),
            processor: processor(libc::RUSAGE_CHILDREN) - before,
            // The most of all children so far; sizes are run from small to large.
            memory: children_peak(),
        };
        assert!(status.success(), "snarkjs ended with {status}");
        let proof = fs::read(self.directory.path().join("proof.json")).unwrap();
        let proof = Proof::from_json(&ProofJson::from_json(&proof).unwrap()).unwrap();
        verify(&self.vk, &self.public, &proof).unwrap();
        cost
    }
}

fn terms(terms: &Terms) -> Vec<(u32, ScalarBytes)> {
    let used = |(_, coefficient): &&(u32, Scalar)| !coefficient.is_zero_vartime();
    let bytes = |(wire, coefficient): &(u32, Scalar)| (*wire, scalar_to_bytes(coefficient));
    terms.iter().filter(used).map(bytes).collect()
}

/// MiB.
fn children_peak() -> f64 {
    // SAFETY: zeros are a valid `rusage`, and the pointer is to a value that lives through the call.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage.ru_maxrss as f64 / 1024.0
    }
}
