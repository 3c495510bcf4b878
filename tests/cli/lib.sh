# lib.sh -- what the tests of the program share.  Source it first: sh, set -eu, a scratch folder.
# shellcheck shell=sh
# $work is a fresh folder that goes away; $out and $err hold the output of the last `run`.
set -eu
LAMEMO=${LAMEMO:?the path of the program}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=$work/.out
err=$work/.err

fail() {
    echo "FAIL: $*" >&2
    echo "--- stdout" >&2
    cat "$out" >&2
    echo "--- stderr" >&2
    cat "$err" >&2
    exit 1
}

# run CODE ARG...: runs the program and insists on its exit status.
run() {
    want=$1
    shift
    code=0
    "$LAMEMO" "$@" > "$out" 2> "$err" || code=$?
    [ "$code" -eq "$want" ] || fail "lamemo $* exited with $code, not $want"
}

# await FILE: waits until something is in it; two minutes are enough on the busiest machine.
await() {
    tries=0
    while [ ! -s "$1" ]; do
        [ $tries -lt 12000 ] || fail "nothing was written to $1"
        sleep 0.01
        tries=$((tries + 1))
    done
}

# hears PID: waits until the program would answer SIGTERM, which ends it without a word before that, or has ended.
hears() {
    tries=0
    # SigCgt's fourth hexadecimal digit from the end holds bit 14, which is SIGTERM.
    until [ ! -e "/proc/$1" ] || grep -qE '^(State:.Z|SigCgt:.*[4-7c-f]...$)' "/proc/$1/status" 2> "$work/.kill"; do
        [ $tries -lt 12000 ] || fail "process $1 does not hear SIGTERM"
        sleep 0.01
        tries=$((tries + 1))
    done
}

# halt SIGNAL PID: sends it once it is heard; the exit status is in $code.  Who does not leave in two minutes is killed.
halt() {
    hears "$2"
    kill "-$1" "$2" 2> "$work/.kill" || true # it may be done
    tries=0
    while kill -0 "$2" 2> "$work/.kill"; do
        [ $tries -ne 12000 ] || kill -KILL "$2"
        sleep 0.01
        tries=$((tries + 1))
    done
    code=0
    wait "$2" || code=$?
}

# says FILE TEXT: the text is somewhere in $out or $err.
says() {
    grep -qF -e "$2" "$1" || fail "'$2' is not in the output"
}
