# train_test.sh -- the whole way: prepare, train, stop, kill, resume; and what is refused.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
export OMP_NUM_THREADS=1

# A text with something to learn: numbered lines.
seq 1 2000 | sed 's/.*/line & of the text, and again line &/' > "$work/text"
run 0 prepare --out "$work/corpus" "$work/text"

small="--recipe paper --data $work/corpus --n_layer 2 --n_head 2 --d_model 16 --d_head 8 --d_inner 32 --tgt_len 8
    --mem_len 8 --batch_size 4 --max_step 120 --log_interval 10 --eval_interval 40
    --save_interval 15 --max_eval_steps 5 --lr 0.003 --threads 1"

# train CODE ARG...: `lamemo train` of a small model.
# shellcheck disable=SC2086
train() {
    want=$1
    shift
    run "$want" train $small "$@"
}

# An undisturbed run leaves everything it promises.
train 0 --out "$work/whole"
says "$out" "best valid bpc"
says "$out" "test bpc"
says "$err" "step     120"
for file in last/model.safetensors last/optimizer.safetensors last/memory.safetensors \
    last/training_state.json last/CRC32SUMS last/config.json last/vocab.json best/config.json \
    best/model.safetensors best/vocab.json metrics.jsonl train.log; do
    [ -s "$work/whole/$file" ] || fail "$file is missing"
done
cmp "$work/corpus/vocab.json" "$work/whole/best/vocab.json" || fail "another vocabulary"
[ "$(grep -c '"loss"' "$work/whole/metrics.jsonl")" -eq 12 ] || fail "not 12 logged steps"
[ "$(grep -c '"valid_loss"' "$work/whole/metrics.jsonl")" -eq 3 ] || fail "not 3 evaluations"
grep -v "^lamemo" "$err" > "$work/lines"
cmp "$work/lines" "$work/whole/train.log" || fail "train.log is not what was said"
run 0 train --out "$work/whole" --resume --json # nothing is left to do but to say how it went
says "$err" "resumed at step 120: nothing is left of 120 steps"
grep -q '"metric":"bpc","valid_loss":[0-9.]*,"valid":[0-9.]*,"best_step":120,"test_loss":[0-9.]*' "$out" ||
    fail "train --json lacks its result"
run 0 info --model "$work/whole"
says "$out" "trained for 120 of 120 steps: recipe paper: adam, lr 0.003, cosine"
says "$out" "optimiser (adam)"
run 0 info --model "$work/whole" --optim muon
says "$out" "optimiser (muon)"
run 0 info --model "$work/whole" --json
says "$out" '"recipe": "paper"'
run 0 info --model "$work/whole/best"

same() { # the run in $1 is the undisturbed one
    for file in last/model.safetensors last/optimizer.safetensors last/memory.safetensors \
        best/model.safetensors; do
        cmp "$work/whole/$file" "$1/$file" || fail "$1: $file differs"
    done
    for name in whole "$(basename "$1")"; do
        sed 's/,"\(tokens_per_second\|elapsed\).*//' "$work/$name/metrics.jsonl" > "$work/$name.m"
    done
    cmp "$work/whole.m" "$work/$(basename "$1").m" || fail "$1: metrics differ"
}

# Samples are logged and recorded, and change nothing of the training, also when it is resumed.
train 0 --out "$work/sampled" --sample-interval 30 --max-time 0.001
train 0 --out "$work/sampled" --sample-interval 30 --resume --max-time 0
grep '"sample":' "$work/sampled/metrics.jsonl" > "$work/samples"
[ "$(sed 's/{"step":\([0-9]*\),"prompt":".*line 1807 of.*","sample":".*"}/\1/' "$work/samples" | tr '\n' ' ')" = "30 60 90 120 " ] ||
    fail "not a sample every 30 steps"
[ "$(grep -c '^step  *[0-9]*  sample: .*line 1807 of.* | ' "$work/sampled/train.log")" -eq 4 ] || fail "no samples in the log"
grep -q '  sample: .*\\n' "$work/sampled/train.log" || fail "no line ends in the samples of the log"
run 0 report "$work/sampled"
for run in whole sampled; do
    sed -n '/"loss":/s/,"tokens_per_second.*//p' "$work/$run/metrics.jsonl" > "$work/$run.m"
