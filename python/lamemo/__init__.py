"""Language models with a recurrence memory (LaMemo, Transformer-XL, ...) from Python.

>>> import lamemo
>>> model = lamemo.Model("wiki11m")
>>> print(model("The history of Rome", max_tokens=4, temperature=0, echo=True))
The history of Rome and

A thin layer of ctypes over the shared library liblamemo; nothing is compiled for a certain Python, and a call releases
the interpreter's lock while it computes. numpy is used where it is installed. docs/python.md is the guide.
"""
from ._errors import (ArgumentError, DeviceError, Error, FileError, FormatError, Interrupted, NumericError,
                      OutOfMemory, Unsupported)
from ._library import library_path, log_level, version
from ._model import Completion, Model, Piece
from ._runs import Run, prepare, program_path, read_run, train
from ._session import Session, Snapshot

__version__ = version()
__all__ = [
    "ArgumentError", "Completion", "DeviceError", "Error", "FileError", "FormatError", "Interrupted", "Model",
    "NumericError", "OutOfMemory", "Piece", "Run", "Session", "Snapshot", "Unsupported", "library_path", "log_level",
    "prepare", "program_path", "read_run", "train", "version",
]
