#!/bin/sh
# Several processes that share a run: the same bytes whatever their number, resuming with another number, and what
# happens when one of them is killed, stopped, told to stop, or has no room on its disk.
[ ! -w /dev/shm ] || export TMPDIR=/dev/shm # hundreds of fsyncs; no claim is about them
. tests/cli/lib.sh

command -v mpirun > /dev/null || { echo "skipped: mpirun is not installed (openmpi-bin)"; exit 77; }
[ -e "$(dirname "$LAMEMO")/lamemo-mpi.so" ] || { echo "skipped: lamemo-mpi.so was not built (libopenmpi-dev)"; exit 77; }
OMP_NUM_THREADS=1
OMPI_ALLOW_RUN_AS_ROOT=1
OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMP_NUM_THREADS OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
# What the MPI library does not free is not ours to find.
ASAN_OPTIONS=detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}
export ASAN_OPTIONS

seq 1 6000 | tr '\n' ' ' > "$work/text"
run 0 prepare "$work/text" --out "$work/corpus"

shape="--preset tiny --n-layer 2 --d-model 16 --n-head 2 --d-head 8 --d-inner 32 --tgt-len 8 --mem-len 8 --threads 1"
length="--batch-size 8 --max-step 6 --eval-interval 3 --eval-batch-size 4 --max-eval-steps 20 --no-test"
options="--data $work/corpus $shape $length --leaves 4 -q"

# ranks CODE N ARG...: runs the program in N processes; each leaves its number in pid.RANK.  mpirun's own status may
# be that of any process: 0 or not is what counts.
ranks() {
    want=$1
    n=$2
    shift 2
    code=0
    timeout 120 mpirun -n "$n" --oversubscribe --bind-to none \
        sh -c 'echo $$ > "$0/pid.$OMPI_COMM_WORLD_RANK"; exec "$@"' "$work" "$LAMEMO" "$@" > "$out" 2> "$err" || code=$?
    [ "$code" -ne 124 ] || fail "$n processes hang: $*"
    [ $((code != 0)) -eq "$want" ] || fail "$n processes exited with $code: $*"
}

norms() { sed -n 's/.*"grad_norm": *\([^,}]*\).*/\1/p' "$1/metrics.jsonl"; }

same() { # same A B: the model, the moments and every memory
    for file in model optimizer memory.00000 memory.00001 memory.00002 memory.00003; do
        cmp "$work/$1/last/$file.safetensors" "$work/$2/last/$file.safetensors" || fail "$1 and $2 differ in $file"
    done
    cmp "$work/$1/best/model.safetensors" "$work/$2/best/model.safetensors" || fail "$1 and $2 differ in best"
}

# --- the number of processes does not change the result, nor does a divided optimiser's state ---
for memory in none xl compressive infinite lamemo; do
    # shellcheck disable=SC2086
    for optim in adam muon; do
        run 0 train $options --memory $memory --optim $optim --log-interval 1 --out "$work/1"
        for n in 2 4; do
            # Each kind once with whole and once with divided state.
            zero=$([ $optim$n = adam2 ] || [ $optim$n = muon4 ] && echo 1 || echo 0)
            # And with the sums beside the backward pass or after it.
            apart=$([ $n = 2 ] || echo --no-overlap)
            ranks 0 $n train $options --memory $memory --optim $optim --log-interval 1 --zero "$zero" $apart \
                --out "$work/n"
            same 1 n
            # The gradient's norm, by which every process clips, is that of one process in every step.
            norms "$work/1" > "$work/norms.1"
            norms "$work/n" > "$work/norms.n"
            [ "$(wc -l < "$work/norms.1")" -eq 6 ] || fail "a norm for every step"
            cmp "$work/norms.1" "$work/norms.n" || fail "$memory, $optim, $n processes: other norms"
            rm -rf "$work/n"
        done
        rm -rf "$work/1"
    done
done

# An adaptive softmax: a cluster that only some processes have met is updated by all, or by none.
# shellcheck disable=SC2086
{
    run 0 train $options --cutoffs 60,200 --div-val 2 --out "$work/1"
    ranks 0 4 train $options --cutoffs 60,200 --div-val 2 --out "$work/n"
    same 1 n
    # The sum of the library is another one, but nearly the same.
    ranks 0 2 train $options --reduce fast --out "$work/fast"
    [ -s "$work/fast/best/model.safetensors" ] || fail "--reduce fast leaves no model"
    rm -rf "$work/n"
}

# --- one line a thing, from rank 0; every record once ---
# shellcheck disable=SC2086
ranks 0 2 train --data "$work/corpus" $shape $length --log-interval 3 -v --out "$work/n"
[ "$(grep -c '^debug: rank [01] on .*: compute .* s, wait .* s, exchange .* s; beside the backward pass ' "$err")" -eq 2 ] ||
    fail "-v says where the time of every rank went"
[ "$(grep -c '^leaves: 2 of 4 streams, on 2 processes by Open MPI' "$err")" -eq 1 ] || fail "leaves are the processes"
[ "$(grep -c '"valid_loss"' "$work/n/metrics.jsonl")" -eq 2 ] || fail "two evaluations are two records"
[ "$(grep -c 'best valid' "$out")" -eq 1 ] || fail "one result"
rm -rf "$work/n"

