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
says "$err" " MB available; use smaller sizes, or set --max-memory higher"
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

# Corpora: what their files claim is not believed.
# damaged FILE: a corpus whose FILE comes from standard input.
damaged() {
    rm -rf "$work/damaged"
    cp -r "$work/corpus" "$work/damaged"
    cat > "$work/damaged/$1"
}
for text in '[],' '{},' '{"a":['; do
    { printf '{"splits":[' && repeated "$text"; } | damaged corpus.json
    limited 1 train --data "$work/damaged" --out "$work/x" --max-step 1
    says "$err" "corpus.json: "
    limited 1 eval --data "$work/damaged" -m "$work/run/best"
    says "$err" "corpus.json: "
done
for number in 2147483647 1000000000000000000; do
    sed "s/\"vocab_size\": [0-9]*/\"vocab_size\": $number/" "$work/corpus/corpus.json" | damaged corpus.json
    limited 1 train --data "$work/damaged" --out "$work/x" --max-step 1
    says "$err" "corpus.json"
done
# ones FILE FROM: with eight bytes 0x7f from FROM on, in a token file the width or the number of its tokens.
ones() {
    head -c "$2" "$1" && printf '\177\177\177\177\177\177\177\177' && tail -c +$(($2 + 9)) "$1"
}
for from in 8 16 24; do
    ones "$work/corpus/train.bin" $from | damaged train.bin
    limited 1 train --data "$work/damaged" --out "$work/x" --max-step 1
    says "$err" "train.bin: "
done
repeated 'LAMEMOTK' | damaged train.bin
limited 1 train --data "$work/damaged" --out "$work/x" --max-step 1
says "$err" "train.bin: "
[ ! -e "$work/x" ] || fail "a refused run leaves a folder"

# Logs: ten million bytes, and a hundred times as much, packed.
gzipped() { # gzipped COUNT TEXT: so many times ten million bytes of it
    yes "$2" | head -c 10000000 | gzip -1 > "$work/part.gz"
    for i in $(seq "$1"); do cat "$work/part.gz"; done
}
mkdir "$work/log"
yes '{"step":1,"loss":1}' | head -c 10000000 > "$work/log/metrics.jsonl"
limited 0 report "$work/log"
repeated '{"step":1,"loss":[[[[' > "$work/log/metrics.jsonl"
limited 0 report "$work/log"
says "$out" "nothing is recorded yet"
for text in '{' '{"a":1}' '{"step":1}'; do
    gzipped 50 "$text" > "$work/log.gz"
    limited 1 report "$work/log.gz"
    says "$err" "log.gz"
done

# Packed texts.
gzipped 12 'more of the same' > "$work/text.gz"
for command in "score @$work/text.gz" "generate -n 1 @$work/text.gz" "eval --data $work/text.gz"; do
    # shellcheck disable=SC2086
    limited 1 $command -m "$work/run/best"
    says "$err" "text.gz: "
    says "$err" "unpack it before, if that is right"
done
limited 0 prepare "$work/text.gz" --out "$work/streamed" # takes no memory, only disk
rm -r "$work/streamed"

# PyTorch files: a legacy one is a pickle, and this one makes a call of None and throws it away, two million times.
{ printf '\200\002' && repeated 'N)R0' && printf 'N.'; } > "$work/bomb.pt"
limited 1 import "$work/bomb.pt" --out "$work/imported"
says "$err" "bomb.pt: "
repeated 'PK\3\4' > "$work/bomb.pt"
limited 1 import "$work/bomb.pt" --out "$work/imported"
says "$err" "bomb.pt: "
[ ! -e "$work/imported" ] || fail "a refused import leaves a folder"

# What may take minutes ends at the first SIGTERM, and leaves nothing.
# stopped COMMAND ARG...: SIGTERM about a second after the beginning.
stopped() {
    "$LAMEMO" "$@" > "$out" 2> "$err" &
    pid=$!
    hears $pid
    sleep 1
    halt TERM $pid
    [ "$code" -eq 143 ] || [ "$code" -eq 0 ] || fail "lamemo $* exited with $code after SIGTERM"
}
if [ $most != unlimited ]; then
    for i in $(seq 30); do cat "$work/text"; done > "$work/most"
    for i in 1 2 3 4 5 6 7 8 9 10; do cat "$work/most"; done > "$work/more"
    run 0 prepare "$work/more" --out "$work/large-corpus"
    stopped score "@$work/most" -m "$work/long" -t 1
    changed broad 's/"tgt_len": 16/"tgt_len": 12000/; s/"mem_len": 16/"mem_len": 12000/'
    stopped analyze --data "$work/large-corpus" -m "$work/broad" --out "$work/analysis" -t 1
    [ ! -e "$work/analysis" ] || [ -z "$(ls "$work/analysis")" ] || fail "a stopped analysis leaves files"
    for i in $(seq 20); do cat "$work/text.gz"; done > "$work/more.gz"
    stopped prepare "$work/more.gz" --out "$work/streamed"
    ! ls "$work"/streamed* > /dev/null 2>&1 || fail "a stopped prepare leaves files"
fi
