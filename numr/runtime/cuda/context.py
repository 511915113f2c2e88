"""``DeviceContext``: what the runtime holds of one device."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, Final

from numr import dtypes as dt
from numr.dtypes import DefaultDTypes, DType
from numr.errors import InvalidHandle
from numr.runtime.cuda import driver
from numr.runtime.cuda.compiler import Compiler
from numr.runtime.cuda.memory import CudaAllocator
from numr.runtime.cuda.staging import Staging

__all__ = ["DeviceContext"]

#: Events that exist at a time; see :meth:`DeviceContext.record_event`.
EVENTS: Final = 256

_NOTHING: Final = contextlib.nullcontext()


class DeviceContext:
    """One device: its memory, streams, events, staging buffers and compiled kernels.

    All work is queued on one stream, :attr:`stream`, which is the device's default stream unless
    :meth:`on_stream` lends another. CuPy and PyTorch use the default stream too, so that all see each other's work in
    order.

    Parameters
    ----------
    number : int
        The device's number.
    name : str
        The device's string.
    """

    defaults = DefaultDTypes(dt.float64, dt.complex128, dt.int64, dt.int64)

    def __init__(self, number: int, name: str) -> None:
        self.number = number
        self.name = name
        self.alone = driver.count() == 1
        cupy = driver.library()
        self._ndarray: Any = cupy.ndarray
        self._cuda: Any = cupy.cuda
        self._runtime: Any = cupy.cuda.runtime
        self.allocator = CudaAllocator(number, name)
        self.stream: Any = cupy.cuda.Stream.null
        self.compiler = Compiler(number)
        self._staging = Staging()
        self._pipeline = Staging()
        self._lock = threading.Lock()
        self._copy_stream: Any = None
        self._events: dict[int, Any] = {}
        self._ring: list[Any] = []
        self._next_event = 0

    # ------------------------------------------------------------ what is current
    def current(self) -> contextlib.AbstractContextManager[object]:
        """Make the device current, for calls of the driver that name a stream."""
        if driver.is_forked():
            driver.require()
        return _NOTHING if self.alone else self._activated()

    @contextlib.contextmanager
    def _activated(self) -> Iterator[None]:
        before = self._runtime.getDevice()
        self._runtime.setDevice(self.number)
        try:
            yield
        finally:
            self._runtime.setDevice(before)

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """Make device, stream and allocator those that CuPy uses in this thread, and put back what was."""
        memory = self._cuda.memory
        allocator = memory._get_thread_local_allocator()
        if allocator is self.allocator.hook:
            yield
            return
        with self.current():
            stream = self._cuda.get_current_stream()
            memory._set_thread_local_allocator(self.allocator.hook)
            if stream.ptr != self.stream.ptr:
                self.stream.use()
            try:
                yield
            finally:
                memory._set_thread_local_allocator(allocator)
                if stream.ptr != self.stream.ptr:
                    stream.use()

    @contextlib.contextmanager
    def on_stream(self, stream: Any) -> Iterator[Any]:
        """Queue all work of the device on another stream for a while, in order with what came before and comes after."""
        with self._lock:
            before = self.stream
            self._in_order(before, stream)
            self.stream = stream
        try:
            yield stream
        finally:
            with self._lock:
                self._in_order(stream, before)
                self.stream = before

    def _in_order(self, first: Any, then: Any) -> None:
        """Let one stream wait for what is queued on another."""
        with self.current():
            event = self._cuda.Event(disable_timing=True)
            event.record(first)
            then.wait_event(event)

    def synchronize(self) -> None:
        """Wait for all work that was queued."""
        with self.current():
            self.stream.synchronize()

    # ------------------------------------------------------------------ memory
    def empty(self, shape: tuple[int, ...], dtype: DType, size: int | None = None) -> Any:
        """A new C-contiguous array."""
        if size is None:
            size = dtype.itemsize
            for n in shape:
                size *= n
        return self._ndarray(shape, dtype, self.allocator.pointer(size))

    def array(
        self, shape: tuple[int, ...], dtype: DType, pointer: Any, strides: tuple[int, ...] | None
    ) -> Any:
        """The array over a memory pointer of CuPy's."""
        return self._ndarray(shape, dtype, pointer, strides)

    # ------------------------------------------------------------------ copies
    def upload(self, source: Any, ptr: int) -> None:
        """Copy host bytes to the device; they may change when the call returns."""
        with self.current():
            self._staging.upload(source, ptr, self.stream)

    def download(self, ptr: int, target: Any) -> None:
        """Fill host bytes from the device, after all work that was queued."""
        with self.current():
            self._staging.download(ptr, target, self.stream)

    def move(self, source: int, target: int, size: int) -> None:
        """Copy bytes between places of the device that do not overlap."""
        with self.current():
            self._runtime.memcpyAsync(
                target, source, size, self._runtime.memcpyDeviceToDevice, self.stream.ptr
            )

    def set_bytes(self, ptr: int, value: int, size: int) -> None:
        """Fill memory with one byte."""
        with self.current():
            self._runtime.memsetAsync(ptr, value, size, self.stream.ptr)

    def receive(self, source: DeviceContext, source_ptr: int, ptr: int, size: int) -> None:
        """Copy bytes from another device, directly where the two can reach each other."""
        source_event = source.new_event()
        with self.current():
            self.stream.wait_event(source_event)
            self._runtime.memcpyPeerAsync(
                ptr, self.number, source_ptr, source.number, size, self.stream.ptr
            )
            done = self._cuda.Event(disable_timing=True)
            done.record(self.stream)
        # What reuses the source's memory has to come after the copy.
        with source.current():
            source.stream.wait_event(done)

    # ------------------------------------------------------------------ events
    def new_event(self) -> Any:
        """An event after all work that was queued."""
        with self.current():
            event = self._cuda.Event(disable_timing=True)
            event.record(self.stream)
        return event

    def record_event(self) -> int:
        """Mark the work queued so far; the mark's handle.

        The last :data:`EVENTS` marks are kept apart. An older handle then means a later mark, which is safe: whoever
        waits for it waits longer.
        """
        with self._lock, self.current():
            if len(self._ring) < EVENTS:
                event = self._cuda.Event(disable_timing=True)
                self._ring.append(event)
                self._events[int(event.ptr)] = event
            else:
                event = self._ring[self._next_event]
                self._next_event = (self._next_event + 1) % EVENTS
            event.record(self.stream)
        return int(event.ptr)

    def download_after(self, event: int, ptr: int, target: Any) -> None:
        """Fill host bytes from the device, on a stream of its own, as soon as the work before an event is done."""
        if event == 0:
            self.download(ptr, target)
            return
        mark = self._events.get(event)
        if mark is None:
            raise InvalidHandle(
                f"copy_from_device_pipelined: {event!r} is no event of {self.name}. Pass what "
                "record_compute_event() of the same device returned."
            )
        with self.current():
            with self._lock:
                if self._copy_stream is None:
                    self._copy_stream = self._cuda.Stream(non_blocking=True)
            self._pipeline.download(ptr, target, self._copy_stream, after=mark)
