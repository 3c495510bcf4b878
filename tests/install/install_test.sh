#!/bin/sh
# install_test.sh -- the installed library is enough: examples/continue.c is built from the installed
# files alone, in every way docs/library.md names, and all ways print the same text.
# Usage: install_test.sh BUILD SOURCE     with the build finished
set -eu
build=$1
source=$2
: "${CC:=cc}" "${CXX:=c++}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/elsewhere/lamemo

fail() {
    echo "FAIL: $*" >&2
    exit 1
}

# Moved after installing: nothing may remember where it was.
cmake --install "$build" --prefix "$work/first" > "$work/log" || { cat "$work/log"; exit 1; }
mkdir "$work/elsewhere"
mv "$work/first" "$prefix"
libdir=$(dirname "$(find "$prefix" -name liblamemo.a)")
export PKG_CONFIG_PATH="$libdir/pkgconfig" LD_LIBRARY_PATH="$libdir"

# Only the public names go out, all under one version.
nm -D --defined-only "$libdir/liblamemo.so" | awk '$2 != "A" { print $3 }' > "$work/names"
grep -q '^lamemo_engine_open@@LAMEMO_0\.1$' "$work/names" || fail "lamemo_engine_open is not exported"
if grep -v '^lamemo_[a-z_]*@@LAMEMO_0\.1$' "$work/names"; then
    fail "liblamemo.so exports names that are not its interface"
fi
for name in $(sed -n 's/^LAMEMO_API.*[ *]\(lamemo_[a-z_]*\)(.*/\1/p' "$prefix/include/lamemo.h"); do
    grep -q "^$name@" "$work/names" || fail "$name is declared and not exported"
done

# The libraries behind the archive are named; only CUDA's and clang's OpenMP have places of their own.
pkg-config --static --libs-only-l --libs-only-other lamemo > "$work/libraries"
grep INTERFACE_LINK_LIBRARIES "$libdir/cmake/lamemo/lamemo-config.cmake" >> "$work/libraries"
if tr ' ;"' '\n' < "$work/libraries" | grep / | grep -v -e cudart -e 'llvm.*libomp'; then
    fail "lamemo.pc or the CMake package names files of the machine that built it"
fi

cp "$source/examples/continue.c" "$work/continue.c"
strict="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror"
# shellcheck disable=SC2046,SC2086
{
    $CC -std=c17 $strict "$work/continue.c" $(pkg-config --cflags --libs lamemo) -o "$work/shared"
    $CC -std=c17 "$work/continue.c" $(pkg-config --static --cflags --libs lamemo |
        sed 's/-llamemo/-l:liblamemo.a/') -o "$work/archive" # else the linker takes the shared one beside it
    $CC -std=c99 $strict -fsyntax-only -x c "$prefix/include/lamemo.h"
    if command -v "$CXX" > /dev/null; then
        $CXX -std=c++98 -Wno-long-long -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c++ "$prefix/include/lamemo.h"
        $CXX -std=c++17 $strict -x c++ "$work/continue.c" -x none $(pkg-config --cflags --libs lamemo) -o "$work/cxx"
    fi
}
# shellcheck disable=SC2046,SC2086
$CC -std=c17 $strict "$source/examples/choose.c" $(pkg-config --cflags --libs lamemo) -lm -o "$work/choose"
cmake -S "$source/tests/install" -B "$work/cmake" -DCMAKE_C_COMPILER="$CC" \
    -DCMAKE_PREFIX_PATH="$prefix" -DEXAMPLE="$work/continue.c" > "$work/log" 2>&1 &&
    cmake --build "$work/cmake" > "$work/log" 2>&1 || { cat "$work/log"; fail "the CMake package"; }

"$build/tests/make_model" "$work/model"
"$work/shared" "$work/model" "Once upon a time" > "$work/want"
[ "$(wc -c < "$work/want")" -gt 100 ] || fail "continue printed next to nothing"
for program in "$work/archive" "$work/cxx" "$work/cmake/continue_lamemo" "$work/cmake/continue_static"; do
    [ -x "$program" ] || continue
    "$program" "$work/model" "Once upon a time" > "$work/got" || fail "$program"
    cmp -s "$work/got" "$work/want" || fail "$program prints another text"
done
if ldd "$work/archive" "$work/cmake/continue_static" | grep liblamemo; then
    fail "the static programs use the shared library"
fi

# choose: what the session's logits say of an ending is what score says of the text with it, less that without.
"$work/choose" "$work/model" "Once upon a time" " there was" " xq" > "$work/got" || fail "choose"
score() {
    "$build/lamemo" score --model "$work/model" --json "$1" | sed 's/.*"logprob":\([-0-9.e]*\).*/\1/'
}
score "Once upon a time" > "$work/short"
for ending in " there was" " xq"; do
    score "Once upon a time$ending" > "$work/long"
    awk -v ending=" $ending" 'FILENAME == ARGV[1] { short = $1; next } FILENAME == ARGV[2] { long = $1; next }
        substr($0, 12) == ending { found = 1; d = $1 - (long - short) }
        END { exit !(found && d < 1e-3 && d > -1e-3) }' "$work/short" "$work/long" "$work/got" ||
        { cat "$work/short" "$work/long" "$work/got"; fail "choose judges '$ending' otherwise than score"; }
done

# A model in the installed box is found by its name, from any folder.
"$build/tests/make_model" "$prefix/share/lamemo/models/boxed"
(cd "$work" && "$prefix/bin/lamemo" generate --model boxed --prompt "Once upon a time" -n 40) > "$work/got" ||
    fail "the box is not found"
(cd "$work" && "$work/shared" boxed "Once upon a time") > "$work/got" || fail "the library does not find its box"
cmp -s "$work/got" "$work/want" || fail "the box of the library prints another text"
LAMEMO_MODELS=$(pkg-config --variable=models lamemo) "$work/archive" boxed "Once upon a time" > "$work/got" ||
    fail "pkg-config does not know the box"
cmp -s "$work/got" "$work/want" || fail "the boxed model prints another text"

# An error is a status and a message, not an end.
if "$work/shared" "$work/nothing" x 2> "$work/err"; then
    fail "a missing folder went unnoticed"
fi
grep -q 'there is no such folder' "$work/err" || { cat "$work/err"; fail "no message"; }
echo "installed files suffice: pkg-config, pkg-config --static, C++, CMake shared and static"
