"""Models: loading one, text and tokens, generating, scoring."""
from __future__ import annotations

import math
import os
import signal
import threading
from ctypes import POINTER, byref, c_char_p, c_int, c_int32, c_size_t, c_void_p, string_at
from ctypes import pointer as pointer_to
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Literal, Optional, Sequence, Union, overload

from ._library import (EngineOptions, GenerateOptions, ModelInfo, PieceStruct, ProgressFunction, SessionOptions, as_bytes,
                       as_path, as_tokens, double_array, is_text, lib, sampling_of, whole, without_zero, word)
from ._session import Closed, Handle, Session

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Text = Union[str, bytes, bytearray, memoryview]

FINISH = ("length", "stop", "break")


@dataclass
class Piece:
    """One step of a generation that is streamed; str() of it is its text."""

    text: str
    """To show now: whole characters, perhaps none."""
    token: Optional[int] = None
    """None: only text that had been held back."""
    logprob: Optional[float] = None
    """Of the token, under the model itself."""
    top_logprobs: "dict[int, float]" = field(default_factory=dict)
    """The most likely tokens, as many as `logprobs` asked for, most likely first."""
    sample: int = 0
    finish_reason: Optional[str] = None
    """On the last piece of a sample: "length" or "stop"."""

    def __str__(self) -> str:
        return self.text


@dataclass
class Completion:
    """What a model wrote; str() of it is its text."""

    text: str = ""
    tokens: "list[int]" = field(default_factory=list)
    logprobs: "list[float]" = field(default_factory=list)
    """Of each token, under the model itself."""
    top_logprobs: "list[dict[int, float]]" = field(default_factory=list)
    """For each token the most likely ones, as many as `logprobs` asked for."""
    finish_reason: Optional[str] = None
    """"length": as many tokens as asked for; "stop": a stop text."""

    def __str__(self) -> str:
        return self.text

    def _add(self, piece: Piece) -> None:
        self.text += piece.text
        self.finish_reason = piece.finish_reason or self.finish_reason
        if piece.token is not None:
            self.tokens.append(piece.token)
            self.logprobs.append(piece.logprob or 0.0)
            if piece.top_logprobs:
                self.top_logprobs.append(piece.top_logprobs)


