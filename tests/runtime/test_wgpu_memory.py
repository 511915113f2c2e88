"""Memory on WebGPU: bounded without reads, refused by name, and gone with a device that is lost."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from numr.errors import BackendLimitation, DeviceLostError, InvalidHandle, OutOfMemoryError
from numr.runtime import Storage
from numr.runtime.wgpu import BufferTooLarge
from numr.runtime.wgpu.losses import is_memory_error
from numr.runtime.wgpu.memory import RECLAIM_BYTES
from numr.runtime.wgpu.submitting import PublicApi
from tests.runtime.wgpu_support import add, require_adapter, variant, words

require_adapter()
pytestmark = pytest.mark.wgpu

MiB = 1 << 20


def resident():
    """Bytes of the process in memory."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        pytest.skip("the system does not tell how much memory a process has")
    return int(statm.read_text().split()[1]) * 4096


@pytest.mark.parametrize("api", [None, PublicApi], ids=["native", "public"])
def test_ten_thousand_allocations_without_a_read_stay_bounded(api):
    rt = variant(**({"api": api} if api else {}))
    device = rt.default_device()
    warm = Storage.allocate(16, device, rt)
    add(rt, device, warm.handle, 1)
    rt.opened(device).queue.synchronize()
    before = resident()
    highest = before
    for i in range(10_000 if api is None else 2_000):
        storage = Storage.allocate(MiB, device, rt)
        add(rt, device, storage.handle, 1)
        del storage
        if i % 500 == 0:
            highest = max(highest, resident())
    assert rt.allocator(device).stats().reserved_bytes <= 2 * MiB
    assert highest - before < 64 * MiB


def test_memory_that_is_not_cached_comes_back():
    rt = variant(cache_limit=0)
    device = rt.default_device()
    queue = rt.opened(device).queue
    before = resident()
    highest = before
    for _ in range(400):
        storage = Storage.allocate(4 * MiB, device, rt)
        add(rt, device, storage.handle, 1, 1024)
        del storage
        highest = max(highest, resident())
    assert queue.submissions >= 400 * 4 * MiB // RECLAIM_BYTES - 1
    assert highest - before < 2 * RECLAIM_BYTES
    assert rt.allocator(device).table.dropped <= RECLAIM_BYTES


def test_trim_makes_the_device_take_memory_back():
    rt = variant()
    device = rt.default_device()
    rt.opened(device)
    before = resident()
    storage = Storage.allocate(256 * MiB, device, rt)
    rt.copy_to_device(np.ones(256 * MiB, np.uint8), storage.handle, device)
    rt.opened(device).queue.synchronize()
    assert resident() - before > 200 * MiB
    del storage
    assert rt.allocator(device).trim() == 256 * MiB
    assert resident() - before < 64 * MiB


def test_capacities_are_whole_words_of_sixteen_bytes():
    rt = variant()
    device = rt.default_device()
    for size in (0, 1, 15, 17, 1000, 1_000_001, 3 * MiB + 5):
        storage = Storage.allocate(size, device, rt)
        buffer, available = rt.allocator(device).buffer(storage.handle, None, "test")
        assert buffer.size % 16 == 0
        assert buffer.size >= max(size, 16)
        assert available == size


def test_a_request_above_the_largest_buffer_names_the_limit():
    rt = variant(limits={"max-buffer-size": 1 << 28})
    device = rt.default_device()
    with pytest.raises(BackendLimitation, match=r"max-buffer-size of 268435456") as caught:
        rt.allocate((1 << 28) + 1, device)
    error = caught.value
    assert isinstance(error, OutOfMemoryError)
    assert (error.asked, error.limit, error.device) == ((1 << 28) + 1, None, "wgpu:0")
    assert (error.backend, error.operation) == ("wgpu", "allocate")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is BufferTooLarge
    assert str(again) == str(error)
    # The size class above the limit is not needed for what fits itself.
    storage = Storage.allocate((1 << 28) - 100, device, rt)
    assert rt.allocator(device).stats().reserved_bytes <= 1 << 28
    assert storage.size == (1 << 28) - 100


