"""Submitting, waiting and reading by wgpu-py's public interface."""

from __future__ import annotations

import itertools
import threading
import weakref
from typing import Any

import numpy as np

from numr.runtime.buffers import Bytes
from numr.runtime.wgpu.records import Copy, Dispatch, Repeated

__all__ = ["PublicApi"]


class PublicApi:
    """Submitting, waiting and reading by wgpu-py's public interface.

    Parameters
    ----------
    gpu : wgpu.GPUDevice
        The device.
    """

    def __init__(self, gpu: Any) -> None:
        self.gpu = gpu
        self.queue = gpu.queue
        self._numbers = itertools.count(1)
        self._fence: Any = None
        self._fence_lock = threading.Lock()
        # Bind groups that are kept.
        self._groups: weakref.WeakSet[Any] = weakref.WeakSet()

    def submit(self, records: list[Dispatch | Copy]) -> int:
        """Encode and submit work, and empty the list once the device has it.

        Returns
        -------
        int
            Number of the submission, higher than those before.
        """
        encoder = self.gpu.create_command_encoder()
        self._encode(encoder, records)
        commands = encoder.finish()
        records.clear()
        return self._submit(commands)

    def _encode(self, encoder: Any, records: list[Dispatch | Copy]) -> None:
        current: Any = None
        kernel: Any = None
        for record in records:
            if isinstance(record, Copy):
                if current is not None:
                    current.end()
                    current = None
                encoder.copy_buffer_to_buffer(
                    record.source,
                    record.source_offset,
                    record.target,
                    record.target_offset,
                    record.size,
                )
                continue
            if current is None:
                current = encoder.begin_compute_pass()
                kernel = None
            if record.kernel is not kernel:
                kernel = record.kernel
                current.set_pipeline(kernel.pipeline)
            self._dispatch(current, record)
        if current is not None:
            current.end()

    def _dispatch(self, current: Any, record: Dispatch) -> None:
        kernel = record.kernel
        current.set_bind_group(0, self._kept_group(record) or self._group(record))
        if kernel.immediates:
            current.set_immediates(0, record.params, 0, len(record.params))
        current.dispatch_workgroups(*record.groups)

    def _group(self, record: Dispatch) -> Any:
        """A bind group of what a dispatch binds."""
        entries = [
            {"binding": i, "resource": {"buffer": buffer, "offset": offset, "size": size}}
            for i, (buffer, offset, size) in enumerate(record.bindings)
        ]
        return self.gpu.create_bind_group(layout=record.kernel.layout, entries=entries)

    def _kept_group(self, record: Dispatch) -> Any:
        """The bind group that is kept for a dispatch; None if none is, as where parameters lie elsewhere each time."""
        if not isinstance(record, Repeated) or record.kernel.uniform:
            return None
        if record.group is None:
            record.group = self._group(record)
            self._groups.add(record.group)
        return record.group

    def _submit(self, commands: Any) -> int:
        self.queue.submit([commands])
        return next(self._numbers)

    def write(self, buffer: Any, offset: int, data: Bytes) -> None:
        """Copy host bytes, a multiple of 4, to a buffer before the next submission."""
        self.queue.write_buffer(buffer, offset, data)

    def poll(self) -> None:
        """Let the device take back what finished work held, without waiting."""
        self.submit([])

    def wait(self, number: int | None) -> None:
        """Wait for a submission, or for all; the public interface can only do the latter."""
        with self._fence_lock:
            if self._fence is None:
                self._fence = self.gpu.create_buffer(size=16, usage="MAP_READ|COPY_DST")
            encoder = self.gpu.create_command_encoder()
            encoder.clear_buffer(self._fence)
            self._submit(encoder.finish())
            self._fence.map_async("READ").sync_wait()
            self._fence.unmap()

    def objects(self) -> list[Any]:
        """All objects of wgpu that are held."""
        return [self._fence, *self._groups]

    def drop_buffers(self) -> None:
        """Take note that a buffer was dropped, so that nothing that is kept for its next use holds it on."""

    def forget(self) -> None:
        """Let go of what is kept only because it may be used again."""

    def map(self, buffer: Any, size: int) -> Any:
        """Begin to map a staging buffer, and return what :meth:`fetch` needs."""
        return buffer.map_async("READ", 0, size)

    def fetch(self, buffer: Any, mapping: Any, number: int, target: Bytes, size: int) -> None:
        """Wait until a staging buffer is mapped, copy its bytes to ``target`` and unmap it."""
        mapping.sync_wait()
        data = buffer.read_mapped(0, size, copy=False)
        np.copyto(target, np.frombuffer(data, np.uint8, target.size))
        del data
        buffer.unmap()
