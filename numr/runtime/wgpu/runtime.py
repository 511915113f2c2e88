"""``WgpuRuntime``: WebGPU adapters as devices, their memory, and what a fork or a lost device does to them."""

from __future__ import annotations

import logging  # noqa: F401  (before the hooks below, see there)
import math
import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from numr.errors import DeviceMismatch, RuntimeUnavailable
from numr.runtime.base import Device as AnyDevice
from numr.runtime.base import Runtime
from numr.runtime.buffers import readable_bytes, strided_range, writable_bytes
from numr.runtime.graphs.runtime import GraphRuntime
from numr.runtime.wgpu import devices, native
from numr.runtime.wgpu.copies import copy_bytes, gather, merge_word
from numr.runtime.wgpu.devices import WgpuDevice
from numr.runtime.wgpu.losses import lost
from numr.runtime.wgpu.memory import WgpuAllocator
from numr.runtime.wgpu.opened import OpenDevice

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from numr.runtime.client import RuntimeClient

__all__ = ["WgpuRuntime"]

#: By device, and made at its first use. Both grow under ``devices.lock``.
_allocators: dict[AnyDevice, WgpuAllocator] = {}
_clients: dict[tuple[type[Runtime], AnyDevice], RuntimeClient[Any]] = {}


class WgpuRuntime(GraphRuntime):
    """Vulkan, Metal and Direct3D 12 adapters, by way of wgpu.

    Handles are numbers of buffers. Work is recorded and submitted in batches; a read submits what was recorded
    before it and waits for that. An adapter is opened at the first use of its device.

    Examples
    --------
    >>> device = WgpuRuntime.default_device()  # doctest: +SKIP
    >>> handle = WgpuRuntime.allocate(4, device)  # doctest: +SKIP
    >>> WgpuRuntime.copy_to_device(b"abcd", handle, device)  # doctest: +SKIP
    """

    Device = WgpuDevice
    Allocator = WgpuAllocator
    #: The GPUDevice and the GPUQueue of wgpu.
    RawHandle: ClassVar[type] = tuple
    namespace = "numr.wgpu"

    # -------------------------------------------------------------- identity
    @classmethod
    def name(cls) -> str:
        """Return "wgpu"."""
        return "wgpu"

    @classmethod
    def unavailable(cls) -> RuntimeUnavailable | None:
        """Say why there is no adapter; the first call looks for them."""
        return devices.why()

    @classmethod
    def devices(cls) -> tuple[WgpuDevice, ...]:
        """Return a device for each adapter, the most powerful one first."""
        return tuple(WgpuDevice(i) for i in range(len(devices.adapters())))

    @classmethod
    def default_device(cls) -> WgpuDevice:
        """Return the device of the most powerful adapter."""
        return cls.devices()[0]

    @classmethod
    def default_client(cls, device: AnyDevice) -> RuntimeClient[Any]:
        """Return the device's client."""
        cls.allocator(device)  # checks the device
        key = (cls, device)
        client = _clients.get(key)
        if client is None:
            with devices.lock:
                client = _clients.get(key)
                if client is None:
                    client = _clients[key] = cls.Client(device)
        return client

    @classmethod
    def allocator(cls, device: AnyDevice) -> WgpuAllocator:
        """Return the device's allocator."""
        found = _allocators.get(device)
        if found is not None:
            return found
        existing = cls.devices()
        if not isinstance(device, WgpuDevice) or device not in existing:
            raise DeviceMismatch(
                f"the wgpu runtime has no device {str(device)!r}; it has "
                f"{', '.join(str(d) for d in existing)}."
            )
        with devices.lock:
            found = _allocators.get(device)
            if found is None:
                adapter = devices.adapters()[device.id]
                found = WgpuAllocator(device, adapter, lambda: _open(device))
                _allocators[device] = found
            return found

    @classmethod
    def opened(cls, device: AnyDevice) -> OpenDevice:
        """Return the open device, for custom kernels: its queue, pipelines and limits.

        Raises
        ------
        DeviceLostError
            If the adapter cannot be opened.
        """
        allocator = cls.allocator(device)
        return allocator.table.opened or allocator.open_device()

    @classmethod
    def raw_handle(cls, client: RuntimeClient[Any]) -> tuple[Any, Any]:
        """Return wgpu's GPUDevice and GPUQueue, after all recorded work was submitted."""
        opened = cls.opened(client.device)
        opened.queue.flush()
        return opened.gpu, opened.gpu.queue

    @classmethod
    def reopen(cls, device: AnyDevice | str) -> None:
        """Make a device usable again that was lost.

        Its memory is gone: allocations stay active until they are given back, and raise ``DeviceLostError``
        when they are used. Nothing happens to a device that was not lost.

        Parameters
        ----------
        device : Device or str
            The device.

        Raises
        ------
        DeviceMismatch
            If there is no such device.
        DeviceLostError
            If the adapter cannot be opened.
        """
        device = cls.device(device)
        allocator = cls.allocator(device)
        with devices.lock:
            opened = allocator.table.opened
            if opened is not None and opened.queue.is_lost:
                allocator.close(forked=False)
                devices.forget()  # the adapter may have changed with what happened to the device
            allocator.open_device()

    # ---------------------------------------------------------------- memory
    @classmethod
    def allocate(cls, size_bytes: int, device: AnyDevice) -> int:
        """Allocate a buffer."""
        return cls.allocator(device).allocate(size_bytes)

    @classmethod
    def deallocate(cls, ptr: int, size_bytes: int, device: AnyDevice) -> None:
        """Give a buffer back; work recorded before still sees it."""
        cls.allocator(device).deallocate(ptr, size_bytes)

    @classmethod
    def copy_to_device(cls, src: Buffer, dst: int, device: AnyDevice) -> None:
        """Copy host bytes to a buffer, behind all work recorded so far."""
        source = readable_bytes(src, "copy_to_device")
        allocator = cls.allocator(device)
        size = source.size
        buffer, available = allocator.buffer(dst, size, "copy_to_device")
        if size == 0:
            return
        opened = cls.opened(device)
        whole = size & -4
        if whole:
            opened.queue.write(buffer, 0, source[:whole])
        if whole == size:
            return
        tail = source[whole:].tobytes()
        if size == available:
            opened.queue.write(buffer, whole, np.frombuffer(tail.ljust(4, b"\0"), np.uint8))
        else:
            merge_word(opened, buffer, whole, tail)

    @classmethod
    def copy_from_device(cls, src: int, dst: Buffer, device: AnyDevice) -> None:
        """Fill a host buffer, when all work recorded so far is done."""
        target = writable_bytes(dst, "copy_from_device")
        buffer, _ = cls.allocator(device).buffer(src, target.size, "copy_from_device")
        if target.size:
            cls.opened(device).staging.read(buffer, target)

    @classmethod
    def copy_within_device(cls, src: int, dst: int, size_bytes: int, device: AnyDevice) -> None:
        """Copy the first bytes of one buffer to another."""
        allocator = cls.allocator(device)
        source, _ = allocator.buffer(src, size_bytes, "copy_within_device")
        target, available = allocator.buffer(dst, size_bytes, "copy_within_device")
        if size_bytes and source is not target:
            copy_bytes(cls.opened(device), source, 0, target, size_bytes, available)

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
        """Gather a strided view into a buffer; see ``Runtime.copy_strided``."""
        allocator = cls.allocator(device)
        source, size = allocator.buffer(src_handle, None, "copy_strided")
        strided_range(shape, strides, src_byte_offset, elem_size, size, "copy_strided")
        needed = elem_size * math.prod(map(int, shape))
        target, available = allocator.buffer(dst_handle, needed, "copy_strided")
        gather(
            *(cls.opened(device), source, src_byte_offset, shape, strides, elem_size),
            *(target, available),
        )

    # ---------------------------------------------------------------- events
    @classmethod
    def record_compute_event(cls, device: AnyDevice) -> int:
        """Submit the work recorded so far, and return the number of the submission."""
        return cls.opened(device).queue.mark()

    @classmethod
    def copy_from_device_pipelined(
        cls, src: int, dst: Buffer, device: AnyDevice, event: int
    ) -> None:
        """Read memory as it is before work that was recorded after the event, and not yet submitted.

        That work is submitted behind the read, and the device does it while the host takes the bytes. Work
        that came after the event but was submitted meanwhile, by a read or because there was much, is waited
        for: a device has one queue.
        """
        if not event:
            cls.copy_from_device(src, dst, device)
            return
        target = writable_bytes(dst, "copy_from_device_pipelined")
        buffer, _ = cls.allocator(device).buffer(src, target.size, "copy_from_device_pipelined")
        if target.size:
            cls.opened(device).staging.read_ahead(buffer, target, event)


