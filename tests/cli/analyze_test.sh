# analyze_test.sh -- reports about models: what is written, that its numbers are those of eval, and what is refused.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
export OMP_NUM_THREADS=1

seq 1 1200 | sed 's/.*/line & of the text, and again line &/' > "$work/text"
run 0 prepare --out "$work/corpus" "$work/text"
for memory in lamemo xl none compressive infinite; do
    run 0 train --data "$work/corpus" --memory $memory --out "$work/$memory" --n_layer 2 --n_head 2 \
        --d_model 32 --d_head 16 --d_inner 64 --tgt_len 16 --mem_len 16 --batch_size 4 \
        --max_step 10 --eval_interval 10 --max_eval_steps 2 --lr 0.01 --threads 1 --no-test
done

# Five memories at once: a table, the page, every figure three times, every table twice.
run 0 analyze -m "$work/lamemo,$work/xl" -m "$work/none,$work/compressive" -m "$work/infinite" \
    --data "$work/corpus" --out "$work/a" --segments 12 --tokens 200 --extrapolate-len 8 \
    --extrapolate 8,16,32 --extrapolate-tokens 320 --story 30 --prompt-tokens 20 --passage 50 --paper
says "$err" "page: $work/a/report.html"
head -1 "$out" | grep -q '^model  *memory  *bpc  *standard error  *parameters' || fail "no table: $(cat "$out")"
[ "$(wc -l < "$out")" -eq 7 ] || fail "not five models in the table: $(cat "$out")"
says "$work/a/report.html" "Made by <code>lamemo analyze -m $work/lamemo,$work/xl"
for figure in attention-distance attention-layers-5 attention-entropy memory-use alpha-1 alpha-layers-1 \
    alpha-heads-1 extrapolation extrapolation-gain extrapolation-gap loss-position encoding-g encoding-variance; do
    for kind in svg csv json; do
        [ -s "$work/a/$figure.$kind" ] || fail "no $figure.$kind"
    done
done
for table in results claims extrapolation-table repetition cost encoding-slope; do
    [ -s "$work/a/$table.csv" ] || fail "no $table.csv"
done
grep -q '^Figure 6: .*mean alpha 0\.[0-9]* ± 0\.[0-9]* in layer 1.*,\(yes\|no\|too close to tell\)$' "$work/a/claims.csv" ||
    fail "no error or no verdict: $(cat "$work/a/claims.csv")"
grep -q '^Table 1: and than the infinity-former,bpc .* ± ' "$work/a/claims.csv" || fail "not compared with all"
[ "$(grep -c -e ',yes$' -e ',no$' -e ',too close to tell$' "$work/a/claims.csv")" -eq 13 ] || fail "something was not measured"
! grep -q ' ± 0\.0*[ ,"]' "$work/a/claims.csv" || fail "an error of nothing: $(cat "$work/a/claims.csv")"
for figure in attention-distance attention-entropy memory-use alpha-1 extrapolation extrapolation-gain extrapolation-gap \
    loss-position encoding-g; do
    ! grep -q '"finding":""' "$work/a/$figure.json" || fail "$figure says nothing"
done
[ ! -e "$work/a/alpha-2.csv" ] || fail "Transformer-XL has an alpha"
[ "$(wc -l < "$work/a/alpha-1.csv")" -eq 17 ] || fail "alpha has not 16 slots"
says "$work/a/report.html" "none has no memorizing coefficient: it has no memory"
says "$work/a/report.html" "xl has no memorizing coefficient: its memory rows are not refreshed"
says "$work/a/report.html" "compressed rows stands for 4 tokens"
says "$work/a/report.html" "long-term memory is read by a density"
says "$work/a/report.html" "none: it has no memory"
[ "$(wc -c < "$work/a/report.html")" -lt 3000000 ] || fail "the report is large"
! grep -q 'https*://' "$work/a/results.json" || fail "an address"

# The numbers are eval's, where both read the same segments.
value() { sed -n "s/.*\"$1\": *\([-0-9.e]*\).*/\1/p" "$out" | head -1; }
run 0 eval -m "$work/none" --data "$work/corpus" --batch-size 4 --max-steps 3 --json
expected=$(value value)
run 0 analyze -m "$work/none" --data "$work/corpus" -o "$work/b" -b 4 --segments 12 --tokens 1 --json --no-extrapolate \
    --story 0 --passage 0 --name "nothing remembered"
awk "BEGIN { d = $(value value) - $expected; exit !(d < 1e-9 && d > -1e-9) }" ||
    fail "analyze has $(value value), eval $expected"
