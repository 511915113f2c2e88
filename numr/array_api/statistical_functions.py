"""Statistical functions of the standard."""

from __future__ import annotations

import math

from numr import dtypes as dt
from numr.array_api._arguments import Tensor, elementwise, in_domain, reduced_axes, tensor
from numr.array_api.cumulative_functions import (
    accumulation_dtype,
    cumulative_prod,
    cumulative_sum,
)
from numr.dtypes import DType
from numr.errors import DTypeError, ShapeError
from numr.ir import ops
from numr.ir.ops import Reduction
from numr.tensor import primitives as p

__all__ = [
    "cumulative_prod",
    "cumulative_sum",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
]

Axes = int | tuple[int, ...] | None


def max(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Maximum of the elements along axes.

    Parameters
    ----------
    x : Tensor
        A real-valued dtype; not empty along the axes.
    axis : int or tuple of int, optional
        The axes to reduce; by default all of them.
    keepdims : bool, optional
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        The maxima, of ``x``'s dtype; NaN where an element is NaN.

    Raises
    ------
    AxisError
        If an axis is out of range or named twice.
    DTypeError
        If ``x`` is complex.
    ShapeError
        If there are no elements to reduce.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.max(xp.asarray([[1, 5], [7, 2]]), axis=0).tolist()
    [7, 5]
    """
    return _extremum("max", Reduction.MAX, x, axis, keepdims)


def min(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Minimum of the elements along axes.

    Parameters
    ----------
    x : Tensor
        A real-valued dtype; not empty along the axes.
    axis : int or tuple of int, optional
        The axes to reduce; by default all of them.
    keepdims : bool, optional
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        The minima, of ``x``'s dtype; NaN where an element is NaN.

    Raises
    ------
    AxisError
        If an axis is out of range or named twice.
    DTypeError
        If ``x`` is complex.
    ShapeError
        If there are no elements to reduce.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.min(xp.asarray([[1, 5], [7, 2]]), axis=0).tolist()
    [1, 2]
    """
    return _extremum("min", Reduction.MIN, x, axis, keepdims)


def _extremum(function: str, kind: Reduction, x: Tensor, axis: Axes, keepdims: bool) -> Tensor:
    x = in_domain(function, tensor(function, x), "real-valued")
    axes = reduced_axes(function, x, axis)
    if not x.size and not _count(x, axes):
        raise ShapeError(
            f"{function}: x has shape {x.shape} and no elements along axes {axes}; at least one is "
            "needed, because nothing has no largest or smallest element."
        )
    return p.reduce(kind, x, axes, keepdims)


def sum(
    x: Tensor, /, *, axis: Axes = None, dtype: DType | None = None, keepdims: bool = False
) -> Tensor:
    """Sum of the elements along axes.

    Parameters
    ----------
    x : Tensor
        A numeric or boolean dtype.
    axis : int or tuple of int, optional
        The axes to reduce; by default all of them.
    dtype : dtype, optional
        The numeric dtype to compute in. By default ``x``'s own, except that booleans and integers narrower
        than the device's default integer dtype are summed in that (unsigned ones in the unsigned dtype of
        its width).
    keepdims : bool, optional
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        The sums; 0 where there are no elements.

    Raises
    ------
    AxisError
        If an axis is out of range or named twice.
    DTypeError
        If ``dtype`` is not numeric, or real for a complex ``x``.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> x = xp.asarray([[100, 100], [1, 2]], dtype=xp.int8)
    >>> xp.sum(x, axis=1).tolist(), xp.sum(x).dtype
    ([200, 3], dtype('int64'))
    """
    x = tensor("sum", x)
    axes = reduced_axes("sum", x, axis)
    return p.reduce(Reduction.SUM, x, axes, keepdims, accumulation_dtype("sum", x, dtype))


def prod(
    x: Tensor, /, *, axis: Axes = None, dtype: DType | None = None, keepdims: bool = False
) -> Tensor:
    """Product of the elements along axes.

    Parameters
    ----------
    x : Tensor
        A numeric or boolean dtype.
    axis : int or tuple of int, optional
        The axes to reduce; by default all of them.
    dtype : dtype, optional
        The numeric dtype to compute in. By default ``x``'s own, except that booleans and integers narrower
        than the device's default integer dtype are multiplied in that (unsigned ones in the unsigned dtype
        of its width).
    keepdims : bool, optional
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        The products; 1 where there are no elements.

    Raises
    ------
    AxisError
        If an axis is out of range or named twice.
    DTypeError
        If ``dtype`` is not numeric, or real for a complex ``x``.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.prod(xp.asarray([[2.0, 3.0], [4.0, 5.0]]), axis=0).tolist()
    [8.0, 15.0]
    """
    x = tensor("prod", x)
    axes = reduced_axes("prod", x, axis)
    return p.reduce(Reduction.PROD, x, axes, keepdims, accumulation_dtype("prod", x, dtype))


def mean(
    x: Tensor, /, *, axis: Axes = None, dtype: DType | None = None, keepdims: bool = False
) -> Tensor:
    """Arithmetic mean of the elements along axes.

    Parameters
    ----------
    x : Tensor
        A floating-point dtype; integers and booleans are taken as the device's default real dtype.
    axis : int or tuple of int, optional
        The axes to reduce; by default all of them.
    dtype : dtype, optional
        The floating-point dtype to compute in, beyond the standard. By default ``x``'s own, or the device's
        default real dtype for integers and booleans.
    keepdims : bool, optional
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        The means; NaN where there are no elements.

    Raises
    ------
    AxisError
        If an axis is out of range or named twice.
    DTypeError
        If ``dtype`` is not floating-point, or real for a complex ``x``.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.mean(xp.asarray([[1.0, 2.0], [4.0, 6.0]]), axis=1).tolist()
    [1.5, 5.0]
    """
    x = tensor("mean", x)
    axes = reduced_axes("mean", x, axis)
    result = _floating_dtype(x) if dtype is None else accumulation_dtype("mean", x, dtype)
    if result.kind not in "fc":
        raise DTypeError(
            f"mean: dtype is {result}, which is {dt.category_of(result)}; means are floating-point. Round or "
            "convert the result instead."
        )
    return p.cast(_mean(x, axes, keepdims, result), result)


def var(
    x: Tensor, /, *, axis: Axes = None, correction: int | float = 0.0, keepdims: bool = False
) -> Tensor:
    """Variance of the elements along axes: the mean squared distance from their mean.

    Parameters
    ----------
    x : Tensor
        A floating-point dtype; integers and booleans are taken as the device's default real dtype.
    axis : int or tuple of int, optional
        The axes to reduce; by default all of them.
    correction : int or float, optional
        What is subtracted from the number of elements M before the squares are divided by it; 1 gives
        the sample variance.
    keepdims : bool, optional
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        The variances; NaN where ``M - correction`` is 0 or less.

    Raises
    ------
    AxisError
        If an axis is out of range or named twice.

    Notes
    -----
    The mean is computed first and the squares of the distances from it second, so that a large mean does
    not drown a small variance. Beyond the standard, ``x`` may be complex: the distance is then the
    absolute value, and the variance real.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> x = xp.asarray([1.0, 2.0, 3.0, 4.0])
    >>> float(xp.var(x)), float(xp.var(x, correction=3))
    (1.25, 5.0)
    """
    x = tensor("var", x)
    axes = reduced_axes("var", x, axis)
    return p.cast(_variance(x, axes, correction, keepdims), dt.real_of(_floating_dtype(x)))


def std(
    x: Tensor, /, *, axis: Axes = None, correction: int | float = 0.0, keepdims: bool = False
) -> Tensor:
    """Standard deviation of the elements along axes: the square root of their variance.

    Parameters
    ----------
    x : Tensor
        A floating-point dtype; integers and booleans are taken as the device's default real dtype.
    axis : int or tuple of int, optional
        The axes to reduce; by default all of them.
    correction : int or float, optional
        What is subtracted from the number of elements M before the squares are divided by it; 1 gives
        the corrected sample deviation.
    keepdims : bool, optional
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        The deviations; NaN where ``M - correction`` is 0 or less.

    Raises
    ------
    AxisError
        If an axis is out of range or named twice.

    Notes
    -----
    See :func:`var`.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> float(xp.std(xp.asarray([1.0, 1.0, 5.0, 5.0])))
    2.0
    """
    x = tensor("std", x)
    axes = reduced_axes("std", x, axis)
    deviation = elementwise(ops.SQRT, _variance(x, axes, correction, keepdims))
    return p.cast(deviation, dt.real_of(_floating_dtype(x)))


def _floating_dtype(x: Tensor) -> DType:
    return x._client.defaults.real if x.dtype.kind in "biu" else x.dtype


def _mean(x: Tensor, axes: tuple[int, ...], keepdims: bool, dtype: DType) -> Tensor:
    """The mean in the dtype that it is computed in: the one given, or a wider one."""
    if dtype == dt.float16:
        # Its sums overflow at 65504, and it counts elements only up to 2048.
        dtype = dt.float32
    total = p.reduce(Reduction.SUM, x, axes, keepdims, dtype)
    return elementwise(ops.DIVIDE, total, _count(x, axes) or math.nan)


def _variance(x: Tensor, axes: tuple[int, ...], correction: float, keepdims: bool) -> Tensor:
    """The variance in the dtype that it is computed in."""
    total = p.squared_distances(x, _mean(x, axes, True, _floating_dtype(x)), axes, keepdims)
    divisor = _count(x, axes) - float(correction)
    return elementwise(ops.DIVIDE, total, divisor if divisor > 0 else math.nan)


def _count(x: Tensor, axes: tuple[int, ...]) -> int:
    """How many elements one result is made from."""
    return math.prod(x.shape[axis] for axis in axes)
