# model_test.sh -- what one does with a trained model: eval, score, generate, info, verify, bench.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
export OMP_NUM_THREADS=1

number() { sed -n "s/.*\"$1\": *\([-0-9.e]*\).*/\1/p" "$out" | head -1; }
near() { awk "BEGIN { d = $1 - $2; if (d < 0) d = -d; exit !(d <= $3) }" || fail "$1 is not $2"; }

seq 1 3000 | sed 's/.*/line & of the text, and again line &/' > "$work/text"
run 0 prepare --out "$work/corpus" "$work/text"
for memory in lamemo xl none; do
    run 0 train --recipe paper --data "$work/corpus" --memory $memory --out "$work/$memory" --n_layer 2 --n_head 2 \
        --d_model 32 --d_head 16 --d_inner 64 --tgt_len 16 --mem_len 16 --batch_size 4 \
        --max_step 60 --eval_interval 60 --max_eval_steps 5 --lr 0.01 --threads 1 --no-test
done

# eval: the split, its token count by the published protocol, and every way to ask.
run 0 eval --model "$work/lamemo" --data "$work/corpus" --json
test_tokens=$(sed -n '/"tokens"/,/}/s/.*"test": *\([0-9]*\).*/\1/p' "$work/corpus/corpus.json")
[ "$(number tokens)" -eq $((16 * (test_tokens / 16 - 1))) ] || fail "$(number tokens) tokens"
run 0 eval --model "$work/lamemo" --data "$work/corpus" --split valid --batch-size 2 --tgt-len 8 \
    --mem-len 8,16,32 --clamp-len 20 --same-length
[ "$(grep -c valid "$out")" -eq 3 ] || fail "not three rows"
for command in "eval --data $work/corpus" "score x" "generate x"; do
    # shellcheck disable=SC2086
    run 2 $command --model "$work/none" --mem-len 10
    says "$err" "--mem-len 10: memory none has none to be longer"
done
run 0 eval --model "$work/none" --data "$work/corpus" --json --mem-len 0
none=$(number nats)
run 0 eval --model "$work/none" --data "$work/corpus" --json
near "$(number nats)" "$none" 0

# ext_len: a segment of 4 that sees the 4 tokens before it as context; LaMemo has no use for it.
run 0 eval --model "$work/none" --data "$work/corpus" --json --tgt-len 4
short=$(number nats)
run 0 eval --model "$work/none" --data "$work/corpus" --json --tgt-len 4 --ext-len 4
says "$out" '"ext_len":4'
[ "$(number nats)" != "$short" ] || fail "ext_len changes nothing"
run 2 eval --model "$work/lamemo" --data "$work/corpus" --ext-len 4
says "$err" "--ext-len 4 has no meaning for memory lamemo, only for: none, xl"
# Lengths beyond the text are as long as it is: 300 columns of a million rows would be refused.
run 0 eval --model "$work/none" --data "$work/corpus" --json --batch-size 300 --ext-len 1000000
says "$out" '"ext_len":1000000'
run 0 eval --model "$work/lamemo" --data "$work/corpus" --batch-size 300 --mem-len 1000000

