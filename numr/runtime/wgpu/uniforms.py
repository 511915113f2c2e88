"""Parameters of kernels where they are not immediates: in a uniform buffer."""

from __future__ import annotations

from typing import Any

import numpy as np

from numr.runtime.wgpu.records import Copy, Dispatch
from numr.runtime.wgpu.submitting import PublicApi

__all__ = ["Uniforms"]


class Uniforms:
    """The buffer with the parameters of a submission.

    Parameters
    ----------
    api : PublicApi
        The device.
    alignment : int
        What parameters start at multiples of.

    Attributes
    ----------
    buffer : GPUBuffer or None
        The buffer, once there is one.
    """

    def __init__(self, api: PublicApi, alignment: int) -> None:
        self._api = api
        self._alignment = alignment
        self.buffer: Any = None

    def place(self, records: list[Dispatch | Copy]) -> None:
        """Write the parameters that are not immediates, and bind them."""
        waiting = [r for r in records if isinstance(r, Dispatch) and r.kernel.uniform]
        if not waiting:
            return
        alignment = self._alignment
        steps = [-(-len(record.params) // alignment) * alignment for record in waiting]
        needed = sum(steps)
        if self.buffer is None or self.buffer.size < needed:
            size = max(1 << 16, 1 << (needed - 1).bit_length())
            self.buffer = self._api.gpu.create_buffer(size=size, usage="UNIFORM|COPY_DST")
        data = np.zeros(needed, np.uint8)
        start = 0
        for record, step in zip(waiting, steps, strict=True):
            params = record.params
            data[start : start + len(params)] = np.frombuffer(params, np.uint8)
            # An interrupted batch comes here twice.
            del record.bindings[len(record.kernel.writes) :]
            record.bindings.append((self.buffer, start, len(params)))
            start += step
        self._api.write(self.buffer, 0, data)
