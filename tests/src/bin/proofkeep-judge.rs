//! Looks at what a crash left of a data directory; see `proofkeep_tests::judge`.

fn main() -> std::process::ExitCode {
    proofkeep_tests::judge::main()
}
