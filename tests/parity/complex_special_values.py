"""Special values of the complex functions of one operand, as the standard lists them.

See :mod:`special_values` for how rows are written. The rows here list the half-plane of the standard;
:func:`complex_cases` adds what the symmetries imply.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from tests.parity.special_values import (
    ANY,
    FINITE,
    INF,
    INFINITE,
    NAN,
    NONZERO,
    PI,
    POSITIVE,
    ZERO,
    Case,
    Row,
    combinations,
    unsigned,
)


def cis(magnitude: float) -> tuple[Callable[..., float], Callable[..., float]]:
    """``magnitude * (cos(b) + sin(b)j)`` for a zero or infinite magnitude and finite ``b``."""
    return (
        lambda _, b: math.copysign(magnitude, math.cos(b)),
        lambda _, b: math.copysign(magnitude, math.sin(b)),
    )


# Complex functions that the standard lists case by case. Rows give (a, b) for a + bj and the two components; b is not
# negative, since f(conj(z)) = conj(f(z)) gives the rest.
_NANS = (NAN, NAN)
COMPLEX: dict[str, list[Row]] = {
    "acos": [
        ((ZERO, 0.0), (PI / 2, -0.0)),
        ((ZERO, NAN), (PI / 2, NAN)),
        ((FINITE, INF), (PI / 2, -INF)),
        ((NONZERO, NAN), _NANS),
        ((-INF, POSITIVE), (PI, -INF)),
        ((INF, POSITIVE), (0.0, -INF)),
        ((-INF, INF), (3 * PI / 4, -INF)),
        ((INF, INF), (PI / 4, -INF)),
        ((INFINITE, NAN), (NAN, unsigned(INF))),
        ((NAN, (0.0, *POSITIVE)), _NANS),
        ((NAN, INF), (NAN, -INF)),
        ((NAN, NAN), _NANS),
    ],
    "acosh": [
        ((ZERO, 0.0), (0.0, PI / 2)),
        ((FINITE, INF), (INF, PI / 2)),
        ((NONZERO, NAN), _NANS),
        ((0.0, NAN), (NAN, unsigned(PI / 2))),
        ((-INF, POSITIVE), (INF, PI)),
        ((INF, POSITIVE), (INF, 0.0)),
        ((-INF, INF), (INF, 3 * PI / 4)),
        ((INF, INF), (INF, PI / 4)),
        ((INFINITE, NAN), (INF, NAN)),
        ((NAN, (0.0, *POSITIVE)), _NANS),
        ((NAN, INF), (INF, NAN)),
        ((NAN, NAN), _NANS),
    ],
    "asinh": [
        ((0.0, 0.0), (0.0, 0.0)),
        ((POSITIVE, INF), (INF, PI / 2)),
        ((FINITE, NAN), _NANS),
        ((INF, POSITIVE), (INF, 0.0)),
        ((INF, INF), (INF, PI / 4)),
        ((NAN, 0.0), (NAN, 0.0)),
        ((NAN, POSITIVE), _NANS),
        ((NAN, INF), (unsigned(INF), NAN)),
        ((NAN, NAN), _NANS),
    ],
    "atanh": [
        ((0.0, 0.0), (0.0, 0.0)),
        ((0.0, NAN), (0.0, NAN)),
        ((1.0, 0.0), (INF, 0.0)),
        ((POSITIVE, INF), (0.0, PI / 2)),
        ((NONZERO, NAN), _NANS),
        ((INF, POSITIVE), (0.0, PI / 2)),
        ((INF, INF), (0.0, PI / 2)),
        ((INF, NAN), (0.0, NAN)),
        ((NAN, (0.0, *POSITIVE)), _NANS),
        ((NAN, INF), (unsigned(0.0), PI / 2)),
        ((NAN, NAN), _NANS),
    ],
    "cosh": [
        ((0.0, 0.0), (1.0, 0.0)),
        ((0.0, INF), (NAN, unsigned(0.0))),
        ((0.0, NAN), (NAN, unsigned(0.0))),
        ((NONZERO, INF), _NANS),
        ((NONZERO, NAN), _NANS),
        ((INF, 0.0), (INF, 0.0)),
        ((INF, POSITIVE), cis(INF)),
        ((INF, INF), (unsigned(INF), NAN)),
        ((INF, NAN), (INF, NAN)),
        ((NAN, 0.0), (NAN, unsigned(0.0))),
        ((NAN, POSITIVE), _NANS),
        ((NAN, NAN), _NANS),
    ],
    "exp": [
        ((ZERO, 0.0), (1.0, 0.0)),
        ((FINITE, INF), _NANS),
        ((FINITE, NAN), _NANS),
        ((INF, 0.0), (INF, 0.0)),
        ((-INF, (0.0, *POSITIVE)), cis(0.0)),
        ((INF, POSITIVE), cis(INF)),
        ((-INF, INF), (unsigned(0.0), unsigned(0.0))),
        ((INF, INF), (unsigned(INF), NAN)),
        ((-INF, NAN), (unsigned(0.0), unsigned(0.0))),
        ((INF, NAN), (unsigned(INF), NAN)),
        ((NAN, 0.0), (NAN, 0.0)),
        ((NAN, (*POSITIVE, INF)), _NANS),
        ((NAN, NAN), _NANS),
    ],
    "expm1": [
        ((ZERO, 0.0), (0.0, 0.0)),
        ((FINITE, INF), _NANS),
        ((FINITE, NAN), _NANS),
        ((INF, 0.0), (INF, 0.0)),
        ((-INF, (0.0, *POSITIVE)), (-1.0, cis(0.0)[1])),
        ((INF, POSITIVE), cis(INF)),
        ((-INF, INF), (-1.0, unsigned(0.0))),
        ((INF, INF), (unsigned(INF), NAN)),
        ((-INF, NAN), (-1.0, unsigned(0.0))),
        ((INF, NAN), (unsigned(INF), NAN)),
        ((NAN, 0.0), (NAN, 0.0)),
        ((NAN, (*POSITIVE, INF)), _NANS),
        ((NAN, NAN), _NANS),
    ],
    "log": [
        ((-0.0, 0.0), (-INF, PI)),
        ((0.0, 0.0), (-INF, 0.0)),
        ((FINITE, INF), (INF, PI / 2)),
        ((FINITE, NAN), _NANS),
        ((-INF, POSITIVE), (INF, PI)),
        ((INF, POSITIVE), (INF, 0.0)),
        ((-INF, INF), (INF, 3 * PI / 4)),
        ((INF, INF), (INF, PI / 4)),
        ((INFINITE, NAN), (INF, NAN)),
        ((NAN, (0.0, *POSITIVE)), _NANS),
        ((NAN, INF), (INF, NAN)),
        ((NAN, NAN), _NANS),
    ],
    "sinh": [
        ((0.0, 0.0), (0.0, 0.0)),
        ((0.0, INF), (unsigned(0.0), NAN)),
        ((0.0, NAN), (unsigned(0.0), NAN)),
        ((POSITIVE, INF), _NANS),
        ((POSITIVE, NAN), _NANS),
        ((INF, 0.0), (INF, 0.0)),
        ((INF, POSITIVE), cis(INF)),
        ((INF, INF), (unsigned(INF), NAN)),
        ((INF, NAN), (unsigned(INF), NAN)),
        ((NAN, 0.0), (NAN, 0.0)),
        ((NAN, POSITIVE), _NANS),
        ((NAN, NAN), _NANS),
    ],
    "sqrt": [
        ((ZERO, 0.0), (0.0, 0.0)),
        ((ANY, INF), (INF, INF)),
        ((FINITE, NAN), _NANS),
        ((-INF, POSITIVE), (0.0, INF)),
        ((INF, POSITIVE), (INF, 0.0)),
        ((-INF, NAN), (NAN, unsigned(INF))),
        ((INF, NAN), (INF, NAN)),
        ((NAN, (0.0, *POSITIVE)), _NANS),
        ((NAN, NAN), _NANS),
    ],
    "tanh": [
        ((0.0, 0.0), (0.0, 0.0)),
        ((NONZERO, INF), _NANS),
        ((0.0, INF), (0.0, NAN)),
        ((NONZERO, NAN), _NANS),
        ((0.0, NAN), (0.0, NAN)),
        ((INF, (0.0, *POSITIVE)), (1.0, 0.0)),
        ((INF, INF), (1.0, unsigned(0.0))),
        ((INF, NAN), (1.0, unsigned(0.0))),
        ((NAN, 0.0), (NAN, 0.0)),
        ((NAN, (*POSITIVE, INF)), _NANS),
        ((NAN, NAN), _NANS),
    ],
}
COMPLEX["log1p"] = [
    ((-1.0, 0.0), (-INF, 0.0)),
    ((ZERO, 0.0), (unsigned(0.0), 0.0)),
    *COMPLEX["log"][2:],
]
COMPLEX["log2"] = COMPLEX["log10"] = COMPLEX["log"]

#: Rows of the lists above hold for -z as well: f(-z) = -f(z), or f(z).
_ODD_FUNCTIONS = frozenset({"asinh", "atanh", "sinh", "tanh"})
_EVEN_FUNCTIONS = frozenset({"cosh"})

#: f(z) = -1j * g(1j * z), and f(z) = g(1j * z) for the cosine.
_TURNED = {"asin": "asinh", "atan": "atanh", "sin": "sinh", "tan": "tanh", "cos": "cosh"}

_SCALE = {"log2": 1 / math.log(2), "log10": 1 / math.log(10)}

COMPLEX_UNARY = (*COMPLEX, *_TURNED)


def complex_cases(op: str) -> Iterator[Case]:
    """All special values of a complex function of one operand, with those that symmetry implies."""
    if op in _TURNED:
        for case in complex_cases(_TURNED[op]):
            (a, b), (re, im) = case
            turned = (re, im) if op == "cos" else (im, _negative(re))
            yield Case((b, -a), turned)
        return
    seen = set()
    for pattern, result in COMPLEX[op]:
        for a, b in combinations(pattern):
            re, im = (part(a, b) if callable(part) else part for part in result)
            if op in _SCALE:
                re, im = (x * _SCALE[op] for x in (re, im))
            images = [((a, b), (re, im)), ((a, -b), (re, _negative(im)))]
            if op in _ODD_FUNCTIONS:
                images += [((-x, -y), (_negative(u), _negative(v))) for (x, y), (u, v) in images]
            elif op in _EVEN_FUNCTIONS:
                images += [((-x, -y), parts) for (x, y), parts in images]
            for operand, parts in images:
                # The first row that covers an operand decides, as in the standard's lists.
                key = tuple((x, math.copysign(1, x)) if x == x else "nan" for x in operand)
                if key not in seen:
                    seen.add(key)
                    yield Case(operand, parts)


def _negative(part: Any) -> Any:
    return part if isinstance(part, unsigned) else -part
