# threads_test.sh -- the same numbers, however many threads OpenMP grants.
#
# oneDNN leaves parts of a GEMM unwritten where it gets fewer threads than it was told.  The model is just large enough
# for its GEMMs to be divided among threads.  Only the order of summation in them may depend on the number of threads:
# results are bit for bit those of a plain run with as many, and close to those of any other.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
unset OMP_NUM_THREADS OMP_THREAD_LIMIT OMP_DYNAMIC OMP_MAX_ACTIVE_LEVELS OMP_NESTED

head -c 2000 README.md > "$work/text"
run 0 prepare --out "$work/corpus" README.md
run 0 train --device cpu --threads 1 --data "$work/corpus" --out "$work/first" --max-step 1 --no-test --n-layer 2 \
    --n-head 2 --d-head 32 --d-model 64 --d-inner 128 --tgt-len 48 --mem-len 48 --batch-size 8
model=$work/first/last

# results NAME THREADS COMMAND...: what train, eval, score and generate compute on so many threads when COMMAND (env A=B,
# taskset -c 0) starts them, as files in the folder NAME.
results() {
    to=$work/$1
    on="--device cpu --threads $2"
    shift 2
    mkdir "$to"
    # shellcheck disable=SC2086 # $on is several words
    {
        "$@" "$LAMEMO" train $on --data "$work/corpus" --init-from "$model" --out "$to/run" --max-step 2 \
            --max-eval-steps 1 --no-test --batch-size 8 > "$out" 2> "$err" || fail "$*: train"
        "$@" "$LAMEMO" eval $on --model "$model" --data "$work/text" --batch-size 8 --json \
            > "$out" 2> "$err" || fail "$*: eval"
        grep -o '"nats":[^,]*' "$out" > "$to/eval" || fail "$*: eval without a result"
        "$@" "$LAMEMO" score $on --model "$model" --tokens "@$work/text" \
            > "$to/score" 2> "$err" || fail "$*: score"
        "$@" "$LAMEMO" generate $on --model "$model" --prompt "@$work/text" --tokens 30 \
            > "$to/generate" 2> "$err" || fail "$*: generate"
    }
    mv "$to/run/last/model.safetensors" "$to/train"
}

# same A B: not a bit differs.
same() {
    for name in train eval score generate; do
        cmp "$work/$1/$name" "$work/$2/$name" > "$out" 2>&1 || fail "$1: $name is not as in $2"
    done
}

nats() { sed 's/.*://' "$work/$1/eval"; }

results two 2 env
results one 1 env
awk "BEGIN { d = $(nats one) - $(nats two); exit !(d < 1e-5 && d > -1e-5) }" || fail "one and two threads are far apart"

# Two threads are asked for and may be had.
n=0
for settings in OMP_DYNAMIC=true OMP_NUM_THREADS=1 OMP_NUM_THREADS=3,2 OMP_THREAD_LIMIT=2 OMP_MAX_ACTIVE_LEVELS=1 \
    "OMP_MAX_ACTIVE_LEVELS=3 OMP_DYNAMIC=true OMP_THREAD_LIMIT=5"; do
    n=$((n + 1))
    # shellcheck disable=SC2086
    results "two-$n" 2 env $settings
    same "two-$n" two
done

# Two are asked for, only one may be had.
for settings in OMP_THREAD_LIMIT=1 OMP_MAX_ACTIVE_LEVELS=0 "OMP_THREAD_LIMIT=1 OMP_DYNAMIC=true OMP_NUM_THREADS=4,4"; do
    n=$((n + 1))
    # shellcheck disable=SC2086
    results "one-$n" 2 env $settings
    same "one-$n" one
done

# All that this process may use are asked for (0), which is one.
if cpus=$(taskset -cp $$ 2> "$err"); then
    cpus=${cpus##*: }
    results pinned 0 taskset -c "${cpus%%[,-]*}"
    same pinned one
fi
