"""``CachingAllocator``: size classes and a cache of freed blocks over anything that hands out memory.

Getting memory from a system or a driver is slow, and fresh pages are slower to write than warm ones.
So freed blocks are kept, by their capacity, and handed out again.

Finalizers free memory, and Python may run a finalizer between any two steps of a method, in the thread
that is inside it. Two rules follow. ``deallocate`` takes the block out of the table of live
blocks, which is one atomic step, and leaves the rest in a queue that whoever holds the lock works off.
And an allocation that a finalizer makes while its own thread holds the lock goes to the source directly,
touching nothing that the interrupted method may be halfway through.
"""

from __future__ import annotations

import contextlib
import gc
import operator
import os
import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import Protocol

from numr.errors import AllocatorBusy, AllocatorFrozen, InvalidHandle, OutOfMemoryError
from numr.runtime.allocation import AllocationStats, Allocator

__all__ = ["Block", "CachingAllocator", "MemorySource", "size_class"]

#: Up to this size there are 8 size classes for each doubling, above it 64: rounding up wastes less than 1/8,
#: where that is little, and less than 1/64, where it would keep arrays from fitting.
FINE_ABOVE = 1 << 20
_STEPS = 8
_STEP_BITS = 4
_FINE_STEP_BITS = 7


class MemorySource(Protocol):
    """What an allocator gets its blocks from.

    ``allocate`` raises MemoryError where there is no memory. Both are called with the allocator's lock
    held and must not call the allocator.
    """

    def allocate(self, size: int) -> int:
        """Handle of new memory: non-zero, and unlike that of any other block of the source."""

    def deallocate(self, ptr: int, size: int) -> None:
        """Take back a block with the size that it was allocated with."""


class Block:
    """Memory from the source: cached, or live with a size."""

    __slots__ = ("cacheable", "capacity", "counted", "ptr", "reused", "size")

    def __init__(self, ptr: int, capacity: int, size: int, *, cacheable: bool = True) -> None:
        self.ptr = ptr
        self.capacity = capacity
        #: What was asked for, while the block is live.
        self.size = size
        #: Whether the block may serve other requests when it is freed.
        self.cacheable = cacheable
        #: Whether the figures include the block.
        self.counted = False
        #: How often a derived allocator handed the live block out again, which the totals do not include yet.
        self.reused = 0


def size_class(size: int, granularity: int = 64) -> int:
    """Capacity of the blocks that serve requests of a size.

    Multiples of ``granularity``, a power of two, up to eight of it; above, a number of even steps for each
    doubling.

    Examples
    --------
    >>> [size_class(n) for n in (0, 1, 64, 65, 1000, 1025, 10**6)]
    [64, 64, 64, 128, 1024, 1152, 1048576]
    """
    if size <= granularity * _STEPS:
        return (size + granularity - 1) & -granularity or granularity
    shift = (size - 1).bit_length() - (_STEP_BITS if size <= FINE_ABOVE else _FINE_STEP_BITS)
    return ((size - 1 >> shift) + 1) << shift


