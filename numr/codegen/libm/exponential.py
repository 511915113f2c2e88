"""Exponential functions, and the hyperbolic ones that follow from them.

``exp(x) = 2**k * exp(r)`` with the whole number ``k`` next to ``x / log(2)``; ``r`` has double length, since its
rounding error would be one of the result.
"""

from __future__ import annotations

from typing import NamedTuple

from numr.codegen import expr as ex
from numr.codegen.expr import Expr
from numr.codegen.libm import tables
from numr.codegen.libm.formats import (
    Format,
    Pair,
    constant_pair,
    copysign,
    fast_two_sum,
    float_function,
    format_of,
    is_nan,
    over,
    polynomial,
    times,
    two_sum,
)

__all__ = ["cosh", "exp", "exp2", "exp_of_pair", "expm1", "sinh", "tanh"]

#: Beyond these exponents every result is zero, or infinite.
_LIMIT = {"f32": 110.0, "f64": 760.0}
#: Up to these every result is a normal number, and so are powers of two next to it.
_NORMAL = {"f32": 86.0, "f64": 708.0}


class Reduced(NamedTuple):
    """An argument as ``k * log(2) + r``."""

    r: Pair
    k: Expr


def reduce(f: Format, x: Expr, low: Expr | None = None) -> Reduced:
    """Split an argument of the exponential function, optionally one of double length."""
    log2e = f.constants(tables.LOG2E)[0]
    upper, lower = f.constants(tables.LN2)
    whole, k = f.to_nearest(x, log2e)
    # The product is exact: the constant has as many zero bits at its end as k may have digits.
    rest = ex.less_product(x, whole, upper)
    if low is None:
        hi = ex.less_product(rest, whole, lower)
        return Reduced(Pair(hi, ex.less_product(rest - hi, whole, lower)), k)
    correction = ex.product_plus(whole, lower, -low)
    hi = rest - correction
    return Reduced(Pair(hi, (rest - hi) - correction), k)


def _beyond_first_order(f: Format, r: Pair) -> Expr:
    """``exp(r) - 1 - r.hi``."""
    return ex.product_plus(r.hi * r.hi, polynomial(r.hi, f.constants(tables.EXP)), r.lo)


def exp_of_pair(f: Format, x: Expr, low: Expr) -> Expr:
    """The exponential function of ``x + low``, for ``x`` within the limits of :func:`clamp`."""
    return f.scaled(*reduced_exp_value(f, x, low))


def clamp(f: Format, x: Expr) -> Expr:
    """An exponent, bounded where the result is zero or infinite."""
    limit = _LIMIT[f.type.name]
    return f.clamped(x, -limit, limit)


def reduced_exp_value(f: Format, x: Expr, low: Expr | None = None) -> tuple[Expr, Expr]:
    """``exp(x + low)`` as a significand next to one and an exponent of two, for ``x`` of moderate size."""
    reduced = reduce(f, x, low)
    return 1.0 + (reduced.r.hi + _beyond_first_order(f, reduced.r)), reduced.k


@float_function
def exp(x: Expr) -> Expr:
    """``e**x``."""
    f = format_of(x)
    # By its bits, so that NaN is among what is unusual.
    size = f.bits(x) & (f.sign_bit - 1)
    unusual = size > f.bits(f.number(_NORMAL[f.type.name]))

    def chosen(usual: tuple[Expr, Expr], bounded: tuple[Expr, Expr]) -> Expr:
        significand, k = usual
        # The exponent of a normal result is that of the significand and the power added.
        normal = f.from_bits(f.bits(significand) + (k << f.mantissa))
        return ex.rarely(unusual, ex.select(is_nan(x), x, f.scaled(*bounded)), normal)

    # Where both are computed, it is better once.
    either = reduced_exp_value(f, ex.rarely(unusual, clamp(f, x), x))
    apart = chosen(reduced_exp_value(f, x), reduced_exp_value(f, clamp(f, x)))
    return ex.with_fma(apart, chosen(either, either))


@float_function
def exp2(x: Expr) -> Expr:
    """``2**x``; exact for whole numbers."""
    f = format_of(x)
    limit = 1.5 * _LIMIT[f.type.name]
    bounded = f.clamped(x, -limit, limit)
    whole, k = f.to_nearest(bounded)
    rest = bounded - whole
    r = times(Pair(rest, f.number(0.0)), constant_pair(f, tables.LN2_PAIR))
    significand = 1.0 + (r.hi + _beyond_first_order(f, r))
    return ex.select(is_nan(x), x, f.scaled(significand, k))


