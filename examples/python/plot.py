"""Plots the loss of one or several runs into one picture: plot.py PICTURE RUN...

PICTURE is a new file whose name ends in .png, .svg or .pdf. Solid lines are the training loss, points the validation loss.
Without matplotlib the last values are printed and nothing is drawn.
"""
import os
import sys

import lamemo

picture, runs = sys.argv[1], [lamemo.read_run(path) for path in sys.argv[2:]]
if not runs:
    sys.exit(__doc__)

for run in runs:
    last = {name: run.curve(name)[1][-1] for name in ("loss", "valid_loss", "test_loss") if name in run.names()}
    print(run.path, " ".join(f"{name} {value:.4f}" for name, value in last.items()))

try:
    import matplotlib
except ImportError:
    sys.exit("matplotlib is not installed: no picture (on Debian: apt-get install python3-matplotlib)")
matplotlib.use("agg")
import matplotlib.pyplot as plt  # noqa: E402

for run in runs:
    line, = plt.plot(*run.curve("loss"), label=os.path.basename(os.path.normpath(str(run.path))))
    if "valid_loss" in run.names():
        plt.plot(*run.curve("valid_loss"), "o", color=line.get_color())
plt.xlabel("step")
plt.ylabel("loss (nats per token)")
plt.legend()
plt.savefig(picture)
print("plotted:", picture)