# One stream, three ways: eval of a file, the same on standard input, and score, whose start is a newline.
{ echo; head -c 3000 "$work/text"; } > "$work/piece"
run 0 eval --model "$work/lamemo" --data "$work/piece" --batch-size 1 --json
eval_nats=$(number nats)
[ "$(number tokens)" -eq 3000 ] || fail "not 3000 tokens"
# A short text file is not cut into many beginnings unless that is asked for: 3001 bytes have 11 times 16 segments of 16.
run 0 eval --model "$work/lamemo" --data "$work/piece" --json
says "$out" '"batch":11,'
run 0 eval --model "$work/lamemo" --data "$work/piece" --json --tgt-len 150
says "$out" '"batch":1,'
run 0 eval --model "$work/lamemo" --data "$work/piece" --json --batch-size 16
says "$out" '"batch":16,'
"$LAMEMO" eval --model "$work/lamemo" --data - --batch-size 1 --json < "$work/piece" > "$out" 2> "$err"
near "$(number nats)" "$eval_nats" 0
xz -k "$work/piece"
run 0 eval --model "$work/lamemo" --data "$work/piece.xz" --batch-size 1 --json # packed: the same text
near "$(number nats)" "$eval_nats" 0
run 1 eval --model "$work/lamemo" --data /dev/null
says "$err" "/dev/null: the text is empty"
sed 's/$/\r/' "$work/piece" > "$work/piece.crlf"
run 0 eval --model "$work/lamemo" --data "$work/piece.crlf"
says "$err" "lines end with CR LF, which became LF"
cp "$out" "$work/lf"
run 0 eval --model "$work/lamemo" --data "$work/piece.crlf" --keep-crlf
! cmp -s "$out" "$work/lf" || fail "--keep-crlf changes nothing"
run 2 eval --model "$work/lamemo" --data "$work/piece" --split valid
says "$err" "is a text, not a corpus folder with splits"
printf 'line' > "$work/one"
run 0 eval --model "$work/lamemo" --data "$work/one"
grep -q ' - ' "$out" || fail "one segment has an error"
head -c 3000 "$work/text" > "$work/rest"
run 0 score --model "$work/lamemo" --json "@$work/rest"
near "$(number nats_per_token)" "$eval_nats" 1e-6
# Lengths that the text never fills cost nothing.
run 0 score --model "$work/lamemo" --mem-len 300 --tgt-len 100 --tokens "three lines of a text, and no more than that"
cp "$out" "$work/filled"
run 0 score --model "$work/lamemo" --mem-len 1000000 --tgt-len 1000000 --tokens "three lines of a text, and no more than that"
cmp -s "$out" "$work/filled" || fail "a memory that is never filled changes the score"
same_story() { # memories and segments that are never filled, too
    for lengths in "$1" "$2"; do
        cp "$out" "$work/filled"
        # shellcheck disable=SC2086
        run 0 generate --model "$work/lamemo" $lengths -n 40 --seed 3 "three lines of a text"
    done
    cmp -s "$out" "$work/filled" || fail "$1 and $2 tell two stories"
}
same_story "--mem-len 300" "--mem-len 1000000"
same_story "--refresh 300" "--refresh 1000000"
same_story "--prompt-len 300" "--prompt-len 1000000"
same_story "--prompt-len 300 --refresh 301" "--prompt-len 1000000 --refresh 999999" # the prompt's segment ends with it
run 0 generate --model "$work/lamemo" --samples 300 --refresh 1000000 -n 2 x # so many rows would be refused
run 0 score --model "$work/lamemo" --tokens "line 1"
[ "$(wc -l < "$out")" -eq 7 ] || fail "not a line per token"
run 0 score --model "$work/lamemo" --tokens --json "$(printf 'a\n\377')"
says "$out" '"symbols":["a","\n","�"]'

# generate: the same seed, the same text; more samples; stops; JSON.
run 0 generate --model "$work/lamemo" --prompt "line 7" -n 80 --seed 3
cp "$out" "$work/first"
run 0 generate --model "$work/lamemo" --prompt "line 7" -n 80 --seed 3
cmp "$out" "$work/first" || fail "one seed gave two texts"
run 0 generate --model "$work/lamemo" --prompt "line 7" -n 80 --seed 4
! cmp -s "$out" "$work/first" || fail "two seeds gave one text"
printf 'a\000b' > "$work/zero"
run 0 generate --model "$work/lamemo" --prompt "@$work/zero" -n 0 --echo
printf 'a\000b\n' | cmp - "$out" || fail "a zero byte ended the prompt"
printf 'line 7' > "$work/prompt"
run 0 generate --model "$work/lamemo" --prompt "@$work/prompt" -n 80 --seed 3
cmp "$out" "$work/first" || fail "a prompt from a file differs"
run 0 generate --model "$work/lamemo" --prompt "line 7" -n 40 --temp 0 --refresh 1 --echo
says "$out" "line 7"
run 0 generate --model "$work/xl" --samples 3 -n 20 --top-k 5 --top-p 1 --min-p 0.1 \
    --repeat-penalty 1.2 --json --logprobs
