"""The manipulation functions of the standard that copy: joining, repeating, rolling and tiling."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from numr.array_api._arguments import Tensor, in_domain, promoted, tensor, tensors
from numr.array_api.indexing_functions import index_values, take
from numr.errors import ShapeError
from numr.ir.ops import Reduction
from numr.layout import normalize_axis, normalize_shape
from numr.tensor import primitives as p

__all__ = ["concat", "repeat", "roll", "stack", "tile"]


def concat(arrays: tuple[Tensor, ...] | list[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Tensors joined along an axis that they have.

    Parameters
    ----------
    arrays : tuple or list of Tensor
        At least one tensor. But for the axis, their shapes are equal.
    axis : int, optional
        The axis; by default the first. With None the tensors are flattened first.

    Returns
    -------
    Tensor
        A new tensor of the dtype that theirs promote to.

    Raises
    ------
    AxisError
        If the axis is out of range.
    DTypeError
        If the dtypes do not promote.
    ShapeError
        If the shapes differ elsewhere than along the axis, or there is no tensor.
    DeviceMismatch
        If the tensors are on different devices.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> x = xp.asarray([[1, 2], [3, 4]])
    >>> xp.concat([x, xp.asarray([[5], [6]])], axis=1).tolist()
    [[1, 2, 5], [3, 4, 6]]
    >>> xp.concat([x, xp.asarray([5])], axis=None).tolist()
    [1, 2, 3, 4, 5]
    """
    parts = _parts("concat", arrays)
    if axis is None:
        return p.concat([p.reshape(x, (x.size,)) for x in parts], 0)
    first = parts[0].shape
    along = normalize_axis(axis, len(first), "concat")
    for x in parts:
        shape = x.shape
        if len(shape) != len(first) or any(
            shape[i] != n for i, n in enumerate(first) if i != along
        ):
            raise ShapeError(
                f"concat: shapes {first} and {shape} do not fit along axis {along}: all other lengths "
                "must be equal. Use stack() for a new axis, axis=None to flatten."
            )
    return p.concat(parts, along)


def stack(arrays: tuple[Tensor, ...] | list[Tensor], /, *, axis: int = 0) -> Tensor:
    """Tensors joined along a new axis.

    Parameters
    ----------
    arrays : tuple or list of Tensor
        At least one tensor; all of one shape.
    axis : int, optional
        Where the new axis is in the result; by default it is the first.

    Returns
    -------
    Tensor
        A new tensor of the dtype that theirs promote to.

    Raises
    ------
    AxisError
        If the axis is out of range.
    DTypeError
        If the dtypes do not promote.
    ShapeError
        If the shapes differ, or there is no tensor.
    DeviceMismatch
        If the tensors are on different devices.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.stack([xp.asarray([1, 2]), xp.asarray([3, 4])], axis=1).tolist()
    [[1, 3], [2, 4]]
    """
    parts = _parts("stack", arrays)
    shape = parts[0].shape
    axis = normalize_axis(axis, len(shape) + 1, "stack")
    for x in parts:
        if x.shape != shape:
            raise ShapeError(
                f"stack: shapes {shape} and {x.shape} differ; all must be equal. Use concat() to join "
                "along an axis that the tensors have, or broadcast_arrays() first."
            )
    wider = (*shape[:axis], 1, *shape[axis:])
    return p.concat([p.reshape(x, wider) for x in parts], axis)


def _parts(function: str, arrays: Sequence[Tensor]) -> tuple[Tensor, ...]:
    if not isinstance(arrays, (tuple, list)):
        raise TypeError(
            f"{function}: got {type(arrays).__name__}; expected a tuple or a list of tensors."
        )
    if not arrays:
        raise ShapeError(f"{function}: got no tensors; at least one is needed.")
    return promoted(function, *tensors(function, *arrays))


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """A tensor with each element repeated.

    Parameters
    ----------
    x : Tensor
        Any dtype and shape.
    repeats : int or Tensor
        How often each element is repeated: one number, or an integer tensor of as many numbers as there are
        elements along the axis.
    axis : int, optional
        The axis to repeat along; by default ``x`` is flattened first.

    Returns
    -------
    Tensor
        A new tensor of ``x``'s dtype.

    Raises
    ------
    AxisError
        If the axis is out of range.
    DTypeError
        If the repeats are a tensor of another dtype than integers.
    ShapeError
        If the repeats are a tensor of another shape.
    ValueError
        If a number of repeats is negative.
    DeviceMismatch
        If the tensors are on different devices.

    Notes
    -----
    Where the repeats are a tensor, the shape of the result depends on its values, so the call waits for the
    device.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> x = xp.asarray([[1, 2], [3, 4]])
    >>> xp.repeat(x, 2).tolist()
    [1, 1, 2, 2, 3, 3, 4, 4]
    >>> xp.repeat(x, xp.asarray([0, 2]), axis=1).tolist()
    [[2, 2], [4, 4]]
    """
    x = tensor("repeat", x)
    if axis is None:
        x = p.reshape(x, (x.size,))
        axis = 0
    axis = normalize_axis(axis, x.ndim, "repeat")
    if not isinstance(repeats, Tensor):
        return _repeat_all(x, _count("repeat", repeats), axis)
    x, repeats = tensors("repeat", x, in_domain("repeat", repeats, "integer"))
    length = x.shape[axis]
    if repeats.shape in ((), (1,)):
        return _repeat_all(x, _count("repeat", p.reshape(repeats, ())._item("repeat")), axis)
    if repeats.shape != (length,):
        raise ShapeError(
            f"repeat: the repeats have shape {repeats.shape}; for {length} elements along the axis it "
            f"must be ({length},) or (1,)."
        )
    return take(x, _repeated_positions(repeats), axis=axis)


