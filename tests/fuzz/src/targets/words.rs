//! One of each word that daemon and worker process know.

use proofkeep_engine::protocol::{
    CircuitFiles, FromWorker, ToWorker, WireFacts, WireFailure, WirePiece, WireToken, Work,
};

const TOKEN: WireToken = WireToken { boot: 3, grant: 77 };
const WORK: Work = Work {
    job: 9,
    partition: 2,
    attempt: 1,
};
const FILES: CircuitFiles = CircuitFiles {
    circuit: [1; 32],
    r1cs: Some([2; 32]),
    zkey: Some([3; 32]),
    wasm: None,
    sym: None,
    matrices: Some([4; 32]),
    vk: None,
    allow_unfinished: true,
    local_setup: false,
};

fn pieces() -> Vec<WirePiece> {
    let piece = |name: &str, size| WirePiece {
        name: name.to_owned(),
        bytes: vec![5; size],
        millis: 600,
    };
    vec![piece("a", 96), piece("b2", 192)]
}

pub(super) fn to_worker() -> Vec<ToWorker> {
    vec![
        ToWorker::Welcome {
            objects: "objects".to_owned(),
            scratch: "scratch".to_owned(),
            boot: 3,
            threads: 2,
            checkpoint_after_ms: 30_000,
            wasm_memory_bytes: 1 << 30,
            wasm_fuel: 1 << 40,
        },
        ToWorker::Synth {
            token: TOKEN,
            work: WORK,
            kind: "circom".to_owned(),
            circuit: Some(FILES),
            request: b"{\"a\":\"3\"}".to_vec(),
            ticket_bytes: 1 << 28,
            recheck: false,
        },
        ToWorker::Prove {
            token: TOKEN,
            work: WORK,
            witness: [6; 32],
            key: [7; 32],
            pieces: pieces(),
        },
        ToWorker::Drop { work: WORK },
        ToWorker::Stop {
            token: TOKEN,
            class: "preempted".to_owned(),
        },
        ToWorker::Evict { circuit: [1; 32] },
        ToWorker::Import {
            token: TOKEN,
            files: FILES,
            done: 12,
        },
        ToWorker::Quit,
    ]
}

pub(super) fn from_worker() -> Vec<FromWorker> {
    vec![
        FromWorker::Hello {
            build: proofkeep_engine::protocol::BUILD.to_owned(),
            device: "cpu:0".to_owned(),
            description: "2 threads".to_owned(),
        },
        FromWorker::SynthDone {
            token: TOKEN,
            synth_ms: 40,
            witness: [6; 32],
            public: vec![8; 64],
            key: [7; 32],
        },
        FromWorker::Pieces {
            token: TOKEN,
            pieces: pieces(),
        },
        FromWorker::Released {
            token: TOKEN,
            gpu_ms: 900,
            reused: vec!["a".to_owned(), "h".to_owned()],
            saved_ms: 700,
        },
        FromWorker::Proof {
            token: TOKEN,
            bytes: vec![9; 192],
            peak_bytes: Some(1 << 27),
        },
        FromWorker::Failed {
            token: TOKEN,
            failure: WireFailure {
                class: "device-error".to_owned(),
                code: "out-of-memory".to_owned(),
                detail: "the device has no memory left".to_owned(),
            },
            peak_bytes: None,
        },
        FromWorker::Progress {
            token: TOKEN,
            permille: 500,
        },
        FromWorker::Imported {
            token: TOKEN,
            done: 13,
        },
        FromWorker::ImportDone {
            token: TOKEN,
            facts: WireFacts {
                constraints: 253,
                wires: 256,
                public: 2,
                domain_log2: 8,
                key_bytes: 1 << 20,
                insecure: false,
                setup: "{\"kind\":\"imported\"}".to_owned(),
            },
            zkey: Some([3; 32]),
            vk: [2; 32],
            matrices: [4; 32],
        },
        FromWorker::Dropped { work: WORK },
        FromWorker::Rss {
            bytes: 1 << 26,
            peak_bytes: 1 << 27,
        },
        FromWorker::Loaded {
            key: [7; 32],
            failure: None,
        },
        FromWorker::Key {
            circuit: [1; 32],
            bytes: 1 << 20,
        },
    ]
}
