"""``CpuRuntime``: the host as a runtime."""

from __future__ import annotations

import platform
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from numr.errors import DeviceMismatch
from numr.runtime.base import Device as AnyDevice
from numr.runtime.buffers import Bytes, readable_bytes, strided_range, writable_bytes
from numr.runtime.cpu.memory import CpuAllocator
from numr.runtime.graphs.runtime import GraphRuntime

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from numr.runtime.cpu.client import CpuClient

__all__ = ["CpuDevice", "CpuRuntime"]


class CpuDevice(AnyDevice):
    """The host: there is one.

    Examples
    --------
    >>> str(CpuDevice())
    'cpu'
    """

    __slots__ = ()

    runtime: ClassVar[str] = "cpu"
    single: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """The processor's name."""
        return _processor_name()


_DEVICE = CpuDevice()
_ALLOCATOR = CpuAllocator(str(_DEVICE))
_client_lock = threading.Lock()


class CpuRuntime(GraphRuntime):
    """Host memory, whose handles are addresses, and NumPy.

    A handle may also point into an allocation, so that handles can be added to. All operations are done
    when they return; there are no streams, no events and no raw handle.

    Examples
    --------
    >>> device = CpuRuntime.default_device()
    >>> handle = CpuRuntime.allocate(4, device)
    >>> CpuRuntime.copy_to_device(b"abcd", handle, device)
    >>> host = bytearray(4)
    >>> CpuRuntime.copy_from_device(handle, host, device)
    >>> bytes(host)
    b'abcd'
    >>> CpuRuntime.deallocate(handle, 4, device)
    """

    Device = CpuDevice
    Allocator = CpuAllocator
    namespace = "numr.cpu"
    host_memory = True

    @classmethod
    def name(cls) -> str:
        """Return "cpu"."""
        return "cpu"

    @classmethod
    def devices(cls) -> tuple[CpuDevice, ...]:
        """Return the host, alone."""
        return (_DEVICE,)

    @classmethod
    def default_device(cls) -> CpuDevice:
        """Return the host."""
        return _DEVICE

    @classmethod
    def default_client(cls, device: AnyDevice) -> CpuClient:
        """Return the host's client."""
        cls.allocator(device)  # checks the device
        with _client_lock:  # or two threads could make one each
            return _client()

    @classmethod
    def allocator(cls, device: AnyDevice) -> CpuAllocator:
        """Return the host's allocator."""
        if device != _DEVICE:
            raise DeviceMismatch(
                f"the cpu runtime has no device {str(device)!r}; it has {str(_DEVICE)!r} alone."
            )
        return _ALLOCATOR

    @classmethod
    def host_view(cls, handle: int, size_bytes: int) -> Bytes:
        """View memory behind a handle as an array of bytes, without keeping it allocated.

        Raises
        ------
        InvalidHandle
            If the handle points into no active allocation or fewer bytes lie behind it.
        """
        return _ALLOCATOR.view(handle, size_bytes, "host_view")

    # ---------------------------------------------------------------- memory
    @classmethod
    def allocate(cls, size_bytes: int, device: AnyDevice) -> int:
        """Allocate host memory, aligned to 64 bytes."""
        return cls.allocator(device).allocate(size_bytes)

    @classmethod
    def deallocate(cls, ptr: int, size_bytes: int, device: AnyDevice) -> None:
        """Give host memory back."""
        cls.allocator(device).deallocate(ptr, size_bytes)

    @classmethod
    def copy_to_device(cls, src: Buffer, dst: int, device: AnyDevice) -> None:
        """Copy a buffer to the memory behind a handle."""
        source = readable_bytes(src, "copy_to_device")
        target = cls.allocator(device).view(dst, source.size, "copy_to_device")
        np.copyto(target, source)

    @classmethod
    def copy_from_device(cls, src: int, dst: Buffer, device: AnyDevice) -> None:
        """Fill a buffer from the memory behind a handle."""
        target = writable_bytes(dst, "copy_from_device")
        np.copyto(target, cls.allocator(device).view(src, target.size, "copy_from_device"))

    @classmethod
    def copy_within_device(cls, src: int, dst: int, size_bytes: int, device: AnyDevice) -> None:
        """Copy bytes between two handles; the ranges may overlap."""
        allocator = cls.allocator(device)
        source = allocator.view(src, size_bytes, "copy_within_device")
        np.copyto(allocator.view(dst, size_bytes, "copy_within_device"), source)

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
        allocator = cls.allocator(device)
        source = allocator.view(src_handle, None, "copy_strided")
        strided_range(shape, strides, src_byte_offset, elem_size, source.size, "copy_strided")
        shape = tuple(shape)
        dtype = _element_dtype(elem_size)
        view: np.ndarray[Any, Any] = np.ndarray(
            shape, dtype, source, src_byte_offset, tuple(s * elem_size for s in strides)
        )
        target = allocator.view(dst_handle, view.size * elem_size, "copy_strided")
        np.copyto(np.ndarray(shape, dtype, target), view)


@cache
def _client() -> CpuClient:
    from numr.runtime.cpu.client import CpuClient

    return CpuClient(_DEVICE)


@cache
def _element_dtype(elem_size: int) -> np.dtype[Any]:
    # NumPy moves unsigned integers with the processor's registers; other sizes are runs of bytes to it.
    return np.dtype(f"u{elem_size}") if elem_size in (1, 2, 4, 8) else np.dtype(f"V{elem_size}")


@cache
def _processor_name() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine() or "host"
