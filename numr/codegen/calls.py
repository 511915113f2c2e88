"""Calls of operations: the operands as they are in memory, the dtypes on the way, and the expression of the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from numr import dtypes as dt
from numr.codegen.elementwise import Complex, Operand, convert, expression
from numr.dtypes import DType, Kind
from numr.ir.ops import SELECT, Op, Signature

__all__ = ["Call", "Express", "Formula", "call_of", "taken"]

#: Makes the expression of the result from those of the operands.
Formula: TypeAlias = Callable[..., Operand]

#: Makes the expression of an operation that computes in a dtype from those of its operands, as ``expression`` does.
Express: TypeAlias = Callable[..., Operand]


class Call(NamedTuple):
    """What a kernel of an operation computes for each element.

    Attributes
    ----------
    sources : tuple of (dtype, bool)
        For each operand the dtype of its elements, and whether it is an array; else it is a scalar of that dtype.
    computed : tuple of dtype
        For each operand the dtype that it is converted to.
    result : dtype
        Of the result's elements.
    formula : callable
        Makes the result's expression from the operands' own.
    """

    sources: tuple[tuple[DType, bool], ...]
    computed: tuple[DType, ...]
    result: DType
    formula: Formula


def call_of(
    op: Op, kinds: tuple[Kind, ...], signature: Signature, express: Express = expression
) -> Call:
    """The call of an operation with operands of given dtypes and scalar types.

    Examples
    --------
    >>> from numr.ir import ops
    >>> call = call_of(ops.ADD, (dt.int8, float), Signature(dt.float32, dt.float32))
    >>> call.sources
    ((dtype('int8'), True), (dtype('float32'), False))
    """
    compute, result = signature
    computed = tuple(
        dt.bool_ if op is SELECT and position == 0 else compute for position in range(len(kinds))
    )
    sources = tuple(
        (kind, True) if isinstance(kind, np.dtype) else (target, False)
        for kind, target in zip(kinds, computed, strict=True)
    )

    def formula(*operands: Operand) -> Operand:
        converted = [
            taken(x, source, target)
            for x, (source, _), target in zip(operands, sources, computed, strict=True)
        ]
        return express(op, compute, *converted)

    return Call(sources, computed, result, formula)


def taken(value: Operand, source: DType, target: DType) -> Operand:
    """``convert``, and of a complex number that becomes a real one its real part."""
    if isinstance(value, Complex) and target.kind not in "bc":
        value, source = value.re, np.dtype(f"f{source.itemsize // 2}")
    return convert(value, source, target)
