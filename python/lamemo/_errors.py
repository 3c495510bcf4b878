"""Exceptions: one class for each status of the library that is not OK, under one base class."""


class Error(Exception):
    """What the library refused; its text is one line that names the thing and the limit."""


class ArgumentError(Error, ValueError):
    """An option or argument is wrong."""


class FileError(Error, OSError):
    """The operating system refused: open, read, write, no space."""


class FormatError(Error, ValueError):
    """A file does not hold what it should, or a text what the vocabulary has."""


class OutOfMemory(Error, MemoryError):
    """No memory, or more than max_memory allows."""


class NumericError(Error, ArithmeticError):
    """A number is not finite."""


class Unsupported(Error, NotImplementedError):
    """Valid, but not in this build or not for this model."""


class Interrupted(Error):
    """A progress callback ended the call."""


class DeviceError(Error, RuntimeError):
    """The accelerator failed."""


# In the order of lamemo_status, from 1.
BY_STATUS = (ArgumentError, FileError, FormatError, OutOfMemory, NumericError, Unsupported, Interrupted, DeviceError)
