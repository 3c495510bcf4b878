#!/bin/sh
# hardening_test.sh -- the program and both libraries were built as docs/security.md says, and hold no path of the
# machine that built them.  Each claim is also tried on a program built without: there it must fail.
# Usage: hardening_test.sh BUILD SOURCE     with the build finished
set -eu
build=$1
source=$2
: "${CC:=cc}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "FAIL: $*" >&2
    exit 1
}

# The claims, each of one file.
pie() { readelf -dW "$1" | grep -q 'Flags:.*PIE'; }
random() { readelf -hW "$1" | grep -q 'Type: *DYN'; }
relro() { readelf -lW "$1" | grep -q GNU_RELRO; }
now() { readelf -dW "$1" | grep -q BIND_NOW; }
stack() { readelf -lW "$1" | grep -q 'GNU_STACK.* RW '; }
undefined() { nm --undefined-only "$1" 2> /dev/null | grep -Eq "$2"; }
canary() { undefined "$1" ' __stack_chk_fail'; }
fortified() { undefined "$1" ' __(mem|str|s|sn|vsn|f|vf)[a-z]*_chk'; }
landing() { # marks of where calls through pointers may land; a few come with the C library
    [ "$(objdump -d "$1" | grep -c endbr64)" -gt 20 ]
}
placeless() { # "./src/..." may be all that is left of a tree in /src
    for place in "$source" "$build"; do
        if strings "$1" | grep -F "$place/" | grep -vF ".$place/" > "$work/places"; then
            return 1
        fi
    done
}
claims="pie random relro now stack canary fortified placeless"
without="-U_FORTIFY_SOURCE -fno-stack-protector -fno-pie -no-pie -Wl,-z,norelro,-z,lazy,-z,execstack"
if [ "$(uname -m)" = x86_64 ]; then
    claims="$claims landing" without="$without -fcf-protection=none"
fi

for claim in $claims; do
    $claim "$build/lamemo" || fail "lamemo: $claim"
    case $claim in pie) continue ;; esac
    $claim "$build/liblamemo.so" || fail "liblamemo.so: $claim"
    case $claim in random | relro | now | stack) continue ;; esac # of a linked file alone
    $claim "$build/liblamemo.a" || fail "liblamemo.a: $claim"
done

# A program of which nothing of it is true.
cat > "$work/plain.c" << END
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
    char copy[16];
    strcpy(copy, argv[argc - 1]);
    return printf("%s $source/src/core/file.c\n", copy) < 0;
}
END
# shellcheck disable=SC2086
$CC -O2 $without "$work/plain.c" -o "$work/plain" 2> "$work/log" ||
    { cat "$work/log"; fail "the plain program was not built"; }
for claim in $claims; do
    if $claim "$work/plain"; then
        fail "$claim is said of a program that was built without"
    fi
done
echo "hardened: lamemo, liblamemo.so, liblamemo.a; no path of the build in them"