[ "$(grep -c '"finish_reason":"length"' "$out")" -eq 3 ] || fail "not three samples"
says "$out" '"token_logprobs"'
says "$out" '"symbols"'
run 2 generate --model "$work/lamemo" --logprobs
says "$err" "--logprobs needs --json"
run 2 generate --model "$work/lamemo" -p one two
says "$err" "two prompts, --prompt one and 'two'"
run 0 generate --model "$work/lamemo" "line 7" -n 80 --seed 3
cmp "$out" "$work/first" || fail "a prompt without --prompt differs"
run 0 generate --model "$work/lamemo" "line 7" -n 3 --json --echo
says "$out" '"prompt":"line 7"'
for command in "generate --refresh" "generate --mem-len" "score a --mem-len" "analyze --tgt-len"; do
    # shellcheck disable=SC2086
    run 2 $command 0 --model "$work/lamemo" # it never meant "none"
    says "$err" "'0' is not an integer between 1 and"
done
run 0 generate --model "$work/lamemo" --prompt "line 1" -n 500 --stop " of" --json
says "$out" '"finish_reason":"stop"'
! grep -q ' of' "$out" || fail "the stop string came out"
run 0 generate --model "$work/none" -n 0
run 0 generate --model "$work/lamemo" -n 10 # no prompt at all

# The throughput is told on standard error, but not with -q.
says "$err" "tokens/s"
[ "$(wc -l < "$err")" -eq 1 ] || fail "more than the throughput"
run 0 generate --model "$work/lamemo" -n 10 -q
[ ! -s "$err" ] || fail "-q is not quiet"

# Words without quotes, several prompts, lines of a file; each prompt is continued as if it were alone.
run 2 generate --model "$work/lamemo" The king said
says "$err" 'a prompt of several words needs quotes: "The king said"'
run 0 generate --model "$work/lamemo" -n 20 "line 1" --json --echo
cp "$out" "$work/one"
run 0 generate --model "$work/lamemo" -n 20 "line 2" --json --echo
cat "$out" >> "$work/one"
run 0 generate --model "$work/lamemo" -n 20 -p "line 1" -p "line 2" --json --echo
sed 's/"prompt_index":[01],//' "$out" | cmp - "$work/one" || fail "two prompts are not continued as each alone"
[ "$(grep -c '"prompt_index":[01],' "$out")" -eq 2 ] || fail "the prompts are not numbered"
cp "$out" "$work/two"
printf 'line 1\r\n\nline 2' > "$work/prompts"
run 0 generate --model "$work/lamemo" -n 20 --prompts "$work/prompts" --json --echo
cmp "$out" "$work/two" || fail "prompts from lines differ"
printf '{"prompt": "line 1", "id": 3}\n"line 2"\n' > "$work/prompts.jsonl"
run 0 generate --model "$work/lamemo" -n 20 --prompts "$work/prompts.jsonl" --json --echo
cmp "$out" "$work/two" || fail "prompts from JSON lines differ"
run 0 generate --model "$work/lamemo" -n 3 -p a -p b --samples 2
[ "$(grep -c '^--- prompt [12] of 2, sample [12] of 2$' "$out")" -eq 4 ] || fail "no headings"
run 0 generate --model "$work/lamemo" -n 3 -p a -p b
says "$out" "--- prompt 2 of 2"
printf '{"text": "line 1"}\n' > "$work/wrong.jsonl"
run 1 generate --model "$work/lamemo" --prompts "$work/wrong.jsonl"
says "$err" 'wrong.jsonl:1: neither a string nor an object with a string "prompt"'
printf '\n\n' > "$work/blank"
run 1 generate --model "$work/lamemo" --prompts "$work/blank"
says "$err" "blank: no line has a text"
run 2 generate --model "$work/lamemo" "$work/prompt"
says "$err" "prompt' is a file: @$work/prompt takes the text in it"

