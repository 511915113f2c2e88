"""Diagonals and traces of matrices, products of vectors."""

from __future__ import annotations

from typing import Any

from numr.array_api.cumulative_functions import accumulation_dtype
from numr.array_api.linalg._matrices import matrices
from numr.array_api.linear_algebra_functions import axis_from_back, numeric_pair
from numr.errors import ShapeError
from numr.ir import ops
from numr.ir.ops import Reduction
from numr.layout import broadcast_shapes
from numr.tensor import primitives as p
from numr.tensor.core import Tensor, elementwise

__all__ = ["cross", "diagonal", "outer", "trace"]


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Cross product of vectors with three elements.

    Parameters
    ----------
    x1, x2 : Tensor
        Numeric. All axes but the vectors' broadcast against each other.
    axis : int, default -1
        The axis of the vectors, counted from the back: in ``[-N, -1]`` with the smaller number ``N`` of axes.

    Returns
    -------
    Tensor
        The cross products, of the broadcast shape and in the dtype that the arguments promote to.

    Raises
    ------
    ShapeError
        If the vectors do not have three elements, or the other axes do not broadcast.
    AxisError
        If ``axis`` is out of range.
    DTypeError
        If the dtypes do not promote to a numeric one.

    Notes
    -----
    As an extra, an ``axis`` that is not negative is accepted where both tensors have as many axes.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.linalg.cross(xp.asarray([1, 0, 0]), xp.asarray([0, 1, 0]))
    Tensor([0, 0, 1], dtype=int64, device=cpu)
    """
    left, right = numeric_pair("cross", x1, x2)
    axis = axis_from_back("cross", left, right, axis)
    if left.shape[axis] != 3 or right.shape[axis] != 3:
        raise ShapeError(
            f"cross: axis {axis} of shapes {left.shape} and {right.shape} must have length 3 in both; this "
            "axis does not broadcast."
        )
    broadcast_shapes(left.shape, right.shape, function="cross")
    rest = (slice(None),) * (-1 - axis)
    a, b = ([x[(..., slice(i, i + 1), *rest)] for i in range(3)] for x in (left, right))
    components = [
        elementwise(
            ops.SUBTRACT,
            elementwise(ops.MULTIPLY, a[i], b[j]),
            elementwise(ops.MULTIPLY, a[j], b[i]),
        )
        for i, j in ((1, 2), (2, 0), (0, 1))
    ]
    return p.concat(components, axis % components[0].ndim)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """Diagonals of matrices.

    Parameters
    ----------
    x : Tensor
        Any dtype, of shape ``(..., M, N)``.
    offset : int, default 0
        Which diagonal: 0 for the main one, positive above, negative below it.

    Returns
    -------
    Tensor
        A view whose last axis is the diagonal; empty where the offset lies outside of the matrix.

    Raises
    ------
    ShapeError
        If ``x`` has fewer than two axes.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.linalg.diagonal(xp.asarray([[1, 2], [3, 4]]))
    Tensor([1, 4], dtype=int64, device=cpu)
    """
    return _diagonal("diagonal", x, offset)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Outer product of two vectors.

    Parameters
    ----------
    x1, x2 : Tensor
        Numeric, of shapes ``(N,)`` and ``(M,)``.

    Returns
    -------
    Tensor
        All products, of shape ``(N, M)``, in the dtype that the arguments promote to. Nothing is conjugated.

    Raises
    ------
    ShapeError
        If an argument does not have one axis.
    DTypeError
        If the dtypes do not promote to a numeric one.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.linalg.outer(xp.asarray([1, 2]), xp.asarray([3, 4]))
    Tensor([[3, 4],
            [6, 8]], dtype=int64, device=cpu)
    """
    left, right = numeric_pair("outer", x1, x2)
    if left.ndim != 1 or right.ndim != 1:
        raise ShapeError(
            f"outer: got shapes {left.shape} and {right.shape}; both must have exactly one axis. For more, "
            "use tensordot(x1, x2, axes=0)."
        )
    return elementwise(ops.MULTIPLY, left[:, None], right)


def trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """Sum along a diagonal of matrices.

    Parameters
    ----------
    x : Tensor
        Numeric or boolean, of shape ``(..., M, N)``.
    offset : int, default 0
        Which diagonal: 0 for the main one, positive above, negative below it.
    dtype : dtype, optional
        The dtype to sum in. Default: that of ``x``, or for narrower integers (and booleans) the default
        integer dtype, unsigned where ``x`` is.

    Returns
    -------
    Tensor
        The traces, of shape ``(...)``; 0 for an empty diagonal.

    Raises
    ------
    ShapeError
        If ``x`` has fewer than two axes.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.linalg.trace(xp.asarray([[1, 2], [3, 4]]))
    Tensor(5, dtype=int64, device=cpu)
    """
    diagonal = _diagonal("trace", x, offset)
    dtype = accumulation_dtype("trace", diagonal, dtype)
    return p.reduce(Reduction.SUM, diagonal, (diagonal.ndim - 1,), False, dtype)


def _diagonal(function: str, x: Tensor, offset: int) -> Tensor:
    ndim = matrices(function, x).ndim
    return p.diagonal(x, offset, ndim - 2, ndim - 1)
