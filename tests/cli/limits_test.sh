#!/bin/sh
# limits_test.sh -- no small file makes a command take much memory, or deaf to the first SIGTERM.
# Every command runs with 512 MB of addresses more than it has when it does nothing; what would take more, fails.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

most=1100000 # kB: the program, its libraries and threads, and 512 MB
if ! (ulimit -v $most && "$LAMEMO" --version) > /dev/null 2>&1; then
    most=unlimited # a sanitizer takes terabytes of addresses
fi

# limited CODE ARG...: run, but within the limit.
limited() {
    want=$1
    shift
    code=0
    (ulimit -v $most && exec "$LAMEMO" "$@") > "$out" 2> "$err" || code=$?
    [ "$code" -eq "$want" ] || fail "lamemo $* exited with $code, not $want"
}

# repeated TEXT: ten million bytes of it, roughly.
repeated() {
    yes "$1" | tr -d '\n' | head -c 10000000
}

i=0
while [ $i -lt 400 ]; do
    echo "line $i of a text whose words come again"
    i=$((i + 1))
done > "$work/text"
run 0 prepare "$work/text" --out "$work/corpus"
run 0 train --data "$work/corpus" --out "$work/run" --recipe paper --memory lamemo --n-layer 2 --d-model 16 \
    --n-head 2 --d-head 8 --d-inner 32 --tgt-len 16 --mem-len 16 --batch-size 4 --max-step 2 --no-test -t 1

# changed NAME SED: a model whose config.json is another.
changed() {
    mkdir "$work/$1"
    cp "$work/run/best/model.safetensors" "$work/run/best/vocab.json" "$work/$1"
    sed "$2" "$work/run/best/config.json" > "$work/$1/config.json"
}

# A configuration that claims more than the weights hold is refused by name, not for want of memory.
changed tokens 's/"n_token": [0-9]*/"n_token": 16777216/'
changed deep 's/"n_layer": 2/"n_layer": 512/; s/"d_inner": 32/"d_inner": 65536/'
for model in tokens deep; do
    for command in "score hello" "generate hello" "eval --data $work/text" "export --out $work/x" \
        "analyze --data $work/corpus --out $work/x"; do
        # shellcheck disable=SC2086
        limited 1 $command -m "$work/$model"
        says "$err" "model.safetensors: tensor "
    done
done

# Lengths that the text does not fill take no memory, and change no result.
changed long 's/"tgt_len": 16/"tgt_len": 1048576/; s/"mem_len": 16/"mem_len": 1048576/'
limited 0 score hello -m "$work/run/best" -t 1
cp "$out" "$work/plain"
limited 0 score hello -m "$work/long" -t 1
cmp "$out" "$work/plain" || fail "a longer memory changes the score of five bytes"
limited 0 generate hello -n 3 -m "$work/long" -t 1
limited 0 eval --data "$work/corpus" --split valid --batch-size 4 -m "$work/long" -t 1

# What does not fit is refused with both numbers and the way out, before the first step of a run.
limited 1 train --data "$work/corpus" --out "$work/large" --memory lamemo --mem-len 1000000 --max-step 2 --max-memory 200M
says "$err" "--mem-len 1000000: needs "
says "$err" " MB available; use smaller sizes, or set --max-memory to allow it"
[ ! -e "$work/large" ] || fail "a refused run leaves a folder"

# Ten million bytes of JSON.
changed json ''
for text in '[],' '{},' '1,' '"",' '{"a":['; do
    { printf '{"symbols":[' && repeated "$text"; } > "$work/json/vocab.json"
    limited 1 score hello -m "$work/json"
    says "$err" "vocab.json: "
    cp "$work/json/vocab.json" "$work/json/model.safetensors.index.json"
    mv "$work/json/model.safetensors" "$work/json/kept"
    limited 1 score hello -m "$work/json"
    says "$err" "model.safetensors.index.json: "
    rm "$work/json/model.safetensors.index.json"
    # 10,000,000 as eight bytes, little end first
    { printf '\200\226\230\0\0\0\0\0' && repeated "$text"; } > "$work/json/model.safetensors"
    limited 1 score hello -m "$work/json"
    says "$err" "model.safetensors: "
    mv "$work/json/kept" "$work/json/model.safetensors"
done

# Training states: as many columns as it says, and no more.
cp -r "$work/run" "$work/wide"
rm -f "$work/wide/last/CRC32SUMS"
sed 's/"batch_size": 4/"batch_size": 1048576/' "$work/run/last/training_state.json" > "$work/wide/last/training_state.json"
limited 1 train --resume --out "$work/wide"
says "$err" "position.shifts has 4 numbers, batch_size is 1048576"

# One segment may take minutes: the first SIGTERM ends it all the same.
if [ $most != unlimited ]; then
    for i in 1 2 3 4 5 6 7 8 9 10; do cat "$work/text"; done > "$work/more"
    cat "$work/more" "$work/more" "$work/more" > "$work/most"
    "$LAMEMO" score "@$work/most" -m "$work/long" -t 1 > "$out" 2> "$err" &
    pid=$!
    sleep 1
    kill -TERM $pid 2> /dev/null || :
    code=0
    wait $pid || code=$?
    [ $code -eq 143 ] || [ $code -eq 0 ] || fail "score exited with $code after SIGTERM"
fi
