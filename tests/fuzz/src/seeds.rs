//! Where a target's seeds lie.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Target;

/// Parameters of the circuit `(w₃³ + 2w₂)·1 = w₁`.
pub(crate) const PARAMS: &[u8] = include_bytes!("../corpus/params/cube.params");

const FIXTURES: &str = "../fixtures/circom";
/// Larger files make slow fuzzing and find nothing that smaller ones don't.
const MOST: usize = 128 << 10;

/// Every fixture's file made into a seed, what the target makes by itself, and everything under `corpus/<target>`, in a
/// fixed order.
///
/// # Panics
///
/// If the repository's fixtures aren't there: then nothing would be fuzzed.
pub(crate) fn load(target: &Target) -> Vec<Vec<u8>> {
    let small = |path: &PathBuf| fs::read(path).ok().filter(|bytes| bytes.len() <= MOST);
    let mut seeds = (target.made)();
    if !target.file.is_empty() {
        let fixtures = children(&here().join(FIXTURES))
            .into_iter()
            .map(|folder| folder.join(target.file));
        seeds.extend(fixtures.filter_map(|path| small(&path)).map(target.prepare));
    }
    let name = target.name;
    assert!(
        !seeds.is_empty(),
        "no seeds for {name}: tests/fixtures/circom/*/{} is missing",
        target.file
    );
    seeds.extend(
        children(&here().join("corpus").join(name))
            .iter()
            .filter_map(small),
    );
    seeds
}

/// One file of a fixture.
///
/// # Panics
///
/// If it isn't there.
pub(crate) fn fixture(name: &str, file: &str) -> Vec<u8> {
    let path = here().join(FIXTURES).join(name).join(file);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
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
