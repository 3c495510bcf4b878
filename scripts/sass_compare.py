"""Compares the kernels of two lists of cubins; called by sass-compare.sh.

A line of a list is: source file, architecture, cubin.  A cubin is an ELF file whose section .text.NAME holds the
machine code of kernel (or function) NAME, .nv.info.NAME its attributes and .nv.shared.NAME its shared memory; what
.nv.info says of NAME (registers, stack) refers to the symbol NAME.
"""
import collections
import hashlib
import struct
import subprocess
import sys

NOBITS = 8
PARAM_CBANK = 0x0a  # an attribute that names a section by its number, which is no property of the kernel
PARTS = (".text.", ".nv.info.", ".nv.shared.", ".nv.constant0.", ".nv.constant2.")


def sections(data):
    """Name -> bytes (or, where the file holds none, the size) of every section of an ELF file."""
    (start,) = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<HHH", data, 58)
    table = [struct.unpack_from("<IIQQQQIIQQ", data, start + i * size) for i in range(count)]
    found = {}
    for name, kind, _, _, offset, length, _, _, _, _ in table:
        found[text(data, table[names][4] + name)] = length if kind == NOBITS else data[offset:offset + length]
    return found


def text(data, at):
    return data[at:data.index(b"\0", at)].decode()


def attributes(data):
    """Yields form, code, value and body of every attribute; a body, of `value` bytes, has form 4 alone."""
    at = 0
    while at < len(data):
        form, code, value = struct.unpack_from("<BBH", data, at)
        size = value if form == 4 else 0
        yield form, code, value, data[at + 4:at + 4 + size]
        at += 4 + size


def kernels(path):
    """The digest of every kernel of a cubin, by its mangled name."""
    with open(path, "rb") as file:
        found = sections(file.read())
    parts = collections.defaultdict(list)
    for name, content in sorted(found.items()):
        for prefix in PARTS:
            if name.startswith(prefix):
                if prefix == ".nv.info.":
                    content = [(f, c, v, b[4:] if c == PARAM_CBANK else b) for f, c, v, b in attributes(content)]
                parts[name[len(prefix):]].append((prefix, content))
    symbols, strings = found[".symtab"], found[".strtab"]
    for _, code, _, body in attributes(found[".nv.info"]):
        if len(body) == 8:
            symbol, value = struct.unpack("<II", body)
            (name,) = struct.unpack_from("<I", symbols, 24 * symbol)
            parts[text(strings, name)].append((code, value))
    return {name: hashlib.sha256(repr(sorted(map(repr, part))).encode()).hexdigest()
            for name, part in parts.items() if ".text." + name in found}


def read(path):
    """All kernels of a list: (architecture, digest) -> [(file, mangled name)]."""
    found = collections.defaultdict(list)
    with open(path, encoding="utf-8") as file:
        for line in file:
            source, arch, cubin = line.split()
            for name, digest in kernels(cubin).items():
                found[arch, digest].append((source, name))
    return found


def plain(name):
    return subprocess.run(["c++filt", name], capture_output=True, text=True, check=False).stdout.strip() or name


def main():
    old, new = read(sys.argv[1]), read(sys.argv[2])
    total = sum(map(len, new.values()))
    lines = []
    for sign, mine, other in (("-", old, new), ("+", new, old)):
        for (arch, digest), here in mine.items():
            there = other.get((arch, digest), [])
            names = {name for _, name in there}
            here = sorted(here, key=lambda place: place[1] in names)
            lines += [f"{sign} sm_{arch} {source}: {plain(name)}" for source, name in here[:max(len(here) - len(there), 0)]]
    for line in sorted(lines, key=lambda line: (line[2:], line[0])):
        print(line)
    print(f"sass-compare: {total} kernels, " + (f"{len(lines)} differences" if lines else "all identical"))
    return 1 if lines or total == 0 else 0


sys.exit(main())
