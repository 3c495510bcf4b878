#!/bin/sh
# Writes docs/cli.md and docs/lamemo.1 from the option tables of the program.
#   scripts/gen-docs.sh [PROGRAM]          default build/release/lamemo
set -eu
cd "$(dirname "$0")/.."
program=${1:-build/release/lamemo}
"$program" help --markdown > docs/cli.md
"$program" help --man > docs/lamemo.1
