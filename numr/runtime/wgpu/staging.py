"""Reading device memory, by way of staging buffers that are used again and again."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from numr.runtime.wgpu.records import Copy
from numr.runtime.wgpu.submitting import PublicApi

if TYPE_CHECKING:
    from numr.runtime.buffers import Bytes
    from numr.runtime.wgpu.queue import Queue
    from numr.runtime.wgpu.records import Dispatch

__all__ = ["Staging"]

#: A large read is done in pieces of this size; while the host copies one, the device fills the next.
PIECE = 8 << 20
_AHEAD = 2
_SMALLEST = 4096
#: Staging buffers of one size that are kept.
_KEPT = 4


class Staging:
    """The staging buffers of an open device.

    Attributes
    ----------
    created, reused : int
        How often a read got a new staging buffer, and how often one that had been there.
    """

    def __init__(self, gpu: Any, queue: Queue, api: PublicApi) -> None:
        self.created = 0
        self.reused = 0
        self._gpu = gpu
        self._queue = queue
        self._api = api
        self._free: dict[int, deque[Any]] = {}

    def read(self, buffer: Any, target: Bytes, first: int = 0) -> None:
        """Fill ``target`` from a buffer, from the byte ``first`` on, when all work recorded before is done."""
        if first % 4:
            # Copies start at whole words.
            words = np.empty(target.size + first % 4, np.uint8)
            self.read(buffer, words, first & -4)
            np.copyto(target, words[first % 4 :])
            return
        self._queue.meet_host()
        waiting: deque[tuple[Any, Any, int, Bytes, int]] = deque()
        for start in range(0, target.size, PIECE):
            part = target[start : start + PIECE]
            size = part.size + 3 & -4  # the buffer is larger than what was asked of it
            staging = self._take(size)
            with self._queue.lock:
                self._queue.copy(buffer, first + start, staging, 0, size)
                number = self._queue.flush()
                mapping = self._api.map(staging, size)
            waiting.append((staging, mapping, number, part, size))
            if len(waiting) >= _AHEAD:
                self._finish(*waiting.popleft())
        while waiting:
            self._finish(*waiting.popleft())

    def read_ahead(self, buffer: Any, target: Bytes, event: int) -> None:
        """Fill ``target`` from the start of a buffer as it is before the work that is not submitted yet.

        That work is submitted too, and not waited for.

        Raises
        ------
        ValueError
            If there has been no submission ``event``.
        """
        if not 0 < event <= self._queue.last:
            raise ValueError(
                f"copy_from_device_pipelined: {event!r} is no event of this device; "
                "record_compute_event() gives them."
            )
        self._queue.meet_host()
        parts = [target[start : start + PIECE] for start in range(0, target.size, PIECE)]
        sizes = [part.size + 3 & -4 for part in parts]
        stagings = [self._take(size) for size in sizes]
        copies: list[Copy | Dispatch] = [
            Copy(buffer, i * PIECE, staging, 0, size)
            for i, (staging, size) in enumerate(zip(stagings, sizes, strict=True))
        ]
        with self._queue.lock:
            number = self._queue.submit_ahead(copies)
            mappings = [
                self._api.map(staging, size) for staging, size in zip(stagings, sizes, strict=True)
            ]
        for staging, mapping, part, size in zip(stagings, mappings, parts, sizes, strict=True):
            self._finish(staging, mapping, number, part, size)

    def _finish(self, staging: Any, mapping: Any, number: int, part: Bytes, size: int) -> None:
        # If this is interrupted, the staging buffer is dropped: it may stay mapped.
        with self._queue.errors():
            self._api.fetch(staging, mapping, number, part, size)
        free = self._free.setdefault(staging.size, deque(maxlen=_KEPT))
        free.append(staging)

    def _take(self, size: int) -> Any:
        capacity = max(_SMALLEST, 1 << (size - 1).bit_length())
        free = self._free.get(capacity)
        if free:
            try:
                staging = free.pop()
            except IndexError:  # another thread took it
                pass
            else:
                self.reused += 1
                return staging
        self.created += 1
        with self._queue.lock, self._queue.errors():
            return self._gpu.create_buffer(size=capacity, usage="MAP_READ|COPY_DST")

    def objects(self) -> list[Any]:
        """All objects of wgpu that are held."""
        return [staging for free in list(self._free.values()) for staging in free]
