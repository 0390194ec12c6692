//! What a build of the binary is made of; tests make others than the released one.

use proofkeep_engine::kinds::Kinds;
use proofkeep_engine::kinds::groth16::Groth16;
use proofkeep_store::Options as StoreOptions;
use proofkeep_store::machine::Rules;

/// The parts that differ between the released binary and a test's.
#[derive(Clone)]
pub struct Options {
    /// The proof kinds there are.
    pub kinds: Kinds,
    /// The rules that the state machine keeps.
    pub rules: Rules,
    /// How a daemon opens its store.
    pub store: StoreOptions,
    /// Something differs from a release; `/v1/status` says so.
    pub test_build: bool,
}

impl Default for Options {
    /// What is released: the kind `groth16`, the Filecoin kinds in a build with them, every rule.
    fn default() -> Self {
        let kinds = Kinds::none().with(Groth16::new());
        #[cfg(feature = "filecoin")]
        let kinds = proofkeep_filecoin::kind::with_all(kinds);
        Self {
            kinds,
            rules: Rules::ALL,
            store: StoreOptions::default(),
            test_build: false,
        }
    }
}
