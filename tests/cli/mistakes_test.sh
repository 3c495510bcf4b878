# mistakes_test.sh -- what a command cannot do it says by name, before it works: which option, which file, what else.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
export OMP_NUM_THREADS=1
cd "$work"

seq 1 900 | sed 's/.*/a text of & lines, each with a number &./' > text
run 0 prepare -q --out corpus text
train() {
    run 0 train --n-layer 1 --n-head 2 --d-head 8 --d-model 16 --d-inner 16 --tgt-len 8 --mem-len 8 -b 4 --max-step 2 \
        --no-test "$@"
}
train -q --data corpus --out run
while read -r code words; do
    # shellcheck disable=SC2086
    run "$code" ${words%%: *}
    says "$err" "${words#*: }"
    [ ! -s "$out" ] || fail "${words%%: *} printed something"
done << 'END'
2 eval -m run: --data is missing: a corpus folder or a text file
2 eval -m run --data corpus --encoding latin1: --encoding: corpus is a corpus folder, whose text lamemo prepare has converted
2 eval -m run --data corpus --keep-crlf: --keep-crlf: corpus is a corpus folder
2 info --step-ms 5: --step-ms is for --ranks only
2 info --no-overlap: --no-overlap is for --ranks only
2 info --zero 1: --zero is for --ranks only
2 info --ranks 4 --table: --table and --ranks are two tables: pass one of them
2 info --d-model 15: info: --d-model is 15, must be even
2 info --memory lamemo --mem-len 0: info: --memory lamemo needs --mem-len above 0
2 analyze -m run --data corpus --out pages --encoding-width 3: --encoding-width 3: must be even and at least 2
2 bench train --weights int8: bench: a model with bf16 or int8 weights cannot be trained
2 compare --data corpus --out new lamem: lamemo, no-interpolation, no-look-ahead, xl-encoding; did you mean lamemo?
1 report run --out none/page.html: none/page.html: cannot create: No such file or directory
1 export -m run --out corpus: corpus: holds test.bin, which is no part of a model: name another folder
1 import run/best --out corpus: corpus: holds test.bin, which is no part of a model: name another folder
END
[ ! -e new ] && [ ! -e pages ] || fail "what is refused leaves a folder"
run 2 generate -m run --stop '' x
says "$err" "--stop: the text is empty"

# A value that is nothing like a word is not explained by that word.
run 2 compare --data corpus --out new L=lamemo:foo=3
! grep -q "did you mean" "$err" || fail "a suggestion for foo"
run 2 report run --plot nope
says "$err" "none; did you mean none?"

# A tokenizer that cannot be written is refused before the weights are written.
run 0 prepare -q --corpus bpe --vocab-size 300 --out pairs text
train -q --data pairs --out prun
run 1 export -m prun --out exported --tokenizer none/tokenizer.json
says "$err" "none/tokenizer.json: cannot create: No such file or directory"
[ ! -e exported ] || fail "the weights were written"

# Options that change nothing are pointed out.
train --data corpus --out drawn --init-range 0.5 --init-std 0.01
says "$err" "warning: --init-range has no effect with --init normal, only with: uniform"
! grep -q "init-std has no effect" "$err" || fail "--init-std has an effect"

# --help takes a command, too.
run 0 --help train
says "$out" "Usage: lamemo train"
run 0 -h train memory
says "$out" "--cmem-len"
run 2 --help trian
says "$err" "did you mean 'train'?"
