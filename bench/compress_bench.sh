#!/usr/bin/env bash
# compress_bench.sh -- sizes and CPU seconds of lamemo compress beside xz, zstd, brotli and zpaq, as rows of Markdown.
#   bench/compress_bench.sh BYTES NAME=FILE...       FILE may be an .xz; the first BYTES of it are taken
# LAMEMO: the program (build/release/lamemo); ADAPTS: "mix none"; MODEL: wiki11m; STREAMS: 16; DECODE=1: decode, too.
# Every archive of lamemo is decoded and compared if DECODE=1.  Times are CPU seconds (user), so that a busy machine
# counts less.  Programs that are not installed are left out.
set -euo pipefail
bytes=${1:?how many bytes of each file}
shift
lamemo=${LAMEMO:-build/release/lamemo} model=${MODEL:-wiki11m} streams=${STREAMS:-16}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
TIMEFORMAT=%U

# row FILE NAME COMMAND...: COMMAND reads $work/in and writes $work/out
row() {
    local file=$1 name=$2 seconds
    shift 2
    seconds=$({ time "$@" > "$work/out" 2> "$work/err" < "$work/in"; } 2>&1) || { cat "$work/err" >&2; return 1; }
    local size
    size=$(stat -c %s "$work/out")
    printf '| %s | %s | %s | %s | %s |\n' "$file" "$name" "$size" \
        "$(awk "BEGIN { printf \"%.4f\", 8 * $size / $(stat -c %s "$work/in") }")" "$seconds"
}

zpaq_to_stdout() {
    rm -f "$work/z.zpaq"
    (cd "$work" && zpaq a z.zpaq in -m5 -t1 > /dev/null 2>&1)
    cat "$work/z.zpaq"
}

found() {
    command -v "$1" > /dev/null || { echo "compress_bench: $1 is not installed" >&2; return 1; }
}

echo '| file | program | bytes | bits per byte | CPU s |'
echo '|---|---|---|---|---|'
for pair in "$@"; do
    name=${pair%%=*} file=${pair#*=}
    case $file in
    *.xz) { xz -dc "$file" || true; } 2> /dev/null | head -c "$bytes" > "$work/in" ;;
    *) head -c "$bytes" "$file" > "$work/in" ;;
    esac
    ! found xz || row "$name" "xz -9e" xz -9e -c
    ! found zstd || row "$name" "zstd --ultra -22" zstd --ultra -22 -q -c
    ! found brotli || row "$name" "brotli -q 11" brotli -q 11 -w 24 -c
    ! found zpaq || row "$name" "zpaq -m5" zpaq_to_stdout
    for adapt in ${ADAPTS:-mix none}; do
        row "$name" "lamemo, $adapt" "$lamemo" compress -q -c -T 1 -m "$model" --streams "$streams" --adapt "$adapt"
        if [ "${DECODE:-0}" = 1 ]; then
            cp "$work/out" "$work/archive"
            seconds=$({ time "$lamemo" decompress -q -c -T 1 -m "$model" < "$work/archive" > "$work/back"; } 2>&1)
            cmp "$work/in" "$work/back"
            printf '| %s | lamemo, %s: decoding | | | %s |\n' "$name" "$adapt" "$seconds"
        fi
    done
done
