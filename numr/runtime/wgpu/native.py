"""The one file that knows wgpu-py's inside: submitting, reading and waiting.

wgpu-py's public objects cost about ten microseconds for each bind group and check every argument again, which is
most of the time of a small operation. Below them lies a cffi layer that is private and may change with each
version. So there are two implementations of one interface: :class:`numr.runtime.wgpu.submitting.PublicApi` uses the
public objects alone, :class:`NativeApi` the cffi layer of the version it was written for. :func:`api_for` picks.

Two properties of wgpu-native shape both. It ends the process when a submission is refused, as it is on a lost
device. So every submission has a command buffer, whose end is where a loss shows as an exception, even when
there is nothing to encode. And an error inside a batch loses the whole batch, so nothing reaches this file that
:mod:`numr.runtime.wgpu.queue` has not checked.
"""

from __future__ import annotations

import ctypes
import itertools
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from numr.errors import DeviceLostError
from numr.runtime.buffers import Bytes
from numr.runtime.wgpu.records import Copy, Dispatch
from numr.runtime.wgpu.submitting import PublicApi

__all__ = ["KEPT_GROUPS", "NativeApi", "abandon", "api_for", "forget_instance"]

#: The version of wgpu-py whose inside :class:`NativeApi` knows.
KNOWN_VERSION = (0, 32)

#: Hundredths of a second after the end of the work within which a device must say that it can be read.
_PATIENCE = 500
#: Bind groups that are kept for their next use.
KEPT_GROUPS = 1024


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
