"""The error function and the normal distribution, both ways."""

from __future__ import annotations

import math
from typing import Final

from numr.array_api.special import tables
from numr.array_api.special._formula import Formula, Value, chebyshev, select
from numr.ir import ops
from numr.tensor.core import Tensor

__all__ = ["erf", "erfc", "erfcinv", "erfcx", "erfinv", "log_ndtr", "ndtr", "ndtri"]

_ROOT: Final = math.sqrt(2.0)


def _near(x: Value) -> Value:
    """``erf(x)`` for ``abs(x) <= 1``."""
    square = x * x
    return x * chebyshev(square + square - 1.0, tables.ERF)


def _scaled(a: Value) -> Value:
    """``exp(a**2) erfc(a)`` for ``a >= 0``."""
    u = 1.0 - 4.0 / (a + 2.0)  # (a - 2) / (a + 2), infinity included
    return chebyshev(u, tables.ERFCX) / (1.0 + (a + a))


def _gauss(a: Value) -> Value:
    """``exp(-a**2)`` for ``0 <= a <= 30``: the square of a few leading bits is exact, what remains is small."""
    head = (a * 16.0).apply(ops.ROUND) * 0.0625
    rest = (a - head) * (a + head)
    return (-(head * head)).apply(ops.EXP) * (-rest).apply(ops.EXP)


def _tail(a: Value) -> Value:
    """``erfc(a)`` for ``a >= 0``; from 30 on there is nothing left in any dtype."""
    bounded = a.apply(ops.MINIMUM, 30.0)
    return _gauss(bounded) * _scaled(bounded)


def _erf(x: Value) -> Value:
    a = abs(x)
    far = (1.0 - _tail(a)).apply(ops.COPYSIGN, x)
    return select(a < 1.0, _near(x), far)


def erfc_of(x: Value) -> Value:
    """``erfc`` as a part of other formulas."""
    tail = _tail(abs(x))
    return select(abs(x) < 0.5, 1.0 - _near(x), select(x < 0.0, 2.0 - tail, tail))


def _erfcx(x: Value) -> Value:
    a = abs(x)
    gauss = (x * x).apply(ops.EXP)
    return select(x < 0.0, (gauss + gauss) - _scaled(a), _scaled(a))


def _ndtr(x: Value) -> Value:
    return erfc_of(x * (-1.0 / _ROOT)) * 0.5


def _log_ndtr(x: Value) -> Value:
    below = (_scaled(abs(x) * (1.0 / _ROOT)) * 0.5).apply(ops.LOG) - x * x * 0.5
    above = (erfc_of(x * (1.0 / _ROOT)) * -0.5).apply(ops.LOG1P)
    return select(x < -1.0, below, above)


def _slope(w: Value) -> Value:
    """``erfinv(y) / y`` where ``w = -log(1 - y**2)``."""
    s = w.apply(ops.SQRT)
    centre = chebyshev(w * 0.4 - 1.0, tables.ERFINV_CENTRE)
    middle = chebyshev(s * 0.5 - 2.0, tables.ERFINV_MIDDLE)
    tail = chebyshev((s - 17.0) * (1.0 / 11.0), tables.ERFINV_TAIL)
    return select(w < 4.5, centre, select(s < 6.0, middle, tail))


def _erfinv(y: Value) -> Value:
    inner = y * _slope(-((1.0 - y) * (1.0 + y)).apply(ops.LOG))
    edge = y.constant(math.inf).apply(ops.COPYSIGN, y)
    return select(abs(y) == 1.0, edge, inner)


def _erfcinv(q: Value) -> Value:
    # A tail near 2 is that of the other side, whose distance from 2 is exact.
    other = q > 1.0
    p = select(other, 2.0 - q, q)
    inner = (1.0 - p) * _slope(-(p * (2.0 - p)).apply(ops.LOG))
    found = select(p == 0.0, math.inf, inner)
    return select(other, -found, found)


