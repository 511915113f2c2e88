"""Joining shapes."""

from __future__ import annotations

from numr.errors import ShapeError
from numr.layout.axes import check_size


def broadcast_shapes(
    *shapes: tuple[int, ...], function: str = "broadcast_shapes"
) -> tuple[int, ...]:
    """Broadcast shapes against each other.

    Parameters
    ----------
    *shapes : tuple of int
        The shapes; shorter ones are extended by axes of length 1 at the front.
    function : str
        Name of the caller, for the error message.

    Returns
    -------
    tuple of int
        The common shape, ``()`` for no shapes.

    Raises
    ------
    ShapeError
        If two lengths of one axis differ and neither is 1, or if the result is too large.

    Examples
    --------
    >>> broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    if not shapes:
        return ()
    first = shapes[0]
    for shape in shapes:
        if shape != first:
            break
    else:
        return first
    ndim = max(map(len, shapes))
    result = [1] * ndim
    for shape in shapes:
        for axis, n in enumerate(shape, ndim - len(shape)):
            if n != 1 and n != result[axis]:
                if result[axis] != 1:
                    raise _mismatch(shapes, axis, result[axis], n, function)
                result[axis] = n
    joined = tuple(result)
    check_size(joined, function)
    return joined


def _mismatch(
    shapes: tuple[tuple[int, ...], ...], axis: int, first: int, second: int, function: str
) -> ShapeError:
    names = ", ".join(map(str, shapes[:-1])) + f" and {shapes[-1]}"
    return ShapeError(
        f"{function}: shapes {names} could not be broadcast: axis {axis} of the result meets lengths "
        f"{first} and {second}; aligned from the last axis, lengths must be equal or 1. Insert axes "
        "with expand_dims, or reshape, so that they are."
    )
