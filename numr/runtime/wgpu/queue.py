"""``Queue``: work of one device, recorded cheaply and submitted in batches.

A submission costs as much as fifty dispatches. So dispatches and copies are recorded in a list, and encoded
into one command encoder, with one compute pass between copies, when something needs the results: a read, an
event, a number of dispatches or an amount of memory traffic that is enough to keep the device busy. An error in
a batch would lose all of it, so a dispatch is checked when it is recorded.

Encoding late has another reason. Python may run a finalizer in the middle of anything, and a finalizer may read
device memory. Recording is one append to a list, after which the queue is whole again; encoding, which is
not, happens with the garbage collector held off.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from numr.errors import DeviceLostError
from numr.runtime.wgpu.checking import Checks, check_range
from numr.runtime.wgpu.garbage import no_garbage_collection
from numr.runtime.wgpu.losses import lost, translated
from numr.runtime.wgpu.native import KEPT_GROUPS
from numr.runtime.wgpu.records import Binding, Copy, Dispatch, Repeated
from numr.runtime.wgpu.submitting import PublicApi
from numr.runtime.wgpu.uniforms import Uniforms

if TYPE_CHECKING:
    from numr.runtime.buffers import Bytes
    from numr.runtime.wgpu.devices import Adapter, WgpuDevice
    from numr.runtime.wgpu.pipelines import Kernel

__all__ = ["Queue", "Sink"]

#: A batch is submitted when it has this many dispatches and copies ...
BATCH_RECORDS = 256
#: ... or when its bindings have this many bytes: long submissions look like a hang to some drivers.
BATCH_BYTES = 256 << 20
#: Host bytes that are handed to the driver before they are submitted; it holds a copy of them until then.
BATCH_WRITES = 64 << 20
#: Submissions that may be under way; beyond that the host waits, because each keeps its memory alive.
IN_FLIGHT = 16
_PIECE = 16 << 20


class Sink:
    """Is told of what one thread records, the one that made it.

    Attributes
    ----------
    records : list of (Dispatch or Copy, int)
        What was recorded, and how many bytes each binds.
    met_host : bool
        Whether the host read or wrote memory of the device meanwhile, or waited for it.
    """

    __slots__ = ("met_host", "records", "thread")

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.records: list[tuple[Dispatch | Copy, int]] = []
        self.met_host = False


class Queue:
    """Records and submits the work of an open device.

    All methods may be called from any thread.

    Parameters
    ----------
    device : WgpuDevice
        The device, for errors.
    adapter : Adapter
        Its limits.
    api : PublicApi
        How to submit and wait.

    Attributes
    ----------
    lock : threading.RLock
        Hold it to have several records submitted together, and to keep numr out of the driver.
    submissions, dispatches : int
        How many there have been.
    last : int
        Number of the last submission; 0 if there has been none.
    sink : Sink or None
        Who is told of what is recorded.
    repeated : dict of tuple to Repeated
        Records that come again with the same buffers, by keys of those who make them; see :meth:`keep`.
    """

    def __init__(self, device: WgpuDevice, adapter: Adapter, api: PublicApi) -> None:
        self.lock = threading.RLock()
        self.submissions = 0
        self.dispatches = 0
        self._device = device
        self._checks = Checks(adapter)
        self._api = api
        self._lost: str | None = None
        self._records: list[Dispatch | Copy] = []
        # Buffers of the first records; of how many, see _touches.
        self._touched: set[Any] = set()
        self._searched = 0
        self._bytes = 0
        self._written = 0
        self._write_batch = 0
        self.last = 0
        self.sink: Sink | None = None
        self.repeated: dict[tuple[int, ...], Repeated] = {}
        self._stale = False
        self._under_way: deque[int] = deque()
        self._submitting = False
        self._uniforms = Uniforms(api, adapter.limits["min-uniform-buffer-offset-alignment"])

    # --------------------------------------------------------------- recording
    def dispatch(
        self,
        kernel: Kernel,
        bindings: Sequence[Binding],
        params: bytes = b"",
        groups: tuple[int, int, int] = (1, 1, 1),
    ) -> None:
        """Record a kernel to be run.

        Parameters
        ----------
        kernel : Kernel
            From :class:`numr.runtime.wgpu.pipelines.Pipelines` of the same device.
        bindings : sequence of tuple
            A GPUBuffer, an offset and a size in bytes for each buffer of the kernel. Where one buffer is bound
            twice, both bindings need the access ``read_write``.
        params : bytes
            As many as the kernel has parameters.
        groups : tuple of int
            Numbers of workgroups; nothing is done if one is 0.

        Raises
        ------
        BackendLimitation
            If a limit of the device is exceeded.
        ValueError
            If the bindings or parameters do not fit the kernel.
        DeviceLostError
            If the device was lost.
        """
        self._check_alive()
        record = Dispatch(kernel, list(bindings), bytes(params), groups)
        traffic = self._checks.traffic_of(record)
        if 0 not in groups:
            self.record(record, traffic)

    def record(self, record: Dispatch, traffic: int) -> None:
        """Record a dispatch that fits its kernel and the device's limits, which its maker has seen to.

        Parameters
        ----------
        record : Dispatch
            What to run, with at least one workgroup.
        traffic : int
            Bytes that it binds.
        """
        if self._lost is not None:
            raise lost(self._device, self._lost)
        with self.lock:
            records = self._records
            records.append(record)
            self._bytes += traffic
            self.dispatches += 1
            if self.sink is not None:
                self._tell(record, traffic)
            if len(records) >= BATCH_RECORDS or self._bytes >= BATCH_BYTES:
                self.flush()

    def keep(self, key: tuple[int, ...], record: Repeated) -> None:
        """Keep a record in :attr:`repeated`, until one of the buffers that are in use is dropped."""
        if len(self.repeated) >= KEPT_GROUPS:
            self.repeated.clear()
        self.repeated[key] = record

    def drop_buffers(self) -> None:
        """Take note that a buffer was dropped, so that nothing that is kept for its next use holds it on."""
        # Only noted: this may be called by a finalizer in the middle of anything.
        self._stale = True
        self._api.drop_buffers()

    def forget(self) -> None:
        """Let go of what is kept only because it may be used again."""
        self._stale = False
        self.repeated.clear()
        self._api.forget()

    def record_again(
        self, records: Sequence[Dispatch | Copy], marks: Sequence[tuple[int, int]]
    ) -> None:
        """Record what was recorded before, with nothing of other threads in between.

        Parameters
        ----------
        records : sequence of Dispatch or Copy
            What to do.
        marks : sequence of (int, int)
            Where parts of them end that may be submitted by themselves, and the bytes that these bind.
        """
        self._check_alive()
        with self.lock:
            start = 0
            for end, traffic in marks:
                self._records += records[start:end]
                self._bytes += traffic
                start = end
                if len(self._records) >= BATCH_RECORDS or self._bytes >= BATCH_BYTES:
                    self.flush()
            self.dispatches += len(records)

    def _tell(self, record: Dispatch | Copy, traffic: int) -> None:
        sink = self.sink
        if sink is not None and sink.thread == threading.get_ident():
            sink.records.append((record, traffic))

    def meet_host(self) -> None:
        """Say that the host has a part in what the calling thread does."""
        sink = self.sink
        if sink is not None and sink.thread == threading.get_ident():
            sink.met_host = True

    def copy(
        self, source: Any, source_offset: int, target: Any, target_offset: int, size: int
    ) -> None:
        """Record a copy between two buffers; offsets and size are multiples of 4."""
        self._check_alive()
        if (source_offset | target_offset | size) % 4 or source is target:
            raise ValueError(
                f"copy: offsets {source_offset} and {target_offset} and size {size} need to be multiples "
                "of 4, and the buffers different ones."
            )
        check_range("copy", source, source_offset, size)
        check_range("copy", target, target_offset, size)
        if not size:
            return
        with self.lock:
            record = Copy(source, source_offset, target, target_offset, size)
            self._records.append(record)
            self._bytes += 2 * size
            self._tell(record, 2 * size)
            if len(self._records) >= BATCH_RECORDS or self._bytes >= BATCH_BYTES:
                self.flush()

    def write(self, buffer: Any, offset: int, data: Bytes) -> None:
        """Copy host bytes into a buffer, after all work recorded so far; offset and size are multiples of 4."""
        self._check_alive()
        self.meet_host()
        if (offset | data.size) % 4:
            raise ValueError(f"write: {data.size} bytes at {offset} are not multiples of 4.")
        check_range("write", buffer, offset, data.size)
        with self.lock, self.errors():
            # The device takes written bytes before the commands of the next submission.
            if self._touches(buffer):
                self.flush()
            for start in range(0, data.size, _PIECE):
                piece = data[start : start + _PIECE]
                self._api.write(buffer, offset + start, piece)
                self._written += piece.size
                if self._written >= BATCH_WRITES:
                    # The driver holds a copy of what is under way.
                    if self._write_batch:
                        self._api.wait(self._write_batch)
                    self._write_batch = self.flush()

    def _touches(self, buffer: Any) -> bool:
        """Whether a record reads or writes a buffer."""
        for record in self._records[self._searched :]:
            self._touched.update(_buffers(record))
        self._searched = len(self._records)
        return buffer in self._touched

    # -------------------------------------------------------------- submitting
    def flush(self) -> int:
        """Submit what was recorded and written.

        Returns
        -------
        int
            Number of the last submission; 0 if there has been none.
        """
        self._check_alive()
        with self.lock:
            if self._records or self._written or self._submitting:
                with self._submission():
                    if self._stale:
                        self.forget()
                    records, self._records = self._records, []
                    self._touched = set()
                    self._searched = 0
                    self._bytes = self._written = 0
                    try:
                        self._submit(records)
                    except BaseException:
                        # What is left was interrupted before the device had it; refused work was dropped.
                        self._records[:0] = records
                        self._searched = 0
                        raise
                self._throttle()
            return self.last

    def mark(self) -> int:
        """Submit what was recorded, and return the number of the last submission, which is not 0."""
        with self.lock:
            number = self.flush()
            if not number:
                with self._submission():
                    self._submit([])
            return self.last

    def submit_ahead(self, copies: list[Dispatch | Copy]) -> int:
        """Submit copies before what was recorded, which is submitted right after them.

        Returns
        -------
        int
            Number of the submission of the copies.
        """
        self._check_alive()
        with self.lock:
            with self._submission():
                self._written = 0
                self._submit(copies)
                number = self.last
            self.flush()
            return number

    @contextmanager
    def _submission(self) -> Iterator[None]:
        """Keep everything else from the records and the device: finalizers wait, signal handlers may not."""
        if self._submitting:
            raise RuntimeError(
                f"flush: {self._device} was used by a signal handler while it was submitting work; let the "
                "handler only take a note."
            )
        with no_garbage_collection():
            self._submitting = True
            try:
                yield
            finally:
                self._submitting = False

    def _submit(self, records: list[Dispatch | Copy]) -> None:
        with self.errors(records):
            self._uniforms.place(records)
            self.last = self._api.submit(records)
        self.submissions += 1
        self._under_way.append(self.last)

    def _throttle(self) -> None:
        """Wait where too much is under way."""
        while len(self._under_way) > IN_FLIGHT:
            self._api.wait(self._under_way.popleft())

    # ----------------------------------------------------------------- waiting
    def synchronize(self) -> None:
        """Wait until all work recorded so far is done."""
        self.meet_host()
        number = self.flush()
        if number:
            self.wait(None)
            with self.lock:
                while self._under_way and self._under_way[0] <= number:
                    self._under_way.popleft()

    def wait(self, number: int | None) -> None:
        """Wait for a submission, or for all."""
        self._check_alive()
        with self.errors():
            self._api.wait(number)

    def reclaim(self) -> None:
        """Have the device take back the memory of all buffers that nothing refers to any more."""
        self.synchronize()
        with self.lock, self.errors():
            self.forget()
            self._api.poll()

    # -------------------------------------------------------------------- loss
    @property
    def is_lost(self) -> bool:
        """Whether the device stopped working."""
        return self._lost is not None

    def _check_alive(self) -> None:
        if self._lost is not None:
            raise lost(self._device, self._lost)

    @contextmanager
    def errors(self, records: list[Dispatch | Copy] | None = None) -> Iterator[None]:
        """Raise wgpu's errors as numr's; work that was refused is dropped."""
        try:
            yield
        except Exception as error:
            if records is not None:
                records.clear()
            better = translated(error, self._device)
            if isinstance(better, DeviceLostError):
                self._lost = ""
                self._records.clear()
                raise better from error
            raise

    def objects(self) -> list[Any]:
        """All objects of wgpu that are held."""
        return [self._uniforms.buffer, *(buffer for r in self._records for buffer in _buffers(r))]

    def __repr__(self) -> str:
        return f"Queue({self._device}, {len(self._records)} recorded, {self.submissions} submitted)"


def _buffers(record: Dispatch | Copy) -> list[Any]:
    if isinstance(record, Copy):
        return [record.source, record.target]
    return [binding[0] for binding in record.bindings]
