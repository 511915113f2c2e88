"""Selection by truth on a WebGPU client: nonzero and compress."""

from __future__ import annotations

from numr.runtime.device import Device
from numr.runtime.storage import DeviceArray
from numr.runtime.wgpu.families import Families
from numr.runtime.wgpu.programs import Programs
from numr.runtime.wgpu.selecting import collected, indices_of, positions_of

__all__ = ["Selection"]


class Selection(Families):
    """The families whose results are as large as the data say; each waits for the device once, to learn it."""

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._counts = Programs(self.context)

    def nonzero(self, array: DeviceArray) -> tuple[DeviceArray, ...]:
        positions = positions_of(self.context, self._counts, array, "nonzero")
        if positions is None:
            return tuple(self.empty((0,), self.defaults.indexing) for _ in array.shape)
        return indices_of(self.context, positions, array.shape, self.defaults.indexing)

    def compress(self, array: DeviceArray, mask: DeviceArray) -> DeviceArray:
        positions = positions_of(self.context, self._counts, mask, "compress")
        count = positions.size if positions else 0
        out = self.empty((count, *array.shape[mask.ndim :]), array.dtype)
        if positions and out.size:
            collected(self.context, array, positions, mask.ndim, out)
        return out
