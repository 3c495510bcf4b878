#!/usr/bin/env bash
# Puts a trained model into models/wiki11m: exports it as int8 in files below 14 MB, measures it, records the figures the
# tests compare with, and writes them into the card.
#   scripts/box.sh MODEL [DATA]
# MODEL is a run folder, a model folder, or what this script made elsewhere.  With DATA, the prepared corpus wiki100m,
# the whole valid and test splits are read too, by the model as trained and as int8: seconds on a GPU, hours without one.
# What a MODEL of this script's own brings in its figures.jsonl is kept where it is not measured again, so that
# one call on a machine with a GPU and one here give everything:
#   BOX=out scripts/box.sh run data        there
#   scripts/box.sh out                     here
# BOX names another folder than models/wiki11m, LAMEMO the program (without it build/release/lamemo is built), DEVICE
# the device for the splits (auto), LAMEMO_WIKI100M the text wiki100m or its corpus, where DATA is not given.
set -euo pipefail

fail() {
    echo "box.sh: $*" >&2
    exit 2
}

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
    exit 2
fi
model=$(realpath "$1")
data=${2:+$(realpath "$2")}
[ -d "$model" ] || fail "$1: there is no such folder"
[ -z "$data" ] || [ -f "$data/corpus.json" ] || fail "$2: not a corpus folder (lamemo prepare makes one)"
box=$(realpath -m "${BOX:-$(dirname "$0")/../models/wiki11m}")
[ "$box" != "$model" ] || fail "$1 is the box itself: nothing to put into it"
cd "$(dirname "$0")/.."
if [ -z "${LAMEMO:-}" ]; then
    cmake --preset release > /dev/null
    cmake --build --preset release -j "$(nproc)" --target lamemo_cli | tail -1
    LAMEMO=build/release/lamemo
fi
. tests/box/texts.sh

# --- the weights: whole or not at all, the card stays ---------------------------------------------
new=$box.new
rm -rf "$new"
mkdir -p "$box"
"$LAMEMO" export --model "$model" --out "$new" --dtype int8 --max-shard-size 14MB
rm -f "$box"/*.safetensors "$box"/*.json "$box"/SHA256SUMS
mv "$new"/* "$box"
rmdir "$new"
(cd "$box" && sha256sum -- *.safetensors *.json > SHA256SUMS)

# --- the figures: one JSON object a line ----------------------------------------------------------
figures=$box/figures.jsonl
lines=$(mktemp)
trap 'rm -f "$lines" "$lines".*' EXIT
[ ! -f "$model/figures.jsonl" ] || cp "$model/figures.jsonl" "$lines.kept"

# measure TEXT WEIGHTS MODEL ARG...: one line; TEXT names what ARG... read.
measure() {
    local text=$1 weights=$2 folder=$3 json
    shift 3
    json=$("$LAMEMO" eval -q --json --model "$folder" "$@")
    printf '{"text": "%s", "weights": "%s", "bpc": %.5f, "stderr": %.5f, "tokens": %d}\n' "$text" "$weights" \
        "$(box_field value <<< "$json")" "$(box_field error <<< "$json")" "$(box_field tokens <<< "$json")" >> "$lines"
    tail -1 "$lines"
}

# both ARG...: of the model as it was trained, unless it was int8 already, and as it is now.
both() {
    local text=$1
    shift
    [ -n "$narrow" ] || measure "$text" trained "$model" "$@"
    measure "$text" int8 "$box" "$@"
}

narrow=$(grep -rlsm1 --binary-files=text --include='*.safetensors' '"dtype":"I8"' "$model" || true)
both heldout --device cpu --batch-size 1 --data tests/box/heldout.txt
if box_start "${data:-}" > "$lines.start"; then
    both start --device cpu --batch-size 1 --data "$lines.start"
else
    echo "box.sh: wiki100m is not here (LAMEMO_WIKI100M), its first $BOX_START test bytes are not measured" >&2
fi
if [ -n "$data" ]; then
    for split in valid test; do
        both $split --device "${DEVICE:-auto}" --data "$data" --split $split
    done
fi
# What the other machine measured and this one did not.
if [ -f "$lines.kept" ]; then
    while IFS= read -r line; do
        grep -qF "${line%%, \"bpc\"*}" "$lines" || echo "$line" >> "$lines"
    done < "$lines.kept"
fi
sort "$lines" > "$figures"

# --- the card -------------------------------------------------------------------------------------
[ -f "$box/README.md" ] || exit 0
value() { sed -n "/\"text\": \"$1\", \"weights\": \"$2\"/p" "$figures" | box_field bpc; } # or nothing
row() {
    local trained narrow cost='not measured'
    trained=$(value "$2" trained) narrow=$(value "$2" int8)
    [ -z "$trained" ] || [ -z "$narrow" ] || cost=$(awk "BEGIN { printf \"%+.5f\", $narrow - $trained }")
    echo "| $1 | ${trained:-not measured} | ${narrow:-not measured} | $cost |"
}
{
    echo "| bits per byte | as trained | int8, as it is here | cost of int8 |"
    echo "|---|---|---|---|"
    row "wiki100m, validation split (5,000,000 bytes)" valid
    row "wiki100m, test split (5,000,000 bytes)" test
    row "the first $BOX_START bytes of that test split, one stream" start
    row "\`tests/box/heldout.txt\`, one stream" heldout
} > "$lines.table"
sed -i -e '/^<!-- figures/,/^<!-- end/{/^<!-- figures/{p;r '"$lines.table"'
};/^<!-- end/!d}' "$box/README.md"
echo "$box: $(du -bc "$box"/*.safetensors | awk 'END { printf "%.1f MB", $1 / 1e6 }'), figures in figures.jsonl and README.md"
