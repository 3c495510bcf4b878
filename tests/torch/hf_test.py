"""hf_test.py -- what `lamemo export --hf` writes computes the reference traces in PyTorch, and what lamemo computes.

Usage: hf_test.py LAMEMO.  Run in the root of the source tree by a Python that has torch; exits 77 (skipped) where it has
not.  Where transformers are installed too, their Auto classes load the same folders; otherwise that part is skipped by name.
"""
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile

try:
    import torch
except ImportError as why:
    print(f"skipped: {why}")
    sys.exit(77)

torch.set_num_threads(1)  # the models are small
LAMEMO = sys.argv[1]
TOOLS = os.path.join(os.path.dirname(LAMEMO), "tests")
INTEGERS = {"I32": torch.int32, "I64": torch.int64}


def lamemo(*args, code=0, says=""):
    done = subprocess.run([LAMEMO, *map(str, args)], capture_output=True, text=True)
    text = done.stdout + done.stderr
    assert done.returncode == code, f"lamemo {args}: {done.returncode}, not {code}\n{text}"
    assert says in text, f"'{says}' is not in: {text}"
    return done.stdout


def module_of(folder):
    """The modeling file of the folder, by itself."""
    spec = importlib.util.spec_from_file_location("modeling_lamemo", os.path.join(folder, "modeling_lamemo.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules["modeling_lamemo"] = module
    spec.loader.exec_module(module)
    return module


def load(folder):
    module = module_of(folder)
    how = {} if module.PreTrainedModel is None else {"torch_dtype": "auto"}
    return module.LamemoForCausalLM.from_pretrained(folder, **how).eval()


def off(have, want):
    """As lamemo verify counts."""
    assert have.shape == want.shape, (have.shape, want.shape)
    return float((have - want).abs().max() / max(float(want.abs().max()), 1e-6)) if want.numel() else 0.0


# ---- the traces ----

def read_trace(path, module):
    with open(path, "rb") as f:
        size = int.from_bytes(f.read(8), "little")
        header = json.loads(f.read(size))
        data = f.read()
    meta = header.pop("__metadata__")
    types = {**module.DTYPES, **INTEGERS}
    tensors = {}
    for name, t in header.items():
        begin, end = t["data_offsets"]
        if end > begin:
            tensors[name] = torch.frombuffer(bytearray(data[begin:end]), dtype=types[t["dtype"]]).reshape(t["shape"])
    return tensors, meta


def memory_off(trace, s, config, state):
    """Of the state after segment s: inputs of layers, contexts, log-denominators; [m, B, ...] in traces."""
    worst = 0.0
    for l, rows in enumerate(state.rows):
        worst = max(worst, off(rows.transpose(0, 1), trace[f"seg{s}.mem{l}"]))
    for l, (context, sums) in enumerate(zip(state.contexts, state.sums)):
        worst = max(worst, off(context.transpose(0, 1), trace[f"seg{s}.mem{2 * l + 1}"]),
                    off(sums.transpose(0, 1), trace[f"seg{s}.mem{2 * l + 2}"]))
    layers = {"none": 0, "xl": config.n_layer, "lamemo": 1}[config.memory]
    assert len(state.rows) == layers and len(state.contexts) == (config.n_layer - 1 if config.memory == "lamemo" else 0)
    return worst


def compare_trace(name, folder):
    model = load(folder).double()
    trace, meta = read_trace(f"tests/golden/{name}.safetensors", sys.modules["modeling_lamemo"])
    N, worst, state = model.config.tgt_len, 0.0, None
    for s in range(int(meta["segments"])):
        text = trace["tokens"][:, s * N:(s + 1) * N + 1].long()
        before, out = state, model(text[:, :-1], past_key_values=state)
        state = out.past_key_values
        nll = -out.logits.log_softmax(-1).gather(-1, text[:, 1:, None])[..., 0]
        worst = max(worst, off(nll, trace[f"seg{s}.nll"]), memory_off(trace, s, model.config, state))
        model.zero_grad()
        nll.mean().backward()
        for p_name, p in model.named_parameters():
            want = trace.get(f"seg{s}.grad.{p_name}", torch.zeros_like(p))
            worst = max(worst, off(torch.zeros_like(p) if p.grad is None else p.grad, want))
        # Token by token, from the same state, which nothing has changed.
        parts = []
        for i in range(N):
            step = model(text[:, i:i + 1], past_key_values=before)
            before = step.past_key_values
            parts.append(step.logits)
        worst = max(worst, off(torch.cat(parts, 1), out.logits.detach()))
    assert worst < 1e-10, f"{name}: {worst}"
    return worst


def traces(work):
    worst, names = 0.0, []
    for file in sorted(os.listdir("tests/golden")):
        name = file[:-12]
        if not file.endswith(".safetensors") or name.startswith(("compressive", "infinite")):
            continue
        saved, model, out = f"{work}/{name}.pt", f"{work}/{name}", f"{work}/{name}-hf"
        subprocess.run([f"{TOOLS}/make_checkpoint", saved, f"tests/golden/{file}", "lamemo"], check=True,
                       stdout=subprocess.DEVNULL)
        lamemo("import", saved, "--out", model)
        lamemo("export", "--model", model, "--hf", out)
        worst = max(worst, compare_trace(name, out))
        names.append(name)
    assert len(names) > 20
    print(f"{len(names)} traces: losses, gradients, memory and decoding differ by {worst:.1e} at most")


# ---- lamemo itself ----

def same_as_lamemo(folder, model, text):
    """The bits per byte of `lamemo eval` of a text, segment after segment."""
    path = folder + ".txt"
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    said = json.loads(lamemo("eval", "--model", folder, "--data", path, "-b", 1, "--device", "ref", "--json"))
    ids = torch.tensor([list(text.encode())])
    with torch.no_grad():
        logits = model.double()(ids[:, :-1]).logits
    nll = torch.nn.functional.cross_entropy(logits[0], ids[0, 1:])
    assert abs(float(nll) - said["nats"]) < 1e-6, (float(nll), said)


def models(work):
    text = "".join(chr(97 + (i * i) % 26) + (" " if i % 5 == 0 else "") for i in range(120))
    for memory in "none", "xl", "lamemo":
        model, out = f"{work}/toy-{memory}", f"{work}/toy-{memory}-hf"
        subprocess.run([f"{TOOLS}/make_model", model, memory, "3"], check=True)
        lamemo("export", "--model", model, "--hf", out)
        same_as_lamemo(out, load(out), text)  # the folder is one of lamemo's as well
        prompt = torch.tensor([list(text[:50].encode())])
        loaded = load(out)
        new = loaded.generate(prompt, max_new_tokens=30, do_sample=False)[0, 50:]
        state, ids = None, prompt
        for t in new:  # by a loop over forward
            step = loaded(ids, past_key_values=state)
            state, ids = step.past_key_values, step.logits[:, -1:].argmax(-1)
            assert int(ids) == int(t)
        tokenizer = json.load(open(f"{out}/tokenizer.json", encoding="utf-8"))
        assert tokenizer["model"]["type"] == "BPE" and len(tokenizer["model"]["vocab"]) == 256
    print("toy models: what lamemo eval says, token by token what a whole text gives")


def refusals(work):
    for memory in "compressive", "infinite":
        model = f"{work}/toy-{memory}"
        subprocess.run([f"{TOOLS}/make_model", model, memory, "3"], check=True)
        lamemo("export", "--model", model, "--hf", f"{work}/no", code=1, says=f"has no memory {memory}; it has")
    lamemo("export", "--model", f"{work}/toy-xl", "--hf", f"{work}/no", "--dtype", "int8", code=1, says="int8")
    lamemo("export", "--model", f"{work}/toy-xl", "--hf", f"{work}/no", "--out", f"{work}/no", code=2, says="--hf")
    assert not os.path.exists(f"{work}/no")
    out = f"{work}/toy-xl-hf"
    lamemo("export", "--model", f"{work}/toy-xl", "--hf", out, code=1, says="--replace")
    lamemo("export", "--model", f"{work}/toy-xl", "--hf", out, "--replace", "--dtype", "bf16", "--max-shard-size", "6kB")
    model = load(out)
    assert os.path.exists(f"{out}/model.safetensors.index.json") and next(model.parameters()).dtype == torch.bfloat16
    try:
        model(torch.ones(1, 4, dtype=torch.long), attention_mask=torch.tensor([[0, 1, 1, 1]]))
        raise AssertionError("padding was taken")
    except ValueError:
        pass
    config = module_of(out).LamemoConfig(memory="compressive")
    try:
        module_of(out).LamemoForCausalLM(config)
        raise AssertionError("another memory was taken")
    except ValueError as why:
        assert "compressive" in str(why)
    print("refused: other memories, int8, padding")


# ---- transformers ----

def with_transformers(work):
    try:
        import transformers
        from transformers import AutoConfig, AutoModelForCausalLM
    except ImportError as why:
        print(f"transformers: skipped: {why}")
        return
    os.environ["HF_MODULES_CACHE"] = f"{work}/modules"
    for memory in "none", "xl", "lamemo":
        folder = f"{work}/toy-{memory}-hf"
        lamemo("export", "--model", f"{work}/toy-{memory}", "--hf", folder, "--replace")
        assert AutoConfig.from_pretrained(folder, trust_remote_code=True).vocab_size == 256
        model = AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=True).eval()
        assert isinstance(model, transformers.PreTrainedModel)
        text = "".join(chr(97 + (i * i) % 26) for i in range(120))
        same_as_lamemo(folder, model, text)
        prompt = torch.tensor([list(text[:50].encode()), list(text[1:51].encode())])
        new = model.generate(prompt, max_new_tokens=30, do_sample=False)
        with torch.no_grad():
            want = model(new[:, :-1]).logits[:, 49:].argmax(-1)
        assert torch.equal(new[:, 50:], want), "generate() gives another text than forward"
        beams = model.generate(prompt, max_new_tokens=12, do_sample=False, num_beams=3)
        assert beams.shape[0] == 2 and beams.shape[1] <= 62
        out = model(prompt, labels=prompt)
        out.loss.backward()
        model.float().save_pretrained(f"{work}/saved-{memory}", safe_serialization=True)
        same_as_lamemo_again(folder, f"{work}/saved-{memory}", model, text)
    print(f"transformers {transformers.__version__}: Auto classes, generate, beam search, save_pretrained")


def transfo_xl(work):
    """Checkpoints of TransfoXL, which later transformers do not have: imported, they compute the same."""
    try:
        from transformers import TransfoXLConfig, TransfoXLLMHeadModel
    except ImportError as why:
        print(f"TransfoXL: skipped: {why}")
        return
    torch.manual_seed(1)
    symbols = [chr(33 + i) for i in range(60)]
    for i, (cutoffs, div, untie, same) in enumerate([([], 1, True, False), ([], 1, False, False), ([20, 40], 2, True, True)]):
        config = TransfoXLConfig(vocab_size=60, cutoffs=cutoffs, d_model=16, d_embed=16, n_head=2, d_head=8, d_inner=24,
                                 div_val=div, n_layer=3, mem_len=10, clamp_len=12, same_length=same, untie_r=untie,
                                 init_std=0.3, proj_init_std=0.3)
        theirs = TransfoXLLMHeadModel(config).eval()
        for name, p in theirs.named_parameters():  # biases begin as zeros
            if "bias" in name:
                torch.nn.init.normal_(p, 0.0, 0.3)
        saved, model, out = f"{work}/xl{i}", f"{work}/xl{i}-model", f"{work}/xl{i}-hf"
        theirs.save_pretrained(saved, safe_serialization=False)
        with open(f"{saved}/symbols.txt", "w", encoding="utf-8") as f:
            f.write("\n".join(symbols) + "\n")
        lamemo("import", saved, "--out", model, "--tgt-len", 8, "--vocab", f"{saved}/symbols.txt")
        lamemo("export", "--model", model, "--hf", out)
        ours = load(out)
        ids = torch.randint(0, 60, (2, 40))
        try:
            theirs(ids[:, :8])
        except TypeError as why:  # 4.38 and its neighbours cannot run their own model
            print(f"TransfoXL: skipped: {why}")
            return
        mems, state, worst = [torch.zeros(0, 2, 16) for _ in range(3)], None, 0.0  # theirs would begin with rows of zeros
        for at in range(0, 40, 8):
            with torch.no_grad():
                want = theirs(ids[:, at:at + 8], mems=mems)
                have = ours(ids[:, at:at + 8], past_key_values=state)
            mems, state = want.mems, have.past_key_values
            worst = max(worst, off(have.logits.log_softmax(-1), want.prediction_scores))
        assert worst < 1e-5, (i, worst)
    print("TransfoXL: imported, with shared biases and with those of each layer, the same log-probabilities")


def same_as_lamemo_again(folder, saved, model, text):
    """What save_pretrained wrote is a model for lamemo; the vocabulary is not transformers' to save."""
    shutil.copy(f"{folder}/vocab.json", saved)
    same_as_lamemo(saved, model, text)


def main():
    work = tempfile.mkdtemp()
    try:
        traces(work)
        models(work)
        refusals(work)
        with_transformers(work)
        transfo_xl(work)
    finally:
        shutil.rmtree(work)


main()