says "$out" '"name": "nothing remembered"'
says "$out" '"alpha_by_layer": null'
for section in sweep alpha stories text cost encoding; do
    ! grep -q "id=\"$section\"" "$work/b/report.html" || fail "a section that says nothing: $section"
done

# Names of any bytes and any length are shown, and no observation is listed that nobody looked at.
run 0 analyze -m "$work/lamemo" --data "$work/corpus" -o "$work/e" --segments 4 --json --no-extrapolate --story 5 \
    --prompt "$(printf '<i>line\001\377')" --name "$(printf '<b>\001\377 a name that is longer than anybody would want to read it twice')"
says "$out" '"name": "<b>\\x01\\xff a name that is longer'
says "$work/e/report.html" '&lt;b&gt;\x01\xff a name'
says "$work/e/report.html" '&lt;i&gt;line\x01\xff'
[ "$(wc -l < "$work/e/claims.csv")" -eq 4 ] || fail "not three observations: $(cat "$work/e/claims.csv")"
says "$work/e/report.html" "6 more need a Transformer-XL"
! grep -q '"finding":""' "$work/e/attention-distance.json" || fail "nothing is said of one model"

# A prompt of one's own; the same seed, the same continuation; two models of one name.
for copy in c d; do
    run 0 analyze -m "$work/lamemo,$work/lamemo" --data "$work/corpus" -o "$work/$copy" --segments 4 \
        --no-extrapolate --story 20 --prompt "line 12" --layer 1
    says "$work/$copy/report.html" "lamemo (2)"
    says "$work/$copy/report.html" "in layer 1"
done
cmp "$work/c/repetition.csv" "$work/d/repetition.csv" || fail "one seed gave two texts"
cmp "$work/c/alpha-1.csv" "$work/c/alpha-2.csv" || fail "one model differs from itself"

# A text file, shorter than eight streams would take; a text of one's own in colours, clicked for its attention.
head -c 700 "$work/text" > "$work/short.txt"
printf 'line 7 of <b>my</b> text' > "$work/own.txt"
run 0 analyze -m "$work/lamemo,$work/xl" --data "$work/short.txt" -o "$work/g" --segments 4 --tokens 50 --story 0 \
    --text "@$work/own.txt" --extrapolate-tokens 64
says "$work/g/report.html" "2 models on $work/short.txt, "
says "$work/g/report.html" "Your text, read from an empty memory on."
says "$work/g/report.html" '"readers":[{"name":"lamemo","reads":[[-1,100.0],['
[ "$(sed -n 's/.*class="tokens"[^>]*>\(.*\)<\/div><\/figure>.*/\1/p' "$work/g/report.html" | grep -o '<span' | wc -l)" -eq 24 ] ||
    fail "not the 24 bytes of the text"
# The sweep follows the memory the models were trained with: 16, in steps of a half.
[ "$(sed 1d "$work/g/extrapolation-table.csv" | cut -d, -f1 | tr '\n' ' ')" = "8 16 24 32 40 48 56 64 72 80 " ] ||
    fail "other lengths: $(cat "$work/g/extrapolation-table.csv")"
! grep -q 'gains [−-]' "$work/g/claims.csv" "$work/g/report.html" || fail "a gain below zero"
run 0 analyze -q -m "$work/lamemo" --data - -o "$work/h" --segments 4 --tokens 50 --story 0 < "$work/short.txt"
[ ! -s "$out" ] || fail "not quiet"
says "$work/h/report.html" "1 model on standard input, "

