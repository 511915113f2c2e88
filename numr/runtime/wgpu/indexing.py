"""``Indexing``: reading and writing elements at index arrays."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING

from numr.errors import IndexingError
from numr.layout import Layout, contiguous_strides
from numr.runtime.storage import DeviceArray
from numr.runtime.wgpu.families import Families
from numr.runtime.wgpu.gathering import gather_into, scatter_into
from numr.runtime.wgpu.picking import Picks, Reports

if TYPE_CHECKING:
    from numr.runtime.device import Device
    from numr.runtime.wgpu.records import Binding

__all__ = ["Indexing"]


class Indexing(Families):
    """The families ``gather`` and ``scatter``.

    Each call waits for the device and reads back a word, since the device alone knows whether all indices are in
    range.
    """

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._reports = Reports(self.context)

    def gather(self, array: DeviceArray, indices: Sequence[DeviceArray]) -> DeviceArray:
        out = self.empty((*indices[0].shape, *array.shape[len(indices) :]), array.dtype)
        if indices[0].size:
            report = self._reports.take()
            gather_into(self.context, array, indices, out, report)
            self._check(array, indices, report)
        return out

    def scatter(
        self, array: DeviceArray, indices: Sequence[DeviceArray], values: DeviceArray
    ) -> None:
        named = len(indices)
        leading = array.shape[:named]
        shape = (*indices[0].shape, *array.shape[named:])
        if values.dtype != array.dtype:
            values = self.cast(values, array.dtype)
        elif values.storage.handle == array.storage.handle:
            values = self.copy(values)
        values = self.broadcast(values, shape)
        if not indices[0].size:
            return
        report = self._reports.take()
        places = Picks(
            self.context, leading, contiguous_strides(leading), indices, report
        ).offsets()
        self._check(array, indices, report)
        if array.size:
            scatter_into(self.context, array, named, places, values)

    def _check(self, array: DeviceArray, indices: Sequence[DeviceArray], report: Binding) -> None:
        """Raise IndexingError if a kernel met an index out of range."""
        value = self._reports.read(report)
        if not value:
            return
        pick = value ^ 0xFFFFFFFF
        for axis, index in enumerate(indices):
            given = self._element(index, pick)
            size = array.shape[axis]
            if not -size <= given < size:
                raise IndexingError(
                    f"indexing an array of shape {array.shape}: index {given} is out of bounds for axis {axis} "
                    f"with size {size}."
                )
        raise AssertionError(f"gather: pick {pick} was reported, but its indices are in range.")

    def _element(self, index: DeviceArray, number: int) -> int:
        """An element by its number in C order."""
        steps = contiguous_strides(index.shape)
        place = [number // step % n for n, step in zip(index.shape, steps, strict=True)]
        offset = index.offset + sum(map(operator.mul, place, index.strides))
        return int(self.to_host(self.wrap(index.storage, Layout((), (), offset), index.dtype)))
