"""Inverse functions of complex numbers, by the formulas of W. Kahan, which lose no digits at the branch cuts."""

from __future__ import annotations

import math

from numr.codegen import expr as ex
from numr.codegen import libm
from numr.codegen.complexes import Complex, choose, has_inf, larger_component, scaled_log, sqrt
from numr.codegen.expr import Expr
from numr.codegen.libm.formats import Format, copysign, format_of, is_finite, is_inf, is_nan

__all__ = ["acos", "acosh", "asin", "asinh", "atan", "atanh"]


def _is_large(f: Format, z: Complex) -> Expr:
    """Whether 1 does not count beside ``z``, or ``z`` is not finite."""
    finite = is_finite(z.re) & is_finite(z.im)
    return ~finite | (larger_component(z) > 2.0 ** (f.precision + 2))


def _log_of_double(f: Format, z: Complex) -> Expr:
    """``log(2 * abs(z))``; infinite where a component is, even beside NaN."""
    return ex.select(has_inf(z), f.inf, scaled_log(z) + f.number(math.log(2)))


def _roots(z: Complex) -> tuple[Complex, Complex]:
    """The square roots of ``1 - z`` and ``1 + z``."""
    return sqrt(Complex(1.0 - z.re, -z.im)), sqrt(Complex(1.0 + z.re, z.im))


def _bounded(f: Format, z: Complex) -> tuple[Expr, Complex]:
    """Whether ``z`` is large, and ``z`` or else some other number."""
    large = _is_large(f, z)
    other = Complex(f.number(0.5), f.number(0.5))
    return large, choose(large, other, z)


def acos(z: Complex) -> Complex:
    """Inverse cosine."""
    f = format_of(z.re)
    large, w = _bounded(f, z)
    p, q = _roots(w)
    angle = 2.0 * libm.atan2(p.re, q.re)
    height = libm.asinh(ex.absolute(q.re * p.im - q.im * p.re))
    re = ex.select(large, libm.atan2(ex.absolute(z.im), z.re), angle)
    im = ex.select(large, _log_of_double(f, z), height)
    # Of no real part the angle is known even beside NaN.
    re = ex.select(ex.eq(z.re, 0.0) & is_nan(z.im), f.number(math.pi / 2), re)
    return Complex(re, ex.select(is_nan(im), im, copysign(im, -z.im)))


def acosh(z: Complex) -> Complex:
    """Inverse hyperbolic cosine: ``acos(z)`` turned into the right half-plane."""
    w = acos(z)
    return Complex(ex.absolute(w.im), copysign(w.re, z.im))


def asinh(z: Complex) -> Complex:
    """Inverse hyperbolic sine."""
    f = format_of(z.re)
    large, w = _bounded(f, z)
    # asin(1j * w) = 1j * asinh(w)
    p, q = _roots(Complex(-w.im, w.re))
    height = libm.asinh(ex.absolute(p.re * q.im - p.im * q.re))
    angle = libm.atan2(ex.absolute(w.im), p.re * q.re - p.im * q.im)
    re = copysign(ex.select(large, _log_of_double(f, z), height), z.re)
    im = ex.select(large, libm.atan2(ex.absolute(z.im), ex.absolute(z.re)), angle)
    # Real numbers stay real even where they are NaN.
    return Complex(re, ex.select(ex.eq(z.im, 0.0), z.im, copysign(im, z.im)))


def asin(z: Complex) -> Complex:
    """Inverse sine: ``-1j * asinh(1j * z)``."""
    w = asinh(Complex(-z.im, z.re))
    return Complex(w.im, -w.re)


def atanh(z: Complex) -> Complex:
    """Inverse hyperbolic tangent."""
    f = format_of(z.re)
    large, w = _bounded(f, z)
    a, b = ex.absolute(w.re), ex.absolute(w.im)
    to_pole = 1.0 - a
    re = 0.25 * libm.log1p(4.0 * a / (to_pole * to_pole + b * b))
    # Straight above the pole the square of a small distance is lost.
    pole = ex.eq(a, 1.0) & (b < 0.5)
    re = ex.select(pole, 0.5 * (libm.log(libm.hypot(b, f.number(2.0))) - libm.log(b)), re)
    im = 0.5 * libm.atan2(2.0 * b, to_pole * (1.0 + a) - b * b)

    # Far out: the reciprocal's real part, and a quarter turn.
    scale = ex.select(larger_component(z) > 2.0 ** (f.bias - 4), f.number(0.0625), f.number(1.0))
    size = libm.hypot(z.re * scale, z.im * scale)
    far = scale * ((ex.absolute(z.re) * scale / size) / size)
    infinite, undefined = has_inf(z), is_nan(z.re) | is_nan(z.im)
    far = ex.select(infinite, f.number(0.0), ex.select(undefined, f.nan, far))
    far = ex.select(ex.eq(z.re, 0.0), f.number(0.0), far)
    quarter = f.number(math.pi / 2)
    known = is_inf(z.im) | ~undefined
    return Complex(
        copysign(ex.select(large, far, re), z.re),
        ex.select(
            ex.eq(z.im, 0.0) & ~undefined & ~(ex.absolute(z.re) > 1.0),
            z.im,
            copysign(ex.select(large, ex.select(known, quarter, f.nan), im), z.im),
        ),
    )


def atan(z: Complex) -> Complex:
    """Inverse tangent: ``-1j * atanh(1j * z)``."""
    w = atanh(Complex(-z.im, z.re))
    return Complex(w.im, -w.re)
