//! What a proof needs is known at submit, for every sector size, and is what it takes.

use filecoin_proofs::constants::SUPPORTED_SECTOR_SIZES;
use proofkeep_filecoin::circuit::{Circuit, KINDS};
use proofkeep_filecoin::counts::Counts;
use proofkeep_filecoin::directory::{Content, Directory};
use proofkeep_filecoin::header::Header;
use proofkeep_filecoin::sector::size_name;
use proofkeep_tests::harness::{Daemon, Launch};
use serde_json::{Map, Value, json};

use super::support::{json_fixture, launch, parameters, sample, succeeded};

const GIB: u64 = 1 << 30;

/// A request of a kind and a sector size, and the field with its vanilla proofs; nothing was uploaded.
fn request(kind: &str, size: u64) -> Map<String, Value> {
    let digest = format!("sha256:{}", "ab".repeat(32));
    let mut fields = json!({
        "kind": kind,
        "sector_size": size_name(size),
        "vanilla_proofs": digest,
        "miner_id": 1000,
        "randomness": "01".repeat(32),
    });
    let all = fields.as_object_mut().unwrap();
    if kind == "porep-c2" {
        let digest = all.remove("vanilla_proofs").unwrap();
        all.remove("randomness");
        all.insert("vanilla_proof".to_owned(), digest);
        all.insert("sector_number".to_owned(), 7.into());
    }
    if kind == "snap-update" {
        all.remove("miner_id");
        all.remove("randomness");
        for commitment in ["comm_r_old", "comm_r_new", "comm_d_new"] {
            all.insert(commitment.to_owned(), "01".repeat(32).into());
        }
    }
    all.clone()
}

fn refused(daemon: &Daemon, request: &Map<String, Value>) -> Value {
    daemon
        .post("/v1/jobs", &Value::Object(request.clone()))
        .expect(422)
        .json()
}

fn small(gibibytes: u64) -> (tempfile::TempDir, Daemon) {
    let data = tempfile::tempdir().unwrap();
    let daemon = Launch::new(data.path())
        .env("PROOFKEEP_PARAM_DIR", parameters())
        .args(["--cpu-devices", "2", "--memory", &format!("{gibibytes}GiB")])
        .start();
    (data, daemon)
}

#[test]
fn what_does_not_fit_is_refused_at_submit_with_what_it_needs_for_every_sector_size() {
    let mut not_fitting = 0;
    for gibibytes in [1, 8] {
        let (_data, daemon) = small(gibibytes);
        let available = gibibytes * GIB;
        for kind in KINDS {
            for size in SUPPORTED_SECTOR_SIZES {
                let problem = refused(&daemon, &request(kind, size));
                let place = format!("{kind} of {}: {problem}", size_name(size));
                let Some(counts) = Counts::known(kind, size, None) else {
                    assert_eq!(problem["code"], "sector-size", "{place}");
                    continue;
                };
                let needed = counts.ticket_bytes(2);
                if needed <= available {
                    assert_eq!(problem["code"], "blob-missing", "{place}");
                    continue;
                }
                not_fitting += 1;
                assert_eq!(problem["code"], "needs-memory", "{place}");
                assert_eq!(problem["needed_bytes"], needed, "{place}");
                assert_eq!(problem["available_bytes"], available, "{place}");
                let detail = problem["detail"].as_str().unwrap();
                for number in [needed, available] {
                    assert!(detail.contains(&number.to_string()), "{place}");
                }
            }
        }
        // The size that C1's output says counts as the request's own does.
        let mut head = json_fixture("porep-2k-p2/c1-api.json");
        head["registered_proof"] = "StackedDrg32GiBV1_1".into();
        let mut asked = request("porep-c2", 1 << 35);
        asked.remove("sector_size");
        let digest = daemon.upload(head.to_string().as_bytes());
        asked.insert("vanilla_proof".to_owned(), digest.into());
        let problem = refused(&daemon, &asked);
        assert_eq!(problem["code"], "needs-memory", "{problem}");
        assert!(problem["needed_bytes"].as_u64().unwrap() > 64 * GIB, "{problem}");
        assert_eq!(daemon.get("/v1/jobs").expect(200).json()["jobs"], json!([]));
        assert!(daemon.terminate().success());
    }
    assert!(not_fitting > 20, "{not_fitting}");
}

/// The counts are those of the circuits as they are compiled here, to the byte of their parameter files.
#[test]
fn the_counts_are_those_of_the_parameter_files() {
    for kind in KINDS {
        let partitions = (kind == "porep-c2").then_some(2);
        let counts = Counts::known(kind, 2048, partitions).unwrap();
        let identifier = Circuit::named(kind, 2048, partitions)
            .unwrap()
            .identifier()
            .unwrap();
        let directory = Directory::new(parameters());
        let header = Header::read(&directory.file(&identifier, Content::Params)).unwrap();
        assert_eq!(
            (counts.domain(), counts.wires(), counts.params_bytes()),
            (header.domain, header.wires, header.bytes),
            "{kind}: {counts:?}"
        );
        let matrices = std::fs::metadata(directory.file(&identifier, Content::Matrices)).unwrap();
        let (estimate, real) = (counts.matrices_bytes(), matrices.len());
        assert!(
            estimate.abs_diff(real) < real / 2,
            "{kind}: {estimate} bytes of matrices by the counts, {real} on disk"
        );
    }
}

/// What a PoRep of so many partitions took: the worker process at most, and the most that was granted at once.
fn took(partitions: u8) -> (u64, u64) {
    let partitions = partitions.to_string();
    // The parameters don't depend on how many there are, and other tests use them: none are made here.
    let (mut request, proof) = sample("porep-c2", "2KiB", &["--partitions", &partitions]);
    let data = tempfile::tempdir().unwrap();
    let daemon = launch(data.path(), parameters())
        .args(["--memory", "8GiB"])
        .start();
    request.insert("vanilla_proof".to_owned(), daemon.upload(&proof).into());
    let job = daemon
        .post("/v1/jobs", &Value::Object(request))
        .expect(202)
        .json();
    succeeded(&daemon, job["id"].as_str().unwrap());
    let [worker] = daemon.workers()[..] else {
        panic!("one device has one worker process")
    };
    let memory = daemon.get("/v1/status").expect(200).json()["memory"].clone();
    let peak = peak_of(worker);
    assert!(daemon.terminate().success());
    (peak, memory["peak_reserved_bytes"].as_u64().unwrap())
}

/// The most that was resident of a process at once.
fn peak_of(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    kib << 10
}

/// However many partitions wait, one is proved and one is ahead of it.
#[test]
fn five_partitions_take_no_more_memory_than_two_and_no_more_than_was_granted() {
    let (two, granted) = took(2);
    assert!(
        two <= granted,
        "two partitions took {two} bytes, granted were {granted}"
    );
    let many = setting("PROOFKEEP_FILECOIN_PARTITIONS", 5);
    let (five, granted) = took(many);
    eprintln!("2 partitions: {two} bytes; {many}: {five}, granted {granted}");
    assert!(
        five <= granted,
        "{many} partitions took {five} bytes, granted were {granted}"
    );
    assert!(
        five <= two + two / 10,
        "{many} partitions took {five} bytes, two {two}"
    );
}

/// A count from the environment, at least `floor`.
fn setting(name: &str, floor: u8) -> u8 {
    let set = std::env::var(name).map_or(floor, |text| text.parse().unwrap());
    assert!(set >= floor, "{name} is {set}, the least is {floor}");
    set
}
