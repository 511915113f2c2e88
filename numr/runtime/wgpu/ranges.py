"""Which memory an array touches."""

from __future__ import annotations

from numr.runtime.storage import DeviceArray

__all__ = ["is_same", "is_whole", "overlaps"]


def is_whole(array: DeviceArray) -> bool:
    """Whether an array is all of its buffer in C order, so that kernels may write past its end."""
    layout, storage = array.layout, array.storage
    return (
        layout.offset == 0
        and layout.is_contiguous
        and layout.size * array.itemsize == storage.size
        and not storage.is_foreign
    )


def is_same(source: DeviceArray, target: DeviceArray) -> bool:
    """Whether each element of one array lies exactly where that of the other does."""
    return (
        source.storage.handle == target.storage.handle
        and source.layout == target.layout
        and source.itemsize == target.itemsize
    )


def overlaps(source: DeviceArray, target: DeviceArray) -> bool:
    """Whether arrays may share memory at other places than each element's own."""
    if source.storage.handle != target.storage.handle:
        return False
    low, high = source.layout.span()
    start, end = target.layout.span()
    if high * source.itemsize <= start * target.itemsize:
        return False
    if end * target.itemsize <= low * source.itemsize:
        return False
    return not is_same(source, target)
