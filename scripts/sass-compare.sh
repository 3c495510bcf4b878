#!/usr/bin/env bash
# Did a change of src/ops/cuda change what runs on a card?  Needs nvcc, but no GPU.
#   sass-compare.sh OLD NEW [FILE...]   OLD, NEW: commits, or folders that hold a source tree; FILEs: attn_fwd.cu ...
# Compiles the kernels of both trees and compares their machine code byte by byte, with what else decides how a
# kernel runs (registers, shared memory, arguments).  A kernel that only changed its name is the same kernel: what
# counts is that NEW has each piece of machine code as often as OLD.  Exit status 1, and a list, where they differ.
# ARCHS="80 90" chooses the compute capabilities.  Compiled code is kept in SASS_CACHE (build/sass) under the hash
# of its preprocessed source, so comments cost nothing and a second call compiles only what changed.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
[ $# -ge 2 ] || { sed -n '2,3s/^# //p' "$0" >&2; exit 2; }
command -v nvcc > /dev/null || PATH=$PATH:/usr/local/cuda/bin
for tool in nvcc readelf python3; do
    command -v $tool > /dev/null || { echo "sass-compare: $tool was not found" >&2; exit 2; }
done
export cache=${SASS_CACHE:-$root/build/sass}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$cache"
old=$1 new=$2
shift 2

# tree WHAT NAME: the folder WHAT, or the sources of the commit WHAT
tree() {
    if [ -d "$1/src/ops/cuda" ]; then
        (cd "$1" && pwd)
    else
        mkdir "$work/$2"
        git -C "$root" archive "$1" src include | tar -x -C "$work/$2" ||
            { echo "sass-compare: '$1' is neither a source tree nor a commit" >&2; return 2; }
        echo "$work/$2"
    fi
}
# compile TREE FILE ARCH: prints FILE and the name of the compiled file in the cache
compile() {
    cd "$1"
    local flags=(-std=c++17 -O3 -Isrc -gencode "arch=compute_$3,code=sm_$3") hash
    nvcc "${flags[@]}" -E "src/ops/cuda/$2" > "$work/$$.ii"
    hash=$( (nvcc --version; echo "$3"; grep -v '^# [0-9]' "$work/$$.ii") | sha256sum | cut -c 1-32)
    rm "$work/$$.ii"
    if [ ! -s "$cache/$hash.cubin" ]; then
        nvcc "${flags[@]}" -cubin "src/ops/cuda/$2" -o "$cache/$hash.$$" && mv "$cache/$hash.$$" "$cache/$hash.cubin"
    fi
    echo "$2 $3 $cache/$hash.cubin"
}
export -f compile
export work
# all TREE: compiles every file for every architecture, as cmake/cuda.cmake does
all() {
    local file archs
    for file in "$1"/src/ops/cuda/*.cu; do
        file=${file##*/}
        [ $# -eq 1 ] || [[ " ${*:2} " = *" $file "* ]] || continue
        archs=${ARCHS:-80 90}
        [[ $file != *_sm90* ]] || archs=90a
        for arch in $archs; do printf '%s\0%s\0%s\0' "$1" "$file" "$arch"; done
    done | xargs -0 -r -n 3 -P "${JOBS:-2}" bash -c 'set -euo pipefail; compile "$@"' compile
}
a=$(tree "$old" old)
b=$(tree "$new" new)
all "$a" "$@" > "$work/old.list"
all "$b" "$@" > "$work/new.list"
python3 "$root/scripts/sass_compare.py" "$work/old.list" "$work/new.list"
