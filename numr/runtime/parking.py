"""Allocator whose arrays hand their memory on to the next array of the same size."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from numr.runtime.allocation import AllocationStats
from numr.runtime.caching import Block, CachingAllocator, MemorySource

__all__ = ["ParkingAllocator", "owner_of"]

_OBJECT = np.dtype(object)


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


def owner_of(block: Block, release: Callable[[Block], None]) -> object:
    """What keeps a claimed block for as long as it lives.

    It dies by its reference count alone, for the reason that :mod:`numr.runtime.storage` gives.
    """
    claim = _new_claim(_Claim)
    claim.block = block
    claim.release = release
    owner: np.ndarray[Any, Any] = np.ndarray((), _OBJECT)
    owner[()] = claim
    return owner


class ParkingAllocator(CachingAllocator):
    """Caching allocator for arrays that come and go in the same sizes.

    Memory comes from it by handle, with :meth:`allocate`, or for an array, with :meth:`claim`. What was claimed is
    *parked* when the array dies: it stays a live block, and the next claim of the same size takes it over, which touches
    far less of the allocator's state. Whatever asks for figures or reads by handle, and every allocation that finds no
    parked block, frees the parked ones first; so nobody sees the difference, nor does the peak.

    Parameters
    ----------
    source : MemorySource
        Where blocks come from.
    device : str
        The device, for errors.
    parked_size, parked_blocks : int
        Blocks up to this size are parked, and so many of each size.
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
        parked_size: int,
        parked_blocks: int,
        cache_limit: int | None = None,
        granularity: int = 64,
    ) -> None:
        super().__init__(source, device, cache_limit=cache_limit, granularity=granularity)
        self._parked_size = parked_size
        self._parked_blocks = parked_blocks
        self._parked: dict[int, list[Block]] = {}

    def claim(self, size: int) -> Block:
        """Memory for an array, until :meth:`release` takes it back; fails as :meth:`allocate` does."""
        try:
            # Taking from a list is one step, so that no other thread gets the same block.
            block = self._parked[size].pop()
        except LookupError:
            return self.take(size)
        if self._frozen:
            self.release(block)
            return self.take(size)  # says that it is frozen
        block.reused += 1
        return block

    def release(self, block: Block) -> None:
        """Take back what :meth:`claim` gave."""
        size = block.size
        if size <= self._parked_size and block.cacheable:
            parked = self._parked.get(size)
            if parked is None:
                parked = self._parked.setdefault(size, [])
            if len(parked) < self._parked_blocks:
                parked.append(block)
                return
        super().deallocate(block.ptr, size)

    def _unpark(self) -> None:
        """Free the parked blocks."""
        for parked in list(self._parked.values()):
            while parked:
                try:
                    block = parked.pop()
                except IndexError:
                    break  # another thread took the last one
                super().deallocate(block.ptr, block.size)

    # ------------------------------------------------ what sees parked blocks
    def _try_take(self, size: int, capacity: int) -> Block | None:
        self._unpark()
        return super()._try_take(size, capacity)

    @contextlib.contextmanager
    def _section(self) -> Iterator[bool]:
        self._unpark()
        with super()._section() as alone:
            yield alone

    def deallocate(self, ptr: int, size_bytes: int) -> None:
        """Give back memory; see :meth:`Allocator.deallocate`."""
        self._unpark()
        super().deallocate(ptr, size_bytes)

    def size_of(self, ptr: int) -> int:
        """Size that an active allocation was asked with; see :meth:`CachingAllocator.size_of`."""
        self._unpark()
        return super().size_of(ptr)

    def stats(self) -> AllocationStats:
        """Figures at this moment."""
        figures = super().stats()
        reused = [block for block in list(self._live.values()) if block.reused]
        return replace(
            figures,
            total_allocations=figures.total_allocations + sum(block.reused for block in reused),
            total_bytes=figures.total_bytes + sum(block.reused * block.size for block in reused),
        )
