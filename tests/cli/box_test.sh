# box_test.sh -- the model in the box (models/wiki11m) is what its card says: bits per byte on texts it has not seen are those
# recorded in figures.jsonl, damage shows, and a newcomer's first commands work.  Skipped where the weights are not there.
if [ ! -f models/wiki11m/config.json ]; then
    echo "skipped: models/wiki11m has no weights (scripts/box.sh puts them there)"
    exit 77
fi
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/box/texts.sh
. tests/box/texts.sh
box=models/wiki11m
tolerance=0.001 # bpc; other numbers of threads, weights widened to float32 and bf16 caches differ by less than 0.0002

# bpc MODEL ARG...: measures in one stream.
bpc() {
    run 0 eval -q --json --device cpu --batch-size 1 --model "$@"
    box_field value < "$out"
}
near() { awk "BEGIN { d = $1 - $2; exit !(d < $tolerance && d > -$tolerance) }"; }

# compare TEXT FILE: what is recorded of TEXT with what FILE, the text itself, has now.
compare() {
    expected=$(sed -n "/\"text\": \"$1\", \"weights\": \"int8\"/p" $box/figures.jsonl | box_field bpc)
    [ -n "$expected" ] || fail "$box/figures.jsonl says nothing of $1: scripts/box.sh did not find the text"
    got=$(bpc $box --data "$2")
    near "$got" "$expected" || fail "$1: $got bpc, recorded are $expected"
}

# Every byte is the one that was measured.
(cd $box && sha256sum --quiet -c SHA256SUMS) > "$out" 2> "$err" || fail "files of $box are damaged"

# A text written for this test, and the beginning of wiki100m's test split.
compare heldout tests/box/heldout.txt
if box_start > "$work/start"; then
    compare start "$work/start"
else
    echo "wiki100m is not here (LAMEMO_WIKI100M): measured on heldout.txt alone"
fi

# The kernels for int8 weights against float32, and what 4 kB of noise among the weights do.
sound=$(bpc $box --data tests/box/heldout.txt --max-steps 1)
got=$(bpc $box --data tests/box/heldout.txt --max-steps 1 --weights float32)
near "$got" "$sound" || fail "int8 $sound bpc, the same widened to float32 $got"
cp -r $box "$work/damaged"
shard=$work/damaged/model.safetensors
yes 0123456789abcdef | head -c 4096 | dd of="$shard" bs=1 seek=8000000 conv=notrunc 2> "$err"
got=$(bpc "$work/damaged" --data tests/box/heldout.txt --max-steps 1)
! near "$got" "$sound" || fail "damaged weights go unnoticed: $got bpc"

# Found by name from any folder; asked for without a name, it is offered.
LAMEMO_MODELS=$PWD/models
export LAMEMO_MODELS
cd "$work"
run 0 generate --model wiki11m --prompt "The history of Rome " -n 60
[ "$(wc -c < "$out")" -ge 50 ] || fail "not sixty bytes"
run 2 generate --prompt "The history of Rome"
says "$err" "wiki11m"
run 0 score --model wiki11m "The history of Rome"
run 0 info --model wiki11m
says "$out" "10,755,776"
