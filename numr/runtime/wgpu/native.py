"""The one file that knows wgpu-py's inside: submitting, reading and waiting.

wgpu-py's public objects cost about ten microseconds for each bind group and check every argument again, which is
most of the time of a small operation. Below them lies a cffi layer that is private and may change with each
version. So there are two implementations of one interface: :class:`PublicApi` uses the public objects alone,
:class:`NativeApi` the cffi layer of the version it was written for. :func:`api_for` picks.

Two properties of wgpu-native shape both. It ends the process when a submission is refused, as it is on a lost
device. So every submission has a command buffer, whose end is where a loss shows as an exception, even when
there is nothing to encode. And an error inside a batch loses the whole batch, so nothing reaches this file that
:mod:`numr.runtime.wgpu.queue` has not checked.
"""

from __future__ import annotations

import ctypes
import itertools
import re
import sys
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from numr.errors import DeviceLostError
from numr.runtime.buffers import Bytes

__all__ = [
    "Copy",
    "Dispatch",
    "NativeApi",
    "PublicApi",
    "Repeated",
    "api_for",
    "is_memory_error",
    "translated",
]

#: The version of wgpu-py whose inside :class:`NativeApi` knows.
KNOWN_VERSION = (0, 32)

#: Hundredths of a second after the end of the work within which a device must say that it can be read.
_PATIENCE = 500
#: Bind groups that are kept for their next use.
KEPT_GROUPS = 1024


class Dispatch:
    """A kernel to run.

    Attributes
    ----------
    kernel : Kernel
        What to run.
    bindings : list of tuple
        GPUBuffer, byte offset and size of each binding.
    params : bytes
        The kernel's parameters.
    groups : tuple of int
        Numbers of workgroups.
    """

    __slots__ = ("bindings", "groups", "kernel", "params")

    #: Whether it is recorded again and again, so that what was made for it is kept.
    repeats: ClassVar[bool] = False

    def __init__(
        self,
        kernel: Any,
        bindings: list[tuple[Any, int, int]],
        params: bytes,
        groups: tuple[int, int, int],
    ) -> None:
        self.kernel = kernel
        self.bindings = bindings
        self.params = params
        self.groups = groups


class Repeated(Dispatch):
    """A kernel to run again and again.

    Attributes
    ----------
    group : object
        The bind group, once there is one.
    """

    __slots__ = ("group",)

    repeats = True

    def __init__(
        self,
        kernel: Any,
        bindings: list[tuple[Any, int, int]],
        params: bytes,
        groups: tuple[int, int, int],
    ) -> None:
        super().__init__(kernel, bindings, params, groups)
        self.group: Any = None


class Copy:
    """Bytes to copy between two buffers; offsets and size are multiples of 4."""

    __slots__ = ("size", "source", "source_offset", "target", "target_offset")

    def __init__(
        self, source: Any, source_offset: int, target: Any, target_offset: int, size: int
    ) -> None:
        self.source = source
        self.source_offset = source_offset
        self.target = target
        self.target_offset = target_offset
        self.size = size


