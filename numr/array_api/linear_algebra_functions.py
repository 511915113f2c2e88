"""The linear algebra of the main namespace: products that work for every numeric dtype."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import SupportsIndex

from numr.array_api import _arguments as arg
from numr.errors import AxisError, ShapeError
from numr.ir import ops
from numr.layout import broadcast_shapes, normalize_axes
from numr.tensor import primitives as p
from numr.tensor.core import Tensor, elementwise

__all__ = ["matmul", "matrix_transpose", "tensordot", "vecdot"]


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Matrix product.

    Parameters
    ----------
    x1 : Tensor
        Numeric, of shape ``(..., M, K)``, or ``(K,)`` for one row.
    x2 : Tensor
        Numeric, of shape ``(..., K, N)``, or ``(K,)`` for one column. The axes before the last two
        broadcast against those of ``x1``.

    Returns
    -------
    Tensor
        The products, of shape ``(..., M, N)`` without the axes that a one-dimensional argument does not
        have, in the dtype that the arguments promote to. Integers wrap around; nothing is conjugated.

    Raises
    ------
    ShapeError
        If an argument has no axes, or the shapes do not fit.
    DTypeError
        If the dtypes do not promote to a numeric one.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> a = xp.asarray([[1, 2], [3, 4]])
    >>> xp.matmul(a, xp.asarray([1, 1]))
    Tensor([3, 7], dtype=int64, device=cpu)
    """
    left, right = numeric_pair("matmul", x1, x2)
    first, second = left.shape, right.shape
    if not first or not second:
        raise ShapeError(
            f"matmul: got shapes {first} and {second}; both need at least one axis. Multiply by a scalar with "
            "multiply() or *."
        )
    rows, columns = len(first) > 1, len(second) > 1
    inner = -2 if columns else -1
    if first[-1] != second[inner]:
        raise ShapeError(
            f"matmul: shapes {first} and {second} do not fit: axis -1 of the first has length {first[-1]}, axis "
            f"{inner} of the second {second[inner]}, and they must be equal. Transpose with matrix_transpose() "
            "if the axes are swapped."
        )
    if len(first) > 2 and len(second) > 2:
        broadcast_shapes(first[:-2], second[:-2], function="matmul")
    product = p.matmul(left if rows else left[None, :], right if columns else right[:, None])
    if not columns:
        product = product[..., 0]
    if not rows:
        product = product[..., 0, :] if columns else product[..., 0]
    return product


def matrix_transpose(x: Tensor, /) -> Tensor:
    """Transpose of a matrix, or of each matrix in a stack.

    Parameters
    ----------
    x : Tensor
        Any dtype, of shape ``(..., M, N)``.

    Returns
    -------
    Tensor
        A view of shape ``(..., N, M)``. Complex elements are not conjugated.

    Raises
    ------
    ShapeError
        If ``x`` has fewer than two axes.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.matrix_transpose(xp.asarray([[1, 2], [3, 4]]))
    Tensor([[1, 3],
            [2, 4]], dtype=int64, device=cpu)
    """
    ndim = arg.tensor("matrix_transpose", x).ndim
    if ndim < 2:
        raise ShapeError(
            f"matrix_transpose: got shape {x.shape}; at least two axes are needed. Insert one with "
            "expand_dims() first."
        )
    return p.permute(x, (*range(ndim - 2), ndim - 1, ndim - 2))


