//! The daemon's part, played by a test: a data directory, a worker process, and the words between them.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use proofkeep_engine::protocol::{
    self, BUILD, CircuitFiles, FromWorker, ToWorker, WireFailure, WirePiece, WireToken, Work,
};
use proofkeep_store::ids::Digest;
use serde_json::json;

/// A word that doesn't come within this time doesn't come.
const PATIENCE: Duration = Duration::from_secs(120);

pub struct Daemon {
    pub data: PathBuf,
    _directory: Option<tempfile::TempDir>,
    child: Child,
    pub socket: UnixStream,
    next: u64,
    /// What was said of keys, which may be at any time.
    pub keys: Vec<(Digest, u64)>,
}

pub struct Options {
    pub threads: u32,
    pub checkpoint_after_ms: u64,
    /// Memory in bytes and fuel of circom's calculator.
    pub wasm: (u64, u64),
}

impl Default for Options {
    fn default() -> Self {
        Self {
            threads: 2,
            checkpoint_after_ms: 0,
            wasm: (256 << 20, 1_000_000_000),
        }
    }
}

/// A witness that is there.
#[derive(Debug)]
pub struct Synthesized {
    pub witness: [u8; 32],
    pub public: Vec<u8>,
    pub key: [u8; 32],
}

/// How a proof ended: every word up to the last.
#[derive(Debug, Default)]
pub struct Ended {
    pub pieces: Vec<WirePiece>,
    pub released: Option<(Vec<String>, u64)>,
    pub proof: Option<Vec<u8>>,
    pub failure: Option<WireFailure>,
}

/// A data directory as the store lays it out.
pub fn data_directory(data: &Path) {
    for first in 0..=u8::MAX {
        fs::create_dir_all(data.join("objects").join(format!("{first:02x}"))).unwrap();
    }
    fs::create_dir_all(data.join("tmp")).unwrap();
}

impl Daemon {
    pub fn new() -> Self {
        Self::with(Options::default())
    }