class CachingAllocator(Allocator):
    """Allocator with size classes and a bounded cache of freed blocks.

    A request is rounded up to a size class (see :func:`size_class`) and gets the block of that class that was freed last, or a new one from the source.
    Freed blocks are cached up to ``cache_limit``; beyond it those go back that were freed longest ago.

    A request succeeds if its size, rounded up to ``granularity`` alone, fits beside the *live* blocks under
    the limit: cached blocks are given back for it, as few as are needed and the oldest first. Where the
    source has no memory, all cached blocks are given back; and before a request fails, garbage is
    collected once.

    Parameters
    ----------
    source : MemorySource
        Where blocks come from.
    device : str
        The device, for errors.
    cache_limit : int, optional
        Bytes of freed blocks to keep; without a bound by default.
    granularity : int, optional
        Smallest block and unit of all capacities, a power of two.
    """

    def __init__(
        self,
        source: MemorySource,
        device: str,
        *,
        cache_limit: int | None = None,
        granularity: int = 64,
    ) -> None:
        self.device = device
        self._source = source
        self._cache_limit = cache_limit
        self._granularity = granularity
        self._small = granularity * _STEPS
        self._lock = threading.RLock()
        self._inside = False  # whether a method of the thread that holds the lock is at work
        self._live: dict[int, Block] = {}
        # Cached blocks twice: by capacity, and by handle. Both keep the order in which they were freed.
        self._free: dict[int, deque[Block]] = {}
        self._cache: OrderedDict[int, Block] = OrderedDict()
        # Frees, and allocations that finalizers made, that the figures do not include yet.
        self._freed: deque[Block] = deque()
        self._direct: deque[Block] = deque()
        self._frozen = False
        self._limit: int | None = None
        self._total_allocations = 0
        self._total_bytes = 0
        self._active_bytes = 0
        self._peak = 0
        self._reserved = 0
        self._cached = 0
        _ALLOCATORS.add(self)

    # ------------------------------------------------------------ allocation
    def allocate(self, size_bytes: int) -> int:
        """Allocate memory; see :meth:`Allocator.allocate`."""
        return self.take(size_bytes).ptr

    def take(self, size: int) -> Block:
        """Do what :meth:`allocate` does and return the block."""
        if type(size) is not int or size < 0:
            size = _checked_size(size, "allocate")
        # size_class(size), written out: this is the hot path.
        if size <= self._small:
            granularity = self._granularity
            capacity = (size + granularity - 1) & -granularity or granularity
        else:
            bits = _STEP_BITS if size <= FINE_ABOVE else _FINE_STEP_BITS
            shift = (size - 1).bit_length() - bits
            capacity = ((size - 1 >> shift) + 1) << shift
        block = self._try_take(size, capacity)
        if block is None:
            if self._limit is None or size <= self._limit:
                # Tensors in reference cycles hold memory too. Without the lock: finalizers may wait for
                # locks of their own, which other threads may hold while they wait for this one.
                gc.collect()
                block = self._try_take(size, capacity)
            if block is None:
                raise self._out_of_memory(size)
        return block

    def _try_take(self, size: int, capacity: int) -> Block | None:
        with self._lock:
            if self._inside:
                return self._take_directly(size)
            self._inside = True
            try:
                if self._freed or self._direct:
                    self._settle()
                if self._frozen:
                    raise AllocatorFrozen(size, self.device)
                free = self._free.get(capacity)
                if free:
                    block = free.pop()
                    del self._cache[block.ptr]
                    self._cached -= capacity
                else:
                    grown = self._grow(size, capacity)
                    if grown is None:
                        return None
                    block = grown
                block.size = size
                self._live[block.ptr] = block
                # _count(block), written out for speed.
                self._total_allocations += 1
                self._total_bytes += size
                active = self._active_bytes + size
                self._active_bytes = active
                if active > self._peak:
                    self._peak = active
                return block
            finally:
                self._inside = False

    def _take_directly(self, size: int) -> Block:
        """Serve a finalizer that interrupted a method of this allocator in its own thread."""
        if self._frozen:
            raise AllocatorFrozen(size, self.device)
        capacity = self._rounded(size)
        if self._limit is not None and self._reserved + capacity > self._limit:
            raise self._out_of_memory(size)
        try:
            block = Block(self._source.allocate(capacity), capacity, size)
        except MemoryError:
            raise self._out_of_memory(size) from None
        self._live[block.ptr] = block
        self._direct.append(block)
        return block

    def _grow(self, size: int, capacity: int) -> Block | None:
        """Block for a request that the cache has none for; None if there is no memory for it."""
        exact = self._rounded(size)
        if self._limit is not None:
            room = self._limit - (self._reserved - self._cached)
            if exact > room:
                return None
            if capacity > room:
                capacity = exact
                free = self._free.get(exact)
                if free:
                    block = free.pop()
                    del self._cache[block.ptr]
                    self._cached -= exact
                    return block
            self._evict(self._reserved + capacity - self._limit)
        while True:
            try:
                block = Block(self._source.allocate(capacity), capacity, size)
            except MemoryError:
                if self._cached:
                    self._evict(self._cached)
                elif capacity > exact:
                    capacity = exact
                else:
                    return None
            else:
                self._reserved += capacity
                block.counted = True
                return block

    def take_over(self, ptr: int, size: int) -> Block:
        """Count memory that the source has got by other means, as if it were allocated here.

        It is deallocated like any allocation and goes back to the source then, without being cached.

        Parameters
        ----------
        ptr : int
            Handle that the source takes back.
        size : int
            Bytes behind it.

        Returns
        -------
        Block
            The allocation.

        Raises
        ------
        OutOfMemoryError
            If it does not fit under the limit.
        AllocatorFrozen
            If the allocator is frozen.
        """
        block = Block(ptr, size, size, cacheable=False)
        for _ in range(2):
            with self._section() as alone:
                if self._frozen:
                    raise AllocatorFrozen(size, self.device)
                limit = self._limit
                if alone and limit is not None and size <= limit - self._reserved + self._cached:
                    self._evict(self._reserved + size - limit)
                if limit is None or self._reserved + size <= limit:
                    self._live[ptr] = block
                    if alone:
                        self._admit(block)
                    else:
                        self._direct.append(block)
                    return block
            gc.collect()
        raise self._out_of_memory(size)

    def _rounded(self, size: int) -> int:
        granularity = self._granularity
        return (size + granularity - 1) & -granularity or granularity

    def _count(self, block: Block) -> None:
        size = block.size
        self._total_allocations += 1
        self._total_bytes += size
        active = self._active_bytes + size
        self._active_bytes = active
        if active > self._peak:
            self._peak = active

    # ---------------------------------------------------------- deallocation
    def deallocate(self, ptr: int, size_bytes: int) -> None:
        """Give back memory; see :meth:`Allocator.deallocate`."""
        block = self._live.get(ptr)
        if (
            block is None
            or block.size != size_bytes
            or self._live.pop(ptr, None) is not block  # another thread was first
        ):
            raise self._invalid(ptr, size_bytes, block)
        self._freed.append(block)
        if self._lock.acquire(blocking=False):
            try:
                if not self._inside:
                    self._inside = True
                    try:
                        self._settle()
                    finally:
                        self._inside = False
            finally:
                self._lock.release()

    def _settle(self) -> None:
        """Bring the figures and the cache up to date. Only called by whoever is inside."""
        while self._direct:
            self._admit(self._direct.popleft())
        freed = self._freed
        cache_limit = self._cache_limit
        while freed:
            block = freed.popleft()
            if not block.counted:
                self._admit(block)
            if block.reused:
                self._total_allocations += block.reused
                self._total_bytes += block.reused * block.size
                block.reused = 0
            self._active_bytes -= block.size
            capacity = block.capacity
            if not block.cacheable or (cache_limit is not None and capacity > cache_limit):
                # Caching more than the bound would drive everything else out, and itself in the end.
                self._reserved -= capacity
                self._source.deallocate(block.ptr, capacity)
                continue
            free = self._free.get(capacity)
            if free is None:
                free = self._free[capacity] = deque()
            free.append(block)
            self._cache[block.ptr] = block
            self._cached += capacity
        if cache_limit is not None and self._cached > cache_limit:
            self._evict(self._cached - cache_limit)
        # A limit below what was live when it was set.
        if self._limit is not None and self._reserved > self._limit:
            self._evict(self._reserved - self._limit)

    def _admit(self, block: Block) -> None:
        """Count an allocation that a finalizer made."""
        if not block.counted:
            block.counted = True
            self._reserved += block.capacity
            self._count(block)

    def _evict(self, size: int) -> None:
        """Give back at least ``size`` bytes of cached blocks, if there are as many, the oldest first."""
        while size > 0 and self._cache:
            ptr, block = self._cache.popitem(last=False)
            capacity = block.capacity
            free = self._free[capacity]
            free.popleft()
            if not free:
                del self._free[capacity]
            self._cached -= capacity
            self._reserved -= capacity
            size -= capacity
            self._source.deallocate(ptr, capacity)

    # ---------------------------------------------------- figures and limits
    @contextlib.contextmanager
    def _section(self) -> Iterator[bool]:
        """Hold the lock with the figures up to date; False inside a method that a finalizer interrupted."""
        with self._lock:
            if self._inside:
                yield False
                return
            self._inside = True
            try:
                self._settle()
                yield True
            finally:
                self._inside = False

    def size_of(self, ptr: int) -> int:
        """Size that an active allocation was asked with.

        Raises
        ------
        InvalidHandle
            If no active allocation has this handle.
        """
        block = self._live.get(ptr)
        if block is None:
            raise InvalidHandle(
                f"{self.device} has no active allocation with the handle {ptr!r}: it was deallocated, "
                "or never allocated on this device."
            )
        return block.size

    def freeze(self) -> bool:
        """Refuse allocations, and return True; see :meth:`Allocator.freeze`."""
        with self._lock:
            self._frozen = True
        return True

    def unfreeze(self) -> None:
        """Allow allocations again."""
        with self._lock:
            self._frozen = False

    @property
    def is_frozen(self) -> bool:
        """Whether allocations are refused."""
        return self._frozen

    def stats(self) -> AllocationStats:
        """Figures at this moment."""
        with self._section():
            return AllocationStats(
                total_allocations=self._total_allocations,
                total_bytes=self._total_bytes,
                active_allocations=len(self._live),
                is_frozen=self._frozen,
                peak_usage=self._peak,
                active_bytes=self._active_bytes,
                reserved_bytes=self._reserved,
                limit_bytes=self._limit,
            )

    def reset(self) -> None:
        """Give back cached memory and zero the totals and the peak; see :meth:`Allocator.reset`."""
        with self._section() as alone:
            if self._live or not alone:
                raise AllocatorBusy(len(self._live), self._active_bytes, self.device)
            self._evict(self._cached)
            self._total_allocations = self._total_bytes = self._peak = 0

    def trim(self) -> int:
        """Give back all cached memory and return how many bytes that was.

        None, when a finalizer calls it while its own thread is inside the allocator.
        """
        with self._section() as alone:
            if not alone:
                return 0
            cached = self._cached
            self._evict(cached)
            return cached

    def set_limit(self, size_bytes: int | None) -> None:
        """Bound the reserved bytes; see :meth:`Allocator.set_limit`."""
        if size_bytes is not None:
            size_bytes = _checked_size(size_bytes, "set_limit")
        with self._section() as alone:
            self._limit = size_bytes
            if alone and size_bytes is not None:
                self._evict(self._reserved - size_bytes)

    # ---------------------------------------------------------------- errors
    def _out_of_memory(self, size: int) -> OutOfMemoryError:
        figures = self.stats()
        return OutOfMemoryError(
            size, figures.active_bytes, figures.reserved_bytes, figures.limit_bytes, self.device
        )

    def _invalid(self, ptr: int, size: int, block: Block | None) -> InvalidHandle:
        if block is None or block.size == size:
            return InvalidHandle(
                f"deallocate: {self.device} has no active allocation with the handle {ptr!r}: it was "
                "deallocated before, or never allocated on this device."
            )
        return InvalidHandle(
            f"deallocate: the allocation {ptr!r} of {self.device} has {block.size} bytes, not {size}. "
            "Pass the size that was asked of allocate."
        )


def _checked_size(size: object, function: str) -> int:
    try:
        result = operator.index(size)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{function}: the number of bytes is an int, not {size!r}.") from None
    if result < 0:
        raise ValueError(f"{function}: the number of bytes is {result}; it starts from 0.")
    return result


# A child of fork has one thread. What other threads held at that moment would stay locked in it for ever, so
# all locks are taken before and released on both sides after.
_ALLOCATORS: weakref.WeakSet[CachingAllocator] = weakref.WeakSet()
_locked_for_fork: list[CachingAllocator] = []


def _before_fork() -> None:
    for allocator in _ALLOCATORS:
        allocator._lock.acquire()
        _locked_for_fork.append(allocator)


def _after_fork() -> None:
    while _locked_for_fork:
        _locked_for_fork.pop()._lock.release()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )
