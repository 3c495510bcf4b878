"""Language models with a recurrence memory (LaMemo, Transformer-XL, none) in PyTorch.

`lamemo export --hf DIR` writes this file beside the weights. It needs torch alone; where transformers can be imported,
LamemoForCausalLM is a PreTrainedModel:

    AutoModelForCausalLM.from_pretrained(DIR, trust_remote_code=True)     # with transformers
    LamemoForCausalLM.from_pretrained(DIR)                                # without, from a copy of this file

A text is read in segments of config.tgt_len tokens; what a finished segment leaves behind is the memory. The state of a text
is passed in and out of forward() as past_key_values, and its size does not grow with the text:

    out = model(first_ids)
    out = model(more_ids, past_key_values=out.past_key_values)

A call may begin and end anywhere in a segment: feeding a text at once or token by token gives the same logits. A state is
never changed by a call, so one state may be continued in several ways. All texts of a batch have the same length; padding
is refused. With an adaptive softmax, logits are log-probabilities. Gradients stop at the memory, as in the papers.
"""
import json
import math
import os
import struct
from dataclasses import dataclass
from typing import Optional

import torch
from torch import nn
from torch.nn import functional as F

try:
    from transformers import PretrainedConfig, PreTrainedModel
    from transformers.utils import ModelOutput
except ImportError:
    PretrainedConfig = PreTrainedModel = ModelOutput = None
try:
    from transformers import GenerationMixin
except ImportError:
    GenerationMixin = None

# attn_type
XL, LEARNED, ABSOLUTE, LAMEMO, LAMEMO_XL, LAMEMO_BOTH, LAMEMO_FULL = 0, 1, 2, 3, 31, 32, 33
MEMORIES = {"none": (XL, LEARNED, ABSOLUTE), "xl": (XL, LEARNED),
            "lamemo": (LAMEMO, LAMEMO_XL, LAMEMO_BOTH, LAMEMO_FULL)}


# ---- configuration ----

class PlainConfig:
    """What LamemoConfig needs of transformers' PretrainedConfig."""

    def __init__(self, **kwargs):
        for name, value in kwargs.items():
            setattr(self, name, value)

    @classmethod
    def from_pretrained(cls, folder):
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
            return cls(**json.load(f))


class LamemoConfig(PretrainedConfig or PlainConfig):
    """The keys of lamemo's config.json."""

    model_type = "lamemo"
    attribute_map = {"vocab_size": "n_token", "hidden_size": "d_model", "num_hidden_layers": "n_layer",
                     "num_attention_heads": "n_head"}

    def __init__(self, memory="lamemo", attn_type=None, n_token=256, n_layer=8, n_head=5, d_model=320, d_head=64,
                 d_inner=1280, d_embed=None, tgt_len=512, mem_len=512, ext_len=0, clamp_len=-1, same_length=False,
                 untie_r=False, pre_lnorm=False, tie_weight=True, div_val=1, dropout=0.0, dropatt=0.0, layer_norm_epsilon=1e-5,
                 interp_eps=1e-6, alpha="learned", window="previous", init_std=0.02, proj_init_std=0.01, cutoffs=(),
                 tie_projs=None, use_cache=True, **kwargs):
        self.memory, self.n_token, self.n_layer, self.n_head = memory, n_token, n_layer, n_head
        self.attn_type = MEMORIES.get(memory, (XL,))[0] if attn_type is None else attn_type
        self.d_model, self.d_head, self.d_inner = d_model, d_head, d_inner
        self.d_embed = d_embed or d_model
        self.tgt_len, self.mem_len, self.ext_len = tgt_len, mem_len, ext_len
        self.clamp_len, self.same_length, self.pre_lnorm = clamp_len, same_length, pre_lnorm
        self.untie_r = untie_r
        self.tie_weight, self.div_val, self.cutoffs = tie_weight, div_val, list(cutoffs)
        self.tie_projs = list(tie_projs) if tie_projs else [False] * (len(self.cutoffs) + 1)
        self.dropout, self.dropatt, self.layer_norm_epsilon = dropout, dropatt, layer_norm_epsilon
        self.interp_eps, self.alpha, self.window = interp_eps, alpha, window
        self.init_std, self.proj_init_std = init_std, proj_init_std
        self.use_cache = use_cache
        kwargs["tie_word_embeddings"] = False  # tied tensors exist once here
        super().__init__(**kwargs)

    def check(self):
        if self.memory not in MEMORIES:
            raise ValueError(f"memory '{self.memory}': this module has {', '.join(MEMORIES)}")
        if self.attn_type not in MEMORIES[self.memory]:
            raise ValueError(f"attn_type {self.attn_type} does not go with memory {self.memory}")
        if self.ext_len:
            raise ValueError(f"ext_len {self.ext_len}: this module has 0 only")

    def cluster(self, i):
        """First id, end and embedding width of cluster i of the vocabulary."""
        ends = [0, *self.cutoffs, self.n_token]
        return ends[i], ends[i + 1], self.d_embed // self.div_val ** i


