//! The binary with the scripted kind beside `groth16`, and without a rule of the state machine or the store if one is
//! named in `PROOFKEEP_WITHOUT_RULE`. `/v1/status` says `test_build`; no promise rests on this binary alone.

use std::process::ExitCode;

use proofkeep::Options;
use proofkeep_engine::worker::Allocator;
use proofkeep_scripted::Scripted;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn main() -> ExitCode {
    let released = Options::default();
    let (rules, store) = match proofkeep_tests::judge::rules() {
        Ok(rules) => rules,
        Err(wrong) => {
            eprintln!("{wrong}");
            return ExitCode::from(2);
        }
    };
    let kinds = released.kinds.with(Scripted);
    proofkeep::run(Options {
        kinds,
        rules,
        store,
        test_build: true,
    })
}
