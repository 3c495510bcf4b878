#!/bin/sh
# Processes with a GPU each, on the kernels without a GPU and a library that stands in for NCCL: the same bytes as one
# process, by NCCL and staged through the host, beside the backward pass and after it, with CUDA graphs and without, whole
# and with a divided optimiser's state.  The GPU that is emulated does its work as late as it may (cuda_host/runtime.h):
# sums that began before a layer's gradients are there would be others.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh

command -v mpirun > /dev/null || { echo "skipped: mpirun is not installed (openmpi-bin)"; exit 77; }
[ -e "$LAMEMO_MPI_MODULE" ] || { echo "skipped: lamemo-mpi.so was not built (libopenmpi-dev)"; exit 77; }
OMP_NUM_THREADS=1
OMPI_ALLOW_RUN_AS_ROOT=1
OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
LD_LIBRARY_PATH=$NCCL_HOST${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
# What the MPI library does not free is not ours to find.
ASAN_OPTIONS=detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}
export OMP_NUM_THREADS OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM LD_LIBRARY_PATH ASAN_OPTIONS

seq 1 500 | tr '\n' ' ' > "$work/text"
run 0 prepare "$work/text" --out "$work/corpus"
# The fourth step replays what the third one captured.
options="--data $work/corpus --device cuda --memory lamemo --n-layer 2 --d-model 16 --n-head 1 --d-head 16 --d-inner 16 \
    --tgt-len 8 --mem-len 8 --batch-size 4 --leaves 4 --max-step 4 --eval-interval 0 --max-eval-steps 1 \
    --eval-batch-size 2 --no-test"
export CUDA_HOST_TELL=1

# train NAME N OPTION...: N processes train a run; it must say how they exchange.
train() {
    name=$1
    n=$2
    says=$3
    shift 3
    code=0
    # shellcheck disable=SC2086
    if [ "$n" -eq 1 ]; then
        "$LAMEMO" train $options --out "$work/$name" "$@" > "$out" 2> "$err" || code=$?
    else
        timeout 300 mpirun -n "$n" --oversubscribe --bind-to none "$LAMEMO" train $options --out "$work/$name" "$@" \
            > "$out" 2> "$err" || code=$?
    fi
    [ "$code" -eq 0 ] || { cat "$err"; fail "$name: exit status $code"; }
    [ -z "$says" ] || says "$err" "$says"
}
same() {
    for file in model optimizer memory.00000 memory.00003; do
        cmp "$work/$1/last/$file.safetensors" "$work/$2/last/$file.safetensors" || fail "$1 and $2 differ in $file"
    done
}

replays() { grep -q '^cuda_host: [1-9][0-9]* graphs launched' "$err" || fail "no graph was launched"; }
nccl="exchange: between GPUs, by NCCL 2.28.9"

train one.adam 1 "" --optim adam
replays
train four 4 "$nccl, beside the backward pass" --optim adam
replays
same one.adam four
train one.muon 1 "" --optim muon
train zero 2 "$nccl, beside the backward pass" --optim muon --zero 1
same one.muon zero

# After the backward pass; and beside it without graphs, which are not wanted or cannot be made.
train apart 2 "$nccl" --optim adam --no-overlap
grep -q 'beside' "$err" && fail "--no-overlap"
same one.adam apart
LAMEMO_GRAPHS=0 train plain 2 "$nccl, beside" --optim adam
says "$err" "cuda_host: 0 graphs launched"
same one.adam plain
CUDA_HOST_NO_GRAPHS=1 train broken 2 "$nccl, beside" --optim adam
same one.adam broken

# One process may try the library's own sum alone, with the same bytes.
LAMEMO_COMM=nccl train alone 1 "$nccl, beside" --optim adam --reduce fast
same one.adam alone

# Two processes on one card, and whoever asks for it: staged through the host.
staged="exchange: through host memory, by Open MPI"
CUDA_HOST_ONE_CARD=1 train card 2 "$staged" --optim muon --zero 1
says "$err" ", beside the backward pass (ranks 0 and 1 share one GPU, which NCCL refuses)"
replays
same one.muon card
LAMEMO_COMM=staged train staged 4 "$staged" --optim adam
same one.adam staged
LAMEMO_COMM=staged train fast 2 "LAMEMO_COMM=staged" --optim adam --reduce fast

# Who insists on NCCL is told why it cannot be.
code=0
# shellcheck disable=SC2086
CUDA_HOST_ONE_CARD=1 LAMEMO_COMM=nccl timeout 120 mpirun -n 2 --oversubscribe --bind-to none "$LAMEMO" train $options \
    --out "$work/no" > "$out" 2> "$err" || code=$?
[ "$code" -ne 0 ] || fail "NCCL with one card for two"
says "$err" "LAMEMO_COMM=nccl: ranks 0 and 1 share one GPU, which NCCL refuses"