def tensordot(
    x1: Tensor,
    x2: Tensor,
    /,
    *,
    axes: int | tuple[Sequence[int], Sequence[int]] = 2,
) -> Tensor:
    """Contraction of two tensors over pairs of axes.

    Parameters
    ----------
    x1, x2 : Tensor
        Numeric.
    axes : int or tuple of two sequences of int, default 2
        A number ``n`` contracts the last ``n`` axes of ``x1`` with the first ``n`` of ``x2``, in order; 0 gives the
        outer product. Two sequences name the axes of ``x1`` and the axes of ``x2`` that belong together.

    Returns
    -------
    Tensor
        The remaining axes of ``x1``, then those of ``x2``, in the dtype that the arguments promote to.
        Nothing is conjugated.

    Raises
    ------
    ShapeError
        If contracted axes differ in length or number.
    AxisError
        If an axis is out of range or named twice.
    DTypeError
        If the dtypes do not promote to a numeric one.

    Notes
    -----
    As an extra, a sequence of one axis may be written as a plain integer: ``axes=(0, 1)``.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> a = xp.reshape(xp.arange(6), (2, 3))
    >>> xp.tensordot(a, a, axes=((1,), (1,)))
    Tensor([[ 5, 14],
            [14, 50]], dtype=int64, device=cpu)
    """
    left, right = numeric_pair("tensordot", x1, x2)
    first, second = _contracted_axes(left, right, axes)
    lengths = tuple(left.shape[axis] for axis in first)
    if lengths != tuple(right.shape[axis] for axis in second):
        raise ShapeError(
            f"tensordot: axes {first} of shape {left.shape} and axes {second} of shape {right.shape} are "
            "contracted pairwise and must have equal lengths; contracted axes do not broadcast."
        )
    free = tuple(axis for axis in range(left.ndim) if axis not in first)
    rest = tuple(axis for axis in range(right.ndim) if axis not in second)
    rows = tuple(left.shape[axis] for axis in free)
    columns = tuple(right.shape[axis] for axis in rest)
    if not first:
        # Nothing is summed: multiply() is exact where a product of matrices adds to zero.
        return elementwise(ops.MULTIPLY, p.reshape(left, rows + (1,) * len(columns)), right)
    inner = math.prod(lengths)
    product = p.matmul(
        p.reshape(p.permute(left, free + first), (math.prod(rows), inner)),
        p.reshape(p.permute(right, second + rest), (inner, math.prod(columns))),
    )
    return p.reshape(product, rows + columns)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Dot product of vectors, the first one conjugated.

    Parameters
    ----------
    x1, x2 : Tensor
        Numeric. All axes but the vectors' broadcast against each other.
    axis : int, default -1
        The axis of the vectors, counted from the back: in ``[-N, -1]`` with the smaller number ``N`` of axes.

    Returns
    -------
    Tensor
        The dot products, of the broadcast shape without ``axis``, in the dtype that the arguments promote to.

    Raises
    ------
    ShapeError
        If the vectors differ in length, or the other axes do not broadcast.
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
    >>> xp.vecdot(xp.asarray([1j, 2]), xp.asarray([1j, 1]))
    Tensor(3.+0.j, dtype=complex128, device=cpu)
    """
    left, right = numeric_pair("vecdot", x1, x2)
    axis = axis_from_back("vecdot", left, right, axis)
    if left.shape[axis] != right.shape[axis]:
        raise ShapeError(
            f"vecdot: the vectors along axis {axis} of shapes {left.shape} and {right.shape} must be of "
            "equal length; this axis does not broadcast."
        )
    if left.dtype.kind == "c":
        left = elementwise(ops.CONJ, left)
    left, right = _axis_last(left, axis), _axis_last(right, axis)
    broadcast_shapes(left.shape, right.shape, function="vecdot")
    return p.matmul(left[..., None, :], right[..., :, None])[..., 0, 0]


def numeric_pair(function: str, x1: Tensor, x2: Tensor) -> tuple[Tensor, Tensor]:
    """Two tensors of one device, as their common numeric dtype."""
    same = (
        isinstance(x1, Tensor)
        and isinstance(x2, Tensor)
        and x1._client is x2._client
        and x1.dtype == x2.dtype
    )
    # Products of small matrices are called often, and mostly need no conversion.
    left, right = (x1, x2) if same else arg.promoted(function, *arg.tensors(function, x1, x2))
    arg.in_domain(function, left, "numeric")
    return left, right


def axis_from_back(function: str, x1: Tensor, x2: Tensor, axis: SupportsIndex) -> int:
    """The axis that two tensors of possibly different rank share, as a negative number."""
    index = operator.index(axis)
    ndim = min(x1.ndim, x2.ndim)
    if index >= 0 and x1.ndim == x2.ndim and index < ndim:
        return index - ndim
    if not -ndim <= index < 0:
        raise AxisError(
            f"{function}: axis {index} is out of range for shapes {x1.shape} and {x2.shape}: it counts "
            "from the back, "
            + (f"from {-ndim} to -1." if ndim else "and a tensor without axes has none.")
        )
    return index


def _axis_last(x: Tensor, axis: int) -> Tensor:
    axis %= x.ndim
    return p.permute(x, (*range(axis), *range(axis + 1, x.ndim), axis))


def _contracted_axes(
    x1: Tensor, x2: Tensor, axes: int | tuple[Sequence[int], Sequence[int]]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if isinstance(axes, tuple | list):
        if len(axes) != 2:
            raise ShapeError(
                f"tensordot: axes {axes!r} has {len(axes)} entries; it must be an integer, or the axes of "
                "the first tensor and the axes of the second."
            )
        first, second = (
            normalize_axes(
                (given,) if isinstance(given, SupportsIndex) else tuple(given), x.ndim, "tensordot"
            )
            for given, x in zip(axes, (x1, x2), strict=True)
        )
        if len(first) != len(second):
            raise ShapeError(
                f"tensordot: axes {axes!r} names {len(first)} axes of the first tensor and {len(second)} of "
                "the second; they are contracted pairwise and must be as many."
            )
        return first, second
    count = operator.index(axes)
    if not 0 <= count <= min(x1.ndim, x2.ndim):
        raise AxisError(
            f"tensordot: cannot contract {count} axes of shapes {x1.shape} and {x2.shape}; axes must be from "
            f"0 to {min(x1.ndim, x2.ndim)}."
        )
    return tuple(range(x1.ndim - count, x1.ndim)), tuple(range(count))
