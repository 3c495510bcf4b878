#!/bin/sh
# completion_test.sh -- manual pages and shell completion know what the option tables know.
. tests/cli/lib.sh

# complete LINE...: what bash offers for the last word.
cat > "$work/complete.bash" << 'END'
. "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_lamemo
printf '%s\n' "${COMPREPLY[@]}"
END
run 0 help --completion bash
cp "$out" "$work/lamemo.bash"
complete() { (cd "$work" && bash complete.bash lamemo.bash "$@") > "$out" 2> "$err" || fail "bash completion of $*"; }
offers() { grep -qxF -e "$1" "$out" || fail "$1 is not offered"; }

complete lamemo ""
offers train
offers generate
complete lamemo tr
[ "$(cat "$out")" = train ] || fail "tr is not completed to train alone"
complete lamemo train --memory ""
offers lamemo
offers xl
complete lamemo train --memory = x
[ "$(cat "$out")" = xl ] || fail "--memory=x is not completed"
complete lamemo train --mem-l
[ "$(cat "$out")" = --mem-len ] || fail "--mem-l is not completed"
mkdir "$work/my model"
complete lamemo generate --model ""
offers wiki11m
offers "my model"
complete lamemo train --lr ""
[ -z "$(tr -d '\n' < "$out")" ] || fail "files are offered for a number"

# Every documented option is there, and has a place in the page of its command.
"$LAMEMO" help --markdown > "$work/cli.md"
for shell in bash zsh fish; do
    "$LAMEMO" help --completion $shell > "$work/script.$shell"
done
"$LAMEMO" help > "$work/overview"
sed -n '/^Commands/,/^$/s/^  \([a-z]*\) .*/\1/p' "$work/overview" > "$work/commands"
[ "$(wc -l < "$work/commands")" -gt 10 ] || fail "few commands"
while read -r command; do
    "$LAMEMO" help --man "$command" > "$work/page"
    grep -q "^lamemo.-$command " "$work/page" || fail "no manual page of $command"
    grep -q "lamemo.-$command" docs/lamemo.1 || fail "lamemo(1) does not name lamemo-$command(1)"
    grep -q "seen_subcommand_from $command'" "$work/script.fish" || fail "fish does not know $command"
    grep -q "^        $command) _arguments" "$work/script.zsh" || fail "zsh does not know $command"
    sed -n "/^## .*lamemo $command\b/,/^## /p" "$work/cli.md" | grep -o '`--[a-z0-9-]*' | tr -d '`' | sort -u > "$work/options"
    [ -s "$work/options" ] || [ "$command" = help ] || fail "no options of $command in the Markdown"
    while read -r option; do
        (cd "$work" && bash complete.bash lamemo.bash lamemo "$command" "$option") > "$out"
        offers "$option"
        grep -qF -e "$(printf %s "$option" | sed 's/-/\\-/g')" "$work/page" || fail "$option is not in the page of $command"
    done < "$work/options"
done < "$work/commands"

for shell in zsh fish; do
    if command -v $shell > /dev/null; then
        $shell -n "$work/script.$shell" > "$out" 2> "$err" || fail "$shell does not understand its completion"
    else
        echo "skipped: $shell is not installed"
    fi
done
if command -v fish > /dev/null; then
    HOME=$work fish --no-config -c "source '$work/script.fish'; complete -C 'lamemo train --memory '" > "$out" 2> "$err"
    grep -q '^xl' "$out" || fail "fish does not complete --memory"
fi
run 2 help --completion tcsh
says "$err" "tcsh"
run 2 help --man nothing
