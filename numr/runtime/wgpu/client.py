"""``WgpuClient``: the primitive families of a WebGPU device, one module for each group of them."""

from __future__ import annotations

from numr.runtime.wgpu.creation import Creation
from numr.runtime.wgpu.exchange import Exchange
from numr.runtime.wgpu.indexing import Indexing
from numr.runtime.wgpu.moving import Moving
from numr.runtime.wgpu.sorting import Sorting

__all__ = ["WgpuClient"]


class WgpuClient(
    Creation,
    Moving,
    Exchange,
    Indexing,
    Sorting,
):
    """Dispatches operations on a WebGPU device."""
