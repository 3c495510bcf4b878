#!/bin/sh
# serve_test.sh -- the page of `lamemo serve` in a real browser: tests/browser/serve.mjs, with a server of two small models.
# Usage: serve_test.sh BUILD SOURCE [SCREENSHOTS [MODEL]]     exit 77: node, npm or Chromium is missing here
set -eu
build=$1
source=$2
shots=${3:-}
# shellcheck source=tests/browser/setup.sh
. "$source/tests/browser/setup.sh"

work=$(mktemp -d)
server=
stop() {
    [ -z "$server" ] || kill "$server" 2> /dev/null || true
    [ -z "$server" ] || wait "$server" || true
    rm -rf "$work"
}
trap stop EXIT
"$build/tests/make_page" "$work/gallery"
quietly() { "$@" > "$work/log" 2>&1 || { cat "$work/log"; exit 1; }; }
quietly "$build/lamemo" prepare --out "$work/corpus" "$source/README.md"
for memory in lamemo xl; do # long enough for text that is nearly all ASCII
    quietly "$build/lamemo" train --data "$work/corpus" --memory $memory --out "$work/$memory" --n_layer 3 --n_head 2 \
        --d_model 32 --d_head 16 --d_inner 64 --tgt_len 64 --mem_len 64 --batch_size 4 --max_step 120 --threads 1 --no-test
done
"$build/lamemo" serve --model "${4:-$work/lamemo}" --model "$work/xl" --port 0 --threads 1 > "$work/log" 2>&1 &
server=$!
url=
tries=0
while [ -z "$url" ] && [ $tries -lt 600 ]; do
    kill -0 $server || { cat "$work/log"; exit 1; }
    url=$(sed -n 's|.*\(http://127\.0\.0\.1:[0-9]*/\).*|\1|p' "$work/log" | head -n 1)
    [ -n "$url" ] || sleep 0.1
    tries=$((tries + 1))
done
[ -n "$url" ] || { echo "the server did not say where it is"; cat "$work/log"; exit 1; }
node "$source/tests/browser/serve.mjs" "$build/browser" "$chromium" "$shots" "$url" "$work/gallery/report.html" ||
    { cat "$work/log"; exit 1; }
