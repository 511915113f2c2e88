"""Manipulation functions of the standard: those that give views, and the names of those that copy."""

from __future__ import annotations

from numr.array_api._arguments import Tensor, tensor, tensors
from numr.array_api.rearranging_functions import concat, repeat, roll, stack, tile
from numr.errors import AxisError, CopyError, ShapeError
from numr.layout import broadcast_shapes as join_shapes
from numr.layout import infer_reshape, normalize_axes, normalize_axis, normalize_shape
from numr.tensor import primitives as p

__all__ = [
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "concat",
    "expand_dims",
    "flip",
    "moveaxis",
    "permute_dims",
    "repeat",
    "reshape",
    "roll",
    "squeeze",
    "stack",
    "tile",
    "unstack",
]


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """Views of tensors in the shape that they broadcast to together.

    Parameters
    ----------
    *arrays : Tensor
        Tensors on one device; their dtypes may differ.

    Returns
    -------
    tuple of Tensor
        Views of the common shape, each of its tensor's dtype.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DeviceMismatch
        If the tensors are on different devices.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> x, y = xp.broadcast_arrays(xp.asarray([[1], [2]]), xp.asarray([0.5, 0.25]))
    >>> x.tolist(), y.tolist()
    ([[1, 1], [2, 2]], [[0.5, 0.25], [0.5, 0.25]])
    """
    checked = tensors("broadcast_arrays", *arrays)
    shape = join_shapes(*(x.shape for x in checked), function="broadcast_arrays")
    return tuple(p.broadcast(x, shape) for x in checked)


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that shapes broadcast to together.

    Parameters
    ----------
    *shapes : tuple of int
        The shapes.

    Returns
    -------
    tuple of int
        The common shape, ``()`` for no shapes.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    return join_shapes(*(normalize_shape(shape, "broadcast_shapes") for shape in shapes))


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """A view of a tensor, broadcast to a shape.

    Parameters
    ----------
    x : Tensor
        Any dtype; a shape that broadcasts to ``shape``.
    shape : tuple of int
        The shape of the result.

    Returns
    -------
    Tensor
        The view. Several of its elements may be one element of ``x``.

    Raises
    ------
    ShapeError
        If ``x`` does not broadcast to the shape.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.broadcast_to(xp.asarray([1, 2]), (2, 2)).tolist()
    [[1, 2], [1, 2]]
    """
    x = tensor("broadcast_to", x)
    wanted = normalize_shape(shape, "broadcast_to")
    if join_shapes(x.shape, wanted, function="broadcast_to") != wanted:
        raise ShapeError(
            f"broadcast_to: shape {x.shape} could not be broadcast to {wanted}, which has fewer axes or "
            "smaller ones. Use broadcast_arrays to broadcast both."
        )
    return p.broadcast(x, wanted)