def test_memory_that_runs_out_is_waited_for_once(monkeypatch):
    import wgpu

    rt = variant()
    device = rt.default_device()
    opened = rt.opened(device)
    create = opened.create_buffer
    refused = []

    def refuse_once(size, usage):
        if not refused:
            refused.append(size)
            raise wgpu.GPUValidationError(
                "Validation Error\n\nCaused by:\n  Not enough memory left."
            )
        return create(size, usage)

    def refuse(size, usage):
        raise wgpu.GPUValidationError("Validation Error\n\nCaused by:\n  Not enough memory left.")

    monkeypatch.setattr(opened, "create_buffer", refuse_once)
    storage = Storage.allocate(1000, device, rt)
    assert len(refused) == 1
    monkeypatch.setattr(opened, "create_buffer", refuse)
    before = rt.allocator(device).stats()
    with pytest.raises(OutOfMemoryError) as caught:
        rt.allocate(MiB, device)
    assert caught.value.asked == MiB
    assert not isinstance(caught.value, BackendLimitation)
    assert rt.allocator(device).stats() == before
    rt.copy_to_device(b"usable", storage.handle, device)


def test_other_errors_of_wgpu_are_not_taken_for_lack_of_memory():
    import wgpu

    assert not is_memory_error(wgpu.GPUValidationError("Buffer usage is empty"))
    assert not is_memory_error(ValueError("Not enough memory left."))
    assert is_memory_error(wgpu.GPUOutOfMemoryError("no"))


# ---------------------------------------------------------------------- loss
@pytest.mark.parametrize("api", [None, PublicApi], ids=["native", "public"])
def test_a_lost_device_says_so_by_name_at_every_call(api):
    rt = variant(**({"api": api} if api else {}))
    device = rt.default_device()
    handle = rt.allocate(64, device)
    rt.copy_to_device(bytes(64), handle, device)
    gpu, _ = rt.raw_handle(rt.default_client(device))
    add(rt, device, handle, 1)
    gpu.destroy()
    calls = [
        lambda: words(rt, device, handle),
        lambda: rt.copy_to_device(b"1234", handle, device),
        lambda: rt.copy_strided(handle, 0, handle, (1,), (1,), 4, device),
        lambda: rt.record_compute_event(device),
        lambda: rt.copy_from_device_pipelined(handle, bytearray(4), device, 1),
        lambda: rt.default_client(device).synchronize(),
        lambda: add(rt, device, handle, 1),
        lambda: rt.raw_handle(rt.default_client(device)),
        lambda: rt.allocate(3 * MiB, device),
    ]
    for call in calls + calls:
        with pytest.raises(DeviceLostError, match=r"wgpu:0 was lost.*reopen\('wgpu:0'\)"):
            call()
    rt.reopen(device)
    assert rt.opened(device).gpu is not gpu
    with pytest.raises(DeviceLostError, match="went with the device"):
        words(rt, device, handle)
    new = Storage.allocate(64, device, rt)
    rt.copy_to_device(bytes(64), new.handle, device)
    add(rt, device, new.handle, 3)
    assert words(rt, device, new.handle)[0] == 3
    stats = rt.allocator(device).stats()
    assert stats.active_allocations == 2
    rt.deallocate(handle, 64, device)
    assert rt.allocator(device).stats().active_allocations == 1
    with pytest.raises(InvalidHandle):
        words(rt, device, handle)


def test_a_loss_that_wgpu_reports_first_when_memory_is_asked_for():
    rt = variant()
    device = rt.default_device()
    rt.opened(device).gpu.destroy()
    with pytest.raises(DeviceLostError, match="reopen"):
        rt.allocate(1000, device)
    rt.reopen(device)
    Storage.allocate(1000, device, rt)


def test_reopening_a_device_that_works_changes_nothing():
    rt = variant()
    device = rt.default_device()
    opened = rt.opened(device)
    storage = Storage.allocate(4, device, rt)
    rt.copy_to_device(b"kept", storage.handle, device)
    rt.reopen("wgpu:0")
    assert rt.opened(device) is opened
    host = bytearray(4)
    rt.copy_from_device(storage.handle, host, device)
    assert host == b"kept"
