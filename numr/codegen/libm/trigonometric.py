"""Circular functions.

An argument is reduced to the nearest multiple of a quarter turn, with a remainder of double length: moderate
arguments by subtracting the multiple in parts, large ones by multiplying with the digits of 2/pi that matter (Payne
and Hanek's method) in integers.
"""

from __future__ import annotations

from typing import NamedTuple

from numr.codegen import expr as ex
from numr.codegen.expr import U32, Expr
from numr.codegen.libm import tables
from numr.codegen.libm.formats import (
    Format,
    Pair,
    constant_pair,
    fast_two_sum,
    float_function,
    format_of,
    is_finite,
    less_exact_product,
    over,
    polynomial,
    times,
    two_product,
    two_sum,
)

__all__ = ["cos", "sin", "sin_cos", "tan"]

#: Up to here the multiples of the parts of a quarter turn are exact.
_MODERATE = {"f32": 190.0, "f64": 1.6e6}


class Angle(NamedTuple):
    """An angle as ``quadrant`` quarter turns (modulo four, as unsigned integer) and a remainder."""

    quadrant: Expr
    rest: Pair


def _without_quarters(f: Format, x: Expr, quarters: Expr) -> Pair:
    """``x`` less a whole number of quarter turns next to it, for moderate angles.

    Its lower part may be larger than half a unit in the last place of the upper one where that is very small.
    """
    part1, part2, part3, part4 = f.constants(tables.QUADRANT)
    # The first three products are exact, and the first difference as well.
    first = less_exact_product(ex.less_product(x, quarters, part1), quarters, part2)
    rest = two_sum(first.hi, ex.less_product(first.lo, quarters, part3))
    plain = Pair(rest.hi, ex.less_product(rest.lo, quarters, part4))
    # The first difference is exact: it is a multiple of the constant's last place, and smaller than one. So is what
    # the second one leaves, since either it is exact as well or the first one is larger than the product.
    upper, middle, lower = f.constants(tables.QUADRANT_FMA)
    near = ex.fma(-quarters, upper, x)
    hi = ex.fma(-quarters, middle, near)
    lo = ex.fma(-quarters, lower, ex.fma(-quarters, middle, near - hi))
    return Pair(ex.with_fma(hi, plain.hi), ex.with_fma(lo, plain.lo))


def _reduce_moderate(f: Format, x: Expr) -> Angle:
    inverse = f.constants(tables.INVERSE_QUADRANT)[0]
    whole, k = f.to_nearest(x, inverse)
    return Angle(ex.bitcast(k, f.unsigned) & 3, _without_quarters(f, x, whole))


def _high_product(a: Expr, b: Expr) -> Expr:
    """The upper word of the product of two unsigned integers."""
    half = a.type.bits // 2
    mask = (1 << half) - 1
    a1, a0, b1, b0 = a >> half, a & mask, b >> half, b & mask
    middle = a1 * b0 + ((a0 * b0) >> half)
    other = a0 * b1 + (middle & mask)
    return a1 * b1 + (middle >> half) + (other >> half)


def _digits(f: Format, start: Expr) -> list[Expr]:
    """Three words of 2/pi from the bit ``start`` of the table on."""
    width = f.type.bits
    zero = ex.const(0, f.unsigned)
    words = [ex.const(word, f.unsigned) for word in tables.TWO_OVER_PI[f.type.name]]
    position = start >> (width.bit_length() - 1)
    levels = (len(words) - 1).bit_length()
    for level in reversed(range(levels)):
        step = 1 << level
        taken = ~ex.eq(position & step, 0)
        words += [zero] * step
        words = [ex.select(taken, words[i + step], words[i]) for i in range(step - 1 + 4)]
    shift = start & (width - 1)
    count, rest = ex.cast(shift, U32), ex.cast((width - 1) - shift, U32)
    # A shift by the full width would be open, so the other one is done in two steps.
    return [(words[i] << count) | ((words[i + 1] >> 1) >> rest) for i in range(3)]


