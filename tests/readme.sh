#!/usr/bin/env bash
# Runs every command of the README that a reader is told to run (its ```sh blocks), in order, in one shell.
#
#   bash tests/readme.sh            all but those of the Filecoin kinds
#   bash tests/readme.sh filecoin   those (```sh filecoin), with a binary that has the kinds
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:-}
script=$(mktemp)
trap 'rm -f "$script"; jobs -p | xargs -r kill 2>/dev/null || true' EXIT
awk -v fence="\`\`\`sh${what:+ $what}" '$0 == fence { on = 1; next } /^```/ { on = 0 } on' README.md > "$script"
[ "$(grep -c . "$script")" -ge 15 ] || { echo "the README's commands were not found" >&2; exit 1; }
rm -rf readme-* proofkeep-demo
bash -m -euo pipefail -x "$script"
if [ -z "$what" ]; then
  test -s proofkeep-demo/proof_3.json
  rm -rf proofkeep-demo
fi
