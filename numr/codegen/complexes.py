"""Complex numbers as pairs of components: arithmetic, and the functions that follow from real ones.

Special values are those of the standard. Errors count relative to the modulus of the result.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from numr.codegen import expr as ex
from numr.codegen import libm
from numr.codegen.expr import Expr
from numr.codegen.libm.exponential import reduced_exp_value
from numr.codegen.libm.formats import Format, copysign, format_of, is_finite, is_inf, is_nan
from numr.codegen.libm.logarithmic import decompose

__all__ = [
    "Complex",
    "absolute",
    "cosh",
    "divide",
    "exp",
    "expm1",
    "log",
    "log1p",
    "multiply",
    "normalised",
    "reciprocal",
    "scaled_log",
    "sign",
    "sinh",
    "sqrt",
    "tanh",
]


class Complex(NamedTuple):
    """The two components of a complex number."""

    re: Expr
    im: Expr

    def __neg__(self) -> Complex:
        return Complex(-self.re, -self.im)


def times_i(z: Complex) -> Complex:
    """``1j * z``, exactly."""
    return Complex(-z.im, z.re)


def over_i(z: Complex) -> Complex:
    """``-1j * z``, exactly."""
    return Complex(z.im, -z.re)


def choose(condition: Expr, true: Complex, false: Complex) -> Complex:
    """Select both components."""
    return Complex(ex.select(condition, true.re, false.re), ex.select(condition, true.im, false.im))


def has_inf(z: Complex) -> Expr:
    """Whether a component is infinite, which makes the number infinite even beside NaN."""
    return is_inf(z.re) | is_inf(z.im)


def has_nan(z: Complex) -> Expr:
    """Whether a component is NaN."""
    return is_nan(z.re) | is_nan(z.im)


def larger_component(z: Complex) -> Expr:
    """The larger absolute value of the components; NaN and infinity come out as anything."""
    a, b = ex.absolute(z.re), ex.absolute(z.im)
    return ex.select(a < b, b, a)


def absolute(z: Complex) -> Expr:
    """The modulus."""
    return libm.hypot(z.re, z.im)


def multiply(x: Complex, y: Complex) -> Complex:
    """The textbook product."""
    return Complex(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re)


def _times_power(f: Format, z: Complex, exponent: Expr) -> Complex:
    return Complex(f.scaled(z.re, exponent), f.scaled(z.im, exponent))


def normalised(f: Format, z: Complex) -> tuple[Complex, Expr]:
    """``z`` with a larger component next to one, and the exponent that was taken off (0 for 0, inf and NaN)."""
    size = larger_component(z)
    usable = is_finite(z.re) & is_finite(z.im) & ~ex.eq(size, 0.0)
    k = ex.select(usable, decompose(f, size).k, ex.const(0, f.signed))
    return _times_power(f, z, -k), k


def divide(x: Complex, y: Complex) -> Complex:
    """The quotient, of operands that are scaled so that nothing overflows on the way.

    Infinite numbers divided by finite ones are infinite, finite ones by infinite ones zero, and numbers divided by zero
    infinite, as in C's Annex G.
    """
    f = format_of(x.re)
    one, zero = f.number(1.0), f.number(0.0)
    (a, b), x_exponent = normalised(f, x)
    (c, d), y_exponent = normalised(f, y)
    norm = c * c + d * d
    limit = 2 * f.bias - 6
    difference = x_exponent - y_exponent
    difference = ex.select(difference > limit, ex.const(limit, f.signed), difference)
    difference = ex.select(difference < -limit, ex.const(-limit, f.signed), difference)
    re = ex.rounded_quotient(a * c + b * d, norm)
    im = ex.rounded_quotient(b * c - a * d, norm)
    result = _times_power(f, Complex(re, im), difference)

    def corner(value: Expr) -> Expr:
        return copysign(ex.select(is_inf(value), one, zero), value)

    x_finite, y_finite = is_finite(x.re) & is_finite(x.im), is_finite(y.re) & is_finite(y.im)
    by_zero = ex.eq(y.re, 0.0) & ex.eq(y.im, 0.0)
    pole = copysign(f.inf, y.re)
    result = choose(
        by_zero & ~(is_nan(x.re) & is_nan(x.im)), Complex(pole * x.re, pole * x.im), result
    )
    p, q = corner(x.re), corner(x.im)
    infinite = Complex(f.inf * (p * c + q * d), f.inf * (q * c - p * d))
    result = choose(has_inf(x) & y_finite & ~by_zero, infinite, result)
    r, s = corner(y.re), corner(y.im)
    vanishing = Complex(zero * (a * r + b * s), zero * (b * r - a * s))
    return choose(has_inf(y) & x_finite, vanishing, result)


def reciprocal(z: Complex) -> Complex:
    """``1 / z``."""
    f = format_of(z.re)
    return divide(Complex(f.number(1.0), f.number(0.0)), z)


def sign(z: Complex) -> Complex:
    """``z / abs(z)``, zero for zero."""
    f = format_of(z.re)
    scaled, _ = normalised(f, z)
    modulus = absolute(scaled)
    result = Complex(*(ex.rounded_quotient(part, modulus) for part in scaled))
    zero = f.number(0.0)
    result = choose(ex.eq(z.re, 0.0) & ex.eq(z.im, 0.0), Complex(zero, zero), result)
    return choose(has_nan(z), Complex(f.nan, f.nan), result)


def sqrt(z: Complex) -> Complex:
    """The square root with a real part that is not negative."""
    f = format_of(z.re)
    # An even exponent is taken off, half of it put back.
    _, k = normalised(f, z)
    half = k >> 1
    a, b = _times_power(f, z, -(half + half))
    s = ex.sqrt(0.5 * (ex.absolute(a) + libm.hypot(a, b)))
    other = 0.5 * (ex.absolute(b) / s)
    right = ~(a < 0.0)
    result = Complex(ex.select(right, s, other), copysign(ex.select(right, other, s), b))
    result = _times_power(f, result, half)

    zero = f.number(0.0)
    origin = ex.eq(z.re, 0.0) & ex.eq(z.im, 0.0)
    result = choose(origin, Complex(zero, z.im), result)
    # A real part of -inf gives 0 + inf*j, of inf a zero beside it.
    below = Complex(ex.select(is_nan(z.im), f.nan, zero), copysign(f.inf, z.im))
    above = Complex(f.inf, ex.select(is_nan(z.im), z.im, copysign(zero, z.im)))
    result = choose(is_inf(z.re), choose(z.re < 0.0, below, above), result)
    result = choose(has_nan(z) & ~is_inf(z.re), Complex(f.nan, f.nan), result)
    return choose(is_inf(z.im), Complex(f.inf, z.im), result)


def _exp_times(
    f: Format, a: Expr, p: Expr, q: Expr, halved: bool = False, low: Expr | None = None
) -> Complex:
    """``exp(a) * (p + q*j)`` (half of it) that overflows only where the products do, for ``a`` that is not NaN."""
    limit = 170.0 if f.precision == 24 else 1410.0
    bounded = f.clamped(a, -limit, limit)
    if low is not None:
        low = ex.select(ex.eq(bounded, a), low, f.number(0.0))
    significand, k = reduced_exp_value(f, bounded, low)
    return _times_power(f, Complex(significand * p, significand * q), k - 1 if halved else k)


def exp(z: Complex, low: Complex | None = None) -> Complex:
    """``e**z``; the components may have double length, with their lower parts in ``low``."""
    f = format_of(z.re)
    a, b = z
    sine, cosine = libm.sin_cos(b, low.im if low else None)
    result = _exp_times(f, a, cosine, sine, low=low.re if low else None)
    result = choose(is_nan(a), Complex(f.nan, f.nan), result)
    flat, turning = ex.eq(b, 0.0), is_finite(b)
    zero = f.number(0.0)
    # Not b itself: where subnormal numbers count as zero it may be one.
    result = Complex(result.re, ex.select(flat, copysign(zero, b), result.im))
    endless = choose(a < 0.0, Complex(zero, zero), Complex(f.inf, f.nan))
    return choose(is_inf(a) & ~turning, endless, result)


def expm1(z: Complex) -> Complex:
    """``e**z - 1``, without cancellation."""
    a, b = z
    far = exp(z)
    sine, cosine = libm.sin_cos(b)
    half = libm.sin(0.5 * b)
    # Of a zero of either sign it is +0.
    near_re = ex.select(
        ex.eq(a, 0.0) & ex.eq(b, 0.0),
        ex.absolute(a),
        libm.expm1(a) * cosine - 2.0 * (half * half),
    )
    near = ex.absolute(a) <= 1.0
    # The sine of a zero is itself, and so is the product with a positive number.
    near_im = ex.select(ex.eq(b, 0.0), b, libm.exp(a) * sine)
    return choose(near, Complex(near_re, near_im), Complex(far.re - 1.0, far.im))


def scaled_log(z: Complex) -> Expr:
    """The logarithm of the modulus: the real part of the logarithm, with errors relative to the whole of it."""
    f = format_of(z.re)
    a, b = ex.absolute(z.re), ex.absolute(z.im)
    larger, smaller = ex.select(a < b, b, a), ex.select(a < b, a, b)
    big, small = larger > 2.0 ** (f.bias - 3), larger < 2.0 ** (f.precision + 2 - f.bias)
    lift = f.precision + 3
    scale = ex.select(big, f.number(0.125), ex.select(small, f.number(2.0**lift), f.number(1.0)))
    shift = ex.select(
        big,
        f.number(3 * math.log(2)),
        ex.select(small, f.number(-lift * math.log(2)), f.number(0.0)),
    )
    far = libm.log(libm.hypot(z.re * scale, z.im * scale)) + shift
    # Next to the unit circle the modulus would be rounded to one.
    circle = (larger > 0.5) & (larger < 2.0)
    excess = (larger - 1.0) * (larger + 1.0) + smaller * smaller
    near = 0.5 * libm.log1p(excess)
    return ex.select(circle & (excess < 3.0) & (excess > -0.5), near, far)


def log(z: Complex) -> Complex:
    """Natural logarithm."""
    return Complex(scaled_log(z), libm.atan2(z.im, z.re))


def log1p(z: Complex) -> Complex:
    """``log(1 + z)``, without cancellation near zero."""
    f = format_of(z.re)
    shifted = Complex(z.re + 1.0, z.im)
    excess = z.re * (z.re + 2.0) + z.im * z.im
    near = (excess > -0.5) & (excess < 2.0**f.precision)
    re = ex.select(near, 0.5 * libm.log1p(excess), scaled_log(shifted))
    return Complex(re, libm.atan2(z.im, shifted.re))


def _hyperbolic(z: Complex) -> tuple[Complex, Complex]:
    """Sine and cosine."""
    f = format_of(z.re)
    a, b = z
    sine, cosine = libm.sin_cos(b)
    size = ex.absolute(a)
    # Both are half of the exponential function; it may be out of range where the products are not.
    large = size > (10.0 if f.precision == 24 else 22.0)
    half = _exp_times(f, size, cosine, sine, halved=True)
    s, c = libm.sinh(a), libm.cosh(a)
    sinh_re = ex.select(large, product_sign(f, a, half.re), s * cosine)
    sinh_im = ex.select(large, half.im, c * sine)
    cosh_re = ex.select(large, half.re, c * cosine)
    cosh_im = ex.select(large, product_sign(f, a, half.im), s * sine)
    undefined = is_nan(a)
    sinh_value = choose(undefined, Complex(f.nan, f.nan), Complex(sinh_re, sinh_im))
    cosh_value = choose(undefined, Complex(f.nan, f.nan), Complex(cosh_re, cosh_im))
    # Zeros beside what is infinite or NaN.
    turning, flat, still = is_finite(b), ex.eq(b, 0.0), ex.eq(a, 0.0)
    sinh_value = Complex(
        ex.select((still | is_inf(a)) & ~turning, a, sinh_value.re),
        ex.select(flat, b, ex.select(turning, sinh_value.im, f.nan)),
    )
    zero = copysign(f.number(0.0), product_sign(f, a, b))
    cosh_value = Complex(
        ex.select(is_inf(a) & ~turning, f.inf, cosh_value.re),
        ex.select(flat | (still & ~turning), zero, ex.select(turning, cosh_value.im, f.nan)),
    )
    return sinh_value, cosh_value


def product_sign(f: Format, a: Expr, b: Expr) -> Expr:
    """``b`` with the sign of ``a * b``."""
    return f.from_bits(f.ubits(b) ^ (f.ubits(a) & f.sign_bit))


def sinh(z: Complex) -> Complex:
    """Hyperbolic sine."""
    return _hyperbolic(z)[0]


def cosh(z: Complex) -> Complex:
    """Hyperbolic cosine."""
    return _hyperbolic(z)[1]


def tanh(z: Complex) -> Complex:
    """Hyperbolic tangent: ``(sinh(a)*cosh(a) + sin(b)*cos(b)*1j) / (sinh(a)**2 + cos(b)**2)``."""
    f = format_of(z.re)
    a, b = z
    sine, cosine = libm.sin_cos(b)
    size = ex.absolute(a)
    large = size > (10.0 if f.precision == 24 else 20.0)
    s, c = libm.sinh(a), libm.cosh(a)
    product = sine * cosine
    norm = s * s + cosine * cosine
    near = Complex((s * c) / norm, product / norm)
    far = Complex(copysign(f.number(1.0), a), 4.0 * product * libm.exp(-2.0 * size))
    result = choose(large, far, near)
    flat, still, turning = ex.eq(b, 0.0), ex.eq(a, 0.0), is_finite(b)
    endless = is_inf(a)
    result = Complex(
        ex.select(is_nan(a) | ~turning, f.nan, result.re),
        ex.select(is_nan(a) | ~turning, f.nan, result.im),
    )
    # Zeros, and what infinity leaves whatever the angle is.
    zero = copysign(f.number(0.0), b)
    return Complex(
        ex.select(still, a, ex.select(endless, far.re, result.re)),
        ex.select(flat, b, ex.select(endless, zero, result.im)),
    )
