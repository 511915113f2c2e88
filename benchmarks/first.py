"""Time until a new program runs compiled, in fresh interpreters, and whether compiled kernels are found on disk.

The first call of a program records or compiles it and the second runs what came of that, so that both are counted.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks import peers, programs
from benchmarks.timing import Measurement, Series

GROUP: Final = "first calls"
ON_DISK: Final = "kernels on disk"
FIRST: Final = "first program of a process"
FURTHER: Final = "another program"
LONG: Final = f"another program of {programs.SHORT.name}"
#: What a count says how many of there are.
COMPILED: Final = "compiled"
LOADED: Final = "loaded"

ROUNDS: Final = 3
QUICK_ROUNDS: Final = 1
#: Few enough that computing takes no time.
ELEMENTS: Final = 1000

_ROOT: Final = Path(__file__).resolve().parents[1]
#: Where libraries keep compiled kernels.
_FOLDERS: Final = ("NUMR_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")


def _compilers(name: str) -> tuple[peers.Library, Callable[[Any], Any]]:
    """A library, and what it makes a compiled function with."""
    if name == "numr.cpu":
        import numr

        return peers.numr_on("cpu"), numr.jit
    library = peers.OPTIONAL[name]()
    if name == "torch":
        return library, library.xp.compile
    import jax

    return library, lambda f: lambda *x: jax.jit(f)(*x).block_until_ready()


def _kernels() -> dict[str, int]:
    """Where numr's compiled kernels came from; empty where there is no compiler."""
    from numr.runtime.cpu.fused import compiler

    found = compiler()
    return (
        {} if found is None else {COMPILED: found.counters.compiled, LOADED: found.counters.loaded}
    )


def in_this_process(name: str) -> dict[str, Any]:
    """Time new programs here and now, which is what a fresh interpreter is asked for."""
    library, compiled = _compilers(name)
    values = programs.operands(library, ELEMENTS, (1, 1), "float32")

    def seconds(maker: programs.Maker, names: str) -> float:
        arguments = [values[name] for name in names]
        start = time.perf_counter()
        function = compiled(maker(library.xp))
        for _ in range(2):
            function(*arguments)
        return time.perf_counter() - start

    chain = programs.CHAIN
    return {
        FIRST: seconds(chain.of, chain.arguments),
        FURTHER: statistics.median([seconds(maker, chain.arguments) for maker in programs.FURTHER]),
        LONG: seconds(programs.SHORT.of, programs.SHORT.arguments),
        "kernels": _kernels() if name == "numr.cpu" else {},
    }


def in_fresh_interpreter(name: str, folder: str) -> dict[str, Any]:
    """Time new programs in a process of its own, which keeps compiled kernels in a folder.

    Raises
    ------
    RuntimeError
        If that fails, with what Python printed.
    """
    # Without compiled files only numr would be compiled anew each time: installed packages have theirs.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment.update(dict.fromkeys(_FOLDERS, folder))
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.first", name],
        cwd=_ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{name} failed in a fresh interpreter:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def measure(
    benchmark: str,
    names: Mapping[str, str],
    absent: Mapping[str, str],
    *,
    quick: bool,
    say: Callable[[str], object],
) -> list[Measurement]:
    """Time first calls in fresh processes; the first process of each library, which reads the disk, is not counted.

    Parameters
    ----------
    benchmark : str
        Whose measurements they are.
    names : mapping of str to str
        Contenders and their libraries, numr first.
    absent : mapping of str to str
        Contenders that cannot take part, and why.
    """
    subject = next(iter(names))
    taken: dict[str, dict[str, list[float]]] = {FIRST: {}, FURTHER: {}, LONG: {}, ON_DISK: {}}
    counts: dict[str, int] = {}
    for contender, library in names.items():
        say(f"first calls of {contender}")
        with tempfile.TemporaryDirectory() as folder:
            in_fresh_interpreter(library, folder)
    for _ in range(QUICK_ROUNDS if quick else ROUNDS):
        for contender, library in names.items():
            with tempfile.TemporaryDirectory() as folder:
                found = in_fresh_interpreter(library, folder)
                for label in (FIRST, FURTHER, LONG):
                    taken[label].setdefault(contender, []).append(found[label])
                if contender == subject:
                    again = in_fresh_interpreter(library, folder)
                    taken[ON_DISK].setdefault(contender, []).append(again[FIRST])
                    for name, count in again["kernels"].items():
                        # The worst of the rounds: most that were compiled, fewest that were loaded.
                        worst = max if name == COMPILED else min
                        counts[name] = worst(counts.get(name, count), count)
    return [
        Measurement(
            benchmark,
            ON_DISK if label == ON_DISK else GROUP,
            FIRST if label == ON_DISK else label,
            subject,
            {name: Series(tuple((each,) for each in own)) for name, own in seconds.items()},
            "float32",
            ELEMENTS,
            {} if label == ON_DISK else absent,
            counts if label == ON_DISK else {},
        )
        for label, seconds in taken.items()
    ]


if __name__ == "__main__":
    print(json.dumps(in_this_process(sys.argv[1])))