    pub fn with(options: Options) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().to_path_buf();
        data_directory(&data);
        let mut daemon = Self::spawn(&data);
        daemon._directory = Some(directory);
        daemon.welcome(options);
        daemon
    }

    /// A worker process on a data directory that has not heard `Welcome`.
    pub fn spawn(data: &Path) -> Self {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_read_timeout(Some(PATIENCE)).unwrap();
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["worker", "--device", "cpu:0", "--fd", "0", "--data"])
            .arg(data)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            data: data.to_path_buf(),
            _directory: None,
            child,
            socket: ours,
            next: 1,
            keys: Vec::new(),
        }
    }

    pub fn welcome(&mut self, options: Options) {
        match self.hear() {
            FromWorker::Hello {
                build,
                device,
                description,
            } => {
                assert_eq!((build.as_str(), device.as_str()), (BUILD, "cpu:0"));
                assert!(!description.is_empty());
            }
            other => panic!("expected Hello, heard {other:?}"),
        }
        self.say(&ToWorker::Welcome {
            objects: self.data.join("objects").to_str().unwrap().to_owned(),
            scratch: self.data.join("tmp").to_str().unwrap().to_owned(),
            boot: 1,
            threads: options.threads,
            checkpoint_after_ms: options.checkpoint_after_ms,
            wasm_memory_bytes: options.wasm.0,
            wasm_fuel: options.wasm.1,
        });
    }

    pub fn say(&mut self, word: &ToWorker) {
        protocol::write(&mut self.socket, word).unwrap();
    }

    /// The next word that isn't about memory, keys or progress; those are noted.
    pub fn hear(&mut self) -> FromWorker {
        loop {
            match protocol::read(&mut self.socket)
                .unwrap()
                .expect("the worker process is gone")
            {
                FromWorker::Rss { bytes, peak_bytes } => assert!(bytes <= peak_bytes),
                FromWorker::Key { circuit, bytes } => self.keys.push((Digest(circuit), bytes)),
                FromWorker::Progress { .. } => {}
                other => return other,
            }
        }
    }

    /// Reads on until the worker said this of a key.
    pub fn hear_key(&mut self, expected: (Digest, u64)) {
        while self.keys.last() != Some(&expected) {
            match protocol::read(&mut self.socket)
                .unwrap()
                .expect("the worker process is gone")
            {
                FromWorker::Key { circuit, bytes } => self.keys.push((Digest(circuit), bytes)),
                FromWorker::Rss { .. } | FromWorker::Progress { .. } => {}
                other => panic!("expected Key, heard {other:?}"),
            }
        }
    }

    pub fn token(&mut self) -> WireToken {
        self.next += 1;
        WireToken {
            boot: 1,
            grant: self.next,
        }
    }

    pub fn put(&self, bytes: &[u8]) -> Digest {
        let digest = Digest::of(bytes);
        fs::write(self.object(digest), bytes).unwrap();
        digest
    }

    pub fn object(&self, digest: Digest) -> PathBuf {
        self.data
            .join("objects")
            .join(&digest.hex()[..2])
            .join(digest.hex())
    }

    /// Asks for a witness; `input` is an input of a canonical request.
    pub fn ask_synth(
        &mut self,
        work: Work,
        files: &CircuitFiles,
        input: serde_json::Value,
        recheck: bool,
    ) -> WireToken {
        let token = self.token();
        let mut inputs = vec![serde_json::Value::Null; work.partition as usize];
        inputs.push(input);
        let request = json!({"kind": "groth16", "inputs": inputs})
            .to_string()
            .into_bytes();
        self.say(&ToWorker::Synth {
            token,
            work,
            kind: "groth16".to_owned(),
            circuit: Some(files.clone()),
            request,
            ticket_bytes: 1 << 30,
            recheck,
        });
        token
    }

    pub fn synth(
        &mut self,
        work: Work,
        files: &CircuitFiles,
        input: serde_json::Value,
    ) -> Result<Synthesized, WireFailure> {
        let asked = self.ask_synth(work, files, input, false);
        self.hear_synth(asked)
    }

    pub fn hear_synth(&mut self, asked: WireToken) -> Result<Synthesized, WireFailure> {
        match self.hear() {
            FromWorker::SynthDone {
                token,
                witness,
                public,
                key,
                ..
            } if token == asked => Ok(Synthesized { witness, public, key }),
            FromWorker::Failed {
                token,
                failure,
                peak_bytes,
            } if token == asked => {
                assert!(peak_bytes.is_some());
                Err(failure)
            }
            other => panic!("expected the end of the synthesis, heard {other:?}"),
        }
    }

    pub fn ask_prove(&mut self, work: Work, ready: &Synthesized, pieces: Vec<WirePiece>) -> WireToken {
        let token = self.token();
        self.say(&ToWorker::Prove {
            token,
            work,
            witness: ready.witness,
            key: ready.key,
            pieces,
        });
        token
    }

    pub fn prove(&mut self, work: Work, ready: &Synthesized, pieces: Vec<WirePiece>) -> Ended {
        let token = self.ask_prove(work, ready, pieces);
        self.hear_end(token)
    }

    /// Everything said under a lease of stage prove, to its end.
    pub fn hear_end(&mut self, asked: WireToken) -> Ended {
        let mut ended = Ended::default();
        loop {
            match self.hear() {
                FromWorker::Pieces { token, pieces } if token == asked => {
                    assert!(ended.released.is_none(), "pieces after the device was released");
                    ended.pieces.extend(pieces);
                }
                FromWorker::Released {
                    token,
                    reused,
                    saved_ms,
                    ..
                } if token == asked => {
                    assert!(ended.released.is_none(), "released twice");
                    ended.released = Some((reused, saved_ms));
                }
                FromWorker::Proof { token, bytes, .. } if token == asked => {
                    assert!(ended.released.is_some(), "a proof before the device was released");
                    ended.proof = Some(bytes);
                    return ended;
                }
                FromWorker::Failed { token, failure, .. } if token == asked => {
                    ended.failure = Some(failure);
                    return ended;
                }
                other => panic!("expected words under {asked:?}, heard {other:?}"),
            }
        }
    }

    /// Closes the daemon's end, as its death does, and waits for the worker process.
    pub fn die(mut self) -> ExitStatus {
        self.socket.shutdown(std::net::Shutdown::Both).unwrap();
        self.child.wait().unwrap()
    }

    /// The most resident bytes of the worker process so far, by the kernel's count.
    pub fn high_water(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))
            .unwrap();
        line.split_whitespace().next().unwrap().parse::<u64>().unwrap() << 10
    }

    pub fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // A test that failed leaves no process behind; one that passed has waited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