def _ndtri(p: Value) -> Value:
    return _erfcinv(p + p) * -_ROOT + 0.0  # a median of zero has no sign


_ERF: Final = Formula("erf", _erf)
_ERFC: Final = Formula("erfc", erfc_of)
_ERFCX: Final = Formula("erfcx", _erfcx)
_ERFINV: Final = Formula("erfinv", _erfinv)
_ERFCINV: Final = Formula("erfcinv", _erfcinv)
_NDTR: Final = Formula("ndtr", _ndtr)
_NDTRI: Final = Formula("ndtri", _ndtri)
_LOG_NDTR: Final = Formula("log_ndtr", _log_ndtr)


def erf(x: Tensor, /) -> Tensor:
    """The error function: twice the integral of ``exp(-t**2) / sqrt(pi)`` from 0 to ``x``.

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
    >>> special.erf(xp.asarray([0.0, 1.0]))
    Tensor([0.        , 0.84270079], dtype=float64, device=cpu)
    """
    return _ERF(x)


def erfc(x: Tensor, /) -> Tensor:
    """What the error function lacks to one, ``1 - erf(x)``, without its cancellation.

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
    >>> special.erfc(xp.asarray([0.0, 5.0]))
    Tensor([1.00000000e+00, 1.53745979e-12], dtype=float64, device=cpu)
    """
    return _ERFC(x)


def erfcx(x: Tensor, /) -> Tensor:
    """``exp(x**2) * erfc(x)``, which neither overflows nor underflows for large ``x``.

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
    >>> special.erfcx(xp.asarray([0.0, 50.0]))
    Tensor([1.        , 0.01128154], dtype=float64, device=cpu)
    """
    return _ERFCX(x)


def erfinv(y: Tensor, /) -> Tensor:
    """The inverse of the error function; NaN outside -1 to 1.

    Parameters
    ----------
    y : Tensor
        Real-valued dtype; integers become the device's default floating-point dtype.

    Returns
    -------
    Tensor
        Of the tensor's shape.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> from numr.array_api import special
    >>> special.erfinv(xp.asarray([0.5, 1.0]))
    Tensor([0.47693628,        inf], dtype=float64, device=cpu)
    """
    return _ERFINV(y)


def erfcinv(y: Tensor, /) -> Tensor:
    """The inverse of ``erfc``; NaN outside 0 to 2.

    Parameters
    ----------
    y : Tensor
        Real-valued dtype; integers become the device's default floating-point dtype.

    Returns
    -------
    Tensor
        Of the tensor's shape.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> from numr.array_api import special
    >>> special.erfcinv(xp.asarray([0.0, 0.5]))
    Tensor([       inf, 0.47693628], dtype=float64, device=cpu)
    """
    return _ERFCINV(y)


def ndtr(x: Tensor, /) -> Tensor:
    """The distribution function of the standard normal distribution.

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
    >>> special.ndtr(xp.asarray([-1.0, 0.0]))
    Tensor([0.15865525, 0.5       ], dtype=float64, device=cpu)
    """
    return _NDTR(x)


def ndtri(p: Tensor, /) -> Tensor:
    """The quantiles of the standard normal distribution, the inverse of ``ndtr``.

    Parameters
    ----------
    p : Tensor
        Real-valued dtype; integers become the device's default floating-point dtype.

    Returns
    -------
    Tensor
        Of the tensor's shape.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> from numr.array_api import special
    >>> special.ndtri(xp.asarray([0.025, 0.5]))
    Tensor([-1.95996398,  0.        ], dtype=float64, device=cpu)
    """
    return _NDTRI(p)


def log_ndtr(x: Tensor, /) -> Tensor:
    """The logarithm of ``ndtr``, for arguments too where ``ndtr`` underflows.

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
    >>> special.log_ndtr(xp.asarray([-50.0, 0.0]))
    Tensor([-1.25483136e+03, -6.93147181e-01], dtype=float64, device=cpu)
    """
    return _LOG_NDTR(x)
