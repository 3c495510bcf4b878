# endless_test.sh -- whatever lies where a file should be, reading it ends: by itself, or at the first SIGTERM.
[ ! -w /dev/shm ] || export TMPDIR=/dev/shm
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
export OMP_NUM_THREADS=1
cd "$work"
program=$LAMEMO
LAMEMO=$work/limited # a program that never ends is a failure, not a test that hangs
printf '#!/bin/sh\nexec timeout -s KILL 100 "%s" "$@"\n' "$program" > limited
chmod +x limited

seq 1 500 | sed 's/.*/line & of the text, and again line &/' > text
run 0 prepare -q --out corpus text
small="--n_layer 1 --n_head 2 --d_model 8 --d_head 4 --d_inner 8 --tgt_len 4 --mem_len 4 --batch_size 2 --max_step 4
    --log_interval 2 --eval_interval 2 --max_eval_steps 1 --no-test --threads 1"
# shellcheck disable=SC2086
run 0 compare -q --data corpus $small --out comparison xl
mv comparison/xl-s1111 run

# pipe FILE COMMAND...: with a pipe in the place of the file the command names it and does not wait.
pipe() {
    mv "$1" kept
    mkfifo "$1"
    file=$1
    shift
    run 1 "$@"
    says "$err" "$file: not a regular file"
    rm "$file"
    mv kept "$file"
}
for file in config.json training_state.json memory.safetensors model.safetensors CRC32SUMS; do
    pipe run/last/$file train --out run --resume --no-test --max_step 6
done
for file in config.json vocab.json model.safetensors; do
    pipe run/best/$file generate --model run -n 1
done
for file in corpus.json vocab.json train.bin; do
    pipe corpus/$file train --data corpus --out new
done
pipe comparison/compare.json compare --out comparison
pipe run/metrics.jsonl report run
pipe run/best/vocab.json prepare --vocab-from run --out new text
mkdir books splits
cp text books/a.txt && cp text books/b.txt
for file in train valid test; do cp text splits/$file.txt; done
pipe books/b.txt prepare --out new books
pipe splits/test.txt prepare --out new splits

# What never ends, or ends in a week.
mv run/last/memory.safetensors kept
ln -s /dev/zero run/last/memory.safetensors
run 1 train --out run --resume --no-test --max_step 6
says "$err" "memory.safetensors"
rm run/last/memory.safetensors
truncate -s 1T run/last/memory.safetensors
run 1 train --out run --resume --no-test --max_step 6
says "$err" "run/last/memory.safetensors: damaged: 1099511627776 bytes, written were "
mv kept run/last/memory.safetensors
run 0 train --out run --resume --no-test --max_step 6
for command in "report" "prepare --out new" "eval --model run --data" "generate --model run --prompt @"; do
    case $command in *@) word=$command/dev/zero ;; *) word="$command /dev/zero" ;; esac
    # shellcheck disable=SC2086
    run 1 $word
    says "$err" "/dev/zero: is a device, not a text"
done
yes 2> /dev/null | run 1 report /dev/stdin
says "$err" "/dev/stdin: more than 100000 lines are no records"

# Pipes are read; one that nobody writes to is waited for, until SIGTERM.
run 0 report /dev/stdin --plot none < run/metrics.jsonl
# shellcheck disable=SC2002
cat run/metrics.jsonl | run 0 report /dev/stdin --plot none
mkfifo text.pipe
cat text > text.pipe &
run 0 prepare -q --out piped text.pipe
cmp corpus/train.bin piped/train.bin || fail "another text through a pipe"
# shellcheck disable=SC2043
for command in "report text.pipe" "prepare --out new text.pipe" "generate --model run --prompt @text.pipe"; do
    # shellcheck disable=SC2086
    "$program" $command > "$out" 2> "$err" &
    pid=$!
    hears $pid
    sleep 0.3 # it waits, or is about to
    halt TERM $pid
    [ $code -eq 143 ] || fail "$command: exit $code after SIGTERM" # 137: it had to be killed
    says "$err" "stopped"
done
[ ! -e new ] || fail "a refused command left a folder"
