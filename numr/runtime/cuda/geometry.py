"""How kernels run through arrays of one shape: in rows, or in tiles where neighbours differ.

A row is a run along the last of the merged axes, in the order of the array that is written. Threads side by side take
elements side by side, so each array whose neighbours lie along the row is read as fast as memory goes. An array whose
neighbours lie along another axis is read in square tiles, which are turned round in memory that a block shares.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from numr.layout.strides import merge_axes
from numr.runtime.cuda import texts
from numr.runtime.cuda.texts import BLOCK, NARROW

__all__ = ["SHARED", "Geometry", "geometry", "tile_side"]

#: Bytes that a block shares at most.
SHARED: Final = 48 << 10
#: Elements along each side of the smallest tile, in which each thread of a block has one.
_LEAST_SIDE: Final = 16
#: Axes shorter than this are not worth a tile.
_SHORT: Final = 8


class Geometry(NamedTuple):
    """What kernel runs, in which grid, with which numbers.

    Parameters
    ----------
    variant : tuple
        What the text depends on: ``("rows", vector, classes, rank, wide)`` or ``("tiles", tiled, side, vector, rank, wide)``. The
        classes say for each array, the result last, how it steps along a row: ``c`` to the neighbour in memory, ``0``
        not at all, ``s`` by a number of bytes. ``tiled`` are the arrays that tiles turn round.
    grid : int
        Blocks.
    block : tuple of int
        Threads of a block, along the row and across rows.
    numbers : tuple of int
        The kernel's integer arguments.
    dims : bytes
        The argument that has lengths and steps.
    """

    variant: tuple[object, ...]
    grid: int
    block: tuple[int, int]
    numbers: tuple[int, ...]
    dims: bytes


def tile_side(itemsize: int) -> int:
    """Elements along each side of a tile."""
    return 64 if itemsize <= 4 else 32


@lru_cache(maxsize=4096)
def geometry(
    shape: tuple[int, ...],
    strides: tuple[tuple[int, ...], ...],
    itemsizes: tuple[int, ...],
    vector: int,
    unroll: int,
    aligned: bool,
) -> Geometry:
    """Plan the way through arrays.

    Parameters
    ----------
    shape : tuple of int
        The shape, without lengths of 0.
    strides : tuple of tuple of int
        Byte strides of each array, the written one last.
    itemsizes : tuple of int
        Of each array.
    vector, unroll : int
        Elements that a thread takes by one instruction, and how often it does, where all is aligned.
    aligned : bool
        Whether all arrays start at multiples of 16 bytes.
    """
    order = sorted(range(len(shape)), key=lambda axis: -abs(strides[-1][axis]))
    lengths, steps = merge_axes(
        tuple(shape[axis] for axis in order),
        [tuple(own[axis] for axis in order) for own in strides],
    )
    if not lengths:
        lengths, steps = [1], [[size] for size in itemsizes]
    size = 1
    for n in lengths:
        size *= n
    tiled = _tiled(lengths, steps)
    if tiled is not None:
        return _in_tiles(lengths, steps, itemsizes, vector if aligned else 1, *tiled)
    length = lengths.pop()
    inner = [own.pop() for own in steps]
    classes = "".join(
        "c" if step == itemsize else "s" if step else "0"
        for step, itemsize in zip(inner, itemsizes, strict=True)
    )
    whole = aligned and "s" not in classes and (length % vector == 0 or not lengths)
    for own, itemsize, kind in zip(steps, itemsizes, classes, strict=True):
        whole = whole and (kind != "c" or all(step % (vector * itemsize) == 0 for step in own))
    rank = texts.rank_for(len(lengths))
    rows = 1
    for n in lengths:
        rows *= n
    share = vector * unroll if whole else unroll
    if not rank:
        # One row, of any length.
        across, down = BLOCK, 1
        blocks = -(-length // (BLOCK * share))
        variant = ("rows", whole, classes, 0, size >= NARROW)
        numbers: tuple[int, ...] = (length,)
    else:
        across = min(texts.power_of_two(-(-length // share)), BLOCK)
        down = BLOCK // across
        chunks = -(-length // (across * share))
        blocks = chunks * -(-rows // down)
        variant = ("rows", whole, classes, rank, rows >= NARROW or length >= NARROW)
        numbers = (length, rows, chunks)
    dims = texts.pack_dims(rank, lengths, steps, inner)
    return Geometry(variant, blocks, (across, down), numbers, dims)


def _tiled(lengths: list[int], steps: list[list[int]]) -> tuple[int, tuple[int, ...]] | None:
    """The axis that neighbours of some arrays lie along instead of the last one, and those arrays."""
    last = len(lengths) - 1
    if last < 1 or lengths[last] < _SHORT:
        return None
    for own in steps[:-1]:
        nearest = min(
            (axis for axis in range(last + 1) if own[axis] and lengths[axis] >= _SHORT),
            key=lambda axis: abs(own[axis]),
            default=last,
        )
        if nearest != last and own[last]:
            arrays = tuple(
                k
                for k, other in enumerate(steps[:-1])
                if other[nearest] and other[last] and abs(other[nearest]) < abs(other[last])
            )
            return nearest, arrays
    return None


def _in_tiles(
    lengths: list[int],
    steps: list[list[int]],
    itemsizes: tuple[int, ...],
    vector: int,
    axis: int,
    tiled: tuple[int, ...],
) -> Geometry:
    side = tile_side(max(itemsizes[k] for k in tiled))
    held = sum(itemsizes[k] for k in tiled)
    while side > _LEAST_SIDE and held * side * (side + 1) > SHARED:
        side //= 2
    # Each thread of a block has a vector at least.
    vector = min(vector, side * side // BLOCK)
    length, other = lengths.pop(), lengths.pop(axis)
    inner = [own.pop() for own in steps]
    inner += [own.pop(axis) for own in steps]
    whole = length % vector == 0 and other % vector == 0
    for k, itemsize in enumerate(itemsizes):
        # Each array's neighbours lie along one of the two axes, and all else is a multiple of vectors.
        along, across = inner[k], inner[len(itemsizes) + k]
        near, far = (across, along) if k in tiled else (along, across)
        whole = whole and near == itemsize
        whole = whole and all(step % (vector * itemsize) == 0 for step in (far, *steps[k]))
    across, down = -(-length // side), -(-other // side)
    outer = 1
    for n in lengths:
        outer *= n
    rank = texts.rank_for(len(lengths))
    variant = ("tiles", tiled, side, vector if whole else 1, rank, outer >= NARROW)
    dims = texts.pack_dims(rank, lengths, steps, inner)
    return Geometry(variant, across * down * outer, (BLOCK, 1), (length, other, across, down), dims)
