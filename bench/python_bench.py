"""How much slower is Python than C?  python_bench.py BUILD [MODEL [TURNS]]

Feeding whole texts, and generating token by token (sample, feed), by turns with the same in C
(bench/session_bench.c). Tokens per second of CPU time with one thread: the medians, the best, and their ratios.
"""
import os
import statistics
import subprocess
import sys
import time

build, model = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "wiki11m"
turns = int(sys.argv[3]) if len(sys.argv) > 3 else 7
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
os.environ["LAMEMO_LIBRARY"] = os.path.join(build, "liblamemo.so")
os.environ.setdefault("LAMEMO_MODELS", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "models"))
os.environ.setdefault("GOMP_SPINCOUNT", "1000")

import lamemo  # noqa: E402

FED, DRAWN = 4096, 200
tokens = [i * 7 % 256 for i in range(FED)]
m = lamemo.Model(model, device="cpu", threads=1)


def in_python():
    with m.session() as s:
        s.feed(tokens[:128])
        begin = time.thread_time()
        s.feed(tokens)
        middle = time.thread_time()
        for _ in range(DRAWN):
            s.feed([s.sample()])
        return FED / (middle - begin), DRAWN / (time.thread_time() - middle)


def in_c():
    said = subprocess.run([os.path.join(build, "bench", "session_bench"), model, str(FED), str(DRAWN)], check=True,
                          capture_output=True, text=True).stdout
    return tuple(map(float, said.split()))


rows = [(in_python(), in_c()) for _ in range(turns)]
for i, what in enumerate(("feeding", "token by token")):
    python, c = (statistics.median(row[k][i] for row in rows) for k in (0, 1))
    best_python, best_c = (max(row[k][i] for row in rows) for k in (0, 1))
    print(f"{what}: Python {python:.0f} tokens/s, C {c:.0f}, ratio {python / c:.3f}; "
          f"best of {turns}: {best_python:.0f}, {best_c:.0f}, ratio {best_python / best_c:.3f}")