# ---- parameters, under the names of the authors' modules ----

class Table(nn.Module):
    """word_emb: one table, or with div_val above 1 one for each cluster, and projections to d_model."""

    def __init__(self, c):
        super().__init__()
        parts = [(0, c.n_token, c.d_embed)] if c.div_val == 1 else [c.cluster(i) for i in range(len(c.cutoffs) + 1)]
        self.parts = parts
        self.emb_layers = nn.ModuleList(nn.Embedding(end - first, width) for first, end, width in parts)
        projected = c.div_val > 1 or c.d_embed != c.d_model
        self.emb_projs = nn.ParameterList(
            nn.Parameter(torch.empty(c.d_model, width)) for _, _, width in parts if projected)
        self.scale = c.d_model ** 0.5

    def forward(self, ids):
        rows = None
        for i, (first, end, _) in enumerate(self.parts):
            mine = (ids >= first) & (ids < end)
            part = self.emb_layers[i]((ids - first).clamp(0, end - first - 1))
            if len(self.emb_projs):
                part = F.linear(part, self.emb_projs[i])
            part = part * mine.unsqueeze(-1).to(part.dtype)
            rows = part if rows is None else rows + part
        return rows * self.scale


class Output(nn.Module):
    """One of crit.out_layers: a bias, and a weight where it is not tied to the embedding."""

    def __init__(self, rows, width, tied):
        super().__init__()
        self.bias = nn.Parameter(torch.empty(rows))
        self.weight = None if tied else nn.Parameter(torch.empty(rows, width))


class Criterion(nn.Module):
    """crit: logits, or with cutoffs the log-probabilities of an adaptive softmax."""

    def __init__(self, c, table):
        super().__init__()
        self.clusters = [c.cluster(i) for i in range(len(c.cutoffs) + 1)]
        self.one_table = c.div_val == 1
        self.out_layers = nn.ModuleList(Output(end - first, width, c.tie_weight) for first, end, width in table.parts)
        if c.cutoffs:
            self.cluster_weight = nn.Parameter(torch.empty(len(c.cutoffs), c.d_embed))
            self.cluster_bias = nn.Parameter(torch.empty(len(c.cutoffs)))
        self.out_projs = nn.ParameterDict()  # by number: those that are not tied
        for i, (_, _, width) in enumerate(self.clusters):
            if len(table.emb_projs) and not c.tie_projs[i]:
                self.out_projs[str(i)] = nn.Parameter(torch.empty(c.d_model, width))

    def scores(self, i, rows, table):
        """Columns of cluster i, the other clusters' last in the first one."""
        first, end, _ = self.clusters[i]
        t = 0 if self.one_table else i
        if len(table.emb_projs):
            proj = self.out_projs[str(i)] if str(i) in self.out_projs else table.emb_projs[t]
            rows = rows @ proj
        layer = self.out_layers[t]
        weight, bias = table.emb_layers[t].weight if layer.weight is None else layer.weight, layer.bias
        if self.one_table:
            weight, bias = weight[first:end], bias[first:end]
        if i == 0 and len(self.clusters) > 1:
            weight, bias = torch.cat([weight, self.cluster_weight]), torch.cat([bias, self.cluster_bias])
        return F.linear(rows, weight, bias)

    def forward(self, rows, table):
        head = self.scores(0, rows, table)
        if len(self.clusters) == 1:
            return head
        head = F.log_softmax(head, -1)
        parts = [head[..., :self.clusters[0][1]]]
        for i in range(1, len(self.clusters)):  # cluster 1 is the last column
            parts.append(head[..., -i:][..., :1] + F.log_softmax(self.scores(i, rows, table), -1))
        return torch.cat(parts, -1)


