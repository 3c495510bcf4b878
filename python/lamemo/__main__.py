"""Runs the program: python3 -m lamemo train ...; the command `lamemo` of a wheel, too."""
import os
import signal
import sys

from ._errors import Error
from ._runs import program_path


def main() -> None:
    try:
        program = program_path()
    except Error as why:
        sys.exit(f"lamemo: {why}")
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and the program would, too
    os.execv(program, ["lamemo", *sys.argv[1:]])


if __name__ == "__main__":
    main()
