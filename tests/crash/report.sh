#!/usr/bin/env bash
# Runs every crash test and makes the crash report of what they found.
#
#   bash tests/crash/report.sh         the counts of CI; prints the report
#   bash tests/crash/report.sh write   the same; writes tests/crash/REPORT.md and the README's table
#   bash tests/crash/report.sh full    larger counts (hours), written too
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${PROOFKEEP_REPORT_DIR:-$PWD/target/crash-report}
export PROOFKEEP_REPORT_DIR=$out
mkdir -p "$out"
if [ "${1:-}" = full ]; then
  export PROOFKEEP_KILLS=${PROOFKEEP_KILLS:-300} PROOFKEEP_POWER_CUTS=${PROOFKEEP_POWER_CUTS:-20000}
  export PROOFKEEP_FAULTS=${PROOFKEEP_FAULTS:-all} PROOFKEEP_SIM_STEPS=${PROOFKEEP_SIM_STEPS:-20000000}
  export PROOFKEEP_SOAK_SECS=${PROOFKEEP_SOAK_SECS:-7200}
fi
rm -f "$out"/*.json
cargo build --release --locked --quiet --workspace --bins
# One by one: several daemons at once make nothing faster on two cores, and the failure of one test must not hide others.
cargo test --release --locked --no-fail-fast -p proofkeep-tests --test 'crash_*' --test 'backup_*' -- --nocapture
cargo test --release --locked --no-fail-fast -p proofkeep-simulation -- --nocapture
if [ -n "${1:-}" ]; then cp "$out/soak.svg" tests/crash/soak.svg; fi
set -- ${1:+tests/crash/REPORT.md}
cargo run --release --locked --quiet -p proofkeep-tests --bin crash-report -- "$out" "$@"
