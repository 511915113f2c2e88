"""``Allocator`` and ``AllocationStats``: device memory and its figures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

__all__ = ["AllocationStats", "Allocator"]


@dataclass(frozen=True, slots=True)
class AllocationStats:
    """Figures of an allocator at one moment.

    Active figures count the bytes that were asked for; reserved bytes count what the allocator holds
    for it, rounding and cached blocks included.

    Attributes
    ----------
    total_allocations : int
        Allocations made since the start or the last ``reset``.
    total_bytes : int
        Bytes asked for by those allocations.
    active_allocations : int
        Allocations that have not been given back.
    is_frozen : bool
        Whether the allocator refuses to allocate.
    peak_usage : int
        Highest value of ``active_bytes`` since the start or the last ``reset``.
    active_bytes : int
        Bytes asked for by the active allocations.
    reserved_bytes : int
        Bytes held, in use or cached.
    limit_bytes : int or None
        Bound on ``reserved_bytes``; None where there is none.
    """

    total_allocations: int = 0
    total_bytes: int = 0
    active_allocations: int = 0
    is_frozen: bool = False
    peak_usage: int = 0
    active_bytes: int = 0
    reserved_bytes: int = 0
    limit_bytes: int | None = None


class Allocator(ABC):
    """Memory of one device.

    Contract
    --------
    - All methods may be called from any thread.
    - A handle is a non-zero integer that no other active allocation of the device has; this holds for
      allocations of zero bytes too.
    - The figures of :meth:`stats` are exact: when nothing else uses the allocator, each call changes
      them by what it did, and a call that raises leaves the active and total figures as they were.
    - ``deallocate`` never waits for another thread and never raises for a handle that is active, so
      it may be called from finalizers, which run anywhere.

    :class:`numr.runtime.caching.CachingAllocator` fulfils it over anything that hands out memory.
    """

    @abstractmethod
    def allocate(self, size_bytes: int) -> int:
        """Allocate memory, whose content is arbitrary.

        Parameters
        ----------
        size_bytes : int
            Bytes wanted; zero is legal.

        Returns
        -------
        int
            Handle of the memory.

        Raises
        ------
        OutOfMemoryError
            If the memory does not fit, under the limit or on the device, after all cached memory that
            could make room was given back and garbage was collected.
        AllocatorFrozen
            If the allocator is frozen.
        ValueError
            If ``size_bytes`` is negative.
        """

    @abstractmethod
    def deallocate(self, ptr: int, size_bytes: int) -> None:
        """Give back memory; legal while the allocator is frozen.

        Parameters
        ----------
        ptr : int
            Handle that :meth:`allocate` returned.
        size_bytes : int
            The size that was asked of :meth:`allocate`.

        Raises
        ------
        InvalidHandle
            If no active allocation has this handle and size.
        """

    @abstractmethod
    def freeze(self) -> bool:
        """Refuse allocations until :meth:`unfreeze`; calls do not nest.

        Returns
        -------
        bool
            True if the allocator is frozen now, as it also is when it was frozen before; False from
            an allocator that cannot be frozen. The same as in the Rust crate numr.
        """

    @abstractmethod
    def unfreeze(self) -> None:
        """Allow allocations again."""

    @property
    def is_frozen(self) -> bool:
        """Whether allocations are refused."""
        return self.stats().is_frozen

    @property
    def allocated_bytes(self) -> int:
        """Bytes asked for by the active allocations."""
        return self.stats().active_bytes

    @abstractmethod
    def stats(self) -> AllocationStats:
        """Figures at this moment."""

    @abstractmethod
    def reset(self) -> None:
        """Give back all cached memory and set the total and peak figures to zero.

        The limit and the frozen state stay.

        Raises
        ------
        AllocatorBusy
            If an allocation is active; nothing has changed then.
        """

    @abstractmethod
    def trim(self) -> int:
        """Give back all cached memory; active allocations stay.

        Returns
        -------
        int
            Bytes given back: the decrease of ``reserved_bytes``.
        """

    @abstractmethod
    def set_limit(self, size_bytes: int | None) -> None:
        """Bound the bytes that the allocator reserves.

        Cached memory above the new limit is given back at once. Where active allocations alone exceed
        it they stay, and further ones are refused until there is room.

        Parameters
        ----------
        size_bytes : int or None
            The limit, rounding included; None removes it.

        Raises
        ------
        ValueError
            If the limit is negative.
        """
