"""Buffers under numbers, and the allocator of a device over them.

A handle is the number of a GPUBuffer in a table. The table outlives the open device: when that is lost, or
belongs to the parent of a fork, the buffers are forgotten and their handles stay, so that tensors that die later
can still give them back.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from numr.errors import BackendLimitation, DeviceLostError, InvalidHandle, OutOfMemoryError
from numr.runtime.caching import Block
from numr.runtime.parking import ParkingAllocator
from numr.runtime.wgpu.losses import is_memory_error
from numr.runtime.wgpu.native import abandon

if TYPE_CHECKING:
    from numr.runtime.wgpu.devices import Adapter, WgpuDevice
    from numr.runtime.wgpu.opened import OpenDevice

__all__ = ["BufferTable", "BufferTooLarge", "WgpuAllocator"]

#: Unit of all capacities: a multiple of the 16 bytes that the widest access reads, so that kernels may touch
#: whole words up to the end.
GRANULARITY = 64
#: Blocks up to this size are parked when their arrays die, and so many of each size.
PARKED_SIZE = 1 << 16
PARKED_BLOCKS = 8
#: Bytes of dropped buffers after which the host waits for the device to take them back. It does so by itself
#: only when it is asked for something.
RECLAIM_BYTES = 256 << 20


class BufferTooLarge(OutOfMemoryError, BackendLimitation):  # type: ignore[misc]  # see __reduce__
    """An allocation exceeds the largest buffer that the device allows.

    Parameters
    ----------
    asked, active, reserved, limit, device
        As in ``OutOfMemoryError``.
    reason : str
        The limit that is exceeded.
    """

    def __init__(
        self, asked: int, active: int, reserved: int, limit: int | None, device: str, reason: str
    ) -> None:
        # Not by the constructors of the two classes, which cannot call each other.
        Exception.__init__(self, f"allocate: {asked} bytes are not possible on {device}: {reason}")
        self.asked = asked
        self.active = active
        self.reserved = reserved
        self.limit = limit
        self.device = device
        self.backend = "wgpu"
        self.operation = "allocate"
        self.reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        fields = (self.asked, self.active, self.reserved, self.limit, self.device, self.reason)
        return type(self), fields


class BufferTable:
    """Source of memory: GPUBuffers under numbers.

    Attributes
    ----------
    opened : OpenDevice or None
        Where buffers are made.
    dropped : int
        Bytes of buffers that were given back since the device was last made to take them.
    exhausted : bool
        Whether the device has refused memory since this was last set to false.
    buffers : dict of int to GPUBuffer or None
        The buffers by their numbers; None for those of a device that is gone.
    """

    def __init__(self) -> None:
        self.opened: OpenDevice | None = None
        self.dropped = 0
        self.exhausted = False
        self.buffers: dict[int, Any] = {}
        self._numbers = itertools.count(1)

    def allocate(self, size: int) -> int:
        """Number of a new buffer; MemoryError where there is no memory."""
        opened = self.opened
        if opened is None:
            raise DeviceLostError("allocate: the device was closed meanwhile; call again.")
        if size > opened.max_buffer_size:
            raise MemoryError
        try:
            buffer = opened.create_buffer(size, "STORAGE|COPY_SRC|COPY_DST")
        except Exception as error:
            if is_memory_error(error):
                self.exhausted = True
                raise MemoryError from None
            raise
        number = next(self._numbers)
        self.buffers[number] = buffer
        return number

    def deallocate(self, ptr: int, size: int) -> None:
        """Drop a buffer; it goes when the device has done all work with it."""
        if self.buffers.pop(ptr) is not None:
            self.dropped += size
            if self.opened is not None:
                self.opened.queue.drop_buffers()

    def get(self, ptr: int) -> Any:
        """The buffer of a number; None if its device is gone, KeyError if there is none."""
        return self.buffers[ptr]

    def close(self, *, forked: bool) -> None:
        """Forget all buffers and keep their numbers."""
        opened, self.opened = self.opened, None
        self.dropped = 0
        if opened is not None and not forked:
            opened.queue.forget()
        if forked:
            abandon(list(self.buffers.values()))
        for number in list(self.buffers):
            self.buffers[number] = None


class WgpuAllocator(ParkingAllocator):
    """The allocator of a WebGPU device.

    Parameters
    ----------
    device : WgpuDevice
        The device.
    adapter : Adapter
        Its limits and kind.
    open_device : callable
        Opens the device, or returns it if it is open.

    Attributes
    ----------
    table : BufferTable
        The buffers, and the open device.
    adapter : Adapter
        As given.
    """

    def __init__(
        self, device: WgpuDevice, adapter: Adapter, open_device: Callable[[], OpenDevice]
    ) -> None:
        self.table = BufferTable()
        # WebGPU tells nobody how much memory there is. What is cached too much goes back when it runs out.
        cache_limit = (1 if adapter.is_cpu else 4) << 30
        super().__init__(
            self.table,
            str(device),
            parked_size=PARKED_SIZE,
            parked_blocks=PARKED_BLOCKS,
            cache_limit=cache_limit,
            granularity=GRANULARITY,
        )
        self.open_device = open_device
        self.adapter = adapter
        self._reclaiming = threading.Lock()

    def take(self, size: int) -> Block:
        """Allocate memory; see ``Allocator.allocate``."""
        # Not in the table, where the allocator's lock is held: opening and waiting take other locks.
        table = self.table
        opened = table.opened or self.open_device()
        if isinstance(size, int) and size > opened.max_buffer_size and not self._frozen:
            raise self._too_large(size, opened)
        if table.dropped >= RECLAIM_BYTES:
            self.reclaim()
        try:
            return super().take(size)
        except OutOfMemoryError:
            if not table.exhausted:
                raise
        # Memory that was dropped may only be waiting for the device to finish.
        table.exhausted = False
        self.reclaim()
        return super().take(size)

    def reclaim(self) -> None:
        """Wait until the device has taken back the memory of dropped buffers."""
        opened = self.table.opened
        # One thread is enough, and a finalizer that comes here from within must not wait for itself.
        if opened is None or opened.queue.is_lost or not self._reclaiming.acquire(blocking=False):
            return
        try:
            self.table.dropped = 0
            opened.queue.reclaim()
        finally:
            self._reclaiming.release()

    def trim(self) -> int:
        """Give back all cached memory, and wait until the device has it; see ``Allocator.trim``."""
        given_back = super().trim()
        if self.table.dropped:
            self.reclaim()
        return given_back

    def buffer(self, handle: int, size: int | None, function: str) -> tuple[Any, int]:
        """The buffer behind a handle.

        Parameters
        ----------
        handle : int
            An active allocation.
        size : int or None
            Bytes that are needed of it; None for all.
        function : str
            The name that errors begin with.

        Returns
        -------
        tuple of GPUBuffer and int
            The buffer, and the bytes that were asked of ``allocate``.

        Raises
        ------
        InvalidHandle
            If the allocation is not active or has fewer bytes.
        DeviceLostError
            If the memory went with its device.
        """
        available = self.size_of(handle)
        if size is not None and not 0 <= size <= available:
            raise InvalidHandle(
                f"{function}: {size} bytes of the allocation {handle} of {self.device} are needed; it has "
                f"{available}."
            )
        try:
            buffer = self.table.get(handle)
        except KeyError:
            raise InvalidHandle(
                f"{function}: the allocation {handle} of {self.device} was deallocated meanwhile."
            ) from None
        if buffer is None:
            raise DeviceLostError(
                f"{function}: the allocation {handle} of {self.device} went with the device when it was "
                "lost, or belongs to the process that this one was forked from. Make the tensor anew."
            )
        return buffer, available

    def close(self, *, forked: bool) -> None:
        """Forget all memory of a device that is gone; allocations stay active until they are given back."""
        if forked:
            self._reclaiming = threading.Lock()
        self.table.close(forked=forked)
        for block in list(self._live.values()):
            block.cacheable = False  # nobody else is to get a buffer that is gone
        super().trim()

    def _too_large(self, size: int, opened: OpenDevice) -> BufferTooLarge:
        figures = self.stats()
        return BufferTooLarge(
            size,
            figures.active_bytes,
            figures.reserved_bytes,
            figures.limit_bytes,
            self.device,
            f"{self.adapter} has the limit max-buffer-size of {opened.limits['max-buffer-size']} bytes. "
            "Work in smaller pieces.",
        )
