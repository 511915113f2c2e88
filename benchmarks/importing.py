"""Time to import numr and NumPy, each in a fresh interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.timing import Measurement, alternate

NAME: Final = "import"
ROUNDS: Final = 10
QUICK_ROUNDS: Final = 1

#: numr loads a runtime when its namespace is first used, so that its namespace is a line of its own.
STATEMENTS: Final[tuple[str, ...]] = ("import numr", "import {namespace}", "import numpy")

_PROGRAM: Final = """\
import time
start = time.perf_counter()
{statement}
print(time.perf_counter() - start)
"""
_ROOT: Final = Path(__file__).resolve().parents[1]


def seconds_in_fresh_interpreter(statement: str) -> float:
    """Start Python, run the statement, and return how long that took without the start of Python.

    Raises
    ------
    RuntimeError
        If the statement fails, with what Python printed.
    """
    # Without compiled files only numr would be compiled anew each time: installed packages have theirs.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(statement=statement)],
        cwd=_ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{statement!r} failed in a fresh interpreter:\n{done.stderr}")
    return float(done.stdout)


def measure(namespace: str, *, quick: bool, say: Callable[[str], object]) -> list[Measurement]:
    """Import by turns; the first import of each, which may compile and read the disk, is not counted."""
    statements = [statement.format(namespace=namespace) for statement in STATEMENTS]
    samplers = {each: partial(seconds_in_fresh_interpreter, each) for each in statements}
    say(", ".join(statements))
    for sample in samplers.values():
        sample()
    series = alternate(samplers, QUICK_ROUNDS if quick else ROUNDS, 1)
    return [Measurement(NAME, "import", "import", statements[0], series)]