class Attention(nn.Module):
    """dec_attn: the projections of a layer; what they are used for is in the stack."""

    def __init__(self, c):
        super().__init__()
        self.heads, self.width = c.n_head, c.d_head
        inner = c.n_head * c.d_head
        if c.attn_type in (XL, LEARNED):
            self.qkv_net = nn.Linear(c.d_model, 3 * inner, bias=False)
        else:
            self.q_net = nn.Linear(c.d_model, inner, bias=False)
            self.kv_net = nn.Linear(c.d_model, 2 * inner, bias=False)
        if c.attn_type not in (LEARNED, ABSOLUTE):
            self.r_net = nn.Linear(c.d_model, inner, bias=False)
        self.o_net = nn.Linear(inner, c.d_model, bias=False)
        self.layer_norm = nn.LayerNorm(c.d_model, eps=c.layer_norm_epsilon)
        self.joined = c.attn_type in (XL, LEARNED)
        if c.untie_r:
            self.r_w_bias = nn.Parameter(torch.empty(c.n_head, c.d_head))
            self.r_r_bias = nn.Parameter(torch.empty(c.n_head, c.d_head))

    def split(self, rows):
        """[..., H * e] as [..., H, e]"""
        return rows.unflatten(-1, (self.heads, self.width))

    def forward(self, rows):
        parts = self.qkv_net(rows).chunk(3, -1) if self.joined else (
            self.q_net(rows), *self.kv_net(rows).chunk(2, -1))
        return [self.split(part) for part in parts]


class FeedForward(nn.Module):
    """pos_ff"""

    def __init__(self, c):
        super().__init__()
        self.CoreNet = nn.Sequential(nn.Linear(c.d_model, c.d_inner), nn.ReLU(), nn.Dropout(c.dropout),
                                     nn.Linear(c.d_inner, c.d_model), nn.Dropout(c.dropout))
        self.layer_norm = nn.LayerNorm(c.d_model, eps=c.layer_norm_epsilon)


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.dec_attn, self.pos_ff, self.drop, self.pre = Attention(c), FeedForward(c), nn.Dropout(c.dropout), c.pre_lnorm

    def forward(self, rows, context):
        """Everything behind the attention (Eq. 3)."""
        attn, ff = self.dec_attn, self.pos_ff
        y = rows + self.drop(attn.o_net(context.flatten(-2)))
        if self.pre:
            return y + ff.CoreNet(ff.layer_norm(y))
        y = attn.layer_norm(y)
        return ff.layer_norm(y + ff.CoreNet(y))


# ---- state ----

class LamemoState:
    """What a model knows of the B texts it reads: the memory, and the unfinished segment.

    length: tokens read so far.  rows, contexts, sums: of the memory, oldest first, by layer; `rows` are inputs of layers,
    `contexts` and `sums` LaMemo's attention outputs and log-denominators.  segment: what was computed of the current one.
    """

    def __init__(self, length=0, previous=0, rows=None, contexts=None, sums=None, segment=None):
        self.length, self.previous = length, previous
        self.rows, self.contexts, self.sums = rows or [], contexts or [], sums or []
        self.segment = segment

    def remembered(self):
        return self.rows[0].shape[1] if self.rows else 0

    def map(self, how):
        """The same state with `how` applied to every tensor that has a row for each text."""
        def each(tensors):
            return [None if t is None else how(t) for t in tensors]
        return LamemoState(self.length, self.previous, each(self.rows), each(self.contexts), each(self.sums),
                           self.segment and self.segment.map(each))

    def reorder_cache(self, order):
        """Text i becomes a copy of text order[i]: beam search."""
        return self.map(lambda t: t.index_select(0, order.to(t.device)))

    def get_seq_length(self, *_):
        return self.length


