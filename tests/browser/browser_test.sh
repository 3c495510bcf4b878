#!/bin/sh
# browser_test.sh -- report pages in a real browser: tests/browser/check.mjs, with what it needs.
# Usage: browser_test.sh BUILD SOURCE [SCREENSHOTS]     exit 77: node, npm or Chromium is missing here
set -eu
build=$1
source=$2
shots=${3:-}
# shellcheck source=tests/browser/setup.sh
. "$source/tests/browser/setup.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$build/tests/make_page" "$work/gallery"
"$build/lamemo" report -q --plot none "$source"/docs/runs/*.gz --out "$work/runs" > /dev/null
quietly() { "$@" > "$work/log" 2>&1 || { cat "$work/log"; exit 1; }; }
seq 1 400 | sed 's/.*/line & of the text, and again line &/' > "$work/text"
quietly "$build/lamemo" prepare --out "$work/corpus" "$work/text"
for memory in lamemo xl; do
    quietly "$build/lamemo" train --data "$work/corpus" --memory $memory --out "$work/$memory" --n_layer 2 --n_head 2 \
        --d_model 16 --d_head 8 --d_inner 32 --tgt_len 8 --mem_len 8 --batch_size 4 --max_step 8 --threads 1 --no-test
done
quietly "$build/lamemo" analyze -m "$work/lamemo,$work/xl" --data "$work/corpus" --out "$work/analysis" --segments 8 \
    --tokens 100 --extrapolate-len 8 --extrapolate 8,16 --extrapolate-tokens 160 --story 30 --prompt-tokens 20 --passage 60
NODE_PATH=$build/browser/node_modules node "$source/tests/browser/check.mjs" "$build/browser" "$chromium" "$shots" \
    "$work/gallery/report.html" "$work/runs/report.html" \
    "$work/analysis/report.html"
