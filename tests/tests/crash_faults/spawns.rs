//! Everything in the product that runs beside others, and who notices when it panics: a place that isn't listed here is
//! one that nobody has thought about.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// File, how many places, who notices.
const WATCHED: [(&str, usize, &str); 20] = [
    (
        "api/src/daemon.rs",
        4,
        "the HTTP server and the engine's start are awaited; without the signals' task the daemon stops; that which \
         keeps keys pinned only waits for looks",
    ),
    ("api/src/demo/child.rs", 1, "a process, waited for"),
    (
        "api/src/http/connections.rs",
        2,
        "their ends are waited for: that connection is closed, and it is logged",
    ),
    ("api/src/http/context.rs", 1, "awaited: 500"),
    ("api/src/http/proofs.rs", 1, "caught: the answer is cut off"),
    ("api/src/http/upload.rs", 1, "awaited: 500"),
    ("api/src/pinned.rs", 1, "awaited: looked again in five seconds"),
    (
        "engine/filecoin/src/beat.rs",
        1,
        "scoped: the synthesis panics with it",
    ),
    (
        "engine/src/recover.rs",
        1,
        "its end is waited for, without an answer the start is refused",
    ),
    (
        "engine/src/scrub.rs",
        1,
        "caught: tried again when the next round is due",
    ),
    ("engine/src/service/mod.rs", 2, "vital; awaited: 500"),
    ("engine/src/service/run.rs", 1, "caught: tried again in an hour"),
    ("engine/src/service/run/grant.rs", 1, "vital"),
    ("engine/src/worker/outbox.rs", 1, "vital: the worker process ends"),
    (
        "engine/src/worker/shared.rs",
        7,
        "vital: the worker process ends; three go through the function that spawns",
    ),
    ("engine/src/workers/mod.rs", 1, "vital"),
    (
        "engine/src/workers/process.rs",
        4,
        "vital; hung up, so that the reader ends the process; two start the process itself",
    ),
    ("store/src/commit.rs", 1, "vital"),
    ("store/src/lookout.rs", 1, "vital"),
    (
        "store/src/open.rs",
        1,
        "its end is waited for, without an answer the start is refused",
    ),
];

#[test]
fn every_thread_and_task_is_one_whose_panic_somebody_notices() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = BTreeMap::new();
    for area in [
        "api/src",
        "engine/src",
        "engine/filecoin/src",
        "engine/formats/src",
        "engine/groth16/src",
        "engine/ifma/src",
        "engine/witness/src",
        "migrations/src",
        "store/src",
    ] {
        for file in sources(&root.join(area)) {
            let count = spawns(&fs::read_to_string(&file).unwrap());
            if count > 0 {
                let name = file.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
                found.insert(name, count);
            }
        }
    }
    let listed: BTreeMap<String, usize> = WATCHED
        .iter()
        .filter(|(_, count, _)| *count > 0)
        .map(|(file, count, _)| ((*file).to_owned(), *count))
        .collect();
    assert_eq!(
        found, listed,
        "left: places that start threads, tasks or processes; right: the list in this file. See that a panic there is \
         noticed (`vital`, or somebody who waits for the end), then list it"
    );
}

fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if name.ends_with(".rs") && name != "tests.rs" {
            found.push(path);
        }
    }
    found
}

/// Calls of `spawn` and `spawn_blocking` outside of tests.
fn spawns(source: &str) -> usize {
    let product = source.split("#[cfg(test)]\nmod ").next().unwrap();
    let code = product.lines().map(str::trim_start);
    code.filter(|line| !line.starts_with("//") && !line.starts_with("fn spawn"))
        .map(|line| line.matches("spawn(").count() + line.matches("spawn_blocking(").count())
        .sum()
}