class PublicApi:
    """Submitting, waiting and reading by wgpu-py's public interface.

    Parameters
    ----------
    gpu : wgpu.GPUDevice
        The device.
    """

    def __init__(self, gpu: Any) -> None:
        self.gpu = gpu
        self.queue = gpu.queue
        self._numbers = itertools.count(1)
        self._fence: Any = None
        self._fence_lock = threading.Lock()
        # Bind groups that are kept.
        self._groups: weakref.WeakSet[Any] = weakref.WeakSet()

    def submit(self, records: list[Dispatch | Copy]) -> int:
        """Encode and submit work, and empty the list once the device has it.

        Returns
        -------
        int
            Number of the submission, higher than those before.
        """
        encoder = self.gpu.create_command_encoder()
        self._encode(encoder, records)
        commands = encoder.finish()
        records.clear()
        return self._submit(commands)

    def _encode(self, encoder: Any, records: list[Dispatch | Copy]) -> None:
        current: Any = None
        kernel: Any = None
        for record in records:
            if isinstance(record, Copy):
                if current is not None:
                    current.end()
                    current = None
                encoder.copy_buffer_to_buffer(
                    record.source,
                    record.source_offset,
                    record.target,
                    record.target_offset,
                    record.size,
                )
                continue
            if current is None:
                current = encoder.begin_compute_pass()
                kernel = None
            if record.kernel is not kernel:
                kernel = record.kernel
                current.set_pipeline(kernel.pipeline)
            self._dispatch(current, record)
        if current is not None:
            current.end()

    def _dispatch(self, current: Any, record: Dispatch) -> None:
        kernel = record.kernel
        current.set_bind_group(0, self._kept_group(record) or self._group(record))
        if kernel.immediates:
            current.set_immediates(0, record.params, 0, len(record.params))
        current.dispatch_workgroups(*record.groups)

    def _group(self, record: Dispatch) -> Any:
        """A bind group of what a dispatch binds."""
        entries = [
            {"binding": i, "resource": {"buffer": buffer, "offset": offset, "size": size}}
            for i, (buffer, offset, size) in enumerate(record.bindings)
        ]
        return self.gpu.create_bind_group(layout=record.kernel.layout, entries=entries)

    def _kept_group(self, record: Dispatch) -> Any:
        """The bind group that is kept for a dispatch; None if none is, as where parameters lie elsewhere each time."""
        if not isinstance(record, Repeated) or record.kernel.uniform:
            return None
        if record.group is None:
            record.group = self._group(record)
            self._groups.add(record.group)
        return record.group

    def _submit(self, commands: Any) -> int:
        self.queue.submit([commands])
        return next(self._numbers)

    def write(self, buffer: Any, offset: int, data: Bytes) -> None:
        """Copy host bytes, a multiple of 4, to a buffer before the next submission."""
        self.queue.write_buffer(buffer, offset, data)

    def poll(self) -> None:
        """Let the device take back what finished work held, without waiting."""
        self.submit([])

    def wait(self, number: int | None) -> None:
        """Wait for a submission, or for all; the public interface can only do the latter."""
        with self._fence_lock:
            if self._fence is None:
                self._fence = self.gpu.create_buffer(size=16, usage="MAP_READ|COPY_DST")
            encoder = self.gpu.create_command_encoder()
            encoder.clear_buffer(self._fence)
            self._submit(encoder.finish())
            self._fence.map_async("READ").sync_wait()
            self._fence.unmap()

    def objects(self) -> list[Any]:
        """All objects of wgpu that are held."""
        return [self._fence, *self._groups]

    def drop_buffers(self) -> None:
        """Take note that a buffer was dropped, so that nothing that is kept for its next use holds it on."""

    def forget(self) -> None:
        """Let go of what is kept only because it may be used again."""

    def map(self, buffer: Any, size: int) -> Any:
        """Begin to map a staging buffer, and return what :meth:`fetch` needs."""
        return buffer.map_async("READ", 0, size)

    def fetch(self, buffer: Any, mapping: Any, number: int, target: Bytes, size: int) -> None:
        """Wait until a staging buffer is mapped, copy its bytes to ``target`` and unmap it."""
        mapping.sync_wait()
        data = buffer.read_mapped(0, size, copy=False)
        np.copyto(target, np.frombuffer(data, np.uint8, target.size))
        del data
        buffer.unmap()


