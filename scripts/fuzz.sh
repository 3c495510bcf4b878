#!/usr/bin/env bash
# Builds the fuzz targets and runs each for some seconds.
# Usage: scripts/fuzz.sh [SECONDS [TARGET...]]     default: 60 seconds, all targets
# tests/fuzz may hold TARGET.sh (writes seeds into the folder it is given) and TARGET.dict (words).
# What was found is kept in build/fuzz/corpus, an input that breaks something in build/fuzz/crash.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
shift $(($# > 0))

mkdir -p build/fuzz
log=build/fuzz/build.log
{ cmake --preset fuzz && cmake --build --preset fuzz -j "${JOBS:-$(nproc)}"; } > "$log" 2>&1 ||
    { tail -50 "$log"; exit 1; }
if [ $# -eq 0 ]; then # those of this build: the folder may hold programs of targets that are gone
    mapfile -t targets < build/fuzz/fuzz_targets.txt
    set -- "${targets[@]}"
fi

for target in "$@"; do
    corpus=build/fuzz/corpus/$target seeds=build/fuzz/seeds/$target
    mkdir -p "$corpus" "$seeds" build/fuzz/crash
    if [ -x "tests/fuzz/$target.sh" ]; then
        "tests/fuzz/$target.sh" "$seeds"
    fi
    options=()
    [ -f "tests/fuzz/$target.dict" ] && options+=("-dict=tests/fuzz/$target.dict")
    echo "== fuzz $target, $seconds s"
    log=build/fuzz/$target.log
    build/fuzz/bin/"$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
        -print_final_stats=1 -artifact_prefix="build/fuzz/crash/$target-" "${options[@]}" "$corpus" "$seeds" > "$log" 2>&1 ||
        { tail -50 "$log"; exit 1; }
    grep -E '^(Done|stat::number_of_executed_units)' "$log"
done
