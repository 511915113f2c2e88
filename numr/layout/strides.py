"""Arithmetic on shapes and strides, below :class:`Layout`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides, in elements, of an array of this shape in C order without gaps.

    Examples
    --------
    >>> contiguous_strides((2, 3, 4))
    (12, 4, 1)
    """
    strides = [1] * len(shape)
    step = 1
    for axis in range(len(shape) - 1, 0, -1):
        # An empty axis steps like one of length 1: no stride of a contiguous layout is 0.
        step *= shape[axis] or 1
        strides[axis - 1] = step
    return tuple(strides)


def merge_axes(
    shape: tuple[int, ...], strides: Sequence[tuple[int, ...]]
) -> tuple[list[int], list[list[int]]]:
    """Drop axes of length 1 and merge adjacent axes where every one of several strides allows it.

    Parameters
    ----------
    shape : tuple of int
        Shape without lengths of 0.
    strides : sequence of tuple of int
        Strides of the arrays that have this shape.

    Returns
    -------
    tuple of (list of int, list of list of int)
        The merged shape, and the strides of each array for it.

    Examples
    --------
    >>> merge_axes((2, 1, 3, 4), [(24, 99, 4, 1)])
    ([2, 12], [[24, 1]])
    """
    lengths: list[int] = []
    merged: list[list[int]] = [[] for _ in strides]
    for axis, n in enumerate(shape):
        if n == 1:
            continue
        mergeable = bool(lengths)
        for steps, own in zip(merged, strides, strict=True):
            mergeable = mergeable and steps[-1] == n * own[axis]
        if mergeable:
            lengths[-1] *= n
        else:
            lengths.append(n)
        for steps, own in zip(merged, strides, strict=True):
            if mergeable:
                steps.pop()
            steps.append(own[axis])
    return lengths, merged


def reshape_strides(
    shape: tuple[int, ...], strides: tuple[int, ...], new_shape: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Strides that give the elements, in C order, another shape of the same size (not 0).

    Returns
    -------
    tuple of int or None
        The strides, None if there are none and only a copy can have the new shape.

    Examples
    --------
    >>> reshape_strides((3, 4), (1, 3), (3, 2, 2))
    (1, 6, 3)
    >>> reshape_strides((3, 4), (1, 3), (12,)) is None
    True
    """
    # A new axis must lie within one run of jointly contiguous old axes, so both are walked from the
    # last axis: `room` is what the new axes have not yet used of the current run.
    lengths, (run_strides,) = merge_axes(shape, [strides])
    room = stride = 1
    result = [0] * len(new_shape)
    for axis in range(len(new_shape) - 1, -1, -1):
        n = new_shape[axis]
        if n != 1:
            if room == 1:
                room, stride = lengths.pop(), run_strides.pop()
            if room % n:
                return None
            room //= n
        result[axis] = stride
        stride *= n
    return tuple(result)
