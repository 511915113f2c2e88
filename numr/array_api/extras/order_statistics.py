"""Medians and quantiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias

from numr import dtypes as dt
from numr.array_api import _arguments as arg
from numr.array_api.elementwise_functions import (
    ceil,
    floor,
    isfinite,
    isnan,
    maximum,
    minimum,
    round,
)
from numr.array_api.indexing_functions import take_along_axis
from numr.array_api.searching_functions import where
from numr.dtypes import DType
from numr.ir.ops import Reduction
from numr.tensor import primitives as p
from numr.tensor.core import Tensor

__all__ = ["median", "nanmedian", "nanquantile", "quantile"]

Axes: TypeAlias = int | tuple[int, ...] | None
Method: TypeAlias = Literal["linear", "lower", "higher", "nearest", "midpoint"]

METHODS = ("linear", "lower", "higher", "nearest", "midpoint")


def median(x: Tensor, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """Middle of the sorted elements, or the mean of the two in the middle.

    Parameters
    ----------
    x : Tensor
        Real-valued; integers and booleans are taken as the device's default real dtype.
    axis : int or tuple of int, optional
        The axes to reduce. Default: all.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        The medians; NaN where an element is NaN or there are none.

    Raises
    ------
    AxisError
        If an axis is out of range or named twice.
    DTypeError
        If ``x`` is complex.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.median(xp.asarray([3.0, 1.0, 2.0, 10.0]))
    Tensor(2.5, dtype=float64, device=cpu)
    """
    return _quantile("median", x, 0.5, axis, "midpoint", keepdims, skip_nan=False)


def nanmedian(x: Tensor, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """Median of the elements that are not NaN.

    Parameters
    ----------
    x : Tensor
        Real-valued; integers and booleans are taken as the device's default real dtype.
    axis : int or tuple of int, optional
        The axes to reduce. Default: all.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        The medians; NaN where all elements are NaN.

    Raises
    ------
    AxisError
        If an axis is out of range or named twice.
    DTypeError
        If ``x`` is complex.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.nanmedian(xp.asarray([3.0, 1.0, xp.nan]))
    Tensor(2., dtype=float64, device=cpu)
    """
    return _quantile("nanmedian", x, 0.5, axis, "midpoint", keepdims, skip_nan=True)


def quantile(
    x: Tensor,
    q: float | Sequence[float] | Tensor,
    axis: Axes = None,
    *,
    method: Method = "linear",
    keepdims: bool = False,
) -> Tensor:
    """Values below which given fractions of the elements lie.

    Parameters
    ----------
    x : Tensor
        Real-valued; integers and booleans are taken as the device's default real dtype.
    q : float, sequence of float or Tensor
        The fractions, from 0 to 1. Those of a tensor are not checked but taken as the nearer end.
    axis : int or tuple of int, optional
        The axes to reduce. Default: all.
    method : {"linear", "lower", "higher", "nearest", "midpoint"}, default "linear"
        What to take at a place between two sorted elements: the weighted mean, the lower, the higher, or the
        nearer one (of equally near ones that at an even place), or the mean of both.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        The quantiles, of the shape of ``q`` followed by the axes of ``x`` that stay; NaN where an element is
        NaN or there are none.

    Raises
    ------
    ValueError
        If a fraction is out of range or the method unknown.
    AxisError
        If an axis is out of range or named twice.
    DTypeError
        If ``x`` or ``q`` is complex.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.quantile(xp.asarray([1.0, 2.0, 4.0]), [0.25, 0.5])
    Tensor([1.5, 2. ], dtype=float64, device=cpu)
    """
    return _quantile("quantile", x, q, axis, method, keepdims, skip_nan=False)


def nanquantile(
    x: Tensor,
    q: float | Sequence[float] | Tensor,
    axis: Axes = None,
    *,
    method: Method = "linear",
    keepdims: bool = False,
) -> Tensor:
    """Quantiles of the elements that are not NaN.

    Parameters
    ----------
    x : Tensor
        Real-valued; integers and booleans are taken as the device's default real dtype.
    q : float, sequence of float or Tensor
        The fractions, from 0 to 1. Those of a tensor are not checked but taken as the nearer end.
    axis : int or tuple of int, optional
        The axes to reduce. Default: all.
    method : {"linear", "lower", "higher", "nearest", "midpoint"}, default "linear"
        What to take at a place between two sorted elements, see :func:`quantile`.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        The quantiles, of the shape of ``q`` followed by the axes of ``x`` that stay; NaN where all elements
        are NaN.

    Raises
    ------
    ValueError
        If a fraction is out of range or the method unknown.
    AxisError
        If an axis is out of range or named twice.
    DTypeError
        If ``x`` or ``q`` is complex.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.nanquantile(xp.asarray([1.0, xp.nan, 2.0]), 0.5)
    Tensor(1.5, dtype=float64, device=cpu)
    """
    return _quantile("nanquantile", x, q, axis, method, keepdims, skip_nan=True)


def _quantile(
    function: str,
    x: Tensor,
    q: float | Sequence[float] | Tensor,
    axis: Axes,
    method: Method,
    keepdims: bool,
    *,
    skip_nan: bool,
) -> Tensor:
    x = arg.floating(function, arg.tensor(function, x), "real-valued floating-point")
    if method not in METHODS:
        raise ValueError(
            f"{function}: method {method!r} is unknown; it must be one of {', '.join(METHODS)}."
        )
    fractions = _fractions(function, q, x)
    axes = arg.reduced_axes(function, x, axis)
    kept = tuple(axis for axis in range(x.ndim) if axis not in axes)
    batch = tuple(x.shape[axis] for axis in kept)
    count = math.prod(x.shape[axis] for axis in axes)
    shape = tuple(1 if axis in axes else n for axis, n in enumerate(x.shape))
    result_shape = fractions.shape + (shape if keepdims else batch)
    if not count:
        return p.full(x._client, result_shape, math.nan, x.dtype)
    ordered = p.sort(
        p.reshape(p.permute(x, kept + axes), (*batch, count)), len(batch), descending=False
    )
    nan = isnan(ordered)
    if skip_nan:
        valid = ~nan
        integral = x._client.defaults.integral
        present = p.reduce(Reduction.SUM, valid, (len(batch),), True, integral)
        size: Tensor | int = present
        undefined = present == 0
    else:
        size, undefined = count, nan[..., -1:]  # NaN is sorted last
    flat = p.reshape(fractions, (1,) * len(batch) + (fractions.size,))
    found = where(undefined, math.nan, _between(ordered, flat, size, method))
    front = p.permute(found, (len(batch), *range(len(batch))))
    return p.reshape(front, result_shape)


def _fractions(function: str, q: float | Sequence[float] | Tensor, x: Tensor) -> Tensor:
    """The fractions as a tensor in the device's default real dtype."""
    client = x._client
    dtype: DType = client.defaults.real
    if isinstance(q, Tensor):
        arg.tensors(function, x, q)
        return p.cast(arg.in_domain(function, q, "real-valued"), dtype)
    several = isinstance(q, Sequence) or getattr(q, "ndim", 0) > 0
    values: list[float] = list(q) if several else [q]  # type: ignore[arg-type, list-item]
    for value in values:
        if dt.scalar_type_of(value) is None or not 0 <= value <= 1:
            raise ValueError(
                f"{function}: q is {q!r}; fractions are numbers from 0 to 1. Percentages must be divided by 100."
            )
    parts = [p.full(client, (1,), float(value), dtype) for value in values]
    if not several:
        return p.reshape(parts[0], ())
    return p.concat(parts, 0) if parts else p.empty(client, (0,), dtype)