class Model:
    """A loaded model: weights, vocabulary, device. Any number of threads may use one model at once.

    Args:
        path: A model folder, a run folder, or the name of a model that comes with lamemo ("wiki11m").
        device: "auto" (cuda where there is a GPU, else cpu), "cpu", "cuda" or "ref".
        weights: "auto" (as the folder has them), "float32", "bf16" or "int8".
        cache: Keys and values: "auto", "float32" or "bf16".
        numerics: "fast", or "exact": the same bits on every machine, device and number of threads.
        threads: 0 means all cores.
        full_precision: Compute in float32 on a GPU instead of bf16.
        max_memory: Refuse, before it is allocated, what would take the process above so many bytes; 0: no limit.
        progress: Is called with the part of the weights that is read, 0 to 1; if it returns something true, opening
            ends with Interrupted.

    >>> import lamemo
    >>> model = lamemo.Model("wiki11m", threads=1)
    >>> model.vocabulary, model.memory, model.vocab_size
    ('bytes', 'lamemo', 256)
    """

    def __init__(self, path: "Union[str, os.PathLike[str]]", *, device: str = "auto", weights: str = "auto",
                 cache: str = "auto", numerics: str = "fast", threads: int = 0, full_precision: bool = False,
                 max_memory: int = 0,
                 progress: Optional[Callable[[float], Any]] = None) -> None:
        told = _Progress(progress)
        options = EngineOptions(word("device", device), whole("threads", threads), bool(full_precision),
                                word("weights", weights), word("cache", cache), word("numerics", numerics),
                                whole("max_memory", max_memory, most=2**63 - 1), told.function)
        pointer = c_void_p()
        with told:
            lib.lamemo_engine_open(as_path(path), options, pointer)
        self._engine: Any = Handle(pointer, lib.lamemo_engine_close)
        info = ModelInfo()
        lib.lamemo_engine_info(pointer, info)
        self.path: str = os.fsdecode(path)
        self.memory: str = info.memory.decode()
        """"none", "xl", "compressive", "infinite" or "lamemo"."""
        self.vocabulary: str = info.vocabulary.decode()
        """What a token is: "bytes", "chars", "words" or "bpe"."""
        self.device: str = info.device.decode()
        self.parameters: int = info.parameters
        self.layers: int = info.layers
        self.width: int = info.width
        self.heads: int = info.heads
        self.vocab_size: int = lib.lamemo_vocab_size(pointer)
        self.segment_length: int = lib.lamemo_segment_length(pointer)
        self.memory_length: int = lib.lamemo_memory_length(pointer)
        self.start_token: int = lib.lamemo_start_token(pointer)
        """What a text without a beginning begins with."""
        eos = lib.lamemo_eos_token(pointer)
        self.eos_token: Optional[int] = eos if eos >= 0 else None

    def __repr__(self) -> str:
        return (f"<lamemo.Model {self.path!r}: {self.memory}, {self.layers} layers, {self.parameters:,} parameters, "
                f"{self.vocab_size} {self.vocabulary}, {self.device}>")

    def tokenize(self, text: Text) -> "list[int]":
        """The tokens of a text.

        >>> model = Model("wiki11m")
        >>> model.detokenize(model.tokenize("Rome"))
        b'Rome'
        """
        data = as_bytes(text)
        tokens, n = POINTER(c_int32)(), c_size_t()
        lib.lamemo_encode(self._engine.pointer, data, len(data), byref(tokens), n)
        try:
            return tokens[:n.value]
        finally:
            lib.lamemo_free(tokens)

    def detokenize(self, tokens: Iterable[int]) -> bytes:
        """The text of tokens. Bytes, characters and byte pairs come back exactly; words are joined as people write."""
        row, n = as_tokens(tokens)
        text, size = c_void_p(), c_size_t()
        lib.lamemo_decode(self._engine.pointer, row, n, text, size)
        try:
            return string_at(text, size.value)
        finally:
            lib.lamemo_free(text)

    def session(self, *, streams: int = 1, longest: int = 0, memory: int = 0, threads: int = 0) -> Session:
        """A live timeline at an empty past. 0 means the model's segment and memory length, and its threads."""
        return Session(self._engine, self.vocab_size,
                       {"streams": streams, "longest": longest, "memory": memory, "threads": threads})

    def score(self, text: Union[Text, Iterable[int]], *, segment: int = 0, memory: int = 0, threads: int = 0,
              progress: Optional[Callable[[float], Any]] = None) -> "npt.NDArray[np.float64]":
        """The log-probability (natural) of each token of a text, or of tokens, given those before it.

        float64 [n]; without numpy an array.array. The first token follows start_token. `segment` and `memory` are
        lengths, 0: those of the model; `progress` is called with the part that is read, 0 to 1, and ends the call with
        Interrupted if it returns something true.

        >>> model = Model("wiki11m")
        >>> bool(model.score("The history")[-1] > model.score("The histoxy")[-2])
        True
        """
        row, n = as_tokens(self._tokens(text))
        told = _Progress(progress)
        out, address = double_array(n)
        options = SessionOptions(0, whole("segment", segment), whole("memory", memory), whole("threads", threads), told.function)
        with told:
            lib.lamemo_score(self._engine.pointer, row, n, options, address)
        return out

    def bits_per_byte(self, text: Text, **options: Any) -> float:
        """How many bits the model needs for a byte of the text; options are those of score()."""
        data = as_bytes(text)
        if not data:
            raise ValueError("bits_per_byte: the text is empty")
        return -math.fsum(self.score(data, **options)) / math.log(2) / len(data)

    @overload
    def __call__(self, prompt: Union[Text, Iterable[int]] = ..., *, stream: Literal[True], samples: int = ...,
                 max_tokens: int = ..., temperature: Optional[float] = ..., top_k: Optional[int] = ...,
                 top_p: Optional[float] = ..., min_p: Optional[float] = ..., repeat_penalty: Optional[float] = ...,
                 repeat_last: Optional[int] = ..., seed: Optional[int] = ..., stop: Union[Text, Sequence[Text], None] = ...,
                 logprobs: int = ..., echo: bool = ..., segment: int = ..., refresh: int = ..., memory: int = ...,
                 threads: int = ...) -> Iterator[Piece]: ...

    @overload
    def __call__(self, prompt: Union[Text, Iterable[int]] = ..., *, stream: Literal[False] = ..., samples: Literal[1] = ...,
                 max_tokens: int = ..., temperature: Optional[float] = ..., top_k: Optional[int] = ...,
                 top_p: Optional[float] = ..., min_p: Optional[float] = ..., repeat_penalty: Optional[float] = ...,
                 repeat_last: Optional[int] = ..., seed: Optional[int] = ..., stop: Union[Text, Sequence[Text], None] = ...,
                 logprobs: int = ..., echo: bool = ..., segment: int = ..., refresh: int = ..., memory: int = ...,
                 threads: int = ...) -> Completion: ...

    @overload
    def __call__(self, prompt: Union[Text, Iterable[int]] = ..., *, stream: Literal[False] = ..., samples: int,
                 max_tokens: int = ..., temperature: Optional[float] = ..., top_k: Optional[int] = ...,
                 top_p: Optional[float] = ..., min_p: Optional[float] = ..., repeat_penalty: Optional[float] = ...,
                 repeat_last: Optional[int] = ..., seed: Optional[int] = ..., stop: Union[Text, Sequence[Text], None] = ...,
                 logprobs: int = ..., echo: bool = ..., segment: int = ..., refresh: int = ..., memory: int = ...,
                 threads: int = ...) -> "list[Completion]": ...

    def __call__(self, prompt: Union[Text, Iterable[int]] = "", *, max_tokens: int = 256,
                 temperature: Optional[float] = None, top_k: Optional[int] = None, top_p: Optional[float] = None,
                 min_p: Optional[float] = None, repeat_penalty: Optional[float] = None, repeat_last: Optional[int] = None,
                 seed: Optional[int] = None, stop: Union[Text, Sequence[Text], None] = None, logprobs: int = 0,
                 samples: int = 1, echo: bool = False, stream: bool = False, segment: int = 0, refresh: int = 0,
                 memory: int = 0, threads: int = 0) -> Any:
        """Continues a prompt. Ctrl-C ends it with KeyboardInterrupt.

        Args:
            prompt: A text or tokens; an empty one begins with start_token.
            max_tokens: How many tokens to write at most.
            temperature: Below 1 likely tokens become likelier, 0 always takes the likeliest. None: 1.
            top_k: Draw from the k likeliest tokens. None: from all.
            top_p: Draw from the likeliest tokens that have this probability together. None: 0.95.
            min_p: Draw from tokens with at least this part of the likeliest one's probability. None: off.
            repeat_penalty: Make tokens among the last `repeat_last` less likely by this factor. None: off.
            repeat_last: How many tokens back the penalty looks. None: 64.
            seed: Of the random numbers, from 1; the same seed writes the same text. None: 42.
            stop: A text or several; a sample ends before the first of them.
            logprobs: Report so many of the likeliest tokens with each token.
            samples: Write so many texts.
            echo: Let the text begin with the prompt.
            stream: Return an iterator of Pieces, which come as they are drawn.
            segment, memory: Lengths for reading the prompt; 0: those of the model.
            refresh: Refresh the memory each time this many tokens were written; 0: as while reading the prompt.
            threads: 0: those of the model.

        Returns:
            A Completion; a list of them for `samples` above 1; an iterator of Pieces with stream=True.

        >>> model = Model("wiki11m")
        >>> answer = model("The capital of Franc", max_tokens=1, temperature=0, logprobs=2)
        >>> answer.text, answer.finish_reason, len(answer.top_logprobs[0])
        ('e', 'length', 2)
        """
        max_tokens, samples = whole("max_tokens", max_tokens), whole("samples", samples)
        logprobs = whole("logprobs", logprobs, most=self.vocab_size)
        text = as_bytes(prompt) if is_text(prompt) else None
        tokens = as_tokens(self._tokens(prompt))
        sampling = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p,
                    "repeat_penalty": repeat_penalty, "repeat_last": repeat_last, "seed": seed}
        options = GenerateOptions(max_tokens, samples, whole("segment", segment), whole("refresh", refresh),
                                  whole("memory", memory), whole("threads", threads), None, None, 0, logprobs)
        start = ""
        if echo:
            start = (text if text is not None else self.detokenize(tokens[0][:tokens[1]])).decode("utf-8", "replace")
        pieces = self._generate(tokens, options, sampling, _texts("stop", stop), start)
        if stream:
            return pieces
        made = [Completion() for _ in range(max(samples, 1))]
        for piece in pieces:
            made[piece.sample]._add(piece)
        return made[0] if samples <= 1 else made

    generate = __call__

    def close(self) -> None:
        """Lets go of the weights now; sessions that are open keep them until they are closed."""
        self._engine = Closed("model")

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *why: Any) -> None:
        self.close()

    def _tokens(self, text: Any) -> Iterable[int]:
        return self.tokenize(text) if is_text(text) else text

    def _generate(self, prompt: "tuple[Any, int]", options: GenerateOptions, sampling: "dict[str, Any]",
                  stops: "list[bytes]", start: str) -> Iterator[Piece]:
        """Starts now, so that wrong arguments are refused by the call and not by the loop over its result."""
        echoed = [Piece(start, sample=i) for i in range(max(options.samples, 1)) if start]
        if options.tokens == 0:  # means the default in C
            ends = [Piece("", sample=i, finish_reason="length") for i in range(max(options.samples, 1))]
            return iter(echoed + ends)
        options.sampling = pointer_to(sampling_of(sampling))
        options.stops = (c_char_p * len(stops))(*stops)
        options.n_stops = len(stops)

        pointer = c_void_p()
        lib.lamemo_generation_create(self._engine.pointer, prompt[0], prompt[1], options, pointer)
        return _pieces(Handle(pointer, lib.lamemo_generation_free, (self._engine, options)), echoed)


