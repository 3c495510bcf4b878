"""torch_test.py -- files that PyTorch itself wrote become models, and models become files it reads.

Usage: torch_test.py LAMEMO.  Run in the root of the source tree by a Python that has torch; exits 77 (skipped)
where it has not.  Parameters come from the reference traces; what is imported is compared with them bit for bit.
"""
import argparse
import collections
import json
import os
import struct
import subprocess
import sys
import tempfile
import types

try:
    import numpy as np
    import torch
    from torch import nn
except ImportError as why:
    print(f"skipped: {why}")
    sys.exit(77)

LAMEMO = sys.argv[1]
DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "F64": torch.float64,
          "I64": torch.int64, "I32": torch.int32}


class Vocab:
    """What the authors pickle, under the name of their module."""

    def __init__(self, symbols, lower_case=False):
        self.counter = collections.Counter({s: 1000 - i for i, s in enumerate(symbols)})
        self.special = ["<eos>"]
        self.min_freq, self.max_size, self.delimiter, self.vocab_file = 0, None, None, None
        self.lower_case = lower_case
        self.idx2sym = list(symbols)
        self.sym2idx = collections.OrderedDict((s, i) for i, s in enumerate(symbols))


utils = types.ModuleType("utils")
utils.vocabulary = types.ModuleType("utils.vocabulary")
sys.modules["utils"], sys.modules["utils.vocabulary"] = utils, utils.vocabulary
Vocab.__module__ = "utils.vocabulary"
utils.vocabulary.Vocab = Vocab


def read_safetensors(path):
    with open(path, "rb") as f:
        data = f.read()
    (n,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + n])
    meta = header.pop("__metadata__", {})
    tensors = {}
    for name, t in header.items():
        begin, end = t["data_offsets"]
        if t["dtype"] not in DTYPES:
            continue
        raw = torch.frombuffer(bytearray(data[8 + n + begin:8 + n + end]), dtype=DTYPES[t["dtype"]])
        tensors[name] = raw.reshape(t["shape"])
    return tensors, meta


def read_folder(path):
    index = os.path.join(path, "model.safetensors.index.json")
    if not os.path.exists(index):
        return read_safetensors(os.path.join(path, "model.safetensors"))[0]
    with open(index) as f:
        weight_map = json.load(f)["weight_map"]
    files = {name: read_safetensors(os.path.join(path, name))[0] for name in set(weight_map.values())}
    return {name: files[file][name] for name, file in weight_map.items()}


def trace(name):
    tensors, meta = read_safetensors(f"tests/golden/{name}.safetensors")
    params = {k[6:]: v for k, v in tensors.items() if k.startswith("param.")}
    return params, json.loads(meta["config"])


def with_ties(params, config):
    """The state_dict of the authors' module: tied copies share storage with their originals."""
    state = collections.OrderedDict(params)
    D = config["d_model"]
    state["pos_emb.inv_freq"] = 1 / (10000 ** (torch.arange(0.0, D, 2.0) / D))
    for i in range(4):
        if f"word_emb.emb_layers.{i}.weight" in params:
            state.setdefault(f"crit.out_layers.{i}.weight", params[f"word_emb.emb_layers.{i}.weight"])
        own = f"word_emb.emb_projs.{i if config.get('div_val', 1) > 1 else 0}"
        if own in params and i <= len(config.get("cutoffs", [])):
            state.setdefault(f"crit.out_projs.{i}", params[own])
    return state


def as_module(state, config):
    """The same tensors as a tree of modules, which is pickled whole."""
    class_of = collections.defaultdict(lambda: nn.Module)
    root = nn.Module()
    for key in ("n_token", "n_layer", "n_head", "d_model", "d_head", "tgt_len", "mem_len", "attn_type"):
        setattr(root, key, config[key])
    root.clamp_len, root.same_length = config.get("clamp_len", -1), config.get("same_length", False)
    for name, tensor in state.items():
        *path, leaf = name.split(".")
        node = root
        for part in path:
            if part not in node._modules:
                node.add_module(part, class_of[part]())
            node = node._modules[part]
        if leaf == "inv_freq":
            node.register_buffer(leaf, tensor)
        else:
            node.register_parameter(leaf, nn.Parameter(tensor))
    root.crit.cutoffs = config.get("cutoffs", []) + [config["n_token"]]
    root.crit.div_val = config.get("div_val", 1)
    root.layers._modules["0"].dec_attn.pre_lnorm = config.get("pre_lnorm", False)
    root.drop = nn.Dropout(0.1)
    return root


def lamemo(*args, code=0, says=""):
    done = subprocess.run([LAMEMO, *map(str, args)], capture_output=True, text=True)
    text = done.stdout + done.stderr
    assert done.returncode == code, f"lamemo {args}: {done.returncode}, not {code}\n{text}"
    assert says in text, f"'{says}' is not in: {text}"
    return done.stdout


