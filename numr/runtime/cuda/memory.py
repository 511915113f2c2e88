"""Device memory: the shared caching allocator over ``cudaMalloc``, for handles and for CuPy's arrays alike."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np

from numr.runtime.allocation import AllocationStats
from numr.runtime.caching import Block, CachingAllocator
from numr.runtime.cuda import driver

__all__ = ["CudaAllocator"]

#: What ``cudaMalloc`` aligns to, and so the unit of blocks.
GRANULARITY: Final = 512
#: Blocks up to this size are parked, and so many of each size.
PARKED_SIZE: Final = 1 << 16
PARKED_BLOCKS: Final = 8

_OBJECT = np.dtype(object)


class DeviceMemory:
    """Memory of one device, from the driver.

    The driver waits for the whole device before it takes memory back, so what a kernel still uses is not given to
    anybody else.
    """

    def __init__(self, device: int) -> None:
        self._device = device

    def allocate(self, size: int) -> int:
        """New memory; see ``MemorySource``."""
        driver.require()
        if size >= 1 << 63:
            raise MemoryError
        runtime = driver.library().cuda.runtime
        before = runtime.getDevice()
        runtime.setDevice(self._device)
        try:
            return int(runtime.malloc(size))
        except runtime.CUDARuntimeError as error:
            if error.status != driver.MEMORY_ALLOCATION:
                raise
            raise MemoryError from None
        finally:
            runtime.setDevice(before)

    def deallocate(self, ptr: int, size: int) -> None:
        """Take memory back; see ``MemorySource``."""
        if not driver.is_forked():  # else it is the parent's
            driver.library().cuda.runtime.free(ptr)


class _Claim:
    """Memory of an array, which is given back when the claim dies."""

    __slots__ = ("block", "release")

    block: Block
    release: Callable[[Block], None]

    # Bound as a default, since globals may be gone when the interpreter exits.
    def __del__(self, exiting: Callable[[], bool] = sys.is_finalizing) -> None:
        if not exiting():
            self.release(self.block)


_new_claim: Callable[[type[_Claim]], _Claim] = object.__new__


class CudaAllocator(CachingAllocator):
    """The memory of a device, in the order of its compute stream.

    A freed block may be handed out again while the device still works on it, because whoever gets it next queues
    work on the same stream.

    CuPy's arrays inside numr's calls come from the same allocator, by :meth:`pointer`, so that figures, limit and freeze
    hold for them too. Not included is what NVIDIA's libraries allocate by themselves, such as the workspace of cuBLAS.

    Memory of small arrays that die is *parked*: it stays a live block of the caching allocator, and the next array of
    the same size takes it over, which costs the host a third. Whatever asks for figures, and every allocation that
    finds no parked block, frees the parked ones first; so nobody sees the difference, nor does the peak.

    Parameters
    ----------
    device : int
        Number of the device.
    name : str
        The device's string, for errors.
    """

    def __init__(self, device: int, name: str) -> None:
        super().__init__(DeviceMemory(device), name, granularity=GRANULARITY)
        self._number = device
        memory = driver.library().cuda.memory
        self._unowned: Any = memory.UnownedMemory
        self._pointer: Any = memory.MemoryPointer
        self._parked: dict[int, list[Block]] = {}
        self._release = self.release
        #: :meth:`pointer`, as one object, so that it can be compared by identity.
        self.hook: Callable[[int], Any] = self.pointer

    def pointer(self, size: int) -> Any:
        """Memory for a CuPy array, as CuPy's allocators give it; none is taken for a size of 0."""
        number = self._number
        try:
            # Taking from a list is one step, so that no other thread gets the same block.
            block = self._parked[size].pop()
        except LookupError:
            if not size:
                return self._pointer(self._unowned(0, 0, None, number), 0)
            block = self.take(size)
        else:
            if self._frozen:
                self.release(block)
                block = self.take(size)  # says that it is frozen
            block.reused += 1
        # The claim dies by its reference count alone, for the reason that numr.runtime.storage gives.
        claim = _new_claim(_Claim)
        claim.block = block
        claim.release = self._release
        owner: np.ndarray[Any, Any] = np.ndarray((), _OBJECT)
        owner[()] = claim
        return self._pointer(self._unowned(block.ptr, size, owner, number), 0)

    def release(self, block: Block) -> None:
        """Take back what :meth:`pointer` handed out."""
        size = block.size
        if size <= PARKED_SIZE:
            parked = self._parked.get(size)
            if parked is None:
                parked = self._parked.setdefault(size, [])
            if len(parked) < PARKED_BLOCKS:
                parked.append(block)
                return
        self.deallocate(block.ptr, size)

    def _unpark(self) -> None:
        """Free the parked blocks."""
        for size, parked in list(self._parked.items()):
            while parked:
                try:
                    block = parked.pop()
                except IndexError:
                    break  # another thread took the last one
                self.deallocate(block.ptr, size)

    # ------------------------------------------------ what sees parked blocks
    def _try_take(self, size: int, capacity: int) -> Block | None:
        self._unpark()
        return super()._try_take(size, capacity)

    @contextlib.contextmanager
    def _section(self) -> Iterator[bool]:
        self._unpark()
        with super()._section() as alone:
            yield alone

    def size_of(self, ptr: int) -> int:
        self._unpark()
        return super().size_of(ptr)

    def stats(self) -> AllocationStats:
        figures = super().stats()
        reused = [block for block in list(self._live.values()) if block.reused]
        return replace(
            figures,
            total_allocations=figures.total_allocations + sum(block.reused for block in reused),
            total_bytes=figures.total_bytes + sum(block.reused * block.size for block in reused),
        )
