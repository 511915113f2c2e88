"""Sums and moments that leave NaN out.

``axis`` may be given by position, as NumPy's users do. Integers and booleans hold no NaN and are reduced as they are.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

from numr import dtypes as dt
from numr.array_api import _arguments as arg
from numr.array_api import cumulative_functions as cumulative
from numr.array_api import statistical_functions as statistical
from numr.array_api.elementwise_functions import abs, isnan, sqrt, square
from numr.array_api.searching_functions import where
from numr.dtypes import DType
from numr.ir.ops import Reduction
from numr.tensor import primitives as p
from numr.tensor.core import Tensor

__all__ = [
    "nancumsum",
    "nanmean",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
]

Axes: TypeAlias = int | tuple[int, ...] | None


def nansum(
    x: Tensor, axis: Axes = None, *, dtype: DType | None = None, keepdims: bool = False
) -> Tensor:
    """Sum of the elements that are not NaN.

    Parameters
    ----------
    x : Tensor
        Numeric or boolean.
    axis : int or tuple of int, optional
        The axes to reduce. Default: all.
    dtype : dtype, optional
        The dtype to sum in; the default is that of :func:`sum`.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        The sums; 0 where all elements are NaN.

    Raises
    ------
    AxisError
        If an axis is out of range or named twice.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.nansum(xp.asarray([1.0, xp.nan, 2.0]))
    Tensor(3., dtype=float64, device=cpu)
    """
    x = without_nan(arg.tensor("nansum", x), 0)
    return statistical.sum(x, axis=axis, dtype=dtype, keepdims=keepdims)


def nanprod(
    x: Tensor, axis: Axes = None, *, dtype: DType | None = None, keepdims: bool = False
) -> Tensor:
    """Product of the elements that are not NaN.

    Parameters
    ----------
    x : Tensor
        Numeric or boolean.
    axis : int or tuple of int, optional
        The axes to reduce. Default: all.
    dtype : dtype, optional
        The dtype to multiply in; the default is that of :func:`prod`.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        The products; 1 where all elements are NaN.

    Raises
    ------
    AxisError
        If an axis is out of range or named twice.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.nanprod(xp.asarray([3.0, xp.nan, 2.0]))
    Tensor(6., dtype=float64, device=cpu)
    """
    x = without_nan(arg.tensor("nanprod", x), 1)
    return statistical.prod(x, axis=axis, dtype=dtype, keepdims=keepdims)


def nancumsum(x: Tensor, axis: int | None = None, *, dtype: DType | None = None) -> Tensor:
    """Running sum in which NaN counts as 0.

    Parameters
    ----------
    x : Tensor
        Numeric or boolean.
    axis : int, optional
        The axis to run along. Default: all elements, in C order.
    dtype : dtype, optional
        The dtype to sum in; the default is that of :func:`sum`.

    Returns
    -------
    Tensor
        The sums, of the shape of ``x``, or of one axis.

    Raises
    ------
    AxisError
        If the axis is out of range.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.nancumsum(xp.asarray([1.0, xp.nan, 2.0]))
    Tensor([1., 1., 3.], dtype=float64, device=cpu)
    """
    x = without_nan(arg.tensor("nancumsum", x), 0)
    if axis is None:
        x, axis = p.reshape(x, (x.size,)), 0
    return cumulative.cumulative_sum(x, axis=axis, dtype=dtype)


def nanmean(x: Tensor, axis: Axes = None, *, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Mean of the elements that are not NaN.

    Parameters
    ----------
    x : Tensor
        Floating-point; integers and booleans are taken as the device's default real dtype.
    axis : int or tuple of int, optional
        The axes to reduce. Default: all.
    dtype : dtype, optional
        The floating-point dtype to compute in. Default: that of ``x``.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        The means; NaN where all elements are NaN.

    Raises
    ------
    AxisError
        If an axis is out of range or named twice.
    DTypeError
        If ``dtype`` is not floating-point.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.nanmean(xp.asarray([[1.0, xp.nan], [3.0, 4.0]]), axis=0)
    Tensor([2., 4.], dtype=float64, device=cpu)
    """
    x, result = _computed_in("nanmean", x, dtype)
    axes = arg.reduced_axes("nanmean", x, axis)
    return p.cast(_mean(x, axes, keepdims), result)


