"""The shared library: where it is, and the functions and structs of include/lamemo.h.

It is looked for, in this order: the file that LAMEMO_LIBRARY names; beside this package (a wheel brings it along); in
build/release of the source tree this package lies in; where the dynamic loader finds it (an installed library).
"""
from __future__ import annotations

import array
import contextlib
import ctypes
import operator
import os
import threading
from ctypes import (CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double, c_float, c_int, c_int32, c_int64,
                    c_size_t, c_uint64, c_void_p)
from typing import Any, Iterable, Iterator

from ._errors import BY_STATUS, ArgumentError, Error, Unsupported

try:
    import numpy
except ImportError:  # everything works without; arrays are then those of the module array
    numpy = None  # type: ignore[assignment]

MAJOR, MINOR = 0, 1  # of the header that the structs below follow
SONAME = f"liblamemo.so.{MAJOR}.{MINOR}"
HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))  # where this is a source tree

ProgressFunction = CFUNCTYPE(c_int, c_void_p, c_double)


class EngineOptions(Structure):
    _fields_ = [("device", c_char_p), ("threads", c_int), ("full_precision", c_int), ("weights", c_char_p),
                ("cache", c_char_p), ("numerics", c_char_p), ("max_memory", c_size_t), ("progress", ProgressFunction),
                ("progress_user", c_void_p)]


class ModelInfo(Structure):
    _fields_ = [("memory", c_char_p), ("vocabulary", c_char_p), ("device", c_char_p), ("parameters", c_int64),
                ("layers", c_int), ("width", c_int), ("heads", c_int)]


class SessionOptions(Structure):
    _fields_ = [("streams", c_int), ("longest", c_int), ("memory", c_int), ("threads", c_int),
                ("progress", ProgressFunction), ("progress_user", c_void_p)]


class Sampling(Structure):
    _fields_ = [("temperature", c_double), ("top_k", c_int), ("top_p", c_double), ("min_p", c_double),
                ("repeat_penalty", c_double), ("repeat_last", c_int), ("seed", c_uint64), ("greedy", c_int),
                ("unknown", c_int)]


class Likely(Structure):
    _fields_ = [("token", c_int32), ("logprob", c_double)]


class PieceStruct(Structure):
    _fields_ = [("sample", c_int), ("token", c_int32), ("logprob", c_double), ("text", POINTER(c_char)),
                ("size", c_size_t), ("last", c_int), ("finish", c_int), ("top", POINTER(Likely)), ("n_top", c_int)]


class GenerateOptions(Structure):
    _fields_ = [("tokens", c_int), ("samples", c_int), ("segment", c_int), ("refresh", c_int), ("memory", c_int),
                ("threads", c_int), ("sampling", POINTER(Sampling)), ("stops", POINTER(c_char_p)), ("n_stops", c_int),
                ("top", c_int)]


class Abi(Structure):
    _fields_ = [("size", c_size_t), ("major", c_int), ("minor", c_int), ("engine_options", c_size_t),
                ("model_info", c_size_t), ("session_options", c_size_t), ("sampling", c_size_t), ("likely", c_size_t),
                ("piece", c_size_t), ("generate_options", c_size_t), ("batch_options", c_size_t), ("event", c_size_t),
                ("job", c_size_t), ("compress_options", c_size_t)]


Tokens = POINTER(c_int32)
STATUS = "a lamemo_status"

# name: result, arguments
FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "lamemo_version": (c_char_p,),
    "lamemo_abi_check": (STATUS, POINTER(Abi)),
    "lamemo_error": (c_char_p,),
    "lamemo_log_to": (None, c_void_p, c_void_p, c_int),
    "lamemo_free": (None, c_void_p),
    "lamemo_engine_open": (STATUS, c_char_p, POINTER(EngineOptions), POINTER(c_void_p)),
    "lamemo_engine_close": (None, c_void_p),
    "lamemo_engine_info": (None, c_void_p, POINTER(ModelInfo)),
    "lamemo_vocab_size": (c_int, c_void_p),
    "lamemo_segment_length": (c_int, c_void_p),
    "lamemo_memory_length": (c_int, c_void_p),
    "lamemo_start_token": (c_int32, c_void_p),
    "lamemo_eos_token": (c_int32, c_void_p),
    "lamemo_encode": (STATUS, c_void_p, c_char_p, c_size_t, POINTER(Tokens), POINTER(c_size_t)),
    "lamemo_decode": (STATUS, c_void_p, c_void_p, c_size_t, POINTER(c_void_p), POINTER(c_size_t)),
    "lamemo_session_create": (STATUS, c_void_p, POINTER(SessionOptions), POINTER(c_void_p)),
    "lamemo_session_free": (None, c_void_p),
    "lamemo_session_reset": (None, c_void_p),
    "lamemo_session_segment": (STATUS, c_void_p, c_int),
    "lamemo_session_feed": (STATUS, c_void_p, c_void_p, c_size_t),
    "lamemo_session_length": (c_int64, c_void_p),
    "lamemo_session_logits_float": (STATUS, c_void_p, c_void_p),
    "lamemo_session_sampling": (STATUS, c_void_p, POINTER(Sampling)),
    "lamemo_session_sample": (STATUS, c_void_p, c_void_p, c_void_p),
    "lamemo_session_snapshot": (STATUS, c_void_p, POINTER(c_void_p)),
    "lamemo_session_restore": (STATUS, c_void_p, c_void_p),
    "lamemo_snapshot_free": (None, c_void_p),
    "lamemo_session_save": (STATUS, c_void_p, c_char_p),
    "lamemo_session_load": (STATUS, c_void_p, c_char_p),
    "lamemo_generation_create": (STATUS, c_void_p, c_void_p, c_size_t, POINTER(GenerateOptions), POINTER(c_void_p)),
    "lamemo_generation_next": (STATUS, c_void_p, POINTER(PieceStruct), POINTER(c_int)),
    "lamemo_generation_free": (None, c_void_p),
    "lamemo_score": (STATUS, c_void_p, c_void_p, c_size_t, POINTER(SessionOptions), c_void_p),
}


