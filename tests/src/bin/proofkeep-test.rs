//! The binary with the scripted kind beside `groth16`, and without a rule of the state machine if one is named in
//! `PROOFKEEP_WITHOUT_RULE`. `/v1/status` says `test_build`; no promise rests on this binary alone.

use std::process::ExitCode;

use proofkeep::Options;
use proofkeep_engine::worker::Allocator;
use proofkeep_scripted::Scripted;
use proofkeep_store::machine::Rules;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn main() -> ExitCode {
    let released = Options::default();
    let rules = match std::env::var("PROOFKEEP_WITHOUT_RULE") {
        Ok(name) => match Rules::without(&name) {
            Some(rules) => rules,
            None => {
                eprintln!(
                    "PROOFKEEP_WITHOUT_RULE={name}: there is no such rule; there are {:?}",
                    Rules::NAMES
                );
                return ExitCode::from(2);
            }
        },
        Err(_) => Rules::ALL,
    };
    let kinds = released.kinds.with(Scripted);
    proofkeep::run(Options {
        kinds,
        rules,
        test_build: true,
    })
}