# What is wrong is named, and nothing is written.
refused() {
    code=$1 text=$2
    shift 2
    run "$code" analyze --out "$work/no" "$@"
    says "$err" "$text"
    [ ! -e "$work/no" ] || fail "something was written"
}
refused 2 "--model" --data "$work/corpus"
refused 2 "--data" -m "$work/xl"
refused 1 "nowhere" -m "$work/nowhere" --data "$work/corpus"
refused 1 "corpus.json" -m "$work/xl" --data "$work/xl"
refused 2 "a name is empty" -m "$work/xl,," --data "$work/corpus"
refused 2 "more than 8 models" -m "x,x,x,x,x,x,x,x,x" --data "$work/corpus"
refused 2 "2 names for 1 models" -m "$work/xl" --name a --name b --data "$work/corpus"
refused 2 "model xl: it has 2 layers, no layer 3" -m "$work/xl" --data "$work/corpus" --layer 3
refused 2 "--mem-len is of no use with any of the models" -m "$work/none" --data "$work/corpus" --mem-len 7
refused 2 "--extrapolate and --no-extrapolate contradict each other" -m "$work/xl" --data "$work/corpus" --extrapolate 8 --no-extrapolate
refused 2 "--prompt and --story 0 contradict each other" -m "$work/xl" --data "$work/corpus" --prompt x --story 0
refused 2 "fill the memory" -m "$work/xl" --data "$work/corpus" --mem-len 100000
refused 2 "model xl: the text is too short: no whole segment of 1000000 tokens after the 1000000 that fill the memory" -m "$work/xl" --data "$work/corpus" --tgt-len 1000000
refused 2 "interval" -m "$work/xl" --data "$work/corpus" --interval 0
refused 2 "must be even" -m "$work/xl" --data "$work/corpus" --encoding-width 7
run 0 prepare --corpus words --out "$work/other" "$work/text"
refused 1 "model $work/xl: $work/other: its vocabulary" -m "$work/xl" --data "$work/other"
refused 2 "--split test: $work/text is a text, not a corpus folder" -m "$work/xl" --data "$work/text" --split test
refused 2 "only one of --data, --prompt and --text can be -" -m "$work/xl" --data - --text -
refused 2 "--text: the text is empty" -m "$work/xl" --data "$work/corpus" --text ""
refused 2 "--text and --passage 0 contradict each other" -m "$work/xl" --data "$work/corpus" --text x --passage 0
printf 'x' > "$work/one.txt"
refused 2 "the text is too short" -m "$work/xl" --data "$work/one.txt"
: > "$work/empty.txt"
refused 2 "the text is too short" -m "$work/xl" --data "$work/empty.txt"
# All models are checked before the first is measured: the second has lost a tensor, and the story would take an hour.
cp -r "$work/xl" "$work/broken"
head -c 2000 "$work/xl/best/model.safetensors" > "$work/broken/best/model.safetensors"
refused 1 "broken/best/model.safetensors" -m "$work/lamemo,$work/broken" --data "$work/corpus" --story 1000000
run 0 prepare --corpus words --out "$work/worded" "$work/text"
run 0 train --data "$work/worded" --out "$work/words" --n_layer 1 --d_model 16 --batch_size 2 --tgt_len 8 --mem_len 8 \
    --max_step 2 --no-test
refused 1 "model $work/words: " -m "$work/lamemo,$work/words" --data "$work/corpus" --story 1000000
: > "$work/file"
for below in "" /x /x/y; do # said before the story, which would take an hour
    run 1 analyze -m "$work/xl" --data "$work/corpus" --out "$work/file$below" --segments 1 --no-extrapolate --story 1000000
    says "$err" "file: cannot make the folder: Not a directory"
done

# Ctrl-C: no report, no rest.
"$LAMEMO" analyze -m "$work/lamemo" --data "$work/corpus" --out "$work/no" --no-extrapolate --segments 4 \
    --story 1000000 > "$out" 2> "$err" &
pid=$!
hears $pid
sleep 0.5 # in the story, or on the way there
halt INT $pid
[ "$code" -eq 130 ] || fail "interrupted with $code"
[ ! -e "$work/no" ] || fail "something was written"

# Neither names, nor a prompt, nor the text and its tokens become markup, scripts or formulas.
evil='</script><script>alert(1)</script><img src=x onerror=alert(2)>'
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    printf '%s and "%s" &amp; line %d\n' "$evil" "' onload='alert(3)" $i
done > "$work/evil"
run 0 prepare --vocab-from "$work/corpus" --out "$work/evil_corpus" "$work/evil"
run 0 analyze -m "$work/lamemo" -m "$work/xl" --name "=1+1$evil" --name "@$evil" --data "$work/evil_corpus" \
    -o "$work/f" --segments 2 --tokens 50 --no-extrapolate --story 5 --passage 200 --prompt "$evil" --split train
[ "$(grep -o '<script>' "$work/f/report.html" | wc -l)" -eq 2 ] || fail "scripts that are not ours"
! grep -F '<img' "$work/f/report.html" || fail "markup in the page"
says "$work/f/report.html" "&lt;img src=x"
! grep -lF '<img' "$work"/f/*.svg "$work"/f/*.json || fail "markup in a figure"
! grep -l -e '^"\{0,1\}[=@]' -e ',"\{0,1\}[=@]' "$work"/f/*.csv || fail "a formula"

# A prompt that cannot be read is named, before anything is measured.
run 0 prepare --corpus chars --out "$work/chars" "$work/text"
run 0 train --data "$work/chars" --out "$work/chars_model" --n_layer 1 --d_model 16 --batch_size 2 --tgt_len 8 --mem_len 8 \
    --max_step 2 --no-test
printf 'ab\377cd' > "$work/bad"
refused 1 "$work/bad: text: not valid UTF-8 at byte 2" -m "$work/chars_model" --data "$work/chars" --prompt "@$work/bad"