class Segment:
    """The rows of one segment that were computed, remembered ones in front: by layer."""

    def __init__(self, done, past, ahead, keys, values, rows, contexts, sums):
        self.done = done  # of its own rows
        self.past, self.ahead = past, ahead  # positional keys; the same for all texts
        self.keys, self.values, self.rows, self.contexts, self.sums = keys, values, rows, contexts, sums

    def map(self, each):
        return Segment(self.done, self.past, self.ahead, each(self.keys), each(self.values), each(self.rows),
                       each(self.contexts), each(self.sums))


def joined(old, new):
    return new if old is None else torch.cat([old, new], 1)


# ---- outputs ----

@dataclass
class LamemoOutput(ModelOutput or object):
    loss: Optional[torch.Tensor] = None
    logits: Optional[torch.Tensor] = None
    past_key_values: Optional[LamemoState] = None


# ---- the model where there are no transformers ----

DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


def read_safetensors(path):
    with open(path, "rb") as f:
        (size,) = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(size))
        data = bytearray(f.read())
    tensors = {}
    for name, about in header.items():
        if name == "__metadata__":
            continue
        if about["dtype"] not in DTYPES:
            raise ValueError(f"{path}: tensor {name} is {about['dtype']}; export it as f32, bf16 or f16")
        begin, end = about["data_offsets"]
        dtype, count = DTYPES[about["dtype"]], math.prod(about["shape"])
        part = torch.frombuffer(data, dtype=dtype, count=count, offset=begin) if end > begin else torch.empty(0, dtype=dtype)
        tensors[name] = part.reshape(about["shape"]).clone()
    return tensors


class PlainModel(nn.Module):
    """What LamemoForCausalLM needs of transformers' PreTrainedModel, and a generate() with the commonest arguments."""

    def __init__(self, config):
        super().__init__()
        self.config = config

    def post_init(self):
        self.apply(self._init_weights)

    @classmethod
    def from_pretrained(cls, folder):
        model = cls(LamemoConfig.from_pretrained(folder))
        files, index = ["model.safetensors"], os.path.join(folder, "model.safetensors.index.json")
        if os.path.exists(index):
            with open(index, encoding="utf-8") as f:
                files = sorted(set(json.load(f)["weight_map"].values()))
        tensors = {}
        for name in files:
            tensors.update(read_safetensors(os.path.join(folder, name)))
        model.to(next(iter(tensors.values())).dtype)
        model.load_state_dict(tensors)
        return model.eval()

    @torch.no_grad()
    def generate(self, input_ids, max_new_tokens=20, do_sample=False, temperature=1.0, top_k=0, past_key_values=None):
        """input_ids and the new tokens; past_key_values: a state of what came before input_ids."""
        state, new = past_key_values, input_ids
        for _ in range(max_new_tokens):
            out = self(new, past_key_values=state)
            state, scores = out.past_key_values, out.logits[:, -1].float()
            if do_sample:
                scores = scores / temperature
                if top_k:
                    least = scores.topk(min(top_k, scores.shape[-1])).values[:, -1:]
                    scores = scores.masked_fill(scores < least, -math.inf)
                new = torch.multinomial(scores.softmax(-1), 1)
            else:
                new = scores.argmax(-1, keepdim=True)
            input_ids = torch.cat([input_ids, new], 1)
        return input_ids


bases = (PlainModel,) if PreTrainedModel is None else (PreTrainedModel,)
if PreTrainedModel is not None and GenerationMixin is not None and not issubclass(PreTrainedModel, GenerationMixin):
    bases += (GenerationMixin,)


# ---- the model ----

