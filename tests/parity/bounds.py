"""The accuracy that the functions beside the elementwise ones promise, in one table.

Elementwise functions have theirs in ``ulp``. Data movement, integers, comparisons and counts are exact and have none.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from numr import dtypes as dt

_DTYPES = (dt.float16, dt.float32, dt.float64, dt.complex64, dt.complex128)

#: How an error may grow with the number of terms in a result, or the length of an axis.
_GROWTH = {
    "constant": lambda n: 1.0,
    # Halving, as transforms and pairwise sums do it.
    "log": lambda n: 1.0 + math.log2(max(n, 1)),
    # Rounding errors of a sum in any order, most of which cancel.
    "root": lambda n: math.sqrt(max(n, 1)),
    # Their worst case, which factorisations of small matrices are allowed.
    "linear": lambda n: float(max(n, 1)),
}


class Bound(NamedTuple):
    """Largest error of a function.

    ``units`` are for (float16, float32, float64, complex64, complex128), None outside the domain. A unit is the machine
    epsilon of the dtype times the number that ``relative_to`` describes.
    """

    units: tuple[float | None, ...]
    growth: str
    relative_to: str


_RESULT = "the modulus of the result"
_TERMS = "the sum of the absolute values of the terms"
_LARGEST = "the largest modulus among start, stop and the result"
_SPECTRUM = "the Euclidean norm of the exact result; the error is the norm of the difference"
_NORMS = "the product of the norms of the factors that are multiplied to find the error"
_CONDITION = "the modulus of the result times the condition number"
_MATRIX = "the norm of the matrix"

_SUM = (1, 1, 1, 1, 1)
_SUM_REAL = (1, 1, 1, None, None)
_FACTORED = (None, 4, 4, 4, 4)

BOUNDS: dict[str, Bound] = {
    # -------------------------------------------------------------- statistics
    "sum": Bound(_SUM, "root", _TERMS),
    "cumulative_sum": Bound(_SUM, "root", _TERMS),
    "prod": Bound((1, 1, 1, 2, 2), "root", _RESULT),
    "cumulative_prod": Bound((1, 1, 1, 2, 2), "root", _RESULT),
    "mean": Bound(_SUM, "root", _TERMS),
    # float16 is computed in float32 and rounded once.
    "var": Bound((1, 2, 2, 2, 2), "root", _RESULT),
    "std": Bound((1, 2, 2, 2, 2), "root", _RESULT),
    # ---------------------------------------------------------------- creation
    "arange": Bound((1.5, 1.5, 1.5, 1.5, 1.5), "constant", _LARGEST),
    "linspace": Bound((1.5, 1.5, 1.5, 1.5, 1.5), "constant", _LARGEST),
    # ---------------------------------------------------------------- products
    "cross": Bound((1.5, 1.5, 1.5, 3, 3), "constant", _TERMS),
    "matmul": Bound((1, 1, 1, 2, 2), "root", _TERMS),
    "matrix_power": Bound((None, 4, 4, 8, 8), "linear", _NORMS),
    "outer": Bound((0.5, 0.5, 0.5, 2, 2), "constant", _RESULT),
    "tensordot": Bound((1, 1, 1, 2, 2), "root", _TERMS),
    "trace": Bound(_SUM, "root", _TERMS),
    "vecdot": Bound((1, 1, 1, 2, 2), "root", _TERMS),
    # ------------------------------------------------------------------- norms
    # Powers and roots of the order are as exact as pow.
    "vector_norm": Bound((4, 8, 8, 8, 8), "root", _RESULT),
    "matrix_norm": Bound((4, 8, 8, 8, 8), "root", _RESULT),
    # ---------------------------------------------------------- factorisations
    "cholesky": Bound(_FACTORED, "linear", _NORMS),
    "det": Bound(_FACTORED, "linear", _CONDITION),
    "eig": Bound((None, 8, 8, 8, 8), "linear", _NORMS),
    # Stacks of small matrices are factorised by Jacobi rotations on GPUs, which cost up to twice as much.
    "eigh": Bound((None, 8, 8, 8, 8), "linear", _NORMS),
    "eigvalsh": Bound(_FACTORED, "linear", _MATRIX),
    "inv": Bound(_FACTORED, "linear", _NORMS),
    "pinv": Bound((None, 8, 8, 8, 8), "linear", _NORMS),
    "qr": Bound(_FACTORED, "linear", _NORMS),
    "slogdet": Bound(_FACTORED, "linear", "the condition number"),
    "solve": Bound(_FACTORED, "linear", _NORMS),
    "svd": Bound(_FACTORED, "linear", _NORMS),
    "svdvals": Bound(_FACTORED, "linear", _MATRIX),
    # -------------------------------------------------------------- transforms
    # float16 is transformed in complex64.
    "fft": Bound((None, 1, 1, 1, 1), "log", _SPECTRUM),
    "fftfreq": Bound((1, 1, 1, None, None), "constant", _RESULT),
}


def allowed(function: str, dtype: np.dtype[Any], terms: int = 1) -> float:
    """The bound of a function in a dtype for a number of terms, as a multiple of what it is relative to."""
    bound = BOUNDS[function]
    units = bound.units[_DTYPES.index(dtype)]
    assert units is not None, f"{function} has no bound for {dtype}"
    eps = float(np.finfo(dt.real_of(dtype)).eps)
    return units * _GROWTH[bound.growth](terms) * eps
