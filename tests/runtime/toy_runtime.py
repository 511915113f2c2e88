"""A complete runtime of another kind: memory is a table of byte strings, handles are its keys.

``docs/write-a-runtime.md`` walks through this file.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from numr.errors import BackendLimitation, InvalidHandle
from numr.runtime import CachingAllocator, Device, Runtime, RuntimeClient
from numr.runtime.buffers import readable_bytes, strided_range, writable_bytes


class ToyDevice(Device):
    __slots__ = ()
    runtime: ClassVar[str] = "toy"


class Table:
    """Source of memory: byte strings under numbers, which mean nothing but themselves."""

    def __init__(self, capacity: int) -> None:
        self.room = capacity
        self.memory: dict[int, bytearray] = {}
        self.numbers = itertools.count(1)

    def allocate(self, size: int) -> int:
        if size > self.room:
            raise MemoryError
        self.room -= size
        self.memory[number := next(self.numbers)] = bytearray(size)
        return number

    def deallocate(self, ptr: int, size: int) -> None:
        del self.memory[ptr]
        self.room += size


class ToyAllocator(CachingAllocator):
    """The caching allocator over a table of 64 MiB."""

    def __init__(self, device: Device) -> None:
        self.table = Table(64 << 20)
        super().__init__(self.table, str(device), cache_limit=8 << 20)

    def bytes_of(self, handle: int, size: int, function: str) -> memoryview:
        """The first ``size`` bytes of an active allocation."""
        available = self.size_of(handle)
        if not 0 <= size <= available:
            raise InvalidHandle(
                f"{function}: {size} bytes of the allocation {handle} are needed; it has {available}."
            )
        return memoryview(self.table.memory[handle])[:size]


def refuse(family: str) -> Callable[..., Any]:
    """A primitive family of a client that computes nothing."""

    def method(self: RuntimeClient[Any], *arguments: Any, **options: Any) -> Any:
        raise BackendLimitation("toy", family, "it moves bytes and computes nothing.")

    return method


# A runtime with arrays writes these families, one by one.
MISSING = RuntimeClient.__abstractmethods__ - {"allocator", "synchronize"}
NoArrays: Any = type("NoArrays", (RuntimeClient,), {name: refuse(name) for name in MISSING})


class ToyClient(NoArrays):
    @property
    def allocator(self) -> ToyAllocator:
        return ALLOCATORS[self.device]

    def synchronize(self) -> None:
        """All operations are done when they return."""


DEVICES = (ToyDevice(0), ToyDevice(1))
ALLOCATORS = {device: ToyAllocator(device) for device in DEVICES}


class ToyRuntime(Runtime):
    Device = ToyDevice
    Client = ToyClient
    Allocator = ToyAllocator
    namespace = "tests.runtime.toy_runtime"

    @classmethod
    def name(cls) -> str:
        return "toy"

    @classmethod
    def devices(cls) -> tuple[ToyDevice, ...]:
        return DEVICES

    @classmethod
    def default_device(cls) -> ToyDevice:
        return DEVICES[0]

    @classmethod
    def default_client(cls, device: Device) -> ToyClient:
        return CLIENTS[cls.device(device)]

    @classmethod
    def allocate(cls, size_bytes: int, device: Device) -> int:
        return cls.allocator(device).allocate(size_bytes)

    @classmethod
    def deallocate(cls, ptr: int, size_bytes: int, device: Device) -> None:
        cls.allocator(device).deallocate(ptr, size_bytes)

    @classmethod
    def copy_to_device(cls, src: Any, dst: int, device: Device) -> None:
        source = readable_bytes(src, "copy_to_device")
        cls.allocator(device).bytes_of(dst, source.size, "copy_to_device")[:] = source.data

    @classmethod
    def copy_from_device(cls, src: int, dst: Any, device: Device) -> None:
        target = writable_bytes(dst, "copy_from_device")
        target.data[:] = cls.allocator(device).bytes_of(src, target.size, "copy_from_device")

    @classmethod
    def copy_within_device(cls, src: int, dst: int, size_bytes: int, device: Device) -> None:
        allocator = cls.allocator(device)
        source = allocator.bytes_of(src, size_bytes, "copy_within_device")
        allocator.bytes_of(dst, size_bytes, "copy_within_device")[:] = source

    @classmethod
    def copy_strided(
        cls, src_handle: int, src_byte_offset: int, dst_handle: int, shape: Sequence[int],
        strides: Sequence[int], elem_size: int, device: Device,
    ) -> None:  # fmt: skip
        allocator = cls.allocator(device)
        size = allocator.size_of(src_handle)
        strided_range(shape, strides, src_byte_offset, elem_size, size, "copy_strided")
        source = allocator.bytes_of(src_handle, size, "copy_strided")
        steps = [[i * s * elem_size for i in range(n)] for n, s in zip(shape, strides, strict=True)]
        starts = [src_byte_offset + sum(step) for step in itertools.product(*steps)]
        gathered = b"".join(source[start : start + elem_size] for start in starts)
        allocator.bytes_of(dst_handle, len(gathered), "copy_strided")[:] = gathered


ToyClient.runtime = ToyRuntime
CLIENTS = {device: ToyClient(device) for device in DEVICES}
