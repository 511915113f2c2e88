"""NumPy's names for rearranging axes, and diagonal matrices."""

from __future__ import annotations

from collections.abc import Sequence

from numr.array_api import _arguments as arg
from numr.errors import AxisError, ShapeError
from numr.layout import normalize_axes, normalize_axis
from numr.tensor import primitives as p
from numr.tensor.core import Tensor

__all__ = ["diag", "ravel", "swapaxes", "transpose"]


def diag(x: Tensor, k: int = 0) -> Tensor:
    """The diagonal of a matrix, or the matrix of a diagonal.

    Parameters
    ----------
    x : Tensor
        Any dtype, of one or two axes.
    k : int, default 0
        Which diagonal: 0 for the main one, positive above, negative below it.

    Returns
    -------
    Tensor
        Of two axes: a view of the diagonal. Of one axis: a new square matrix with zeros elsewhere.

    Raises
    ------
    ShapeError
        If ``x`` does not have one or two axes.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.diag(xp.asarray([1, 2]))
    Tensor([[1, 0],
            [0, 2]], dtype=int64, device=cpu)
    >>> xp.diag(xp.asarray([[1, 2], [3, 4]]), 1)
    Tensor([2], dtype=int64, device=cpu)
    """
    arg.tensor("diag", x)
    if x.ndim == 2:
        return p.diagonal(x, k, 0, 1)
    if x.ndim != 1:
        raise ShapeError(
            f"diag: got shape {x.shape}; one axis gives a matrix, two give a diagonal. For stacks of "
            "matrices use linalg.diagonal()."
        )
    length = x.shape[0] + abs(k)
    matrix = p.full(x._client, (length, length), 0, x.dtype)
    p.assign(p.diagonal(matrix, k, 0, 1), x)
    return matrix


def ravel(x: Tensor) -> Tensor:
    """The elements along one axis, in C order.

    Parameters
    ----------
    x : Tensor
        Any dtype and shape.

    Returns
    -------
    Tensor
        Of one axis: a view where there is one, else a copy.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.ravel(xp.asarray([[1, 2], [3, 4]]))
    Tensor([1, 2, 3, 4], dtype=int64, device=cpu)
    """
    return p.reshape(arg.tensor("ravel", x), (x.size,))


def swapaxes(x: Tensor, axis1: int, axis2: int) -> Tensor:
    """The view with two axes exchanged.

    Parameters
    ----------
    x : Tensor
        Any dtype.
    axis1, axis2 : int
        The axes.

    Returns
    -------
    Tensor
        The view.

    Raises
    ------
    AxisError
        If an axis is out of range.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.swapaxes(xp.zeros((2, 3, 4)), 0, -1).shape
    (4, 3, 2)
    """
    ndim = arg.tensor("swapaxes", x).ndim
    first, second = (normalize_axis(axis, ndim, "swapaxes") for axis in (axis1, axis2))
    order = list(range(ndim))
    order[first], order[second] = second, first
    return p.permute(x, tuple(order))


def transpose(x: Tensor, axes: Sequence[int] | None = None) -> Tensor:
    """The view with its axes in another order.

    Parameters
    ----------
    x : Tensor
        Any dtype.
    axes : sequence of int, optional
        The axes in their new order. Default: reversed.

    Returns
    -------
    Tensor
        The view.

    Raises
    ------
    AxisError
        If ``axes`` does not name every axis once.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.transpose(xp.zeros((2, 3, 4))).shape
    (4, 3, 2)
    """
    ndim = arg.tensor("transpose", x).ndim
    if axes is None:
        return p.permute(x, tuple(reversed(range(ndim))))
    order = normalize_axes(tuple(axes), ndim, "transpose")
    if len(order) != ndim:
        raise AxisError(
            f"transpose: axes {tuple(axes)} name {len(order)} axes of shape {x.shape}; all {ndim} must be "
            "named. To move some of them use moveaxis()."
        )
    return p.permute(x, order)
