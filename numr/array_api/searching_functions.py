"""Searching functions of the standard."""

from __future__ import annotations

from typing import Literal

from numr import dtypes as dt
from numr.array_api._arguments import (
    Tensor,
    elementwise,
    in_domain,
    promoted,
    reduced_axes,
    tensor,
    tensors,
)
from numr.array_api.indexing_functions import index_values
from numr.dtypes import Scalar
from numr.errors import ShapeError
from numr.ir import ops
from numr.ir.ops import Reduction
from numr.layout import normalize_axis
from numr.tensor import primitives as p

__all__ = ["argmax", "argmin", "count_nonzero", "nonzero", "searchsorted", "where"]


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Position of the first maximum along an axis.

    Parameters
    ----------
    x : Tensor
        A real-valued dtype; not empty along the axis.
    axis : int, optional
        The axis to search along; by default ``x`` is searched as if it had one axis.
    keepdims : bool, optional
        Whether the searched axes stay, with length 1.

    Returns
    -------
    Tensor
        Positions, of the index dtype. The first NaN counts as the maximum.

    Raises
    ------
    AxisError
        If the axis is out of range.
    DTypeError
        If ``x`` is complex.
    ShapeError
        If there are no elements to search.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> x = xp.asarray([[1, 5, 5], [7, 2, 3]])
    >>> int(xp.argmax(x)), xp.argmax(x, axis=1).tolist()
    (3, [1, 0])
    """
    return _position("argmax", Reduction.MAX, x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Position of the first minimum along an axis.

    Parameters
    ----------
    x : Tensor
        A real-valued dtype; not empty along the axis.
    axis : int, optional
        The axis to search along; by default ``x`` is searched as if it had one axis.
    keepdims : bool, optional
        Whether the searched axes stay, with length 1.

    Returns
    -------
    Tensor
        Positions, of the index dtype. The first NaN counts as the minimum.

    Raises
    ------
    AxisError
        If the axis is out of range.
    DTypeError
        If ``x`` is complex.
    ShapeError
        If there are no elements to search.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> x = xp.asarray([[1, 5, 5], [7, 2, 3]])
    >>> int(xp.argmin(x)), xp.argmin(x, axis=1).tolist()
    (0, [0, 1])
    """
    return _position("argmin", Reduction.MIN, x, axis, keepdims)


def _position(
    function: str, kind: Reduction, x: Tensor, axis: int | None, keepdims: bool
) -> Tensor:
    x = in_domain(function, tensor(function, x), "real-valued")
    searched = p.reshape(x, (x.size,)) if axis is None else x
    along = 0 if axis is None else normalize_axis(axis, x.ndim, function)
    if not searched.shape[along]:
        where_ = "" if axis is None else f" along axis {along}"
        raise ShapeError(
            f"{function}: x has shape {x.shape} and no elements{where_}; at least one is needed."
        )
    if axis is None and keepdims:
        return p.reshape(p.argreduce(kind, searched, 0, keepdims=False), (1,) * x.ndim)
    return p.argreduce(kind, searched, along, keepdims)


def count_nonzero(
    x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False
) -> Tensor:
    """How many elements along axes are not zero.

    Parameters
    ----------
    x : Tensor
        Any dtype and shape. NaN is not zero; a complex number is zero where both components are.
    axis : int or tuple of int, optional
        The axes to count over; by default all of them.
    keepdims : bool, optional
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        The counts, of the index dtype.

    Raises
    ------
    AxisError
        If an axis is out of range or named twice.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.count_nonzero(xp.asarray([[0, 1, 2], [0, 0, 3]]), axis=1).tolist()
    [2, 1]
    """
    x = tensor("count_nonzero", x)
    axes = reduced_axes("count_nonzero", x, axis)
    counted = p.cast(x, dt.bool_)
    return p.reduce(Reduction.SUM, counted, axes, keepdims, x._client.defaults.indexing)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """Positions of the elements that are not zero.

    Parameters
    ----------
    x : Tensor
        Any dtype; at least one axis. NaN is not zero.

    Returns
    -------
    tuple of Tensor
        For each axis the positions along it, one-dimensional and of the index dtype, in C order of the
        elements.

    Raises
    ------
    ShapeError
        If ``x`` has no axes.

    Notes
    -----
    The shape depends on the values, so the call waits for the device.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> rows, columns = xp.nonzero(xp.asarray([[0, 1], [2, 0]]))
    >>> rows.tolist(), columns.tolist()
    ([0, 1], [1, 0])
    """
    x = tensor("nonzero", x)
    if not x.ndim:
        raise ShapeError(
            "nonzero: x has no axes, so its elements have no position. Give it one with "
            "reshape(x, (1,))."
        )
    return p.nonzero(x)


