# terminal_test.sh -- what comes from outside never reaches a terminal as a command, and pipes get every byte.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
export OMP_NUM_THREADS=1
tools=$(dirname "$LAMEMO")/tests
escape=$(printf '\033')

# A tensor called so that it would clear the screen: messages show it, whatever they go to.
printf '%s' '{"\u001b[2J\nfake: line":{"dtype":"F7","shape":[1],"data_offsets":[0,4]}}' > "$work/header"
size=$(wc -c < "$work/header")
{ printf "\\$(printf %03o "$size")\0\0\0\0\0\0\0"; cat "$work/header"; printf 'abcd'; } > "$work/evil.safetensors"
run 1 import "$work/evil.safetensors" --out "$work/x"
says "$err" 'tensor \x1b[2J\x0afake: line: unknown dtype F7'
! grep -q "$escape" "$err" || fail "an escape character in a message"
run 2 info --"${escape}[31m"
says "$err" "unknown option '--\\x1b[31m'"

# What a model writes, and the prompt: in a pipe as it is, byte for byte.
"$tools/make_model" "$work/model" lamemo 3
prompt="red ${escape}[31m"
run 0 generate --model "$work/model" --prompt "$prompt" --echo -n 3
grep -qF "$prompt" "$out" || fail "a pipe did not get the prompt as it is"
run 0 generate --model "$work/model" --prompt "$prompt" --echo -n 3 --samples 2
[ "$(grep -cF "$prompt" "$out")" -eq 2 ] || fail "a pipe did not get the prompts as they are"

# On a terminal everything is shown and nothing obeyed; a newline is still one.
script -qec true /dev/null > "$out" 2> "$err" < /dev/null || { echo "no script(1): terminals are not tested"; exit 77; }
# show ARG...: runs the program on a terminal; what appeared is in $out.
show() {
    line=$(for word in "$LAMEMO" "$@"; do printf "'%s' " "$word"; done)
    script -qec "$line" /dev/null < /dev/null > "$work/screen" 2> "$err" || fail "script(1) on $line failed"
    tr -d '\r' < "$work/screen" > "$out"
    ! tr -d '\n\t' < "$out" | LC_ALL=C grep -q '[[:cntrl:]]' || fail "a control character reached the terminal"
}
show generate --model "$work/model" --prompt "$prompt
two" --echo -n 400
says "$out" 'red \x1b[31m'
grep -q '^two' "$out" || fail "a newline was not kept"
show generate --model "$work/model" --prompt "$prompt" --echo -n 3 --samples 2
says "$out" 'red \x1b[31m'
show generate --model "$work/model" --prompt "$(printf '\302\23331m')" --echo -n 3 --json
says "$out" '"prompt":"\u009b31m"'

# Log and summary are on one screen: the result of the test is there once.
head -c 20000 docs/cli.md > "$work/text"
run 0 prepare -q --out "$work/corpus" "$work/text"
script -qec "'$LAMEMO' train --data '$work/corpus' --out '$work/run' --max-step 2 --n-layer 1" /dev/null < /dev/null > "$out" 2> "$err" ||
    fail "train on a terminal failed"
[ "$(grep -c 'test bpc' "$out")" -eq 1 ] || fail "the test's result is not there once"
says "$out" "best valid bpc"
