# interactive_test.sh -- generate --interactive: lines from a pipe and from a terminal, and its commands.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
export OMP_NUM_THREADS=1
tools=$(dirname "$LAMEMO")/tests
"$tools/make_model" "$work/model" lamemo 3

# talk CODE LINES ARG...: an interactive session that reads the lines (printf's escapes) from a pipe.
talk() {
    want=$1
    # shellcheck disable=SC2059
    printf "$2" > "$work/lines"
    shift 2
    code=0
    "$LAMEMO" generate --model "$work/model" --interactive --temp 1.2 "$@" < "$work/lines" > "$out" 2> "$err" || code=$?
    [ "$code" -eq "$want" ] || fail "interactive exited with $code, not $want"
}
# The bytes of the output, which may be anything, as text.
shown() { od -An -c "$out" | tr -d '\n'; }

# A line goes in with its newline, an open one without: the first turn is what generate writes after that prompt.
run 0 generate --model "$work/model" --temp 1.2 --prompt "a line
" -n 30
cp "$out" "$work/want"
talk 0 'a line\n' -n 30 --stop '\xff\xfe'
cmp "$out" "$work/want" || fail "another text than generate's"
run 0 generate --model "$work/model" --temp 1.2 --prompt "a line" -n 30
cp "$out" "$work/want"
talk 0 'a line\\\n' -n 30 --stop '\xff\xfe'
cmp "$out" "$work/want" || fail "the newline of an open line"
# At temperature 0 an empty line goes on as if there had been no pause: the memory holds all that was written.
run 0 generate --model "$work/model" --temp 0 --prompt "abc" -n 60
tr -d '\n' < "$out" > "$work/want"
talk 0 'abc\\\n\n\n' -n 20 --temp 0 --stop '\xff\xfe'
[ "$(wc -l < "$out")" -ge 3 ] || fail "not three turns"
tr -d '\n' < "$out" | cmp - "$work/want" || fail "an empty line does not go on"
# Segments of its own for what is drawn (--refresh), and a prompt on the command line.
run 0 generate --model "$work/model" --temp 0 --prompt "abcdefgh" -n 25 --refresh 2 --echo
cp "$out" "$work/want"
talk 0 '' -n 25 --temp 0 --refresh 2 --stop '\xff\xfe' --prompt abcdefgh --echo
cmp "$out" "$work/want" || fail "--refresh or --prompt"
# Nothing at all, at the beginning.
run 0 generate --model "$work/model" --temp 1.2 -n 20
cp "$out" "$work/want"
talk 0 '\n' -n 20 --stop '\xff\xfe'
cmp "$out" "$work/want" || fail "an empty line at the beginning"
# Without --stop a turn ends with a line; one that is given is part of the text.
talk 0 'abc\n' -n 3000
[ "$(grep -c . "$out")" -eq 1 ] || fail "not one line: $(shown)"
[ "$(wc -c < "$out")" -lt 3000 ] || fail "the line has no end: $(shown)"
talk 0 'abc\n//\n' -n 3000 --stop e
[ "$(wc -l < "$out")" -ge 2 ] || fail "not two turns"
[ "$(tr -d '\n' < "$out" | tail -c 1)" = e ] || fail "a stop is not shown"

# Branches: what follows on one does not depend on the other; a seed makes turns the same again.
talk 0 '/set seed 7\nabc\n/set seed 8\nxyz\n' -n 20 --stop '\xff\xfe'
cp "$out" "$work/want"
talk 0 'abc\n/fork\n/branches\n/switch main\n/drop 2\n/branches\n' -n 20 --stop '\xff\xfe'
says "$err" "now on branch 2, 24 tokens"
says "$err" "* 2 "
[ "$(grep -c '^  2 ' "$err")" -eq 0 ] || fail "a branch that was dropped is there"
talk 0 '/set seed 7\nabc\n/fork b\n/set n 0\nsomething else\n/switch main\n/set n 20\n/set seed 8\nxyz\n' -n 20 --stop '\xff\xfe'
cmp "$out" "$work/want" || fail "a branch changed another"
# Saved and loaded, in the same session and in another process.
talk 0 "/set seed 7\nabc\n/save $work/a b.snap\n/set n 0\nelse\n/load $work/a b.snap\n/set n 20\n/set seed 8\nxyz\n" -n 20 --stop '\xff\xfe'
cmp "$out" "$work/want" || fail "/load is not where /save was"
says "$err" "saved branch main, 24 tokens"
talk 0 "/load $work/a b.snap\n/set seed 8\nxyz\n" -n 20 --stop '\xff\xfe'
tail -c "$(wc -c < "$out")" "$work/want" | cmp - "$out" || fail "/load in another process"
# Reset is a beginning.
talk 0 'else\n/reset\n/set seed 7\nabc\n/set seed 8\nxyz\n' -n 20 --stop '\xff\xfe'
tail -c "$(wc -c < "$work/want")" "$out" | cmp - "$work/want" || fail "/reset remembers"

