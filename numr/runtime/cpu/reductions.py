"""Reductions of large arrays, in blocks over threads.

Each block leaves a partial result, and these are reduced in their turn. Blocks are of a fixed size, so that the same
numbers are added in the same order whatever the number of threads. The partial results also make sums more exact.

The elements may lie in an array or be computed block by block (:class:`Elements`); results are the same to the bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, Protocol

import numpy as np

from numr import dtypes as dt
from numr.dtypes import DType
from numr.ir.ops import Reduction
from numr.runtime.cpu.blockwise import MANY
from numr.runtime.cpu.threads import blocks, run_blocks

__all__ = [
    "DECISION_BYTES",
    "DISTANCES_BLOCK",
    "EXTREMUM_BYTES",
    "PARTS_ABOVE",
    "REDUCTIONS",
    "REDUCTION_BYTES",
    "ROWS_BLOCK",
    "Elements",
    "Row",
    "add_columns",
    "adds_one_by_one",
    "decide_blocks",
    "keeps_rows",
    "reduce_blocks",
    "reduce_parts",
    "squared_distances",
]

Array = np.ndarray[Any, Any]
#: An index of an array's block, of slices.
Key = tuple[slice, ...]
#: Reduces a block, that of a key, over axes, which stay with length 1, into another array.
Fold = Callable[[Array, Key, tuple[int, ...], Array], object]

#: Makes an array of a shape and dtype.
Empty = Callable[[tuple[int, ...], DType], Array]

#: Bytes in one block, which leaves one partial result; where they are computed first, they stay in cache.
REDUCTION_BYTES: Final = 1 << 20
#: Up to this size one call finds an extremum as quickly as several threads.
EXTREMUM_BYTES: Final = 1 << 23
#: Up to this size one call decides any() or all() of booleans as quickly as several threads.
DECISION_BYTES: Final = 1 << 23
_DECISION_BLOCK: Final = 1 << 22

#: The ufunc of each reduction, and whether it computes in the dtype of the result.
REDUCTIONS: Final[dict[Reduction, tuple[np.ufunc, bool]]] = {
    Reduction.SUM: (np.add, True),
    Reduction.PROD: (np.multiply, True),
    Reduction.MAX: (np.maximum, False),
    Reduction.MIN: (np.minimum, False),
    Reduction.ANY: (np.logical_or, False),
    Reduction.ALL: (np.logical_and, False),
}

#: Elements of a block that are so far apart are added first, where all of an array are.
_COLUMNS: Final = 1 << 11
_FLOATS: Final = (dt.float32, dt.float64)

#: Elements in one block of rows that are reduced each by itself, so that the size of blocks changes no result.
ROWS_BLOCK: Final = 1 << 16
#: Elements in one block of distances, which stay in cache between three passes.
DISTANCES_BLOCK: Final = 1 << 16

#: Partial sums are worth their while from this size, and this number of terms in each sum.
PARTS_ABOVE: Final = 1 << 18
_MANY_TERMS: Final = 1 << 11
#: How many there are, where one thread makes them.
_PARTS: Final = 8


class Elements(Protocol):
    """What is reduced."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""

    @property
    def dtype(self) -> DType:
        """Of the elements."""

    def block(self, key: Key) -> Array:
        """The elements that a key selects. The array is as the block of the whole array would be, but for the size of
        strides; it lasts until its thread asks for another.
        """

    def in_a_row(self) -> Row | None:
        """All elements along one axis, None where only a copy has them so."""

    def outermost(self, axes: list[int]) -> int:
        """The axis of the largest stride among some."""


class Row(Elements, Protocol):
    """Elements along one axis."""

    def add_into(self, sums: Array, part: slice) -> None:
        """Set ``sums`` to those of elements that are its length apart, added one after the other to zero."""


