"""Logarithms with their limits at zero, entropies and the logistic function."""

from __future__ import annotations

import math
from typing import Final

from numr.array_api.special._formula import Formula, Value, select
from numr.ir import ops
from numr.tensor.core import Tensor

__all__ = ["entr", "expit", "kl_div", "log_expit", "logit", "rel_entr", "xlog1py", "xlogy"]


def _is_nan(x: Value) -> Value:
    return x.apply(ops.ISNAN)


def _expit(x: Value) -> Value:
    e = (-abs(x)).apply(ops.EXP)
    return select(x < 0.0, e, 1.0) / (1.0 + e)


def _log_expit(x: Value) -> Value:
    return x.apply(ops.MINIMUM, 0.0) - (-abs(x)).apply(ops.EXP).apply(ops.LOG1P)


def _logit(p: Value) -> Value:
    # About one half the difference from it is exact, and so is what the logarithms are taken of.
    s = (p - 0.5) * 2.0
    centre = s.apply(ops.LOG1P) - (-s).apply(ops.LOG1P)
    outside = (p / (1.0 - p)).apply(ops.LOG)
    return select((p > 0.3) & (p < 0.65), centre, outside)


def _entr(x: Value) -> Value:
    value = -(x * x.apply(ops.LOG))
    return select(x == 0.0, x, select(x < 0.0, -math.inf, value))


def _xlogy(x: Value, y: Value) -> Value:
    return select((x == 0.0) & ~_is_nan(y), 0.0, x * y.apply(ops.LOG))


def _xlog1py(x: Value, y: Value) -> Value:
    return select((x == 0.0) & ~_is_nan(y), 0.0, x * y.apply(ops.LOG1P))


def _rel_entr(x: Value, y: Value) -> Value:
    nan = _is_nan(x) | _is_nan(y)
    inside = x * (x / y).apply(ops.LOG)
    # A quotient that overflows or underflows loses what the difference of logarithms keeps.
    quotient = x / y
    kept = (quotient > 0.0) & (quotient < math.inf)
    apart = x * (x.apply(ops.LOG) - y.apply(ops.LOG))
    positive = select(kept, inside, apart)
    edge = select((x == 0.0) & (y >= 0.0), 0.0, math.inf)
    value = select((x > 0.0) & (y > 0.0), positive, edge)
    return select(nan, math.nan, value)


def _kl_div(x: Value, y: Value) -> Value:
    both = (x > 0.0) & (y > 0.0)
    edge = select((x == 0.0) & (y >= 0.0), y, math.inf)
    value = select(both, _rel_entr(x, y) - x + y, edge)
    return select(_is_nan(x) | _is_nan(y), math.nan, value)


_EXPIT: Final = Formula("expit", _expit)
_LOG_EXPIT: Final = Formula("log_expit", _log_expit)
_LOGIT: Final = Formula("logit", _logit)
_ENTR: Final = Formula("entr", _entr)
_XLOGY: Final = Formula("xlogy", _xlogy)
_XLOG1PY: Final = Formula("xlog1py", _xlog1py)
_REL_ENTR: Final = Formula("rel_entr", _rel_entr)
_KL_DIV: Final = Formula("kl_div", _kl_div)


def expit(x: Tensor, /) -> Tensor:
    """The logistic function ``1 / (1 + exp(-x))``.

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
    >>> special.expit(xp.asarray([0.0, 1.0]))
    Tensor([0.5       , 0.73105858], dtype=float64, device=cpu)
    """
    return _EXPIT(x)


def log_expit(x: Tensor, /) -> Tensor:
    """The logarithm of the logistic function.

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
    >>> special.log_expit(xp.asarray([0.0, -1000.0]))
    Tensor([-6.93147181e-01, -1.00000000e+03], dtype=float64, device=cpu)
    """
    return _LOG_EXPIT(x)


def logit(p: Tensor, /) -> Tensor:
    """The inverse of the logistic function, ``log(p / (1 - p))``.

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
    >>> special.logit(xp.asarray([0.5, 0.75]))
    Tensor([0.        , 1.09861229], dtype=float64, device=cpu)
    """
    return _LOGIT(p)


def entr(x: Tensor, /) -> Tensor:
    """``-x * log(x)``, zero at zero and minus infinity below it.

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
    >>> special.entr(xp.asarray([0.0, 0.5]))
    Tensor([0.        , 0.34657359], dtype=float64, device=cpu)
    """
    return _ENTR(x)


def xlogy(x: Tensor | float, y: Tensor | float, /) -> Tensor:
    """``x * log(y)``, zero where ``x`` is.

    Parameters
    ----------
    x, y : Tensor or number
        Real-valued dtype, or numbers; at least one tensor. Shapes broadcast.

    Returns
    -------
    Tensor
        Of the broadcast shape.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> from numr.array_api import special
    >>> special.xlogy(xp.asarray([0.0, 2.0]), 0.5)
    Tensor([ 0.        , -1.38629436], dtype=float64, device=cpu)
    """
    return _XLOGY(x, y)


def xlog1py(x: Tensor | float, y: Tensor | float, /) -> Tensor:
    """``x * log(1 + y)``, zero where ``x`` is.

    Parameters
    ----------
    x, y : Tensor or number
        Real-valued dtype, or numbers; at least one tensor. Shapes broadcast.

    Returns
    -------
    Tensor
        Of the broadcast shape.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> from numr.array_api import special
    >>> special.xlog1py(xp.asarray([0.0, 2.0]), -0.5)
    Tensor([ 0.        , -1.38629436], dtype=float64, device=cpu)
    """
    return _XLOG1PY(x, y)


def rel_entr(x: Tensor | float, y: Tensor | float, /) -> Tensor:
    """``x * log(x / y)`` of positive numbers, zero where ``x`` is, infinity below.

    Parameters
    ----------
    x, y : Tensor or number
        Real-valued dtype, or numbers; at least one tensor. Shapes broadcast.

    Returns
    -------
    Tensor
        Of the broadcast shape.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> from numr.array_api import special
    >>> special.rel_entr(xp.asarray([0.0, 2.0]), 1.0)
    Tensor([0.        , 1.38629436], dtype=float64, device=cpu)
    """
    return _REL_ENTR(x, y)


def kl_div(x: Tensor | float, y: Tensor | float, /) -> Tensor:
    """``x * log(x / y) - x + y`` of positive numbers, ``y`` where ``x`` is zero, infinity below.

    Parameters
    ----------
    x, y : Tensor or number
        Real-valued dtype, or numbers; at least one tensor. Shapes broadcast.

    Returns
    -------
    Tensor
        Of the broadcast shape.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> from numr.array_api import special
    >>> special.kl_div(xp.asarray([0.0, 2.0]), 1.0)
    Tensor([1.        , 0.38629436], dtype=float64, device=cpu)
    """
    return _KL_DIV(x, y)
