#!/bin/sh
# kill_test.sh -- kill -9 at random times: no checkpoint is lost or half written, and the resumed run ends as one that
# was never killed, byte for byte.
#   kill_test.sh COUNT [SEED]     COUNT kills over all memories and optimisers; LAMEMO names the program
#
# A run saves after every step.  It is killed, looked at and resumed until it is done, then compared and begun anew in
# the same folder with --overwrite, which is killed as well.
[ ! -w /dev/shm ] || export TMPDIR=/dev/shm # a process that dies loses nothing it wrote, on whatever disk
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive
count=${1:?how many kills}
seed=${2:-1}
echo "seed $seed"
cd "$work"

seq 1 300 | sed 's/.*/line & of the text, and again line &/' > text
run 0 prepare -q --split 80/10/10 --out corpus text
small="--data corpus --n_layer 2 --n_head 2 --d_model 8 --d_head 4 --d_inner 8 --tgt_len 4 --mem_len 4 --batch_size 2
    --max_step 40 --log_interval 1 --eval_interval 5 --save_interval 1 --max_eval_steps 1 --threads 1"
files="last/model.safetensors last/optimizer.safetensors last/memory.safetensors best/model.safetensors"

# sum FILE: its CRC-32 as CRC32SUMS has it, which gzip puts at the end of what it writes.
sum() { gzip -1c "$1" | tail -c 8 | od -An -N4 -tx1 | awk '{ print $4 $3 $2 $1 }'; }

# whole FOLDER: every file of the checkpoint is on its record, and as it was written.
whole() {
    [ "$(find "$1" -type f | wc -l)" -eq "$(wc -l < "$1/CRC32SUMS")" ] || fail "$1 has other files than its record"
    sed '$d' "$1/CRC32SUMS" > lines
    while read -r crc bytes name; do
        [ "$(wc -c < "$1/$name") $(sum "$1/$name")" = "$bytes $crc" ] || fail "$1/$name is damaged"
    done < lines
}

# look: the run in run/ after a kill.  What was once saved is there, whole, and no older than before.
look() {
    [ ! -e run/last.new ] && [ ! -e run/best.new ] || caught=$((caught + 1))
    if [ -e run/last ]; then
        whole run/last
        now=$(sed -n '3s/.*"step": \([0-9]*\),/\1/p' run/last/training_state.json)
        [ "$now" -ge "$step" ] || fail "the checkpoint went back from step $step to $now"
        step=$now
    else
        [ "$step" -eq 0 ] || fail "the checkpoint of step $step is lost"
    fi
    if [ -e run/best ]; then
        best=1
        for file in config.json vocab.json model.safetensors; do # written once, and of one size
            [ "$(wc -c < run/best/$file)" = "$(wc -c < whole/best/$file)" ] || fail "half a best model: $file"
        done
    else
        [ "$best" -eq 0 ] || fail "the best model is lost"
    fi
}

# same: the run in run/ is the one that was never killed; only the clock may differ.
same() {
    for file in $files; do
        cmp "whole/$file" "run/$file" || fail "$what: $file differs"
    done
    for name in whole run; do
        sed 's/,"\(tokens_per_second\|elapsed\).*//' $name/metrics.jsonl > $name.metrics
    done
    cmp whole.metrics run.metrics || fail "$what: metrics.jsonl differs"
    compared=$((compared + 1))
}

# killed HOW: trains and is killed some time; done=1: it came to its end before.
killed() {
    read -r delay
    [ "$1" = --resume ] || step=0 best=0
    # shellcheck disable=SC2086
    "$LAMEMO" train -q $small $model --out run "$1" > "$out" 2> "$err" &
    pid=$!
    sleep "$delay"
    kill -KILL $pid 2> "$work/.kill" || :
    code=0
    wait $pid 2> "$work/.kill" || code=$?
    done=$((code == 0))
    [ $code -eq 0 ] || [ $code -eq 137 ] || fail "$what: exit $code"
    hits=$((hits + (code == 137)))
}

# next: how to go on.  A best model without a checkpoint is what is left of an old run when --overwrite is killed; look
# has seen that it is not a loss.
next() { if [ -e run/best ] && [ ! -e run/last ]; then echo --overwrite; else echo --resume; fi; }

# torture KILLS: the runs of one kind of model, until so many kills have hit.
torture() {
    hits=0
    while [ $hits -lt "$1" ]; do
        killed --overwrite
        while [ $done -eq 0 ] && [ $hits -lt "$1" ]; do
            look
            killed "$(next)"
        done
        [ $done -eq 0 ] || same
    done
    look
    # shellcheck disable=SC2086
    run 0 train -q $small $model --out run "$(next)" # whatever the last kill left
    same
    kills=$((kills + hits))
}

memories="none xl compressive infinite lamemo"
optimisers="sgd adagrad adam muon"
each=$(((count + 19) / 20))
[ $each -gt 1 ] || each=2
kills=0 caught=0 compared=0 kind=0
while [ $kills -lt "$count" ]; do
    # shellcheck disable=SC2086
    model="--memory $(echo $memories | cut -d' ' -f$((kind % 5 + 1))) --optim $(echo $optimisers | cut -d' ' -f$((kind % 4 + 1)))"
    what=$model
    rm -rf whole run
    # shellcheck disable=SC2086
    began=$(date +%s%N) && run 0 train -q $small $model --out whole && took=$(($(date +%s%N) - began))
    # Up to a fifth longer than it takes: some reach their end.
    awk -v s=$((seed + kind)) -v t="$took" 'BEGIN { srand(s); for (i = 0; i < 10000; i++) printf "%.4f\n", rand() * 1.2e-9 * t }' > delays
    left=$((count - kills))
    torture $((left < each ? left : each)) < delays
    kind=$((kind + 1))
done
echo "$kills kills over $kind kinds of runs, $caught of them while a folder was written; $compared ends compared, all equal"