# From a pipe the first mistake ends it.
while IFS='|' read -r line message; do
    talk 1 "$line\nabc\n" -n 5
    says "$err" "$message"
    [ ! -s "$out" ] || fail "something was written after '$line'"
done << END
/nothing|there is no command /nothing; /help lists them
/save|usage: /save FILE
/save $work/model/config.json|there is a file already that lamemo did not write
/save $work/none/a|none/a
/load $work/none|none
/load $work/model/vocab.json|vocab.json
/fork main|there is a branch 'main'
/fork a b|is not one word
/switch 2|there is no branch '2'
/drop main|is the current branch
/set|usage: /set NAME VALUE
/set temp|usage: /set NAME VALUE
/set temp x|--temp: 'x' is not a number between 0 and 100
/set model x|'model' is not one of tokens temp
END
"$tools/make_model" "$work/other" xl 3
printf '/save %s\n' "$work/xl.snap" | "$LAMEMO" generate -m "$work/other" -i > "$out" 2> "$err" || fail "/save of xl"
talk 1 "/load $work/xl.snap\n"
says "$err" "taken from a session of another model"
talk 0 '/set temp 0\n/set top_p 0.5\n/set n 3\n/set s 5\n/help\n/quit\nabc\n'
says "$err" "/fork [NAME]"
[ ! -s "$out" ] || fail "something was written after /quit"
head -c 1100000 /dev/zero | tr '\0' a > "$work/long"
code=0
"$LAMEMO" generate -m "$work/model" -i -n 2 < "$work/long" > "$out" 2> "$err" || code=$?
[ $code -eq 1 ] || fail "a line without an end: $code"
says "$err" "a line of more than 1048576 bytes"
for option in --json "--samples 2" "--prompts $work/lines" "-p a -p b" "-p -"; do
    # shellcheck disable=SC2086
    run 2 generate --model "$work/model" -i $option < /dev/null
    says "$err" "--interactive"
done

# On a terminal there is a prompt, mistakes are forgiven, Ctrl-C ends a continuation, and the next one ends it all.
script -qec true /dev/null > "$out" 2> "$err" < /dev/null || { echo "no script(1): terminals are not tested"; exit 77; }
mkfifo "$work/keys"
script -qec "'$LAMEMO' generate --model '$work/model' -i -n 100000000 --stop QQQQQQQQQQ" /dev/null < "$work/keys" > "$out" 2> "$err" &
terminal=$!
exec 3> "$work/keys"
# until_shown TEXT: waits until it is on the screen.
until_shown() {
    tries=0
    until grep -qaF -e "$1" "$out"; do
        [ $tries -lt 3000 ] || fail "'$1' did not appear"
        sleep 0.02
        tries=$((tries + 1))
    done
}
until_shown "/help lists commands"
printf '/bad\n' >&3
until_shown "there is no command /bad"
printf 'abc\n' >&3
size=$(wc -c < "$out")
tries=0
until [ "$(wc -c < "$out")" -gt $((size + 200)) ]; do
    [ $((tries += 1)) -lt 3000 ] || fail "nothing is written"
    sleep 0.02
done
printf '\003' >&3
printf '/fork second\n' >&3
until_shown "now on branch second"
until_shown "second> "
printf '\003' >&3
code=0
wait $terminal || code=$?
exec 3>&-
[ $code -eq 130 ] || fail "the last Ctrl-C: $code"
says "$out" "lamemo generate: stopped"
