"""Reductions of large arrays, in blocks over threads.

Each block leaves a partial result, and these are reduced in their turn. Blocks are of a fixed size, so that the same
numbers are added in the same order whatever the number of threads. The partial results also make sums more exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from numr.dtypes import DType
from numr.runtime.cpu.blockwise import MANY
from numr.runtime.cpu.threads import blocks, run_blocks

__all__ = [
    "DISTANCES_BLOCK",
    "PARTS_ABOVE",
    "adds_one_by_one",
    "reduce_blocks",
    "reduce_parts",
    "squared_distances",
]

Array = np.ndarray[Any, Any]
#: An index of an array's block, of slices.
Key = tuple[slice, ...]
#: Reduces the block of an array that a key selects over axes, which stay with length 1, into another array.
Fold = Callable[[Array, Key, tuple[int, ...], Array], object]

#: Makes an array of a shape and dtype.
Empty = Callable[[tuple[int, ...], DType], Array]

#: Elements in one block, which leaves one partial result: more than in elementwise work.
REDUCTION_BLOCK: Final = 1 << 18
#: Elements in one block of distances, which stay in cache between three passes.
DISTANCES_BLOCK: Final = 1 << 16

#: Partial sums are worth their while from this size, and this number of terms in each sum.
PARTS_ABOVE: Final = 1 << 18
_MANY_TERMS: Final = 1 << 11
#: How many there are, where one thread makes them.
_PARTS: Final = 8


def adds_one_by_one(array: Array, axes: tuple[int, ...]) -> bool:
    """Whether NumPy adds many terms one after the other, not pairwise as along a contiguous last axis."""
    if array.ndim - 1 in axes and array.flags.c_contiguous:
        return False
    terms: int = math.prod([array.shape[i] for i in axes])
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
    array: Array,
    axes: tuple[int, ...],
    keepdims: bool,
    ufunc: np.ufunc,
    compute: DType | None,
    dtype: DType,
    empty: Empty,
) -> Array:
    """``ufunc.reduce`` in blocks, computing in ``compute``, with a result of ``dtype`` that ``empty`` makes."""

    def fold(array: Array, key: Key, axes: tuple[int, ...], target: Array) -> None:
        ufunc.reduce(array[key], axis=axes, dtype=compute, keepdims=True, out=target)

    return _in_blocks(array, axes, keepdims, fold, REDUCTION_BLOCK, ufunc, dtype, empty)


def squared_distances(
    array: Array, center: Array, axes: tuple[int, ...], keepdims: bool, empty: Empty
) -> Array:
    """Sum over axes of the squares of ``array - center``, which have one real floating-point dtype."""
    if center.size == 1:
        center = center.reshape(())

    def fold(array: Array, key: Key, axes: tuple[int, ...], target: Array) -> None:
        split = len(key) - 1
        near = center[key] if center.ndim and center.shape[split] > 1 else center
        distance = np.subtract(array[key], near)
        np.multiply(distance, distance, out=distance)
        np.add.reduce(distance, axis=axes, keepdims=True, out=target)

    return _in_blocks(array, axes, keepdims, fold, DISTANCES_BLOCK, np.add, array.dtype, empty)


def _in_blocks(
    array: Array,
    axes: tuple[int, ...],
    keepdims: bool,
    fold: Fold,
    size: int,
    combine: np.ufunc,
    dtype: DType,
    empty: Empty,
) -> Array:
    """Reduce blocks of about ``size`` elements by ``fold``, and partial results by ``combine``."""
    kept = tuple(1 if i in axes else n for i, n in enumerate(array.shape))
    shape = kept if keepdims else tuple(n for i, n in enumerate(array.shape) if i not in axes)
    if len(axes) == array.ndim and array.flags.forc:
        array, axes, kept = array.reshape(-1, order="A"), (0,), (1,)
    axis = _outermost(array)
    length = array.shape[axis]
    parts = blocks(length, array.size // length, size)
    leading = (slice(None),) * axis
    if axis not in axes:
        result = empty(kept, dtype)

        def into_result(part: slice) -> None:
            key = (*leading, part)
            fold(array, key, axes, result[key])

        run_blocks(into_result, parts)
        return result.reshape(shape)
    step = parts[0].stop
    partial = np.empty((*kept[:axis], len(parts), *kept[axis + 1 :]), dtype)

    def into_partial(part: slice) -> None:
        place = part.start // step
        fold(array, (*leading, part), axes, partial[(*leading, slice(place, place + 1))])

    run_blocks(into_partial, parts)
    total: Array = combine.reduce(partial, axis=axis, dtype=dtype)
    return np.asarray(total).reshape(shape)


def _outermost(array: Array) -> int:
    """The axis of the largest stride among those long enough to be split."""
    long = [i for i, n in enumerate(array.shape) if n >= MANY]
    candidates = long or [max(range(array.ndim), key=lambda i: array.shape[i])]
    return max(candidates, key=lambda i: abs(array.strides[i]))
