#!/usr/bin/env bash
# The crates with the prover's `unsafe` code under AddressSanitizer, by hand: their unit tests, every backend that this
# processor can run. The sanitizer's runtime comes with the stable toolchain, the option needs the variable below.
# (Miri knows neither the vector instructions nor blst's assembly.)
set -euo pipefail
cd "$(dirname "$0")/.."
export RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/sanitize"
host=$(rustc -vV | sed -n 's/^host: //p')
# Nothing is freed at the end of a process that ends.
export ASAN_OPTIONS="detect_leaks=0:${ASAN_OPTIONS:-}"
cargo test --release --locked --target "$host" -p proofkeep-ifma -p proofkeep-groth16 --lib "$@"
