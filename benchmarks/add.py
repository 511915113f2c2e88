"""``a + b`` of many float64 beside NumPy, PyTorch and the floor that the machine's memory sets."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

import numpy as np

import numr
from benchmarks import peers
from benchmarks.timing import Contender, Effort, Measurement, compare, short

NAME: Final = "add"
ELEMENTS: Final = 10_000_000
QUICK_ELEMENTS: Final = 1_000

FULL: Final = Effort(rounds=11, samples=2, seconds=0.02)
QUICK: Final = Effort(rounds=2, samples=1, seconds=0.0002)

FLOOR: Final = "floor"
#: The sum reads two arrays and writes one; a copy reads one and writes one.
_SUM_OVER_COPY: Final = 3 / 2


def with_threads(name: str, threads: int) -> str:
    """Name numr with a number of threads."""
    return f"{name}, {threads} thread{'s' if threads > 1 else ''}"


def thread_counts(most: int) -> list[int]:
    """One thread, two, of which the goal speaks, and all."""
    return sorted({1, min(2, most), most})


def split_copy(
    source: np.ndarray[Any, Any],
    target: np.ndarray[Any, Any],
    threads: int,
    run: Callable[..., Iterable[object]],
) -> None:
    """Copy in as many equal parts as there are threads; ``run`` maps over them, by turns or at once."""
    size = -(-source.size // threads)
    parts = [slice(start, start + size) for start in range(0, source.size, size)]
    for _ in run(np.copyto, [target[p] for p in parts], [source[p] for p in parts]):
        pass


def _numr(subject: peers.Library, names: dict[str, Any]) -> list[Contender]:
    if subject.name != "numr.cpu":
        return [Contender(subject.name, "a + b", names, subject.wait)]
    return [
        Contender(
            with_threads(subject.name, threads),
            "a + b",
            names,
            subject.wait,
            partial(numr.config.override, num_threads=threads),
        )
        for threads in thread_counts(numr.config.num_threads)
    ]


def _floor(subject: peers.Library, names: dict[str, Any], pool: ThreadPoolExecutor) -> Contender:
    if subject.name != "numr.cpu":
        # Memory that NumPy cannot reach; the device's own copy is what there is to measure.
        return Contender(FLOOR, "xp.asarray(a, copy=True)", names, subject.wait)
    source = names["a"].to_numpy()
    copy = partial(split_copy, source, np.zeros_like(source), numr.config.num_threads, run=pool.map)
    return Contender(FLOOR, "copy()", {"copy": copy})


def measure(
    subject: peers.Library, *, quick: bool, say: Callable[[str], object]
) -> list[Measurement]:
    """Time the sum on numr with several numbers of threads, on its peers, and a bare copy for the floor."""
    elements = QUICK_ELEMENTS if quick else ELEMENTS
    say(f"a + b, {short(elements)} float64")
    present, absent = peers.load(("torch",))
    random = np.random.default_rng(0)
    arrays = {"a": random.random(elements), "b": random.random(elements)}
    names = {"xp": subject.xp, **{k: subject.convert(x) for k, x in arrays.items()}}
    contenders = _numr(subject, names)
    # The subject is numr as it is found: with all threads that it may use.
    chosen = contenders[-1].name
    for library in (peers.numpy(), *present):
        own = {key: library.convert(array) for key, array in arrays.items()}
        contenders.append(Contender(library.name, "a + b", own, library.wait))
    with ThreadPoolExecutor(numr.config.num_threads) as pool:
        contenders.append(_floor(subject, names, pool))
        series = compare(contenders, QUICK if quick else FULL)
    series[FLOOR] = series[FLOOR].scaled(_SUM_OVER_COPY)
    return [Measurement(NAME, "add", "a + b", chosen, series, "float64", elements, absent)]
