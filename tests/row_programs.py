"""Computations of rows for tests, and operands for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from numr import dtypes as dt
from numr.ir import ops
from numr.ir.ops import Reduction, Signature
from numr.ir.rows import RowComputation, RowSource, RowStep, kept_shape

F32, BOOL = dt.float32, dt.bool_


def _sources(dtype: Any, *per_row: bool | None) -> tuple[RowSource, ...]:
    """Sources of a dtype, each of them for rows or not; None for a scalar."""
    return tuple(RowSource(dtype, x is not None, x is not False) for x in per_row)


def softmax(dtype: Any = F32) -> RowComputation:
    """Exponentials of the distance to the largest, by their sum; and the largest."""
    both = Signature(dtype, dtype)
    steps = (
        RowStep(Reduction.MAX, both, (0,)),
        RowStep(ops.SUBTRACT, both, (0, 1)),
        RowStep(ops.EXP, both, (2,)),
        RowStep(Reduction.SUM, both, (3,)),
        RowStep(ops.DIVIDE, both, (3, 4)),
    )
    return RowComputation(_sources(dtype, False), steps, (5, 1))


def layer_norm(dtype: Any = F32) -> RowComputation:
    """``(x - mean) / sqrt(variance + s) * weight + shift``, by a number n, s, a weight for each place and a shift for
    each row.
    """
    both = Signature(dtype, dtype)
    steps = (
        RowStep(Reduction.SUM, both, (0,)),
        RowStep(ops.DIVIDE, both, (5, 1)),
        RowStep(ops.SUBTRACT, both, (0, 6)),
        RowStep(ops.SQUARE, both, (7,)),
        RowStep(Reduction.SUM, both, (8,)),
        RowStep(ops.DIVIDE, both, (9, 1)),
        RowStep(ops.ADD, both, (10, 2)),
        RowStep(ops.SQRT, both, (11,)),
        RowStep(ops.DIVIDE, both, (7, 12)),
        RowStep(ops.MULTIPLY, both, (13, 3)),
        RowStep(ops.ADD, both, (14, 4)),
    )
    return RowComputation(_sources(dtype, False, None, None, False, True), steps, (15,))


def variance(dtype: Any = F32) -> RowComputation:
    """The sum of squared distances from the mean by a number n, times something of each row."""
    both = Signature(dtype, dtype)
    steps = (
        RowStep(Reduction.SUM, both, (0,)),
        RowStep(ops.DIVIDE, both, (3, 1)),
        RowStep(ops.SUBTRACT, both, (0, 4)),
        RowStep(ops.MULTIPLY, both, (5, 5)),
        RowStep(Reduction.SUM, both, (6,)),
        RowStep(ops.DIVIDE, both, (7, 1)),
        RowStep(ops.MULTIPLY, both, (8, 2)),
    )
    return RowComputation(_sources(dtype, False, None, True), steps, (9,))


def above_mean(dtype: Any = F32) -> RowComputation:
    """Which elements are above the mean, whether all are, and how far the largest is; n is a number."""
    both, test = Signature(dtype, dtype), Signature(dtype, BOOL)
    steps = (
        RowStep(Reduction.SUM, both, (0,)),
        RowStep(Reduction.MAX, both, (0,)),
        RowStep(ops.DIVIDE, both, (2, 1)),
        RowStep(ops.GREATER, test, (0, 4)),
        RowStep(ops.SUBTRACT, both, (3, 4)),
    )
    return RowComputation(_sources(dtype, False, None), steps, (5, 6))


def norm(dtype: Any = F32) -> RowComputation:
    """The root of the sum of squares and a number."""
    both = Signature(dtype, dtype)
    steps = (
        RowStep(ops.SQUARE, both, (0,)),
        RowStep(Reduction.SUM, both, (2,)),
        RowStep(ops.ADD, both, (1, 3)),
        RowStep(ops.SQRT, both, (4,)),
    )
    return RowComputation(_sources(dtype, False, None), steps, (5,))


def mean(dtype: Any = F32) -> RowComputation:
    """The sum by a number."""
    both = Signature(dtype, dtype)
    steps = (RowStep(Reduction.SUM, both, (0,)), RowStep(ops.DIVIDE, both, (2, 1)))
    return RowComputation(_sources(dtype, False, None), steps, (3,))


def distance(dtype: Any = F32) -> RowComputation:
    """The sum of distances to the largest, and these."""
    both = Signature(dtype, dtype)
    steps = (
        RowStep(Reduction.MAX, both, (0,)),
        RowStep(ops.SUBTRACT, both, (1, 0)),
        RowStep(Reduction.SUM, both, (2,)),
    )
    return RowComputation(_sources(dtype, False), steps, (2, 3))


PROGRAMS = {
    f.__name__: f for f in (softmax, layer_norm, variance, above_mean, norm, mean, distance)
}


def numbers(*shape: int, dtype: Any = F32, seed: int = 0) -> np.ndarray[Any, Any]:
    """Random numbers."""
    return np.random.default_rng(seed).normal(scale=3, size=shape).astype(dtype)


def operands_of(
    computation: RowComputation, shape: tuple[int, ...], axes: tuple[int, ...]
) -> list[Any]:
    """Arrays for elements, for the places of a row after the first, and for rows; the length of a row, and a number."""
    scalars = iter([float(np.prod([shape[axis] for axis in axes])), 0.5])
    made: list[Any] = []
    for i, source in enumerate(computation.sources):
        own = kept_shape(shape, axes) if source.per_row else shape
        if not source.per_row and i > 0:
            own = tuple(n if axis in axes else 1 for axis, n in enumerate(shape))
        made.append(numbers(*own, dtype=source.dtype, seed=i) if source.is_array else next(scalars))
    return made


def shapes_of(
    computation: RowComputation, shape: tuple[int, ...], axes: tuple[int, ...]
) -> list[tuple[int, ...]]:
    """The shapes of the results."""
    return [
        kept_shape(shape, axes) if computation.per_row[v] else shape for v in computation.results
    ]
