#!/usr/bin/env bash
# Fuzzes the whole program: damages the files that its commands read and watches the commands (tests/fuzz/cli/main.c).
# Usage: tests/fuzz/cli_fuzz.sh [SECONDS [CLASS...]]     default: 10 seconds, all classes; FUZZ_SEED draws others
# Needs no clang: the preset debug.  A finding is kept in build/fuzz/crash/cli-CLASS-SEED-NUMBER with what was run.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-10}
shift $(($# > 0))

mkdir -p build/fuzz/crash
log=build/fuzz/cli.log
{ cmake --preset debug && cmake --build --preset debug -j "${JOBS:-$(nproc)}" --target cli_fuzz make_checkpoint; } > "$log" 2>&1 ||
    { tail -50 "$log"; exit 1; }
tests/fuzz/cli/seeds.sh build/debug build/fuzz/cli
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "== fuzz the program, $seconds s each, seed ${FUZZ_SEED:-1}"
build/debug/tests/cli_fuzz --seconds "$seconds" --seed "${FUZZ_SEED:-1}" --keep build/fuzz/crash build/fuzz/cli "$work" "$@"
