"""The families that move elements: writing into views, joining arrays, and reading memory as another dtype."""

from __future__ import annotations

from collections.abc import Sequence

from numr.dtypes import DType
from numr.errors import ShapeError
from numr.layout import Layout
from numr.runtime.storage import DeviceArray
from numr.runtime.wgpu.operations import Operations
from numr.runtime.wgpu.placing import place
from numr.runtime.wgpu.ranges import is_same, overlaps

__all__ = ["Moving"]


class Moving(Operations):
    """The copy families but for ``copy`` itself."""

    def assign(self, target: DeviceArray, source: DeviceArray) -> None:
        if source.dtype != target.dtype:
            conversion = self.conversion(source.dtype, target.dtype)
            if conversion.fill((source,), target):
                return
            source = conversion(source)
        elif is_same(source, target):
            return
        elif overlaps(source, target):
            source = self.copy(source)
        place(self.context, target, self.broadcast(source, target.shape))

    def concat(self, arrays: Sequence[DeviceArray], axis: int) -> DeviceArray:
        first = arrays[0]
        length = sum(array.shape[axis] for array in arrays)
        shape = (*first.shape[:axis], length, *first.shape[axis + 1 :])
        result = self.context.empty(shape, first.dtype)
        strides, start = result.strides, 0
        for array in arrays:
            part = Layout(array.shape, strides, start * strides[axis])
            place(self.context, DeviceArray(result.storage, part, result.dtype), array)
            start += array.shape[axis]
        return result

    def bitcast(self, array: DeviceArray, dtype: DType) -> DeviceArray:
        layout = _read_as(array.layout, array.itemsize, dtype.itemsize)
        if layout is None:
            raise ShapeError(
                f"view: an array of shape {array.shape}, strides {array.strides} and dtype {array.dtype} cannot "
                f"be read as {dtype}: the last axis must lie without gaps and hold whole elements. Copy it with "
                "contiguous() first, or convert it with astype()."
            )
        return DeviceArray(array.storage, layout, dtype)


def _read_as(layout: Layout, old: int, new: int) -> Layout | None:
    """The layout of the same bytes in elements of another size, None if there is none."""
    if old == new:
        return layout
    if not layout.shape or (layout.strides[-1] != 1 and layout.shape[-1] != 1):
        return None
    *shape, length = layout.shape
    *strides, _ = layout.strides
    if new < old:
        ratio = old // new
        steps = (*(step * ratio for step in strides), 1)
        return Layout((*shape, length * ratio), steps, layout.offset * ratio)
    ratio = new // old
    if length % ratio or layout.offset % ratio or any(step % ratio for step in strides):
        return None
    steps = (*(step // ratio for step in strides), 1)
    return Layout((*shape, length // ratio), steps, layout.offset // ratio)
