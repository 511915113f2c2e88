"""Computations of rows for tests, and what carries them out one operation at a time."""

from __future__ import annotations

from typing import Any

from numr import dtypes as dt
from numr.ir import ops
from numr.ir.ops import Reduction, Signature
from numr.ir.rows import RowComputation, RowSource, RowStep

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
