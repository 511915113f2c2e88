"""Host time of calls on a few elements, where what a library does around the arithmetic is all of the time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from benchmarks import peers
from benchmarks.timing import Contender, Effort, Measurement, compare

NAME: Final = "small"

#: What is called, on all libraries in the same words. ``x`` and ``y`` are 4 float64, ``p`` and ``q`` 4 by 4,
#: ``k`` is a mask, ``data`` a list of 4 floats, ``f8`` the library's float64.
CALLS: Final[dict[str, str]] = {
    "x + y": "x + y",
    "x + 1": "x + 1",
    "exp": "xp.exp(x)",
    "sum": "xp.sum(x)",
    "mean": "xp.mean(x)",
    "x[1]": "x[1]",
    "x[1:]": "x[1:]",
    "x[mask]": "x[k]",
    "where": "xp.where(k, x, y)",
    "matmul": "xp.matmul(p, q)",
    "reshape": "xp.reshape(x, (2, 2))",
    "asarray": "xp.asarray(data, dtype=f8)",
    "zeros": "xp.zeros(4, dtype=f8)",
}

FULL: Final = Effort(rounds=11, samples=2, seconds=0.01)
QUICK: Final = Effort(rounds=2, samples=1, seconds=0.0002)


def operands(library: peers.Library) -> dict[str, Any]:
    """Make what the calls use, as arrays of one library."""
    x = np.asarray([0.5, 1.5, -2.0, 3.0])
    p = np.arange(16.0).reshape(4, 4)
    arrays = {"x": x, "y": x[::-1], "k": x > 0, "p": p, "q": p + 1}
    names: dict[str, Any] = {
        name: library.convert(np.ascontiguousarray(array)) for name, array in arrays.items()
    }
    return {**names, "xp": library.xp, "f8": library.xp.float64, "data": [1.0, 2.0, 3.0, 4.0]}


def measure(
    subject: peers.Library, *, quick: bool, say: Callable[[str], object]
) -> list[Measurement]:
    """Time each call on numr, NumPy and the optional peers that are installed."""
    present, absent = peers.load(("torch", "array_api_strict", "jax"))
    libraries = [subject, peers.numpy(), *present]
    names = {library.name: operands(library) for library in libraries}
    found = []
    for label, statement in CALLS.items():
        say(label)
        contenders = [
            Contender(library.name, statement, names[library.name], library.wait)
            for library in libraries
        ]
        series = compare(contenders, QUICK if quick else FULL, count_wait=False)
        found.append(
            Measurement(NAME, "call", label, subject.name, series, "float64", 4, absent=absent)
        )
    return found
