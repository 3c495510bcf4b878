# start_test.sh -- the program starts where /proc/self/exe is not the program, and ends with a message, not with a crash,
# where memory is short.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
unset OMP_WAIT_POLICY GOMP_SPINCOUNT # they keep the program from starting itself once more

run 0 prepare --out "$work/corpus" README.md
shape="--n-layer 1 --n-head 1 --d-head 8 --d-model 8 --d-inner 8 --tgt-len 8 --mem-len 8 --batch-size 4 --max-eval-steps 1"
# shellcheck disable=SC2086
run 0 train --device cpu --data "$work/corpus" --out "$work/run" --max-step 1 --no-test $shape

# A loader that is told to run it, as ldd names it: threads wait as they do without, and children are started too.
loader=$(ldd "$LAMEMO" 2> "$err" | sed -n 's/^[[:space:]]*\(\/[^ ]*\/ld[^ ]*\) .*/\1/p')
for options in "" "--argv0 other" "--inhibit-cache"; do
    [ -n "$loader" ] || break
    for words in --version "generate -q --model $work/run --device cpu --tokens 3 --prompt a"; do
        # shellcheck disable=SC2086
        OMP_DISPLAY_ENV=verbose "$LAMEMO" $words > "$work/plain" 2> "$work/plain.err" || fail "$words"
        # shellcheck disable=SC2086
        OMP_DISPLAY_ENV=verbose "$loader" $options "$LAMEMO" $words > "$out" 2> "$err" || fail "$loader $options: $words"
        cmp "$work/plain" "$out" || fail "$loader $options: $words prints something else"
        cmp "$work/plain.err" "$err" || fail "$loader $options: $words has other settings"
    done
done
if [ -n "$loader" ]; then
    # shellcheck disable=SC2086
    "$loader" "$LAMEMO" compare --data "$work/corpus" --out "$work/compared" --max-step 1 $shape xl none \
        > "$out" 2> "$err" || fail "$loader: compare"
    [ -s "$work/compared/none-s1111/last/model.safetensors" ] || fail "$loader: compare trained nothing"
fi

# limited KBYTES ARG...: runs the program in so much address space.
# shellcheck disable=SC3045 # Linux shells have these
limited() {
    kbytes=$1
    shift
    code=0
    (ulimit -v "$kbytes" && ulimit -c 0 && exec "$LAMEMO" "$@") > "$out" 2> "$err" || code=$?
}

# From where it can be loaded to where it has enough.  With a sanitizer it can be loaded nowhere here.
limited 300000 --version
if [ $code -eq 0 ]; then
    code=1
    kbytes=30000
    while [ $code -ne 0 ]; do
        limited $((kbytes + 2000)) --version
    done
    enough=$((kbytes + 60000))
    while [ "$kbytes" -lt $enough ]; do
        limited $((kbytes + 3000)) eval --model "$work/run" --device cpu --threads 2 --data "$work/corpus"
        [ $code -le 1 ] || fail "eval in $kbytes kB of address space exited with $code"
        [ $code -eq 0 ] || [ -s "$err" ] || fail "eval in $kbytes kB of address space failed without a word"
    done
    [ $code -eq 0 ] || fail "eval needs more than $kbytes kB of address space"
fi