def add_columns(sums: Array, block: Array) -> None:
    """``Row.add_into`` of an array with one axis."""
    width = sums.size
    whole = block.size // width * width
    np.add.reduce(block[:whole].reshape(-1, width), axis=0, out=sums, initial=0)
    rest = block.size - whole
    if rest:
        np.add(sums[:rest], block[whole:], out=sums[:rest])


class Stored:
    """The elements of an array."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.shape: tuple[int, ...] = array.shape
        self.dtype: DType = array.dtype

    def block(self, key: Key) -> Array:
        """A view."""
        block: Array = self.array[key]
        return block

    def in_a_row(self) -> Stored | None:
        """The array with one axis, if it is contiguous."""
        return Stored(self.array.reshape(-1, order="A")) if self.array.flags.forc else None

    def outermost(self, axes: list[int]) -> int:
        """The axis of the largest stride."""
        return max(axes, key=lambda i: abs(self.array.strides[i]))

    def add_into(self, sums: Array, part: slice) -> None:
        """Of an array with one axis."""
        add_columns(sums, self.array[part])


def adds_one_by_one(shape: tuple[int, ...], axes: tuple[int, ...], *, contiguous: bool) -> bool:
    """Whether NumPy adds many terms one after the other, not pairwise as along a contiguous last axis."""
    if contiguous and len(shape) - 1 in axes:
        return False
    terms: int = math.prod([shape[i] for i in axes])
    return terms > _MANY_TERMS


def reduce_parts(
    array: Array,
    axes: tuple[int, ...],
    keepdims: bool,
    ufunc: np.ufunc,
    compute: DType | None,
    dtype: DType,
) -> Array:
    """``ufunc.reduce`` over at least one axis by way of a few partial results, where errors add up less."""
    shape = array.shape
    axis = axes[0] if len(axes) == 1 else max(axes, key=lambda i: shape[i])
    length = shape[axis] // _PARTS
    end = _PARTS * length
    main = array if end == shape[axis] else array[(*[slice(None)] * axis, slice(end))]
    # Splitting an axis in two gives a view.
    split = main.reshape(*shape[:axis], _PARTS, length, *shape[axis + 1 :])
    inner = tuple([i if i < axis else i + 1 for i in axes])
    parts = ufunc.reduce(split, axis=inner, dtype=compute, keepdims=keepdims)
    place = axis if keepdims else axis - sum([i < axis for i in axes])
    total: Array = ufunc.reduce(parts, axis=place, dtype=dtype)
    if main is not array:
        rest = array[(*[slice(None)] * axis, slice(end, None))]
        last = ufunc.reduce(rest, axis=axes, dtype=compute, keepdims=keepdims)
        total = ufunc(total, last, dtype=dtype)
    return total


def reduce_blocks(
    elements: Array | Elements,
    axes: tuple[int, ...],
    keepdims: bool,
    ufunc: np.ufunc,
    compute: DType | None,
    dtype: DType,
    empty: Empty,
    size: int | None = None,
) -> Array:
    """``ufunc.reduce`` in blocks, computing in ``compute``, with a result of ``dtype`` that ``empty`` makes.

    Blocks have ``size`` elements, by default as many as ``REDUCTION_BYTES`` hold.
    """

    def fold(block: Array, key: Key, axes: tuple[int, ...], target: Array) -> None:
        ufunc.reduce(block, axis=axes, dtype=compute, keepdims=True, out=target)

    if isinstance(elements, np.ndarray):
        elements = Stored(elements)
    if size is None:
        size = REDUCTION_BYTES // elements.dtype.itemsize
    if ufunc is np.add and compute in _FLOATS and len(axes) == len(elements.shape):
        row = elements.in_a_row()
        if row is not None and row.dtype == compute == dtype:
            total = _sum_of_row(row, dtype, size)
            return total.reshape((1,) * len(axes) if keepdims else ())
    return _in_blocks(elements, axes, keepdims, fold, size, ufunc, dtype, empty)


def _sum_of_row(row: Row, dtype: DType, size: int) -> Array:
    """The sum of all elements, in blocks.

    In each block elements that are some distance apart are added first. That is quicker than NumPy's order, which adds
    neighbours, and so few are added one after the other that it is as exact.
    """
    parts = blocks(row.shape[0], 1, size)
    partial = np.empty(len(parts), dtype)

    def add(part: slice) -> None:
        sums = np.empty(_COLUMNS, dtype)
        row.add_into(sums, part)
        partial[part.start // size] = np.add.reduce(sums)

    run_blocks(add, parts)
    return np.asarray(np.add.reduce(partial))


def keeps_rows(elements: Elements, axes: tuple[int, ...]) -> bool:
    """Whether blocks leave results of their own, not partial ones."""
    return len(axes) < len(elements.shape) and _split_axis(elements) not in axes


def squared_distances(
    array: Array, center: Array, axes: tuple[int, ...], keepdims: bool, empty: Empty
) -> Array:
    """Sum over axes of the squares of ``array - center``, which have one real floating-point dtype."""
    if center.size == 1:
        center = center.reshape(())

    def fold(block: Array, key: Key, axes: tuple[int, ...], target: Array) -> None:
        split = len(key) - 1
        near = center[key] if center.ndim and center.shape[split] > 1 else center
        distance = np.subtract(block, near)
        np.multiply(distance, distance, out=distance)
        np.add.reduce(distance, axis=axes, keepdims=True, out=target)

    elements = Stored(array)
    return _in_blocks(elements, axes, keepdims, fold, DISTANCES_BLOCK, np.add, array.dtype, empty)


def _in_blocks(
    elements: Elements,
    axes: tuple[int, ...],
    keepdims: bool,
    fold: Fold,
    size: int,
    combine: np.ufunc,
    dtype: DType,
    empty: Empty,
) -> Array:
    """Reduce blocks of about ``size`` elements by ``fold``, and partial results by ``combine``."""
    whole = elements.shape
    kept = tuple(1 if i in axes else n for i, n in enumerate(whole))
    shape = kept if keepdims else tuple(n for i, n in enumerate(whole) if i not in axes)
    row = elements.in_a_row() if len(axes) == len(whole) else None
    if row is not None:
        elements, axes, kept = row, (0,), (1,)
    axis = _split_axis(elements)
    length = elements.shape[axis]
    parts = blocks(length, math.prod(elements.shape) // length, size)
    leading = (slice(None),) * axis
    if axis not in axes:
        result = empty(kept, dtype)

        def into_result(part: slice) -> None:
            key = (*leading, part)
            fold(elements.block(key), key, axes, result[key])

        run_blocks(into_result, parts)
        return result.reshape(shape)
    step = parts[0].stop
    partial = np.empty((*kept[:axis], len(parts), *kept[axis + 1 :]), dtype)

    def into_partial(part: slice) -> None:
        key = (*leading, part)
        place = part.start // step
        fold(elements.block(key), key, axes, partial[(*leading, slice(place, place + 1))])

    run_blocks(into_partial, parts)
    total: Array = combine.reduce(partial, axis=axis, dtype=dtype)
    return np.asarray(total).reshape(shape)


def _split_axis(elements: Elements) -> int:
    """The axis of the largest stride among those long enough to be split."""
    shape = elements.shape
    long = [i for i, n in enumerate(shape) if n >= MANY]
    return elements.outermost(long or [max(range(len(shape)), key=lambda i: shape[i])])


def decide_blocks(array: Array, kind: Reduction) -> bool:
    """``any()`` or ``all()`` of a C-contiguous array of booleans; blocks after the one that decides are not read."""
    ufunc, _ = REDUCTIONS[kind]
    decisive = kind is Reduction.ANY
    row = array.reshape(-1)
    decided: list[bool] = []

    def body(part: slice) -> None:
        if not decided and bool(ufunc.reduce(row[part])) is decisive:
            decided.append(True)

    run_blocks(body, blocks(row.size, 1, _DECISION_BLOCK))
    return decisive if decided else not decisive
