"""``CudaRuntime``: NVIDIA's GPUs as a runtime."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from numr.errors import DeviceMismatch, InvalidHandle, RuntimeUnavailable
from numr.runtime.base import Device as AnyDevice
from numr.runtime.buffers import readable_bytes, strided_range, writable_bytes
from numr.runtime.cuda import driver
from numr.runtime.cuda.context import DeviceContext
from numr.runtime.cuda.copies import gather_view
from numr.runtime.cuda.memory import CudaAllocator
from numr.runtime.graphs.runtime import GraphRuntime

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from numr.runtime.client import RuntimeClient
    from numr.runtime.cuda.client import CudaClient

__all__ = ["CudaDevice", "CudaRuntime"]


class CudaDevice(AnyDevice):
    """One GPU, by the number that the CUDA runtime gives it.

    Examples
    --------
    >>> str(CudaDevice(1))
    'cuda:1'
    """

    __slots__ = ()

    runtime: ClassVar[str] = "cuda"

    @property
    def name(self) -> str:
        """The product's name."""
        return _product_name(self.id)


_contexts: dict[int, DeviceContext] = {}
_clients: dict[int, CudaClient] = {}
_lock = threading.RLock()


class CudaRuntime(GraphRuntime):
    """Memory, copies and events of NVIDIA's GPUs.

    Handles are device addresses. Work is queued on one stream for each device and runs in order; copies to the host
    wait for it. ``copy_from_device_pipelined`` waits for its event alone and travels on a stream of its own.
    """

    Device = CudaDevice
    Allocator = CudaAllocator
    RawHandle = tuple
    namespace = "numr.cuda"

    @classmethod
    def name(cls) -> str:
        """Return "cuda"."""
        return "cuda"

    @classmethod
    def unavailable(cls) -> RuntimeUnavailable | None:
        """Say whether CuPy, the driver or the GPU is missing, or the process was forked."""
        return driver.unavailable()

    @classmethod
    def devices(cls) -> tuple[CudaDevice, ...]:
        """Return all GPUs that the driver shows."""
        return tuple(CudaDevice(number) for number in range(driver.count()))

    @classmethod
    def default_device(cls) -> CudaDevice:
        """Return the first GPU."""
        driver.require()
        return CudaDevice(0)

    @classmethod
    def context(cls, device: AnyDevice) -> DeviceContext:
        """What is held of a device.

        Raises
        ------
        DeviceMismatch
            If there is no such device.
        RuntimeUnavailable
            If CUDA cannot be used in this process.
        """
        found = _contexts.get(device.id) if type(device) is CudaDevice else None
        if found is not None and not driver.is_forked():
            return found
        if device not in cls.devices():
            existing = ", ".join(str(each) for each in cls.devices())
            raise DeviceMismatch(
                f"the cuda runtime has no device {str(device)!r}; it has {existing}."
            )
        with _lock:  # or two threads could make one each
            if device.id not in _contexts:
                _contexts[device.id] = DeviceContext(device.id, str(device))
            return _contexts[device.id]

    @classmethod
    def default_client(cls, device: AnyDevice) -> CudaClient:
        """Return the client of a device."""
        from numr.runtime.cuda.client import CudaClient

        context = cls.context(device)
        with _lock:
            if context.number not in _clients:
                _clients[context.number] = CudaClient(CudaDevice(context.number))
            return _clients[context.number]

    @classmethod
    def allocator(cls, device: AnyDevice) -> CudaAllocator:
        """Return the allocator of a device."""
        return cls.context(device).allocator

    @classmethod
    def raw_handle(cls, client: RuntimeClient[Any]) -> tuple[Any, Any]:
        """CuPy's device and the stream that work is queued on."""
        context = cls.context(client.device)
        return driver.library().cuda.Device(context.number), context.stream

    # ---------------------------------------------------------------- memory
    @classmethod
    def allocate(cls, size_bytes: int, device: AnyDevice) -> int:
        """Allocate device memory."""
        return cls.context(device).allocator.allocate(size_bytes)

    @classmethod
    def deallocate(cls, ptr: int, size_bytes: int, device: AnyDevice) -> None:
        """Give device memory back, to be used again by later work of the stream."""
        cls.context(device).allocator.deallocate(ptr, size_bytes)

    @classmethod
    def copy_to_device(cls, src: Buffer, dst: int, device: AnyDevice) -> None:
        """Copy a buffer to the memory behind a handle."""
        context = cls.context(device)
        source = readable_bytes(src, "copy_to_device")
        _require_room(context, dst, source.size, "copy_to_device")
        context.upload(source, dst)

    @classmethod
    def copy_from_device(cls, src: int, dst: Buffer, device: AnyDevice) -> None:
        """Fill a buffer from the memory behind a handle."""
        context = cls.context(device)
        target = writable_bytes(dst, "copy_from_device")
        _require_room(context, src, target.size, "copy_from_device")
        context.download(src, target)

    @classmethod
    def copy_within_device(cls, src: int, dst: int, size_bytes: int, device: AnyDevice) -> None:
        """Copy bytes between two handles."""
        context = cls.context(device)
        _require_room(context, src, size_bytes, "copy_within_device")
        _require_room(context, dst, size_bytes, "copy_within_device")
        # Two allocations do not overlap, so that only one and the same place could.
        if size_bytes and src != dst:
            context.move(src, dst, size_bytes)

    @classmethod
    def copy_between_devices(
        cls, src: int, src_device: AnyDevice, dst: int, dst_device: AnyDevice, size_bytes: int
    ) -> None:
        """Copy bytes from one GPU's memory to another's, without the host where the hardware can.

        Raises
        ------
        InvalidHandle
            If a handle is not allocated on its device, or less memory lies behind it.
        """
        source, target = cls.context(src_device), cls.context(dst_device)
        _require_room(source, src, size_bytes, "copy_between_devices")
        _require_room(target, dst, size_bytes, "copy_between_devices")
        if source is target:
            cls.copy_within_device(src, dst, size_bytes, src_device)
        elif size_bytes:
            target.receive(source, src, dst, size_bytes)

    @classmethod
    def copy_strided(
        cls,
        src_handle: int,
        src_byte_offset: int,
        dst_handle: int,
        shape: Sequence[int],
        strides: Sequence[int],
        elem_size: int,
        device: AnyDevice,
    ) -> None:
        """Gather a strided view into contiguous memory; see ``Runtime.copy_strided``."""
        context = cls.context(device)
        available = context.allocator.size_of(src_handle)
        strided_range(shape, strides, src_byte_offset, elem_size, available, "copy_strided")
        size = elem_size
        for n in shape:
            size *= n
        _require_room(context, dst_handle, size, "copy_strided")
        gather_view(context, src_handle + src_byte_offset, dst_handle, shape, strides, elem_size)

    # ---------------------------------------------------------------- events
    @classmethod
    def record_compute_event(cls, device: AnyDevice) -> int:
        """Mark the work queued so far; see ``DeviceContext.record_event`` for how long a mark lasts."""
        return cls.context(device).record_event()

    @classmethod
    def copy_from_device_pipelined(
        cls, src: int, dst: Buffer, device: AnyDevice, event: int
    ) -> None:
        """Fill a buffer as soon as the work before an event is done, while later work goes on.

        Memory that later work writes is copied as that work leaves it, or in between.
        """
        context = cls.context(device)
        target = writable_bytes(dst, "copy_from_device_pipelined")
        _require_room(context, src, target.size, "copy_from_device_pipelined")
        context.download_after(event, src, target)


def _require_room(context: DeviceContext, handle: int, size: int, function: str) -> None:
    available = context.allocator.size_of(handle)
    if not 0 <= size <= available:
        raise InvalidHandle(
            f"{function}: {size} bytes were asked for, and {available} lie behind the handle {handle:#x} "
            f"of {context.name}."
        )


@cache
def _product_name(number: int) -> str:
    properties = driver.library().cuda.runtime.getDeviceProperties(number)
    name: str = properties["name"].decode()
    return name
