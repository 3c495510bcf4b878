#!/usr/bin/env bash
# The whole job on a bare machine, in about five minutes: build, prepare a text, train LaMemo and Transformer-XL on it
# for equal times, evaluate both on held-out text, write a report and an analysis of their memories, and generate text
# with the LaMemo just trained and with the larger bundled one (models/wiki11m).
#   scripts/demo.sh                the King James Bible (Debian package bible-kjv, 4.4 MB)
#   scripts/demo.sh TEXT           your own text, plain or .gz, .xz, .zst, .zip; at least 1 MB is best
#   SECONDS_EACH=300 scripts/demo.sh    train longer than 90 seconds each
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
text=${1:+$(realpath "$1")}
cd "$(dirname "$0")/.."
seconds=${SECONDS_EACH:-}
out=build/demo

say() { printf '\n== %s\n' "$*"; }

say "building"
if [ -z "$text" ]; then scripts/deps.sh demo; else scripts/deps.sh; fi
cmake --preset release > /dev/null
cmake --build --preset release -j "$(nproc)" --target lamemo_cli | tail -1
lamemo=build/release/lamemo
rm -rf "$out"
mkdir -p "$out"

if [ -z "$text" ]; then
    say "taking the King James Bible from the package bible-kjv"
    text=$out/bible
    mkdir "$text"
    # Style changes from book to book: every 20th chapter is held out, so that all books are.
    bible -f Gen1:1-Rev22:21 | awk -v dir="$text" '
        { split($1, label, ":") }
        label[1] != chapter { chapter = label[1]; n++ }
        { print > (dir "/" (n % 20 == 0 ? "test" : n % 20 == 10 ? "valid" : "train") ".txt") }'
fi

say "preparing"
$lamemo prepare "$text" --out "$out/data" --name "$(basename "${text%.*}")"

# A slow machine takes longer, so that each model makes about 400 steps: 300 clearly beat the compressor on the Bible.
if [ -z "$seconds" ]; then
    speed=$($lamemo bench train --preset tiny --memory lamemo -b 16 --optim muon --seconds 3 --json |
        sed -n 's/.*"tokens_per_second": *\([0-9]*\).*/\1/p')
    seconds=$((400 * 1024 / (speed + 1)))
    [ $seconds -ge 90 ] || seconds=90
fi

# Equal time: the clock ends run and schedule, however many steps there are by then; nothing is evaluated before.
for memory in lamemo xl; do
    say "training $memory for $seconds seconds"
    $lamemo train --data "$out/data" --preset tiny --memory "$memory" --out "$out/$memory" \
        --scheduler-time "$seconds" \
        --log-interval 100 --eval-interval 0 --no-test
done

# What a compressor needs for the bytes of the test split.
test_bytes=$(sed -n '/"tokens"/,/}/s/.*"test": *\([0-9]*\).*/\1/p' "$out/data/corpus.json")
case $text in
*.gz) gzip -dc "$text" ;; *.xz) xz -dc "$text" ;; *.zst) zstd -qdc "$text" ;; *.zip) unzip -p "$text" ;;
*) if [ -d "$text" ]; then cat "$text/test.txt"; else cat "$text"; fi ;;
esac | tail -c "$test_bytes" > "$out/test.txt"
xz_bytes=$(xz -9e -c "$out/test.txt" | wc -c)

say "bits per byte on the test split ($test_bytes bytes that neither model has seen)"
value() {
    printf '%.4f' "$($lamemo eval -q --model "$out/$1" --data "$out/data" --split test --json |
        sed -n 's/.*"value": *\([0-9.]*\).*/\1/p')"
}
printf '  %-16s %8s\n' "LaMemo" "$(value lamemo)" "Transformer-XL" "$(value xl)" \
    "xz -9e" "$(awk "BEGIN { printf \"%.4f\", 8 * $xz_bytes / $test_bytes }")"
echo "This compares two small models after $seconds seconds of training each, by the clock. It shows that both learn, not"
echo "which memory is better: for that see the runs of 46,000 steps in docs/results.md, where LaMemo ends ahead."

say "writing a report of both runs and an analysis of their memories"
$lamemo report -q "$out/lamemo" "$out/xl" --plot none --out "$out/report.html" > /dev/null
$lamemo analyze -q --model "$out/lamemo,$out/xl" --data "$out/data" --segments 20 --no-extrapolate --out "$out/analysis" \
    > /dev/null
echo "training curves:                    $out/report.html"
echo "what the memories keep and read:    $out/analysis/report.html"

say "the first 200 bytes of the test split, continued by the LaMemo just trained"
$lamemo generate --model "$out/lamemo" --echo --prompt "$(head -c 200 "$out/test.txt" | tr -c '[:print:]\n' ' ')" \
    -n 250 --temp 0.8

writer=$out/lamemo
if [ -f models/wiki11m/config.json ]; then
    writer=wiki11m
    say "a paragraph by the bundled LaMemo: 11 million parameters, English Wikipedia (models/wiki11m)"
    $lamemo generate --model $writer --echo -n 500 --temp 0.9 --top-p 0.9 --prompt \
        "A lighthouse is a tower that carries a strong lamp near a coast, so that sailors can tell at night where the land is. "
fi

cat << EOF

Next:
  $lamemo generate --model $writer --prompt "..." -n 500
  $lamemo eval --model $out/lamemo --data $out/data --tgt-len 64 --mem-len 64,128,256,512
  $lamemo train --data $out/data --preset small --out runs/small --scheduler-time 3600
  $lamemo serve --model $writer        # a page that shows the memory at work: http://127.0.0.1:8080/
  $lamemo --help
EOF
