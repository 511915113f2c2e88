"""Which memory an array touches."""

from __future__ import annotations

from typing import Any

from numr.dtypes import DType

__all__ = ["as_word", "extent", "overlaps"]

Array = Any


def extent(array: Array) -> int:
    """Bytes from an array's first element to the end of its last."""
    if not array.size:
        return 0
    steps = zip(array.shape, array.strides, strict=True)
    return int(array.itemsize + sum(max(stride, 0) * (n - 1) for n, stride in steps))


def _bounds(array: Array) -> tuple[int, int]:
    """Addresses of the first byte of an array and of the one past its last."""
    steps = tuple(zip(array.shape, array.strides, strict=True))
    first = array.data.ptr
    low = first + sum(min(stride, 0) * (n - 1) for n, stride in steps)
    high = first + sum(max(stride, 0) * (n - 1) for n, stride in steps) + array.itemsize
    return low, high


def overlaps(source: Array, target: Array) -> bool:
    """Whether arrays may share memory at other places than each element's own."""
    if not source.size or not target.size:
        return False
    low, high = _bounds(source)
    start, end = _bounds(target)
    if high <= start or end <= low:
        return False
    return not (
        source.data.ptr == target.data.ptr
        and source.shape == target.shape
        and source.strides == target.strides
        and source.dtype.itemsize == target.dtype.itemsize
    )


def as_word(array: Array, word: DType) -> Array:
    """The same elements as words that are moved without being looked at."""
    if array.dtype == word:
        return array
    return array.__class__(array.shape, word, array.data, array.strides)
