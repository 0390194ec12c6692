#!/usr/bin/env bash
# Every check of this repository, on a fresh machine with a Rust toolchain: installs what is missing, builds once, then
# formats, lints, docs, licences, all tests, the README's commands and a short benchmark. CI runs exactly this.
#
#   bash tests/all.sh            everything
#   bash tests/all.sh quick      no installs, no README, no benchmark: what a developer runs before a commit
set -euo pipefail
cd "$(dirname "$0")/.."
mode=${1:-all}
started=$SECONDS
step() { printf '\n=== %s (after %d s)\n' "$*" "$((SECONDS - started))"; }

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }
need() { # need COMMAND DEBIAN-PACKAGE
  command -v "$1" >/dev/null 2>&1 && return
  command -v apt-get >/dev/null 2>&1 || { echo "please install $1" >&2; exit 1; }
  [ -n "${updated:-}" ] || { as_root apt-get update -qq; updated=1; }
  as_root apt-get install -y -qq "$2" >/dev/null
}

# One profile, one target directory: what is built for the demo is what is tested.
export CARGO_TERM_COLOR=never
cargo_release() { local command=$1; shift; cargo "$command" --release --locked "$@"; }

if [ "$mode" != quick ]; then
  step "tools"
  need cc gcc
  need curl curl
  need node nodejs
  need npm npm
  command -v cargo-nextest >/dev/null 2>&1 || cargo install --locked --quiet cargo-nextest
  command -v cargo-deny >/dev/null 2>&1 || CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_LTO=off \
    cargo install --locked --quiet cargo-deny
  (cd tests/fixtures/circom && npm ci --silent --no-audit --no-fund)
fi

step "format"
cargo fmt --all --check

step "build"
cargo_release build --workspace --all-targets

step "clippy"
cargo_release clippy --workspace --all-targets --quiet -- -D warnings

step "docs"
RUSTDOCFLAGS="-D warnings" cargo_release doc --workspace --no-deps --quiet

if [ "$mode" != quick ]; then
  step "licences, bans, sources"
  cargo deny check bans licenses sources
fi

step "tests"
# What the crash tests find is written here, and made into the report below.
export PROOFKEEP_REPORT_DIR="${CARGO_TARGET_DIR:-$PWD/target}/crash-report"
rm -rf "$PROOFKEEP_REPORT_DIR"
cargo nextest run --cargo-profile release --locked --workspace --no-fail-fast
cargo_release test --workspace --doc --quiet
step "crash report"
cargo_release run --quiet -p proofkeep-tests --bin crash-report -- "$PROOFKEEP_REPORT_DIR"

if [ "$mode" != quick ]; then
  step "the Filecoin kinds"
  # A build of its own: nothing above builds the published crates. What comes below builds without them again.
  filecoin=(-p proofkeep -p proofkeep-filecoin -p proofkeep-tests --features proofkeep-tests/filecoin)
  filecoin_tests=(--lib --test inputs --test decoders --test prover --test filecoin)
  cargo_release clippy "${filecoin[@]}" --bin proofkeep "${filecoin_tests[@]}" --quiet -- -D warnings
  cargo_release build "${filecoin[@]}" --bin proofkeep
  cargo_release test "${filecoin[@]}" "${filecoin_tests[@]}"
  PATH="${CARGO_TARGET_DIR:-$PWD/target}/release:$PATH" bash tests/readme.sh filecoin

  step "the README's commands"
  bash tests/readme.sh
  step "benchmarks"
  bash tests/bench/run.sh
fi
step "all green"
