"""Work on many elements beside NumPy: what numr's pooled memory and threads make of the same arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from benchmarks import peers
from benchmarks.timing import Contender, Effort, Measurement, compare, short

NAME: Final = "large"
SIZES: Final = (1_000_000, 10_000_000, 30_000_000)
QUICK_SIZES: Final = (720,)

FULL: Final = Effort(rounds=5, samples=2, seconds=0.005)
QUICK: Final = Effort(rounds=1, samples=1, seconds=0.0001)

_FLOATS: Final = ("float64", "float32")


@dataclass(frozen=True, slots=True)
class Case:
    """One statement, in the same words for numr and NumPy unless ``in_numpy`` is given.

    Names: ``a b c`` are vectors, of which ``c`` is written to; ``m n`` are ``a b`` as matrices, ``row`` and
    ``col`` a row and a column that broadcast with them; ``t`` is ``m`` transposed, without a copy, and ``u`` is
    ``c`` in that shape; ``s`` is every second element of ``a``; ``k`` is a random mask, ``z`` a matrix of False.
    """

    group: str
    label: str
    statement: str
    dtypes: tuple[str, ...] = _FLOATS
    in_numpy: str | None = None
    #: The dtype to show, where it is not that of the vectors.
    shown: str | None = None


def _functions(*names: str) -> Iterator[Case]:
    return (Case("elementwise", name, f"xp.{name}(a)") for name in names)


def _functions_of_two(*names: str) -> Iterator[Case]:
    return (Case("elementwise", name, f"xp.{name}(a, b)") for name in names)


def _operators(group: str, *expressions: str) -> Iterator[Case]:
    return (Case(group, expression, expression) for expression in expressions)


def _over_axes(group: str, label: str, function: str) -> Iterator[Case]:
    for where, axis in (("", ""), (" axis=0", ", axis=0"), (" axis=1", ", axis=1")):
        yield Case(group, f"{label}{where}", f"xp.{function}(m{axis})")


def _cast(source: str, target: str, of: str = "a", shown: str | None = None) -> Case:
    label = f"{shown or source} to {target}"
    return Case("cast", label, f"xp.astype({of}, xp.{target})", (source,), shown=shown)


CASES: Final[tuple[Case, ...]] = (
    *_operators("elementwise", "a + b", "a - b", "a * b", "a / b", "a // b", "a % b", "a ** b"),
    *_operators("elementwise", "a + 1.0", "a ** 2", "-a", "(a + b) * a"),
    # An augmented assignment would make the name local to the timed loop.
    Case("elementwise", "c += b", "c.__iadd__(b)"),
    *_functions("abs", "sign", "floor", "sqrt", "square", "exp", "expm1", "log", "log1p"),
    *_functions("sin", "cos", "tan", "atan", "tanh", "isnan"),
    *_functions_of_two("maximum", "atan2", "hypot", "logaddexp", "copysign"),
    Case("elementwise", "clip", "xp.clip(a, 0.8, 1.2)"),
    *_operators("comparison", "a < b", "a == b", "a >= 1.0"),
    *_operators("broadcast", "m + row", "m + col", "row * col", "m < row"),
    _cast("float64", "float32"),
    _cast("float64", "int64"),
    _cast("float32", "float64"),
    _cast("float32", "int32"),
    _cast("float64", "float64", of="k", shown="bool"),
    Case("where", "where(k, a, b)", "xp.where(k, a, b)"),
    Case("where", "where(k, a, 0.0)", "xp.where(k, a, 0.0)"),
    Case("copy", "contiguous", "xp.asarray(a, copy=True)"),
    # NumPy's asarray would keep the order of the transposed matrix, and copy it as it lies.
    Case("copy", "transposed", "t.contiguous()", in_numpy="xp.ascontiguousarray(t)"),
    Case("copy", "every second", "xp.asarray(s, copy=True)"),
    Case("copy", "c[...] = a", "c[...] = a"),
    Case("copy", "u[...] = t", "u[...] = t"),
    Case("copy", "c[...] = 0.5", "c[...] = 0.5"),
    Case("concat", "two vectors", "xp.concat((a, b))"),
    Case("concat", "two matrices axis=0", "xp.concat((m, n), axis=0)"),
    Case("concat", "two matrices axis=1", "xp.concat((m, n), axis=1)"),
    *_over_axes("reduction", "sum", "sum"),
    *_over_axes("reduction", "max", "max"),
    *_over_axes("reduction", "mean", "mean"),
    *_over_axes("reduction", "var", "var"),
    # All False, so that nothing is found early.
    Case("reduction", "any", "xp.any(z)", ("float64",), shown="bool"),
    Case("reduction", "any axis=0", "xp.any(z, axis=0)", ("float64",), shown="bool"),
    Case("reduction", "any axis=1", "xp.any(z, axis=1)", ("float64",), shown="bool"),
    Case("scan", "cumulative_sum", "xp.cumulative_sum(a)"),
    Case("scan", "cumulative_sum axis=0", "xp.cumulative_sum(m, axis=0)"),
    Case("scan", "cumulative_sum axis=1", "xp.cumulative_sum(m, axis=1)"),
    Case("selection", "a[k]", "a[k]"),
    Case("selection", "c[k] = 0.5", "c[k] = 0.5"),
)


def matrix_shape(elements: int) -> tuple[int, int]:
    """Find the shape nearest to a square that has so many elements; there are no more rows than columns."""
    rows = next(d for d in range(math.isqrt(elements), 0, -1) if elements % d == 0)
    return rows, elements // rows


def operands(library: peers.Library, elements: int, dtype: str) -> dict[str, Any]:
    """Make what the statements use, the same for each library, as arrays in memory of its own."""
    xp = library.xp
    random = np.random.default_rng(0)
    rows, columns = matrix_shape(elements)

    def vector() -> Any:
        # Around 1: in the domain of every function here, and no power of two overflows.
        values = random.random(elements, dtype=np.dtype(dtype).type)
        values += 0.5
        return library.convert(values)

    a, b, c = vector(), vector(), vector()
    m = xp.reshape(a, (rows, columns))
    return {
        "xp": xp,
        "a": a,
        "b": b,
        "c": c,
        "m": m,
        "n": xp.reshape(b, (rows, columns)),
        "row": b[:columns],
        "col": b[:rows, None],
        "t": m.T,
        "u": xp.reshape(c, (columns, rows)),
        "s": a[::2],
        "k": library.convert(random.random(elements) < 0.5),
        "z": library.convert(np.zeros((rows, columns), dtype=np.bool)),
    }


def measure(
    subject: peers.Library, *, quick: bool, say: Callable[[str], object]
) -> list[Measurement]:
    """Time each statement on numr and NumPy, for each size and dtype."""
    return [
        measurement
        for elements in (QUICK_SIZES if quick else SIZES)
        for dtype in _FLOATS
        # A function of its own for each set of arrays, which dies before the next is made.
        for measurement in _measure(subject, elements, dtype, QUICK if quick else FULL, say)
    ]


def _measure(
    subject: peers.Library,
    elements: int,
    dtype: str,
    effort: Effort,
    say: Callable[[str], object],
) -> list[Measurement]:
    peer = peers.numpy()
    mine, theirs = (operands(each, elements, dtype) for each in (subject, peer))
    found = []
    for case in CASES:
        if dtype not in case.dtypes:
            continue
        shown = case.shown or dtype
        say(f"{case.group}: {case.label}, {short(elements)} {shown}")
        contenders = (
            Contender(subject.name, case.statement, mine, subject.wait),
            Contender(peer.name, case.in_numpy or case.statement, theirs, peer.wait),
        )
        series = compare(contenders, effort)
        found.append(
            Measurement(NAME, case.group, case.label, subject.name, series, shown, elements)
        )
    return found
