"""Modified Bessel functions of the first kind, of orders zero and one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from numr.array_api.special import tables
from numr.array_api.special._formula import Formula, Value, chebyshev, select
from numr.ir import ops
from numr.tensor.core import Tensor

__all__ = ["i0", "i0e", "i1", "i1e"]


def _scaled(a: Value, near: Value, far_table: Sequence[float]) -> Value:
    """A function times ``exp(-a)``, from its value up to 8 and the table of what is beyond."""
    beyond = a.apply(ops.MAXIMUM, 8.0)
    far = chebyshev(16.0 / beyond - 1.0, far_table) / beyond.apply(ops.SQRT)
    return select(a < 8.0, near, far)


def _i0e(x: Value) -> Value:
    a = abs(x)
    return _scaled(a, chebyshev(a * 0.25 - 1.0, tables.I0_NEAR), tables.I0_FAR)


def _i1e(x: Value) -> Value:
    a = abs(x)
    value = _scaled(a, a * chebyshev(a * 0.25 - 1.0, tables.I1_NEAR), tables.I1_FAR)
    return value.apply(ops.COPYSIGN, x)


def _unscaled(x: Value, scaled: Value) -> Value:
    # Half the exponent twice: exp(a) overflows before the function does.
    half = (abs(x) * 0.5).apply(ops.EXP)
    return select(abs(x) == float("inf"), x, scaled * half * half)


def _i0(x: Value) -> Value:
    return abs(_unscaled(x, _i0e(x)))


def _i1(x: Value) -> Value:
    return _unscaled(x, _i1e(x))


_I0: Final = Formula("i0", _i0)
_I1: Final = Formula("i1", _i1)
_I0E: Final = Formula("i0e", _i0e)
_I1E: Final = Formula("i1e", _i1e)


def i0(x: Tensor, /) -> Tensor:
    """The modified Bessel function of order zero.

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
    >>> special.i0(xp.asarray([0.0, 1.0]))
    Tensor([1.        , 1.26606588], dtype=float64, device=cpu)
    """
    return _I0(x)


def i0e(x: Tensor, /) -> Tensor:
    """``exp(-abs(x)) * i0(x)``, which does not overflow.

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
    >>> special.i0e(xp.asarray([0.0, 1000.0]))
    Tensor([1.        , 0.01261724], dtype=float64, device=cpu)
    """
    return _I0E(x)


def i1(x: Tensor, /) -> Tensor:
    """The modified Bessel function of order one.

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
    >>> special.i1(xp.asarray([0.0, 1.0]))
    Tensor([0.       , 0.5651591], dtype=float64, device=cpu)
    """
    return _I1(x)


def i1e(x: Tensor, /) -> Tensor:
    """``exp(-abs(x)) * i1(x)``, which does not overflow.

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
    >>> special.i1e(xp.asarray([0.0, 1000.0]))
    Tensor([0.        , 0.01261093], dtype=float64, device=cpu)
    """
    return _I1E(x)
