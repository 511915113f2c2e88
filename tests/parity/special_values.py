"""Special values of the floating-point functions, as the standard lists them.

A row is (operands, result). Each operand, or each component of a complex one, is a number or a tuple of numbers that
stand for a class ("a positive finite number"); every combination is tested. A component of a result is a number, a
function of the operands' components, or ``unsigned(number)`` where the standard leaves the sign open.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

INF, NAN, PI = math.inf, math.nan, math.pi

ZERO = (0.0, -0.0)
POSITIVE = (0.5, 1.0, 2.5, 60000.0, 2.0**-14)
NEGATIVE = tuple(-x for x in POSITIVE)
NONZERO = POSITIVE + NEGATIVE
FINITE = (*ZERO, *NONZERO)
INFINITE = (INF, -INF)
NUMBER = (*FINITE, *INFINITE)
ANY = (*NUMBER, NAN)


class unsigned(NamedTuple):
    """A value whose sign the standard leaves open."""

    value: float


def sign_of(x: float) -> float:
    return math.copysign(1.0, x)


def first(x: float, *_: float) -> float:
    return x


def second(_: float, y: float) -> float:
    return y


def product_signed(value: float) -> Callable[[float, float], float]:
    """``value`` with the sign of the product or quotient of the operands."""
    return lambda x, y: math.copysign(value, sign_of(x) * sign_of(y))


def signed_like(which: int, value: float | None = None) -> Callable[..., float]:
    """``value`` (by default the first operand's) with the sign of one operand."""
    return lambda *xs: math.copysign(xs[0] if value is None else value, xs[which])


Row = tuple[tuple[Any, ...], Any]

_KEEPS = [((ZERO,), first), ((INFINITE,), first), ((NAN,), NAN)]
_BELOW_ONE = (0.5, *ZERO, *NEGATIVE, -INF)
_OUTSIDE = (2.5, 60000.0, -2.5, -60000.0, INF, -INF)

UNARY: dict[str, list[Row]] = {
    "abs": [((NAN,), NAN), ((-0.0,), 0.0), ((-INF,), INF), ((NEGATIVE,), lambda x: -x)],
    "acos": [((NAN,), NAN), ((_OUTSIDE,), NAN), ((1.0,), 0.0)],
    "acosh": [((NAN,), NAN), ((_BELOW_ONE,), NAN), ((1.0,), 0.0), ((INF,), INF)],
    "asin": [((NAN,), NAN), ((_OUTSIDE,), NAN), ((ZERO,), first)],
    "asinh": _KEEPS,
    "atan": [((NAN,), NAN), ((ZERO,), first), ((INF,), PI / 2), ((-INF,), -PI / 2)],
    "atanh": [
        ((NAN,), NAN),
        ((_OUTSIDE,), NAN),
        ((1.0,), INF),
        ((-1.0,), -INF),
        ((ZERO,), first),
    ],
    "ceil": [*_KEEPS, ((-0.5,), -0.0), ((0.5,), 1.0)],
    "cos": [((NAN,), NAN), ((ZERO,), 1.0), ((INFINITE,), NAN)],
    "cosh": [((NAN,), NAN), ((ZERO,), 1.0), ((INFINITE,), INF)],
    "exp": [((NAN,), NAN), ((ZERO,), 1.0), ((INF,), INF), ((-INF,), 0.0)],
    "expm1": [((NAN,), NAN), ((ZERO,), first), ((INF,), INF), ((-INF,), -1.0)],
    "floor": [*_KEEPS, ((0.5,), 0.0), ((-0.5,), -1.0)],
    "isfinite": [((INFINITE,), False), ((NAN,), False), ((FINITE,), True)],
    "isinf": [((INFINITE,), True), ((FINITE,), False), ((NAN,), False)],
    "isnan": [((NAN,), True), ((NUMBER,), False)],
    "log": [
        ((NAN,), NAN),
        (((*NEGATIVE, -INF),), NAN),
        ((ZERO,), -INF),
        ((1.0,), 0.0),
        ((INF,), INF),
    ],
    "log1p": [
        ((NAN,), NAN),
        (((-2.5, -60000.0, -INF),), NAN),
        ((-1.0,), -INF),
        ((ZERO,), first),
        ((INF,), INF),
    ],
    "negative": [((ZERO,), lambda x: -x), ((INFINITE,), lambda x: -x), ((NAN,), NAN)],
    "positive": _KEEPS,
    "reciprocal": [
        ((NAN,), NAN),
        ((ZERO,), signed_like(0, INF)),
        ((INFINITE,), signed_like(0, 0.0)),
    ],
    "round": [*_KEEPS, ((0.5,), 0.0), ((-0.5,), -0.0), ((2.5,), 2.0), ((-2.5,), -2.0)],
    "sign": [
        (((*NEGATIVE, -INF),), -1.0),
        ((ZERO,), 0.0),
        (((*POSITIVE, INF),), 1.0),
        ((NAN,), NAN),
    ],
    "signbit": [
        (((0.0, INF, *POSITIVE, NAN),), False),
        (((-0.0, -INF, *NEGATIVE, -NAN),), True),
    ],
    "sin": [((NAN,), NAN), ((ZERO,), first), ((INFINITE,), NAN)],
    "sinh": _KEEPS,
    "square": [((ZERO,), 0.0), ((INFINITE,), INF), ((NAN,), NAN)],
    "sqrt": [((NAN,), NAN), (((*NEGATIVE, -INF),), NAN), ((ZERO,), first), ((INF,), INF)],
    "tan": [((NAN,), NAN), ((ZERO,), first), ((INFINITE,), NAN)],
    "tanh": [((NAN,), NAN), ((ZERO,), first), ((INF,), 1.0), ((-INF,), -1.0)],
    "trunc": [*_KEEPS, ((0.5,), 0.0), ((-0.5,), -0.0), ((-2.5,), -2.0)],
}
UNARY["log2"] = UNARY["log10"] = UNARY["log"]

_NAN_ROWS: list[Row] = [((NAN, ANY), NAN), ((ANY, NAN), NAN)]
_EVEN_OR_FRACTION = (0.5, 2.5, 2.0, 60000.0)
_ODD = (1.0, 3.0)
_DIVIDE: list[Row] = [
    *_NAN_ROWS,
    ((INFINITE, INFINITE), NAN),
    ((ZERO, ZERO), NAN),
    ((ZERO, (*NONZERO, *INFINITE)), product_signed(0.0)),
    (((*NONZERO, *INFINITE), ZERO), product_signed(INF)),
    ((INFINITE, NONZERO), product_signed(INF)),
    ((NONZERO, INFINITE), product_signed(0.0)),
]

BINARY: dict[str, list[Row]] = {
    "add": [
        *_NAN_ROWS,
        ((INF, -INF), NAN),
        ((-INF, INF), NAN),
        ((INF, (*FINITE, INF)), INF),
        ((-INF, (*FINITE, -INF)), -INF),
        ((FINITE, INFINITE), second),
        ((-0.0, -0.0), -0.0),
        ((-0.0, 0.0), 0.0),
        ((0.0, ZERO), 0.0),
        ((ZERO, NONZERO), second),
        ((NONZERO, ZERO), first),
        ((2.5, -2.5), 0.0),
    ],
    "atan2": [
        *_NAN_ROWS,
        ((POSITIVE, ZERO), PI / 2),
        ((NEGATIVE, ZERO), -PI / 2),
        ((ZERO, (0.0, *POSITIVE)), first),
        ((ZERO, (-0.0, *NEGATIVE)), signed_like(0, PI)),
        (((*POSITIVE, *NEGATIVE), INF), signed_like(0, 0.0)),
        (((*POSITIVE, *NEGATIVE), -INF), signed_like(0, PI)),
        ((INFINITE, FINITE), signed_like(0, PI / 2)),
        ((INFINITE, INF), signed_like(0, PI / 4)),
        ((INFINITE, -INF), signed_like(0, 3 * PI / 4)),
    ],
    "copysign": [
        ((NUMBER, ANY), signed_like(1)),
        ((NUMBER, -NAN), lambda x, _: -abs(x)),
        ((NAN, ANY), NAN),
    ],
    "divide": _DIVIDE,
    "equal": [
        ((NAN, ANY), False),
        ((ANY, NAN), False),
        ((INF, INF), True),
        ((-INF, -INF), True),
        ((INF, -INF), False),
        ((ZERO, ZERO), True),
        ((INFINITE, FINITE), False),
    ],
    "floor_divide": _DIVIDE,
    "hypot": [
        ((INFINITE, ANY), INF),
        ((ANY, INFINITE), INF),
        ((ZERO, FINITE), lambda _, y: abs(y)),
        ((FINITE, ZERO), lambda x, _: abs(x)),
        (((*FINITE, NAN), NAN), NAN),
        ((NAN, (*FINITE, NAN)), NAN),
    ],
    "logaddexp": [*_NAN_ROWS, ((INF, NUMBER), INF), ((NUMBER, INF), INF), ((-INF, -INF), -INF)],
    "maximum": [*_NAN_ROWS, ((INF, NUMBER), INF), ((-INF, FINITE), second)],
    "minimum": [*_NAN_ROWS, ((-INF, NUMBER), -INF), ((INF, FINITE), second)],
    "multiply": [
        *_NAN_ROWS,
        ((INFINITE, ZERO), NAN),
        ((ZERO, INFINITE), NAN),
        ((INFINITE, (*INFINITE, *NONZERO)), product_signed(INF)),
        ((NONZERO, INFINITE), product_signed(INF)),
        ((ZERO, FINITE), product_signed(0.0)),
        ((FINITE, ZERO), product_signed(0.0)),
    ],
    "nextafter": [*_NAN_ROWS, ((ZERO, ZERO), second), ((INF, INF), INF), ((-INF, -INF), -INF)],
    "pow": [
        (((*NEGATIVE, *ZERO, 0.5, 2.5, *INFINITE, NAN), NAN), NAN),
        ((ANY, ZERO), 1.0),
        ((NAN, (*NONZERO, *INFINITE)), NAN),
        (((2.5, -2.5, 60000.0, INF, -INF), INF), INF),
        (((2.5, -2.5, 60000.0, INF, -INF), -INF), 0.0),
        (((1.0, -1.0), INFINITE), 1.0),
        ((1.0, NUMBER), 1.0),
        (((0.5, -0.5, 0.0, -0.0), INF), 0.0),
        (((0.5, -0.5, 0.0, -0.0), -INF), INF),
        ((INF, (*POSITIVE, INF)), INF),
        ((INF, (*NEGATIVE, -INF)), 0.0),
        ((-INF, _ODD), -INF),
        ((-INF, _EVEN_OR_FRACTION), INF),
        ((-INF, tuple(-y for y in _ODD)), -0.0),
        ((-INF, tuple(-y for y in _EVEN_OR_FRACTION)), 0.0),
        ((0.0, POSITIVE), 0.0),
        ((0.0, NEGATIVE), INF),
        ((-0.0, _ODD), -0.0),
        ((-0.0, _EVEN_OR_FRACTION), 0.0),
        ((-0.0, tuple(-y for y in _ODD)), -INF),
        ((-0.0, tuple(-y for y in _EVEN_OR_FRACTION)), INF),
        ((NEGATIVE, (0.5, 2.5, -0.5, -2.5)), NAN),
    ],
    "remainder": [
        *_NAN_ROWS,
        ((INFINITE, NUMBER), NAN),
        ((NUMBER, ZERO), NAN),
        ((ZERO, NONZERO), signed_like(1, 0.0)),
        ((POSITIVE, INF), first),
        ((POSITIVE, -INF), second),
        ((NEGATIVE, INF), second),
        ((NEGATIVE, -INF), first),
    ],
    "subtract": [
        *_NAN_ROWS,
        ((INF, INF), NAN),
        ((-INF, -INF), NAN),
        ((INFINITE, FINITE), first),
        ((FINITE, INFINITE), lambda _, y: -y),
        ((-0.0, 0.0), -0.0),
        ((0.0, ZERO), 0.0),
        ((-0.0, -0.0), 0.0),
        ((2.5, 2.5), 0.0),
    ],
}
for _name, _false_true in {
    "greater": ((-INF, INF), (INF, -INF)),
    "greater_equal": ((-INF, INF), (INF, INF)),
    "less": ((INF, -INF), (-INF, INF)),
    "less_equal": ((INF, -INF), (INF, INF)),
}.items():
    BINARY[_name] = [
        ((NAN, ANY), False),
        ((ANY, NAN), False),
        (_false_true[0], False),
        (_false_true[1], True),
        ((ZERO, ZERO), _name.endswith("equal")),
    ]
BINARY["not_equal"] = [(operands, not result) for operands, result in BINARY["equal"]]


class Case(NamedTuple):
    """Operands and the result: real numbers, or pairs of components for a complex function."""

    operands: tuple[Any, ...]
    result: Any


def real_cases(op: str) -> Iterator[Case]:
    """All special values of a real function."""
    for pattern, result in UNARY.get(op) or BINARY[op]:
        for operands in combinations(pattern):
            yield Case(operands, result(*operands) if callable(result) else result)


def combinations(pattern: tuple[Any, ...]) -> Iterator[tuple[float, ...]]:
    classes = (part if isinstance(part, tuple) else (part,) for part in pattern)
    return itertools.product(*classes)


def mismatch(got: float, expected: Any, tolerance: float) -> bool:
    """Whether a component is not what a table says: signs of zeros and infinities count, the sign of NaN does not."""
    if isinstance(expected, unsigned):
        got, expected = abs(got), abs(expected.value)
    if isinstance(expected, bool) or expected is None:
        return got is not expected
    if math.isnan(expected) or math.isnan(got):
        return not (math.isnan(expected) and math.isnan(got))
    if math.isinf(expected) or expected == 0:
        return got != expected or math.copysign(1, got) != math.copysign(1, expected)
    return abs(got - expected) > tolerance * abs(expected)
