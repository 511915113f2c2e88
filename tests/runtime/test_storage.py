"""``Storage`` and ``DeviceArray``: who keeps memory, and when it goes."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

from numr.errors import AllocatorFrozen
from numr.layout import Layout
from numr.runtime import DeviceArray, Storage
from tests.runtime.toy_runtime import ToyRuntime


def filled(rt, device, data):
    storage = Storage.allocate(len(data), device, rt)
    rt.copy_to_device(data, storage.handle, device)
    return storage


def content(storage):
    host = bytearray(storage.size)
    storage.runtime.copy_from_device(storage.handle, host, storage.device)
    return bytes(host)


class Owner:
    """Something that can be watched."""


def test_memory_goes_with_the_last_reference(rt, device, allocator):
    before = allocator.stats()
    storage = Storage.allocate(1000, device, rt)
    assert allocator.stats().active_bytes == before.active_bytes + 1000
    assert (storage.size, storage.device, storage.runtime) == (1000, device, rt)
    assert not storage.readonly
    assert not storage.is_foreign
    another = storage
    del storage
    assert allocator.stats().active_bytes == before.active_bytes + 1000
    del another
    assert allocator.stats().active_bytes == before.active_bytes
    assert allocator.stats().active_allocations == before.active_allocations


def test_an_owner_reference_keeps_the_memory_too(rt, device, allocator):
    storage = filled(rt, device, b"kept")
    handle, owner = storage.handle, storage.owner
    del storage
    host = bytearray(4)
    rt.copy_from_device(handle, host, device)
    assert host == b"kept"
    before = allocator.stats().active_allocations
    del owner
    assert allocator.stats().active_allocations == before - 1


def test_a_storage_takes_an_allocation_over(rt, device, allocator):
    handle = rt.allocate(64, device)
    storage = Storage(handle, 64, device, rt, readonly=True)
    assert storage.handle == handle
    assert storage.readonly
    before = allocator.stats().active_allocations
    del storage
    assert allocator.stats().active_allocations == before - 1


def test_a_storage_that_cannot_be_allocated_leaves_nothing(rt, device, allocator):
    allocator.freeze()
    before = allocator.stats()
    try:
        with pytest.raises(AllocatorFrozen):
            Storage.allocate(64, device, rt)
        assert allocator.stats() == before
    finally:
        allocator.unfreeze()


def test_foreign_memory_keeps_its_owner_and_is_not_freed(rt, device, allocator):
    owner = Owner()
    alive = weakref.ref(owner)
    handle = rt.allocate(64, device)
    before = allocator.stats()
    storage = Storage.foreign(handle, 64, device, rt, owner, readonly=True)
    del owner
    assert alive() is storage.owner
    assert storage.is_foreign
    assert storage.readonly
    assert "foreign" in repr(storage)
    del storage
    assert alive() is None
    assert allocator.stats() == before
    rt.deallocate(handle, 64, device)


def test_a_finalizer_in_a_garbage_cycle_still_reads_its_memory(rt, device, allocator):
    seen = []

    class Node:
        def __init__(self, data):
            self.me = self
            self.storage = filled(rt, device, data)

        def __del__(self):
            # Whatever the collector's order, no member of the cycle has lost its memory yet.
            seen.append(content(self.storage))
            Storage.allocate(self.storage.size, device, rt)
            assert content(self.storage) == seen[-1]

    before = allocator.stats().active_allocations
    for i in range(20):
        Node(bytes([i]) * 100)
    gc.collect()
    assert sorted(seen) == [bytes([i]) * 100 for i in range(20)]
    assert allocator.stats().active_allocations == before


def test_a_finalizer_may_bring_memory_back_to_life(rt, device, allocator):
    saved = []

    class Phoenix:
        def __init__(self):
            self.me = self
            self.storage = filled(rt, device, b"phoenix")

        def __del__(self):
            saved.append(self)

    Phoenix()
    gc.collect()
    filled(rt, device, b"another")  # would get the memory, were it free
    assert content(saved[0].storage) == b"phoenix"
    before = allocator.stats().active_allocations
    saved.clear()
    gc.collect()
    assert allocator.stats().active_allocations == before - 1


def test_a_storage_cannot_be_copied_or_pickled(rt, device, allocator):
    storage = Storage.allocate(8, device, rt)
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="copy the tensor"):
            duplicate(storage)
    for duplicate in (copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="copy the tensor"):
            duplicate(storage.owner)


def test_storages_may_die_in_any_thread(rt, device, allocator):
    def work():
        for size in range(1, 300):
            storages = [Storage.allocate(size, device, rt) for _ in range(3)]
            shared.append(storages.pop())
            if len(shared) > 10:
                shared.pop(0)

    shared = []
    before = allocator.stats().active_allocations
    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert allocator.stats().active_allocations == before + len(shared)
    shared.clear()
    assert allocator.stats().active_allocations == before


def test_the_host_reads_memory_only_where_it_can(rt, device, allocator):
    storage = filled(rt, device, b"bytes")
    if rt.host_memory:
        array = np.asarray(storage)
        assert array.base is storage
        del storage
        assert array.tobytes() == b"bytes"
    else:
        with pytest.raises(AttributeError, match="copy_from_device"):
            _ = storage.__array_interface__


def test_a_read_only_storage_gives_a_read_only_array():
    from numr.runtime.cpu import CpuRuntime

    device = CpuRuntime.default_device()
    storage = Storage(CpuRuntime.allocate(4, device), 4, device, CpuRuntime, readonly=True)
    assert not np.asarray(storage).flags.writeable


def test_an_interpreter_that_exits_with_live_memory_is_quiet():
    program = """