# Escapes in stops; seeds that nobody chose.
run 0 generate --model "$work/lamemo" --prompt "line 1" -n 500 --stop '\n' --json
says "$out" '"finish_reason":"stop"'
! grep -qF '\n' "$out" || fail "the newline came out"
run 2 generate --model "$work/lamemo" --stop '\q'
says "$err" "--stop: after a backslash there is n, t, r, xHH or another backslash"
run 2 generate --model "$work/lamemo" --stop '\x00'
# shellcheck disable=SC1003
run 2 generate --model "$work/lamemo" --stop 'end\'
run 0 generate --model "$work/lamemo" "line 1" -n 40 --seed random
cp "$out" "$work/drawn"
seed=$(sed -n 's/.*, seed \([0-9]*\)$/\1/p' "$err")
run 0 generate --model "$work/lamemo" "line 1" -n 40 --seed "$seed"
cmp "$out" "$work/drawn" || fail "the seed that was told gives another text"
run 2 generate --model "$work/lamemo" --seed x
says "$err" "--seed: 'x' is not an integer between -9223372036854775808 and 9223372036854775807, nor random"

# score: several texts are ranked, and each is scored as if it were alone.
printf 'line 1\nqqqqqqqq\n' > "$work/lines"
run 0 score --model "$work/lamemo" --json "line 1"
cp "$out" "$work/alone"
run 0 score --model "$work/lamemo" --json qqqqqqqq "line 1" "@$work/lines"
sed -n '2{s/,"index.*/}/;p}' "$out" | cmp - "$work/alone" || fail "a text among others is scored otherwise"
[ "$(sed 's/.*"rank":\([0-9]\).*/\1/' "$out" | tr '\n' ' ')" = "3 1 2 " ] || fail "the ranks are wrong"
says "$out" "\"name\":\"$work/lines\""
run 0 score --model "$work/lamemo" qqqqqqqq "line 1"
sed -n 2p "$out" | grep -q '^   1 .*line 1$' || fail "the likelier text is not first"
run 0 score --model "$work/lamemo" --texts "$work/lines"
sed -n 2p "$out" | grep -q 'lines:1: line 1$' || fail "a line is not named"
printf '{"text": "line 1"}\n"qqqqqqqq"\n' > "$work/lines.jsonl"
run 0 score --model "$work/lamemo" --texts "$work/lines.jsonl" --json
[ "$(wc -l < "$out")" -eq 2 ] || fail "not a JSON line for each"
run 2 score --model "$work/lamemo"
says "$err" "TEXT is missing: a text, @FILE, or - for standard input; or --texts FILE"
run 2 score --model "$work/lamemo" "$work/lines"
says "$err" "lines' is a file: @$work/lines takes the text in it"
run 0 score --model "$work/lamemo" b.txt
says "$err" "'b.txt' is taken as a text; a file would be @b.txt"
run 0 score --model "$work/lamemo" --per-token "line 1"
[ "$(wc -l < "$out")" -eq 7 ] || fail "not a line per token"
run 2 score --model "$work/none" --mem-len 5 a
says "$err" "--mem-len 5: memory none has none to be longer"

