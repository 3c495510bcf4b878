"""How much slower is Python than C?  python_bench.py BUILD [MODEL [TURNS]]

Feeding texts and generating token by token (sample, feed), by turns with the same in C (bench/session_bench.c, compiled with
cc) on the same session: what differs is Python alone. CPU time of one thread: medians, and the median of the ratios of
neighbouring turns with its 95 % interval.
"""
import ctypes
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

build, model = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "wiki11m"
turns = int(sys.argv[3]) if len(sys.argv) > 3 else 100
TREE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, os.path.join(TREE, "python"))
os.environ["LAMEMO_LIBRARY"] = os.path.join(build, "liblamemo.so")
os.environ.setdefault("LAMEMO_MODELS", os.path.join(TREE, "models"))

import lamemo  # noqa: E402

FED, DRAWN = 128, 48
tokens = [i * 7 % 256 for i in range(FED)]


def load_c():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "session_bench.so")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-I" + os.path.join(TREE, "include"),
                        os.path.join(TREE, "bench", "session_bench.c"), "-o", path,
                        "-L" + build, "-llamemo", "-Wl,-rpath," + os.path.abspath(build)], check=True)
        library = ctypes.CDLL(path)
    library.bench_feed.restype = library.bench_draw.restype = ctypes.c_double
    library.bench_feed.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
    library.bench_draw.argtypes = (ctypes.c_void_p, ctypes.c_long)
    return library


def in_python(s):
    begin = time.thread_time()
    s.feed(tokens)
    middle = time.thread_time()
    for _ in range(DRAWN):
        s.feed([s.sample()])
    return middle - begin, time.thread_time() - middle


def in_c(s):
    row = (ctypes.c_int32 * FED)(*tokens)
    pointer = s._handle.pointer
    return c.bench_feed(pointer, row, FED), c.bench_draw(pointer, DRAWN)


c = load_c()
session = lamemo.Model(model, device="cpu", threads=1).session()
in_python(session)
here = session.snapshot()  # every turn begins here: the memory is refreshed at the same tokens
rows = []
for turn in range(turns):
    first, second = (in_python, in_c) if turn % 2 else (in_c, in_python)
    took = []
    for way in (first, second):
        session.restore(here)
        session.sampling(seed=1)
        took.append(way(session))
    one, two = took
    rows.append((one, two) if turn % 2 else (two, one))
for i, (what, n) in enumerate((("feeding", FED), ("token by token", DRAWN))):
    python, in_c_took = (statistics.median(row[k][i] for row in rows) for k in (0, 1))
    ratios = sorted(row[0][i] / row[1][i] for row in rows)
    margin = round(math.sqrt(turns))  # of a median's rank: 1.96 sqrt(n) / 2
    low, high = ratios[max(0, turns // 2 - margin)], ratios[min(turns - 1, turns // 2 + margin)]
    print(f"{what}: Python {n / python:.0f} tokens/s, C {n / in_c_took:.0f}; Python takes "
          f"{statistics.median(ratios):.4f} of C's time ({low:.4f} to {high:.4f}, {turns} turns)")
