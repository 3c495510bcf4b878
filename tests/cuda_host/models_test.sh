#!/bin/sh
# Whole models on the kernels without a GPU: traces, training and decoding.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh

# verify PRECISION TRACE...: losses, gradients, states and decoding of the published models.
verify() {
    precision=$1
    shift
    for trace in "$@"; do
        run 0 verify --device cuda --precision "$precision" "tests/golden/$trace.safetensors"
    done
}
verify float32 lamemo_train lamemo_adaptive_div2 xl_samelength compressive_remainder infinite_block
verify bf16 lamemo_heads compressive_remainder infinite_block

# train NAME OPTION...: six steps of LaMemo with dropout; NAME.losses receives step, loss and norm.  The fast recipe
# (Muon, even rows) in three groups, unless $shape says otherwise.
shape="--d-inner 96 --tgt-len 24 --mem-len 24 --batch-size 3 --batch-chunk 3 --recipe fast"
run 0 prepare --out "$work/data" docs/ARCHITECTURE.md
train() {
    name=$1
    shift
    # shellcheck disable=SC2086
    run 0 train --data "$work/data" --out "$work/$name" --memory lamemo \
        --n-layer 2 --d-model 64 --n-head 2 --d-head 32 $shape --lr 0.01 \
        --warmup-step 2 --dropout 0.1 --max-step 6 --log-interval 1 --eval-interval 0 --max-eval-steps 2 --no-test "$@"
    sed -n 's/.*"step": *\([0-9]*\),.*"loss": *\([0-9.]*\),.*"grad_norm": *\([0-9.]*\).*/\1 \2 \3/p' \
        "$work/$name/metrics.jsonl" > "$work/$name.losses"
}
# near NAME PART [CPU]: no loss is off by more than this part of the cpu's.
near() {
    paste -d ' ' "$work/${3:-cpu}.losses" "$work/$1.losses" | awk -v part="$2" '
        { off = $5 / $2 - 1; bad += !($1 == $4 && off < part && off > -part) }
        END { exit !(NR == 6 && bad == 0) }' || {
        paste "$work/${3:-cpu}.losses" "$work/$1.losses"
        fail "training on cuda ($1) is not that of cpu"
    }
}
train cpu --device cpu
train float32 --device cuda --precision float32
near float32 0.00001
train bf16 --device cuda --precision bf16
near bf16 0.005

# Decoding chooses the same bytes.
run 0 generate --model "$work/cpu" --device cpu "The table" -n 40 --temp 0
mv "$out" "$work/want"
run 0 generate --model "$work/cpu" --device cuda --precision float32 "The table" -n 40 --temp 0
cmp "$out" "$work/want" || fail "cuda decodes something else than cpu"

# A token of one stream as one kernel, all its operations, is the token of a kernel each.  (Blocks run one after the other
# here, so each operation is a launch of that kernel.)
kept=$shape
shape="$shape --d-inner 544"
train wide --device cpu
shape=$kept
run 0 generate --model "$work/wide" --device cuda "The table" -n 40 --seed 3
mv "$out" "$work/want"
LAMEMO_PERSISTENT=0
export LAMEMO_PERSISTENT
run 0 generate --model "$work/wide" --device cuda "The table" -n 40 --seed 3
unset LAMEMO_PERSISTENT
cmp "$out" "$work/want" || fail "a token as one kernel is another"

# A graph that cannot be made is done without.
CUDA_HOST_NO_GRAPHS=1
export CUDA_HOST_NO_GRAPHS
train ungraphed --device cuda --precision bf16
cmp "$work/bf16.losses" "$work/ungraphed.losses" || fail "where a graph cannot be made training differs"
unset CUDA_HOST_NO_GRAPHS

# CUDA graphs, which training replays from its third step on, change nothing.
export LAMEMO_GRAPHS=0
train plain --device cuda --precision bf16
cmp "$work/bf16.losses" "$work/plain.losses" || fail "without CUDA graphs training differs"

unset LAMEMO_GRAPHS

# Exact arithmetic: the kernels give the bits of the reference, segment by segment and token by token.
for trace in lamemo_train xl_samelength; do
    run 0 verify --device cuda --numerics exact "tests/golden/$trace.safetensors"
done
run 0 score --model "$work/cpu" --device ref --numerics exact --json --per-token "The table of the memories"
mv "$out" "$work/want"
run 0 score --model "$work/cpu" --device cuda --numerics exact --json --per-token "The table of the memories"
cmp "$out" "$work/want" || fail "cuda scores something else than ref in exact arithmetic"
run 0 generate --model "$work/cpu" --device cpu --numerics exact "The table" -n 40 --seed 5
mv "$out" "$work/want"
run 0 generate --model "$work/cpu" --device cuda --numerics exact "The table" -n 40 --seed 5
cmp "$out" "$work/want" || fail "cuda draws something else than cpu in exact arithmetic"

# Hopper: its own kernels, for which the shapes above are too small, and kernels of decoding that may begin early.
CUDA_HOST_HOPPER=1
export CUDA_HOST_HOPPER
shape="--d-inner 128 --tgt-len 72 --mem-len 80 --batch-size 2 --recipe paper"
train hopper_cpu --device cpu
train hopper --device cuda --precision bf16
near hopper 0.005 hopper_cpu
run 0 generate --model "$work/cpu" --device cpu "The table" -n 40 --temp 0
mv "$out" "$work/want"
run 0 generate --model "$work/cpu" --device cuda --precision float32 "The table" -n 40 --temp 0
cmp "$out" "$work/want" || fail "cuda decodes something else on Hopper than cpu"
