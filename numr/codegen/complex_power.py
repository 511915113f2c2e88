"""Complex powers.

``exp(y * log(x))`` magnifies an error of the logarithm by as much as the product is large. So the logarithm, the
product and the argument of the exponential function have double length here.
"""

from __future__ import annotations

from numr.codegen import expr as ex
from numr.codegen import libm
from numr.codegen.complexes import Complex, choose, exp, has_inf, larger_component, normalised
from numr.codegen.expr import Expr
from numr.codegen.libm import tables
from numr.codegen.libm.formats import (
    Format,
    Pair,
    format_of,
    is_finite,
    join,
    times,
    two_product,
    two_sum,
)
from numr.codegen.libm.inverse import angle_pair
from numr.codegen.libm.logarithmic import log1p_pair

__all__ = ["power"]


def _log(f: Format, z: Complex) -> tuple[Pair, Pair]:
    """The components of the logarithm, of double length where ``z`` is finite and not zero."""
    scaled, k = normalised(f, z)
    larger = larger_component(scaled)
    a, b = ex.absolute(scaled.re), ex.absolute(scaled.im)
    smaller = ex.select(a < b, a, b)
    # The square of the modulus, less one; the first difference is exact.
    product = times(Pair(larger - 1.0, f.number(0.0)), two_sum(larger, f.number(1.0)))
    square = two_product(smaller, smaller)
    total = two_sum(product.hi, square.hi)
    excess = Pair(total.hi, total.lo + (product.lo + square.lo))
    half = log1p_pair(f, excess)
    whole = f.small_whole(k)
    upper, lower = f.constants(tables.LN2)
    modulus = join(Pair(whole * upper, whole * lower), Pair(0.5 * half.hi, 0.5 * half.lo))
    return modulus, angle_pair(f, scaled.im, scaled.re)


def _where(condition: Expr, true: Pair, other: Expr) -> Pair:
    f = format_of(other)
    return Pair(ex.select(condition, true.hi, other), ex.select(condition, true.lo, f.number(0.0)))


def _combined(f: Format, a: Pair, b: Pair) -> Pair:
    """A sum of two pairs, without a lower part where it overflows."""
    total = two_sum(a.hi, b.hi)
    low = total.lo + (a.lo + b.lo)
    return Pair(total.hi, ex.select(is_finite(low), low, f.number(0.0)))


def power(x: Complex, y: Complex) -> Complex:
    """``exp(y * log(x))``; 1 for a zero exponent, 0 for a zero base and an exponent with positive real part."""
    f = format_of(x.re)
    one, zero = f.number(1.0), f.number(0.0)
    finite = is_finite(x.re) & is_finite(x.im)
    modulus, angle = _log(f, x)
    modulus = _where(finite, modulus, ex.select(has_inf(x), f.inf, f.nan))
    angle = _where(finite, angle, libm.atan2(x.im, x.re))
    p, q = Pair(y.re, zero), Pair(y.im, zero)
    re = _combined(f, times(p, modulus), -times(q, angle))
    im = _combined(f, times(p, angle), times(q, modulus))
    result = exp(Complex(re.hi, im.hi), Complex(re.lo, im.lo))
    origin = ex.eq(x.re, 0.0) & ex.eq(x.im, 0.0)
    at_origin = choose(y.re > 0.0, Complex(zero, zero), Complex(f.nan, f.nan))
    result = choose(origin, at_origin, result)
    return choose(ex.eq(y.re, 0.0) & ex.eq(y.im, 0.0), Complex(one, zero), result)