# --- resumed 4 -> 1 -> 2 is the run that never stopped, with divided state here and there ---
# shellcheck disable=SC2086
{
    run 0 train $options --max-step-scheduler 9 --max-step 9 --out "$work/whole"
    for zero in 0 1; do
        rm -rf "$work/parts"
        ranks 0 4 train $options --zero $zero --max-step-scheduler 9 --max-step 3 --out "$work/parts"
        run 0 train --out "$work/parts" --resume --max-step 6 --threads 1 -q --no-test
        ranks 0 2 train --out "$work/parts" --resume --zero $((1 - zero)) --max-step 9 --threads 1 -q --no-test
        same whole parts
    done
    ranks 1 3 train --out "$work/parts" --resume --max-step 12 --threads 1 -q
    says "$err" "--leaves 4 cannot be shared out to 3 processes"
    [ "$(grep -c 'cannot be shared out' "$err")" -eq 1 ] || fail "one message, not one of each process"
}

# --- wrong use: one message ---
# shellcheck disable=SC2086
{
    ranks 1 2 train $options --nonsense --out "$work/x"
    [ "$(grep -c nonsense "$err")" -eq 1 ] || fail "one message, not one of each process"
    ranks 1 2 train $options --leaves 1 --out "$work/x"
    says "$err" "--leaves 1 cannot be shared out to 2 processes"
    run 0 train --data "$work/corpus" $shape $length -q --out "$work/alone"
    ranks 1 2 train --out "$work/alone" --resume --max-step 9
    says "$err" "2 processes: the run was begun without --leaves"
    [ ! -e "$work/x" ] || fail "nothing is half made"
    LAMEMO_MPI_MODULE=$work/none.so ranks 1 2 train $options --out "$work/x"
    says "$err" "2 processes were started, but MPI cannot be loaded"
}

# --- accidents ---
endless="--data $work/corpus $shape --batch-size 8 --leaves 4 -q --max-step 1000000 --save-interval 5 --eval-interval 0"

# accident SIGNAL RANK N ARG...: sends it to one process of a run that has a checkpoint; all must leave.
accident() {
    signal=$1
    victim=$2
    n=$3
    shift 3
    rm -rf "$work/run" "$work"/pid.*
    # shellcheck disable=SC2086
    ranks 1 "$n" train $endless --out "$work/run" "$@" &
    job=$!
    await "$work/run/last/CRC32SUMS"
    kill -s "$signal" "$(cat "$work/pid.$victim")"
    wait $job || fail "$signal to rank $victim"
}

# resumes: the run goes on, in another number of processes, from what it says.
resumes() {
    step=$(sed -n 's/^ "step": \([0-9]*\),$/\1/p' "$work/run/last/training_state.json")
    run 0 train --out "$work/run" --resume --max-step $((step + 1)) --eval-interval 0 --threads 1 --no-test
    says "$err" "resumed at step $step"
}

host=$(uname -n)
# When mpirun misses a process it ends the others, at once or after these seconds, which it waits in any case.  On a busy
# machine their last words may take longer than the one second that is the default.
patience() { export OMPI_MCA_odls_base_sigkill_timeout="$1"; }
patience 8
accident KILL 1 2
says "$err" "lamemo train: after step "
says "$err" ": rank 1 on $host has ended; the last good checkpoint is $work/run/last, step "
[ "$(grep -c '^lamemo' "$err")" -eq 1 ] || fail "one message"
resumes
accident KILL 0 4
says "$err" "rank 0 on $host has ended; the last good checkpoint is $work/run/last, step "
resumes
patience 1
rm -rf "$work/run" "$work"/pid.*
# shellcheck disable=SC2086
ranks 1 4 train $endless --out "$work/run" &
job=$!
await "$work/run/last/CRC32SUMS"
cat "$work"/pid.* | xargs kill -s KILL
wait $job || fail "KILL to all"
resumes
# Seconds in which a busy machine writes a checkpoint, for which the others wait.
accident STOP 1 4 --comm-timeout 10
says "$err" "rank 1 on $host does not answer"
says "$err" "; the last good checkpoint is $work/run/last, step "
[ "$(grep -c '^lamemo' "$err")" -eq 1 ] || fail "one message"
resumes
patience 8
accident TERM 1 2
says "$err" "stopped at step "
says "$err" ", saved in $work/run/last"
resumes

patience 1

# A full disk: the limit on the length of a file of rank 1 alone, which writes nothing but its memories.
code=0
# shellcheck disable=SC2016,SC2086
timeout 120 mpirun -n 2 --oversubscribe --bind-to none \
    sh -c '[ "$OMPI_COMM_WORLD_RANK" = 0 ] || ulimit -f 8; exec "$0" "$@"' "$LAMEMO" \
    train $endless --mem-len 64 --batch-size 64 --out "$work/full" > "$out" 2> "$err" || code=$?
