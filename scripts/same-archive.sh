#!/usr/bin/env bash
# same-archive.sh -- does one text become the same archive everywhere, and does each archive decode everywhere?
#   scripts/same-archive.sh gcc=build/release/lamemo clang=build/clang/lamemo cuda=build/release/lamemo_cuda_host \
#       arm64='qemu-aarch64 -L build/arm64-root build/arm64/lamemo'
# Each program compresses with 1, 2 and 7 threads, on the reference device, and on every instruction set that it has and the
# machine runs; one named cuda also on the device cuda.  The first archive is decoded in all the same ways.
# BYTES: of TEXT (4200 of docs/compress.md, two streams); MODEL: wiki11m.  Exit 1: a difference; it is named.
set -euo pipefail
[ $# -gt 0 ] || { sed -n '2,7s/^# *//p' "$0" >&2; exit 2; }
model=${MODEL:-wiki11m} bytes=${BYTES:-4200} text=${TEXT:-docs/compress.md}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
head -c "$bytes" "$text" > "$work/text"
ways=0

# try NAME PROGRAM OPTION...: PROGRAM may be several words
try() {
    local name=$1 program=$2
    shift 2
    # shellcheck disable=SC2086
    $program compress -q -c -m "$model" "$@" "$work/text" > "$work/archive"
    [ -f "$work/first" ] || cp "$work/archive" "$work/first"
    cmp "$work/archive" "$work/first" || { echo "same-archive: $name writes another archive" >&2; exit 1; }
    # shellcheck disable=SC2086
    $program decompress -q -c -m "$model" "$@" < "$work/first" > "$work/back"
    cmp "$work/back" "$work/text" || { echo "same-archive: $name decodes something else" >&2; exit 1; }
    echo "$name: the same"
    ways=$((ways + 1))
}

for pair in "$@"; do
    name=${pair%%=*} program=${pair#*=}
    unset LAMEMO_ISA
    for threads in 1 2 7; do
        try "$name, $threads threads" "$program" --device cpu -T "$threads"
    done
    for level in x86-64-v2 x86-64-v3 x86-64-v4; do
        export LAMEMO_ISA=$level
        # shellcheck disable=SC2086
        $program verify --device cpu --numerics exact tests/golden/xl_train.safetensors > /dev/null 2>&1 ||
            { echo "$name, $level: not here"; continue; }
        try "$name, $level" "$program" --device cpu -T 2
    done
    unset LAMEMO_ISA
    [ "$name" != cuda ] || try "$name, device cuda" "$program" --device cuda
    [ -n "${NO_REF:-}" ] || try "$name, device ref" "$program" --device ref
done
echo "$ways ways, one archive: $(wc -c < "$work/first") bytes, sha256 $(sha256sum "$work/first" | cut -d ' ' -f 1)"
