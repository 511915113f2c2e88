"""``WgpuClient``: the primitive families of a WebGPU device, one module for each group of them."""

from __future__ import annotations

from numr.runtime.wgpu.families import Families

__all__ = ["WgpuClient"]


class WgpuClient(Families):
    """Dispatches operations on a WebGPU device."""
