"""Parts of arrays, for work that is done in pieces because a whole array does not fit into a binding."""

from __future__ import annotations

from numr.layout import Layout
from numr.runtime.storage import DeviceArray

__all__ = ["narrowed"]


def narrowed(array: DeviceArray, axis: int, start: int, stop: int) -> DeviceArray:
    """The view of a range along an axis."""
    layout = array.layout
    axis %= len(layout.shape)
    shape = (*layout.shape[:axis], stop - start, *layout.shape[axis + 1 :])
    offset = layout.offset + start * layout.strides[axis]
    return DeviceArray(array.storage, Layout(shape, layout.strides, offset), array.dtype)
