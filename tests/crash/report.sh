#!/usr/bin/env bash
# Runs every crash test and makes the crash report of what they found.
#
#   bash tests/crash/report.sh         the counts of CI; prints the report
#   bash tests/crash/report.sh full    the published counts (hours); writes tests/crash/REPORT.md and the README's table
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${PROOFKEEP_REPORT_DIR:-$PWD/target/crash-report}
export PROOFKEEP_REPORT_DIR=$out
mkdir -p "$out"
if [ "${1:-}" = full ]; then
  export PROOFKEEP_KILLS=${PROOFKEEP_KILLS:-300} PROOFKEEP_POWER_CUTS=${PROOFKEEP_POWER_CUTS:-20000}
fi
rm -f "$out"/*.json
cargo build --release --locked --quiet --workspace --bins
cargo test --release --locked -p proofkeep-tests --test 'crash_*'
set -- ${1:+tests/crash/REPORT.md}
cargo run --release --locked --quiet -p proofkeep-tests --bin crash-report -- "$out" "$@"
