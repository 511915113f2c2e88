"""``Families``: what all families of a WebGPU client build on, its memory and its device."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from numr.dtypes import DType
from numr.layout import Layout
from numr.runtime.client import RuntimeClient
from numr.runtime.device import Device
from numr.runtime.storage import DeviceArray, Storage
from numr.runtime.wgpu.devices import DEFAULTS, dtypes_of, feature_of
from numr.runtime.wgpu.launch import DeviceContext
from numr.runtime.wgpu.memory import WgpuAllocator
from numr.runtime.wgpu.runtime import WgpuRuntime
from numr.runtime.wgpu.taping import WgpuTape

__all__ = ["Families"]


class Families(RuntimeClient[DeviceArray]):
    """What the families of a WebGPU client have in common.

    Attributes
    ----------
    context : DeviceContext
        Where kernels run.
    """

    runtime: ClassVar[type[WgpuRuntime]] = WgpuRuntime
    # Kernels write whole words, past the end of an array that has memory of its own.
    separate_memory = True
    defaults = DEFAULTS

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self.context = DeviceContext(device, self.runtime)
        self.dtypes = dtypes_of(self.context.features)

    @property
    def allocator(self) -> WgpuAllocator:
        return self.context.allocator

    def synchronize(self) -> None:
        self.runtime.opened(self.device).queue.synchronize()

    def tape(self) -> WgpuTape | None:
        context = self.context
        if not context.taping.acquire(blocking=False):
            return None
        try:
            return WgpuTape(context)
        except BaseException:
            context.taping.release()
            raise

    def feature_of(self, dtype: DType) -> str:
        return feature_of(dtype)

    # --------------------------------------------------- storage and host data
    def storage(self, array: DeviceArray) -> Storage:
        return array.storage

    def layout(self, array: DeviceArray) -> Layout:
        return array.layout

    def wrap(self, storage: Storage, layout: Layout, dtype: DType) -> DeviceArray:
        return DeviceArray(storage, layout, dtype)

    def is_writable(self, array: DeviceArray) -> bool:
        return not array.storage.readonly

    def empty(self, shape: tuple[int, ...], dtype: DType) -> DeviceArray:
        return self.context.empty(shape, self.require_dtype(dtype, "empty"))

    def copy(self, array: DeviceArray) -> DeviceArray:
        return self.context.contiguous(array)

    def from_host(self, array: np.ndarray[Any, Any], *, copy: bool) -> DeviceArray:
        dtype = self.require_dtype(array.dtype.newbyteorder("="), "asarray")
        result = self.context.empty(array.shape, dtype)
        if array.size:
            contiguous: Any = np.ascontiguousarray(array, dtype)
            self.runtime.copy_to_device(contiguous, result.storage.handle, self.device)
        return result

    def to_host(self, array: DeviceArray) -> np.ndarray[Any, Any]:
        result: np.ndarray[Any, Any] = np.empty(array.shape, array.dtype)
        if result.size:
            if not array.layout.is_contiguous:
                array = self.copy(array)
            buffer = self.context.buffer(array, "to_host")
            data = result.reshape(-1).view(np.uint8)
            self.context.opened.staging.read(buffer, data, array.offset * array.itemsize)
        return result
