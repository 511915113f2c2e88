"""Extremes, and their positions, among the elements that are not NaN.

``axis`` may be given by position, as NumPy's users do. Integers and booleans hold no NaN and are reduced as they are.
"""

from __future__ import annotations

import math

from numr.array_api import _arguments as arg
from numr.array_api import searching_functions as searching
from numr.array_api.elementwise_functions import isnan
from numr.array_api.extras.nan_reductions import Axes, without_nan
from numr.array_api.searching_functions import where
from numr.errors import ShapeError
from numr.ir.ops import Reduction
from numr.layout import normalize_axis
from numr.tensor import primitives as p
from numr.tensor.core import Tensor

__all__ = ["nanargmax", "nanargmin", "nanmax", "nanmin"]


def nanmax(x: Tensor, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """Largest of the elements that are not NaN.

    Parameters
    ----------
    x : Tensor
        Real-valued; not empty along the axes.
    axis : int or tuple of int, optional
        The axes to reduce. Default: all.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        The maxima; NaN where all elements are NaN.

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
    >>> xp.nanmax(xp.asarray([1.0, xp.nan, 2.0]))
    Tensor(2., dtype=float64, device=cpu)
    """
    return _extremum("nanmax", x, axis, keepdims)


def nanmin(x: Tensor, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """Smallest of the elements that are not NaN.

    Parameters
    ----------
    x : Tensor
        Real-valued; not empty along the axes.
    axis : int or tuple of int, optional
        The axes to reduce. Default: all.
    keepdims : bool, default False
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        The minima; NaN where all elements are NaN.

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
    >>> xp.nanmin(xp.asarray([1.0, xp.nan, 2.0]))
    Tensor(1., dtype=float64, device=cpu)
    """
    return _extremum("nanmin", x, axis, keepdims)


def nanargmax(x: Tensor, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """Position of the largest of the elements that are not NaN.

    Parameters
    ----------
    x : Tensor
        Real-valued; not empty along the axis.
    axis : int, optional
        The axis to search along. Default: all elements, in C order.
    keepdims : bool, default False
        Whether the searched axis stays, with length 1.

    Returns
    -------
    Tensor
        Positions of the index dtype, the first among equals; -1 where all elements are NaN.

    Raises
    ------
    AxisError
        If the axis is out of range.
    DTypeError
        If ``x`` is complex.
    ShapeError
        If there are no elements to search.

    Notes
    -----
    NumPy raises ValueError where all elements are NaN; here nothing is read from the device to find out.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.nanargmax(xp.asarray([1.0, xp.nan, 2.0]))
    Tensor(2, dtype=int64, device=cpu)
    """
    return _position("nanargmax", x, axis, keepdims)


def nanargmin(x: Tensor, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """Position of the smallest of the elements that are not NaN.

    Parameters
    ----------
    x : Tensor
        Real-valued; not empty along the axis.
    axis : int, optional
        The axis to search along. Default: all elements, in C order.
    keepdims : bool, default False
        Whether the searched axis stays, with length 1.

    Returns
    -------
    Tensor
        Positions of the index dtype, the first among equals; -1 where all elements are NaN.

    Raises
    ------
    AxisError
        If the axis is out of range.
    DTypeError
        If ``x`` is complex.
    ShapeError
        If there are no elements to search.

    Notes
    -----
    NumPy raises ValueError where all elements are NaN; here nothing is read from the device to find out.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.nanargmin(xp.asarray([1.0, xp.nan, 2.0]))
    Tensor(0, dtype=int64, device=cpu)
    """
    return _position("nanargmin", x, axis, keepdims)


def _extremum(function: str, x: Tensor, axis: Axes, keepdims: bool) -> Tensor:
    x = arg.in_domain(function, arg.tensor(function, x), "real-valued")
    axes = arg.reduced_axes(function, x, axis)
    if not math.prod(x.shape[axis] for axis in axes):
        raise ShapeError(
            f"{function}: x has shape {x.shape} and no elements along axes {axes}; at least one is needed."
        )
    largest = function == "nanmax"
    kind = Reduction.MAX if largest else Reduction.MIN
    if x.dtype.kind != "f":
        return p.reduce(kind, x, axes, keepdims)
    found = p.reduce(kind, without_nan(x, -math.inf if largest else math.inf), axes, keepdims)
    return where(p.reduce(Reduction.ALL, isnan(x), axes, keepdims), math.nan, found)


def _position(function: str, x: Tensor, axis: int | None, keepdims: bool) -> Tensor:
    x = arg.in_domain(function, arg.tensor(function, x), "real-valued")
    if axis is not None:
        axis = normalize_axis(axis, x.ndim, function)
    if x.dtype.kind != "f":
        search = searching.argmax if function == "nanargmax" else searching.argmin
        return search(x, axis=axis, keepdims=keepdims)
    # Compared with the extremum, an infinity is found even beside NaN replaced by the same infinity.
    hits = x == _extremum(function.replace("arg", ""), x, axis, keepdims=True)
    position = searching.argmax(hits, axis=axis, keepdims=keepdims)
    axes = arg.reduced_axes(function, x, axis)
    return where(p.reduce(Reduction.ANY, hits, axes, keepdims), position, -1)