def expand_dims(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """A view of a tensor with new axes of length 1.

    Parameters
    ----------
    x : Tensor
        Any dtype and shape.
    axis : int or tuple of int
        Where the new axes are in the result; negative ones count from its end.

    Returns
    -------
    Tensor
        The view.

    Raises
    ------
    AxisError
        If an axis is out of range or named twice.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> x = xp.zeros((2, 3))
    >>> xp.expand_dims(x, 0).shape, xp.expand_dims(x, (0, -1)).shape
    ((1, 2, 3), (1, 2, 3, 1))
    """
    x = tensor("expand_dims", x)
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    new = normalize_axes(axis, x.ndim + count, "expand_dims")
    lengths = iter(x.shape)
    return p.reshape(x, tuple(1 if i in new else next(lengths) for i in range(x.ndim + count)))


def flip(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """A view of a tensor with its elements in reverse order along axes.

    Parameters
    ----------
    x : Tensor
        Any dtype and shape.
    axis : int or tuple of int, optional
        The axes to reverse; by default all of them.

    Returns
    -------
    Tensor
        The view.

    Raises
    ------
    AxisError
        If an axis is out of range or named twice.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.flip(xp.asarray([[1, 2], [3, 4]]), axis=1).tolist()
    [[2, 1], [4, 3]]
    """
    x = tensor("flip", x)
    reversed_axes = normalize_axes(axis, x.ndim, "flip")
    return x[tuple(slice(None, None, -1 if i in reversed_axes else 1) for i in range(x.ndim))]


def moveaxis(
    x: Tensor, source: int | tuple[int, ...], destination: int | tuple[int, ...], /
) -> Tensor:
    """A view of a tensor with some axes moved, the others in their order.

    Parameters
    ----------
    x : Tensor
        Any dtype and shape.
    source : int or tuple of int
        The axes to move.
    destination : int or tuple of int
        Where each of them is in the result.

    Returns
    -------
    Tensor
        The view.

    Raises
    ------
    AxisError
        If an axis is out of range or named twice, or there are not as many destinations as sources.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.moveaxis(xp.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = tensor("moveaxis", x)
    sources = normalize_axes(source, x.ndim, "moveaxis")
    destinations = normalize_axes(destination, x.ndim, "moveaxis")
    if len(sources) != len(destinations):
        raise AxisError(
            f"moveaxis: source {source} and destination {destination} must name as many axes."
        )
    order = [i for i in range(x.ndim) if i not in sources]
    for to, axis in sorted(zip(destinations, sources, strict=True)):
        order.insert(to, axis)
    return p.permute(x, tuple(order))


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """A view of a tensor with its axes in another order.

    Parameters
    ----------
    x : Tensor
        Any dtype and shape.
    axes : tuple of int
        For each axis of the result, the axis of ``x`` that it is.

    Returns
    -------
    Tensor
        The view.

    Raises
    ------
    AxisError
        If the axes are not those of ``x``, each once.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.permute_dims(xp.zeros((2, 3, 4)), (-1, 0, 1)).shape
    (4, 2, 3)
    """
    x = tensor("permute_dims", x)
    order = normalize_axes(axes, x.ndim, "permute_dims")
    if len(order) != x.ndim:
        raise AxisError(
            f"permute_dims: axes {axes} do not name each of the {x.ndim} axes of shape {x.shape} once."
        )
    return p.permute(x, order)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """A tensor's elements, in C order, in another shape.

    Parameters
    ----------
    x : Tensor
        Any dtype and shape.
    shape : tuple of int
        The shape, of as many elements; one length may be -1 and follows from the others.
    copy : bool, optional
        True always copies, False never does; by default elements are copied only where no view has the
        shape.

    Returns
    -------
    Tensor
        A view of ``x``, or a new tensor.

    Raises
    ------
    ShapeError
        If no such shape has the number of elements of ``x``.
    CopyError
        If ``copy`` is False and no view has the shape.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.reshape(xp.asarray([1, 2, 3, 4, 5, 6]), (2, -1)).tolist()
    [[1, 2, 3], [4, 5, 6]]
    """
    x = tensor("reshape", x)
    wanted = infer_reshape(x.size, shape, "reshape")
    if copy:
        return p.reshape(p.copy(x), wanted)
    if copy is None:
        return p.reshape(x, wanted)
    view = p.reshape_view(x, wanted)
    if view is None:
        raise CopyError(
            f"reshape: a tensor of shape {x.shape} and strides {x.strides} has no view of shape "
            f"{wanted}. Leave copy=False out to have it copied."
        )
    return view


def squeeze(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """A view of a tensor without some axes of length 1.

    Parameters
    ----------
    x : Tensor
        Any dtype and shape.
    axis : int or tuple of int
        The axes to remove.

    Returns
    -------
    Tensor
        The view.

    Raises
    ------
    AxisError
        If an axis is out of range or named twice.
    ShapeError
        If an axis is not of length 1.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.squeeze(xp.zeros((1, 3, 1)), (0, 2)).shape
    (3,)
    """
    x = tensor("squeeze", x)
    removed = normalize_axes(axis, x.ndim, "squeeze")
    for i in removed:
        if x.shape[i] != 1:
            raise ShapeError(
                f"squeeze: axis {i} of shape {x.shape} has length {x.shape[i]}; only axes of length 1 "
                "can be removed. Index the axis, or reduce over it."
            )
    return p.reshape(x, tuple(n for i, n in enumerate(x.shape) if i not in removed))


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Views of the slices of a tensor along an axis.

    Parameters
    ----------
    x : Tensor
        Any dtype; at least one axis.
    axis : int, optional
        The axis; by default the first.

    Returns
    -------
    tuple of Tensor
        One view for each position along the axis, without the axis.

    Raises
    ------
    AxisError
        If the axis is out of range.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> [row.tolist() for row in xp.unstack(xp.asarray([[1, 2], [3, 4]]))]
    [[1, 2], [3, 4]]
    """
    x = tensor("unstack", x)
    axis = normalize_axis(axis, x.ndim, "unstack")
    before = (slice(None),) * axis
    return tuple(x[(*before, i)] for i in range(x.shape[axis]))
