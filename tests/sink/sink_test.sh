#!/bin/sh
# sink_test.sh -- the memory of docs/adding-a-memory.md: the page shows the file, and the program with it trains, resumes bit
# for bit, decodes what the forward pass computes, and knows the memory's option.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh

awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' docs/adding-a-memory.md > "$work/shown"
awk '/^const lam_mem_ops/ { last = 1 } { print } last && /^};/ { exit }' "$work/shown" |
    cmp - examples/sink-memory/sink.c || fail "docs/adding-a-memory.md shows another file"

run 0 prepare --out "$work/data" docs/ARCHITECTURE.md
small="--data $work/data --memory sink --sink-len 3 --n_layer 2 --n_head 2 --d_model 16 --d_head 8 --d_inner 32 --tgt_len 8
    --mem_len 8 --batch_size 4 --log_interval 10 --eval_interval 0 --max_eval_steps 20 --threads 1 --no-test --recipe paper"
# shellcheck disable=SC2086
run 0 train $small --lr 0.01 --max_step 40 --out "$work/whole"
# shellcheck disable=SC2086
run 0 train $small --lr 0.01 --max_step 40 --max-time 0.01 --out "$work/parts"
run 0 train --out "$work/parts" --resume --max-time 0
cmp "$work/whole/last/model.safetensors" "$work/parts/last/model.safetensors" || fail "resumed otherwise"
grep -q '"sink_len": 3' "$work/whole/last/config.json" || fail "config.json has no sink_len"
run 2 train --data "$work/data" --memory xl --sink-len 3 --out "$work/no"
says "$err" "--sink-len"

# cpu and ref give a text the same probability.
text="The memory of a segment is what survives it"
run 0 score --model "$work/whole" --tgt-len 8 "$text"
cpu=$(sed -n 's/.*perplexity \([0-9.]*\).*/\1/p' "$out")
run 0 score --model "$work/whole" --tgt-len 8 --threads 1 --device ref "$text"
ref=$(sed -n 's/.*perplexity \([0-9.]*\).*/\1/p' "$out")
awk -v a="$cpu" -v b="$ref" 'BEGIN { exit !(a > 1 && (a - b) ^ 2 < (1e-4 * b) ^ 2) }' || fail "cpu: $cpu, ref: $ref"
run 0 generate --model "$work/whole" "The " -n 30 --temp 0
