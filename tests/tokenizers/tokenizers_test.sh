#!/bin/sh
# tokenizers_test.sh -- byte pairs against OpenAI's tiktoken and Hugging Face's tokenizers: check.mjs, with what it needs.
# Usage: tokenizers_test.sh BUILD SOURCE     exit 77: node, npm or the packages cannot be had here
set -eu
build=$1
source=$2
skip() {
    echo "skipped: $*"
    exit 77
}

command -v node > /dev/null || skip "node is not installed"
command -v npm > /dev/null || skip "npm is not installed"
folder=$build/tokenizers
mkdir -p "$folder"
cp "$source"/tests/tokenizers/package*.json "$folder"
if ! [ -f "$folder/node_modules/.done" ] ||
    [ "$source/tests/tokenizers/package-lock.json" -nt "$folder/node_modules/.done" ]; then
    (cd "$folder" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error --fetch-retries=0 \
        --fetch-timeout=60000) > "$folder/npm.log" 2>&1 ||
        skip "npm could not install tiktoken and tokenizers: $(tail -n 1 "$folder/npm.log")"
    touch "$folder/node_modules/.done"
fi
(cd "$folder" && node -e 'require("tokenizers"); require("tiktoken")') > "$folder/load.log" 2>&1 ||
    skip "tokenizers has no binary for this machine: $(tail -n 1 "$folder/load.log")"

# A piece of Wikipedia where it is at hand; the test does not need it.
wiki=${LAMEMO_WIKI100M:-$source/../shared/data/wiki100m.xz}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
: > "$work/wiki"
case $wiki in
*.xz) [ ! -f "$wiki" ] || xz -dc "$wiki" 2> /dev/null | head -c 500000 > "$work/wiki" || true ;;
*) [ ! -f "$wiki" ] || head -c 500000 "$wiki" > "$work/wiki" ;;
esac
node "$source/tests/tokenizers/check.mjs" "$folder" "$build/lamemo" "$work"
