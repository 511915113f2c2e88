"""Copies between host and device through pinned buffers that are reused.

The device reads and writes pinned memory by itself; for other host memory the driver copies through a buffer of its
own, and waits. Two buffers alternate, so that one is filled while the other travels.
"""

from __future__ import annotations

import threading
from typing import Any, Final

import numpy as np

from numr.runtime.buffers import Bytes
from numr.runtime.cuda import driver

__all__ = ["Report", "Staging"]

#: Bytes in one buffer.
CHUNK: Final = 4 << 20


class _Buffer:
    """Pinned memory, and the event after the last copy that used it."""

    def __init__(self) -> None:
        cuda = driver.library().cuda
        self.memory = cuda.alloc_pinned_memory(CHUNK)
        self.bytes: Bytes = np.frombuffer(self.memory, np.uint8, CHUNK)
        self.ptr = int(self.memory.ptr)
        self.event = cuda.Event(disable_timing=True)
        self.used = False

    def wait(self) -> None:
        if self.used:
            self.event.synchronize()


class Report:
    """A few integers in pinned memory, which kernels write and the host reads once they have run."""

    def __init__(self) -> None:
        size = 4 * 8
        memory = driver.library().cuda.alloc_pinned_memory(size)
        self.values = np.frombuffer(memory, np.int64, size // 8)
        self.ptr = int(memory.ptr)


class Staging:
    """Two pinned buffers of one device, made on first use. The device has to be current in all calls."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._buffers: list[_Buffer] = []

    def _ready(self) -> Any:
        if not self._buffers:
            self._buffers = [_Buffer(), _Buffer()]
        return driver.library().cuda.runtime

    def upload(self, source: Bytes, ptr: int, stream: Any) -> None:
        """Copy host bytes to the device; they may change when the call returns."""
        with self._lock:
            runtime = self._ready()
            for start in range(0, source.size, CHUNK):
                buffer = self._buffers[0]
                self._buffers.reverse()
                part = source[start : start + CHUNK]
                buffer.wait()
                np.copyto(buffer.bytes[: part.size], part)
                runtime.memcpyAsync(
                    ptr + start, buffer.ptr, part.size, runtime.memcpyHostToDevice, stream.ptr
                )
                buffer.event.record(stream)
                buffer.used = True

    def download(self, ptr: int, target: Bytes, stream: Any, after: Any = None) -> None:
        """Fill host bytes from the device, after an event where one is given."""
        with self._lock:
            runtime = self._ready()
            if after is not None:
                stream.wait_event(after)
            under_way: list[tuple[_Buffer, Bytes]] = []
            for start in range(0, target.size, CHUNK):
                buffer = self._buffers[0]
                self._buffers.reverse()
                part = target[start : start + CHUNK]
                buffer.wait()
                if len(under_way) == 2:
                    _finish(*under_way.pop(0))
                runtime.memcpyAsync(
                    buffer.ptr, ptr + start, part.size, runtime.memcpyDeviceToHost, stream.ptr
                )
                buffer.event.record(stream)
                buffer.used = True
                under_way.append((buffer, part))
            for buffer, part in under_way:
                _finish(buffer, part)
            if not target.size:
                stream.synchronize()


def _finish(buffer: _Buffer, part: Bytes) -> None:
    buffer.wait()
    np.copyto(part, buffer.bytes[: part.size])
