#!/usr/bin/env bash
# Small pickles to start from: io_pickle_fuzz.sh FOLDER
set -euo pipefail
cd "$1"

printf '\x80\x02N.' > none
printf '\x80\x02](N\x88\x89K\x07M\x2c\x01J\xfe\xff\xff\xff\x8a\x01\xffG\x3f\xf8\0\0\0\0\0\0X\x03\0\0\0h\xc3\xa9C\x02abe.' > values
printf '\x80\x02ccollections\nOrderedDict\n)Rq\0(X\x01\0\0\0aK\x01X\x01\0\0\0bK\x02u.' > ordered
printf '\x80\x02cutils.vocabulary\nVocab\n)\x81q\0}q\x01X\x07\0\0\0idx2symq\x02]q\x03(X\x01\0\0\0xh\x03esb.' > instance
printf '\x80\x02cargparse\nNamespace\n)\x81}(X\x07\0\0\0n_layerK\x04X\x07\0\0\0d_modelK\x20ub.' > namespace
printf '\x80\x04\x95\x18\0\0\0\0\0\0\0\x8c\x01m\x94\x8c\x01C\x94\x93\x94)\x81\x94}\x94\x8c\x01s\x94\x8f\x94(K\x01\x90sb.' > four
printf '\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\0000X\x03\0\0\0cpuK\x10tQK\0K\x02K\x03\x86K\x03K\x01\x86\x89ccollections\nOrderedDict\n)RtR.' > tensor
printf '\x80\x02cos\nsystem\nX\x04\0\0\0true\x85R.' > call
printf '\x80\x02]q\0h\0a.' > cycle

# Bombs: pickles of some kilobytes that describe much more.
many() { seq "$1" | sed 's/.*/'"$2"'/' | tr -d '\n'; }
{ printf '\x80\x02'; many 5000 'N)R0'; printf 'N.'; } > objects
{ printf '\x80\x02]'; for _ in 1 2 3 4; do printf '(N'; many 5000 2; printf e; done; printf '.'; } > references
{ printf '\x80\x02N'; many 10000 '\x85'; printf '.'; } > tuples
