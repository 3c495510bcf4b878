#!/usr/bin/env bash
# The whole job on a bare machine, in about five minutes: build, prepare a text, train LaMemo and
# Transformer-XL on it side by side, measure both on text they have not seen, and let one write.
#   scripts/demo.sh                the King James Bible (Debian package bible-kjv, 4.4 MB)
#   scripts/demo.sh TEXT           a text of yours, plain or .gz, .xz, .zst, .zip; at least 1 MB is best
#   SECONDS_EACH=300 scripts/demo.sh    train longer
set -euo pipefail
text=${1:+$(realpath "$1")}
cd "$(dirname "$0")/.."
seconds=${SECONDS_EACH:-85}
out=build/demo
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive} # several programs may share these cores

say() { printf '\n== %s\n' "$*"; }

say "building"
scripts/deps.sh
cmake --preset release > /dev/null
cmake --build --preset release -j "$(nproc)" --target lamemo_cli | tail -1
lamemo=build/release/lamemo
rm -rf "$out"
mkdir -p "$out"

if [ -z "$text" ]; then
    say "taking the King James Bible from the package bible-kjv"
    scripts/deps.sh demo
    text=$out/bible.txt
    bible -f Gen1:1-Rev22:21 > "$text"
fi

say "preparing"
$lamemo prepare "$text" --out "$out/data"

# As many steps as fit into the time: the learning rate falls to zero over them.
steps_for() {
    local speed
    speed=$($lamemo bench train --preset tiny --memory "$1" -b 16 -s 3 --json |
        sed -n 's/.*"tokens_per_second": *\([0-9]*\).*/\1/p')
    echo $((seconds * speed / 1024 + 50))
}

for memory in lamemo xl; do
    steps=$(steps_for "$memory")
    say "training $memory: $steps steps, about $seconds seconds"
    $lamemo train --data "$out/data" --preset tiny --memory "$memory" --out "$out/$memory" \
        --max-step "$steps" --warmup-step 100 --lr 0.002 --clip 1 \
        --log-interval 100 --eval-interval 500 --no-test
done

say "bits per byte on the test split, which neither has seen"
bytes=$($lamemo eval -q --model "$out/lamemo" --data "$out/data" --split test --json | tee "$out/lamemo.json" |
    sed -n 's/.*"tokens": *\([0-9]*\).*/\1/p')
$lamemo eval -q --model "$out/xl" --data "$out/data" --split test --json > "$out/xl.json"
value() { sed -n 's/.*"value": *\([0-9.]*\).*/\1/p' "$1"; }
test_bytes=$(sed -n 's/.*"test": *\([0-9]*\).*/\1/p' "$out/data/corpus.json" | head -1)
# What a compressor needs for the same bytes.
case $text in
*.gz) gzip -dc "$text" ;; *.xz) xz -dc "$text" ;; *.zst) zstd -qdc "$text" ;; *.zip) unzip -p "$text" ;;
*) cat "$text" ;;
esac | tail -c "$test_bytes" > "$out/test.txt"
xz_bytes=$(xz -9e -c "$out/test.txt" | wc -c)
printf '  %-16s %8s\n' "LaMemo" "$(value "$out/lamemo.json")" \
    "Transformer-XL" "$(value "$out/xl.json")" \
    "xz -9e" "$(awk "BEGIN { printf \"%.4f\", 8 * $xz_bytes / $test_bytes }")"
echo "  ($bytes bytes predicted; xz packs the test split by itself)"

say "a paragraph by LaMemo"
$lamemo generate --model "$out/lamemo" --prompt "$(head -c 200 "$out/test.txt" | tr -c '[:print:]\n' ' ')" \
    -n 400 --temp 0.8

cat << EOF

Next:
  $lamemo generate --model $out/lamemo --prompt "..." -n 500
  $lamemo eval --model $out/lamemo --data $out/data --tgt-len 64 --mem-len 64,128,256,512
  $lamemo train --data $out/data --preset small --memory lamemo --out runs/small --max-step 20000
  $lamemo --help
EOF
