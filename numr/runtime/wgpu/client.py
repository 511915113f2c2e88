"""``WgpuClient``: the primitive families of a WebGPU device, one module for each group of them."""

from __future__ import annotations

from numr.runtime.wgpu.creation import Creation
from numr.runtime.wgpu.exchange import Exchange
from numr.runtime.wgpu.factorizations import Factorizations
from numr.runtime.wgpu.fused import Fusion
from numr.runtime.wgpu.indexing import Indexing
from numr.runtime.wgpu.moving import Moving
from numr.runtime.wgpu.products import Products
from numr.runtime.wgpu.rows import Rows
from numr.runtime.wgpu.selection import Selection
from numr.runtime.wgpu.sorting import Sorting
from numr.runtime.wgpu.transforms import Transforms

__all__ = ["WgpuClient"]


class WgpuClient(
    Creation,
    Moving,
    Fusion,
    Products,
    Rows,
    Selection,
    Exchange,
    Indexing,
    Sorting,
    Transforms,
    Factorizations,
):
    """Dispatches operations on a WebGPU device."""