done
[ "$(wc -l < "$work/sampled.m")" -eq 12 ] || fail "not 12 logged steps"
cmp "$work/sampled.m" "$work/whole.m" || fail "samples change the training"
cmp "$work/sampled/last/model.safetensors" "$work/whole/last/model.safetensors" || fail "samples change the weights"
train 0 --out "$work/prompted" --sample-interval 5 --sample-prompt "and again" --max-step 5 --no-test
says "$work/prompted/metrics.jsonl" '"prompt":"and again","sample":"'
run 0 generate -q --model "$work/prompted/last" -n 200 --json "and again"
[ "$(sed 's/.*"text":\(".*"\),"finish.*/\1/; s/\\u0000/�/g' "$out")" = "$(sed -n 's/.*"sample":\(".*"\)}/\1/p' "$work/prompted/metrics.jsonl")" ] ||
    fail "the sample is not what the checkpoint writes"
run 0 report "$work/prompted"
train 0 --out "$work/prompted" --overwrite --sample-interval 2 --max-step 5 --no-test
head -n 1 "$work/prompted/metrics.jsonl" | grep -q '"sample":' || fail "the first record is not a sample"
train 0 --out "$work/prompted" --resume --max-step 6 --no-test # such records are ours, too
train 0 --out "$work/prompted" --overwrite --sample-prompt x --max-step 2 --no-test
says "$err" "--sample-prompt has no effect without --sample-interval"

# A file of options: --print-config writes what --config reads, and the training is the same.
train 0 --print-config
cp "$out" "$work/c.json"
run 0 train --config "$work/c.json" --print-config
cmp "$out" "$work/c.json" || fail "what --print-config prints is not what --config reads"
run 0 train --config "$work/c.json" --data "$work/corpus" --threads 1 --out "$work/configured"
same "$work/configured"
run 0 train --print-config --preset small --lr 0.5 --memory compressive
says "$out" '"lr": 0.5'
says "$out" '"cmem_len": '
run 0 train --config "$work/c.json" --print-config --lr 0.5 --memory xl --epochs 1 --data "$work/corpus" # these win
says "$out" '"lr": 0.5'
says "$out" '"memory": "xl"'
! grep -q '"max_step": 120,' "$out" || fail "--epochs does not win over the file"
printf '{"data": "%s", "out": "%s", "resume": false, "d_model": 16, "n_head": 2, "d_head": 8, "d_inner": 32, "n_layer": 1,
  "tgt_len": 8, "mem_len": 8, "batch_size": 4, "max_step": 3, "no_test": true, "learning_rate": 1e-3}' \
    "$work/corpus" "$work/from_file" > "$work/all.json"
run 0 train --config "$work/all.json"
[ -s "$work/from_file/last/config.json" ] || fail "no run where the file says"
# A model's config.json is such a file, where it fits the corpus.
run 0 train --config "$work/whole/best/config.json" --data "$work/corpus" --print-config
says "$out" '"d_inner": 32'
sed 's/"n_token": [0-9]*/"n_token": 99/' "$work/whole/best/config.json" > "$work/wrong.json"
run 2 train --config "$work/wrong.json" --data "$work/corpus" --print-config
says "$err" "wrong.json: n_token is not what the model has; it follows from the corpus"
wrong_file() { # TEXT MESSAGE [CODE]
    printf '%s' "$1" > "$work/wrong.json"
    run "${3:-2}" train --config "$work/wrong.json" --data "$work/corpus" --out "$work/no"
    says "$err" "wrong.json: $2"
    [ ! -e "$work/no" ] || fail "a wrong file left a folder"
}
wrong_file '{"n_layers": 3}' "unknown key 'n_layers'; did you mean 'n_layer'?"
wrong_file '{"hidden_size": 3}' "unknown key 'hidden_size'; did you mean 'd_model'?"
wrong_file '{"qqq": 3}' "unknown key 'qqq'"
wrong_file '{"config": "x"}' "unknown key 'config'"
wrong_file '{"lr": "fast"}' "--lr: 'fast' is not a number"
wrong_file '{"lr": true}' "lr must not be true or false"
wrong_file '{"lr": null}' "lr must be a number, a string or a list of integers"
wrong_file '{"cutoffs": [1, "x"]}' "cutoffs must be a number, a string or a list of integers"
wrong_file '{"roll": 1}' "roll must be true or false"
wrong_file '[1]' "not a JSON object" 1
wrong_file '{"lr": 1,}' "" 1
run 1 train --config "$work/missing.json" --data "$work/corpus" --out "$work/no"
says "$err" "missing.json"

