//! Where a target's seeds lie.

use std::fs;
use std::path::{Path, PathBuf};

/// Larger files make slow fuzzing and find nothing that smaller ones don't.
const MOST: usize = 128 << 10;

/// Every fixture's `file`, and everything under `corpus/<target>`, in a fixed order.
///
/// # Panics
///
/// If the repository's fixtures aren't there: then nothing would be fuzzed.
pub(crate) fn load(target: &str, file: &str) -> Vec<Vec<u8>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths: Vec<PathBuf> = children(&here.join("../fixtures/circom"))
        .into_iter()
        .map(|folder| folder.join(file))
        .collect();
    paths.extend(children(&here.join("corpus").join(target)));
    let seeds: Vec<Vec<u8>> = paths
        .iter()
        .filter_map(|path| fs::read(path).ok())
        .filter(|bytes| bytes.len() <= MOST)
        .collect();
    assert!(
        !seeds.is_empty(),
        "no seeds for {target}: tests/fixtures/circom/*/{file} is missing"
    );
    seeds
}

fn children(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    paths
}
