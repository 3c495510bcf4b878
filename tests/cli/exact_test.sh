#!/bin/sh
# Exact arithmetic in the program: the same bytes come out whatever computes them.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh

run 0 prepare --out "$work/data" docs/ARCHITECTURE.md
run 0 train --data "$work/data" --out "$work/run" --memory lamemo --n-layer 2 --d-model 48 --n-head 3 --d-head 16 \
    --d-inner 80 --tgt-len 20 --mem-len 20 --batch-size 4 --max-step 8 --device cpu --eval-interval 0 \
    --max-eval-steps 2 --no-test

# same COMMAND OPTION...: prints what it printed first, whatever the options are.
head -c 700 docs/exact.md > "$work/text"
ways='--device=ref|--device=cpu --threads=1|--device=cpu --threads=2|--device=cpu --threads=7'
compare() {
    rm -f "$work/want"
    IFS='|'
    for way in $ways; do
        unset IFS
        # shellcheck disable=SC2086
        run 0 "$@" --numerics exact $way
        [ -f "$work/want" ] || cp "$out" "$work/want"
        cmp "$out" "$work/want" || fail "$1 $way prints something else"
    done
    unset IFS
}
compare score --model "$work/run" --json --per-token "@$work/text"
compare generate --model "$work/run" "The table" -n 60 --seed 3
for isa in x86-64-v2 x86-64-v3 x86-64-v4; do
    if LAMEMO_ISA=$isa "$LAMEMO" verify --device cpu --numerics exact tests/golden/xl_train.safetensors > "$work/isa" 2>&1; then
        export LAMEMO_ISA=$isa
        run 0 generate --model "$work/run" "The table" -n 60 --seed 3 --numerics exact --device cpu
        unset LAMEMO_ISA
        cmp "$out" "$work/want" || fail "$isa draws something else"
    else
        grep -q 'LAMEMO_ISA' "$work/isa" || fail "verify on $isa: $(cat "$work/isa")"
    fi
done

# An int8 export of the model computes the same.
run 0 export --model "$work/run" --out "$work/int8" --dtype int8
run 0 generate --model "$work/int8" "The table" -n 60 --seed 3 --numerics exact --device cpu
cmp "$out" "$work/want" || fail "the int8 folder draws something else"

# Losses and states are those of the traces, as far as 8 bits go.
for trace in lamemo lamemo_prenorm lamemo_adaptive_div2 xl xl_adaptive_demb none_learned none_absolute; do
    run 0 verify --numerics exact --device cpu "tests/golden/$trace.safetensors"
done
run 0 verify --numerics exact --device ref tests/golden/lamemo.safetensors

# What cannot be exact is refused by name.
run 1 verify --numerics exact --device cpu tests/golden/compressive.safetensors
grep -q 'memory compressive has none.*none, xl, lamemo' "$err" || fail "compressive is not refused by name"
run 2 score --model "$work/run" --numerics exact --weights float32 "a"
grep -q 'int8' "$err" || fail "weights in float32 are not refused"
