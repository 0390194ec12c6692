//! Circuits: circom's fixtures, and one that is large enough to be interrupted.

use std::io::Cursor;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::OnceLock;

use blstrs::Scalar;
use proofkeep_engine::protocol::CircuitFiles;
use proofkeep_formats::r1cs::{R1cs, R1csBuilder};
use proofkeep_formats::wtns;
use proofkeep_groth16::backend::BlstBackend;
use proofkeep_groth16::setup::insecure_setup;
use proofkeep_store::ids::Digest;

use crate::daemon::Daemon;

pub fn fixture(circuit: &str, file: &str) -> Vec<u8> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/circom");
    std::fs::read(root.join(circuit).join(file)).unwrap()
}

fn files(name: &str) -> CircuitFiles {
    CircuitFiles {
        circuit: Digest::of(name.as_bytes()).0,
        r1cs: None,
        zkey: None,
        wasm: None,
        sym: None,
        matrices: None,
        vk: None,
        allow_unfinished: false,
        local_setup: false,
    }
}

/// A fixture's files as objects, not imported.
pub fn circom(daemon: &Daemon, name: &str) -> CircuitFiles {
    let object = |file: &str| Some(daemon.put(&fixture(name, file)).0);
    CircuitFiles {
        r1cs: object("circuit.r1cs"),
        zkey: object("circuit.zkey"),
        wasm: object("circuit.wasm"),
        sym: object("circuit.sym"),
        ..files(name)
    }
}

/// A circuit of our own.
pub struct Own {
    pub r1cs: Vec<u8>,
    pub zkey: Vec<u8>,
    pub witness: Vec<u8>,
}

impl Own {
    pub fn files(&self, daemon: &Daemon) -> CircuitFiles {
        CircuitFiles {
            r1cs: Some(daemon.put(&self.r1cs).0),
            zkey: Some(daemon.put(&self.zkey).0),
            ..files("own")
        }
    }
}

/// The domain of [`large`].
pub const LARGE_LOG2: u32 = 14;

/// `x ← x·(x + 7)` to a domain of 2^14, every value dense, the last one public. Made once.
pub fn large() -> &'static Own {
    static LARGE: OnceLock<Own> = OnceLock::new();
    LARGE.get_or_init(|| {
        let rounds = (1u32 << LARGE_LOG2) - 3;
        // Wire 0 is the constant, wire 1 the public result, wire 2 the start, then what follows.
        let wire = |round: u32| if round == rounds { 1 } else { round + 2 };
        let number = |value: u64| Scalar::from(value).to_bytes_le();
        let mut builder = R1csBuilder::new(rounds + 2, 1, 0, 1);
        let mut values = vec![Scalar::from(0u64); rounds as usize + 2];
        values[0] = Scalar::from(1u64);
        let mut x = Scalar::from(0x1234_5678_9abc_def1u64);
        x = x * x * x * x;
        for round in 0..rounds {
            values[wire(round) as usize] = x;
            x *= x + Scalar::from(7u64);
            let from = (wire(round), number(1));
            builder.constraint(&[from], &[from, (0, number(7))], &[(wire(round + 1), number(1))]);
        }
        values[1] = x;
        let r1cs = builder.build();
        let mut zkey = Cursor::new(Vec::new());
        insecure_setup(
            &R1cs::parse(&r1cs).unwrap(),
            b"a worker's test",
            &mut zkey,
            &BlstBackend::new(2).unwrap(),
            &mut |_, _| ControlFlow::Continue(()),
        )
        .unwrap();
        let values: Vec<[u8; 32]> = values.iter().map(Scalar::to_bytes_le).collect();
        Own {
            r1cs,
            zkey: zkey.into_inner(),
            witness: wtns::write(&values),
        }
    })
}
