# quiet_test.sh -- under -q, what makes a folder says nothing, with --json its result; what is asked for an answer gives it.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
export OMP_NUM_THREADS=1
seq 1 1200 | sed 's/.*/line & of the text, and again line &/' > "$work/text"

# made COMMAND WORDS: -q is silent; with --json one object, and nothing beside it.
made() {
    command=$1
    shift
    run 0 "$command" -q --out "$work/$command" "$@"
    [ ! -s "$out" ] || fail "$command -q prints"
    [ ! -s "$err" ] || fail "$command -q speaks"
    run 0 "$command" -q --json --out "$work/$command.json" "$@"
    [ "$(head -c 1 "$out")" = "{" ] || fail "$command -q --json prints no result"
    [ ! -s "$err" ] || fail "$command -q --json speaks"
}

made prepare "$work/text"
made train --data "$work/prepare" --memory xl --n-layer 2 --n-head 2 --d-model 16 --d-head 8 --d-inner 32 --tgt-len 8 \
    --mem-len 8 --batch-size 4 --max-step 3 --max-eval-steps 2
made export --model "$work/train" --dtype bf16
made import "$work/export"
made analyze --model "$work/train" --data "$work/prepare" --segments 4 --tokens 4 --no-extrapolate --story 0 --passage 0

for answer in "eval --model $work/train --data $work/text" "score --model $work/train line" "report $work/train" \
    "generate --model $work/train -n 8 line" "info --model $work/train"; do
    # shellcheck disable=SC2086
    run 0 $answer -q
    [ -s "$out" ] || fail "$answer -q has no answer"
    [ ! -s "$err" ] || fail "$answer -q speaks"
done