def _between(ordered: Tensor, q: Tensor, size: Tensor | int, method: Method) -> Tensor:
    """What lies at the fractions ``q`` of the first ``size`` elements of the last axis."""
    last = p.cast(size, q.dtype) - 1 if isinstance(size, Tensor) else size - 1
    place = q * last
    if method == "nearest":
        place = round(place)
    elif method == "higher":
        place = ceil(place)
    below = floor(place)
    low = _element(ordered, below, last)
    if method in ("lower", "nearest", "higher"):
        return low
    high = _element(ordered, ceil(place), last)
    weight = p.cast(place - below, ordered.dtype)
    if method == "midpoint":
        weight = where(weight > 0, 0.5, weight)
    return _weighted(low, high, weight)


def _element(ordered: Tensor, place: Tensor, last: Tensor | int) -> Tensor:
    index = p.cast(maximum(minimum(place, last), 0), ordered._client.defaults.indexing)
    return take_along_axis(ordered, index, axis=-1)


def _weighted(low: Tensor, high: Tensor, weight: Tensor) -> Tensor:
    """``low + (high - low) * weight``, exact at both ends, and defined where only one of them is infinite."""
    finite = isfinite(low) & isfinite(high)
    start, stop = where(finite, low, 0), where(finite, high, 0)
    distance = stop - start
    between = where(weight < 0.5, start + distance * weight, stop - distance * (1 - weight))
    # An infinity outweighs any number, wherever between them; opposite infinities have no mean.
    outweighing = where(finite, 0, low) + where(finite, 0, high)
    return where(weight == 0, low, where(finite, between, outweighing))