# info and verify know the folder and the traces; bench reports what scripts read.
run 0 info --model "$work/lamemo" --json
says "$out" '"parameters"'
run 0 info --preset wt103-base --table
says "$out" "192.32"
run 0 info --preset wt103-base --table --json
says "$out" '"paper": 191000000.0'
run 2 info --memory none --table
says "$err" "--mem-len must not be 0"
run 0 info --preset tiny --n-layer 8 --d_model 320 --n-head 5 --mem-len 0 --memory xl --n-token 10000
says "$out" "memory xl, 8 layers, d_model 320, 5 heads of 32"
says "$out" "vocabulary 10000; tgt_len 64, mem_len 0"
says "$out" "batch 16" # the preset's
run 0 info --preset tiny --data "$work/corpus" --alpha zero
says "$out" "memory lamemo (alpha zero), 4 layers"
says "$out" "vocabulary 256;"
# Refreshed from layer 4 of 4 on, which is never: what Transformer-XL multiplies.
run 0 info --preset tiny --n-token 256 --memory xl
projected=$(grep "memory rows" "$out")
run 0 info --preset tiny --n-token 256 --refresh-from 4
says "$out" "memory lamemo (refresh from layer 4), 4 layers"
[ "$(grep "memory rows" "$out")" = "$projected" ] || fail "keys and values cost more than Transformer-XL's"
! grep -q "look-ahead attention" "$out" || fail "look-ahead in no layer costs something"
run 0 info --preset tiny --n-token 256 --refresh-every 2
says "$out" "memory lamemo (refresh every 2 segments), 4 layers"
run 2 info --preset tiny --refresh-every 2 --window current
says "$err" "--refresh-every 2 needs window previous"
run 2 info --preset tiny --refresh-from 5
says "$err" "--refresh-from 5, must be 0 to the number of layers, 4"
run 2 info --preset tiny --memory xl --refresh-from 1
says "$err" "--refresh-from does not apply to memory xl, only to: lamemo"
run 2 info --preset tiny --tgt-len 1048576 --batch-size 1048576
says "$err" "batch 1048576 times 1.04864e+06 rows is more than 268435456 rows"
run 2 info --data "$work/corpus" --n-token 5
says "$err" "--data cannot be combined with --model or --n-token"
run 0 info --model "$work/lamemo" --n_layer 7
says "$out" "7 layers"
run 2 info --model "$work/lamemo" --memory xl
says "$err" "--model has its own shape and memory"
run 2 info --preset tiny --memory xl --rate 3
says "$err" "--rate does not apply to memory xl, only to: compressive"
run 0 verify tests/golden/lamemo.safetensors tests/golden/xl_train.safetensors
says "$out" "ok"
run 0 verify --device cpu --json tests/golden/lamemo_longmem.safetensors
says "$out" '"ok":true'
run 1 verify --tolerance 1e-18 tests/golden/lamemo.safetensors
says "$err" "1 of 1 traces differ"
run 0 bench eval --preset tiny --n-layer 1 --d-model 32 -b 2 --seconds 0.1 --json
says "$out" '"tokens_per_second"'

# What is wrong is named.
run 2 eval --model "$work/lamemo"
says "$err" "--data"
run 1 eval --model "$work/none/best/model.safetensors" --data "$work/corpus"
says "$err" "best/model.safetensors: a file, not the folder of a model or a run"
run 1 eval --model "$work/absent" --data "$work/corpus"
says "$err" "$work/absent"
run 2 generate --model "$work/lamemo" --prompt @ -n 3
says "$err" "'@' needs a file name after it"
# Names that are not UTF-8 are no reason to fail in JSON, which is.
odd=$work/$(printf 'caf\351')
cp "$work/prompt" "$odd"
seq 1 50 >> "$odd"
run 0 eval --model "$work/lamemo" --data "$odd" --json
says "$out" "$(printf 'caf\357\277\275')"
run 1 eval --model "$work/lamemo" --data "$work/lamemo"
says "$err" "lamemo: not a corpus folder: it has no corpus.json"
run 1 eval --model "$work/lamemo" --data "$work/no-such-file"
says "$err" "no-such-file"
printf a > "$work/one"
run 1 eval --model "$work/lamemo" --data "$work/one"
says "$err" "one: the text is one token, nothing follows to be predicted"
run 2 generate --model "$work/lamemo" --top-p 2
run 2 generate --model "$work/lamemo" --top-p 0
says "$err" "--top-p 0: must be above 0 and at most 1"
run 2 generate --model "$work/lamemo" --stop ""
says "$err" "--stop: the text is empty"
run 0 bench generate --preset tiny --seconds 0.1 --json --weights int8
says "$out" '"over_reading"'
says "$out" '"token_bytes": 1138688'
run 2 bench train --preset tiny --seconds 0.1 --weights int8
says "$err" "cannot be trained"
run 2 bench fly
says "$err" "fly"
run 2 verify --device gpu tests/golden/lamemo.safetensors
says "$err" "gpu"
run 1 verify README.md
says "$err" "README.md"
seq 1 400 | tr '\n' ' ' > "$work/digits"
run 0 prepare --corpus words --out "$work/words" "$work/digits"
run 0 train --data "$work/words" --out "$work/words_model" --n_layer 1 --d_model 16 --batch_size 2 --tgt_len 8 --mem_len 8 \
    --max_step 1 --eval_batch_size 1 --no-test
