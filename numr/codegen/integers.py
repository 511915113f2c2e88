"""Rows of the op table for integers and booleans, and conversions to them.

Integers narrower than 32 bits are computed in 32 bits and brought back to their range by :func:`wrapped`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from numr.codegen import expr as ex
from numr.codegen.expr import BOOL, U32, Expr
from numr.dtypes import DType

__all__ = ["BOOLEAN", "INTEGER", "wrapped"]

Row = Callable[..., Expr]


def wrapped(x: Expr, dtype: DType) -> Expr:
    """``x`` modulo the width of an integer dtype that is narrower than ``x``."""
    unused = x.type.bits - 8 * dtype.itemsize
    return (x << unused) >> unused if unused > 0 else x


def _itself(x: Expr, dtype: DType) -> Expr:
    return x


def _zero(x: Expr, dtype: DType) -> Expr:
    return ex.const(0, x.type)


def _true(x: Expr, dtype: DType) -> Expr:
    return ex.const(True, BOOL)


def _false(x: Expr, dtype: DType) -> Expr:
    return ex.const(False, BOOL)


def _abs(x: Expr, dtype: DType) -> Expr:
    return wrapped(ex.absolute(x), dtype) if dtype.kind == "i" else x


def _sign(x: Expr, dtype: DType) -> Expr:
    zero, one = ex.const(0, x.type), ex.const(1, x.type)
    positive = ex.select(x > 0, one, zero)
    return ex.select(x < 0, -one, positive) if dtype.kind == "i" else positive


def _differ_in_sign(x: Expr, y: Expr) -> Expr:
    return (x ^ y) < 0


def _floor_divide(x: Expr, y: Expr, dtype: DType) -> Expr:
    quotient = ex.quotient(x, y)
    if dtype.kind == "u":
        return quotient
    # The remainder by zero is zero, so that nothing is taken off there.
    rest = ex.remainder(x, y)
    below = ex.ne(rest, 0) & _differ_in_sign(rest, y)
    return wrapped(ex.select(below, quotient - 1, quotient), dtype)


def _remainder(x: Expr, y: Expr, dtype: DType) -> Expr:
    rest = ex.remainder(x, y)
    if dtype.kind == "u":
        return rest
    return ex.select(ex.ne(rest, 0) & _differ_in_sign(rest, y), rest + y, rest)


def _pow(x: Expr, y: Expr, dtype: DType) -> Expr:
    """Modulo the width; of negative exponents the power rounded towards zero."""
    one = ex.const(1, x.type)
    result, square = one, x
    # One multiplication for each digit that an exponent of the dtype may have.
    digits = 8 * dtype.itemsize - (dtype.kind == "i")
    for digit in range(digits):
        result = ex.select(ex.ne(y & (1 << digit), 0), result * square, result)
        if digit < digits - 1:
            square = square * square
    result = wrapped(result, dtype)
    if dtype.kind == "u":
        return result
    odd = ex.ne(y & 1, 0)
    unit = ex.select(ex.eq(x, -1) & odd, -one, one)
    inverse = ex.select(ex.eq(x, 1) | ex.eq(x, -1), unit, ex.const(0, x.type))
    return ex.select(y < 0, inverse, result)


def _count(y: Expr) -> tuple[Expr, Expr]:
    """A shift count as unsigned integer, and whether it is too large; negative ones count as large."""
    large = y > y.type.bits - 1
    if y.type.kind == "i":
        large = large | (y < 0)
    return ex.cast(y, U32), large


def _shift_left(x: Expr, y: Expr, dtype: DType) -> Expr:
    count, large = _count(y)
    return wrapped(ex.select(large, ex.const(0, x.type), x << (count & (x.type.bits - 1))), dtype)


def _shift_right(x: Expr, y: Expr, dtype: DType) -> Expr:
    count, large = _count(y)
    filled = x >> (x.type.bits - 1) if dtype.kind == "i" else ex.const(0, x.type)
    return ex.select(large, filled, x >> (count & (x.type.bits - 1)))


def _and_wrap(function: Callable[..., Expr]) -> Row:
    def row(*arguments: Expr | DType) -> Expr:
        *operands, dtype = arguments
        assert not isinstance(dtype, Expr)
        return wrapped(function(*operands), dtype)

    return row


def _plain(function: Callable[..., Expr]) -> Row:
    """A row that does not depend on the dtype."""

    def row(*arguments: Expr | DType) -> Expr:
        return function(*arguments[:-1])

    return row


def _larger(x: Expr, y: Expr) -> Expr:
    return ex.select(x < y, y, x)


def _smaller(x: Expr, y: Expr) -> Expr:
    return ex.select(y < x, y, x)


_WHOLE: Final[dict[str, Row]] = dict.fromkeys(
    ("ceil", "conj", "floor", "positive", "real", "round", "trunc"), _itself
)

#: Rows for integers: they take the operands and the dtype.
INTEGER: Final[dict[str, Row]] = {
    **_WHOLE,
    "abs": _abs,
    "add": _and_wrap(lambda x, y: x + y),
    "bitwise_and": _plain(lambda x, y: x & y),
    "bitwise_invert": _and_wrap(lambda x: ~x),
    "bitwise_left_shift": _shift_left,
    "bitwise_or": _plain(lambda x, y: x | y),
    "bitwise_right_shift": _shift_right,
    "bitwise_xor": _plain(lambda x, y: x ^ y),
    "clip": _plain(lambda x, low, high: _smaller(_larger(x, low), high)),
    "equal": _plain(ex.eq),
    "floor_divide": _floor_divide,
    "greater": _plain(lambda x, y: x > y),
    "greater_equal": _plain(lambda x, y: x >= y),
    "imag": _zero,
    "isfinite": _true,
    "isinf": _false,
    "isnan": _false,
    "less": _plain(lambda x, y: x < y),
    "less_equal": _plain(lambda x, y: x <= y),
    "maximum": _plain(_larger),
    "minimum": _plain(_smaller),
    "multiply": _and_wrap(lambda x, y: x * y),
    "negative": _and_wrap(lambda x: -x),
    "not_equal": _plain(ex.ne),
    "pow": _pow,
    "remainder": _remainder,
    "sign": _sign,
    "square": _and_wrap(lambda x: x * x),
    "subtract": _and_wrap(lambda x, y: x - y),
    "where": _plain(ex.select),
}

#: Rows for booleans, ordered False < True.
BOOLEAN: Final[dict[str, Row]] = {
    **dict.fromkeys(("ceil", "floor", "trunc"), _itself),
    "bitwise_and": _plain(lambda x, y: x & y),
    "bitwise_invert": _plain(lambda x: ~x),
    "bitwise_or": _plain(lambda x, y: x | y),
    "bitwise_xor": _plain(lambda x, y: x ^ y),
    "clip": _plain(lambda x, low, high: (x | low) & high),
    "equal": _plain(lambda x, y: ~(x ^ y)),
    "greater": _plain(lambda x, y: x & ~y),
    "greater_equal": _plain(lambda x, y: x | ~y),
    "isfinite": _true,
    "isinf": _false,
    "isnan": _false,
    "less": _plain(lambda x, y: ~x & y),
    "less_equal": _plain(lambda x, y: ~x | y),
    "logical_and": _plain(lambda x, y: x & y),
    "logical_not": _plain(lambda x: ~x),
    "logical_or": _plain(lambda x, y: x | y),
    "logical_xor": _plain(lambda x, y: x ^ y),
    "maximum": _plain(lambda x, y: x | y),
    "minimum": _plain(lambda x, y: x & y),
    "not_equal": _plain(lambda x, y: x ^ y),
    "where": _plain(ex.select),
}