import numpy as np
from numr.runtime import Storage
from numr.runtime.cpu import CpuRuntime
device = CpuRuntime.default_device()
storage = Storage.allocate(100, device, CpuRuntime)
array = CpuRuntime.allocator(device).empty(100_000)
class Node: pass
node = Node(); node.me = node; node.storage = storage; node.array = array[5:]
print("done")
"""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


# --------------------------------------------------------------- DeviceArray
def test_a_device_array_reads_its_layout(rt, device, allocator):
    storage = Storage.allocate(96, device, rt)
    array = DeviceArray(storage, Layout((2, 3), (-3, 1), 5), np.dtype("int32"))
    assert (array.shape, array.strides, array.offset) == ((2, 3), (-3, 1), 5)
    assert (array.ndim, array.size, array.itemsize, array.nbytes) == (2, 6, 4, 24)
    assert array.device == device
    assert array.dtype == np.int32
    assert not array.readonly
    assert repr(array) == f"DeviceArray(shape=(2, 3), dtype=int32, device={str(device)!r})"


def test_arrays_over_one_storage_keep_it(rt, device, allocator):
    before = allocator.stats().active_allocations
    storage = filled(rt, device, bytes(range(24)))
    whole = DeviceArray(storage, Layout.contiguous((6,)), np.dtype("int32"))
    view = DeviceArray(whole.storage, whole.layout.flip(0), whole.dtype)
    del storage, whole
    assert content(view.storage) == bytes(range(24))
    del view
    assert allocator.stats().active_allocations == before


def test_a_device_arrays_elements_are_gathered_by_its_layout(rt, device, allocator):
    values = np.arange(12, dtype="int16").reshape(3, 4)
    storage = filled(rt, device, values.tobytes())
    array = DeviceArray(storage, Layout.contiguous((3, 4)).permute((1, 0)).flip(1), values.dtype)
    target = Storage.allocate(array.nbytes, device, rt)
    rt.copy_strided(
        storage.handle,
        array.offset * array.itemsize,
        target.handle,
        array.shape,
        array.strides,
        array.itemsize,
        device,
    )
    assert content(target) == values.T[:, ::-1].tobytes()


def test_the_toy_runtime_has_memory_for_this():
    # The contract of the toy's own source: what is given back leaves its table.
    device = ToyRuntime.default_device()
    allocator = ToyRuntime.allocator(device)
    storage = filled(ToyRuntime, device, b"data")
    assert storage.handle in allocator.table.memory
    handle = storage.handle
    del storage
    allocator.trim()
    assert handle not in allocator.table.memory
