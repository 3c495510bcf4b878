#!/bin/sh
# Processes with a GPU each, on the kernels without a GPU and a library that stands in for NCCL: the same bytes as one
# process, by NCCL and staged through the host, whole and with a divided optimiser's state.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh

command -v mpirun > /dev/null || { echo "skipped: mpirun is not installed (openmpi-bin)"; exit 77; }
[ -e "$LAMEMO_MPI_MODULE" ] || { echo "skipped: lamemo-mpi.so was not built (libopenmpi-dev)"; exit 77; }
OMP_NUM_THREADS=1
OMPI_ALLOW_RUN_AS_ROOT=1
OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
LD_LIBRARY_PATH=$NCCL_HOST${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export OMP_NUM_THREADS OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM LD_LIBRARY_PATH

seq 1 500 | tr '\n' ' ' > "$work/text"
run 0 prepare "$work/text" --out "$work/corpus"
options="--data $work/corpus --device cuda --memory lamemo --n-layer 1 --d-model 16 --n-head 1 --d-head 16 --d-inner 16 \
    --tgt-len 8 --mem-len 8 --batch-size 4 --leaves 4 --max-step 2 --eval-interval 0 --max-eval-steps 1 \
    --eval-batch-size 2 --no-test"

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

train one.adam 1 "" --optim adam
train four 4 "exchange: between GPUs, by NCCL 2.28.9" --optim adam
same one.adam four
train one.muon 1 "" --optim muon
train zero 2 "exchange: between GPUs" --optim muon --zero 1
same one.muon zero

# One process may try the library's own sum alone, with the same bytes.
LAMEMO_COMM=nccl train alone 1 "exchange: between GPUs" --optim adam --reduce fast
same one.adam alone

# Two processes on one card, and whoever asks for it: staged through the host.
CUDA_HOST_ONE_CARD=1 train card 2 "exchange: through host memory, by Open MPI" --optim muon --zero 1
says "$err" "ranks 0 and 1 share one GPU"
same one.muon card
LAMEMO_COMM=staged train staged 2 "LAMEMO_COMM=staged" --optim adam --reduce fast

# Who insists on NCCL is told why it cannot be.
code=0
# shellcheck disable=SC2086
CUDA_HOST_ONE_CARD=1 LAMEMO_COMM=nccl timeout 120 mpirun -n 2 --oversubscribe --bind-to none "$LAMEMO" train $options \
    --out "$work/no" > "$out" 2> "$err" || code=$?
[ "$code" -ne 0 ] || fail "NCCL with one card for two"
says "$err" "LAMEMO_COMM=nccl: ranks 0 and 1 share one GPU, which NCCL refuses"