# nearly all of these numbers are <unk>, which is not written unless asked for
run 0 generate --model "$work/words_model" -n 40 1
! grep -q unk "$out" || fail "<unk> was written"
run 0 generate --model "$work/words_model" -n 40 --allow-unk --top-p 1 1
says "$out" "<unk>"
run 1 eval --model "$work/lamemo" --data "$work/words"
says "$err" "vocabulary"
cp -r "$work/lamemo/best" "$work/broken"
head -c 1000 "$work/lamemo/best/model.safetensors" > "$work/broken/model.safetensors"
run 1 generate --model "$work/broken" -n 1
says "$err" "model.safetensors"

# A text from a file or a pipe is named when it cannot be read.
for command in "generate" "score"; do
    run 1 $command --model "$work/words_model" "@$work/lamemo/best/model.safetensors"
    says "$err" "$work/lamemo/best/model.safetensors: text: not text: a zero byte at byte 2"
done
run 1 eval --model "$work/words_model" --data "$work/lamemo/best/model.safetensors"
says "$err" "$work/lamemo/best/model.safetensors: text: not text: a zero byte at byte 2"
: > "$work/nothing"
run 1 score --model "$work/lamemo" "@$work/nothing"
says "$err" "$work/nothing: the text is empty"

# Waiting for input or reading a long text, it hears a signal.
mkfifo "$work/pipe"
seq 1 400000 > "$work/long"
for words in "generate -p @$work/pipe" "score @$work/pipe" "eval --data $work/pipe" \
    "generate -p @$work/long" "score @$work/long"; do
    # shellcheck disable=SC2086
    "$LAMEMO" $words --model "$work/lamemo" > "$out" 2> "$err" &
    pid=$!
    case $words in
        *pipe) exec 9> "$work/pipe" ;; # returns when it was opened for reading
    esac
    hears $pid
    sleep 0.3 # somewhere in its work; anywhere will do
    halt TERM $pid
    exec 9>&-
    [ $code -eq 143 ] || fail "$words: exit $code after SIGTERM"
    says "$err" "stopped"
done