def _reduce_large(f: Format, x: Expr) -> Angle:
    width = f.type.bits
    bits = f.ubits(x) & (f.sign_bit - 1)
    hidden = 1 << f.mantissa
    significand = (bits & (hidden - 1)) | hidden
    # The first digit that matters gives multiples of two quarter turns; the table has a word of zeros in front.
    start = (bits >> f.mantissa) - (f.bias + f.mantissa + 2 - width)
    upper, middle, lower = _digits(f, start)
    word1 = _high_product(significand, lower) + significand * middle
    carry = ex.select(
        word1 < significand * middle, ex.const(1, f.unsigned), ex.const(0, f.unsigned)
    )
    word0 = _high_product(significand, middle) + significand * upper + carry
    word2 = significand * lower
    quadrant = (word0 + (1 << (width - 3))) >> (width - 2)
    fraction0 = (word0 << 2) | (word1 >> (width - 2))
    fraction1 = (word1 << 2) | (word2 >> (width - 2))
    negative = ~ex.eq(fraction0 >> (width - 1), 0)
    fraction0 = ex.select(negative, ~fraction0, fraction0)
    fraction1 = ex.select(negative, ~fraction1, fraction1)
    # In pieces that the floating-point type holds exactly.
    quarter, half = width // 4, width // 2
    piece0 = fraction0 >> quarter
    piece1 = ((fraction0 & ((1 << quarter) - 1)) << half) | (fraction1 >> half)
    piece2 = fraction1 & ((1 << half) - 1)
    pieces = [
        ex.cast(piece, f.type) * 2.0**-weight
        for piece, weight in [
            (piece0, width - quarter),
            (piece1, 2 * width - half),
            (piece2, 2 * width),
        ]
    ]
    total = fast_two_sum(pieces[0], pieces[1])
    turn = times(fast_two_sum(total.hi, total.lo + pieces[2]), constant_pair(f, tables.HALF_PI))
    # The remainder's sign, and that of the argument.
    minus = ex.select(negative, ex.const(f.sign_bit, f.unsigned), 0) ^ (f.ubits(x) & f.sign_bit)
    rest = Pair(*(f.from_bits(f.ubits(part) ^ minus) for part in turn))
    below = x < 0.0
    return Angle(ex.select(below, -quadrant, quadrant) & 3, rest)


def reduce(f: Format, x: Expr) -> Angle:
    """The nearest multiple of a quarter turn and the remainder, which is NaN for what is not finite."""
    near, far = _reduce_moderate(f, x), _reduce_large(f, x)
    # By its bits, so that NaN is among what is large.
    large = (f.bits(x) & (f.sign_bit - 1)) > f.bits(f.number(_MODERATE[f.type.name]))
    rest = ex.select(is_finite(x), far.rest.hi, f.nan)
    return Angle(
        ex.rarely(large, far.quadrant, near.quadrant),
        Pair(ex.rarely(large, rest, near.rest.hi), ex.rarely(large, far.rest.lo, near.rest.lo)),
    )


def _sin_near_zero(f: Format, r: Pair) -> Pair:
    z = r.hi * r.hi
    linear = r.lo * ex.less_product(1.0, z, 0.5)
    return Pair(r.hi, ex.product_plus(r.hi * z, polynomial(z, f.constants(tables.SIN)), linear))


def _cos_near_zero(f: Format, r: Pair, z: Expr, z_low: Expr | None = None) -> Pair:
    """The cosine from the square ``z`` of the angle, optionally of double length."""
    first = ex.less_product(1.0, z, 0.5)
    first_low = ex.product_plus(z, 0.5, first - 1.0)
    cross = r.hi * r.lo
    if z_low is not None:
        cross = cross + 0.5 * z_low
    quartic = ex.product_plus(z * z, polynomial(z, f.constants(tables.COS)), -cross)
    return Pair(first, quartic - first_low)


def _negated_where(f: Format, bit: Expr, value: Expr) -> Expr:
    """``value`` with its sign changed where an unsigned integer has its lowest bit set."""
    return f.from_bits(f.ubits(value) ^ (bit << (f.type.bits - 1)))


def sin_cos(x: Expr, low: Expr | None = None) -> tuple[Expr, Expr]:
    """Sine and cosine, which share the reduction of their argument; f32 or f64.

    The argument may have double length, with ``low`` as its lower part.
    """
    f = format_of(x)
    quadrant, rest = reduce(f, x)
    if low is not None:
        rest = fast_two_sum(rest.hi, rest.lo + low)
    s, c = _sin_near_zero(f, rest), _cos_near_zero(f, rest, rest.hi * rest.hi)
    sine, cosine = s.hi + s.lo, c.hi + c.lo
    odd = ~ex.eq(quadrant & 1, 0)
    sin_value = _negated_where(f, quadrant >> 1, ex.select(odd, cosine, sine))
    cos_value = _negated_where(f, (quadrant + 1) >> 1, ex.select(odd, sine, cosine))
    tiny = ex.absolute(x) < 2.0 ** -(f.precision // 2 + 2)
    return ex.select(tiny, x, sin_value), cos_value


@float_function
def sin(x: Expr) -> Expr:
    """Sine."""
    return sin_cos(x)[0]


@float_function
def cos(x: Expr) -> Expr:
    """Cosine."""
    return sin_cos(x)[1]


@float_function
def tan(x: Expr) -> Expr:
    """Tangent."""
    f = format_of(x)
    quadrant, rest = reduce(f, x)
    s, c = _sin_near_zero(f, rest), _cos_near_zero(f, rest, *two_product(rest.hi, rest.hi))
    s, c = fast_two_sum(s.hi, s.lo), fast_two_sum(c.hi, c.lo)
    odd = ~ex.eq(quadrant & 1, 0)
    above = Pair(ex.select(odd, c.hi, s.hi), ex.select(odd, c.lo, s.lo))
    below = Pair(ex.select(odd, s.hi, c.hi), ex.select(odd, s.lo, c.lo))
    ratio = _negated_where(f, quadrant & 1, over(above, below).hi)
    tiny = ex.absolute(x) < 2.0 ** -(f.precision // 2 + 2)
    return ex.select(tiny, x, ratio)