def _repeat_all(x: Tensor, count: int, axis: int) -> Tensor:
    shape = x.shape
    result = normalize_shape((*shape[:axis], shape[axis] * count, *shape[axis + 1 :]), "repeat")
    column = p.reshape(x, (*shape[: axis + 1], 1, *shape[axis + 1 :]))
    repeated = p.broadcast(column, (*shape[: axis + 1], count, *shape[axis + 1 :]))
    return p.reshape(p.copy(repeated), result)


def _repeated_positions(repeats: Tensor) -> Tensor:
    """The positions 0, 1, ... of a one-dimensional tensor of counts, each as often as its count says."""
    counts = index_values("repeat", repeats)
    if not counts.size:
        return counts
    lowest = p.reduce(Reduction.MIN, counts, (0,), keepdims=False)._item("repeat")
    if lowest < 0:
        raise ValueError(f"repeat: the repeats go down to {lowest}; they must be 0 or more.")
    # Element i fills the places from ends[i - 1] up to ends[i] of the result.
    ends = p.scan(Reduction.SUM, counts, 0)
    total = ends[counts.size - 1]._item("repeat")
    return p.searchsorted(ends, p.iota(counts._client, total, counts.dtype), "right")


def roll(
    x: Tensor,
    /,
    shift: int | tuple[int, ...],
    *,
    axis: int | tuple[int, ...] | None = None,
) -> Tensor:
    """A tensor with its elements moved along axes; those that leave at one end come in at the other.

    Parameters
    ----------
    x : Tensor
        Any dtype and shape.
    shift : int or tuple of int
        How far the elements move, towards larger positions where positive. One number for all axes, or one
        for each.
    axis : int or tuple of int, optional
        The axes; by default ``x`` is rolled as if it had one axis.

    Returns
    -------
    Tensor
        A new tensor of ``x``'s dtype and shape.

    Raises
    ------
    AxisError
        If an axis is out of range.
    ValueError
        If there are several shifts and not as many axes.

    Notes
    -----
    Beyond the standard, an axis may be named more than once: its shifts add up.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.roll(xp.asarray([1, 2, 3, 4]), 1).tolist()
    [4, 1, 2, 3]
    >>> xp.roll(xp.asarray([[1, 2], [3, 4]]), (1, 1), axis=(0, 1)).tolist()
    [[4, 3], [2, 1]]
    """
    x = tensor("roll", x)
    rolled = given = p.reshape(x, (x.size,)) if axis is None else x
    named = axis if isinstance(axis, (tuple, list)) else (axis or 0,)
    axes = tuple(normalize_axis(a, rolled.ndim, "roll") for a in named)
    shifts = tuple(shift) if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
    if len(shifts) != len(axes):
        raise ValueError(
            f"roll: got shifts {shift} for axis {axis}; several shifts need a tuple of as many axes."
        )
    for distance, along in zip(shifts, axes, strict=True):
        length = rolled.shape[along]
        cut = -operator.index(distance) % length if length else 0
        if cut:
            before = (slice(None),) * along
            rolled = p.concat(
                (rolled[(*before, slice(cut, None))], rolled[(*before, slice(cut))]), along
            )
    return p.reshape(p.copy(given) if rolled is given else rolled, x.shape)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """A tensor set beside itself along axes.

    Parameters
    ----------
    x : Tensor
        Any dtype and shape.
    repetitions : tuple of int
        How often along each axis. Where ``x`` has more axes, its first ones are not repeated; where it has
        fewer, it gets new ones at the front.

    Returns
    -------
    Tensor
        A new tensor of ``x``'s dtype.

    Raises
    ------
    ValueError
        If a number is negative.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.tile(xp.asarray([[1, 2], [3, 4]]), (1, 2)).tolist()
    [[1, 2, 1, 2], [3, 4, 3, 4]]
    >>> xp.tile(xp.asarray([1, 2]), (2, 1)).tolist()
    [[1, 2], [1, 2]]
    """
    x = tensor("tile", x)
    given = repetitions if isinstance(repetitions, (tuple, list)) else (repetitions,)
    counts = tuple(_count("tile", n) for n in given)
    ndim = max(x.ndim, len(counts))
    counts = (1,) * (ndim - len(counts)) + counts
    shape = (1,) * (ndim - x.ndim) + x.shape
    result = normalize_shape(
        tuple(n * count for n, count in zip(shape, counts, strict=True)), "tile"
    )
    # Each repeated axis gets one of length 1 in front of it, which is broadcast to the repetitions.
    columns: list[int] = []
    repeated: list[int] = []
    for n, count in zip(shape, counts, strict=True):
        columns += (n,) if count == 1 else (1, n)
        repeated += (n,) if count == 1 else (count, n)
    return p.reshape(p.copy(p.broadcast(p.reshape(x, tuple(columns)), tuple(repeated))), result)


def _count(function: str, value: object) -> int:
    """A number of repetitions."""
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(
            f"{function}: {value!r} ({type(value).__name__}) is no number of repetitions."
        )
    count = operator.index(value)  # type: ignore[arg-type]
    if count < 0:
        raise ValueError(f"{function}: got {count} repetitions; they must be 0 or more.")
    return count
