"""Host memory: aligned blocks, and arrays whose memory returns to the cache when the last view dies."""

from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from numr.errors import InvalidHandle
from numr.runtime.buffers import Bytes
from numr.runtime.parking import ParkingAllocator

if TYPE_CHECKING:
    from numr.dtypes import DType
    from numr.runtime.caching import Block

__all__ = ["ALIGNMENT", "CpuAllocator", "HostMemory", "default_cache_limit"]

#: Every block starts at a multiple of this: a cache line, and the widest vector register.
ALIGNMENT = 64

#: Memory of arrays up to this size is parked when they die, and so many blocks of each size.
PARKED_SIZE = 1 << 26
PARKED_BLOCKS = 4

_BYTE = np.dtype(np.uint8)
_new_array = np.ndarray.__new__
_base_of: Callable[[np.ndarray[Any, Any]], object] = np.ndarray.base.__get__


class HostBlock(np.ndarray[Any, np.dtype[np.uint8]]):
    """All bytes of one block of host memory."""

    __slots__ = ("block", "ptr", "release")

    ptr: int
    #: The allocation that the bytes serve, and what takes it back.
    block: Block
    release: Callable[[Block], None]


class Lease(np.ndarray[Any, np.dtype[np.uint8]]):
    """The bytes of one active allocation; its death deallocates them.

    Arrays that are made over a lease have it as their base, and so, by way of them, have all views of them, since
    NumPy shortens a chain of bases only as far as their types agree. Only plain arrays refer to a lease. The
    garbage collector does not look into them, so a lease dies by its reference count alone, for the reason
    that :mod:`numr.runtime.storage` gives.
    """

    __slots__ = ()

    @property
    def base(self) -> None:
        """None: to everyone else the lease is what owns the memory."""
        return

    # Bound as a default, since globals may be gone when the interpreter exits.
    def __del__(self, exiting: Callable[[], bool] = sys.is_finalizing) -> None:
        block = _base_of(self)
        # Views of a lease and results of operations on one are leases by type, without a block below.
        if isinstance(block, HostBlock) and not exiting():
            block.release(block.block)


class HostMemory:
    """Source of host memory in aligned blocks, by their addresses."""

    def __init__(self) -> None:
        self.blocks: dict[int, HostBlock] = {}

    def allocate(self, size: int) -> int:
        """Address of a new block, a multiple of ``ALIGNMENT``; MemoryError where there is no memory."""
        if size > sys.maxsize - ALIGNMENT:
            raise MemoryError
        # NumPy's allocation, because it asks Linux for huge pages where they pay.
        raw = np.empty(size + ALIGNMENT, _BYTE)
        address: int = raw.__array_interface__["data"][0]
        skip = -address % ALIGNMENT
        ptr = address + skip
        block = _new_array(HostBlock, (size,), _BYTE, raw, skip)
        block.ptr = ptr
        self.blocks[ptr] = block
        return ptr

    def adopt(self, array: np.ndarray[Any, Any]) -> HostBlock:
        """Make a block of the memory of an array, whose elements lie in it without gaps."""
        flat = array.ravel(order="K")
        if flat.flags.owndata or not (array.flags.owndata and array.nbytes):
            raise ValueError(
                f"adopt: an array of shape {array.shape} and byte strides {array.strides} does not own its "
                "memory, does not fill it, or has none; memory that others share cannot be counted."
            )
        block = _new_array(HostBlock, (array.nbytes,), _BYTE, flat)
        block.ptr = ptr = flat.__array_interface__["data"][0]
        self.blocks[ptr] = block
        return block

    def deallocate(self, ptr: int, size: int) -> None:
        """Forget a block, whose memory goes when nothing views it."""
        del self.blocks[ptr]


