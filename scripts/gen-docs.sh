#!/bin/sh
# Writes docs/cli.md and docs/lamemo.1 from the option tables of the program.
#   scripts/gen-docs.sh [PROGRAM]          default build/release/lamemo
set -eu
cd "$(dirname "$0")/.."
program=${1:-build/release/lamemo}
[ -x "$program" ] || { echo "gen-docs: $program is not there: build it first" >&2; exit 1; }
"$program" help --markdown > docs/cli.md
"$program" help --man > docs/lamemo.1
