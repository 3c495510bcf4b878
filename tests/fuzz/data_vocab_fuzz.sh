#!/usr/bin/env bash
# Small vocabularies to start from: data_vocab_fuzz.sh FOLDER
set -euo pipefail
cd "$1"

seed() { # seed NAME KIND SYMBOLS COUNTS
    printf '{"format":"lamemo-vocab","version":1,"kind":"%s","size":2,"lower":false,"drop_newlines":true,"symbols":%s,"counts":%s}' \
        "$2" "$3" "$4" > "$1"
}
seed words words '["<eos>","the"]' '[1,2]'
seed chars chars '["a","é"]' '[3,0]'
seed bytes bytes '[32,255]' '[3,0]'
