"""Running kernels on arrays: what is bound of an array's buffer, and how many workgroups run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from numr.errors import BackendLimitation
from numr.layout import Layout
from numr.runtime.storage import DeviceArray, Storage
from numr.runtime.wgpu.queue import Binding, grid
from numr.runtime.wgpu.runtime import WgpuRuntime
from numr.runtime.wgpu.texts import WORKGROUP

if TYPE_CHECKING:
    from numr.dtypes import DType
    from numr.runtime.device import Device
    from numr.runtime.wgpu.opened import OpenDevice
    from numr.runtime.wgpu.pipelines import KernelText

__all__ = ["Bound", "DeviceContext"]


class Bound(NamedTuple):
    """What a kernel sees of an array.

    Attributes
    ----------
    binding : tuple
        The part of the buffer that holds all of the array's elements.
    start : int
        The array's first element, from the start of the binding.
    """

    binding: Binding
    start: int


class DeviceContext:
    """A device for kernels: makes arrays, binds them and runs kernels on them.

    Parameters
    ----------
    device : Device
        The device.
    runtime : type[WgpuRuntime]
        Its runtime.

    Attributes
    ----------
    is_cpu : bool
        Whether the adapter is software: shared memory and many workgroups do not pay there.
    max_binding : int
        Bytes that one binding of a buffer has at most.
    features : frozenset of str
        Features of WebGPU in use.
    limits : dict of str to int
        By WebGPU's names.
    """

    def __init__(self, device: Device, runtime: type[WgpuRuntime]) -> None:
        self.device = device
        self.runtime = runtime
        self.allocator = runtime.allocator(device)
        adapter = self.allocator.adapter
        self.is_cpu = adapter.is_cpu
        self.features = adapter.features
        self.limits = adapter.limits
        self.alignment = max(self.limits["min-storage-buffer-offset-alignment"], 16)
        self.max_binding = (
            self.limits["max-storage-buffer-binding-size"] // self.alignment * self.alignment
        )
        self.max_groups = self.limits["max-compute-workgroups-per-dimension"]

    @property
    def opened(self) -> OpenDevice:
        """The open device, with ``queue`` and ``pipelines``."""
        return self.allocator.table.opened or self.allocator.open_device()

    def empty(self, shape: tuple[int, ...], dtype: DType) -> DeviceArray:
        """A new C-contiguous array, in a buffer of its own, whose elements are arbitrary."""
        size = math.prod(shape) * dtype.itemsize
        storage = Storage.allocate(size, self.device, self.runtime)
        return DeviceArray(storage, Layout.contiguous(shape), dtype)

    def bind(self, array: DeviceArray, function: str) -> Bound:
        """What a kernel binds for an array that is not empty.

        Raises
        ------
        BackendLimitation
            If its elements lie too far apart for one binding.
        """
        layout = array.layout
        low, high = layout.offset, layout.offset + layout.size
        if not layout.is_contiguous:
            low, high = layout.span()
        return self.bind_range(array, low, high, layout.offset, function)

    def bind_range(
        self, array: DeviceArray, low: int, high: int, first: int, function: str
    ) -> Bound:
        """What a kernel binds for the elements ``low`` to ``high`` of an array's storage; ``first`` is its start."""
        itemsize = array.itemsize
        buffer, _ = self.allocator.buffer(array.storage.handle, high * itemsize, function)
        # Aligned to whole elements as well, so that the start can be counted in them.
        step = math.lcm(self.alignment, itemsize)
        base = low * itemsize // step * step
        size = (high * itemsize - base + 15) & -16
        size = min(size, buffer.size - base)
        if size > self.max_binding:
            raise BackendLimitation(
                "wgpu",
                function,
                f"an array of shape {array.shape} and dtype {array.dtype} spans {size} bytes of a buffer; "
                f"{self.device} has the limit max-storage-buffer-binding-size of {self.max_binding}. Work "
                "in smaller pieces.",
            )
        return Bound((buffer, base, size), first - base // itemsize)

    def run(
        self,
        text: KernelText,
        bindings: Sequence[Binding],
        params: bytes,
        groups: tuple[int, int, int],
    ) -> None:
        """Record a kernel; see ``Queue.dispatch``."""
        opened = self.opened
        opened.queue.dispatch(opened.pipelines.get(text), bindings, params, groups)

    def grid(self, count: int, size: int = WORKGROUP) -> tuple[tuple[int, int, int], int]:
        """Workgroups for a number of invocations, and the invocations in a row of them; see ``queue.grid``."""
        return grid(count, size, self.max_groups)