class NativeApi(PublicApi):
    """The same by the cffi layer of the known version."""

    def __init__(self, gpu: Any) -> None:
        super().__init__(gpu)
        from wgpu.backends.wgpu_native import _api, ffi, lib

        # lib's functions report errors to the log alone, those of safe as exceptions.
        self._ffi, self._lib, self._safe = ffi, lib, _api.libf
        self._device = gpu._internal
        self._queue = gpu.queue._internal
        # By number of bindings; filled anew for each dispatch.
        self._descriptors: dict[int, tuple[Any, list[Any]]] = {}
        self._kept: list[Any] = []
        self._null = ffi.NULL
        # Named once: reading a type's name takes locks of cffi's, which a child of fork could find taken.
        self._index_type = ffi.typeof("WGPUSubmissionIndex *")
        self._info_type = ffi.typeof("WGPUBufferMapCallbackInfo *")
        self._pointer_type = ffi.typeof("void *")
        self._command = ffi.new("WGPUCommandBuffer[1]")
        # Bind groups by layout and bindings. Pooled buffers come again, and making a group takes as long as the rest
        # of a dispatch. A group holds its buffers, so all are let go once a buffer has been dropped.
        self._pool: dict[tuple[Any, ...], Any] = {}
        self._stale = False

    def drop_buffers(self) -> None:
        # Only noted: this may be called by a finalizer in the middle of anything.
        self._stale = True

    def forget(self) -> None:
        self._stale = False
        groups, self._pool = self._pool, {}
        for group in groups.values():
            self._lib.wgpuBindGroupRelease(group)

    def submit(self, records: list[Dispatch | Copy]) -> int:
        lib = self._lib
        if self._stale:
            self.forget()
        encoder = lib.wgpuDeviceCreateCommandEncoder(self._device, self._null)
        try:
            self._encode(encoder, records)
            # All that went wrong before shows here.
            commands = self._safe.wgpuCommandEncoderFinish(encoder, self._null)
        finally:
            lib.wgpuCommandEncoderRelease(encoder)
        self._command[0] = commands
        records.clear()
        number = lib.wgpuQueueSubmitForIndex(self._queue, 1, self._command)
        lib.wgpuCommandBufferRelease(commands)
        return int(number)

    def _encode(self, encoder: Any, records: list[Dispatch | Copy]) -> None:
        lib = self._lib
        current: Any = None
        kernel: Any = None
        params: bytes | None = None
        try:
            for record in records:
                if isinstance(record, Copy):
                    if current is not None:
                        lib.wgpuComputePassEncoderEnd(current)
                        lib.wgpuComputePassEncoderRelease(current)
                        current = None
                    lib.wgpuCommandEncoderCopyBufferToBuffer(
                        encoder,
                        record.source._internal,
                        record.source_offset,
                        record.target._internal,
                        record.target_offset,
                        record.size,
                    )
                    continue
                if current is None:
                    current = lib.wgpuCommandEncoderBeginComputePass(encoder, self._null)
                    kernel = None
                if record.kernel is not kernel:
                    kernel = record.kernel
                    params = None
                    lib.wgpuComputePassEncoderSetPipeline(current, kernel.pipeline._internal)
                if record.repeats:
                    kept = record.group  # type: ignore[attr-defined]  # isinstance costs a tenth of all this
                    group = self._bound(record) if kept is None else kept._internal
                else:
                    group = self._pool.get((kernel.layout, *record.bindings)) or self._bound(record)
                lib.wgpuComputePassEncoderSetBindGroup(current, 0, group, 0, self._null)
                # Immediates stay until the pipeline changes, and setting them costs as much as a dispatch.
                if kernel.immediates and record.params != params:
                    params = record.params
                    lib.wgpuComputePassEncoderSetImmediates(
                        current, 0, self._ffi.from_buffer(params), len(params)
                    )
                lib.wgpuComputePassEncoderDispatchWorkgroups(current, *record.groups)
            if current is not None:
                lib.wgpuComputePassEncoderEnd(current)
        finally:
            if current is not None:
                lib.wgpuComputePassEncoderRelease(current)

    def _bound(self, record: Dispatch) -> Any:
        """The bind group of a dispatch that is not in the pool, as wgpu's own object."""
        if record.repeats:
            kept = self._kept_group(record)
            if kept is not None:
                return kept._internal
        key = (record.kernel.layout, *record.bindings)
        group = self._pool.get(key)
        if group is None:
            if len(self._pool) >= KEPT_GROUPS:
                # The encoder holds those that it was given.
                self.forget()
            group = self._pool[key] = self._new_group(record)
        return group

    def _group(self, record: Dispatch) -> _Group:
        return _Group(self._new_group(record), self._lib.wgpuBindGroupRelease)

    def _new_group(self, record: Dispatch) -> Any:
        lib, kernel, bindings = self._lib, record.kernel, record.bindings
        count = len(bindings)
        found = self._descriptors.get(count)
        if found is None:
            found = self._descriptors[count] = self._descriptor(count)
        descriptor, entries = found
        descriptor.layout = kernel.layout._internal
        for entry, (buffer, offset, size) in zip(entries, bindings, strict=True):
            entry.buffer = buffer._internal
            entry.offset = offset
            entry.size = size
        return lib.wgpuDeviceCreateBindGroup(self._device, descriptor)

    def _descriptor(self, count: int) -> tuple[Any, list[Any]]:
        memory = self._ffi.new("WGPUBindGroupEntry[]", max(count, 1))
        self._kept.append(memory)  # cffi's pointers do not keep what they point to
        entries = [memory + i for i in range(count)]
        for i, entry in enumerate(entries):
            entry.binding = i
        descriptor = self._ffi.new("WGPUBindGroupDescriptor *")
        descriptor.entryCount = count
        descriptor.entries = memory
        return descriptor, entries

    def poll(self) -> None:
        self._lib.wgpuDevicePoll(self._device, 0, self._ffi.NULL)

    def wait(self, number: int | None) -> None:
        index = self._ffi.NULL
        if number is not None:
            index = self._ffi.new(self._index_type, number)
        self._lib.wgpuDevicePoll(self._device, 1, index)

    def map(self, buffer: Any, size: int) -> Any:
        mapping = _Mapping()
        info = self._ffi.new(self._info_type)
        info.mode = self._lib.WGPUCallbackMode_AllowProcessEvents
        info.callback = _map_callback()
        info.userdata1 = self._ffi.cast(self._pointer_type, mapping.key)
        self._safe.wgpuBufferMapAsync(
            buffer._internal, self._lib.WGPUMapMode_Read, 0, size, info[0]
        )
        return mapping

    def fetch(self, buffer: Any, mapping: Any, number: int, target: Bytes, size: int) -> None:
        self.wait(number)
        # Another thread that polls may have taken the news over and not delivered it yet.
        for turn in range(_PATIENCE):
            if mapping.done:
                break
            time.sleep(0.01 if turn else 0)
            self.wait(number)
        if mapping.status != self._lib.WGPUMapAsyncStatus_Success:
            raise DeviceLostError(
                f"copy_from_device: the memory cannot be read: {mapping.message or 'no reason given'}."
            )
        pointer = self._safe.wgpuBufferGetConstMappedRange(buffer._internal, 0, size)
        self._ffi.memmove(self._ffi.from_buffer(target), pointer, target.size)
        self._lib.wgpuBufferUnmap(buffer._internal)