# A reader that goes away, or a closed stream, costs neither the checkpoint nor the files of the run.
# shellcheck disable=SC2086
{
    (trap '' PIPE && while echo; do sleep 0.01; done) 2> "$work/.pipe" || true # until there is no reader
    code=0
    "$LAMEMO" train --out "$work/piped" $small 2>&1 || code=$?
    echo $code > "$work/code"
} | true
[ "$(cat "$work/code")" -eq 141 ] || fail "a closed pipe gave exit $(cat "$work/code")"
train 0 --out "$work/piped" --resume
same "$work/piped"
code=0
# shellcheck disable=SC2086
"$LAMEMO" train --out "$work/closed" $small >&- 2> "$err" || code=$?
[ $code -eq 1 ] || fail "a closed standard output gave exit $code"
grep -q "best valid" "$work/closed/train.log" "$work/closed/metrics.jsonl" && fail "output in a file"
same "$work/closed"

# finish_after SIGNAL CODE DIR: sends the signal while it trains, then resumes until it is done.
finish_after() {
    # shellcheck disable=SC2086
    "$LAMEMO" train --out "$3" $small > "$out" 2> "$err" &
    pid=$!
    await "$3/metrics.jsonl"
    halt "$1" $pid
    [ $code -eq "$2" ] || [ $code -eq 0 ] || fail "SIG$1: exit $code, not $2"
    if [ $code -ne 0 ] && [ "$1" != KILL ]; then
        says "$err" "saved in $3/last; --resume continues"
        answers=$(grep -c "^finishing the step and saving; Ctrl-C again leaves at once, without saving$" "$err" || true)
        [ "$answers" -eq "$([ "$1" = INT ] && echo 1 || echo 0)" ] || fail "SIG$1: $answers answers"
    fi
    run 0 train --out "$3" --resume # the checkpoint knows the rest
}

for how in TERM:143 INT:130; do
    signal=${how%%:*}
    finish_after "$signal" "${how#*:}" "$work/run-$signal"
    same "$work/run-$signal"
done

# kill -9 at several times; each time the same command with --resume goes on.
for delay in 0.01 0.05 0.1 0.2 0.3; do
    # shellcheck disable=SC2086
    "$LAMEMO" train --resume --out "$work/killed" $small > "$out" 2> "$err" &
    pid=$!
    sleep $delay
    kill -KILL $pid 2> "$work/.kill" || true
    wait $pid || true
done
train 0 --resume --out "$work/killed"
same "$work/killed"

# A second signal ends it at once; what was saved is whole.
# shellcheck disable=SC2086
"$LAMEMO" train --resume --out "$work/twice" $small > "$out" 2> "$err" &
pid=$!
await "$work/twice/last/training_state.json"
kill -INT $pid 2> "$work/.kill" && kill -TERM $pid 2> "$work/.kill" || true
wait $pid || true
says "$err" "warning: $work/twice holds no checkpoint: starting a new run"
train 0 --resume --out "$work/twice"
same "$work/twice"

# A limit on the size of files is an error like a full disk, not a death.
code=0
# shellcheck disable=SC2086
(ulimit -f 40 && exec "$LAMEMO" train --out "$work/limited" $small) > "$out" 2> "$err" || code=$?
[ $code -eq 1 ] || fail "a limit on the size of files gave exit $code"
says "$err" "File too large"
train 0 --resume --out "$work/limited"
same "$work/limited"

# A best model is not lost to a run that would begin anew because its checkpoint is gone.
mv "$work/limited/last" "$work/limited/mine"
train 2 --resume --out "$work/limited"
says "$err" "has a best model, but no checkpoint last; a new run can start from it: --init-from $work/limited/best"

# A finished run goes on when it is given more steps.
! grep -q '"changed"' "$work/twice/metrics.jsonl" || fail "a change that was none"
run 0 train --out "$work/twice" --resume --max_step 130
says "$err" "resumed at step 120"
says "$err" "changed: max_step 120 -> 130"
says "$work/twice/metrics.jsonl" '{"step":120,"changed":{"max_step":[120,130]}}'
run 0 report "$work/twice" --plot none
says "$out" "twice   120  max_step  120     130"
[ "$(grep -c '"loss"' "$work/twice/metrics.jsonl")" -eq 13 ] || fail "not 13 logged steps"
[ "$(grep -c '"test_loss"' "$work/twice/metrics.jsonl")" -eq 1 ] || fail "not 1 test"

