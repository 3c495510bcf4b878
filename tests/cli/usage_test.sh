# usage_test.sh -- the program explains itself and refuses what it does not know.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

run 0 --help
says "$out" "Commands"
says "$out" "explain a command"
run 0 --version
says "$out" "lamemo "
run 2
says "$err" "Usage: lamemo COMMAND"

# An unknown command gets a suggestion when one is near.
run 2 hlep
says "$err" "there is no command 'hlep'; did you mean 'help'?"
run 2 --hlep
says "$err" "did you mean '--help'?"
run 2 version
says "$err" "did you mean '--version'?"
run 2 frobnicate
says "$err" "there is no command 'frobnicate'"

# The overview says how to begin, and train what most runs need before anything else.
run 0 --help
says "$out" "lamemo prepare --out data/book book.txt"
run 0 train --help
sed -En '/^Common options/q; s/^(  -., |      )--([a-z-]*).*/\2/p' "$out" | tr '\n' ' ' > "$work/first"
[ "$(cat "$work/first")" = "data out preset memory init-from resume overwrite config recipe lr max-step epochs max-time batch-size " ] ||
    fail "the first options of train are: $(cat "$work/first")"

# Every listed command has a --help that begins with its usage.
run 0 --help
sed -n '/^Commands/,/^$/s/^  \([a-z]*\) .*/\1/p' "$out" > "$work/commands"
[ -s "$work/commands" ] || fail "no commands listed"
while read -r command; do
    run 0 "$command" --help
    says "$out" "Usage: lamemo $command"
    ! grep -q -e --inner-job "$out" || fail "$command --help shows an option for internal use"
    run 2 "$command" --no-such-option
    says "$err" "lamemo $command: unknown option '--no-such-option'"
    says "$err" "Try 'lamemo $command --help'."
done < "$work/commands"

run 0 help help
says "$out" "Usage: lamemo help"
run 2 help trian
says "$err" "there is no command 'trian'; did you mean 'train'?"
run 2 help no-such-command
says "$err" "there is no command 'no-such-command'"
run 2 help a b c
says "$err" "unexpected argument 'c'"

# Help is short; the rest of the options stands under topics, each of which the short help names.
run 0 train --help
[ "$(wc -l < "$out")" -le 100 ] || fail "train --help has more than 100 lines"
says "$out" "lamemo train --help=all"
sed -n '/TOPIC is one of/{n;s/,//g;p}' "$out" > "$work/topics"
[ "$(wc -w < "$work/topics")" -gt 4 ] || fail "few topics"
"$LAMEMO" train --help=all > "$work/all"
# shellcheck disable=SC2013
for topic in $(cat "$work/topics"); do
    run 0 train "--help=$topic"
    grep -q '^  ' "$out" || fail "--help=$topic is empty"
    ! grep '^  ' "$out" | grep -vxFf "$work/all" || fail "--help=$topic has what --help=all has not"
    run 0 help train "$topic"
done
run 0 train --help=memory
says "$out" "--cmem-len"
run 2 train --help=nothing
says "$err" "--help=nothing: there is no such topic, but all, batches"
run 0 train --usage
[ "$(cat "$out")" = "Usage: lamemo train [OPTION...]" ] || fail "--usage is not the usage"

# What argp would say in its own way is said in ours.
run 2 train --mem 5
says "$err" "lamemo train: option '--mem' is ambiguous: --memory, "
says "$err" "--mem-len"
says "$err" "Try 'lamemo train --help'."
run 0 train --help --mem-l 5
run 2 train --lr
says "$err" "option '--lr' needs a value: --lr X"
run 2 train -b
says "$err" "option '-b' needs a value: -b B"
run 2 train --resume=yes
says "$err" "option '--resume' takes no value"
run 2 train -rz
says "$err" "unknown option '-z'"
run 2 generate -model wiki11m hello
says "$err" "unknown option '-model'; did you mean '--model'?"

# What was meant is plain, or nearly.
run 0 prepare -q --out "$work/corpus" README.md
mkdir -p "$work/models/wiki11m"
echo '{}' > "$work/models/wiki11m/config.json"
export LAMEMO_MODELS="$work/models"
while read -r code words; do
    # shellcheck disable=SC2086
    run "$code" ${words%%:*}
    says "$err" "${words#*: }"
done << END
2 train mybook.txt: unexpected argument 'mybook.txt': a text is prepared first: lamemo prepare --out DIR mybook.txt, then
2 eval wiki11m mybook.txt: unexpected argument 'wiki11m': a model is given as --model wiki11m
2 generate wiki11m hello: --model is missing: write --model wiki11m
1 generate --model wiki11 hello: wiki11: there is no such model; did you mean wiki11m?
1 generate --model $work/corpus hello: corpus: a corpus folder, not that of a model or a run
2 generate --model wiki11m --device gpu hello: --device gpu: GPUs are used with --device cuda
2 generate -n -5: -n/--tokens: '-5' is not an integer
2 generate -qn-5: -n/--tokens: '-5' is not an integer
2 generate --tokens=-5: generate: --tokens: '-5' is not an integer
2 analyze --model wiki11m wiki11m: models are joined by commas, or --model is written before each
2 compare --data $work/corpus --out $work/new lamemo,xl: blanks, not commas, separate several
2 compare --out $work/new --memory xl: name the memories to compare without it
2 train --data $work/corpus --out $work/new --memory lamem: --memory lamem: must be one of: none, xl, compressive, infinite, lamemo; did you mean lamemo?
2 train --data $work/corpus --out $work/new --preset tinny: did you mean tiny?
2 prepare --corpus word --out $work/new README.md: did you mean words?
1 train --data $work/new --out $work/run: there is no such folder (lamemo prepare makes a corpus folder)
END
unset LAMEMO_MODELS
[ ! -e "$work/new" ] || fail "what is refused leaves a folder"

