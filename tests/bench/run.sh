#!/usr/bin/env bash
# Prints how fast it is, with the machine's description; see main.rs for the variables. By hand, for the closing note:
#
#   PROOFKEEP_BENCH_LOG2=18 PROOFKEEP_BENCH_JOBS=100000 bash tests/bench/run.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
cargo build --release --locked --quiet --workspace --bins --example measure
"${CARGO_TARGET_DIR:-target}/release/examples/measure"
