"""Training: the program as a child process, and the runs it leaves behind."""
from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from typing import Any, Iterator, Union

from ._errors import Error
from ._library import HERE, TREE

Path = Union[str, "os.PathLike[str]"]


def program_path() -> str:
    """The program lamemo: the file LAMEMO names, beside this package, in the source tree's build/release, or in PATH."""
    chosen = os.environ.get("LAMEMO")
    if chosen:
        return chosen
    for path in (os.path.join(HERE, "bin", "lamemo"), os.path.join(TREE, "build", "release", "lamemo")):
        if os.access(path, os.X_OK):
            return path
    found = shutil.which("lamemo")
    if not found:
        raise Error("the program lamemo is not found: build or install it, or set LAMEMO to the file")
    return found


def _arguments(options: "dict[str, Any]") -> "list[str]":
    """max_step=100 -> --max-step 100; True -> the option alone; None and False: not given; lists: once for each."""
    out: list[str] = []
    for name, value in options.items():
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is None or one is False:
                continue
            option = "--" + name.replace("_", "-")
            out.append(option if one is True else f"{option}={os.fspath(one) if isinstance(one, os.PathLike) else one}")
    return out


def _failed(code: int, output: str) -> Error:
    lines = [line for line in output.splitlines() if line.strip() and not line.startswith("Try 'lamemo ")]
    return Error(lines[-1] if lines else f"lamemo ended with {code}")


def prepare(*texts: Path, out: Path, **options: Any) -> "dict[str, Any]":
    """Runs `lamemo prepare`: texts become the corpus folder `out`. Returns its summary.

    Options are those of the program, with _ for - : prepare("a.txt", out="corpus", vocab_from="wiki11m").
    """
    command = [program_path(), "prepare", "--quiet", "--json", *_arguments({"out": out, **options}), "--",
               *(os.fspath(text) for text in texts)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        raise _failed(done.returncode, done.stderr)
    return dict(json.loads(done.stdout))


def train(*, out: Path, **options: Any) -> "Iterator[dict[str, Any]]":
    """Runs `lamemo train` as a child process and yields the rows of its metrics.jsonl as they are written.

    Options are those of the program, with _ for - ; True sets an option without a value:

        for row in lamemo.train(data="corpus", out="run", init_from="wiki11m", max_step=100, log_interval=10):
            print(row["step"], row.get("loss"))

    The training begins with the first row asked for. Ending the loop early, or Ctrl-C, lets the child finish its step
    and save; `resume=True` goes on from there, and yields new rows only. Raises Error with the program's last message
    if it fails.
    """
    command = [program_path(), "train", *_arguments({"out": out, **options})]
    rows = _Tail(os.path.join(os.fspath(out), "metrics.jsonl"))
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        # A session of its own: Ctrl-C of the terminal reaches this process alone, which asks the child once.
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True)
        try:
            while child.poll() is None:
                yield from rows.new()
                time.sleep(0.02)
            yield from rows.new()
        finally:
            if child.poll() is None:
                child.send_signal(signal.SIGTERM)
                child.wait()
        if child.returncode != 0:
            said.seek(0)
            raise _failed(child.returncode, said.read())


class _Tail:
    """New lines of a growing file. A resumed run first cuts it, so what counts is how it differs from before."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._before: "bytes | None" = self._read(0)
        self._at = 0

    def _read(self, at: int) -> bytes:
        try:
            with open(self._path, "rb") as file:
                file.seek(at)
                return file.read()
        except FileNotFoundError:
            return b""

    def new(self) -> "list[dict[str, Any]]":
        data = self._read(self._at)
        if self._before is not None:  # has it changed since?
            if data == self._before and data:
                return []
            same = len(os.path.commonprefix([data, self._before]))
            if same == len(data) and data:
                return []  # cut; what is new comes later
            self._at, self._before = data[:same].rfind(b"\n") + 1, None
            data = data[self._at:]
        whole = data[:data.rfind(b"\n") + 1]
        self._at += len(whole)
        return [json.loads(line) for line in whole.splitlines()]


class Run:
    """What a training run wrote to its log: rows, and curves for matplotlib or pandas."""

    def __init__(self, path: Path, rows: "list[dict[str, Any]]") -> None:
        self.path = os.fspath(path)
        self.rows = rows
        """Every line of metrics.jsonl as a dict; pandas.DataFrame(run.rows) is a table of them."""

    def names(self) -> "list[str]":
        """What curve() knows, in order of appearance."""
        return list(dict.fromkeys(name for row in self.rows for name in row if name != "step"))

    def curve(self, name: str, over: str = "step") -> "tuple[list[float], list[float]]":
        """The points of one quantity: its x (steps, or "elapsed" seconds) and y; plot(*run.curve("valid_loss")).

        >>> Run("", [{"step": 1, "loss": 3.0}, {"step": 1, "valid_loss": 3.5}, {"step": 2, "loss": 2.5}]).curve("loss")
        ([1, 2], [3.0, 2.5])
        """
        points = [(row[over], row[name]) for row in self.rows if row.get(name) is not None and over in row]
        if not points:
            raise KeyError(f"{self.path}: has no {name}; there are {', '.join(self.names()) or 'no rows'}")
        return [x for x, _ in points], [y for _, y in points]

    def __repr__(self) -> str:
        return f"<lamemo.Run {self.path!r}: {len(self.rows)} rows>"


def read_run(path: Path) -> Run:
    """Reads the log of a run folder, finished or not. A last line that is still being written is left out."""
    file = os.path.join(os.fspath(path), "metrics.jsonl")
    rows = []
    with open(file, "rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.endswith(b"\n"):
                break
            try:
                row = json.loads(line)
            except ValueError:
                row = None
            if not isinstance(row, dict):
                raise Error(f"{file}: line {number} is no JSON object")
            rows.append(row)
    return Run(path, rows)
