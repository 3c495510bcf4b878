#!/bin/sh
# cli_fuzz_test.sh -- the fuzzer of the program finds every kind of fault that it looks for, and none in a good command.
# Usage: cli_fuzz_test.sh CLI_FUZZ
set -eu
fuzz=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
    echo "FAIL: $*" >&2
    cat "$work/log" >&2
    exit 1
}

# seed KIND: a class whose command does that if its only file is not what it was
seed() {
    mkdir -p "$work/seeds/$1/in" "$work/keep"
    printf 'good\n' > "$work/seeds/$1/in/file"
    [ "$1" != input ] || printf 'other\n' > "$work/seeds/$1/in/other"
    printf 'fault %s in/file\n' "$1" > "$work/seeds/$1/commands"
}
# try STATUS CLASS
try() {
    code=0
    "$fuzz" --runs 3 --keep "$work/keep" "$work/seeds" "$work" "$2" > "$work/log" 2>&1 || code=$?
    [ $code -eq "$1" ] || fail "$2: exit status $code, not $1"
}
# expect KIND WORDS
expect() {
    seed "$1"
    try 1 "$1"
    grep -q "$2" "$work/log" || fail "$1 is not called '$2'"
    ls "$work/keep" | grep -q "^cli-$1-1-" || fail "$1: nothing was kept"
}
expect abort 'killed by signal 6'
expect memory 'takes too much memory'
expect wait 'waits for nothing'
expect work 'works and writes nothing'
expect deaf 'does not leave on SIGTERM'
expect number 'not finite'
expect silent 'without a message'
expect status 'exit status 17'
expect outside 'changes outside/file'
expect input 'changes in'
if nm "$fuzz" | grep -q __asan_init; then
    expect overflow 'AddressSanitizer: heap-buffer-overflow'
fi

# The same number is the same damage.
cp "$work/log" "$work/first"
try 1 input
grep -v 'ms CPU' "$work/log" > "$work/again"
try 1 input
grep -v 'ms CPU' "$work/log" | cmp -s - "$work/again" || fail "the same seed gives other damage"

# A command that does nothing wrong, and one that is wrong without any damage.
seed nothing
try 0 nothing
grep -q '3 executions' "$work/log" || fail "nothing was run"
seed outside
echo bad > "$work/seeds/outside/in/file"
try 3 outside
grep -q 'on good files: changes outside/file' "$work/log" || fail "a wrong seed goes unnoticed"
echo "the fuzzer finds what it looks for"
