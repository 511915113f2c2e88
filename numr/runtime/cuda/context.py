"""``DeviceContext``: what the runtime holds of one device."""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from numr import dtypes as dt
from numr.dtypes import DefaultDTypes, DType
from numr.errors import InvalidHandle
from numr.runtime.cuda import driver
from numr.runtime.cuda.compiler import Compiler, Kernel
from numr.runtime.cuda.driver import Process
from numr.runtime.cuda.memory import CudaAllocator
from numr.runtime.cuda.reductions import TICKETS
from numr.runtime.cuda.staging import Report, Staging

if TYPE_CHECKING:
    from numr.runtime.cuda.elementwise import Elementwise

__all__ = ["DeviceContext"]

#: Events that exist at a time; see :meth:`DeviceContext.record_event`.
EVENTS: Final = 256

#: Bytes of arguments that a kernel may take.
_ARGUMENTS: Final = 4096

_NOTHING: Final = contextlib.nullcontext()


class _Inside:
    """The block in which CuPy uses a context's device, stream and allocator."""

    __slots__ = ("_allocator", "_before", "_context", "_current")

    def __init__(self, context: DeviceContext) -> None:
        self._context = context

    def __enter__(self) -> None:
        context = self._context
        memory = context.cuda.memory
        self._allocator = memory._get_thread_local_allocator()
        if self._allocator is context.allocator.hook:
            return
        self._current = context.current()
        self._current.__enter__()
        memory._set_thread_local_allocator(context.allocator.hook)
        stream = context.cuda.get_current_stream()
        self._before = None
        if stream.ptr != context.stream.ptr:
            self._before = stream
            context.stream.use()

    def __exit__(self, *error: object) -> None:
        context = self._context
        if self._allocator is context.allocator.hook:
            return
        if self._before is not None:
            self._before.use()
        context.cuda.memory._set_thread_local_allocator(self._allocator)
        self._current.__exit__(None, None, None)


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
        self._bare: Any = cupy.ndarray.__mro__[1].__new__
        self.cuda: Any = cupy.cuda
        self._runtime: Any = cupy.cuda.runtime
        self._launch: Callable[..., None] = cupy.cuda.driver.launchKernel
        self._arguments = threading.local()
        self._tickets: Any = None
        self._processors = 0
        self._shared_limit = 0
        self._kernels: dict[tuple[str, int], Kernel] = {}
        #: The copy of words of each size, see ``copies.mover``.
        self.movers: dict[int, Elementwise] = {}
        self._reports: list[Report] = []
        self.allocator = CudaAllocator(number, name)
        self.stream: Any = cupy.cuda.Stream.null
        self._stream_ptr = 0
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

    def inside(self) -> _Inside:
        """Make device, stream and allocator those that CuPy uses in this thread, and put back what was."""
        return _Inside(self)

    @contextlib.contextmanager
    def on_stream(self, stream: Any) -> Iterator[Any]:
        """Queue all work of the device on another stream for a while, in order with what came before and comes after."""
        with self._lock:
            before = self.stream
            self._in_order(before, stream)
            self._queue_on(stream)
        try:
            yield stream
        finally:
            with self._lock:
                self._in_order(stream, before)
                self._queue_on(before)

    def _queue_on(self, stream: Any) -> None:
        self.stream = stream
        self._stream_ptr = int(stream.ptr)

    def _in_order(self, first: Any, then: Any) -> None:
        """Let one stream wait for what is queued on another."""
        with self.current():
            event = self.cuda.Event(disable_timing=True)
            event.record(first)
            then.wait_event(event)

    def synchronize(self) -> None:
        """Wait for all work that was queued."""
        with self.current():
            self.stream.synchronize()

    # ----------------------------------------------------------------- kernels
    def launch(
        self,
        kernel: Kernel,
        grid_x: int,
        grid_y: int,
        block_x: int,
        block_y: int,
        *values: Any,
    ) -> None:
        """Queue a kernel with the values of its arguments, as its layout has them."""
        try:
            buffer, pointers = self._arguments.of_thread
        except AttributeError:
            buffer, pointers = self._new_arguments()
        kernel.pack(buffer, 0, *values)
        ptr, shared, stream = kernel.ptr, kernel.shared, self._stream_ptr
        if self.alone and not Process.forked:
            self._launch(ptr, grid_x, grid_y, 1, block_x, block_y, 1, shared, stream, pointers, 0)
        else:
            with self.current():
                self._launch(
                    ptr, grid_x, grid_y, 1, block_x, block_y, 1, shared, stream, pointers, 0
                )

    def kernel(self, source: str, arguments: int, tail: int, shared: int = 0) -> Kernel:
        """A kernel of a text, see ``Compiler.kernel``; the same one for the same text."""
        key = (source, shared)
        found = self._kernels.get(key)
        if found is None:
            with self.current():
                found = self.compiler.kernel(source, arguments, tail, shared)
                self._kernels[key] = found
        return found

    @property
    def shared_limit(self) -> int:
        """Bytes that the threads of a block may share at most."""
        if not self._shared_limit:
            attributes = self.cuda.Device(self.number).attributes
            self._shared_limit = int(attributes["MaxSharedMemoryPerBlockOptin"])
        return self._shared_limit

    @property
    def processors(self) -> int:
        """How many multiprocessors the device has."""
        if not self._processors:
            attributes = self.cuda.Device(self.number).attributes
            self._processors = int(attributes["MultiProcessorCount"])
        return self._processors

    @property
    def tickets(self) -> int:
        """The address of counters that are 0 between kernels, by which the last of several blocks knows that it is."""
        if self._tickets is None:
            with self._lock, self.current():
                size = 4 * TICKETS
                memory = self.cuda.memory.Memory(size)
                self._runtime.memsetAsync(memory.ptr, 0, size, self._stream_ptr)
                self._tickets = memory
        return int(self._tickets.ptr)

    def _new_arguments(self) -> tuple[Any, int]:
        """The buffer that this thread packs arguments into, and the address of the table of its slots."""
        with self.current():
            self._runtime.free(0)  # makes the device's context current in a new thread
        buffer = ctypes.create_string_buffer(2 * _ARGUMENTS)
        start = ctypes.addressof(buffer)
        slots = range(start, start + _ARGUMENTS, 16)
        table = (ctypes.c_void_p * len(slots))(*slots)
        self._arguments.table = table
        self._arguments.of_thread = buffer, ctypes.addressof(table)
        return buffer, ctypes.addressof(table)

    # ------------------------------------------------------------------ memory
    def empty(self, shape: tuple[int, ...], dtype: DType, size: int | None = None) -> Any:
        """A new C-contiguous array."""
        if size is None:
            size = dtype.itemsize
            for n in shape:
                size *= n
        return self.array(shape, dtype, self.allocator.pointer(size))

    def array(
        self,
        shape: tuple[int, ...],
        dtype: DType,
        pointer: Any,
        strides: tuple[int, ...] | None = None,
    ) -> Any:
        """The array over a memory pointer of CuPy's."""
        # What the class does when it is called, without the Python around it.
        array = self._bare(self._ndarray)
        array._init(shape, dtype, pointer, strides)
        return array

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
            done = self.cuda.Event(disable_timing=True)
            done.record(self.stream)
        # What reuses the source's memory has to come after the copy.
        with source.current():
            source.stream.wait_event(done)

    @contextlib.contextmanager
    def report(self) -> Iterator[Report]:
        """Host memory for a kernel's findings, all 0; the caller waits for the kernel before the block ends."""
        try:
            report = self._reports.pop()
        except IndexError:
            report = Report()
        report.values[:] = 0
        try:
            yield report
        finally:
            self._reports.append(report)

    # ------------------------------------------------------------------ events
    def new_event(self) -> Any:
        """An event after all work that was queued."""
        with self.current():
            event = self.cuda.Event(disable_timing=True)
            event.record(self.stream)
        return event

    def record_event(self) -> int:
        """Mark the work queued so far; the mark's handle.

        The last :data:`EVENTS` marks are kept apart. An older handle then means a later mark, which is safe: whoever
        waits for it waits longer.
        """
        with self._lock, self.current():
            if len(self._ring) < EVENTS:
                event = self.cuda.Event(disable_timing=True)
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
                    self._copy_stream = self.cuda.Stream(non_blocking=True)
            self._pipeline.download(ptr, target, self._copy_stream, after=mark)