class _Group:
    """A bind group that is kept."""

    __slots__ = ("__weakref__", "_internal", "_release")

    def __init__(self, internal: Any, release: Callable[[Any], None]) -> None:
        self._internal = internal
        self._release = release

    # Bound as a default, since globals may be gone when the interpreter exits.
    def __del__(self, exiting: Callable[[], bool] = sys.is_finalizing) -> None:
        if self._internal is not None and not exiting():
            self._release(self._internal)


class _Mapping:
    """A staging buffer that is being mapped."""

    __slots__ = ("__weakref__", "done", "key", "message", "status")

    def __init__(self) -> None:
        self.done = False
        self.status = 0
        self.message = ""
        self.key = next(_mapping_keys)
        _mappings[self.key] = self


_mapping_keys = itertools.count(1)
_mappings: dict[int, _Mapping] = {}
_callbacks: list[Any] = []  # cffi's callbacks must outlive all their calls


def _map_callback() -> Any:
    """The callback that every mapping reports to."""
    if not _callbacks:
        from wgpu.backends.wgpu_native import ffi

        number_type = ffi.typeof("uintptr_t")

        def mapped(status: Any, message: Any, key: Any, _: Any) -> None:
            mapping = _mappings.pop(int(ffi.cast(number_type, key)), None)
            if mapping is not None:
                mapping.status = int(status)
                if message.data != ffi.NULL and message.length < 1 << 20:
                    mapping.message = ffi.string(message.data, message.length).decode(
                        errors="replace"
                    )
                mapping.done = True

        signature = "void(WGPUMapAsyncStatus, WGPUStringView, void *, void *)"
        _callbacks.append(ffi.callback(signature, mapped))
    return _callbacks[0]


def api_for(gpu: Any) -> PublicApi:
    """The quickest implementation that the installed wgpu-py allows."""
    import wgpu

    if tuple(wgpu.version_info[:2]) == KNOWN_VERSION:
        return NativeApi(gpu)
    return PublicApi(gpu)


def is_memory_error(error: BaseException) -> bool:
    """Whether wgpu says by this error that there is no memory.

    It raises a validation error then, not the error that is named for it.
    """
    import wgpu

    text = str(error).lower()
    return isinstance(error, wgpu.GPUOutOfMemoryError) or (
        isinstance(error, wgpu.GPUError)
        and ("not enough memory" in text or "out of memory" in text)
    )


def translated(error: BaseException, device: object) -> BaseException:
    """The error to raise for one of wgpu's: ``DeviceLostError`` if that is what it says, else itself."""
    if isinstance(error, DeviceLostError) or re.search(r"device\b.*\blost", str(error), re.I):
        return lost(device, "")
    return error


def lost(device: object, detail: str) -> DeviceLostError:
    """The error for a device that stopped working."""
    return DeviceLostError(
        f"{device} was lost{detail}: its driver reset it, the hardware went away, or somebody destroyed it. "
        f"What was in its memory is gone. WgpuRuntime.reopen({str(device)!r}) makes it usable again."
    )


def abandon(objects: Sequence[Any]) -> None:
    """Make wgpu's objects forget what they stand for, so that their death releases nothing.

    For the child of a fork, where the parent's device must not be touched: a call could wait for ever for
    a thread that exists in the parent alone.
    """
    for item in objects:
        if item is not None:
            item._internal = None
            if getattr(item, "_poller", None) is not None:
                item._poller = None


def forget_instance() -> None:
    """Make wgpu-py connect to the driver anew at its next use, in the child of a fork."""
    helpers: Any = sys.modules.get("wgpu.backends.wgpu_native._helpers")
    if helpers is not None:
        helpers._the_instance = None
        # A thread of the parent may have held this lock of cffi's.
        helpers.ffi._lock = threading.Lock()
    _mappings.clear()


def skip_exit_handlers() -> None:
    """Let the child of a fork end without the handlers that drivers have registered in the parent.

    Mesa's wait for threads that exist in the parent alone, and crash or hang. The handler that was registered last
    runs first, so one that is registered now ends the process before the parent's have their turn, and after those
    of the child. Only glibc tells a handler the exit code; elsewhere nothing is done.
    """
    libc = ctypes.CDLL(None)
    on_exit: Any = getattr(libc, "on_exit", None)
    if on_exit is not None:
        on_exit(ctypes.cast(libc._exit, ctypes.c_void_p), None)
