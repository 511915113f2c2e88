"""How several arrays are walked in step: rows of one axis, over the places of the others."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from numr.layout.strides import merge_axes
from numr.runtime.cpu.jit.arrays import Walk

__all__ = ["Part", "Plan", "plan_of"]

#: A first row and the end of rows, a first place in each and the end.
Part = tuple[int, int, int, int]

#: Rows shorter than this are worth trading for longer ones, even if these take longer strides.
_SHORT: Final = 32
#: A tile of a transposed array: so many places of so many rows, whose lines stay in the first cache.
_TILE: Final = (64, 256)


@dataclass(frozen=True)
class Plan:
    """How a kernel walks arrays of given strides.

    Attributes
    ----------
    walks : tuple of Walk
        For each array, along a row.
    rows : int
        How many rows there are.
    length : int
        Elements in a row.
    steps : bytes
        The words of the distances along a row.
    axes : bytes
        The words of the outer axes, their number first.
    tiled : bool
        Whether some array has its neighbours in other rows, so that work goes by tiles.
    """

    walks: tuple[Walk, ...]
    rows: int
    length: int
    steps: bytes
    axes: bytes
    tiled: bool

    def parts(self, size: int) -> list[Part]:
        """All rows and places, in parts of about ``size`` elements."""
        rows, length = self.rows, self.length
        if self.tiled:
            height, width = _TILE
            # Several tiles of the same rows, where the size allows it.
            width *= max(1, size // (height * width))
        elif length >= size:
            height, width = 1, -(-length // -(-length // size))
        else:
            height, width = max(1, size // length), length
        # Parts begin at whole cache lines of all dtypes.
        width = -(-width // 64) * 64
        return [
            (row, min(row + height, rows), start, min(start + width, length))
            for row in range(0, rows, height)
            for start in range(0, length, width)
        ]


def plan_of(
    shape: tuple[int, ...],
    strides: Sequence[tuple[int, ...]],
    sizes: Sequence[int],
    results: int,
    *,
    in_order: bool = False,
) -> Plan:
    """The plan for arrays broadcast to a shape.

    Parameters
    ----------
    shape : tuple of int
        No length is 0.
    strides : sequence of tuple of int
        For each array and axis the stride in bytes; 0 where it is broadcast.
    sizes : sequence of int
        Bytes of an element of each array.
    results : int
        How many of the arrays, at the end, are results.
    in_order : bool
        Whether rows are along the last axis, one after the other in C order, so that they may depend on each other.
    """
    # As the first result lies in memory.
    leading = strides[len(strides) - results]
    order = list(range(len(shape)))
    if not in_order:
        order.sort(key=lambda axis: -abs(leading[axis]))
    lengths, merged = merge_axes(
        tuple(shape[axis] for axis in order),
        [tuple(own[axis] for axis in order) for own in strides],
    )
    if not lengths:
        lengths, merged = [1], [[size] for size in sizes]
    inner = len(lengths) - 1
    longest = max(range(len(lengths)), key=lambda axis: lengths[axis])
    if not in_order and lengths[inner] < _SHORT and lengths[longest] >= 2 * _SHORT:
        inner = longest
    steps = [own[inner] for own in merged]
    # A row of one element is one of neighbours.
    if lengths[inner] == 1:
        steps = list(sizes)
    walks = tuple(
        Walk.UNIT if step == size else Walk.ZERO if step == 0 else Walk.STRIDED
        for step, size in zip(steps, sizes, strict=True)
    )
    outer = [axis for axis in range(len(lengths)) if axis != inner]
    words = [len(outer)]
    rows = 1
    for axis in outer:
        rows *= lengths[axis]
        words += [lengths[axis], *(own[axis] for own in merged)]
    tiled = not in_order and any(
        walk is Walk.STRIDED
        and any(abs(own[axis]) == size and lengths[axis] >= _SHORT for axis in outer)
        for walk, own, size in zip(walks, merged, sizes, strict=True)
    )
    return Plan(
        walks,
        rows,
        lengths[inner],
        struct.pack(f"{len(steps)}q", *steps),
        struct.pack(f"{len(words)}q", *words),
        tiled,
    )
