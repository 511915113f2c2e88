"""``Families``: what all families of a WebGPU client build on, its memory and its device."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from numr.dtypes import DType
from numr.layout import Layout
from numr.runtime.client import RuntimeClient
from numr.runtime.device import Device
from numr.runtime.storage import DeviceArray, Storage
from numr.runtime.wgpu.devices import DEFAULTS, dtypes_of
from numr.runtime.wgpu.launch import DeviceContext
from numr.runtime.wgpu.memory import WgpuAllocator
from numr.runtime.wgpu.runtime import WgpuRuntime

__all__ = ["Families"]


class Families(RuntimeClient[DeviceArray]):
    """What the families of a WebGPU client have in common.

    Attributes
    ----------
    context : DeviceContext
        Where kernels run.
    """

    runtime: ClassVar[type[WgpuRuntime]] = WgpuRuntime
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
        self.require_dtype(dtype, "empty")
        return self.context.empty(shape, dtype)

    def copy(self, array: DeviceArray) -> DeviceArray:
        result = self.empty(array.shape, array.dtype)
        itemsize = array.itemsize
        self.runtime.copy_strided(
            array.storage.handle,
            array.offset * itemsize,
            result.storage.handle,
            array.shape,
            array.strides,
            itemsize,
            self.device,
        )
        return result

    def from_host(self, array: np.ndarray[Any, Any], *, copy: bool) -> DeviceArray:
        self.require_dtype(array.dtype, "asarray")
        result = self.empty(array.shape, array.dtype)
        contiguous: Any = np.ascontiguousarray(array)
        self.runtime.copy_to_device(contiguous, result.storage.handle, self.device)
        return result

    def to_host(self, array: DeviceArray) -> np.ndarray[Any, Any]:
        if array.offset or not array.layout.is_contiguous:
            array = self.copy(array)
        result: Any = np.empty(array.shape, array.dtype)
        self.runtime.copy_from_device(array.storage.handle, result, self.device)
        return np.asarray(result)
