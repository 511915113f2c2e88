"""What the tests of the WebGPU runtime share: runtimes on an adapter that is made poorer, and a kernel."""

from __future__ import annotations

import dataclasses
import struct

import numpy as np
import pytest

from numr.runtime.wgpu import WgpuAllocator, WgpuClient, WgpuDevice, WgpuRuntime, devices, native
from numr.runtime.wgpu.checking import grid
from numr.runtime.wgpu.opened import OpenDevice
from numr.runtime.wgpu.pipelines import KernelText, StorageBuffer

#: Adds ``params.value`` to each word.
ADD = KernelText(
    """
struct Params { count: u32, row: u32, value: u32, zero: u32 }

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x + id.y * params.row;
    if (i < params.count) { words[i] += params.value; }
}
""",
    (StorageBuffer("words", "read_write"),),
    16,
)


def require_adapter():
    """Skip the test, or the whole file, where there is no adapter."""
    if why := devices.why():
        pytest.skip(str(why), allow_module_level=True)


def variant(*, without=(), limits=None, api=native.api_for, cache_limit=None, kind=None):
    """A WebGPU runtime of its own on the first adapter, with fewer features, lower limits, or as another kind."""
    first = devices.adapters()[0]
    adapter = dataclasses.replace(
        first,
        features=first.features - set(without),
        limits={**first.limits, **(limits or {})},
        kind=kind or first.kind,
    )
    device = WgpuDevice(0)

    def open_device():
        with devices.lock:
            if allocator.table.opened is None:
                allocator.table.opened = OpenDevice(device, adapter, api)
            return allocator.table.opened

    allocator = WgpuAllocator(device, adapter, open_device)
    if cache_limit is not None:
        allocator._cache_limit = cache_limit

    class Variant(WgpuRuntime):
        @classmethod
        def allocator(cls, device):
            return allocator

    Variant.Client = type("Client", (WgpuClient,), {"runtime": Variant})
    return Variant


def kernels_of(kind, **options):
    """A client of a variant that runs the kernels for software adapters, ``"cpu"``, or for GPUs, ``"gpu"``."""
    rt = variant(**options)
    client = rt.default_client(rt.default_device())
    client.context.is_cpu = kind == "cpu"
    return client


def add(rt, device, handle, value, count=1):
    """Dispatch :data:`ADD` on the first words of an allocation."""
    opened = rt.opened(device)
    buffer, _ = rt.allocator(device).buffer(handle, 4 * count, "add")
    groups, row = grid(count, 64, opened.limits["max-compute-workgroups-per-dimension"])
    kernel = opened.pipelines.get(ADD)
    params = struct.pack("<4I", count, row, value, 0)
    opened.queue.dispatch(kernel, [(buffer, 0, max(16, 4 * count + 15 & -16))], params, groups)


def words(rt, device, handle, count=1):
    """The first words of an allocation."""
    result = np.empty(count, np.uint32)
    rt.copy_from_device(handle, result, device)
    return result
