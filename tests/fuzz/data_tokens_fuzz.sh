#!/usr/bin/env bash
# Small corpus files to start from (the target mends the checksum): data_tokens_fuzz.sh FOLDER
set -euo pipefail
cd "$1"

seed() { # seed NAME WIDTH COUNT VOCAB-BYTES DATA
    printf "LAMEMOTK\\1\\0\\0\\0\\x0$2\\0\\0\\0\\x0$3\\0\\0\\0\\0\\0\\0\\0$4\\0\\0\\0\\0train\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0" > "$1"
    printf '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0%b' "$5" >> "$1"
}
seed narrow 1 3 '\x1b\0\0\0' 'abc'
seed wide 2 2 '\0\2\0\0' 'a\0b\1'
seed widest 4 1 '\0\0\2\0' 'a\0\1\0'
seed none 1 0 '\x1b\0\0\0' ''
