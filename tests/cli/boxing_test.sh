# boxing_test.sh -- scripts/box.sh puts a model into a box: exported, measured, written into the card; and what another
# machine measured is kept.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
export LAMEMO OMP_NUM_THREADS=1 LAMEMO_WIKI100M="$work/absent"

seq 1 3000 | sed 's/.*/line & of the text, and again line &/' > "$work/text"
run 0 prepare --corpus bytes --out "$work/data" "$work/text"
run 0 train --data "$work/data" --memory lamemo --out "$work/run" --n_layer 2 --n_head 2 --d_model 32 \
    --d_head 16 --d_inner 64 --tgt_len 16 --mem_len 16 --batch_size 4 --max_step 20 --lr 0.01 --threads 1 --no-test

# box ARG...: runs the script on $BOX.
box() { scripts/box.sh "$@" > "$out" 2> "$err" || fail "box.sh $*"; }
bpc() { sed -n "s/.*\"text\": \"$2\", \"weights\": \"$3\", \"bpc\": \([0-9.]*\).*/\1/p" "$1/figures.jsonl"; }

# Where there is data: two splits, the beginning of the test split, the text of ours; as trained and as int8.
mkdir "$work/far"
cp models/wiki11m/README.md "$work/far"
export BOX="$work/far"
box "$work/run" "$work/data"
[ "$(wc -l < "$work/far/figures.jsonl")" -eq 8 ] || fail "not eight figures"
run 0 eval --json --model "$work/run" --data "$work/data" --split valid
says "$out" "\"value\":$(bpc "$work/far" valid trained | cut -c 1-6)"
(cd "$work/far" && sha256sum --quiet -c SHA256SUMS) || fail "wrong checksums"
grep -q "^| wiki100m, test split .* | $(bpc "$work/far" test trained) | $(bpc "$work/far" test int8) | [-+]0\.0[0-9]* |$" \
    "$work/far/README.md" || fail "the card does not show them"
[ "$(grep -c '^| ' "$work/far/README.md")" -eq "$(grep -c '^| ' models/wiki11m/README.md)" ] || fail "a table grew"

# Where there is none: the weights are the same, and so are the figures that cannot be measured here.
mkdir "$work/near"
cp models/wiki11m/README.md "$work/near"
export BOX="$work/near"
box "$work/far"
for file in SHA256SUMS figures.jsonl README.md; do
    cmp "$work/far/$file" "$work/near/$file" || fail "another $file"
done

# A second model leaves nothing of the first; what is no model changes nothing.
sed -i 's/"text": "valid"/"text": "gone"/' "$work/near/figures.jsonl"
box "$work/run"
[ "$(wc -l < "$work/near/figures.jsonl")" -eq 2 ] || fail "old figures stayed"
grep -q '^| wiki100m, validation split .* | not measured | not measured | not measured |$' "$work/near/README.md" ||
    fail "the card shows old figures"
cp "$work/near/SHA256SUMS" "$work/before"
! scripts/box.sh "$work/data" > "$out" 2> "$err" || fail "a corpus was boxed"
says "$err" "not that of a model"
! scripts/box.sh "$work/near" > "$out" 2> "$err" || fail "a box was put into itself"
cmp "$work/before" "$work/near/SHA256SUMS" || fail "the box changed"