# While another process trains, nothing is touched, not even what looks like a crash's leftovers.
cp -r "$work/whole" "$work/held"
mv "$work/held/last" "$work/held/last.old"
(
    flock -n 9
    run 1 train --out "$work/held" --resume
    says "$err" "held: another process is training here"
) 9< "$work/held/train.log"
[ -d "$work/held/last.old" ] && [ ! -e "$work/held/last" ] || fail "names were changed without the lock"
cmp "$work/whole/train.log" "$work/held/train.log" || fail "a log was cut without the lock"
run 0 train --out "$work/held" --resume
same "$work/held"

# What is there is not overwritten, and what does not fit is named.
train 2 --out "$work/whole"
says "$err" "holds a run already: --resume continues it, --overwrite deletes it"
run 2 train --out "$work/whole" --resume --batch_size 8
says "$err" "train: --batch-size 8: the run was begun with 4"
run 2 train --out "$work/whole" --resume --roll
says "$err" "train: --roll is on: the run was begun without it"
run 2 train --out "$work/whole" --resume --n_layer 3
says "$err" '--n-layer 3: the run was begun with 2'
run 1 train --out "$work/whole" --resume --pre_lnorm
says "$err" 'it has "pre_lnorm": false, not "pre_lnorm": true'
run 2 train --out "$work/new"
says "$err" "--data is missing"
run 2 train --data "$work/corpus"
says "$err" "--out is missing"
ln -s loop "$work/loop" # a folder that nobody may enter, not even root
run 1 train --out "$work/loop" --resume
says "$err" "loop: cannot open: Too many levels of symbolic links"
run 1 train --data "$work/text" --out "$work/new"
says "$err" "text: a file, not a corpus folder (lamemo prepare makes one)"
run 1 train --data "$work/no-such-folder" --out "$work/new"
says "$err" "no-such-folder: there is no such folder"
run 1 train --data "$work/whole" --out "$work/new"
says "$err" "whole: not a corpus folder: it has no corpus.json"
run 2 train --data "$work/corpus" --out "$work/new" --memory magic
says "$err" "magic"
train 0 --out "$work/mems" --max_step 1 --short_mem 8
says "$err" "warning: --short-mem 8 has no effect: the memory length is 8"
train 0 --out "$work/mems" --overwrite --max_step 1 --memory none
says "$err" "warning: --mem-len has no effect with memory none, only with: xl, compressive, infinite, lamemo"
# What has no effect with this optimiser or schedule is told; a default that is written is not.
train 0 --out "$work/mems" --overwrite --max_step 1 --mom 0.9 --muon_mom 0.9 --patience 0 --beta1 0.8 --scheduler constant --eta-min 1e-5
says "$err" "warning: --mom has no effect with --optim adam, only with: sgd"
says "$err" "warning: --muon-mom has no effect with --optim adam, only with: muon"
says "$err" "warning: --eta-min has no effect with --scheduler constant, only with: cosine linear wsd dev_perf"
[ "$(grep -c "has no effect" "$err")" -eq 3 ] || fail "not three warnings"
run 2 train --data "$work/corpus" --out "$work/new" --memory xl --attn-type 7
says "$err" "--attn-type 7: must be one of: 0, 1, 2, 3, 31, 32, 33"
run 2 train --data "$work/corpus" --out "$work/new" --batch_size 100000
says "$err" "too few for 100000 streams"
run 2 train --data "$work/corpus" --out "$work/new" --tgt_len 1000000
says "$err" "too few for segments of 1000000: at least 1000001, or a smaller --tgt-len (the segments' length)"
# What only an evaluation would find is said before the first step, and before an old run is thrown away.
run 2 train --data "$work/corpus" --out "$work/new" --eval_batch_size 100000
says "$err" "split are too few for 100000 streams (batch size): a smaller --eval-batch-size or a longer text"
run 2 train --data "$work/corpus" --out "$work/new" --tgt_len 8 --mem_len 8 --eval_tgt_len 17
says "$err" "train: --eval-tgt-len 17 is above --tgt-len + --mem-len = 16"
run 2 train --data "$work/corpus" --out "$work/new" --tgt_len 8 --mem_len 8 --eval_tgt_len 16
says "$err" "lamemo needs a memory length above 0"
train 2 --out "$work/whole" --overwrite --eval_batch_size 100000
[ -s "$work/whole/last/training_state.json" ] || fail "a refused run threw an old one away"
run 2 train --data "$work/corpus" --out "$work/new" --d_model 15
says "$err" "--d-model is 15, must be even"
run 2 train --data "$work/corpus" --out "$work/new" --memory compressive --mem_len 0
says "$err" "memory compressive needs --cmem-len or --mem-len above 0"
run 2 train --data "$work/corpus" --out "$work/new" --memory infinite --mem_len 1
says "$err" "memory infinite needs --ltm-basis or --mem-len of 2 or more"
run 2 train --data "$work/corpus" --out "$work/new" --memory infinite --tgt_len 1
says "$err" "memory infinite needs --ltm-block or --tgt-len of 2 or more"
run 2 train --data "$work/corpus" --out "$work/new" --memory infinite --ltm_tau 1
says "$err" "--ltm-tau is 1, must be above 0 and below 1"
run 2 train --data "$work/corpus" --out "$work/new" --batch_size 4 --batch_chunk 3
says "$err" "train: --batch-size 4 cannot be divided into --batch-chunk 3 equal parts"
run 2 train --data "$work/corpus" --out "$work/new" --optim muon --muon_mom 1
says "$err" "train: --muon-mom is 1, must be below 1"
run 2 train --data "$work/corpus" --out "$work/new" --mem_reset -1
says "$err" "mem-reset"
run 2 train --data "$work/corpus" --out "$work/new" --init uniform --init_out depth
says "$err" "--init-out needs normal"
run 2 train --out "$work/whole" --resume --recipe fast
says "$err" "train: --recipe fast: the run was begun with paper"
run 2 train --out "$work/whole" --resume --optim muon
says "$err" "train: --optim muon: the run was begun with adam"
[ ! -e "$work/new" ] || fail "a refused run left a folder"
# A path that JSON cannot hold: the run is whole, only --resume must be told again.
odd=$work/$(printf 'caf\351')
cp -r "$work/corpus" "$odd"
run 0 train --data "$odd" --out "$work/odd" --n_layer 1 --d_model 16 --max_step 1 --no_test
says "$err" "not UTF-8"
run 2 train --out "$work/odd" --resume
says "$err" "--data is missing"
run 0 train --out "$work/odd" --resume --data "$odd" --no_test
# Nor does a corpus that was moved end a run.
mv "$odd" "$work/moved"
cp -r "$work/twice" "$work/mover"
sed -i "s|\"path\": *\"[^\"]*\"|\"path\": \"$work/gone\"|" "$work/mover/last/training_state.json"
run 1 train --out "$work/mover" --resume --no_test
says "$err" "training_state.json: damaged: "
rm "$work/mover/last/CRC32SUMS" # it was changed on purpose
run 1 train --out "$work/mover" --resume --no_test
says "$err" "there is no such folder (lamemo prepare makes a corpus folder); if the run's corpus has moved, give its folder with --data"
run 0 train --out "$work/mover" --resume --no_test --data "$work/moved"
seq 1 2000 > "$work/numbers"
run 0 prepare --corpus chars --out "$work/other" "$work/numbers"
run 2 train --out "$work/whole" --resume --data "$work/other"
says "$err" "a vocabulary of 11, the model in $work/whole/last has one of 256: pass the corpus it was trained on, or fine-tune it (--init-from)"
run 0 prepare --out "$work/another" "$work/numbers"
run 2 train --out "$work/whole" --resume --data "$work/another"
says "$err" "was trained on another corpus"
says "$err" "--init-from fine-tunes a model on another corpus"
cp -r "$work/whole" "$work/state"
sed 's/"loss_scale": [^,}]*/"loss_scale": -1/' "$work/whole/last/training_state.json" \
    > "$work/state/last/training_state.json"
