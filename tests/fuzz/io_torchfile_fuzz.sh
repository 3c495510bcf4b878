#!/usr/bin/env bash
# Pickles and archives to start from: io_torchfile_fuzz.sh FOLDER
set -euo pipefail
cd "$1"

tensor() { # tensor TYPE OFFSET SIZE SIZE STRIDE STRIDE, each of the numbers as \xNN; the storage is "0"
    printf 'ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\n%s\nX\x01\0\0\0000X\x03\0\0\0cpuK\x08tQ' "$1"
    printf "K${2}K${3}K${4}\x86K${5}K${6}\x86\x89ccollections\nOrderedDict\n)RtR"
}
{ printf '\x80\x02}X\x01\0\0\0w'; tensor FloatStorage '\x02' '\x02' '\x03' '\x03' '\x01'; printf 's.'; } > one
{ printf '\x80\x02}X\x01\0\0\0w'; tensor HalfStorage '\0' '\x03' '\x02' '\x01' '\x03'; printf 's.'; } > transposed
{ printf '\x80\x02}(X\x01\0\0\0w'; tensor LongStorage '\0' '\x02' '\x02' '\0' '\x01'; printf 'X\x01\0\0\0vctorch._utils\n_rebuild_parameter\n('
    tensor DoubleStorage '\x01' '\x02' '\x02' '\x02' '\x01'; printf '\x88ccollections\nOrderedDict\n)RtRu.'; } > two

# Archives need checksums: only where there is a Python.
command -v python3 > /dev/null || exit 0
python3 - <<'END'
import zipfile
for method, name in (zipfile.ZIP_STORED, "stored"), (zipfile.ZIP_DEFLATED, "packed"):
    with zipfile.ZipFile(name, "w", method) as z:
        z.writestr("archive/data.pkl", open("one", "rb").read())
        z.writestr("archive/data/0", bytes(range(64)))
        z.writestr("archive/version", "3\n")
        z.writestr("archive/byteorder", "little")
END
