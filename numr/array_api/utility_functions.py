"""Utility functions of the standard."""

from __future__ import annotations

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
from numr.array_api.manipulation_functions import concat
from numr.ir import ops
from numr.ir.ops import Reduction
from numr.layout import normalize_axis
from numr.tensor import primitives as p

__all__ = ["all", "any", "diff"]


def all(
    x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False
) -> Tensor:
    """Whether all elements along axes are true.

    Parameters
    ----------
    x : Tensor
        Any dtype and shape. All values but zero are true, NaN among them.
    axis : int or tuple of int, optional
        The axes to reduce; by default all of them.
    keepdims : bool, optional
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        The answers, as ``bool``; True where there are no elements.

    Raises
    ------
    AxisError
        If an axis is out of range or named twice.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.all(xp.asarray([[1, 2], [0, 3]]), axis=1).tolist()
    [True, False]
    """
    x = tensor("all", x)
    return p.reduce(Reduction.ALL, x, reduced_axes("all", x, axis), keepdims, dt.bool_)


def any(
    x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False
) -> Tensor:
    """Whether any element along axes is true.

    Parameters
    ----------
    x : Tensor
        Any dtype and shape. All values but zero are true, NaN among them.
    axis : int or tuple of int, optional
        The axes to reduce; by default all of them.
    keepdims : bool, optional
        Whether the reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        The answers, as ``bool``; False where there are no elements.

    Raises
    ------
    AxisError
        If an axis is out of range or named twice.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.any(xp.asarray([[0, 2], [0, 0]]), axis=1).tolist()
    [True, False]
    """
    x = tensor("any", x)
    return p.reduce(Reduction.ANY, x, reduced_axes("any", x, axis), keepdims, dt.bool_)


def diff(
    x: Tensor,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """Differences of neighbours along an axis, taken n times.

    Parameters
    ----------
    x : Tensor
        A numeric dtype; at least one axis.
    axis : int, optional
        The axis; by default the last.
    n : int, optional
        How often differences are taken; 0 gives the values themselves.
    prepend, append : Tensor, optional
        Values to set before and behind ``x`` along the axis first; their other axes are as long as those
        of ``x``.

    Returns
    -------
    Tensor
        A new tensor, ``n`` shorter along the axis than all values together (but not below 0), of the
        dtype that they promote to. Unsigned integers wrap around.

    Raises
    ------
    AxisError
        If the axis is out of range.
    DTypeError
        If the dtype is not numeric, or the dtypes do not promote.
    ShapeError
        If the values to set before or behind do not fit ``x``.
    ValueError
        If ``n`` is negative.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> x = xp.asarray([1, 4, 9, 16])
    >>> xp.diff(x).tolist(), xp.diff(x, n=2).tolist()
    ([3, 5, 7], [2, 2])
    >>> xp.diff(x, prepend=xp.asarray([0])).tolist()
    [1, 3, 5, 7]
    """
    x = tensor("diff", x)
    axis = normalize_axis(axis, x.ndim, "diff")
    if n < 0:
        raise ValueError(f"diff: n is {n}; differences are taken 0 times or more.")
    parts = tensors("diff", *(part for part in (prepend, x, append) if part is not None))
    for part in parts:
        in_domain("diff", part, "numeric")
    result = concat(promoted("diff", *parts), axis=axis) if len(parts) > 1 else x
    before: tuple[slice, ...] = (slice(None),) * axis
    for _ in range(n):
        result = elementwise(
            ops.SUBTRACT, result[(*before, slice(1, None))], result[(*before, slice(None, -1))]
        )
    return p.copy(result) if result is x else result