def compare(folder, want, how):
    have = read_folder(folder)
    assert set(have) == set(want), set(have) ^ set(want)
    for name, tensor in want.items():
        assert torch.equal(have[name].float(), how(tensor).float()), f"{name} differs"


def checkpoint(params, config, symbols):
    state = with_ties(params, config)
    optimizer = torch.optim.Adam([nn.Parameter(torch.zeros(3))], lr=0.1)
    return {"args": argparse.Namespace(work_dir="x", fp16="O1", tied=True, max_step=None, **config),
            "model_config": {**config, "dropout": 0.1, "dropatt": 0.0, "tie_weight": True, "ext_len": 0,
                             "sample_softmax": -1, "half_loss": False},
            "model_state": state, "optimizer_state": optimizer.state_dict(), "scheduler_state": {"last_epoch": 3},
            "vocab": Vocab(symbols), "amp_state": None, "train_step": 100, "best_val_loss": float("inf")}


def main():
    work = tempfile.mkdtemp()
    count = 0

    def check(saved, want, *options, how=lambda t: t, **save):
        nonlocal count
        count += 1
        path, out = f"{work}/{count}.pt", f"{work}/{count}"
        torch.save(saved, path, **save)
        lamemo("import", path, "--out", out, *options)
        compare(out, want, how)
        return out

    names = sorted(f[:-12] for f in os.listdir("tests/golden") if f.endswith(".safetensors"))
    for name in names:
        params, config = trace(name)
        if config.get("memory"):
            continue  # memories of other papers, which the authors' code has not
        symbols = ["<eos>", "<unk>"] + [f"word{i}" for i in range(2, config["n_token"])]
        out = check(checkpoint(params, config, symbols), params)
        vocab = json.load(open(f"{out}/vocab.json"))
        assert vocab["symbols"] == symbols and vocab["counts"][3] == 997 and vocab["kind"] == "words"
        check(as_module(with_ties(params, config), config), params)
        lengths = ("--tgt-len", config["tgt_len"], "--mem-len", config["mem_len"])
        if config.get("attn_type") in (0, 1, 3) and not config.get("cutoffs"):
            wrapped = collections.OrderedDict(("module." + k, v) for k, v in with_ties(params, config).items())
            check(wrapped, params, *lengths)

    params, config = trace("lamemo")
    symbols = ["<eos>"] + [f"w{i}" for i in range(1, 19)]
    whole = checkpoint(params, config, symbols)
    for protocol in 2, 3, 4, 5:
        check(whole, params, pickle_protocol=protocol)
    for dtype in torch.float16, torch.bfloat16, torch.float64:
        narrow = {**whole, "model_state": {k: v.to(dtype) for k, v in whole["model_state"].items()}}
        check(narrow, params, how=lambda t: t.to(dtype))
    # Transposed in memory, and pieces of one large storage.
    turned = {k: v.t().contiguous().t() if v.dim() == 2 else v for k, v in whole["model_state"].items()}
    check({**whole, "model_state": turned}, params)
    large = torch.zeros(sum(v.numel() for v in whole["model_state"].values()) + 7)
    at, pieces = 5, {}
    for k, v in whole["model_state"].items():
        pieces[k] = large[at:at + v.numel()].view(v.shape)
        pieces[k].copy_(v)
        at += v.numel()
    out = check({**whole, "model_state": pieces}, params)

    # Back: in every type, in one file and in shards; and once more through import.
    for name, dtype in ("f32", torch.float32), ("bf16", torch.bfloat16), ("f16", torch.float16):
        for size in "1GB", "6kB":
            back = f"{work}/{name}-{size}"
            lamemo("export", "--model", out, "--out", back, "--dtype", name, "--max-shard-size", size)
            compare(back, params, lambda t: t.to(dtype))
            assert all(t.dtype == dtype for t in read_folder(back).values())
            lamemo("import", back, "--out", back + "-again")
            compare(back + "-again", params, lambda t: t.to(dtype))

    # The old format is refused by name; a call in the pickle is not made.
    torch.save(whole, f"{work}/old.pt", _use_new_zipfile_serialization=False)
    lamemo("import", f"{work}/old.pt", "--out", f"{work}/old", code=1, says="before 1.6")

    class Evil:
        def __reduce__(self):
            return os.system, (f"touch {work}/witness",)

    check({**whole, "vocab": Evil(), "extra": [Evil()]}, params)
    assert not os.path.exists(f"{work}/witness")
    print(f"{count} files of torch {torch.__version__}")
    subprocess.run(["rm", "-rf", work], check=True)


main()
