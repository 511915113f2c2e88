"""Tapes of a WebGPU device: dispatches that are recorded again as they are, and the memory that they work on."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from numr.runtime.caching import size_class
from numr.runtime.graphs.taping import Memory, Tape
from numr.runtime.storage import DeviceArray, Storage
from numr.runtime.wgpu.garbage import no_garbage_collection
from numr.runtime.wgpu.memory import GRANULARITY
from numr.runtime.wgpu.queue import BATCH_BYTES, Sink
from numr.runtime.wgpu.records import Copy, Dispatch, Repeated

if TYPE_CHECKING:
    from numr.dtypes import DType
    from numr.layout import Layout
    from numr.runtime.wgpu.launch import DeviceContext
    from numr.runtime.wgpu.queue import Queue
    from numr.runtime.wgpu.records import Binding

__all__ = ["Pool", "WgpuTape"]

T = TypeVar("T")


class Pool:
    """Memory that one thread allocates under a tape.

    It stays with the tape for as long as that exists: a buffer that is free again serves other work under the tape, and
    nothing else.

    Parameters
    ----------
    context : DeviceContext
        The device.

    Attributes
    ----------
    thread : int
        The thread.
    reuses : bool
        Whether buffers that are free again are given out.
    """

    def __init__(self, context: DeviceContext) -> None:
        self.reuses = True
        self.thread = threading.get_ident()
        self._device, self._runtime = context.device, context.runtime
        self._allocator = context.allocator
        self._owned: dict[int, Storage] = {}
        self._free: dict[int, list[int]] = {}

    def fresh(self, layout: Layout, nbytes: int, dtype: DType) -> DeviceArray:
        """A new array; see ``DeviceContext.fresh``."""
        capacity = size_class(nbytes, GRANULARITY)
        free = self._free.setdefault(capacity, [])
        if free and self.reuses:
            owned = self._owned[free.pop()]
        else:
            handle = self._allocator.take(capacity).ptr
            owned = self._owned[handle] = Storage(
                handle, capacity, self._device, self._runtime, release=self._allocator.deallocate
            )
        release = partial(_give_back, weakref.ref(self), owned)
        storage = Storage(owned.handle, nbytes, self._device, self._runtime, release=release)
        return DeviceArray(storage, layout, dtype)

    def take_back(self, owned: Storage) -> None:
        """Have a buffer that is free again; a finalizer calls this."""
        if owned.handle in self._owned:
            self._free[owned.size].append(owned.handle)

    def let_go(self, handles: Collection[int]) -> None:
        """Leave memory to the arrays that are in it, and to nobody if there are none."""
        for handle in handles:
            owned = self._owned.pop(handle, None)
            if owned is not None and handle in self._free[owned.size]:
                self._free[owned.size].remove(handle)


def _give_back(pool: weakref.ref[Pool], owned: Storage, handle: int, size: int) -> None:
    """Release an array of a pool: its buffer goes back with ``owned`` if the pool is gone, or has let it go."""
    found = pool()
    if found is not None:
        found.take_back(owned)


class WgpuTape(Tape):
    """A tape of the calling thread.

    Parameters
    ----------
    context : DeviceContext
        The device, whose lock for tapes the caller has taken; the end of the tape releases it.
    """

    def __init__(self, context: DeviceContext) -> None:
        self._context = context
        self._opened = context.opened
        self._pool = Pool(context)
        self._sink = Sink()
        self._segments: list[_Segment] = []
        self._kept: list[DeviceArray] = []
        self._fixed: set[Any] = set()
        self._is_open = True
        self._opened.queue.sink = self._sink
        context.pool, context.kept = self._pool, self._kept

    def take(self, action: Callable[[], T], *, lasting: bool = False) -> tuple[T, bool]:
        sink = self._sink
        before = len(sink.records)
        sink.met_host = False
        # Records with memory that moves are made anew for each run, so let them be few.
        self._pool.reuses = not lasting
        with no_garbage_collection():
            # Finalizers of others would be taken down.
            result = action()
        if sink.met_host:
            del sink.records[before:]
        return result, not sink.met_host

    def cut(self) -> _Segment | None:
        records, self._sink.records = self._sink.records, []
        if not records:
            return None
        segment = _Segment(self._opened.queue, records)
        self._segments.append(segment)
        return segment

    def finish(self, moving: Collection[int]) -> None:
        self._end()
        named = {self._buffer(handle): handle for handle in moving}
        for segment in self._segments:
            self._fixed |= segment.finish(named, self._buffers)
        self._pool.let_go(moving)

    def abort(self) -> None:
        if self._is_open:
            self._end()

    def _end(self) -> None:
        self._is_open = False
        context = self._context
        context.pool = context.kept = self._opened.queue.sink = None
        context.taping.release()

    def is_valid(self) -> bool:
        return self._context.table.opened is self._opened

    def touches(self, storage: Storage) -> bool:
        return self._buffer(storage.handle) in self._fixed

    def _buffers(self, memory: Memory) -> dict[int, Any]:
        return {handle: self._buffer(storage.handle) for handle, storage in memory.items()}

    def _buffer(self, handle: int) -> Any:
        return self._context.allocator.buffer(handle, None, "graph")[0]


class _Template:
    """A record with buffers that are named for each run.

    Parameters
    ----------
    place : int
        Its place in the segment.
    record : Dispatch or Copy
        The record.
    moving : dict of GPUBuffer to int
        The handles of the buffers that are named.
    """

    def __init__(self, place: int, record: Dispatch | Copy, moving: Mapping[Any, int]) -> None:
        self.place = place
        self._moved: list[tuple[int, int]] = []
        bindings = _bindings_of(record)
        for position, (buffer, offset, size) in enumerate(bindings):
            if buffer in moving:
                self._moved.append((position, moving[buffer]))
                bindings[position] = (None, offset, size)
        self._bindings = bindings
        self._record: Dispatch | Copy
        if isinstance(record, Copy):
            self._record = Copy(None, 0, None, 0, record.size)
        else:
            self._record = Dispatch(record.kernel, [], record.params, record.groups)

    def made(self, buffers: Mapping[int, Any]) -> Dispatch | Copy:
        """The record with buffers by their handles."""
        bindings = self._bindings.copy()
        for position, handle in self._moved:
            _, offset, size = bindings[position]
            bindings[position] = (buffers[handle], offset, size)
        record = self._record
        if isinstance(record, Copy):
            (source, start, size), (target, end, _) = bindings
            return Copy(source, start, target, end, size)
        return Dispatch(record.kernel, bindings, record.params, record.groups)


class _Segment:
    """Records that are recorded again, as a whole.

    Parameters
    ----------
    queue : Queue
        Of the device.
    records : list of (Dispatch or Copy, int)
        The records, and how many bytes each binds.
    """

    def __init__(self, queue: Queue, records: Sequence[tuple[Dispatch | Copy, int]]) -> None:
        self._queue = queue
        self._records: list[Any] = []
        #: Where parts end that are submitted by themselves, and the bytes that they bind.
        self._marks: list[tuple[int, int]] = []
        self._templates: list[_Template] = []
        self._buffers: Callable[[Memory], dict[int, Any]] = lambda memory: {}
        total = 0
        for record, traffic in records:
            self._records.append(record)
            total += traffic
            if total >= BATCH_BYTES or record is records[-1][0]:
                self._marks.append((len(self._records), total))
                total = 0

    def finish(
        self, moving: Mapping[Any, int], buffers: Callable[[Memory], dict[int, Any]]
    ) -> set[Any]:
        """Forget buffers that are named for each run; returns all others."""
        self._buffers = buffers
        fixed: set[Any] = set()
        for place, record in enumerate(self._records):
            bound = {buffer for buffer, _, _ in _bindings_of(record)}
            fixed |= bound
            if not bound.isdisjoint(moving):
                self._templates.append(_Template(place, record, moving))
                self._records[place] = None
            elif isinstance(record, Dispatch):
                bindings = _bindings_of(record)
                self._records[place] = Repeated(
                    record.kernel, bindings, record.params, record.groups
                )
        return fixed.difference(moving)

    def __call__(self, memory: Memory) -> None:
        records = self._records
        if self._templates:
            records, buffers = records.copy(), self._buffers(memory)
            for template in self._templates:
                records[template.place] = template.made(buffers)
        self._queue.record_again(records, self._marks)


def _bindings_of(record: Dispatch | Copy) -> list[Binding]:
    """The buffers of a record with offsets and sizes, but for the one with parameters."""
    if isinstance(record, Copy):
        return [
            (record.source, record.source_offset, record.size),
            (record.target, record.target_offset, record.size),
        ]
    return record.bindings[: len(record.kernel.writes)]
