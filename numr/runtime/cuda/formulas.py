"""Formulas that are not in the op table: ranges of numbers and the keys that sorting compares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numr import dtypes as dt
from numr.codegen import expr as ex
from numr.codegen.elementwise import Complex, Operand
from numr.codegen.expr import Expr
from numr.codegen.libm.formats import is_nan
from numr.dtypes import DType
from numr.runtime.cuda import texts
from numr.runtime.cuda.elementwise import Elementwise

if TYPE_CHECKING:
    from numr.runtime.cuda.context import DeviceContext

__all__ = ["ascending_key", "iota", "reversed_key"]


def iota(context: DeviceContext, dtype: DType) -> Elementwise:
    """``start + i * step``: integers modulo 2**64 and then cut off, others in 64 bits."""
    if dtype.kind in "iu":

        def of_integers(start: Expr, step: Expr) -> Operand:
            index = ex.cast(ex.var("i", ex.I64), ex.U64)
            return texts.taken(start + index * step, dt.uint64, dtype)

        sources = [(dt.uint64, False)] * 2
        return Elementwise(context, "arange", sources, dtype, of_integers)
    compute = dt.complex128 if dtype.kind == "c" else dt.float64

    def of_floats(start: Operand, step: Operand) -> Operand:
        index = ex.cast(ex.var("i", ex.I64), ex.F64)
        if isinstance(start, Complex):
            assert isinstance(step, Complex)
            value: Operand = Complex(start.re + index * step.re, start.im + index * step.im)
        else:
            assert isinstance(step, Expr)
            value = start + index * step
        return texts.taken(value, compute, dtype)

    return Elementwise(context, "arange", [(compute, False)] * 2, dtype, of_floats)


def _nan_with_plus(x: Expr) -> Expr:
    """CuPy sorts some dtypes by their bits, which puts NaN with a minus sign first: give NaN a plus sign."""
    wide = ex.cast(x, ex.F32) if x.type is ex.F16 else x
    nan = ex.const(float("nan"), wide.type)
    return ex.cast(ex.select(is_nan(wide), nan, wide), x.type)


def ascending_key(x: Expr) -> Operand:
    """A floating-point number as CuPy sorts it right."""
    return _nan_with_plus(x)


def reversed_key(x: Operand) -> Operand:
    """The map that turns the order of a dtype round, is its own inverse, and keeps NaN the largest."""
    if isinstance(x, Complex):
        return Complex(-x.re, -x.im)
    assert isinstance(x, Expr)
    if x.type.kind == "f":
        return _nan_with_plus(-x)
    # Negation overflows for integers, the complement of their bits does not.
    return ~x
