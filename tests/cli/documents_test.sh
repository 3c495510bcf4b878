# documents_test.sh -- documents from text to model: prepare, train, resume, eval; what is refused.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
export OMP_NUM_THREADS=1
cd "$work"

# 60 documents of 1 to 60 numbers each.
for i in $(seq 1 60); do
    printf '{"id": %d, "text": "%s\\n%d"}\n' "$i" "$(seq -s ' ' 1 "$i")" "$i"
done > posts.jsonl
for kind in bytes chars words bpe; do
    more=$([ $kind = bpe ] && echo "--vocab-size 280" || true)
    # shellcheck disable=SC2086
    run 0 prepare --corpus $kind $more --json-field text --split 50/25/25 --out $kind posts.jsonl
    says "$out" " documents"
    says $kind/corpus.json '"separator"'
done
# Splits hold whole documents: 60 of them together, and each file ends with the separator.
run 0 prepare --corpus bytes --json-field text --split 50/25/25 --out bytes --replace --json posts.jsonl
sum=0
for n in $(grep -A4 '"documents"' "$out" | grep -o '[0-9]*$\|[0-9]*,$' | tr -d ,); do sum=$((sum + n)); done
[ $sum -eq 60 ] || fail "$sum documents, not 60"
for split in train valid test; do
    [ "$(tail -c1 bytes/$split.bin | od -An -tx1 | tr -d ' ')" = 1e ] || fail "$split does not end with a separator"
done

# Lines and files.
printf 'one\ntwo\n\nthree' > lines.txt
run 0 prepare --documents lines --split 100/0/0 --out lines lines.txt
says "$out" "14 tokens, 3 documents"
mkdir tales && printf 'a tale' > tales/a.txt && printf 'another\n' > tales/b.txt
run 0 prepare --documents files --split 100/0/0 --out files tales
says "$out" "16 tokens, 2 documents"
run 0 prepare --separate --split 100/0/0 --out files --replace tales
says "$out" "16 tokens, 2 documents"
# What is told of the splits is what became of them.
run 0 prepare --documents files --out short tales/a.txt
says "$err" "the valid split is empty: no whole document is left for it (see --split)"
says "$err" "the test split is empty"
run 2 eval -m wiki11m --data short --split valid
says "$err" "the valid split is empty"
run 0 train --data short --n-layer 1 --d-model 8 --n-head 1 --d-head 8 --d-inner 8 --tgt-len 4 --mem-len 4 \
    --batch-size 1 --max-step 1 --early-stop 2 --out stop
says "$err" "--early-stop has no effect: the valid split of a is empty"
for kind in bytes bpe; do
    run 0 prepare --corpus $kind --documents lines --split-tokens 8/1/1 --out short --replace lines.txt
    if grep -q "in no split" "$err"; then fail "all of the text is in the splits"; fi
done
run 0 prepare --documents lines --split-tokens 3/1/1 --out short --replace lines.txt
says "$err" "the last 6 of 14 tokens are in no split"

# A run with documents, resumed; evaluation does not depend on how many streams there are.
shape="--n-layer 2 --d-model 16 --n-head 2 --d-head 8 --d-inner 16 --tgt-len 8 --mem-len 8 --batch-size 4 --device ref"
for memory in lamemo compressive; do
    # shellcheck disable=SC2086
    run 0 train --data bytes --out run.$memory --memory $memory $shape --max-step 6 --eval-interval 6 --eval-batch-size 3 \
        --mem-reset document,5 --no-test
    run 0 train --out run.$memory --resume --max-step 8 --no-test
    for batch in 1 4; do
        run 0 eval --model run.$memory --data bytes --split valid --device ref --mem-reset document --batch-size $batch --json
        sed 's/.*"nats":\([0-9]*\.[0-9]\{10\}\).*"tokens":\([0-9]*\).*/\1 \2/' "$out" > loss.$batch
    done
    cmp loss.1 loss.4 || fail "$memory: $(cat loss.1) alone, $(cat loss.4) side by side"
done
run 0 info --model run.lamemo
says "$out" "memory emptied at every document"

# What cannot be is refused in one line.
run 2 train --out run.lamemo --resume --max-step 9 --mem-reset 5
says "$err" "document"
run 2 eval --model run.lamemo --data bytes --mem-reset paragraph
says "$err" "'paragraph' is neither a number, 0 or more, nor 'document'"
run 0 prepare --split 80/10/10 --out plain posts.jsonl
run 2 eval --model run.lamemo --data plain --mem-reset document
says "$err" "without documents"

# A folder of JSON lines keeps its splits; without the option it is refused, and the option is named.
mkdir posts.folder
head -n 4 posts.jsonl > posts.folder/train.jsonl
tail -n 3 posts.jsonl | gzip > posts.folder/valid.jsonl.gz
run 0 prepare --json-field text --out folder posts.folder
says "$out" ", 4 documents"
says "$out" ", 3 documents"
run 1 prepare --out never posts.folder
says "$err" "posts.folder: holds no text, but files such as train.jsonl: --json-field NAME reads JSON lines"
run 2 prepare --documents lines --json-field text --out never posts.jsonl
says "$err" "--json-field and --documents lines contradict each other"
run 1 prepare --json-field body --out never posts.jsonl
says "$err" 'line 1 has no field "body"'
run 1 prepare --documents json --out never lines.txt
says "$err" "lines.txt: line 1"
printf 'a\036b\n' > rs.txt
run 1 prepare --documents lines --out never rs.txt
says "$err" "rs.txt: line 1 has U+001E"
[ ! -e never ] || fail "something was left behind"
