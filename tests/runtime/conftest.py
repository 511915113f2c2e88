"""The runtimes that every test of the contract runs on: all usable ones, and a minimal one of our own."""

from __future__ import annotations

import gc

import pytest

from numr.runtime import Runtime, available, runtime
from numr.runtime.wgpu import WgpuRuntime
from tests.runtime.toy_runtime import ToyRuntime

RUNTIMES = [*(runtime(name) for name in available()), ToyRuntime]


MARKED = [pytest.param(rt, marks=pytest.mark.wgpu if rt is WgpuRuntime else ()) for rt in RUNTIMES]


@pytest.fixture(params=MARKED, ids=lambda rt: rt.name())
def rt(request) -> type[Runtime]:
    if why := request.param.unavailable():
        pytest.skip(str(why))
    return request.param


@pytest.fixture
def device(rt):
    return rt.default_device()


@pytest.fixture
def allocator(rt, device):
    """The device's allocator; a test that leaks memory, or leaves it frozen or limited, fails."""
    allocator = rt.allocator(device)
    gc.collect()
    allocator.trim()
    before = allocator.stats()
    yield allocator
    gc.collect()
    after = allocator.stats()
    assert after.active_allocations == before.active_allocations
    assert after.active_bytes == before.active_bytes
    assert not after.is_frozen
    assert after.limit_bytes is None
