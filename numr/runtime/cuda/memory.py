"""Device memory: the shared caching allocator over ``cudaMalloc``, for handles and for CuPy's arrays alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from numr.runtime.cuda import driver
from numr.runtime.parking import ParkingAllocator, owner_of

__all__ = ["CudaAllocator"]

#: What ``cudaMalloc`` aligns to, and so the unit of blocks.
GRANULARITY: Final = 512
#: Blocks up to this size are parked, and so many of each size.
PARKED_SIZE: Final = 1 << 16
PARKED_BLOCKS: Final = 8


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


class CudaAllocator(ParkingAllocator):
    """The memory of a device, in the order of its compute stream.

    A freed block may be handed out again while the device still works on it, because whoever gets it next queues
    work on the same stream.

    CuPy's arrays inside numr's calls come from the same allocator, by :meth:`pointer`, so that figures, limit and freeze
    hold for them too. Not included is what NVIDIA's libraries allocate by themselves, such as the workspace of cuBLAS.

    Memory of small arrays is parked when they die, which saves the host two thirds of the time.

    Parameters
    ----------
    device : int
        Number of the device.
    name : str
        The device's string, for errors.
    """

    def __init__(self, device: int, name: str) -> None:
        super().__init__(
            DeviceMemory(device),
            name,
            parked_size=PARKED_SIZE,
            parked_blocks=PARKED_BLOCKS,
            granularity=GRANULARITY,
        )
        self._number = device
        memory = driver.library().cuda.memory
        self._unowned: Any = memory.UnownedMemory
        self._pointer: Any = memory.MemoryPointer
        self._release = self.release
        #: :meth:`pointer`, as one object, so that it can be compared by identity.
        self.hook: Callable[[int], Any] = self.pointer

    def pointer(self, size: int) -> Any:
        """Memory for a CuPy array, as CuPy's allocators give it; none is taken for a size of 0."""
        number = self._number
        if not size:
            return self._pointer(self._unowned(0, 0, None, number), 0)
        block = self.claim(size)
        owner = owner_of(block, self._release)
        return self._pointer(self._unowned(block.ptr, size, owner, number), 0)