# A letter means one thing; what it used to mean is refused with the way out.
while read -r words; do
    # shellcheck disable=SC2086
    run 2 ${words%%:*}
    says "$err" "${words#*: }"
done << 'END'
train -m xl: -m is --model in every command that has it: write --memory xl
train -ptiny: -p is --prompt in every command that has it: write --preset tiny
info -p tiny: write --preset tiny
bench -s 3: -s is --seed in every command that has it: write --seconds 3
prepare -s 90/5/5 x: write --split 90/5/5
compare -s 1,2: write --seeds 1,2
analyze -n 5: -n is --tokens in every command that has it: write --segments 5
END
# (compress and decompress have the letters of xz, which people know.)
# shellcheck disable=SC2016
"$LAMEMO" help --markdown | sed '/^## lamemo compress/,/^## lamemo import/d' | sed -n 's/^| `-\(.\)`, `--\([a-z-]*\).*/\1 \2/p' | sort -u > "$out"
[ -z "$(cut -d' ' -f1 "$out" | uniq -d)" ] || fail "a letter means two things"

# Names that people bring along from other programs.
while read -r command word here; do
    run 2 "$command" "--$word" 1
    says "$err" "unknown option '--$(echo "$word" | tr _ -)'; here it is '--$here'"
done << 'END'
train bs batch-size
train gpu device cuda
train model-size preset
train hidden_size d-model
train num-layers n-layer
train steps max-step
train n-epochs epochs
train optimizer optim
train checkpoint init-from
train output_dir out
generate checkpoint model
generate max-new-tokens tokens
generate max_new_tokens tokens
eval gpu device cuda
END
for words in "--batch_size 4" "--num-epochs 2" "--learning-rate 0.1"; do
    # shellcheck disable=SC2086
    run 2 train $words
    says "$err" "--out is missing"
done

# The presets: in the help, in the documents, and with what they cost here.
run 0 train --help
for name in tiny small enwik8-base text8-base wt103-base wt103-adaptive; do
    grep -q "^  $name  *[0-9]" "$out" || fail "train --help has no row of $name"
    grep -q "^  $name  *[0-9]" docs/cli.md || fail "docs/cli.md has no row of $name"
done
run 2 info --presets --preset tiny
says "$err" "--presets lists the presets as they are: without --preset"
run 2 info --presets -b 3
says "$err" "without --batch-size"
run 0 info --presets --json
[ "$(grep -c '"step_seconds": [0-9]' "$out")" -eq 6 ] || fail "a preset has no time"
says "$out" '"step_measured": true'
# One default for all commands.
# shellcheck disable=SC2016
"$LAMEMO" help --markdown | grep -F '`--preset NAME`' | sed 's/.*Default: //' | sort -u > "$out"
[ "$(cat "$out")" = "tiny. |" ] || fail "several default presets"

# Names that are not there are answered by those that are, as in the help; each of them works.
for option in preset memory; do
    run 2 info --$option magic
    says "$err" "--$option magic: must be "
    sed -En 's/.* must be (one of: )?//p' "$err" > "$work/list"
    run 0 info --help
    tr -s ' \n' ' ' < "$out" | grep -qF "$(cat "$work/list")." || fail "--$option: help and message differ"
    [ "$(sed 's/,\? or / /; s/, / /g' "$work/list" | tee "$work/names" | wc -w)" -gt 4 ] || fail "--$option: few names"
    # shellcheck disable=SC2013
    for name in $(cat "$work/names"); do
        run 0 info --$option "$name"
    done
done

# Output that cannot be written is a failure.
if [ -w /dev/full ]; then
    code=0
    for words in help --help --version "train --help"; do
        code=0
        # shellcheck disable=SC2086
        "$LAMEMO" $words > /dev/full 2> "$err" || code=$?
        [ "$code" -eq 1 ] || fail "$words on a full disk gave exit $code"
        says "$err" "standard output"
    done
fi

# In Markdown every row has two cells: a bar inside one is escaped.
"$LAMEMO" help --markdown | sed -n '/^| /{s/\\|//g; p}' > "$out"
[ "$(grep -cv '^|[^|]*|[^|]*|$' "$out")" -eq 0 ] || fail "a row of the Markdown has more cells"

# The documents are those of this program.
for pair in markdown:cli.md man:lamemo.1; do
    "$LAMEMO" help "--${pair%%:*}" > "$out"
    cmp "$out" "docs/${pair#*:}" > "$err" || fail "docs/${pair#*:} is old: run scripts/gen-docs.sh"
done

# Numbers are decimal and finite, or refused with the limits.
for lr in 0x1p-3 1e-999 1e999 nan -inf "$(printf '\t0.1')" 1,5 0.5x; do
    run 2 train --lr "$lr"
    says "$err" "--lr: '"
    says "$err" "is not a number between 0 and "
done
for n in 0x10 1e2 ++4 "$(printf '\t4')" 99999999999999999999; do
    run 2 train --n-layer "$n"
    says "$err" "is not an integer between 1 and "
done

# Without a GPU, or the back-end for one, it is said which of the two is missing and what to do.
for command in "bench eval --preset tiny" "verify tests/golden/xl.safetensors"; do
    code=0
    # shellcheck disable=SC2086
    CUDA_VISIBLE_DEVICES='' "$LAMEMO" $command --device cuda > "$out" 2> "$err" || code=$?
    [ $code -eq 1 ] || fail "$command on no GPU: $code"
    grep -q -e 'this build has no CUDA back-end' -e 'no CUDA GPU found' "$err" || fail "no word of the GPU"
    says "$err" "take the device cpu"
done