def nanvar(
    x: Tensor,
    axis: Axes = None,
    *,
    dtype: Any = None,
    ddof: float = 0,
    correction: float | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Variance of the elements that are not NaN.

    Parameters
    ----------
    x : Tensor
        Floating-point; integers and booleans are taken as the device's default real dtype.
    axis : int or tuple of int, optional
        The axes to reduce. Default: all.
    dtype : dtype, optional
        The floating-point dtype to compute in. Default: that of ``x``.
    ddof : int or float, default 0
        What is subtracted from the number of elements before the squares are divided by it.
    correction : int or float, optional
        The standard's name of ``ddof``; where given, it is used.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        The variances, real; NaN where not more than ``ddof`` elements are left.

    Raises
    ------
    AxisError
        If an axis is out of range or named twice.
    DTypeError
        If ``dtype`` is not floating-point.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.nanvar(xp.asarray([1.0, xp.nan, 3.0]))
    Tensor(1., dtype=float64, device=cpu)
    """
    x, result = _computed_in("nanvar", x, dtype)
    axes = arg.reduced_axes("nanvar", x, axis)
    variance = _variance(x, axes, ddof if correction is None else correction, keepdims)
    return p.cast(variance, dt.real_of(result))


def nanstd(
    x: Tensor,
    axis: Axes = None,
    *,
    dtype: Any = None,
    ddof: float = 0,
    correction: float | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Standard deviation of the elements that are not NaN.

    Parameters
    ----------
    x : Tensor
        Floating-point; integers and booleans are taken as the device's default real dtype.
    axis : int or tuple of int, optional
        The axes to reduce. Default: all.
    dtype : dtype, optional
        The floating-point dtype to compute in. Default: that of ``x``.
    ddof : int or float, default 0
        What is subtracted from the number of elements before the squares are divided by it.
    correction : int or float, optional
        The standard's name of ``ddof``; where given, it is used.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        The deviations, real; NaN where not more than ``ddof`` elements are left.

    Raises
    ------
    AxisError
        If an axis is out of range or named twice.
    DTypeError
        If ``dtype`` is not floating-point.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.nanstd(xp.asarray([1.0, xp.nan, 3.0]))
    Tensor(1., dtype=float64, device=cpu)
    """
    x, result = _computed_in("nanstd", x, dtype)
    axes = arg.reduced_axes("nanstd", x, axis)
    variance = _variance(x, axes, ddof if correction is None else correction, keepdims)
    return p.cast(sqrt(variance), dt.real_of(result))


def without_nan(x: Tensor, value: float) -> Tensor:
    """``x`` with a value in the place of NaN."""
    return where(isnan(x), value, x) if x.dtype.kind in "fc" else x


def _computed_in(function: str, x: Tensor, dtype: Any) -> tuple[Tensor, DType]:
    """``x`` in the dtype to compute in, and the dtype of the result."""
    x = arg.floating(function, arg.tensor(function, x))
    if dtype is not None:
        target = arg.requested_dtype(function, dtype, x._client)
        x = arg.in_domain(function, p.cast(x, target), "floating-point")
    # Sums of float16 overflow at 65504, and count elements only up to 2048.
    return (p.cast(x, dt.float32) if x.dtype == dt.float16 else x), x.dtype


def _count(x: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    """How many elements are not NaN, in the real dtype of ``x``."""
    integral = x._client.defaults.integral
    count = p.reduce(Reduction.SUM, ~isnan(x), axes, keepdims, integral)
    return p.cast(count, dt.real_of(x.dtype))


def _quotient(total: Tensor, divisor: Tensor) -> Tensor:
    """``total / divisor``, NaN where the divisor is not positive."""
    return total / where(divisor > 0, divisor, math.nan)


def _mean(x: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    total = p.reduce(Reduction.SUM, without_nan(x, 0), axes, keepdims)
    return _quotient(total, _count(x, axes, keepdims))


def _variance(x: Tensor, axes: tuple[int, ...], correction: float, keepdims: bool) -> Tensor:
    # Only NaN of x itself is left out; one that arises on the way, from infinities, is the result.
    distance = where(isnan(x), 0, x - _mean(x, axes, keepdims=True))
    total = p.reduce(Reduction.SUM, square(abs(distance)), axes, keepdims)
    return _quotient(total, _count(x, axes, keepdims) - float(correction))
