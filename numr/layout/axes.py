"""Axes and shapes as users write them, turned into tuples of plain non-negative integers."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, SupportsIndex

from numr.errors import AxisError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_SIZE = 2**63 - 1
"""Most elements that a shape may have: sizes, strides and offsets fit signed 64-bit integers."""


def normalize_axis(axis: SupportsIndex, ndim: int, function: str) -> int:
    """Check one axis and count it from the front.

    Parameters
    ----------
    axis : int
        The axis; negative ones count from the back.
    ndim : int
        Number of axes of the array.
    function : str
        Name of the caller, for the error message.

    Returns
    -------
    int
        The axis, in ``range(ndim)``.

    Raises
    ------
    AxisError
        If the axis is out of range.
    TypeError
        If `axis` is not an integer.

    Examples
    --------
    >>> normalize_axis(-1, 3, "sum")
    2
    """
    index = axis if type(axis) is int else _integer(axis, function, "an axis")
    if 0 <= index < ndim:
        return index
    if -ndim <= index < 0:
        return index + ndim
    valid = f"valid axes are {-ndim} to {ndim - 1}" if ndim else "it has no axis to name"
    raise AxisError(f"{function}: axis {index} is out of range for {ndim} dimensions: {valid}.")


def normalize_axes(
    axis: SupportsIndex | Sequence[SupportsIndex] | None, ndim: int, function: str
) -> tuple[int, ...]:
    """Check an axis, several axes or None (all axes), and count them from the front.

    Parameters
    ----------
    axis : int, sequence of int or None
        The axes; negative ones count from the back, None stands for all.
    ndim : int
        Number of axes of the array.
    function : str
        Name of the caller, for the error message.

    Returns
    -------
    tuple of int
        The axes in the order given, each in ``range(ndim)``.

    Raises
    ------
    AxisError
        If an axis is out of range or named twice.
    TypeError
        If an axis is not an integer.

    Examples
    --------
    >>> normalize_axes((-1, 0), 3, "sum")
    (2, 0)
    >>> normalize_axes(None, 3, "sum")
    (0, 1, 2)
    """
    if axis is None:
        return tuple(range(ndim))
    if not isinstance(axis, (tuple, list)):
        return (normalize_axis(axis, ndim, function),)  # type: ignore[arg-type]
    axes = tuple(normalize_axis(a, ndim, function) for a in axis)
    if len(set(axes)) != len(axes):
        raise AxisError(
            f"{function}: axes {tuple(axis)} of an array with {ndim} dimensions name an axis "
            "twice; each axis may be given once."
        )
    return axes


def normalize_shape(
    shape: SupportsIndex | Sequence[SupportsIndex], function: str
) -> tuple[int, ...]:
    """Check a shape.

    Parameters
    ----------
    shape : int or sequence of int
        The shape; an integer stands for one axis.
    function : str
        Name of the caller, for the error message.

    Returns
    -------
    tuple of int
        The shape.

    Raises
    ------
    ShapeError
        If a length is negative, or if the lengths other than 0 multiply to more than `MAX_SIZE`.
    TypeError
        If a length is not an integer.

    Examples
    --------
    >>> normalize_shape(3, "zeros")
    (3,)
    >>> normalize_shape([2, 0], "zeros")
    (2, 0)
    """
    lengths = _lengths(shape, function)
    for n in lengths:
        if n < 0:
            raise ShapeError(f"{function}: shape {lengths} has a negative length.")
    check_size(lengths, function)
    return lengths


def infer_reshape(
    size: int, shape: SupportsIndex | Sequence[SupportsIndex], function: str
) -> tuple[int, ...]:
    """Check the shape that an array of `size` elements is to take, and fill in one length of -1.

    Parameters
    ----------
    size : int
        Number of elements.
    shape : int or sequence of int
        The shape; one length may be -1 and follows from the others.
    function : str
        Name of the caller, for the error message.

    Returns
    -------
    tuple of int
        The shape, of `size` elements.

    Raises
    ------
    ShapeError
        If no such shape has `size` elements, if more than one length is -1, or if another one is
        negative.
    TypeError
        If a length is not an integer.

    Examples
    --------
    >>> infer_reshape(12, (3, -1), "reshape")
    (3, 4)
    """
    lengths = _lengths(shape, function)
    unknown = -1
    known = 1
    for axis, n in enumerate(lengths):
        if n >= 0:
            known *= n
        elif n != -1:
            raise ShapeError(f"{function}: shape {lengths} has a negative length other than -1.")
        elif unknown >= 0:
            raise ShapeError(f"{function}: only one length may be -1, shape {lengths} has several.")
        else:
            unknown = axis
    if unknown >= 0:
        if known == 0:
            raise ShapeError(
                f"{function}: the length -1 in shape {lengths} cannot be found for {size} "
                "elements, because another length is 0; give it as a number."
            )
        if size % known == 0:
            lengths = (*lengths[:unknown], size // known, *lengths[unknown + 1 :])
            known = size
    if known != size:
        raise ShapeError(
            f"{function}: {size} elements do not fit shape {lengths}: the number of elements must "
            "stay the same."
        )
    check_size(lengths, function)
    return lengths


def check_size(shape: tuple[int, ...], function: str) -> None:
    """Raise ShapeError if sizes or strides of `shape` would not fit 64-bit integers."""
    if 0 not in shape and math.prod(shape) <= MAX_SIZE:
        return
    # Lengths of 0 do not excuse the others: their strides are still computed.
    if math.prod(n for n in shape if n) > MAX_SIZE:
        raise ShapeError(
            f"{function}: shape {shape} is too large: its lengths multiply to more than 2**63 - 1."
        )


def _lengths(shape: SupportsIndex | Sequence[SupportsIndex], function: str) -> tuple[int, ...]:
    if isinstance(shape, (tuple, list)):
        items = tuple(shape)
    # Arrays of one axis have __index__ too, and are sequences of lengths nevertheless.
    elif hasattr(type(shape), "__index__") and getattr(shape, "ndim", 0) == 0:
        items = (shape,)
    elif hasattr(type(shape), "__iter__"):
        items = tuple(shape)  # type: ignore[arg-type]
    else:
        raise TypeError(
            f"{function}: a shape is an integer or a tuple of integers, not {shape!r} "
            f"({type(shape).__name__})."
        )
    for n in items:
        if type(n) is not int:
            return tuple(_integer(n, function, "a length of a shape") for n in items)
    return items


def _integer(value: object, function: str, what: str) -> int:
    # A bool is nearly always an argument in the wrong place (keepdims for axis), so it is refused.
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(
            f"{function}: {what} must be an integer, not {value!r} ({type(value).__name__})."
        )
    return operator.index(value)  # type: ignore[arg-type]