rm "$work/state/last/CRC32SUMS"
run 1 train --out "$work/state" --resume
says "$err" "training_state.json: settings: loss_scale is -1, must be 1e-06 to 1e+06"
run 0 info --model "$work/state" # without what it cannot tell, which it names
says "$err" "training_state.json: settings: loss_scale is -1, must be 1e-06 to 1e+06"
cp -r "$work/corpus" "$work/cut"
head -c 1000 "$work/corpus/train.bin" > "$work/cut/train.bin"
run 1 train --data "$work/cut" --out "$work/new"
says "$err" "train.bin"
# A byte that changed on the disk: one line says where, and what is left.
printf '\377' | dd of="$work/whole/last/model.safetensors" bs=1 seek=5000 conv=notrunc 2> "$work/.dd"
run 1 train --out "$work/whole" --resume --max_step 130
says "$err" "last/model.safetensors: damaged: "
says "$err" "; a new run can start from the best model: --init-from $work/whole/best"
[ "$(wc -l < "$err")" -eq 1 ] || fail "more than one line about a damaged file"
rm "$work/whole/last/model.safetensors" # or is gone
run 1 train --out "$work/whole" --resume --max_step 130
says "$err" "last/model.safetensors: cannot open: No such file or directory; a new run can start from the best model: --init-from $work/whole/best"
train 0 --out "$work/again" --init-from "$work/whole/best" --max_step 20 # as the message says
says "$err" "weights: those of $work/whole/best"
run 0 eval --model "$work/whole/best" --data "$work/corpus"
rm -r "$work/whole/best"
run 1 train --out "$work/whole" --resume --max_step 130
says "$err" "; start over with --overwrite"

