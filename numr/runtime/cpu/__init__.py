"""The CPU runtime: NumPy over pooled host memory."""

from __future__ import annotations

from numr.runtime.cpu.client import CpuClient
from numr.runtime.cpu.memory import CpuAllocator
from numr.runtime.cpu.runtime import CpuDevice, CpuRuntime

# The client's module needs the runtime, so the runtime learns of its client here.
CpuRuntime.Client = CpuClient

__all__ = ["CpuAllocator", "CpuClient", "CpuDevice", "CpuRuntime"]
