"""Sessions: live timelines on a model."""
from __future__ import annotations

import contextlib
import os
import threading
import weakref
from ctypes import c_double, c_int32, c_void_p
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Optional, Union

from ._library import SessionOptions, as_path, as_tokens, float_array, lib, sampling_of, whole

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class _Argument(c_void_p):
    """Refers to its handle."""

    handle: Handle


class Handle:
    """A pointer of the library that is freed once, when nobody refers to it any more or at exit.

    `keeps` is what must outlive it: while the pointer is not freed, whatever the garbage collector finds first, its
    finalizer refers to it.
    """

    def __init__(self, pointer: c_void_p, free: Any, keeps: Any = None) -> None:
        self._pointer = pointer
        self.free = weakref.finalize(self, Handle._free, free, pointer, keeps)

    @property
    def pointer(self) -> c_void_p:
        """As an argument of a call: another thread may close what it belongs to before the call returns."""
        pointer = _Argument(self._pointer.value)
        pointer.handle = self
        return pointer

    @staticmethod
    def _free(free: Any, pointer: c_void_p, keeps: Any) -> None:
        free(pointer)


class Closed:
    """In the place of a handle that was closed."""

    def __init__(self, what: str) -> None:
        self._what = what

    @property
    def pointer(self) -> c_void_p:
        raise ValueError(f"the {self._what} is closed")


class Snapshot:
    """A point in time of a session to come back to. It depends on no session."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle


class Session:
    """A live timeline: feed tokens, ask what comes next. Model.session() makes them.

    However long the text is, a session takes the same memory. One thread at a time may use it; another one gets a
    ValueError.

    >>> import lamemo
    >>> model = lamemo.Model("wiki11m")
    >>> with model.session() as s:
    ...     s.feed(model.tokenize("The capital of Franc"))
    ...     best = int(s.logits().argmax())
    >>> model.detokenize([best])
    b'e'
    """

    def __init__(self, engine: Handle, vocab_size: int, options: "dict[str, int]") -> None:
        pointer = c_void_p()
        options = {name: whole(name, value) for name, value in options.items()}
        self._engine, self._vocab_size, self._options = engine, vocab_size, options
        lib.lamemo_session_create(engine.pointer, SessionOptions(**options), pointer)
        self._handle: Any = Handle(pointer, lib.lamemo_session_free, engine)
        self._lock = threading.Lock()
        self._sampling: dict[str, Any] = {}
        self.streams: int = options.get("streams") or 1
        """How many texts of equal length it reads in parallel."""

    @contextlib.contextmanager
    def _used(self) -> Iterator[c_void_p]:
        """The pointer, for as long as no other thread may have it."""
        if not self._lock.acquire(blocking=False):
            raise ValueError("another thread is using the session")
        try:
            yield self._handle.pointer
        finally:
            self._lock.release()

    def feed(self, tokens: Iterable[int]) -> None:
        """Reads tokens; with several streams, as many for each, in an array [streams][n].

        Any way of cutting a text into calls gives the same results; long pieces are much faster than single tokens.
        """
        row, n = as_tokens(tokens)
        if n % self.streams:
            raise ValueError(f"{n} tokens cannot be divided among {self.streams} streams")
        with self._used() as used:
            lib.lamemo_session_feed(used, row, n // self.streams)

    def logits(self) -> "npt.NDArray[np.float32]":
        """What follows the last token: float32 [vocab_size], or [streams][vocab_size] with several streams.

        Log-probabilities up to a constant. Without numpy an array.array of streams * vocab_size numbers.
        """
        out, address = float_array(self.streams * self._vocab_size)
        with self._used() as used:
            lib.lamemo_session_logits_float(used, address)
        return out.reshape(self.streams, -1) if self.streams > 1 and hasattr(out, "reshape") else out

    def sampling(self, *, temperature: Optional[float] = None, top_k: Optional[int] = None,
                 top_p: Optional[float] = None, min_p: Optional[float] = None, repeat_penalty: Optional[float] = None,
                 repeat_last: Optional[int] = None, seed: Optional[int] = None) -> None:
        """Says how sample() draws from now on, and restarts its random numbers. None: the library's default."""
        chosen = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p,
                  "repeat_penalty": repeat_penalty, "repeat_last": repeat_last, "seed": seed}
        with self._used() as used:
            lib.lamemo_session_sampling(used, sampling_of(chosen))
        self._sampling = chosen

    def sample(self) -> "Union[int, list[int]]":
        """Draws the token that follows, one for each stream where there are several. It is not fed yet."""
        tokens = (c_int32 * self.streams)()
        with self._used() as used:
            lib.lamemo_session_sample(used, tokens, None)
        return tokens[0] if self.streams == 1 else list(tokens)

    def sample_logprob(self) -> "Union[tuple[int, float], tuple[list[int], list[float]]]":
        """Like sample(), with the log-probability of the token under the model itself."""
        tokens, logprobs = (c_int32 * self.streams)(), (c_double * self.streams)()
        with self._used() as used:
            lib.lamemo_session_sample(used, tokens, logprobs)
        return (tokens[0], logprobs[0]) if self.streams == 1 else (list(tokens), list(logprobs))

    def snapshot(self) -> Snapshot:
        """This point in time; restore() brings it back, to the last bit. It has no random numbers of sample()."""
        pointer = c_void_p()
        with self._used() as used:
            lib.lamemo_session_snapshot(used, pointer)
        return Snapshot(Handle(pointer, lib.lamemo_snapshot_free))

    def restore(self, snapshot: Snapshot) -> None:
        """Goes to the point in time of a snapshot, also one of another session of such a model."""
        if not isinstance(snapshot, Snapshot):
            raise TypeError(f"a snapshot is what Session.snapshot() returns, not {type(snapshot).__name__}")
        with self._used() as used:
            lib.lamemo_session_restore(used, snapshot._handle.pointer)

    def fork(self) -> Session:
        """Another session at the same point in time; from here on the two go their own ways.

        It draws with the same settings, from the beginning of the random numbers of their seed.
        """
        other = Session(self._engine, self._vocab_size, self._options)
        other.restore(self.snapshot())
        if self._sampling:
            other.sampling(**self._sampling)
        return other

    def save(self, path: "Union[str, os.PathLike[str]]") -> None:
        """Writes this point in time to a file, whole or not at all."""
        with self._used() as used:
            lib.lamemo_session_save(used, as_path(path))

    def load(self, path: "Union[str, os.PathLike[str]]") -> None:
        """Goes to the point in time that save() wrote; after a failure the session is as it was."""
        with self._used() as used:
            lib.lamemo_session_load(used, as_path(path))

    def segment(self, length: int) -> None:
        """Cuts the text into segments of `length` tokens from here on; the memory is refreshed once for each."""
        with self._used() as used:
            lib.lamemo_session_segment(used, whole("length", length))

    def reset(self) -> None:
        """Forgets everything that was fed, and restarts the random numbers of sample()."""
        with self._used() as used:
            lib.lamemo_session_reset(used)

    def __len__(self) -> int:
        """Tokens of each stream that were fed."""
        return int(lib.lamemo_session_length(self._handle.pointer))

    def __bool__(self) -> bool:
        return True  # also where nothing was fed

    def close(self) -> None:
        """Frees it now, or when the call that uses it returns; calling it again does nothing."""
        self._handle = Closed("session")

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *why: Any) -> None:
        self.close()