class CpuAllocator(ParkingAllocator):
    """The allocator of host memory.

    Memory comes from it by handle, with :meth:`allocate`, or as an array, with :meth:`empty` and
    :meth:`empty_array`; both share the figures. A client may serve small results from NumPy's own
    allocator, outside the figures, as long as :attr:`strict` is false.

    Parameters
    ----------
    device : str
        The device, for errors.
    cache_limit : int, optional
        Bytes of freed blocks to keep: by default what :func:`default_cache_limit` says.

    Attributes
    ----------
    strict : bool
        Whether every allocation must pass through the allocator, as it is frozen or has a limit.
    on_strict_change : list of callable
        Called without arguments, in the thread that made the change, when :attr:`strict` has changed.
    """

    def __init__(self, device: str, *, cache_limit: int | None = None) -> None:
        memory = HostMemory()
        default = default_cache_limit()
        super().__init__(
            memory,
            device,
            parked_size=min(PARKED_SIZE, default),
            parked_blocks=PARKED_BLOCKS,
            cache_limit=default if cache_limit is None else cache_limit,
            granularity=ALIGNMENT,
        )
        self._memory = memory
        self._release = self.release
        self.strict = False
        self.on_strict_change: list[Callable[[], None]] = []
        self._strict_lock = threading.RLock()

    # ------------------------------------------------------------------ arrays
    def empty(self, size_bytes: int) -> Bytes:
        """Bytes of a new allocation, given back when the last array that views them dies.

        Parameters
        ----------
        size_bytes : int
            Bytes wanted.

        Returns
        -------
        ndarray
            One-dimensional, of uint8, aligned to ``ALIGNMENT``, with arbitrary content.

        Raises
        ------
        OutOfMemoryError
            If the memory does not fit.
        AllocatorFrozen
            If the allocator is frozen.

        Examples
        --------
        >>> allocator = CpuAllocator("cpu")
        >>> array = allocator.empty(1000)
        >>> tail = array[900:]
        >>> del array
        >>> allocator.allocated_bytes
        1000
        >>> del tail
        >>> allocator.allocated_bytes
        0
        """
        return np.ndarray((size_bytes,), _BYTE, self._lease(size_bytes))

    def empty_array(self, shape: tuple[int, ...], dtype: DType) -> np.ndarray[Any, Any]:
        """C-contiguous array over a new allocation, as :meth:`empty` in one step."""
        return np.ndarray(shape, dtype, self._lease(math.prod(shape) * dtype.itemsize))

    def adopt(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Count an array that NumPy allocated, until the last view of it dies.

        Parameters
        ----------
        array : ndarray
            Owns its memory, which it fills; of at least one byte.

        Returns
        -------
        ndarray
            View to use instead of ``array``.

        Raises
        ------
        OutOfMemoryError
            If the memory does not fit under the limit.
        AllocatorFrozen
            If the allocator is frozen.
        ValueError
            If the array does not own its memory, does not fill it, or has none.

        Examples
        --------
        >>> allocator = CpuAllocator("cpu")
        >>> product = allocator.adopt(np.matmul(np.ones((8, 8)), np.ones((8, 8))))
        >>> allocator.allocated_bytes
        512
        """
        size = array.nbytes
        memory = self._memory.adopt(array)
        try:
            block = self.take_over(memory.ptr, size)
        except BaseException:
            self._memory.deallocate(memory.ptr, size)
            raise
        return np.ndarray(array.shape, array.dtype, self._lease_of(block), 0, array.strides)

    def _lease(self, size: int) -> Lease:
        return self._lease_of(self.claim(size))

    def _lease_of(self, block: Block) -> Lease:
        """Lease of a live block, which is deallocated if there is no memory for the lease itself."""
        try:
            memory = self._memory.blocks[block.ptr]
            memory.block = block
            memory.release = self._release
            return _new_array(Lease, (block.size,), _BYTE, memory)
        except BaseException:
            self.release(block)
            raise

    def view(self, handle: int, size_bytes: int | None, function: str) -> Bytes:
        """Bytes behind a handle, which may also point into an allocation.

        Parameters
        ----------
        handle : int
            Address of an active allocation, or of a byte in one.
        size_bytes : int or None
            Bytes wanted; None for all from the handle to the end of the allocation.
        function : str
            The name that errors begin with.

        Returns
        -------
        ndarray
            View of the bytes. It does not keep the allocation active.

        Raises
        ------
        InvalidHandle
            If the handle points into no active allocation or fewer bytes lie behind it.
        """
        self._unpark()
        block = self._live.get(handle)
        if block is None:
            # Rare, and then a walk over all allocations is quick enough. The list is a snapshot.
            for candidate in list(self._live.values()):
                if candidate.ptr <= handle < candidate.ptr + candidate.size:
                    block = candidate
                    break
            else:
                raise InvalidHandle(
                    f"{function}: {self.device} has no active allocation at {handle:#x}: it was "
                    "deallocated, or never allocated by this runtime. Wrap memory of other libraries in "
                    "an ndarray instead."
                )
        skip = handle - block.ptr
        available = block.size - skip
        if size_bytes is None:
            size_bytes = available
        elif not 0 <= size_bytes <= available:
            raise InvalidHandle(
                f"{function}: {size_bytes} bytes at {handle:#x} are needed, but the allocation there has "
                f"only {available}."
            )
        return np.ndarray((size_bytes,), _BYTE, self._memory.blocks[block.ptr], skip)

    # -------------------------------------------------------------- strictness
    def freeze(self) -> bool:
        """Refuse allocations, and return True; see ``Allocator.freeze``."""
        super().freeze()
        self._update_strict()
        return True

    def unfreeze(self) -> None:
        """Allow allocations again."""
        super().unfreeze()
        self._update_strict()

    def set_limit(self, size_bytes: int | None) -> None:
        """Bound the reserved bytes; see ``Allocator.set_limit``."""
        super().set_limit(size_bytes)
        self._update_strict()

    def _update_strict(self) -> None:
        with self._strict_lock:
            strict = self._frozen or self._limit is not None
            if strict != self.strict:
                self.strict = strict
                for callback in self.on_strict_change:
                    callback()


def default_cache_limit() -> int:
    """Bytes of freed blocks to keep: an eighth of the memory, but 1 GiB at least and half of it at most.

    The memory is the machine's, or what the control group of the process may use, where that is less. The environment
    variable ``NUMR_CPU_CACHE_BYTES`` says otherwise.
    """
    asked = os.environ.get("NUMR_CPU_CACHE_BYTES", "").strip()
    if asked:
        if not asked.isdecimal():
            raise ValueError(f"NUMR_CPU_CACHE_BYTES={asked!r} is no number of bytes.")
        return int(asked)
    memory = _physical_memory()
    return min(max(memory // 8, 1 << 30), memory // 2)


def _physical_memory() -> int:
    sizes = []
    names: dict[str, int] = getattr(os, "sysconf_names", {})  # absent on Windows
    if "SC_PHYS_PAGES" in names and "SC_PAGE_SIZE" in names:
        sizes.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for file in (
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    ):
        try:
            text = Path(file).read_text()
        except OSError:
            continue  # the system has no control groups of this version
        if text.strip().isdigit():  # "max" where there is no limit
            sizes.append(int(text))
    # Where nothing can be learned, a machine of 2 GiB is assumed, which gives a cache of 1 GiB.
    return min((size for size in sizes if size > 0), default=2 << 30)
