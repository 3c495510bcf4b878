#!/usr/bin/env bash
# Small packed files to start from: data_instream_fuzz.sh FOLDER
set -euo pipefail
cd "$1"

printf 'a small text, a small text, a small text\n' > plain
gzip -nc plain > gz
cat gz gz > gz2
xz < plain > xz
if command -v zstd > /dev/null; then zstd -qc plain > zst; fi
# zip: one stored file and one deflated file, by hand (the body of a gzip file is deflate)
crc=$(tail -c 8 gz | head -c 4 | od -An -tx1 | tr -d ' \n' | sed 's/../\\x&/g')
size=$(wc -c < plain)
head -c -8 gz | tail -c +11 > body
packed=$(wc -c < body)
little() { printf "\\x$(printf %02x "$1")\\0\\0\\0"; }
local_header() { # METHOD PACKED
    printf "PK\\3\\4\\x14\\0\\0\\0\\x0$1\\0\\0\\0\\0\\0$crc"
    little "$2"
    little "$size"
    printf '\1\0\0\0x'
}
{ local_header 8 "$packed"; cat body; printf 'PK\1\2'; } > zip
{ local_header 0 "$size"; cat plain; printf 'PK\1\2'; } > stored
rm body
