#!/usr/bin/env bash
# Small safetensors files to start from: io_safetensors_fuzz.sh FOLDER
set -euo pipefail
cd "$1"

seed() { # seed NAME HEADER DATA: the length (below 256 here) in eight bytes, little-endian
    { printf "\\x$(printf %02x ${#2})\\0\\0\\0\\0\\0\\0\\0"; printf '%s%s' "$2" "$3"; } > "$1"
}

seed empty '{}' ''
seed metadata '{"__metadata__":{"format":"pt","B":"2"}}' ''
seed scalar '{"x":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}' 'abcd'
seed two '{"b":{"dtype":"I16","shape":[2],"data_offsets":[8,12]},"a":{"dtype":"F64","shape":[1,1],"data_offsets":[0,8]}}' 'abcdefghijkl'
seed hollow '{"e":{"dtype":"BOOL","shape":[3,0],"data_offsets":[1,1]},"u":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}' 'a'
seed halves '{"h":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},"g":{"dtype":"BF16","shape":[1,2],"data_offsets":[4,8]}}' 'abcdefgh'