def searchsorted(
    x1: Tensor,
    x2: Tensor | int | float,
    /,
    *,
    side: Literal["left", "right"] = "left",
    sorter: Tensor | None = None,
) -> Tensor:
    """Positions at which values can be inserted into a sorted tensor so that it stays sorted.

    Parameters
    ----------
    x1 : Tensor
        A real-valued dtype, one axis, sorted as by :func:`sort`: ascending, NaN last.
    x2 : Tensor, int or float
        The values; a real-valued dtype, any shape.
    side : {"left", "right"}, optional
        Whether a value goes before or behind the elements that equal it.
    sorter : Tensor, optional
        Integer positions that sort ``x1``, as from :func:`argsort`; then ``x1`` itself need not be sorted.

    Returns
    -------
    Tensor
        Positions between 0 and the length of ``x1``, of ``x2``'s shape and the index dtype.

    Raises
    ------
    DTypeError
        If the dtypes are not real-valued or do not promote, or the sorter's is not an integer dtype.
    ShapeError
        If ``x1`` does not have one axis, or the sorter another shape.
    ValueError
        If ``side`` is neither of the two.
    DeviceMismatch
        If the tensors are on different devices.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> x = xp.asarray([1, 3, 3, 5])
    >>> xp.searchsorted(x, xp.asarray([0, 3, 6])).tolist()
    [0, 1, 4]
    >>> int(xp.searchsorted(x, 3, side="right"))
    3
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side is {side!r}; it must be 'left' or 'right'.")
    x1, values = promoted("searchsorted", tensor("searchsorted", x1), x2)
    in_domain("searchsorted", x1, "real-valued")
    if x1.ndim != 1:
        raise ShapeError(
            f"searchsorted: x1 has shape {x1.shape}; it must have one axis. Search several sorted "
            "sequences one by one."
        )
    if sorter is not None:
        x1, sorter = tensors("searchsorted", x1, sorter)
        if sorter.shape != x1.shape:
            raise ShapeError(
                f"searchsorted: the sorter has shape {sorter.shape}, x1 has {x1.shape}; they must be "
                "equal."
            )
        x1 = p.gather(x1, (index_values("searchsorted", sorter),))
    return p.searchsorted(x1, values, side)


def where(condition: Tensor, x1: Tensor | Scalar, x2: Tensor | Scalar, /) -> Tensor:
    """Elements of one tensor where a condition holds, of another where it does not.

    Parameters
    ----------
    condition : Tensor
        A boolean tensor.
    x1, x2 : Tensor, bool, int, float or complex
        The values where the condition is True and where it is False. All three broadcast together.

    Returns
    -------
    Tensor
        A new tensor of the broadcast shape and the dtype that ``x1`` and ``x2`` promote to.

    Raises
    ------
    DTypeError
        If the condition is not boolean, or the dtypes do not promote.
    ShapeError
        If the shapes do not broadcast.
    DeviceMismatch
        If the tensors are on different devices.

    Notes
    -----
    Beyond the standard, both values may be scalars; the result then has the device's default dtype of
    their kind.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> x = xp.asarray([1.0, -2.0, 3.0])
    >>> xp.where(x > 0, x, 0).tolist()
    [1.0, 0.0, 3.0]
    """
    return elementwise(ops.SELECT, tensor("where", condition), x1, x2)
