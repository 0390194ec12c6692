//! `proofkeep demo`, as the README shows it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod cli_support;

use cli_support::Desk;

#[test]
fn the_demo_kills_its_daemon_resumes_and_leaves_proofs_that_verify() {
    let desk = Desk::new();
    let ran = desk.run("demo").expect(0);
    for part in [
        "kill -9",
        "boot 2",
        "kept and not proved again",
        "REUSED",
        "clean:",
        "4 proofs",
    ] {
        assert!(ran.stdout.contains(part), "{part:?} is not in\n{}", ran.stdout);
    }
    for index in 0..4 {
        let files = format!("proofkeep-demo/public_{index}.json proofkeep-demo/proof_{index}.json");
        desk.run(&format!("verify proofkeep-demo/verification_key.json {files}"))
            .expect(0);
    }
    let home = ran
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix("It works in "))
        .unwrap();
    let home = home.split(" and ").next().unwrap();
    assert!(!std::path::Path::new(home).exists(), "{home} is removed");
}