def _pieces(handle: Handle, echoed: "list[Piece]") -> Iterator[Piece]:
    more, p = c_int(1), PieceStruct()
    try:
        yield from echoed
        while more.value:
            lib.lamemo_generation_next(handle.pointer, p, more)
            if p.token < 0 and not p.size and not p.last:
                continue  # a part of the prompt was read
            yield Piece(string_at(p.text, p.size).decode() if p.size else "",
                        p.token if p.token >= 0 else None, p.logprob if p.token >= 0 else None,
                        {p.top[i].token: p.top[i].logprob for i in range(p.n_top)}, p.sample,
                        FINISH[p.finish] if p.last else None)
    finally:
        handle.free()


def _texts(name: str, value: Any) -> "list[bytes]":
    """None, a text or several."""
    texts = [value] if is_text(value) else [] if value is None else value
    if not isinstance(texts, (list, tuple)) or not all(map(is_text, texts)):
        raise TypeError(f"{name} is {value!r}, must be a text or a list of texts")
    return [without_zero(name, as_bytes(text)) for text in texts]


class _Progress:
    """A callback of Python's behind one of C's, and what lets Ctrl-C end a long call.

    A KeyboardInterrupt would be raised inside the callback, and be lost there. So SIGINT is only noted while the call runs;
    its own handler, and what the callback raises, comes where the call returns.
    """

    def __init__(self, callback: Optional[Callable[[float], Any]]) -> None:
        self._callback = callback
        self._raised: Optional[BaseException] = None
        self._handler: Any = None
        self._signalled = False
        self.function = ProgressFunction(self._call)

    def _call(self, user: Any, part: float) -> int:
        try:
            ended = bool(self._callback(part)) if self._callback else False
            return int(ended or self._signalled)
        except BaseException as why:
            self._raised = why
            return 1

    def _note(self, number: int, frame: Any) -> None:
        self._signalled = True

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread() and callable(signal.getsignal(signal.SIGINT)):
            self._handler = signal.signal(signal.SIGINT, self._note)

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
        if self._signalled:
            self._handler(signal.SIGINT, None)  # as a rule it raises KeyboardInterrupt
        if self._raised is not None:
            raise self._raised from None
