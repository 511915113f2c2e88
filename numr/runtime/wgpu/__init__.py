"""The WebGPU runtime: devices over any Vulkan, Metal or Direct3D 12 adapter, by way of wgpu.

``devices`` finds adapters, ``opened`` is one in use. ``queue`` records and submits work, ``pipelines`` makes
kernels of their text, ``memory`` is the allocator and ``staging`` reads; ``native`` is the one file that uses
what wgpu-py keeps private. wgpu itself is imported when adapters are first looked for.
"""

from __future__ import annotations

from numr.runtime.wgpu.client import WgpuClient
from numr.runtime.wgpu.devices import WgpuDevice
from numr.runtime.wgpu.memory import BufferTooLarge, WgpuAllocator
from numr.runtime.wgpu.runtime import WgpuRuntime

# The client's module needs the runtime, so the runtime learns of its client here.
WgpuRuntime.Client = WgpuClient

__all__ = ["BufferTooLarge", "WgpuAllocator", "WgpuClient", "WgpuDevice", "WgpuRuntime"]
