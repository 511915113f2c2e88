"""Logarithms, and the inverse hyperbolic functions that are logarithms of sums.

``x = 2**k * m`` with ``m`` next to one, and ``log(m)`` from ``s = f / (2 + f)``, ``f = m - 1``, as
``2*s + s**3 * L(s*s)``. Where a function needs more digits than its type has, all of that is done in pairs.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from numr.codegen import expr as ex
from numr.codegen.expr import Expr
from numr.codegen.libm import tables
from numr.codegen.libm.exponential import clamp, exp_pair
from numr.codegen.libm.formats import (
    Format,
    Pair,
    constant_pair,
    copysign,
    fast_two_sum,
    float_function,
    format_of,
    is_finite,
    is_nan,
    join,
    over,
    plus,
    polynomial,
    root,
    times,
    two_product,
    two_sum,
)

__all__ = [
    "acosh",
    "asinh",
    "atanh",
    "log",
    "log1p",
    "log2",
    "log10",
    "log_pair",
    "logaddexp",
]


class Decomposed(NamedTuple):
    """A positive number as ``2**k * m`` with ``m`` between the square roots of 1/2 and 2."""

    m: Expr
    k: Expr


def decompose(f: Format, x: Expr) -> Decomposed:
    """Split a positive finite number; what becomes of others means nothing."""
    subnormal = x < f.smallest_normal
    lift = f.precision + 1
    bits = f.bits(ex.select(subnormal, x * 2.0**lift, x))
    start = f.bits(f.number(math.sqrt(0.5)))
    k = (bits - start) >> f.mantissa
    m = f.from_bits(bits - (k << f.mantissa))
    return Decomposed(m, k - ex.select(subnormal, ex.const(lift, f.signed), 0))


def _log_near_one(f: Format, excess: Expr) -> tuple[Expr, Expr]:
    """``log(1 + excess)`` as ``excess`` minus the second number."""
    s = excess / (2.0 + excess)
    z = s * s
    return excess, s * (excess - z * polynomial(z, f.constants(tables.LOG)))


def _log_pair_near_one(f: Format, excess: Pair) -> Pair:
    """``log(1 + excess)`` of double length."""
    shifted = two_sum(f.number(2.0), excess.hi)
    s = over(excess, Pair(shifted.hi, plus(shifted.lo, excess.lo)))
    square = two_product(s.hi, s.hi)
    cross = s.hi * s.lo
    z = Pair(square.hi, square.lo + (cross + cross))
    cube = times(s, z)
    third = times(cube, constant_pair(f, tables.TWO_THIRDS))
    tail = cube.hi * z.hi * polynomial(z.hi, f.constants(tables.LOG_TAIL))
    total = fast_two_sum(s.hi + s.hi, third.hi)
    low = total.lo + ((s.lo + s.lo) + (third.lo + tail))
    return fast_two_sum(total.hi, low)


def log_pair(f: Format, x: Expr) -> tuple[Pair, Expr]:
    """``log(m)`` of double length and ``k`` as a float, for the parts of a positive finite number."""
    m, k = decompose(f, x)
    return _log_pair_near_one(f, Pair(m - 1.0, f.number(0.0))), f.small_whole(k)


def log1p_pair(f: Format, w: Pair) -> Pair:
    """``log(1 + w)`` of double length, for ``w`` above -1 and of moderate size."""
    total = two_sum(f.number(1.0), w.hi)
    m, k = decompose(f, total.hi)
    near = ex.eq(k, 0)
    low = (total.lo + w.lo) * f.power_of_two(-k)
    excess = Pair(ex.select(near, w.hi, m - 1.0), ex.select(near, w.lo, low))
    whole = f.small_whole(k)
    upper, lower = f.constants(tables.LN2)
    value = _log_pair_near_one(f, excess)
    return join(Pair(whole * upper, whole * lower), value)


def natural_log_pair(f: Format, x: Expr) -> Pair:
    """``log(x)`` of double length for a positive finite number."""
    value, k = log_pair(f, x)
    upper, lower = f.constants(tables.LN2)
    return join(Pair(k * upper, k * lower), value)


def _checked(f: Format, x: Expr, value: Expr) -> Expr:
    """A logarithm with its special values: of zero, infinity and what is negative."""
    value = ex.select(ex.eq(x, 0.0), -f.inf, value)
    value = ex.select(x < 0.0, f.nan, value)
    # Infinity and NaN are their own logarithms.
    return ex.select(is_finite(x) | (x < 0.0), value, x)


@float_function
def log(x: Expr) -> Expr:
    """Natural logarithm."""
    f = format_of(x)
    m, k = decompose(f, x)
    whole = f.small_whole(k)
    upper, lower = f.constants(tables.LN2)
    first, rest = _log_near_one(f, m - 1.0)
    total = fast_two_sum(whole * upper, first)
    return _checked(f, x, total.hi + (total.lo - (rest - whole * lower)))


@float_function
def log2(x: Expr) -> Expr:
    """Logarithm to base two; exact for powers of two."""
    f = format_of(x)
    value, k = log_pair(f, x)
    fraction = times(value, constant_pair(f, tables.LOG2E))
    return _checked(f, x, join(Pair(k, f.number(0.0)), fraction).hi)


@float_function
def log10(x: Expr) -> Expr:
    """Logarithm to base ten."""
    f = format_of(x)
    value, k = log_pair(f, x)
    upper, lower = f.constants(tables.LOG10_2)
    fraction = times(value, constant_pair(f, tables.LOG10E))
    # The decimal logarithm of 2 is larger than that of any m, or the multiple of it is zero.
    return _checked(f, x, join(Pair(k * upper, k * lower), fraction).hi)


def log_of_sum(f: Format, w: Pair, sum_: Pair, doubled: Expr | None = None) -> Pair:
    """``log(1 + w)``, where ``sum_`` is ``1 + w``; ``w`` itself counts where the sum is next to one.

    Where ``doubled`` holds, the logarithm of twice the sum.
    """
    m, k = decompose(f, sum_.hi)
    near = ex.eq(k, 0)
    # Of a larger sum the lower part is lost in any case.
    most = 2 * f.precision
    power = f.power_of_two(-ex.select(k > most, ex.const(most, f.signed), k))
    excess = ex.select(near, w.hi, m - 1.0)
    low = ex.select(near, w.lo, sum_.lo * power)
    if doubled is not None:
        k = k + ex.select(doubled, ex.const(1, f.signed), 0)
    whole = f.small_whole(k)
    upper, lower = f.constants(tables.LN2)
    first, rest = _log_near_one(f, excess)
    total = fast_two_sum(whole * upper, first)
    correction = low / (1.0 + excess) + whole * lower
    return Pair(total.hi, total.lo - (rest - correction))


@float_function
def log1p(x: Expr) -> Expr:
    """``log(1 + x)``, exact in the limit of small ``x``."""
    f = format_of(x)
    logarithm = log_of_sum(f, Pair(x, f.number(0.0)), two_sum(f.number(1.0), x))
    value = logarithm.hi + logarithm.lo
    value = ex.select(ex.eq(x, -1.0), -f.inf, value)
    value = ex.select(x < -1.0, f.nan, value)
    keeps = (ex.absolute(x) < 2.0 ** -(f.precision + 1)) | ~(is_finite(x) | (x < -1.0))
    return ex.select(keeps, x, value)


def _log_of_one_plus_pair(f: Format, w: Pair, large: Expr, a: Expr) -> Expr:
    """``log(1 + w)``, or ``log(2 * a)`` where ``large`` holds."""
    total = two_sum(f.number(1.0), w.hi)
    hi = ex.select(large, a, total.hi)
    lo = ex.select(large, f.number(0.0), total.lo + w.lo)
    logarithm = log_of_sum(f, w, Pair(hi, lo), large)
    return logarithm.hi + logarithm.lo


@float_function
def asinh(x: Expr) -> Expr:
    """Inverse hyperbolic sine: ``log(1 + w)`` with ``w = a + a**2 / (1 + sqrt(1 + a**2))``."""
    f = format_of(x)
    a = ex.absolute(x)
    large = a > 2.0 ** (f.precision // 2 + 4)
    b = ex.select(large, f.number(1.0), a)
    square = two_product(b, b)
    shifted = two_sum(f.number(1.0), square.hi)
    radical = root(Pair(shifted.hi, shifted.lo + square.lo))
    divisor = two_sum(f.number(1.0), radical.hi)
    fraction = over(square, Pair(divisor.hi, divisor.lo + radical.lo))
    value = _log_of_one_plus_pair(f, join(Pair(b, f.number(0.0)), fraction), large, a)
    keeps = (a < 2.0 ** -(f.precision // 2 + 2)) | ~is_finite(x)
    return ex.select(keeps, x, copysign(value, x))


@float_function
def acosh(x: Expr) -> Expr:
    """Inverse hyperbolic cosine: ``log(1 + w)`` with ``t = x - 1`` and ``w = t + sqrt(t * (t + 2))``."""
    f = format_of(x)
    large = x > 2.0 ** (f.precision // 2 + 4)
    b = ex.select(large | ~(x > 1.0), f.number(2.0), x)
    t = two_sum(b, f.number(-1.0))
    beyond = two_sum(b, f.number(1.0))
    radical = root(times(t, beyond))
    larger = join(radical, t)
    smaller = join(t, radical)
    w = Pair(
        ex.select(t.hi > radical.hi, smaller.hi, larger.hi),
        ex.select(t.hi > radical.hi, smaller.lo, larger.lo),
    )
    value = _log_of_one_plus_pair(f, w, large, x)
    value = ex.select(x < 1.0, f.nan, ex.select(ex.eq(x, 1.0), f.number(0.0), value))
    return ex.select(is_finite(x) | (x < 1.0), value, x)


@float_function
def atanh(x: Expr) -> Expr:
    """Inverse hyperbolic tangent: half of ``log(1 + 2*a/(1 - a))``."""
    f = format_of(x)
    a = ex.absolute(x)
    b = ex.select(a < 1.0, a, f.number(0.5))
    w = over(Pair(b + b, f.number(0.0)), two_sum(f.number(1.0), -b))
    total = two_sum(f.number(1.0), w.hi)
    logarithm = log_of_sum(f, w, Pair(total.hi, total.lo + w.lo))
    value = 0.5 * (logarithm.hi + logarithm.lo)
    value = ex.select(ex.eq(a, 1.0), f.inf, ex.select(a > 1.0, f.nan, value))
    keeps = (a < 2.0 ** -(f.precision // 2 + 2)) | is_nan(x)
    return ex.select(keeps, x, copysign(value, x))


@float_function
def logaddexp(x: Expr, y: Expr) -> Expr:
    """``log(exp(x) + exp(y))``, relative to the larger operand."""
    f = format_of(x)
    larger, smaller = ex.select(x < y, y, x), ex.select(x < y, x, y)
    distance = two_sum(smaller, -larger)
    exponent = clamp(f, distance.hi)
    # Infinite operands have a distance without a lower part, and equal ones none at all.
    exact = ex.eq(exponent, distance.hi)
    exponent = ex.select(ex.eq(x, y), f.number(0.0), exponent)
    w = exp_pair(f, exponent, ex.select(exact, distance.lo, f.number(0.0)))
    total = two_sum(f.number(1.0), w.hi)
    logarithm = log_of_sum(f, w, Pair(total.hi, total.lo + w.lo))
    result = two_sum(larger, logarithm.hi)
    value = ex.select(is_finite(larger), result.hi + (result.lo + logarithm.lo), larger)
    return ex.select(is_nan(x), x, ex.select(is_nan(y), y, value))
