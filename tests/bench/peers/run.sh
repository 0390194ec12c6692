#!/usr/bin/env bash
# Builds the peers and runs them beside this prover; see src/main.rs for the variables. A small run:
#
#   bash tests/bench/peers/run.sh
#
# With two threads: RAYON_NUM_THREADS=2. Large ones by hand, minutes each:
#
#   PROOFKEEP_PEERS_DENSE=14,15,16,17,18 PROOFKEEP_PEERS_BLOCKS=1,4 PROOFKEEP_PEERS_MICRO=8,18 bash tests/bench/peers/run.sh
#
# Without the fast arithmetic nothing has to be set: every backend that the machine has is in the table.
set -euo pipefail
cd "$(dirname "$0")"
# rayon's global pool is bellman's and ark's; the other variable is bellperson's.
export RAYON_NUM_THREADS="${RAYON_NUM_THREADS:-1}"
export EC_GPU_NUM_THREADS="$RAYON_NUM_THREADS"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/../../../target}"
circom=$PWD/../../fixtures/circom
if [ -z "${PROOFKEEP_PEERS_SNARKJS:-}" ] && command -v node >/dev/null && command -v npm >/dev/null; then
  (cd "$circom" && { [ -d node_modules ] || npm ci --silent --no-audit --no-fund; })
  export PROOFKEEP_PEERS_SNARKJS="$circom/node_modules/snarkjs/build/cli.cjs"
fi
cargo build --release --locked --quiet
"$CARGO_TARGET_DIR/release/proofkeep-peers"