[ "$code" -ne 0 ] && [ "$code" -ne 124 ] || fail "a full disk: exit status $code"
says "$err" "rank 1 on $host: "
says "$err" "memory.00002.safetensors"
says "$err" "there is no checkpoint yet"
[ ! -e "$work/full/last" ] && [ ! -e "$work/full/last.new" ] || fail "a checkpoint that is not whole"

# Rank 0 runs out of room while the others send it their moments: nobody is left waiting, and the checkpoint before it
# stays.
rm -rf "$work/run" "$work"/pid.*
# shellcheck disable=SC2086
ranks 1 2 train $endless --zero 1 --out "$work/run" &
job=$!
await "$work/run/last/CRC32SUMS"
prlimit --pid "$(cat "$work/pid.0")" --fsize=$(($(wc -c < "$work/run/last/model.safetensors") + 1000))
wait $job || fail "a full disk of rank 0"
says "$err" "lamemo train: after step "
says "$err" ": rank 0 on $host: "
says "$err" "optimizer.safetensors"
says "$err" "; the last good checkpoint is $work/run/last, step "
[ ! -e "$work/run/last.new" ] || fail "a checkpoint that is not whole"
resumes

# All of them run out of room, as on a disk that they share: they fail at different files, and the first one is named.
rm -rf "$work/run" "$work"/pid.*
# shellcheck disable=SC2086
ranks 1 4 train $endless --mem-len 64 --batch-size 64 --out "$work/run" &
job=$!
await "$work/run/last/CRC32SUMS"
# They stand still meanwhile, or the first one would be gone before the last one has its limit.
cat "$work"/pid.* | xargs kill -s STOP
for rank in 0 1 2 3; do
    prlimit --pid "$(cat "$work/pid.$rank")" --fsize=100
done
cat "$work"/pid.* | xargs kill -s CONT
wait $job || fail "a full disk"
says "$err" "lamemo train: after step "
grep -q "rank [0-3] on $host: " "$err" || fail "no rank is named"
says "$err" "; the last good checkpoint is $work/run/last, step "
[ "$(grep -c '^lamemo' "$err")" -eq 1 ] || fail "one message"
[ ! -e "$work/run/last.new" ] || fail "a checkpoint that is not whole"

# --- eval: columns are shared out, evenly or not; one result ---
number() { sed -n 's/.*"nats": *\([0-9.]*\).*/\1/p' "$out"; }
# shellcheck disable=SC2086
{
    run 0 eval --model "$work/whole" --data "$work/corpus" -b 4 --threads 1 --json
    alone=$(number)
    for n in 2 3; do
        ranks 0 $n eval --model "$work/whole" --data "$work/corpus" -b 4 --threads 1 --json -q
        [ "$(wc -l < "$out")" -eq 1 ] || fail "one result of $n processes"
        awk -v a="$alone" -v b="$(number)" 'BEGIN { exit !(a > 0 && (a - b) ^ 2 < 1e-10) }' || fail "eval in $n processes"
    done
    ranks 1 2 eval --model "$work/none" --data "$work/corpus"
    [ "$(grep -c '^lamemo eval' "$err")" -eq 1 ] || fail "one message, not one of each process"
}

# --- compare: each process trains some of the runs; one table has them all ---
# shellcheck disable=SC2086
{
    small="--data $work/corpus $shape --batch-size 8 --max-step 2 --eval-interval 0 --eval-batch-size 4 --max-eval-steps 9"
    run 0 compare $small --out "$work/alone.cmp" -q xl none lamemo
    ranks 0 2 compare $small --out "$work/shared.cmp" -q xl none lamemo
    for model in xl none lamemo; do
        grep -q "^$model  *[0-9]" "$out" || fail "the table of two processes has no row of $model"
        cmp "$work/alone.cmp/$model-s1111/best/model.safetensors" "$work/shared.cmp/$model-s1111/best/model.safetensors" ||
            fail "compare: $model differs"
    done
}

# --- the projection ---
run 0 info --preset tiny --ranks 4 --step-ms 10 --data "$work/corpus"
[ "$(grep -c ' %' "$out")" -eq 3 ] || fail "1, 2 and 4 processes are three rows"
says "$out" "a step of one process: 10 ms"
run 0 info --preset tiny --ranks 1024 --data "$work/corpus" --json
[ ! -s "$err" ] || fail "a warning beside JSON"
run 0 info --preset tiny --ranks 1024 --data "$work/corpus"
says "$err" "the memory is full in only 0 % of them"
# A divided state takes less in every process, and no more processes than there are matrices.
state() { sed -n 's/.*"optimizer_bytes": *\([0-9a-z]*\).*/\1/p' "$out" | tr '\n' ' '; }
run 0 info --preset small --optim adam --ranks 4 --zero 1 --json
# shellcheck disable=SC2046
set -- $(state)
[ $# -eq 3 ] && [ $((2 * $2)) -lt $(($1 * 11 / 10)) ] && [ $((4 * $3)) -lt $(($1 * 13 / 10)) ] || fail "divided state: $*"
run 0 info --preset tiny --ranks 1024 --zero 1
says "$out" "indivisible"
run 2 info --preset tiny --zero 1
run 2 info --preset tiny --ranks 3
says "$err" "--ranks 3: must be a power of two"