# --overwrite begins anew, in the same folder.
train 0 --out "$work/whole" --overwrite --seed 5 --max_step 20
[ "$(grep -c '"loss"' "$work/whole/metrics.jsonl")" -eq 2 ] || fail "old records are left"
# Nothing is left of the old run, even where the new one never comes to save anything.
train 1 --out "$work/whole" --overwrite --optim sgd --lr 1e6 --clip 0 --eval_interval 0 --save_interval 0
says "$err" "there is no checkpoint yet"
for part in last best; do
    [ ! -e "$work/whole/$part" ] || fail "--overwrite left $part/"
done

# Every memory, the ablations and the adaptive softmax train; Transformer-XL's names work.
for model in "--memory none" "--memory xl --attn_type 1" "--attn_type 31 --alpha zero" \
    "--attn_type 33 --window current" "--refresh_from 1" "--refresh_every 2 --average 0.5" "--memory xl --adaptive --cutoffs 20,60 --div_val 2" \
    "--pre_lnorm --not_tied --same_length --clamp_len 5" "--optim sgd --mom 0.9 --varlen" \
    "--optim adagrad --scheduler inv_sqrt --warmup_step 5" "--batch_chunk 2 --loss_scale 0.5" \
    "--memory xl --ext_len 5 --half_loss --eval_tgt_len 4" "--memory none --eval_tgt_len 3" \
    "--roll --scheduler dev_perf --init uniform --device ref" \
    "--optim muon --weight_decay 0.1 --muon_mom 0.9 --muon_rows even --scheduler wsd --cooldown 0.5 --init_out zero" \
    "--optim muon --memory xl --beta2 0.95 --embed_lr 2 --vector_lr 0.5 --scheduler_time 5" \
    "--recipe fast --memory xl --warmup_step 3" "--short_mem 4 --short_mem_part 0.3" \
    "--mem_reset 5 --batch_chunk 2" "--mem_reset 1 --memory none"; do
    # shellcheck disable=SC2086
    train 0 --out "$work/kinds" --overwrite --no-test --max_step 12 $model
done

