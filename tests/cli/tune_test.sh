# tune_test.sh -- train --init-from: a run begins with a model's weights, whatever they are stored in, and with nothing else of it.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
export OMP_NUM_THREADS=1

seq 1 1500 | sed 's/.*/line & of the text, and again line &/' > "$work/text"
seq 1 1500 | sed 's/.*/another text has & lines, then &/' > "$work/other"
run 0 prepare --out "$work/corpus" "$work/text"
run 0 prepare --out "$work/mine" "$work/other"

often="--recipe paper --batch_size 4 --log_interval 20 --eval_interval 0 --max_eval_steps 20 --no-test --threads 1"
# shellcheck disable=SC2086
run 0 train --data "$work/corpus" --n_layer 2 --n_head 2 --d_model 16 --d_head 8 --d_inner 32 --tgt_len 8 \
    --mem_len 8 --lr 0.01 --max_step 100 $often --out "$work/base"

# tune CODE ARG...: a run on the other text that begins with it.
# shellcheck disable=SC2086
tune() {
    want=$1
    shift
    run "$want" train --data "$work/mine" --lr 0.003 --max_step 60 $often "$@"
}
valid() { sed -n 's/.*"valid_bpc":\([0-9.]*\).*/\1/p' "$work/$1/metrics.jsonl" | tail -1; }
less() { awk "BEGIN { exit !($1 < $2) }" || fail "$1 is not below $2"; }

# A rate of 0 leaves the weights as they are: those of the run's best model, bit for bit.
tune 0 --init-from "$work/base" --lr 0 --max_step 1 --out "$work/still"
says "$err" "weights: those of $work/base"
cmp "$work/base/best/model.safetensors" "$work/still/last/model.safetensors" || fail "other weights"

# What was learned helps; so does tuning.  The optimiser and the step count begin anew.
tune 0 --init-from "$work/base" --out "$work/tuned"
says "$err" "step      60"
tune 0 --n_layer 2 --n_head 2 --d_model 16 --d_head 8 --d_inner 32 --tgt_len 8 --mem_len 8 --out "$work/raw"
less "$(valid tuned)" "$(valid still)"
less "$(valid tuned)" "$(valid raw)"

# From int8 and in another length, with another dropout; the rest of the configuration is the model's.
run 0 export --model "$work/base" --out "$work/int8" --dtype int8
tune 0 --init-from "$work/int8" --tgt_len 4 --mem_len 12 --dropout 0.3 --out "$work/long"
says "$work/long/last/config.json" '"mem_len": 12'
says "$work/long/last/config.json" '"dropout": 0.3'
says "$work/long/last/config.json" '"d_model": 16'
less "$(valid long)" "$(valid raw)"

# Interrupted, it goes on as any run, and the model is not looked at again.
tune 0 --init-from "$work/base" --max_step_scheduler 60 --max_step 25 --out "$work/parts"
run 0 train --out "$work/parts" --resume --init-from "$work/nowhere" --max_step 60
cmp "$work/tuned/last/model.safetensors" "$work/parts/last/model.safetensors" || fail "resumed otherwise"

# What would make another model of it is refused, and nothing is written.
tune 2 --init-from "$work/base" --n_layer 3 --out "$work/no"
says "$err" "--n-layer 3: the model of --init-from has 2"
tune 2 --init-from "$work/base" --memory xl --out "$work/no"
says "$err" "--memory xl: the model of --init-from has lamemo"
tune 2 --init-from "$work/base" --preset small --out "$work/no"
says "$err" "--preset and --init-from contradict each other"
tune 1 --init-from "$work/nowhere" --out "$work/no"
says "$err" "there is no such folder"
printf 'abc%.0s' $(seq 1 2000) > "$work/letters"
run 0 prepare --corpus chars --out "$work/abc" "$work/letters"
# shellcheck disable=SC2086
run 2 train --data "$work/abc" --init-from "$work/base" $often --out "$work/no"
says "$err" "the model in"
sed 's/"lower": false/"lower": true/' "$work/mine/vocab.json" > "$work/vocab"
cp -r "$work/base/best" "$work/lower"
cp "$work/vocab" "$work/lower/vocab.json"
tune 2 --init-from "$work/lower" --out "$work/no"
says "$err" "another vocabulary than that of the model"
says "$err" "lamemo prepare --vocab-from $work/lower takes the model's"

# Words and characters: another text has other symbols, unless it is prepared with the model's.
for kind in words chars; do
    run 0 prepare --corpus $kind --out "$work/$kind" "$work/text"
    # shellcheck disable=SC2086
    run 0 train --data "$work/$kind" --n_layer 1 --n_head 2 --d_model 16 --d_head 8 --d_inner 32 --tgt_len 8 \
        --mem_len 8 --lr 0.01 --max_step 20 $often --out "$work/of_$kind"
    run 0 prepare --corpus $kind --out "$work/own_$kind" "$work/other"
    # shellcheck disable=SC2086
    run 2 train --data "$work/own_$kind" --init-from "$work/of_$kind" $often --out "$work/no"
    says "$err" "lamemo prepare --vocab-from $work/of_$kind takes the model's"
    run 1 eval --model "$work/of_$kind" --data "$work/own_$kind"
    says "$err" "lamemo prepare --vocab-from MODEL takes the model's"
    tr -d aeo < "$work/text" > "$work/known_$kind" # letters of the text; words that are none of its
    run 0 prepare --vocab-from "$work/of_$kind" --out "$work/as_$kind" "$work/known_$kind"
    # shellcheck disable=SC2086
    run 0 train --data "$work/as_$kind" --init-from "$work/of_$kind" --max_step 5 $often --out "$work/tuned_$kind"
    cmp "$work/of_$kind/last/vocab.json" "$work/tuned_$kind/last/vocab.json" || fail "another vocabulary of $kind"
    run 0 eval --model "$work/of_$kind" --data "$work/as_$kind"
done
# By hand it may be written otherwise: symbols count, not their counts.
sed 's/^  *//' "$work/as_words/vocab.json" | tr '\n' ' ' | sed 's/"counts": \[ [0-9]*/"counts": [ 1/' > "$work/flat"
cp "$work/flat" "$work/as_words/vocab.json"
# shellcheck disable=SC2086
run 0 train --data "$work/as_words" --init-from "$work/of_words" --max_step 1 $often --out "$work/flat_run"
ln -sf vocab.json "$work/lower/vocab.json" # a link to itself: there, but nobody can read it
tune 1 --init-from "$work/lower" --out "$work/no"
says "$err" "$work/lower/vocab.json: cannot open: "
rm "$work/lower/vocab.json"
[ ! -e "$work/no" ] || fail "a refused run left its folder"
tune 0 --init-from "$work/lower" --max_step 1 --out "$work/bare"
says "$err" "$work/lower: no vocab.json; its vocabulary is taken to be that of"
