//! The parameter directory: what is there, whether it is what it is called, and which keys stay in memory.

use std::ffi::OsStr;
use std::path::Path;

use proofkeep_filecoin::circuit::Circuit;
use proofkeep_filecoin::directory::{Content, Directory};
use proofkeep_tests::harness::{Daemon, Launch, kill_process, proofkeep, until};
use serde_json::Value;

use super::support::{daemon, fixture, generate, launch, parameters, post_request};

const WINDOW: &str = "window-2k-3sectors";

/// The name of the WindowPoSt's file, and a directory of its own with it.
fn window() -> (String, tempfile::TempDir) {
    let circuit = Circuit::named("window-post", 2048, None).unwrap();
    let identifier = circuit.identifier().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let (from, to) = (Directory::new(parameters()), Directory::new(directory.path()));
    for content in [Content::Params, Content::Vk, Content::Matrices, Content::Checked] {
        std::fs::copy(from.file(&identifier, content), to.file(&identifier, content)).unwrap();
    }
    (Directory::id(&identifier), directory)
}

fn file(directory: &Path, id: &str, content: Content) -> std::path::PathBuf {
    Directory::new(directory).named(id, content)
}

/// `params …` on a directory: its exit code and the first file that it shows.
fn params(words: &[&str], directory: &Path) -> (i32, Value) {
    let mut line: Vec<&OsStr> = ["--json", "params"].iter().chain(words).map(OsStr::new).collect();
    line.extend([OsStr::new("--param-dir"), directory.as_os_str()]);
    let ran = proofkeep(line);
    let first = ran
        .stdout
        .lines()
        .next()
        .map(|line| serde_json::from_str(line).unwrap());
    (ran.code, first.unwrap_or_default())
}

fn request(daemon: &Daemon) -> Value {
    let mut request = post_request(WINDOW);
    let vanilla = daemon.upload(&fixture(&format!("{WINDOW}/vanilla.bincode")));
    request.insert("vanilla_proofs".to_owned(), vanilla.into());
    Value::Object(request)
}

/// Submits, and answers the job as it ended.
fn ended(daemon: &Daemon) -> Value {
    let job = daemon.post("/v1/jobs", &request(daemon)).expect(202).json();
    daemon.wait_for_end(job["id"].as_str().unwrap())
}

fn refused(daemon: &Daemon, code: &str) -> Value {
    let answer = daemon.post("/v1/jobs", &request(daemon));
    assert_eq!(answer.status, 422, "{}", answer.text());
    let body = answer.json();
    assert_eq!(body["code"], code, "{body}");
    body
}

