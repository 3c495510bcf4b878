# bpe_test.sh -- byte pairs from text to model and back: prepare, train, eval, score, generate, analyze, fine-tuning.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
export OMP_NUM_THREADS=1
cd "$work"

seq 1 1500 | sed 's/.*/The caf\xc3\xa9 has line & of the text, and again line &./' > text
run 0 prepare --corpus bpe --vocab-size 400 --out corpus text
says "$out" "text: bpe, vocabulary of 400, measured in ppl"
says corpus/vocab.json '"kind": "bpe"'
says corpus/vocab.json '"<|endoftext|>"'
says corpus/corpus.json '"kind": "bpe"'

# The same with any number of threads, packed, and through a pipe.
for threads in 1 3; do
    gzip -c text | "$LAMEMO" prepare -q --corpus bpe --max-vocab 400 --threads $threads --out piped --replace --name text -
    for file in vocab.json train.bin valid.bin test.bin; do
        cmp corpus/$file piped/$file || fail "$file depends on threads or packing"
    done
done

# Splits are cut by bytes, as for bytes.
run 0 prepare --corpus bpe --vocab-size 257 --split 50k/2k/1k --out sizes text
says "$out" "50,000 tokens"
says "$out" "2,000 tokens"

# Documents, and special tokens in the text.
mkdir tales
printf 'one tale' > tales/a.txt
printf 'two <|endoftext|> tales' > tales/b.txt
run 0 prepare --corpus bpe --vocab-size 257 --split 100/0/0 --out tales.plain tales
says "$out" "31 tokens"
run 0 prepare --corpus bpe --vocab-size 257 --split 100/0/0 --separate --special --out tales.apart tales
says "$out" "21 tokens"

# What has no meaning is refused.
run 2 prepare --corpus bpe --vocab-size 256 --out never text
says "$err" "--max-vocab 256: the 256 bytes and <|endoftext|> are tokens"
run 2 prepare --corpus bpe --lower --out never text
says "$err" "--lower: byte pairs keep the text as it is"
run 2 prepare --special --out never text
says "$err" "--special: only byte pairs (--corpus bpe) have a use for it"
run 1 prepare --corpus bpe --pattern '(' --out never text
says "$err" "pattern '(': missing closing parenthesis"
run 2 prepare --tokenizer corpus --pattern gpt2 --out never text
says "$err" "--pattern: the vocabulary of corpus has its own, or none"
[ ! -e never ] || fail "something was written"

# As tokenizer.json, and back: the same tokens.
run 0 export -m corpus --tokenizer tokenizer.json
says "$out" "tokenizer.json: 400 tokens"
run 2 export -m corpus --tokenizer tokenizer.json
says "$err" "exists already; --replace overwrites it"
run 2 export -m corpus --tokenizer never.json --dtype int8
says "$err" "--dtype: no weights are written without --out or --hf"
[ ! -e never.json ] || fail "something was written"
run 0 export -m corpus --tokenizer tokenizer.json --replace --json
says "$out" '{"tokenizer":"tokenizer.json","tokens":400}'
run 0 prepare --tokenizer tokenizer.json --out back text
for file in train.bin valid.bin test.bin; do
    cmp corpus/$file back/$file || fail "$file is another with tokenizer.json"
done
run 0 prepare --out bytes text
run 2 export -m bytes --tokenizer other.json
says "$err" "is one of bytes, not of byte pairs"
[ ! -e other.json ] || fail "something was written"

# A model of them.
small="--n_layer 2 --n_head 2 --d_model 16 --d_head 8 --d_inner 32 --tgt_len 8 --mem_len 8 --batch_size 4 --threads 1"
# shellcheck disable=SC2086
run 0 train --data corpus $small --lr 0.01 --max_step 60 --eval_interval 30 --max_eval_steps 5 --out model
grep -q '"valid_ppl"' model/metrics.jsonl || fail "not measured in perplexity"
says model/train.log "bits per byte"
says model/metrics.jsonl '"valid_bits_per_byte":'
run 0 eval -m model --data corpus --max-steps 20
says "$out" "bits/byte"
run 0 eval -m model --data corpus --batch-size 1 --json
# all tokens but the first: its bits are those of the text
text_bytes=$(sed -n '/"bytes": {/,/}/s/ *"test": \([0-9]*\).*/\1/p' corpus/corpus.json)
tr ',' '\n' < "$out" | tr -d '{}"' | awk -F: -v all="$text_bytes" '{ v[$1] = $2 } END {
    d = v["bits_per_byte"] - v["nats"] * v["tokens"] / log(2) / v["bytes"]
    exit !(all - v["bytes"] >= 0 && all - v["bytes"] < 20 && d * d < 1e-12 && v["bits_per_byte"] > 0) }' ||
    fail "bits per byte of $text_bytes bytes"
run 0 eval -m model --data corpus --max-steps 20
says "$out" "ppl"
tail -c 3000 text > end
printf 'caf\303' >> end # it ends inside a character
run 0 eval -m model --data end --batch-size 1
says "$out" "ppl"
run 0 score -m model --tokens "The caf$(printf '\303')"
says "$out" '\xc3'
run 0 score -m model --json "The caf$(printf '\303\251') has line"
says "$out" '"logprob'
run 0 generate -m model "The caf$(printf '\303\251')" -n 40 --echo
says "$out" "The caf$(printf '\303\251')"
iconv -f UTF-8 -t UTF-8 "$out" > /dev/null || fail "not UTF-8"
run 0 generate -m model "The" -n 5 --samples 2 --json --logprobs
says "$out" '"symbols"'
run 0 info -m model
run 0 analyze -m model --data corpus --out report --segments 6 --tokens 60 --extrapolate-len 8 --extrapolate 8 \
    --extrapolate-tokens 160 --story 10 --prompt-tokens 5 --passage 30
says report/report.html '> and</span>'

# Fine-tuning: with the model's vocabulary, from the model itself; another one is refused.
seq 1 900 | sed 's/.*/Another text has & lines, then \xe6\x97\xa5\xe6\x9c\xac &./' > other
run 0 prepare --tokenizer model --out mine other
says "$out" "other: bpe, vocabulary of 400 from model, measured in ppl"
cmp corpus/vocab.json mine/vocab.json || fail "another vocabulary"
tune="--batch_size 4 --max_step 5 --threads 1 --no-test --eval_interval 0"
# shellcheck disable=SC2086
run 0 train --data mine --init-from model $tune --out tuned
run 0 prepare --corpus bpe --vocab-size 400 --out own other
# shellcheck disable=SC2086
run 2 train --data own --init-from model $tune --out no
says "$err" "another vocabulary than that of the model"
run 1 eval -m model --data own
says "$err" "its vocabulary (bpe, 400 tokens) is not the model's"
