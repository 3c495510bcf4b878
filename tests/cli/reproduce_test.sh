# reproduce_test.sh -- from a raw file to the table, on a text made up here; stopped, it goes on.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
export OMP_NUM_THREADS=1
export LAMEMO
script=$(dirname "$0")/../../scripts/reproduce.sh
tiny="--preset tiny --device cpu --steps 4 --any-text"
more="--threads 1 --n_layer 2 --d_model 16 --n_head 2 --d_head 8 --d_inner 32 --tgt_len 8 --mem_len 8
    --batch_size 2 --log_interval 2 --max_eval_steps 3"

# reproduce CODE ARG...
reproduce() {
    want=$1
    shift
    code=0
    bash "$script" "$@" > "$out" 2> "$err" || code=$?
    [ "$code" -eq "$want" ] || fail "reproduce.sh $* exited with $code, not $want"
}

seq 1 4000 | sed 's/.*/line & of the text, and again line &/' > "$work/text"
seq 1 4000 | tr '0-9\n' 'a-j ' > "$work/letters"

# A published corpus: prepared its way, the paper's values beside ours.
# shellcheck disable=SC2086
reproduce 0 enwik8 "$work/text" --out "$work/enwik8" --models "xl lamemo" $tiny -- $more
says "$out" "beside the paper's enwik8, which is another text"
grep -Eq "^lamemo +[0-9]\.[0-9]{4} +[0-9]\.[0-9]{4} +1\.129 +1\.107$" "$out" || fail "no row of LaMemo"
grep -Eq "^xl +[0-9]\.[0-9]{4} +[0-9]\.[0-9]{4} +1\.150 +1\.128$" "$out" || fail "no row of XL"
for model in xl lamemo; do
    [ -s "$work/enwik8/compare/$model-s1111/best/model.safetensors" ] || fail "$model was not trained"
done
cp "$work/enwik8/compare/xl-s1111/metrics.jsonl" "$work/before"

# Once more: nothing is trained again; another model joins.
# shellcheck disable=SC2086
reproduce 0 enwik8 "$work/text" --out "$work/enwik8" --models "xl lamemo none" $tiny -- $more
[ -d "$work/enwik8/compare/none-s1111" ] || fail "none was not trained"
cmp "$work/before" "$work/enwik8/compare/xl-s1111/metrics.jsonl" || fail "xl was trained again"

# A stand-in, with the other recipe and by the clock.
# shellcheck disable=SC2086
reproduce 0 wiki27 "$work/letters" --out "$work/wiki27" --models lamemo --preset tiny --device cpu \
    --any-text --minutes 0.01 --recipe fast -- $more
says "$out" "wiki27, recipe fast, mean over seeds, beside the paper's text8, which is another text"
grep -q '"recipe": *"fast"' "$work/wiki27/compare/lamemo-s1111/last/training_state.json" ||
    fail "the recipe is not recorded"

# What is refused.
reproduce 2 enwik9 "$work/text"
says "$err" "enwik9: there are enwik8"
reproduce 2 enwik8 "$work/no-such-file"
says "$err" "no-such-file: there is no such file"
reproduce 2 enwik8 "$work/text" --steps 3 --minutes 1
says "$err" "contradict"
reproduce 2 enwik8 "$work/text" --step 3
says "$err" "unexpected argument --step"
reproduce 1 enwik8 "$work/text" --out "$work/refused" # not the published file
says "$err" "enwik8"