def _reduced_exp(f: Format, reduced: Reduced) -> Pair:
    """``exp(r)`` of double length."""
    first = fast_two_sum(f.number(1.0), reduced.r.hi)
    return fast_two_sum(first.hi, first.lo + _beyond_first_order(f, reduced.r))


def exp_pair(f: Format, x: Expr, low: Expr) -> Pair:
    """``exp(x + low)`` of double length, for ``x`` within the limits of :func:`clamp`."""
    reduced = reduce(f, x, low)
    value = _reduced_exp(f, reduced)
    return Pair(f.scaled(value.hi, reduced.k), f.scaled(value.lo, reduced.k))


def _expm1_pair(f: Format, x: Expr) -> tuple[Pair, Expr]:
    """``(exp(x) - 1) / 2**k`` of double length, and ``k``."""
    reduced = reduce(f, x)
    minus_one = fast_two_sum(reduced.r.hi, _beyond_first_order(f, reduced.r))
    # 1 - 2**-k; for large k the power does not matter, for negative k it is exact.
    small_k = ex.select(reduced.k > f.precision + 8, ex.const(f.precision + 8, f.signed), reduced.k)
    offset = 1.0 - f.power_of_two(-small_k)
    total = two_sum(offset, minus_one.hi)
    return fast_two_sum(total.hi, total.lo + minus_one.lo), reduced.k


@float_function
def expm1(x: Expr) -> Expr:
    """``e**x - 1``, exact in the limit of small ``x``."""
    f = format_of(x)
    # Far below, where the result has long been -1, the power that is taken off would overflow.
    low = -40.0 if f.precision > 24 else -20.0
    value, k = _expm1_pair(f, f.clamped(x, low, _LIMIT[f.type.name]))
    result = f.scaled(value.hi, k)
    tiny = ex.absolute(x) < 2.0 ** -(f.precision + 1)
    return ex.select(tiny, x, ex.select(is_nan(x), x, result))


def _half_exp(f: Format, a: Expr) -> Pair:
    """``exp(a) / 2`` of double length, for ``a`` that is not negative; infinite where that overflows."""
    reduced = reduce(f, a)
    value = _reduced_exp(f, reduced)
    k = reduced.k - 1
    # Beside an infinite upper part the lower one means nothing.
    return Pair(f.scaled(value.hi, k), f.scaled(value.lo, k))


@float_function
def cosh(x: Expr) -> Expr:
    """Hyperbolic cosine."""
    f = format_of(x)
    half = _half_exp(f, clamp(f, ex.absolute(x)))
    result = ex.select(half.hi < f.inf, half.hi + (half.lo + 0.25 / half.hi), f.inf)
    return ex.select(is_nan(x), x, result)


@float_function
def sinh(x: Expr) -> Expr:
    """Hyperbolic sine."""
    f = format_of(x)
    a = ex.absolute(x)
    half = _half_exp(f, clamp(f, a))
    large = half.hi + (half.lo - 0.25 / half.hi)
    large = ex.select(half.hi < f.inf, large, f.inf)
    z = a * a
    small = a + a * z * polynomial(z, f.constants(tables.SINH))
    result = copysign(ex.select(a < 1.0, small, large), x)
    return ex.select(is_nan(x), x, result)


@float_function
def tanh(x: Expr) -> Expr:
    """Hyperbolic tangent."""
    f = format_of(x)
    a = ex.absolute(x)
    # Where the result rounds to one whatever is added.
    bounded = f.clamped(a, 0.0, 20.0 if f.precision > 24 else 10.0)
    value, k = _expm1_pair(f, bounded + bounded)
    power = f.power_of_two(k)
    minus_one = Pair(value.hi * power, value.lo * power)
    shifted = two_sum(f.number(2.0), minus_one.hi)
    ratio = over(minus_one, Pair(shifted.hi, shifted.lo + minus_one.lo))
    tiny = a < 2.0 ** -(f.precision // 2 + 1)
    result = ex.select(tiny, a, ratio.hi)
    return ex.select(is_nan(x), x, copysign(result, x))