def library_path() -> str:
    """The library that is loaded: a path, or the name under which the dynamic loader knows it."""
    chosen = os.environ.get("LAMEMO_LIBRARY")
    if chosen:
        return chosen
    for place in (os.path.join(HERE, "lib"), os.path.join(TREE, "build", "release")):
        path = os.path.join(place, SONAME)
        if os.path.exists(path):
            return path
    return SONAME


def _status_check(status: int, function: Any, arguments: Any) -> int:
    if status == 0:
        return status
    text = lib.lamemo_error().decode("utf-8", "replace")
    raise (BY_STATUS[status - 1] if 0 < status <= len(BY_STATUS) else Error)(text)


def _declare(library: ctypes.CDLL, name: str, result: Any, *arguments: Any) -> None:
    try:
        function = getattr(library, name)
    except AttributeError:
        raise Unsupported(f"{library_path()}: has no {name}; it is not the library of lamemo {MAJOR}.{MINOR}") from None
    function.argtypes = arguments
    if result is STATUS:
        function.restype = c_int
        function.errcheck = _status_check
    else:
        function.restype = result


@contextlib.contextmanager
def _threads_that_sleep() -> Iterator[None]:
    """OpenMP's threads wait some 20 us for work and then sleep, unless the environment says how they wait.

    Its default, spinning for long, is very slow on a machine that does other work, too. libgomp reads it when it is
    loaded; children choose for themselves.
    """
    if "OMP_WAIT_POLICY" in os.environ or "GOMP_SPINCOUNT" in os.environ:
        yield
        return
    os.environ["GOMP_SPINCOUNT"] = "1000"
    try:
        yield
    finally:
        del os.environ["GOMP_SPINCOUNT"]


def _load() -> ctypes.CDLL:
    path = library_path()
    try:
        with _threads_that_sleep():
            library = ctypes.CDLL(path)
    except OSError as why:
        raise ImportError(f"lamemo: cannot load the library: {why}. Build it (cmake --build --preset release), "
                          "install it, or set LAMEMO_LIBRARY to the file") from None
    for name, (result, *arguments) in FUNCTIONS.items():
        _declare(library, name, result, *arguments)
    return library


def check_abi(sampling: int = ctypes.sizeof(Sampling)) -> None:
    """Raises Unsupported unless the library has the structs above. Sizes that are left out are 0: not used here."""
    size = ctypes.sizeof
    lib.lamemo_abi_check(Abi(size=size(Abi), major=MAJOR, minor=MINOR, engine_options=size(EngineOptions),
                             model_info=size(ModelInfo), session_options=size(SessionOptions), sampling=sampling,
                             likely=size(Likely), piece=size(PieceStruct), generate_options=size(GenerateOptions)))


class _Stack(Structure):
    _fields_ = [("sp", c_void_p), ("flags", c_int), ("size", c_size_t)]


