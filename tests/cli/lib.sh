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

# says FILE TEXT: the text is somewhere in $out or $err.
says() {
    grep -qF -e "$2" "$1" || fail "'$2' is not in the output"
}
