# compare_test.sh -- several models trained alike: stopped, killed and extended, the table stays the same.
[ ! -w /dev/shm ] || export TMPDIR=/dev/shm # hundreds of fsyncs; no claim is about them
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
export OMP_NUM_THREADS=1

seq 1 2000 | sed 's/.*/line & of the text, and again line &/' > "$work/text"
run 0 prepare --out "$work/corpus" "$work/text"
small="--n_layer 2 --n_head 2 --d_model 16 --d_head 8 --d_inner 32 --tgt_len 8 --mem_len 8
    --batch_size 4 --max_step 60 --log_interval 10 --eval_interval 30 --save_interval 10
    --max_eval_steps 5 --lr 0.003 --mem_reset 25 --threads 1"

# compare CODE ARG...: three small models, two seeds.
# shellcheck disable=SC2086
compare() {
    want=$1
    shift
    run "$want" compare --data "$work/corpus" $small --seeds 1,2 "$@" \
        xl no-interpolation long=compressive:mem_len=12
}

# same FOLDER: every run there ended in the undisturbed one's bytes.
same() {
    for name in xl-s1 xl-s2 no-interpolation-s1 no-interpolation-s2 long-s1 long-s2; do
        for file in last/model.safetensors last/optimizer.safetensors best/model.safetensors; do
            cmp "$work/whole/$name/$file" "$1/$name/$file" || fail "$1: $name/$file differs"
        done
    done
    cut -d, -f1-9,12- "$work/whole/compare.csv" > "$work/expected"
    cut -d, -f1-9,12- "$1/compare.csv" > "$work/found"
    cmp "$work/expected" "$work/found" || fail "$1: another table"
}

# An undisturbed comparison leaves its table in four forms, and run folders like train's.
compare 0 --out "$work/whole"
says "$out" "dev bpc"
says "$err" "3 models, 2 seeds: 6 trainings of 60 steps to do"
says "$err" "xl, seed 2: begins (3 of 6 are done)"
! grep -q "nothing to resume" "$err" || fail "a new run is called one that cannot be resumed"
says "$out" "+- sd of seeds"
cmp "$out" "$work/whole/compare.txt" || fail "compare.txt is not what was printed"
grep -q '^| long | .* +- ' "$work/whole/compare.md" || fail "no mean and deviation in compare.md"
[ "$(grep -c ',done,60,' "$work/whole/compare.csv")" -eq 6 ] || fail "not six runs in compare.csv"
grep -q '^long,compressive,1,done,60,[0-9]*,12,12,' "$work/whole/compare.csv" || fail "long is wrong"
# shellcheck disable=SC2086
run 0 train --data "$work/corpus" $small --memory lamemo --alpha zero --seed 2 --out "$work/alone"
cmp "$work/alone/last/model.safetensors" "$work/whole/no-interpolation-s2/last/model.safetensors" \
    || fail "a run of a comparison is not what train makes"

# Again: nothing is trained a second time.
run 0 compare --out "$work/whole" --json
says "$out" '"ext_mem_len": 12'
grep -q "begins" "$err" && fail "a finished run was repeated"

# The recipe is recorded; a comparison from before it was is gone on with as it was begun, by the paper's.
grep -q '"recipe": "fast"' "$work/whole/compare.json" || fail "compare.json does not name the recipe"
# shellcheck disable=SC2086
run 0 compare --data "$work/corpus" $small --max_step 2 --recipe paper --out "$work/old" xl
sed -i 's/, *"recipe": "paper"//; s/"recipe": "paper",//' "$work/old/compare.json"
grep -q recipe "$work/old/compare.json" && fail "the recipe is still there"
run 0 compare --out "$work/old" none
grep -q '^xl  .*  [0-9.]* +- 0\.[0-9]*  *[0-9.]* +- 0\.[0-9]*$' "$out" || fail "no standard errors: $(cat "$out")"
says "$out" "+- std. error"
says "$work/old/compare.json" '"test_stderr": 0.'
head -1 "$work/old/compare.csv" | grep -q 'dev_stderr,test_stderr' || fail "no standard errors in compare.csv"
grep -q '"recipe": *"paper"' "$work/old/none-s1111/last/training_state.json" || fail "an old comparison became fast"

# Two at a time, the same models.
compare 0 --out "$work/both" --jobs 2
same "$work/both"

# stop SIGNAL FOLDER: sends the signal once the third run has begun.
stop() {
    # shellcheck disable=SC2086
    "$LAMEMO" compare --data "$work/corpus" $small --seeds 1,2 --out "$2" \
        xl no-interpolation long=compressive:mem_len=12 > "$out" 2> "$err" &
    pid=$!
    await "$2/long-s1/metrics.jsonl"
    halt "$1" $pid
}
for how in TERM:143 INT:130; do
    stop "${how%%:*}" "$work/${how%%:*}"
    [ $code -eq "${how#*:}" ] || [ $code -eq 0 ] || fail "SIG${how%%:*}: exit $code"
    [ $code -eq 0 ] || says "$err" "runs are done; lamemo compare --out $work/${how%%:*} goes on"
    ! grep -e 'resume continues' -e 'lamemo train: stopped' "$err" || fail "SIG${how%%:*}: the end of a part"
    run 0 compare --out "$work/${how%%:*}" --resume # it knows the rest
    same "$work/${how%%:*}"
done
stop KILL "$work/killed"
while ! flock -n "$work/killed/long-s1/train.log" true; do # the training saves and leaves
    sleep 0.01
done
compare 0 --out "$work/killed"
same "$work/killed"

