"""Inverse circular functions, and the square root of a sum of squares."""

from __future__ import annotations

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
    is_inf,
    is_nan,
    join,
    over,
    polynomial,
    root,
    times,
    two_product,
    two_sum,
)

__all__ = ["acos", "asin", "atan", "atan2", "hypot"]


def _angle(f: Format, y: Expr, x: Expr, negative: Expr | None) -> Expr:
    """The angle of the point (x, y), neither negative nor NaN; mirrored at the y axis where ``negative`` holds.

    The tangent is reduced to below sqrt(2) - 1 by taking off a quarter or an eighth of a turn.
    """
    zero = f.number(0.0)
    steep = y > x * (2.0**0.5 + 1.0)
    shallow = y <= x * (2.0**0.5 - 1.0)
    difference, total = two_sum(y, -x), two_sum(x, y)
    above = ex.select(shallow, y, ex.select(steep, -x, difference.hi))
    below = ex.select(shallow, x, ex.select(steep, y, total.hi))
    t = above / below
    # What the roundings of the two sums change; the tangent of the rest is exact enough.
    change = (difference.lo - t * total.lo) / below
    z = t * t
    curved = t * z * polynomial(z, f.constants(tables.ATAN))
    curved = curved + ex.select(shallow | steep, zero, change)
    half, quarter = constant_pair(f, tables.HALF_PI), constant_pair(f, tables.QUARTER_PI)
    base_hi = ex.select(shallow, zero, ex.select(steep, half.hi, quarter.hi))
    base_lo = ex.select(shallow, zero, ex.select(steep, half.lo, quarter.lo))
    if negative is not None:
        # pi - (base + t), with the base of the other side.
        pi, other = constant_pair(f, tables.PI), constant_pair(f, tables.THREE_QUARTERS_PI)
        mirrored_hi = ex.select(shallow, pi.hi, ex.select(steep, half.hi, other.hi))
        mirrored_lo = ex.select(shallow, pi.lo, ex.select(steep, half.lo, other.lo))
        base_hi = ex.select(negative, mirrored_hi, base_hi)
        base_lo = ex.select(negative, mirrored_lo, base_lo)
        t = ex.select(negative, -t, t)
        curved = ex.select(negative, -curved, curved)
    result = fast_two_sum(base_hi, t)
    return result.hi + (result.lo + (curved + base_lo))


def angle_pair(f: Format, y: Expr, x: Expr) -> Pair:
    """:func:`atan2` of double length, for coordinates of moderate size that are not both zero."""
    zero = f.number(0.0)
    above, side = ex.absolute(y), ex.absolute(x)
    steep = above > side * (2.0**0.5 + 1.0)
    shallow = above <= side * (2.0**0.5 - 1.0)
    difference, total = two_sum(above, -side), two_sum(side, above)
    middle = ~(steep | shallow)
    numerator = Pair(
        ex.select(shallow, above, ex.select(steep, -side, difference.hi)),
        ex.select(middle, difference.lo, zero),
    )
    denominator = Pair(
        ex.select(shallow, side, ex.select(steep, above, total.hi)),
        ex.select(middle, total.lo, zero),
    )
    t = over(numerator, denominator)
    z = times(t, t)
    cube = times(t, z)
    third = times(cube, -constant_pair(f, tables.THIRD))
    fifth = times(times(cube, z), constant_pair(f, tables.FIFTH))
    tail = cube.hi * z.hi * z.hi * polynomial(z.hi, f.constants(tables.ATAN_TAIL))
    curved = join(third, Pair(fifth.hi, fifth.lo + tail))
    angle = join(t, curved)
    half, quarter = constant_pair(f, tables.HALF_PI), constant_pair(f, tables.QUARTER_PI)
    base = Pair(
        ex.select(shallow, zero, ex.select(steep, half.hi, quarter.hi)),
        ex.select(shallow, zero, ex.select(steep, half.lo, quarter.lo)),
    )
    angle = join(base, angle)
    pi = constant_pair(f, tables.PI)
    behind = join(pi, -angle)
    negative = ~ex.eq(f.ubits(x) >> (f.type.bits - 1), 0)
    angle = Pair(ex.select(negative, behind.hi, angle.hi), ex.select(negative, behind.lo, angle.lo))
    below = f.bits(y) < 0
    return Pair(ex.select(below, -angle.hi, angle.hi), ex.select(below, -angle.lo, angle.lo))