/// Written anew, so that whoever noted something of the old one sees it.
fn write(path: &Path, bytes: &[u8]) {
    std::fs::remove_file(path).unwrap();
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn files_that_are_missing_or_cut_off_are_refused_at_submit() {
    let (data, directory) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let daemon = daemon(data.path(), directory.path());
    let missing = refused(&daemon, "params-missing");
    let named = missing["file"].as_str().unwrap();
    assert!(named.ends_with(".params") && named.starts_with(directory.path().to_str().unwrap()));
    let expected = missing["expected"].as_str().unwrap();
    assert_eq!(expected.len(), 32, "the published digest: {missing}");

    let made = generate(directory.path(), "window-post", &[]);
    assert_eq!(made["file"], named);
    let whole = std::fs::read(named).unwrap();
    for length in [0, 863, 3000, whole.len() - 1] {
        std::fs::write(named, &whole[..length]).unwrap();
        refused(&daemon, "params-truncated");
    }
    assert_eq!(params(&["verify"], directory.path()).0, 1);
    assert_eq!(params(&["ls"], directory.path()).1["verdict"], "damaged");
    std::fs::write(named, [&whole[..], &[0]].concat()).unwrap();
    refused(&daemon, "params-truncated");
    std::fs::write(named, &whole).unwrap();
    assert_eq!(ended(&daemon)["state"], "succeeded");
    assert!(daemon.terminate().success());
}

#[test]
fn a_file_that_is_not_the_published_one_of_its_name_is_refused_at_submit() {
    let (id, directory) = window();
    let directory = directory.path();
    let (path, note) = (
        file(directory, &id, Content::Params),
        file(directory, &id, Content::Checked),
    );
    let data = tempfile::tempdir().unwrap();
    let first = daemon(data.path(), directory);
    // Made here, with a mark that says so and names the bytes. It was copied: its digest is looked at once more.
    assert_eq!(params(&["ls"], directory).1["verdict"], "unchecked");
    assert_eq!(ended(&first)["state"], "succeeded");
    assert_eq!(params(&["ls"], directory).1["verdict"], "insecure-local");
    let (code, shown) = params(&["verify"], directory);
    assert_eq!(
        (code, &shown["verdict"]),
        (0, &"insecure-local".into()),
        "{shown}"
    );

    // Without the mark nobody knows where it comes from.
    std::fs::remove_file(&note).unwrap();
    write(&path, &std::fs::read(&path).unwrap());
    let body = refused(&first, "params-digest");
    assert_eq!(
        (&body["expected"], &body["found"]),
        (&shown["expected"], &shown["found"])
    );
    assert_eq!(body["searched"], directory.to_str().unwrap());
    let detail = body["detail"].as_str().unwrap();
    for word in [
        "params generate",
        "allow_unofficial_params",
        body["found"].as_str().unwrap(),
    ] {
        assert!(detail.contains(word), "{detail}");
    }
    let (code, verified) = params(&["verify", &id], directory);
    assert_eq!((code, &verified["verdict"]), (1, &"differs".into()), "{verified}");
    let over_http = first
        .send("POST", &format!("/v1/params/{id}/verify"), &[], None)
        .expect(200)
        .json();
    assert_eq!(over_http["found"], shown["found"], "{over_http}");

    // What was found is remembered with the file, so it isn't read for each job: a note is believed until the file changes.
    let noted = std::fs::read_to_string(&note).unwrap();
    let (found, expected) = (
        shown["found"].as_str().unwrap(),
        shown["expected"].as_str().unwrap(),
    );
    let data = tempfile::tempdir().unwrap();
    let second = daemon(data.path(), directory);
    std::fs::write(&note, noted.replace(found, expected)).unwrap();
    assert_eq!(params(&["ls"], directory).1["verdict"], "published");
    let job = second.post("/v1/jobs", &request(&second)).expect(202).json();
    // The worker process reads it, and sees that it isn't what it was taken for.
    let job = second.wait_for_end(job["id"].as_str().unwrap());
    assert_eq!(job["state"], "failed", "{job}");
    assert!(job.to_string().contains("params-changed"), "{job}");
    refused(&second, "params-digest");
    assert!(second.terminate().success());
}

#[test]
fn an_operator_may_allow_files_that_are_not_the_published_ones() {
    let (id, directory) = window();
    let directory = directory.path();
    let path = file(directory, &id, Content::Params);
    std::fs::remove_file(file(directory, &id, Content::Checked)).unwrap();
    let data = tempfile::tempdir().unwrap();
    // The directory by the flag: the worker processes are told too.
    let flags = [
        "--allow-unofficial-params",
        "true",
        "--param-dir",
        directory.to_str().unwrap(),
    ];
    let daemon = Launch::new(data.path()).args(flags).start();
    let whole = std::fs::read(&path).unwrap();
    // A point that is none: found by who reads it first.
    let mut damaged = whole.clone();
    let place = damaged.len() - 100;
    damaged[place] ^= 1;
    write(&path, &damaged);
    let job = ended(&daemon);
    assert_eq!(job["state"], "failed", "{job}");
    assert!(job.to_string().contains("point"), "{job}");
    write(&path, &whole);
    // A job goes on with the file that it was submitted for, or not at all.
    let id = job["id"].as_str().unwrap();
    daemon
        .send("POST", &format!("/v1/jobs/{id}/retry"), &[], None)
        .expect(202);
    let again = daemon.wait_for_end(id);
    assert_eq!(again["state"], "failed", "{again}");
    assert!(again.to_string().contains("params-changed"), "{again}");
    assert_eq!(ended(&daemon)["state"], "succeeded");
    assert!(daemon.terminate().success());
}

#[test]
fn keys_are_listed_pinned_and_evicted_over_http() {
    let (id, directory) = window();
    let data = tempfile::tempdir().unwrap();
    let daemon = daemon(data.path(), directory.path());
    let listed = || {
        let listed = daemon.get("/v1/params").expect(200).json();
        assert_eq!(listed["directory"], directory.path().to_str().unwrap());
        let params = listed["params"].as_array().unwrap();
        let there: Vec<&Value> = params.iter().filter(|one| one["present"] == true).collect();
        assert_eq!(there.len(), 1, "{listed}");
        let wanted = |one: &&Value| one["verdict"] == "missing" && one["expected"].is_string();
        assert_eq!(params.iter().filter(wanted).count(), params.len() - 1, "{listed}");
        there[0].clone()
    };
    let act = |what: &str| daemon.send("POST", &format!("/v1/params/{id}/{what}"), &[], None);
    let shown = listed();
    assert_eq!(
        (&shown["id"], &shown["pinned"]),
        (&id.as_str().into(), &false.into())
    );
    assert_eq!(shown["resident_bytes"], 0, "{shown}");
    assert_eq!(act("pin").expect(200).json()["pinned"], true);
    assert_eq!(ended(&daemon)["state"], "succeeded");
    assert!(listed()["resident_bytes"].as_u64().unwrap() > 0);
    let refused = act("evict");
    assert_eq!(
        (refused.status, &refused.json()["code"]),
        (409, &"key-pinned".into())
    );
    assert!(listed()["resident_bytes"].as_u64().unwrap() > 0);
    assert_eq!(act("unpin").expect(200).json()["pinned"], false);
    act("evict").expect(200);
    until("the key is gone", || listed()["loaded"] == false);
    assert_eq!(listed()["official"], false, "made here");

    // The command line loads it, and waits until it is there.
    let command = |what: &str| {
        let ran = proofkeep(["--json", "params", what, &id, "--server", daemon.url()]);
        assert_eq!(ran.code, 0, "{what}: {}", ran.stderr);
        serde_json::from_str::<Value>(ran.stdout.lines().next().unwrap()).unwrap()
    };
    let entry = command("preload");
    assert_eq!(
        (&entry["loaded"], &entry["loading"]),
        (&true.into(), &false.into()),
        "{entry}"
    );
    assert_eq!(command("preload")["loaded"], true, "it is there already");
    assert_eq!(command("pin")["pinned"], true);
    assert_eq!(command("unpin")["pinned"], false);
    command("evict");
    until("the key is gone", || listed()["loaded"] == false);
    // What can't be loaded says why, to whoever asks.
    let path = file(directory.path(), &id, Content::Params);
    let mut damaged = std::fs::read(&path).unwrap();
    let place = damaged.len() - 100;
    damaged[place] ^= 1;
    write(&path, &damaged);
    let ran = proofkeep(["params", "preload", &id, "--server", daemon.url()]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("BLAKE2b"), "{}", ran.stderr);
    assert_eq!(listed()["verdict"], "differs");
    for id in ["v28-nothing", "..%2Fx"] {
        let answer = daemon.send("POST", &format!("/v1/params/{id}/pin"), &[], None);
        assert_eq!(answer.status, 404, "{}", answer.text());
    }
}

#[test]
fn a_key_that_a_setting_pins_is_loaded_at_the_start_and_stays_when_others_need_its_room() {
    let id = |kind| {
        let identifier = Circuit::named(kind, 2048, None).unwrap().identifier().unwrap();
        Directory::id(&identifier)
    };
    let (winning, window) = (id("winning-post"), id("window-post"));
    let shown = |daemon: &Daemon, id: &str| daemon.get(&format!("/v1/params/{id}")).expect(200).json();
    let loaded = |daemon: &Daemon, id: &str| shown(daemon, id)["loaded"] == true;
    let preload = |daemon: &Daemon| {
        let path = format!("/v1/params/{window}/preload");
        daemon.send("POST", &path, &[], None).expect(202);
        until("the key is loaded", || loaded(daemon, &window));
    };
    let start = |more: &[&str]| {
        let data = tempfile::tempdir().unwrap();
        let launch = launch(data.path(), parameters()).args(["--pin-params", "winning-post"]);
        let daemon = launch.args(more).start();
        until("the pinned key is loaded", || loaded(&daemon, &winning));
        assert_eq!(shown(&daemon, &winning)["pinned"], true);
        preload(&daemon);
        (data, daemon)
    };
    let (_data, ample) = start(&[]);
    let job = ended(&ample);
    let attempts = &job["partitions"][0]["attempts"];
    let ticket = attempts[0]["ticket_bytes"].as_u64().unwrap();
    let bytes = |id: &str| shown(&ample, id)["resident_bytes"].as_u64().unwrap();
    assert!(bytes(&winning) > bytes(&window), "the larger one would go first");
    let memory = (bytes(&winning) + bytes(&window) + ticket - 1).to_string();
    assert!(ample.terminate().success());

    let (_data, tight) = start(&["--memory", &memory]);
    assert_eq!(ended(&tight)["state"], "succeeded");
    assert!(loaded(&tight, &winning), "it stayed");
    // When its process is lost, the next one loads it.
    for worker in tight.workers() {
        kill_process(worker);
    }
    until("the key is gone with its process", || !loaded(&tight, &winning));
    until("the pinned key is loaded again", || loaded(&tight, &winning));
    // Not pinned any more, it is the one that goes.
    let path = format!("/v1/params/{winning}/unpin");
    tight.send("POST", &path, &[], None).expect(200);
    preload(&tight);
    assert_eq!(ended(&tight)["state"], "succeeded");
    assert!(!loaded(&tight, &winning), "nobody keeps it");
    assert!(tight.terminate().success());
}
