"""Comparisons of integer arrays with Python integers that their dtype does not hold."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

from numr import dtypes as dt
from numr.dtypes import DType, Kind, Scalar
from numr.ir import ops
from numr.ir.ops import Op
from numr.runtime.client import Loop

__all__ = ["comparing"]

#: Python's functions of the comparisons.
_COMPARISONS: Final[dict[Op, Callable[[int, int], bool]]] = {
    ops.EQUAL: operator.eq,
    ops.NOT_EQUAL: operator.ne,
    ops.LESS: operator.lt,
    ops.LESS_EQUAL: operator.le,
    ops.GREATER: operator.gt,
    ops.GREATER_EQUAL: operator.ge,
}


def comparing(
    op: Op,
    kinds: tuple[Kind, ...],
    compute: DType,
    loop: Loop,
    full: Callable[[tuple[int, ...], Scalar, DType], Any],
) -> Loop:
    """A loop that also takes Python integers beyond the dtype, if the operation is a comparison that may meet one.

    Parameters
    ----------
    op, kinds
        The operation and its operands' dtypes and scalar types.
    compute : dtype
        In which the operation is computed.
    loop : callable
        Computes it for integers within the dtype.
    full : callable
        Makes a new array of a shape, a scalar and a dtype.
    """
    compare = _COMPARISONS.get(op)
    # By identity: the dtype int64 is equal to int.
    scalars = [i for i, kind in enumerate(kinds) if kind is int]
    if compare is None or not scalars or compute.kind not in "iu":
        return loop
    info = dt.iinfo_of(compute)
    low, high = info.min, info.max
    position = scalars[0]

    def checked(*operands: Any) -> Any:
        value = operands[position]
        if low <= value <= high:
            return loop(*operands)
        # As it compares with all elements, so it does with 0.
        answer = compare(0, value) if position else compare(value, 0)
        return full(operands[1 - position].shape, answer, dt.bool_)

    return checked
