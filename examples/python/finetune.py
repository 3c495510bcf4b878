"""Fine-tunes a model on a text of yours and plots the loss: finetune.py TEXT RUN [STEPS [MODEL]]

RUN is a new folder: the corpus goes to RUN/corpus, the run with its checkpoints to RUN/run, the curves to
RUN/loss.png where matplotlib is installed.
"""
import os
import sys

import lamemo

text, folder = sys.argv[1:3]
steps = int(sys.argv[3]) if len(sys.argv) > 3 else 100
model = sys.argv[4] if len(sys.argv) > 4 else "wiki11m"
corpus, out = os.path.join(folder, "corpus"), os.path.join(folder, "run")
os.makedirs(folder)

lamemo.prepare(text, out=corpus, vocab_from=model)
for row in lamemo.train(data=corpus, out=out, init_from=model, max_step=steps, batch_size=4, tgt_len=128,
                        mem_len=128, log_interval=max(1, steps // 10), eval_interval=steps):
    print("  ".join(f"{name} {row[name]:.4g}" for name in ("step", "loss", "valid_loss", "test_loss") if name in row))

run = lamemo.read_run(out)
before, after = lamemo.Model(model), lamemo.Model(out)
with open(text, "rb") as file:
    sample = file.read()[-20000:]
print(f"bits per byte of the end of {text}: {before.bits_per_byte(sample):.4f} before, {after.bits_per_byte(sample):.4f} after")

try:
    import matplotlib
except ImportError:
    print("matplotlib is not installed: no plot")
else:
    matplotlib.use("agg")
    import matplotlib.pyplot as plt
    plt.plot(*run.curve("loss"), label="training")
    plt.plot(*run.curve("valid_loss"), "o", label="validation")
    plt.xlabel("step")
    plt.ylabel("loss (nats per byte)")
    plt.legend()
    plt.savefig(os.path.join(folder, "loss.png"))
    print("plotted:", os.path.join(folder, "loss.png"))
