"""The logarithm of the gamma function and its derivative."""

from __future__ import annotations

import math
from typing import Final

from numr.array_api.special import tables
from numr.array_api.special._formula import Formula, Value, chebyshev, select
from numr.ir import ops
from numr.tensor.core import Tensor

__all__ = ["digamma", "gammaln", "psi"]

#: The series of Stirling: ``B(2n) / (2n (2n - 1))`` for log-gamma, ``B(2n) / 2n`` for its derivative.
_STIRLING: Final = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
_DERIVED: Final = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
#: Steps by which an argument of ``psi`` below 10 is moved up.
_SHIFT: Final = 10


def _horner(z: Value, coefficients: tuple[float, ...]) -> Value:
    result = z * coefficients[-1] + coefficients[-2]
    for c in coefficients[-3::-1]:
        result = result * z + c
    return result


def stirling_of(y: Value) -> Value:
    """``log(gamma(y))`` less the leading terms of Stirling's formula, for ``y >= 8``."""
    inverse = 1.0 / y
    return inverse * _horner(inverse * inverse, _STIRLING)


def log_gamma_of_positive(x: Value) -> Value:
    """``log(gamma(x))`` for ``x >= 0``."""
    small = x < 0.5
    y = select(small, x + 1.0, x)
    t1, t2 = y - 1.0, y - 2.0
    about_one = t1 * chebyshev(t1 + t1, tables.LOG_GAMMA_1)
    about_two = t2 * chebyshev(t2 + t2, tables.LOG_GAMMA_2)
    middle = chebyshev((y - 5.25) * (1.0 / 2.75), tables.LOG_GAMMA_MIDDLE)
    constant = 0.5 * math.log(2 * math.pi) - 0.5
    large = (y - 0.5) * (y.apply(ops.LOG) - 1.0) + (stirling_of(y) + constant)
    value = select(y < 1.5, about_one, select(y < 2.5, about_two, select(y < 8.0, middle, large)))
    return select(small, value - x.apply(ops.LOG), value)


def log_gamma_of_one_more(a: Value) -> Value:
    """``log(gamma(1 + a))`` for ``a >= 0``, which small numbers keep their digits in."""
    return select(a < 0.5, a * chebyshev(a + a, tables.LOG_GAMMA_1), log_gamma_of_positive(a + 1.0))


def _from_whole(a: Value) -> Value:
    """How far a number is from the nearest whole one."""
    return a - a.apply(ops.ROUND)


def _gammaln(x: Value) -> Value:
    a = abs(x)
    value = log_gamma_of_positive(a)
    sine = abs((_from_whole(a) * math.pi).apply(ops.SIN))
    reflected = (math.pi / (a * sine)).apply(ops.LOG) - value
    # Whole numbers below zero are poles, and so is all that is too large to be anything else.
    pole = sine == 0.0
    below = select(pole | (a == math.inf), math.inf, reflected)
    return select(x < 0.0, below, value)


def _psi(x: Value) -> Value:
    # Reflected where negative: psi(x) = psi(1 - x) - pi / tan(pi x).
    negative = x < 0.0
    y = select(negative, 1.0 - x, x)
    small = y < float(_SHIFT)
    total = 1.0 / y
    for k in range(1, _SHIFT):
        total = total + 1.0 / (y + float(k))
    z = select(small, y + float(_SHIFT), y)
    inverse = 1.0 / z
    square = inverse * inverse
    large = (z.apply(ops.LOG) - inverse * 0.5) - square * _horner(square, _DERIVED)
    value = select(small, large - total, large)
    angle = _from_whole(x) * math.pi
    reflected = value - math.pi / angle.apply(ops.TAN)
    pole = negative & (angle == 0.0)
    at_zero = select(x == 0.0, x.constant(math.inf).apply(ops.COPYSIGN, -x), value)
    return select(pole | (x == -math.inf), math.nan, select(negative, reflected, at_zero))


_GAMMALN: Final = Formula("gammaln", _gammaln)
_PSI: Final = Formula("psi", _psi)


def gammaln(x: Tensor, /) -> Tensor:
    """The logarithm of the gamma function's absolute value.

    Parameters
    ----------
    x : Tensor
        Real-valued dtype; integers become the device's default floating-point dtype.

    Returns
    -------
    Tensor
        Of the tensor's shape.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> from numr.array_api import special
    >>> special.gammaln(xp.asarray([0.5, 10.0]))
    Tensor([ 0.57236494, 12.80182748], dtype=float64, device=cpu)
    """
    return _GAMMALN(x)


def psi(x: Tensor, /) -> Tensor:
    """The derivative of the logarithm of the gamma function, the digamma function.

    Parameters
    ----------
    x : Tensor
        Real-valued dtype; integers become the device's default floating-point dtype.

    Returns
    -------
    Tensor
        Of the tensor's shape.

    Notes
    -----
    Near its zeros, of which one is positive, the error is small beside one and not beside the value.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> from numr.array_api import special
    >>> special.psi(xp.asarray([1.0, 10.0]))
    Tensor([-0.57721566,  2.25175259], dtype=float64, device=cpu)
    """
    return _PSI(x)


#: Another name of ``psi``.
digamma: Final = psi