# A result that is not finite is never printed as one: the model is named, and what is wrong in it.
# weights FOLDER FLOAT FROM TO: sets the floats FROM .. TO of model.safetensors, counted from its end.
weights() {
    rm -rf "$1"
    cp -r "$work/lamemo/best" "$1"
    i=$4
    while [ "$i" -le "$3" ]; do
        # shellcheck disable=SC2059
        printf "$2"
        i=$((i + 1))
    done | dd of="$1/model.safetensors" bs=4 conv=notrunc status=none \
        seek=$((($(wc -c < "$1/model.safetensors") / 4) - $3))
}
[ $(($(wc -c < "$work/lamemo/best/model.safetensors") % 4)) -eq 0 ] || fail "the file is not of floats"
vocabulary=$(sed -n 's/.*"n_token": *\([0-9]*\).*/\1/p' "$work/lamemo/best/config.json")
weights "$work/nan" '\0\0\300\177' 1 1
# 3e38, in the last norm's bias: finite, but no float holds what becomes of them
weights "$work/wild" '\346\261\141\177' $((vocabulary + 32)) $((vocabulary + 1))
for command in "score abc" "score abc --json" "generate abc" "generate abc --json --logprobs --temp 0" \
    "eval --data $work/corpus" "eval --data $work/piece --json" \
    "analyze --data $work/corpus --out $work/analysis --no-extrapolate --story 2 --segments 2"; do
    # shellcheck disable=SC2086
    run 1 $command --model "$work/nan"
    says "$err" "$work/nan/model.safetensors: element $((vocabulary - 1)) of tensor crit.out_layers.0.bias is not finite"
    [ ! -s "$out" ] || fail "$command: prints a result"
    # shellcheck disable=SC2086
    run 1 $command --model "$work/wild"
    says "$err" "model $work/wild: "
    says "$err" "not finite"
    [ ! -s "$out" ] || fail "$command: prints a result"
done
[ ! -e "$work/analysis" ] || fail "a report of a model without numbers"
# Finite log-probabilities, but what is a perplexity of exp(3e38)?
weights "$work/sure" '\346\261\141\177' 1 1
for more in "" --json --tokens; do
    # shellcheck disable=SC2086
    run 1 score --model "$work/sure" abc $more
    says "$err" "model $work/sure: the perplexity, exp(3e+38), is not finite"
    [ ! -s "$out" ] || fail "score prints a result"
done

# Files that contradict each other, or say more than they should, are refused by name.
broken() {
    rm -rf "$work/broken"
    cp -r "$1" "$work/broken"
}
broken "$work/lamemo/best"
printf '\000{}' >> "$work/broken/config.json"
for command in "score abc" "eval --data $work/corpus" "info"; do
    # shellcheck disable=SC2086
    run 1 $command --model "$work/broken"
    says "$err" "$work/broken/config.json: not JSON: "
done
for more in '}' ' null' '\000'; do
    for file in config.json vocab.json; do
        broken "$work/lamemo/best"
        # shellcheck disable=SC2059
        printf "$more" >> "$work/broken/$file"
        run 1 generate --model "$work/broken" abc
        says "$err" "$work/broken/$file: not JSON: "
    done
    for file in corpus.json vocab.json; do
        broken "$work/corpus"
        # shellcheck disable=SC2059
        printf "$more" >> "$work/broken/$file"
        run 1 eval --model "$work/lamemo" --data "$work/broken"
        says "$err" "$work/broken/$file: not JSON: "
    done
done
broken "$work/corpus"
sed -i 's/"kind": "[a-z]*"/"kind": "words"/' "$work/broken/corpus.json"
run 1 eval --model "$work/lamemo" --data "$work/broken"
says "$err" "$work/broken/vocab.json: a vocabulary of bytes, but corpus.json says words"
run 1 train --data "$work/broken" --out "$work/never" --preset tiny
says "$err" "$work/broken/vocab.json: a vocabulary of bytes, but corpus.json says words"
broken "$work/lamemo/best"
sed -i "s/\"size\": $vocabulary/\"size\": 3/" "$work/broken/vocab.json"
run 1 score --model "$work/broken" abc
says "$err" "$work/broken/vocab.json: \"size\" is not the number of its symbols, $vocabulary"
broken "$work/lamemo/best"
cp "$work/words/vocab.json" "$work/broken/vocab.json"
for command in "score --model $work/broken abc" "export --model $work/broken --out $work/never" \
    "prepare --vocab-from $work/broken --out $work/never $work/text"; do
    # shellcheck disable=SC2086
    run 1 $command
    says "$err" "$work/broken/vocab.json: the vocabulary has "
    says "$err" " tokens, the model $vocabulary"
    [ ! -e "$work/never" ] || fail "$command: writes something"
done