# What differs is named; nothing is trained.
compare 2 --out "$work/whole" --lr 0.01
says "$err" "--lr 0.01: the comparison in $work/whole was begun with 0.003"
run 2 compare --out "$work/whole" --dropout 0.2
says "$err" "--dropout 0.2: the comparison in $work/whole was begun with 0.1"
run 2 compare --out "$work/whole" --pre_lnorm
says "$err" "--pre-lnorm: the comparison in $work/whole was begun without it"
run 2 compare --out "$work/whole" xl=none
says "$err" "xl is xl here, not none"
run 0 compare --out "$work/whole" --max_step 60 --lr 3e-3 --dropout 0.1
seq 1 2000 > "$work/numbers"
run 0 prepare --out "$work/other" "$work/numbers"
run 2 compare --out "$work/whole" --data "$work/other"
says "$err" "was begun with another corpus"
run 2 compare --out "$work/new"
says "$err" "--data is missing"
run 2 compare --data "$work/corpus"
says "$err" "--out is missing"
new="--data $work/corpus --out $work/new"
for wrong in "magic:there is no memory 'magic'" "a=lamemo:max_step=5:--max-step is the same for all" \
    "a=lamemo:heads=5:unknown option '--heads'" "../a=xl:cannot be a label" \
    "a=lamemo:attn_type=0:--attn-type 0 does not go with memory lamemo" \
    "a=lamemo:scheduler_time=9:--scheduler-time is the same for all" \
    "a=lamemo:init_from=$work/whole/xl-s1:all models begin with random weights" \
    "a=lamemo:help:'help' is no option of a model" "a=lamemo:memory=xl:'memory' is no option of a model" \
    "a=lamemo:lr=1:: no option's name after" \
    "a=xl:n_layer=x:'x' is not an integer"; do
    # shellcheck disable=SC2086
    run 2 compare $new "${wrong%:*}"
    says "$err" "${wrong##*:}"
done
# shellcheck disable=SC2086
run 2 compare $new xl:mem_len=5
says "$err" "'xl:mem_len=5' needs a label: LABEL=xl:mem_len=5"
[ ! -e "$work/new" ] || fail "a refused comparison left a folder"
strange=$work/$(printf 'corp\377us') # no name that JSON can hold
cp -r "$work/corpus" "$strange"
run 2 compare --data "$strange" --out "$work/new" xl
says "$err" "not UTF-8, compare.json cannot name it"
[ ! -e "$work/new" ] || fail "a refused comparison left a folder"
mkdir -p "$work/new/xl-s1111"
# shellcheck disable=SC2086
run 2 compare $new xl
says "$err" "xl-s1111 is there already, but no compare.json"
(
    flock 9
    run 1 compare --out "$work/whole"
    says "$err" "another process is comparing here"
) 9< "$work/whole"
cp -r "$work/whole" "$work/broken"
head -c 300 "$work/whole/compare.json" > "$work/broken/compare.json"
run 1 compare --out "$work/broken"
says "$err" "compare.json: not JSON"

# A wrong word in compare.json is blamed on it, and so is one that would do something else.
wrong_word() { # wrong_word EDIT MESSAGE
    sed "$1" "$work/whole/compare.json" > "$work/broken/compare.json"
    ! cmp -s "$work/whole/compare.json" "$work/broken/compare.json" || fail "nothing changed: $1"
    run 1 compare --out "$work/broken"
    says "$err" "broken/compare.json: $2"
}
wrong_word 's/"lr": "[^"]*"/"lr": "fast"/' "--lr: 'fast' is not a number"
wrong_word 's/"lr": "[^"]*"/"rl": "0.1"/' "options: 'rl' is no option of a training"
wrong_word 's/"lr": "[^"]*"/"help": true/' "options: 'help' is no option of a training"
wrong_word 's/"lr": "[^"]*"/"overwrite": true/' "options: 'overwrite' is no option of a training"
wrong_word 's/"lr": "[^"]*"/"lr": true/' "options: lr must be a text"
wrong_word 's/"definition": "xl"/"definition": "xl:heads=5"/' "unknown option '--heads'"
wrong_word 's/"definition": "xl"/"definition": "xl:alpha=zero"/' "--alpha does not apply to memory xl"
wrong_word 's/"definition": "xl"/"definition": "xl:max-step=5"/' "xl=xl:max-step=5: --max-step is the same for all"

# An option of one memory is for the models that have it; one for none of them is a mistake.
# shellcheck disable=SC2086
run 0 compare --data "$work/corpus" $small --out "$work/parts" --rate 2 --max_step 1 none compressive lamemo
grep -q '"rate": 2' "$work/parts/compressive-s1111/last/config.json" || fail "--rate is lost"
! grep -q "has no effect" "$err" || fail "--mem-len went to a model that cannot use it"
# shellcheck disable=SC2086
run 2 compare --data "$work/corpus" $small --out "$work/none" --rate 2 none lamemo
says "$err" "--rate does not apply to any of the models"
run 2 compare --data "$work/corpus" --out "$work/none" a=xl:alpha=zero
says "$err" "--alpha does not apply to memory xl, only to: lamemo"

# A model and a seed more; one run cannot be made, one diverges, the others are.
: > "$work/whole/xl-s3"
run 1 compare --out "$work/whole" --seeds 3 wild=xl:optim=sgd:lr=1e6:clip=0
says "$err" "1 of 12 runs failed; lamemo compare --out $work/whole tries again"
grep -q '^wild,xl,3,diverged,' "$work/whole/compare.csv" || fail "wild did not diverge"
grep -q '^xl .* (2 of 3)' "$work/whole/compare.txt" || fail "a run of xl should be missing"
grep -q '^wild .* diverged  *diverged$' "$work/whole/compare.txt" || fail "not listed as diverged"
rm "$work/whole/xl-s3"
run 0 compare --out "$work/whole"
[ "$(grep -c ',done,60,' "$work/whole/compare.csv")" -eq 9 ] || fail "not nine runs in compare.csv"
