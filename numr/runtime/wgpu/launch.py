"""Running kernels on arrays: what is bound of an array's buffer, and how many workgroups run."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from numr import dtypes as dt
from numr.errors import BackendLimitation
from numr.layout import Layout
from numr.runtime.parking import owner_of
from numr.runtime.storage import DeviceArray, Storage
from numr.runtime.wgpu.checking import grid
from numr.runtime.wgpu.copies import gather
from numr.runtime.wgpu.copy_kernels import is_turned
from numr.runtime.wgpu.records import Binding, Dispatch, Repeated
from numr.runtime.wgpu.runtime import WgpuRuntime
from numr.runtime.wgpu.texts import WORKGROUP

if TYPE_CHECKING:
    from numr.dtypes import DType
    from numr.runtime.device import Device
    from numr.runtime.wgpu.opened import OpenDevice
    from numr.runtime.wgpu.pipelines import Kernel, KernelText
    from numr.runtime.wgpu.taping import Pool

__all__ = ["Bound", "DeviceContext", "Plan"]

#: Bytes of an array from which on it is quicker to copy it than to read it across its neighbours.
_WORTH_TURNING: Final = 32 << 20
#: Layouts of new arrays that are kept.
_KEPT_LAYOUTS: Final = 1024

_plans = itertools.count()


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


class Plan(NamedTuple):
    """A dispatch that was checked once, to be recorded again with other arrays of the same layouts.

    Attributes
    ----------
    opened : OpenDevice
        The device as it was open then; the plan ends with it.
    kernel : Kernel
        What is run.
    spans : tuple of (int, int)
        First byte and number of bytes of each binding, such that they follow from the layouts alone.
    params : bytes
        The parameters.
    groups : tuple of int
        Numbers of workgroups.
    traffic : int
        Bytes that are bound.
    number : int
        Unlike that of any other plan.
    """

    opened: OpenDevice
    kernel: Kernel
    spans: tuple[tuple[int, int], ...]
    params: bytes
    groups: tuple[int, int, int]
    traffic: int
    number: int


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
    in_order : bool
        Whether a workgroup may wait for those that began before it.
    doubles_words : bool
        Whether elementwise kernels read and write by words of 64 bits, where elements have less.
    max_binding : int
        Bytes that one binding of a buffer has at most.
    alignment : int
        What bindings start at multiples of.
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
        self.in_order = adapter.in_order
        self.features = adapter.features
        self.doubles_words = adapter.is_cpu and "shader-int64" in adapter.features
        self.limits = adapter.limits
        self.alignment = max(self.limits["min-storage-buffer-offset-alignment"], 16)
        self.max_binding = (
            self.limits["max-storage-buffer-binding-size"] // self.alignment * self.alignment
        )
        self.max_groups = self.limits["max-compute-workgroups-per-dimension"]
        self.table = self.allocator.table
        self._claim = self.allocator.claim
        self._release = self.allocator.release
        self._layouts: dict[tuple[int, ...], Layout] = {}
        #: Who has a tape holds this; then the memory that is allocated for it, and arrays that it keeps alive.
        self.taping = threading.Lock()
        self.pool: Pool | None = None
        self.kept: list[DeviceArray] | None = None
        #: Plans of :mod:`numr.runtime.wgpu.placing`.
        self.placements: dict[Any, Plan] = {}

    @property
    def opened(self) -> OpenDevice:
        """The open device, with ``queue`` and ``pipelines``."""
        return self.table.opened or self.allocator.open_device()

    def empty(self, shape: tuple[int, ...], dtype: DType) -> DeviceArray:
        """A new C-contiguous array, in a buffer of its own, whose elements are arbitrary."""
        layout = self._layouts.get(shape)
        if layout is None:
            if len(self._layouts) >= _KEPT_LAYOUTS:
                self._layouts.clear()
            layout = self._layouts[shape] = Layout.contiguous(shape)
        return self.fresh(layout, math.prod(shape) * dtype.itemsize, dtype)

    def fresh(self, layout: Layout, nbytes: int, dtype: DType) -> DeviceArray:
        """A new array of a C-contiguous layout without offset, and of as many bytes."""
        pool = self.pool
        if pool is not None and pool.thread == threading.get_ident():
            return pool.fresh(layout, nbytes, dtype)
        block = self._claim(nbytes)
        owner = owner_of(block, self._release)
        storage = Storage.owned(block.ptr, nbytes, self.device, self.runtime, owner)
        return DeviceArray(storage, layout, dtype)

    def keep(self, array: DeviceArray) -> None:
        """Say that kernels use an array which its owner may drop at any time: tapes must keep it."""
        if self.kept is not None:
            self.kept.append(array)

    def is_shared(self, layout: Layout) -> bool:
        """Whether :meth:`empty` gives new arrays of the shape this very layout."""
        return self._layouts.get(layout.shape) is layout

    def contiguous(self, array: DeviceArray, shape: tuple[int, ...] | None = None) -> DeviceArray:
        """A new C-contiguous array of the same elements, broadcast to ``shape``."""
        layout = array.layout if shape is None else array.layout.broadcast_to(shape)
        result = self.empty(layout.shape, array.dtype)
        self._copy(array, layout, result)
        return result

    def turned(self, arrays: Sequence[DeviceArray], shape: tuple[int, ...]) -> list[DeviceArray]:
        """The arrays, with C-contiguous copies of those that a GPU would read much slower across their neighbours."""
        if self.is_cpu:
            return list(arrays)
        return [
            self.contiguous(array)
            if array.shape == shape
            and array.size * array.itemsize >= _WORTH_TURNING
            and is_turned(array.layout)
            else array
            for array in arrays
        ]

    def joined(self, arrays: Sequence[DeviceArray], slots: Sequence[int]) -> list[DeviceArray]:
        """Copies of arrays, C-contiguous and with one buffer for all that have the same number in ``slots``."""
        ends = dict.fromkeys(slots, 0)
        offsets = []
        for slot, array in zip(slots, arrays, strict=True):
            offsets.append(ends[slot])
            ends[slot] += array.nbytes + self.alignment - 1 & -self.alignment
        storages = {slot: self.empty((size,), dt.uint8).storage for slot, size in ends.items()}
        result = []
        for slot, array, offset in zip(slots, arrays, offsets, strict=True):
            layout = Layout.contiguous(array.shape, offset // array.itemsize)
            result.append(DeviceArray(storages[slot], layout, array.dtype))
            self._copy(array, array.layout, result[-1])
        return result

    def _copy(self, source: DeviceArray, layout: Layout, target: DeviceArray) -> None:
        """Copy what a layout describes in an array's storage to a C-contiguous array, at a multiple of 4 bytes."""
        itemsize = source.itemsize
        start = layout.offset * itemsize
        buffers = self.buffer(source, "copy"), self.buffer(target, "copy")
        gather(
            self.opened,
            buffers[0],
            start,
            layout.shape,
            layout.strides,
            itemsize,
            buffers[1],
            target.storage.size,
            target.offset * itemsize,
        )

    # ---------------------------------------------------------------------- bindings
    def buffer(self, array: DeviceArray, function: str) -> Any:
        """The buffer that an array lies in."""
        return self.allocator.buffer(array.storage.handle, None, function)[0]

    def aligned_start(self, array: DeviceArray) -> int | None:
        """The byte at which an array starts, if a binding may start there."""
        start = array.layout.offset * array.itemsize
        return None if start % self.alignment else start

    def fits(self, array: DeviceArray) -> bool:
        """Whether one binding can hold all elements of an array."""
        low, high = array.layout.span()
        return (high - low) * array.itemsize + 2 * self.alignment <= self.max_binding

    def bind_part(self, array: DeviceArray, first: int, count: int, function: str) -> Bound:
        """What a kernel binds for an array of which it uses the elements from ``first`` on, by their numbers.

        That is all of the array where it fits, else these elements of an array that is C-contiguous. In both cases
        ``start`` is where the array itself starts, which lies before the binding in the latter.
        """
        if self.fits(array):
            return self.bind(array, function)
        start = array.layout.offset
        return self.bind_range(array, start + first, start + first + count, start, function)

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

    def run_first(
        self,
        text: KernelText,
        bindings: Sequence[Binding],
        params: bytes,
        groups: tuple[int, int, int],
    ) -> Plan:
        """Record a kernel, and return the plan to do it again; there is a workgroup."""
        opened = self.opened
        kernel = opened.pipelines.get(text)
        opened.queue.dispatch(kernel, bindings, params, groups)
        spans = tuple((start, size) for _, start, size in bindings)
        traffic = sum(size for _, size in spans)
        return Plan(opened, kernel, spans, params, groups, traffic, next(_plans))

    def repeat(self, plan: Plan, arrays: Sequence[DeviceArray]) -> None:
        """Record the kernel of a plan with the parameters that it has; see :meth:`run_again`."""
        key = (plan.number, *[array.storage.handle for array in arrays])
        queue = plan.opened.queue
        record = queue.repeated.get(key)
        if record is None:
            bindings = self._bindings(plan, arrays)
            record = Repeated(plan.kernel, bindings, plan.params, plan.groups)
            queue.keep(key, record)
        queue.record(record, plan.traffic)

    def run_again(self, plan: Plan, arrays: Sequence[DeviceArray], params: bytes) -> None:
        """Record the kernel of a plan of this device as it is open; ``arrays`` has one for each binding."""
        record = Dispatch(plan.kernel, self._bindings(plan, arrays), params, plan.groups)
        plan.opened.queue.record(record, plan.traffic)

    def _bindings(self, plan: Plan, arrays: Sequence[DeviceArray]) -> list[Binding]:
        buffers = self.table.buffers
        bindings = []
        for array, (start, size) in zip(arrays, plan.spans, strict=True):
            buffer = buffers[array.storage.handle]
            if buffer is None:
                self.buffer(array, "dispatch")  # raises
            bindings.append((buffer, start, size))
        return bindings

    def grid(self, count: int, size: int = WORKGROUP) -> tuple[tuple[int, int, int], int]:
        """Workgroups for a number of invocations, and the invocations in a row of them; see ``checking.grid``."""
        return grid(count, size, self.max_groups)
