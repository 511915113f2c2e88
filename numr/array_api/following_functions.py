"""Creation functions of the standard that follow other tensors: on their devices, without a runtime of their own."""

from __future__ import annotations

from typing import Any

from numr.array_api._arguments import requested_dtype, tensor, tensors
from numr.array_api._values import diagonal_offsets, filled
from numr.dtypes import DType, Scalar
from numr.errors import ShapeError
from numr.ir import ops
from numr.layout import normalize_shape
from numr.runtime.client import RuntimeClient
from numr.runtime.device import Device
from numr.runtime.registry import client_of
from numr.tensor import primitives as p
from numr.tensor.core import Tensor, elementwise

__all__ = ["empty_like", "full_like", "meshgrid", "ones_like", "tril", "triu", "zeros_like"]


Shape = int | tuple[int, ...]


def _like(
    x: Tensor, shape: Shape | None, dtype: Any, device: Device | str | None, function: str
) -> tuple[RuntimeClient[Any], tuple[int, ...], DType]:
    tensor(function, x)
    client = x._client if device is None else client_of(device)
    lengths = x.shape if shape is None else normalize_shape(shape, function)
    return client, lengths, x.dtype if dtype is None else requested_dtype(function, dtype, client)


def empty_like(
    x: Tensor,
    /,
    *,
    dtype: Any = None,
    device: Device | str | None = None,
    shape: Shape | None = None,
) -> Tensor:
    """A tensor of ``x``'s shape, dtype and device, where no others are given; its elements are arbitrary.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.empty_like(xp.zeros((2, 3))).shape
    (2, 3)
    """
    client, lengths, target = _like(x, shape, dtype, device, "empty_like")
    return p.empty(client, lengths, target)


def zeros_like(
    x: Tensor,
    /,
    *,
    dtype: Any = None,
    device: Device | str | None = None,
    shape: Shape | None = None,
) -> Tensor:
    """Zeros in ``x``'s shape, dtype and device, where no others are given.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.zeros_like(xp.asarray([1, 2]))
    Tensor([0, 0], dtype=int64, device=cpu)
    """
    client, lengths, target = _like(x, shape, dtype, device, "zeros_like")
    return p.full(client, lengths, 0, target)


def ones_like(
    x: Tensor,
    /,
    *,
    dtype: Any = None,
    device: Device | str | None = None,
    shape: Shape | None = None,
) -> Tensor:
    """Ones in ``x``'s shape, dtype and device, where no others are given.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.ones_like(xp.asarray([0.5, 2.0]))
    Tensor([1., 1.], dtype=float64, device=cpu)
    """
    client, lengths, target = _like(x, shape, dtype, device, "ones_like")
    return p.full(client, lengths, 1, target)


def full_like(
    x: Tensor,
    /,
    fill_value: Scalar,
    *,
    dtype: Any = None,
    device: Device | str | None = None,
    shape: Shape | None = None,
) -> Tensor:
    """One value in ``x``'s shape, dtype and device, where no others are given.

    Raises
    ------
    DTypeError
        If the dtype is of a kind that does not hold the value.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.full_like(xp.asarray([0.5, 2.0]), 3)
    Tensor([3., 3.], dtype=float64, device=cpu)
    """
    client, lengths, target = _like(x, shape, dtype, device, "full_like")
    return filled(client, lengths, fill_value, target, "full_like")


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Coordinate tensors from coordinate vectors.

    Parameters
    ----------
    *arrays : Tensor
        One-dimensional, of one dtype.
    indexing : {"xy", "ij"}
        ``"xy"`` swaps the first two axes, as plots need; ``"ij"`` keeps the order of the vectors.

    Returns
    -------
    tuple of Tensor
        As many as vectors, each of the grid's shape.

    Raises
    ------
    ValueError
        If ``indexing`` is neither.
    ShapeError
        If a tensor has more than one axis.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> x, y = xp.meshgrid(xp.asarray([1, 2, 3]), xp.asarray([10, 20]))
    >>> y
    Tensor([[10, 10, 10],
            [20, 20, 20]], dtype=int64, device=cpu)
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing={indexing!r} is neither 'xy' nor 'ij'.")
    if not arrays:
        return ()
    vectors = tensors("meshgrid", *arrays)
    for x in vectors:
        if x.ndim > 1:
            raise ShapeError(f"meshgrid: got shape {x.shape}; each tensor needs one axis.")
    axes = list(range(len(vectors)))
    if indexing == "xy" and len(vectors) > 1:
        axes[0], axes[1] = 1, 0
    lengths = [0] * len(vectors)
    for axis, x in zip(axes, vectors, strict=True):
        lengths[axis] = x.size
    grids = []
    for axis, x in zip(axes, vectors, strict=True):
        column = tuple(x.size if i == axis else 1 for i in range(len(vectors)))
        grids.append(p.copy(p.broadcast(p.reshape(x, column), tuple(lengths))))
    return tuple(grids)


def _triangle(x: Tensor, k: int, relation: ops.Op, function: str) -> Tensor:
    tensor(function, x)
    if x.ndim < 2:
        raise ShapeError(f"{function}: got shape {x.shape}; at least two axes are needed.")
    keep = diagonal_offsets(x._client, x.shape[-2], x.shape[-1], k, relation)
    return elementwise(ops.SELECT, keep, x, p.full(x._client, (), 0, x.dtype))


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The lower triangles of matrices, zeros above diagonal ``k``.

    Raises
    ------
    ShapeError
        If ``x`` has fewer than two axes.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.tril(xp.ones((2, 2)))
    Tensor([[1., 0.],
            [1., 1.]], dtype=float64, device=cpu)
    """
    return _triangle(x, k, ops.LESS_EQUAL, "tril")


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The upper triangles of matrices, zeros below diagonal ``k``.

    Raises
    ------
    ShapeError
        If ``x`` has fewer than two axes.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.triu(xp.ones((2, 2)))
    Tensor([[1., 1.],
            [0., 1.]], dtype=float64, device=cpu)
    """
    return _triangle(x, k, ops.GREATER_EQUAL, "triu")
