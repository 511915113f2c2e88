"""Indexing functions of the standard."""

from __future__ import annotations

from numr.array_api._arguments import Tensor, in_domain, tensor, tensors
from numr.errors import ShapeError
from numr.layout import broadcast_shapes, normalize_axis
from numr.tensor import primitives as p

__all__ = ["take", "take_along_axis"]


def take(x: Tensor, indices: Tensor | int, /, *, axis: int | None = None) -> Tensor:
    """Elements at given positions along an axis.

    Parameters
    ----------
    x : Tensor
        Any dtype; at least one axis.
    indices : Tensor or int
        Integer positions along the axis; negative ones count from the end.
    axis : int, optional
        The axis; may be left out where ``x`` has only one.

    Returns
    -------
    Tensor
        A new tensor of ``x``'s dtype and shape, with the axis replaced by the axes of ``indices``.

    Raises
    ------
    ShapeError
        If no axis is given and ``x`` does not have exactly one.
    AxisError
        If the axis is out of range.
    DTypeError
        If ``indices`` are not integers.
    IndexingError
        If an index is out of range.
    DeviceMismatch
        If the tensors are on different devices.

    Notes
    -----
    Beyond the standard, indices may have any number of axes or be one Python integer, which takes the axis
    away, and are checked against the bounds.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> x = xp.asarray([[1, 2, 3], [4, 5, 6]])
    >>> xp.take(x, xp.asarray([2, -3]), axis=1).tolist()
    [[3, 1], [6, 4]]
    """
    if isinstance(indices, int) and not isinstance(indices, bool):
        x = tensor("take", x)
    else:
        x, indices = tensors("take", x, indices)
    if axis is None:
        if x.ndim != 1:
            raise ShapeError(
                f"take: x has shape {x.shape}; the axis may only be left out for one axis. "
                "Say which with axis=."
            )
        axis = 0
    axis = normalize_axis(axis, x.ndim, "take")
    if isinstance(indices, int):
        return p.copy(x[(*(slice(None),) * axis, indices)])
    indices = index_values("take", indices)
    leading = p.permute(x, (axis, *range(axis), *range(axis + 1, x.ndim))) if axis else x
    found = p.gather(leading, (indices,), "take")
    if not axis:
        return found
    count = indices.ndim
    return p.permute(
        found, (*range(count, count + axis), *range(count), *range(count + axis, found.ndim))
    )


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """Elements at positions along an axis that differ from one one-dimensional slice to the next.

    Parameters
    ----------
    x : Tensor
        Any dtype; at least one axis.
    indices : Tensor
        Integer positions along the axis; negative ones count from the end. As many axes as ``x``, whose
        lengths, but for the axis itself, broadcast with those of ``x``.
    axis : int, optional
        The axis; by default the last.

    Returns
    -------
    Tensor
        A new tensor of ``x``'s dtype and the broadcast shape, as long as ``indices`` along the axis.

    Raises
    ------
    AxisError
        If the axis is out of range.
    DTypeError
        If ``indices`` are not integers.
    ShapeError
        If the shapes do not fit each other.
    IndexingError
        If an index is out of range.
    DeviceMismatch
        If the tensors are on different devices.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> x = xp.asarray([[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]])
    >>> xp.take_along_axis(x, xp.argsort(x)).tolist()
    [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    """
    x, indices = tensors("take_along_axis", x, indices)
    axis = normalize_axis(axis, x.ndim, "take_along_axis")
    if indices.ndim != x.ndim:
        raise ShapeError(
            f"take_along_axis: x has shape {x.shape} and indices have shape {indices.shape}; both must "
            "have as many axes. Insert axes with expand_dims."
        )
    indices = index_values("take_along_axis", indices)
    others = broadcast_shapes(
        _with_length(x.shape, axis, 1),
        _with_length(indices.shape, axis, 1),
        function="take_along_axis: but for the axis",
    )
    shape = _with_length(others, axis, indices.shape[axis])
    coordinates = [
        p.broadcast(indices, shape) if i == axis else _coordinate(x, i, shape)
        for i in range(x.ndim)
    ]
    source = p.broadcast(x, _with_length(others, axis, x.shape[axis]))
    return p.gather(source, coordinates, "take_along_axis")


def index_values(function: str, x: Tensor) -> Tensor:
    """An integer tensor in the dtype that indices have on its device."""
    return p.cast(in_domain(function, x, "integer"), x._client.defaults.indexing)


def _coordinate(x: Tensor, axis: int, shape: tuple[int, ...]) -> Tensor:
    """Position along an axis of each element of a tensor of the given shape, as a broadcast view."""
    positions = p.iota(x._client, shape[axis], x._client.defaults.indexing)
    column = (1,) * axis + (shape[axis],) + (1,) * (len(shape) - axis - 1)
    return p.broadcast(p.reshape(positions, column), shape)


def _with_length(shape: tuple[int, ...], axis: int, length: int) -> tuple[int, ...]:
    return (*shape[:axis], length, *shape[axis + 1 :])