class LamemoForCausalLM(*bases):
    config_class = LamemoConfig
    base_model_prefix = ""
    main_input_name = "input_ids"
    _is_stateful = True  # a state cannot be cut back to fewer tokens
    _no_split_modules = ["Layer"]

    def __init__(self, config):
        config.check()
        super().__init__(config)
        c, normal = config, (config.n_head, config.d_head)
        self.word_emb = Table(c)
        self.layers = nn.ModuleList(Layer(c) for _ in range(c.n_layer))
        self.crit = Criterion(c, self.word_emb)
        self.drop = nn.Dropout(c.dropout)
        if c.attn_type == LEARNED:
            span = c.tgt_len + c.mem_len
            self.r_emb = nn.Parameter(torch.empty(c.n_layer, span, *normal))
            self.r_w_bias = nn.Parameter(torch.empty(c.n_layer, *normal))
            self.r_bias = nn.Parameter(torch.empty(c.n_layer, span, c.n_head))
        elif c.attn_type != ABSOLUTE and not c.untie_r:
            self.r_w_bias = nn.Parameter(torch.empty(normal))
            self.r_r_bias = nn.Parameter(torch.empty(normal))
        if c.attn_type in (LAMEMO, LAMEMO_BOTH, LAMEMO_FULL):
            self.r_r_bias_future = nn.Parameter(torch.empty(normal))
        if c.attn_type == LAMEMO_BOTH:
            self.r_w_bias_future = nn.Parameter(torch.empty(normal))
        self.post_init()

    def _init_weights(self, module):
        projections = isinstance(module, (nn.ParameterList, nn.ParameterDict))
        std = self.config.proj_init_std if projections else self.config.init_std
        for name, p in module.named_parameters(recurse=False):
            if isinstance(module, nn.LayerNorm):
                nn.init.ones_(p) if name == "weight" else nn.init.zeros_(p)
            elif name in ("bias", "cluster_bias", "r_bias"):
                nn.init.zeros_(p)
            else:
                nn.init.normal_(p, 0.0, std)

    def get_input_embeddings(self):
        return self.word_emb.emb_layers[0]

    # -- positions --

    def sinusoids(self, places):
        """[..., D]: the sines of all frequencies, then the cosines."""
        D, at = self.config.d_model, self.crit.out_layers[0].bias
        frequencies = 10000.0 ** (-torch.arange(0, D, 2, dtype=torch.float64) / D)
        angles = places.double().unsqueeze(-1) * frequencies
        return torch.cat([angles.sin(), angles.cos()], -1).to(at.device, at.dtype)

    def clamped(self, distances):
        return distances.clamp(max=self.config.clamp_len) if self.config.clamp_len > 0 else distances

    def past_keys(self, context):
        """Positional keys by distance back, [rows, H, e] for each layer."""
        c = self.config
        if c.attn_type == ABSOLUTE:
            return [None] * c.n_layer
        if c.attn_type == LEARNED:  # stored with distance 0 last
            return [(self.r_emb[l].flip(0), self.r_bias[l].flip(0)) for l in range(c.n_layer)]
        table = self.drop(self.sinusoids(self.clamped(torch.arange(context + c.tgt_len))))
        return [layer.dec_attn.split(layer.dec_attn.r_net(table)) for layer in self.layers]

    def ahead_keys(self, context):
        """The same by distance forward, which is the row plus 1 - context (Eq. 12)."""
        c = self.config
        if c.memory != "lamemo" or c.alpha == "one" or context == 0:
            return [None] * c.n_layer
        forward = torch.arange(1 - context, context + 1)
        table = -forward if c.attn_type == LAMEMO_XL else self.clamped(forward.abs())
        table = self.drop(self.sinusoids(table))
        return [layer.dec_attn.split(layer.dec_attn.r_net(table)) for layer in self.layers]

    # -- attention --

    def attend(self, q, k, v, visible, position, r, bias_k, bias_r):
        """Contexts [B, n, H, e] and log-denominators [B, n, H]; visible, position: [n, keys]; Eq. 2, 6, 9, 12."""
        scores = torch.einsum("bnhe,bjhe->bhnj", q if bias_k is None else q + bias_k, k)
        if r is not None:
            rbias = None
            if isinstance(r, tuple):
                r, rbias = r
            by_row = torch.einsum("bnhe,rhe->bhnr", q if bias_r is None else q + bias_r, r)
            if rbias is not None:
                by_row = by_row + rbias.t().unsqueeze(1)
            at = position.clamp(0, r.shape[0] - 1).expand(*scores.shape)
            scores = scores + by_row.gather(-1, at)
        scores = (scores / self.config.d_head ** 0.5).masked_fill(~visible, -math.inf)
        weights = F.dropout(scores.softmax(-1), self.config.dropatt, self.training)
        return torch.einsum("bhnj,bjhe->bnhe", weights, v), scores.logsumexp(-1).transpose(1, 2)

    def past_biases(self, l):
        if self.config.attn_type == ABSOLUTE:
            return None, None
        if self.config.attn_type == LEARNED:
            return self.r_w_bias[l], None
        owner = self.layers[l].dec_attn if self.config.untie_r else self
        return owner.r_w_bias, owner.r_r_bias

    def attend_past(self, l, q, segment, first):
        """Rows from `first` on, to all rows up to themselves."""
        c, k = self.config, segment.keys[l]
        back = (first + torch.arange(q.shape[1], device=k.device)).unsqueeze(1) - torch.arange(k.shape[1], device=k.device)
        visible = back >= 0
        if c.same_length and c.mem_len > 0:
            visible = visible & (back < c.mem_len)
        return self.attend(q, k, segment.values[l], visible, back, segment.past[l], *self.past_biases(l))

    def attend_ahead(self, l, q, segment, previous):
        """Remembered rows, to the newest keys on their right (Eq. 7-9): those of the previous segment, shifted by one."""
        c, context = self.config, q.shape[1]
        window = c.tgt_len if c.window == "current" else previous
        oldest = max(1, context - window + 1)
        k, v = segment.keys[l][:, oldest:context + 1], segment.values[l][:, oldest:context + 1]
        forward = torch.arange(oldest, context + 1, device=k.device) - torch.arange(context, device=k.device).unsqueeze(1)
        visible = forward > 0 if c.attn_type != LAMEMO_FULL else torch.ones_like(forward, dtype=torch.bool)
        bias_k = self.r_w_bias_future if c.attn_type == LAMEMO_BOTH else self.r_w_bias
        bias_r = self.r_r_bias if c.attn_type == LAMEMO_XL else self.r_r_bias_future
        return self.attend(q, k, v, visible, forward + context - 1, segment.ahead[l], bias_k, bias_r)

    def refreshed(self, l, q, segment, state):
        """Contexts and log-denominators of remembered rows (Eq. 10-11)."""
        old, old_sum, alpha = state.contexts[l], state.sums[l], self.config.alpha
        if alpha == "one":
            return old, old_sum
        new, new_sum = self.attend_ahead(l, q, segment, state.previous)
        if alpha == "zero":
            return new, new_sum
        top = torch.maximum(old_sum, new_sum)
        s_old, s_new = (old_sum - top).exp(), (new_sum - top).exp()
        total = s_old + s_new + self.config.interp_eps  # relative to the larger one, as in the authors' code
        context = (s_old / total).unsqueeze(-1) * old + ((s_new + self.config.interp_eps) / total).unsqueeze(-1) * new
        return context, top + (s_old + s_new).log()

    # -- segments --

    def begin(self, state):
        L, context = self.config.n_layer, state.remembered()
        return Segment(0, self.past_keys(context), self.ahead_keys(context), *([None] * L for _ in range(5)))

    def run_layer(self, l, front, rows, segment, state):
        """Rows of the next layer, the remembered ones (or None) and the new ones; fills in the segment's."""
        c, layer, n = self.config, self.layers[l], rows.shape[1]
        both = rows if front is None else torch.cat([front, rows], 1)
        q, k, v = layer.dec_attn(layer.dec_attn.layer_norm(both) if c.pre_lnorm else both)
        segment.keys[l], segment.values[l] = joined(segment.keys[l], k), joined(segment.values[l], v)
        context, sums = self.attend_past(l, q[:, -n:], segment, segment.keys[l].shape[1] - n)
        if c.memory == "lamemo" and l < c.n_layer - 1:
            if front is not None:
                old, old_sums = self.refreshed(l, q[:, :-n], segment, state)
                segment.contexts[l], segment.sums[l] = old, old_sums
                front = layer(front, old)
            segment.contexts[l], segment.sums[l] = joined(segment.contexts[l], context), joined(segment.sums[l], sums)
        return front, layer(rows, context)

    def advance(self, ids, state):
        """Reads tokens of one segment; returns the last layer's rows and the new state."""
        c = self.config
        old = state.segment
        s = self.begin(state) if old is None else old.map(list)
        rows = self.drop(self.word_emb(ids))
        if c.attn_type == ABSOLUTE:
            rows = rows + self.sinusoids(self.clamped(c.tgt_len - 1 - s.done - torch.arange(ids.shape[1])))
        front = state.rows[0] if old is None and state.rows else None
        for l in range(c.n_layer):
            if c.memory == "xl" and old is None and state.rows:
                front = state.rows[l]
            if c.memory == "xl" or (c.memory == "lamemo" and l == 0):
                s.rows[l] = joined(s.rows[l] if old is not None else front, rows)
            front, rows = self.run_layer(l, front, rows, s, state)
        s.done += ids.shape[1]
        state = LamemoState(state.length + ids.shape[1], state.previous, state.rows, state.contexts, state.sums, s)
        return self.drop(rows), self.commit(state) if s.done == c.tgt_len else state

    def commit(self, state):
        """What a finished segment leaves behind: its newest rows, as constants."""
        M, s = self.config.mem_len, state.segment

        def newest(tensors):
            return [t[:, -M:].detach() for t in tensors if t is not None] if M > 0 else []
        return LamemoState(state.length, s.done, newest(s.rows), newest(s.contexts), newest(s.sums))

    def forward(self, input_ids=None, past_key_values=None, attention_mask=None, labels=None, use_cache=None,
                return_dict=None, **_):
        """Logits [B, n, vocabulary] of the tokens after each of input_ids; labels as usual: the same ids, shifted here."""
        if attention_mask is not None and not bool(attention_mask.bool().all()):
            raise ValueError("padding: all texts of a batch must have the same length")
        state = past_key_values if isinstance(past_key_values, LamemoState) else LamemoState()
        rows, at = [], 0
        while at < input_ids.shape[1]:
            room = self.config.tgt_len - (state.segment.done if state.segment else 0)
            part, state = self.advance(input_ids[:, at:at + room], state)
            rows.append(part)
            at += part.shape[1]
        logits = self.crit(torch.cat(rows, 1), self.word_emb)
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1).float(), labels[:, 1:].flatten(), ignore_index=-100)
        out = LamemoOutput(loss, logits, state if use_cache or use_cache is None else None)
        return out if return_dict or return_dict is None else tuple(
            x for x in (out.loss, out.logits, out.past_key_values) if x is not None)

    # -- what generate() of transformers asks for --

    def prepare_inputs_for_generation(self, input_ids, past_key_values=None, attention_mask=None, **_):
        if not isinstance(past_key_values, LamemoState):
            return {"input_ids": input_ids, "past_key_values": None, "attention_mask": attention_mask, "use_cache": True}
        return {"input_ids": input_ids[:, past_key_values.length:], "past_key_values": past_key_values, "use_cache": True}

    def _reorder_cache(self, past_key_values, beam_idx):
        return past_key_values.reorder_cache(beam_idx)


if PreTrainedModel is not None:  # save_pretrained() writes this file too
    LamemoConfig.register_for_auto_class()
    LamemoForCausalLM.register_for_auto_class("AutoModelForCausalLM")