# A warm-up that outlasts the run is told.
# shellcheck disable=SC2086
run 0 train ${small#--recipe paper} --out "$work/kinds" --overwrite --no-test --max_step 4
says "$err" "recipe fast: muon"
says "$err" "(the default; --recipe paper: as published)"
# shellcheck disable=SC2086
run 0 train ${small#--recipe paper} --out "$work/kinds" --overwrite --no-test --max_step 4 --optim adagrad
says "$err" "recipe paper: adagrad"
says "$err" "(chosen by --optim)"
train 0 --out "$work/kinds" --overwrite --no-test --max_step 4 --recipe fast --warmup_step 300
says "$err" "the warm-up takes 300 steps of a run of 4 steps: the learning rate stays below 0.0"
# One as long as the run reaches the rate in its last step.
train 0 --out "$work/kinds" --overwrite --no-test --max_step 4 --recipe fast --warmup_step 4
! grep -q "warm-up of 4 steps in a run" "$err" || fail "a warm-up that ends with the run is told"

# The fast recipe's dropout follows from how often the text will be read, whatever stops the run.
train 0 --out "$work/kinds" --overwrite --no-test --max_step 4 --recipe fast
grep -q "clip 1, dropout 0$" "$err" || fail "a text that is not read once gets dropout"
train 0 --out "$work/kinds" --overwrite --no-test --max_step 1000000 --max_time 0.1 --recipe fast
says "$err" "clip 1, dropout 0.1"

# Emptying the memory can begin in a run that went on without it, and is recorded.
run 0 train --out "$work/kinds" --overwrite --data "$work/corpus" --n_layer 1 --d_model 16 --max_step 4 --no_test
run 0 train --out "$work/kinds" --resume --max_step 8 --mem_reset 3 --no_test
run 0 info --model "$work/kinds"
says "$out" "memory emptied every 3 steps"
# Its records tell once that it has ended though nothing was tested, and whoever watches leaves.
[ "$(grep -c '{"step":[48],"ended":1,' "$work/kinds/metrics.jsonl")" -eq 1 ] || fail "ended, but not once"
code=0
timeout 60 "$LAMEMO" report "$work/kinds" --watch --interval 1 > "$out" 2> "$err" || code=$?
[ $code -eq 0 ] || fail "watching a run that has ended gave exit $code"
says "$out" "done"
run 0 info --model "$work/kinds" --json
says "$out" '"mem_reset": 3'

# A schedule that follows the clock needs no number of steps; what it had time for is the whole run.
run 0 train --out "$work/clock" --data "$work/corpus" --n_layer 1 --d_model 16 --no_test --scheduler_time 0.3 --warmup_step 1
says "$err" "run: 0.3 seconds in steps of"
! grep -q "time is up" "$err" || fail "a run that took its time is told to go on"
grep -q '"loss"' "$work/clock/metrics.jsonl" || fail "the last step is not logged"
run 0 train --out "$work/clock" --resume --no_test
says "$err" "nothing is left of 0.3 seconds"
run 0 info --model "$work/clock"
says "$out" "steps in 0.3 seconds: recipe fast"
run 0 train --out "$work/clock" --resume --no_test --scheduler_time 1000 --max_time 0.2
says "$err" "of a run of 1000 seconds; --resume continues"

# Early stopping: with a learning rate of 0 no evaluation is better than the first; resuming finds nothing left.
train 0 --out "$work/early" --lr 0 --eval_interval 10 --early-stop 3
says "$err" "step      40  stopped early: no lower loss in 3 evaluations"
says "$err" "step      10  test bpc"
run 0 train --out "$work/early" --resume
[ "$(grep -c '"valid_loss"' "$work/early/metrics.jsonl")" -eq 4 ] || fail "resuming trained on"
run 0 train --out "$work/early" --resume --early-stop 4 # one more evaluation
[ "$(grep -c '"valid_loss"' "$work/early/metrics.jsonl")" -eq 5 ] || fail "resuming did not take the new number"

# --epochs counts passes over the text.
train 0 --out "$work/kinds" --overwrite --no-test --max_step 1 --max_eval_steps 1
# shellcheck disable=SC2086
run 2 train $small --out "$work/kinds" --overwrite --epochs 1
says "$err" "--epochs and --max-step contradict each other"

# A memory's own loss is logged; where it has none, there is none.
for memory in compressive infinite xl; do
    train 0 --out "$work/aux" --overwrite --no-test --max_step 40 --memory $memory
    found=$(grep -c '"aux_loss":[0-9.e-]*,' "$work/aux/metrics.jsonl" || true)
    [ "$found" -eq "$([ $memory = xl ] && echo 0 || echo 4)" ] || fail "$memory: $found losses"
done
grep -q 'ext_len' "$work/aux/last/config.json" || fail "config.json has no ext_len"
train 2 --out "$work/new" --ext_len 4
says "$err" "--ext-len 4 has no meaning for memory lamemo, only for: none, xl"

# `lamemo info` announces what a training takes, within 10 %; a sanitizer takes more.
case $LAMEMO in */release/*) ;; *) exit 0 ;; esac
run 0 info --preset small --memory lamemo --batch-size 8
announced=$(sed -n 's/.*training, all together *\([0-9.]*\) MB/\1/p' "$out")
run 0 train -v --data "$work/corpus" --preset small --memory lamemo --out "$work/small" --max_step 2 --short_mem 0 \
    --max_eval_steps 1
used=$(sed -n 's/.*memory: \([0-9.]*\) MB at most/\1/p' "$err")
awk "BEGIN { ratio = $used / $announced; exit !(ratio > 0.9 && ratio < 1.1) }" ||
    fail "$used MB used, $announced MB announced"
