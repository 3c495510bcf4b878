#!/bin/sh
# spdx_test.sh -- lamemo.spdx lists what this build is linked with; a list that lacks a library, a licence or names one too
# many is found out.
# Usage: spdx_test.sh BUILD SOURCE     with the build finished
set -eu
build=$1
cd "$2"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
scripts/check-spdx.sh "$build"

refused() { # refused LIST WORDS
    if scripts/check-spdx.sh "$build" "$1" > "$work/out" 2>&1; then
        echo "FAIL: $1 passes" >&2
        exit 1
    fi
    grep -q -- "$2" "$work/out" || { cat "$work/out"; echo "FAIL: it does not say: $2" >&2; exit 1; }
}
sed 's/libjansson\.so\.4/libother.so.4/' lamemo.spdx > "$work/lacks"
refused "$work/lacks" "libjansson.so.4 is linked and not listed"
refused "$work/lacks" "package jansson is listed as linked and is not"
sed 's/^PackageLicenseConcluded: Zlib/PackageLicenseConcluded: NOASSERTION/' lamemo.spdx > "$work/free"
refused "$work/free" "package zlib has no licence"