def _open(device: AnyDevice) -> OpenDevice:
    """Open a device, unless it is open."""
    allocator = _allocators[device]
    with devices.lock:
        opened = allocator.table.opened
        if opened is None:
            assert isinstance(device, WgpuDevice)
            adapters = devices.adapters()
            if device.id >= len(adapters):
                raise lost(device, ", and its adapter is not there any more")
            opened = OpenDevice(device, adapters[device.id])
            allocator.table.opened = opened
        return opened


# A child of fork must not touch the parent's devices, where a call could wait for ever. It gets its own, or is told
# that there are none for it. The locks
# are held meanwhile, so that no other thread of numr's is in the middle of a call into the driver, whose own
# locks the child would find taken. Opening a device takes logging's lock, and the fork takes that as well: the
# import of logging above sees to it that numr's are taken first.
_held_for_fork: list[Any] = []
_PATIENCE = 10.0


def _before_fork() -> None:
    # A thread that does not come to an end is the lesser evil beside a fork that never comes.
    if devices.lock.acquire(timeout=_PATIENCE):
        _held_for_fork.append(devices.lock)
    for allocator in list(_allocators.values()):
        opened = allocator.table.opened
        if opened is not None and opened.queue.lock.acquire(timeout=_PATIENCE):
            _held_for_fork.append(opened.queue.lock)


def _after_fork() -> None:
    while _held_for_fork:
        _held_for_fork.pop().release()


def _after_fork_in_child() -> None:
    _held_for_fork.clear()
    devices.lock = threading.RLock()
    if devices.are_started():
        native.skip_exit_handlers()
    native.abandon([adapter.gpu for adapter in devices.forget_in_child()])
    native.forget_instance()
    for allocator in _allocators.values():
        opened = allocator.table.opened
        if opened is not None:
            opened.abandon()
        allocator.close(forked=True)


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child
    )
