"""The runtime trait family: what a backend is, its memory, its clients and its graphs.

``base`` holds the contracts, ``registry`` finds runtimes by name, ``caching`` is the allocator that they share,
``client`` the primitive families that a runtime implements. The packages beside them are the runtimes.
"""

from __future__ import annotations

from numr.runtime.allocation import AllocationStats, Allocator
from numr.runtime.base import Runtime
from numr.runtime.caching import CachingAllocator, MemorySource
from numr.runtime.client import RuntimeClient
from numr.runtime.device import Device
from numr.runtime.graph import CapturedGraph, Graph, NoOpGraph
from numr.runtime.registry import (
    available,
    client_of,
    device_of,
    register,
    runtime,
    unavailable,
    unregister,
)
from numr.runtime.storage import DeviceArray, Storage

__all__ = [
    "AllocationStats",
    "Allocator",
    "CachingAllocator",
    "CapturedGraph",
    "Device",
    "DeviceArray",
    "Graph",
    "MemorySource",
    "NoOpGraph",
    "Runtime",
    "RuntimeClient",
    "Storage",
    "available",
    "client_of",
    "device_of",
    "register",
    "runtime",
    "unavailable",
    "unregister",
]
