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
import struct, zipfile, zlib
for method, name in (zipfile.ZIP_STORED, "stored"), (zipfile.ZIP_DEFLATED, "packed"):
    with zipfile.ZipFile(name, "w", method) as z:
        z.writestr("archive/data.pkl", open("one", "rb").read())
        z.writestr("archive/data/0", bytes(range(64)))
        z.writestr("archive/version", "3\n")
        z.writestr("archive/byteorder", "little")

# Zip64: every size and place of 64 bits.
pickle, full = open("one", "rb").read(), 0xffffffff
body, entries = b"", b""
for name, data in (b"a/data.pkl", pickle), (b"a/data/0", bytes(64)):
    n, crc = len(data), zlib.crc32(data)
    entries += struct.pack("<4s4HL3L5H2L", b"PK\1\2", 45, 45, 0, 0, 0, crc, full, full, len(name), 28, 0, 0, 0, 0, full)
    entries += name + struct.pack("<2H3Q", 1, 24, n, n, len(body))
    body += struct.pack("<4s3HL3L2H", b"PK\3\4", 45, 0, 0, 0, crc, full, full, len(name), 20) + name
    body += struct.pack("<2H2Q", 1, 16, n, n) + data
end = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, 2, 2, len(entries), len(body))
end += struct.pack("<4sLQL", b"PK\6\7", 0, len(body + entries), 1)
end += struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xffff, 0xffff, full, full, 0)
open("zip64", "wb").write(body + entries + end)

# Bombs: archives of some kilobytes that unpack to much more.
def bomb(name, pickle, storage=b""):
    with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("archive/data.pkl", pickle)
        z.writestr("archive/data/0", storage)
bomb("objects", b"\x80\2" + b"N)R0" * 1000000 + b"N.")
bomb("references", b"\x80\2]" + (b"(N" + b"2" * 1000000 + b"e") * 8 + b".")
bomb("storage", open("one", "rb").read(), bytes(40000000))
bomb("pickle", b"\x80\2N" + b"0N" * 20000000 + b".")
END