@float_function
def atan(x: Expr) -> Expr:
    """Inverse tangent."""
    f = format_of(x)
    value = copysign(_angle(f, ex.absolute(x), f.number(1.0), None), x)
    keeps = (ex.absolute(x) < 2.0 ** -(f.precision // 2 + 2)) | is_nan(x)
    return ex.select(keeps, x, value)


@float_function
def atan2(y: Expr, x: Expr) -> Expr:
    """Angle of the point (x, y)."""
    f = format_of(y)
    above, side = ex.absolute(y), ex.absolute(x)
    larger = ex.select(above < side, side, above)
    # Sums near the largest number would overflow, quotients of subnormal ones lose digits.
    power = f.bias // 2
    scale = ex.select(
        larger > 2.0**power,
        f.number(2.0 ** -(power // 2)),
        ex.select(larger < 2.0**-power, f.number(2.0**power), f.number(1.0)),
    )
    # The point (inf, inf) lies on the diagonal, as (1, 1) does.
    diagonal = is_inf(x) & is_inf(y)
    one = f.number(1.0)
    b = ex.select(diagonal, one, above * scale)
    a = ex.select(diagonal, one, side * scale)
    negative = ~ex.eq(f.ubits(x) >> (f.type.bits - 1), 0)
    value = _angle(f, b, a, negative)
    pi = f.constants(tables.PI)[0]
    flat = ex.eq(above, 0.0)
    value = ex.select(flat, ex.select(negative, pi, f.number(0.0)), value)
    # A quotient that is subnormal must be rounded once only.
    direct = above / side
    tiny = ~negative & ~flat & (direct < f.smallest_normal * 4.0) & ~diagonal
    value = copysign(ex.select(tiny, direct, value), y)
    return ex.select(is_nan(x), x, ex.select(is_nan(y), y, value))


def _asin_part(f: Format, s: Expr, z: Expr) -> Expr:
    """``asin(s) - s`` for ``z = s*s`` up to 1/4."""
    return s * z * polynomial(z, f.constants(tables.ASIN))


def _near_one(f: Format, a: Expr) -> tuple[Pair, Expr]:
    """``s = sqrt((1 - a)/2)`` of double length and ``asin(s) - s.hi``: half of ``acos(a)``."""
    z = 0.5 * (1.0 - a)
    s = root(Pair(ex.select(z > 0.0, z, f.number(1.0)), f.number(0.0)))
    return s, s.lo + _asin_part(f, s.hi, z)


@float_function
def asin(x: Expr) -> Expr:
    """Inverse sine."""
    f = format_of(x)
    a = ex.absolute(x)
    small = a + _asin_part(f, a, a * a)
    s, rest = _near_one(f, a)
    half = constant_pair(f, tables.HALF_PI)
    total = fast_two_sum(half.hi, -(s.hi + s.hi))
    large = total.hi + (total.lo + (half.lo - (rest + rest)))
    value = ex.select(a < 0.5, small, ex.select(a < 1.0, large, half.hi))
    value = ex.select(a > 1.0, f.nan, copysign(value, x))
    keeps = (a < 2.0 ** -(f.precision // 2 + 2)) | is_nan(x)
    return ex.select(keeps, x, value)


@float_function
def acos(x: Expr) -> Expr:
    """Inverse cosine."""
    f = format_of(x)
    a = ex.absolute(x)
    half, pi = constant_pair(f, tables.HALF_PI), constant_pair(f, tables.PI)
    middle_sum = fast_two_sum(half.hi, -x)
    middle = middle_sum.hi + (middle_sum.lo + (half.lo - _asin_part(f, x, x * x)))
    s, rest = _near_one(f, a)
    right = (s.hi + s.hi) + (rest + rest)
    left_sum = fast_two_sum(pi.hi, -(s.hi + s.hi))
    left = left_sum.hi + (left_sum.lo + (pi.lo - (rest + rest)))
    value = ex.select(a < 0.5, middle, ex.select(x > 0.0, right, left))
    at_end = ex.select(x > 0.0, f.number(0.0), pi.hi)
    value = ex.select(ex.eq(a, 1.0), at_end, ex.select(a > 1.0, f.nan, value))
    return ex.select(is_nan(x), x, value)


@float_function
def hypot(x: Expr, y: Expr) -> Expr:
    """``sqrt(x**2 + y**2)`` without overflow on the way; infinite where either operand is, even beside NaN."""
    f = format_of(x)
    a, b = ex.absolute(x), ex.absolute(y)
    larger, smaller = ex.select(a < b, b, a), ex.select(a < b, a, b)
    # Powers of two that bring all sizes to where squares and their errors are normal numbers.
    power = 3 * f.bias // 8
    large, small = larger > 2.0**power, larger < 2.0**-power
    down, up = 2.0 ** (5 * f.bias // 8), 2.0 ** (6 * f.bias // 8)
    one = f.number(1.0)
    scale = ex.select(large, f.number(1.0 / down), ex.select(small, f.number(up), one))
    back = ex.select(large, f.number(down), ex.select(small, f.number(1.0 / up), one))
    first, second = larger * scale, smaller * scale
    square, other = two_product(first, first), two_product(second, second)
    total = fast_two_sum(square.hi, other.hi)
    value = root(Pair(total.hi, total.lo + (square.lo + other.lo)))
    result = ex.select(ex.eq(larger, 0.0), larger, (value.hi + value.lo) * back)
    result = ex.select(is_nan(x) | is_nan(y), f.nan, result)
    return ex.select(is_inf(x) | is_inf(y), f.inf, result)
