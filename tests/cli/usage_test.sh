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
sed -En '/^Batches and memory/q; s/^(  -., |      )--([a-z-]*).*/\2/p' "$out" | tr '\n' ' ' > "$work/first"
[ "$(cat "$work/first")" = "data out preset memory init-from resume overwrite recipe lr max-step max-time batch-size " ] ||
    fail "the first options of train are: $(cat "$work/first")"

# Every listed command has a --help that begins with its usage.
run 0 --help
sed -n '/^Commands/,/^$/s/^  \([a-z]*\) .*/\1/p' "$out" > "$work/commands"
[ -s "$work/commands" ] || fail "no commands listed"
while read -r command; do
    run 0 "$command" --help
    says "$out" "Usage: lamemo $command"
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
run 2 help a b
says "$err" "what is 'b' for?"

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