def _signal_stack() -> None:
    """Gives signal handlers of the main thread, which is the one that gets Ctrl-C, a stack of their own.

    oneDNN's matrix multiplication uses the stack pointer for something else; a handler's frame would overwrite the heap.
    Python's own handlers use such a stack if there is one. It is never freed: a signal may come until the very end.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = c_void_p, (c_size_t,)
    libc.sigaltstack.argtypes = (POINTER(_Stack), POINTER(_Stack))
    disabled, size, now = 2, 1 << 16, _Stack()
    if libc.sigaltstack(None, now) == 0 and now.flags & disabled:
        memory = libc.malloc(size)
        if memory:
            libc.sigaltstack(_Stack(memory, 0, size), None)


LEVELS = ("error", "warn", "info", "debug")


def log_level(level: str) -> None:
    """Prints messages of the library up to `level` ("error", "warn", "info" or "debug") on standard error.

    At first that is "warn". For the whole process.
    """
    if level not in LEVELS:
        raise ValueError(f"level {level!r}: there are {', '.join(LEVELS)}")
    lib.lamemo_log_to(None, None, LEVELS.index(level))


def version() -> str:
    """The version of the library that runs.

    >>> version().count(".")
    2
    """
    return lib.lamemo_version().decode()


def is_text(value: Any) -> bool:
    """A text and no row of tokens."""
    return isinstance(value, (str, bytes, bytearray, memoryview))


def as_bytes(text: Any) -> bytes:
    """A text as the library reads it: UTF-8."""
    if not is_text(text):
        raise TypeError(f"a text is a str or bytes, not {type(text).__name__}")
    return text.encode() if isinstance(text, str) else bytes(text)


def as_path(path: "str | bytes | os.PathLike[str]") -> bytes:
    return without_zero("the path", os.fsencode(path))


def without_zero(name: str, value: bytes) -> bytes:
    """A string of C ends at its first zero byte."""
    if b"\0" in value:
        raise ArgumentError(f"{name} is {value!r}, must be without a zero byte")
    return value


def whole(name: str, value: Any, least: int = 0, most: int = 2**31 - 1) -> int:
    """An option as an integer of C. ctypes would cut what is too large, and refuses the integers of numpy."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}, must be a whole number") from None
    if not least <= number <= most:
        raise ArgumentError(f"{name} is {number}, must be {least} to {most}")
    return number


def real(name: str, value: Any) -> float:
    """An option as a C double: any number, those of numpy too."""
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} is {value!r}, must be a number") from None


def word(name: str, value: Any) -> bytes:
    if not isinstance(value, str):
        raise TypeError(f"{name} is {value!r}, must be a str")
    return without_zero(name, value.encode())


def as_tokens(tokens: Iterable[int]) -> "tuple[Any, int]":
    """Tokens as an argument for a C function, and how many they are. An int32 array of numpy is not copied."""
    if numpy is not None and isinstance(tokens, numpy.ndarray):
        if tokens.size and not numpy.issubdtype(tokens.dtype, numpy.integer):
            raise TypeError(f"tokens are integers, not {tokens.dtype}")
        row = numpy.ascontiguousarray(tokens)
        if row.dtype != numpy.int32:
            if row.size and (row.min() < -2**31 or row.max() >= 2**31):
                raise ArgumentError("a token does not fit into 32 bits")
            row = row.astype(numpy.int32)
        return row.ctypes.data_as(c_void_p), row.size  # keeps the array
    if not (isinstance(tokens, array.array) and tokens.typecode == "i"):
        try:
            if is_text(tokens):  # array.array would take four bytes for a token
                raise TypeError
            tokens = array.array("i", tokens)
        except TypeError:
            raise TypeError(f"tokens are integers in a row (see Model.tokenize), not {_short(tokens)}") from None
        except OverflowError:
            raise ArgumentError("a token does not fit into 32 bits") from None
    return (c_int32 * len(tokens)).from_buffer(tokens), len(tokens)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def sampling_of(chosen: "dict[str, Any]") -> Sampling:
    """The fields that were chosen (are not None); 0, which means the default in C, is said otherwise or refused."""
    sampling = Sampling()
    for name, value in chosen.items():
        if value is None:
            continue
        if name == "temperature" and value == 0:
            sampling.greedy = 1
        elif name == "repeat_last" and value == 0:
            sampling.repeat_penalty = 1
        elif name in ("top_p", "repeat_penalty") and value == 0:
            raise ArgumentError(f"{name} is 0, must be above 0")
        elif name == "seed":
            sampling.seed = whole(name, value, 1, 2**64 - 1)
        elif name in ("top_k", "repeat_last"):
            setattr(sampling, name, whole(name, value))
        else:
            setattr(sampling, name, real(name, value))
    return sampling


def float_array(n: int) -> "tuple[Any, c_void_p]":
    """Room for n floats: what the caller gets, and its address."""
    return _array(n, "f", c_float, "float32")


def double_array(n: int) -> "tuple[Any, c_void_p]":
    return _array(n, "d", c_double, "float64")


def _array(n: int, code: str, kind: Any, name: str) -> "tuple[Any, c_void_p]":
    if numpy is not None:
        out = numpy.empty(n, name)
        return out, c_void_p(out.ctypes.data)
    out = array.array(code, bytes(n * ctypes.sizeof(kind)))
    return out, c_void_p(out.buffer_info()[0])


lib = _load()
check_abi()
_signal_stack()
log_level("warn")
