"""Host memory: alignment, arrays that give their block back, strictness, raw addresses."""

from __future__ import annotations

import gc
import pickle
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numr.errors import AllocatorFrozen, InvalidHandle, OutOfMemoryError
from numr.runtime.cpu import CpuAllocator, CpuDevice, CpuRuntime
from numr.runtime.cpu import memory as cpu_memory

DEVICE = CpuDevice()
SIZES = [0, 1, 63, 64, 65, 1000, 4096, 65536, 10**6, 3 * 10**7]


@pytest.fixture
def pool():
    """An allocator of our own, which has everything back in the end."""
    pool = CpuAllocator("cpu", cache_limit=1 << 28)
    yield pool
    if pool.is_frozen:
        pool.unfreeze()
    gc.collect()
    assert pool.stats().active_allocations == 0
    assert pool.allocated_bytes == 0
    pool.trim()
    assert pool.stats().reserved_bytes == 0


def address(array):
    return array.__array_interface__["data"][0]


def test_there_is_one_device():
    assert CpuRuntime.devices() == (DEVICE,)
    assert str(DEVICE) == "cpu"
    assert DEVICE.name
    assert DEVICE.name != "cpu"


@pytest.mark.parametrize("size", SIZES)
def test_blocks_are_aligned(pool, size):
    ptr = pool.allocate(size)
    assert ptr % 64 == 0
    array = pool.empty(size)
    assert address(array) % 64 == 0
    pool.deallocate(ptr, size)


@pytest.mark.parametrize("size", SIZES)
def test_an_empty_array_is_plain_and_writable(pool, size):
    array = pool.empty(size)
    assert type(array) is np.ndarray
    assert (array.shape, array.dtype) == ((size,), np.uint8)
    assert array.flags.writeable
    assert array.flags.c_contiguous
    array[...] = 7
    assert (array == 7).all()
    assert pool.allocated_bytes == size


@pytest.mark.parametrize("dtype", ["bool", "int8", "float32", "complex128"])
@pytest.mark.parametrize("shape", [(), (0,), (5,), (3, 0, 2), (40, 50, 7)])
def test_an_array_has_its_shape_and_dtype(pool, shape, dtype):
    array = pool.empty_array(shape, np.dtype(dtype))
    assert (array.shape, array.dtype) == (shape, np.dtype(dtype))
    assert array.flags.c_contiguous
    assert array.flags.aligned
    array[...] = 1
    assert (array == 1).all()
    assert pool.allocated_bytes == array.nbytes


def test_handles_and_arrays_share_the_figures_and_the_cache(pool):
    ptr = pool.allocate(1000)
    array = pool.empty(500)
    stats = pool.stats()
    assert (stats.total_allocations, stats.active_bytes) == (2, 1500)
    pool.deallocate(ptr, 1000)
    again = pool.empty(1000)
    assert address(again) == ptr
    first = address(array)
    del array
    ptr = pool.allocate(500)
    assert ptr == first
    pool.deallocate(ptr, 500)
    assert pool.stats().peak_usage == 1500


VIEWS = {
    "slice": lambda x: x[10:20],
    "slice of a slice": lambda x: x[10:][5:],
    "reversed": lambda x: x[::-1],
    "dtype": lambda x: x.view("float64"),
    "reshape": lambda x: x.reshape(2, -1),
    "transpose": lambda x: x.reshape(2, -1).T,
    "broadcast": lambda x: np.broadcast_to(x, (3, x.size)),
    "subclass": lambda x: x.view(np.recarray),
    "strided": lambda x: np.lib.stride_tricks.as_strided(x, (4, 4), (1, 2)),
    "memoryview": memoryview,
    "array of a memoryview": lambda x: np.asarray(memoryview(x)),
    "frombuffer": lambda x: np.frombuffer(x, "int32"),
    "dlpack": np.from_dlpack,
    "base": lambda x: x.base,
    "view of the base": lambda x: x.base[3:],
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_any_view_keeps_the_block(pool, view):
    array = pool.empty(1600)
    array[...] = 9
    expected = bytes(memoryview(view(array)).tobytes())
    kept = view(array)
    del array
    gc.collect()
    assert pool.allocated_bytes == 1600
    other = pool.empty(1600)  # would get the block, were it free
    other[...] = 0
    assert memoryview(kept).tobytes() == expected
    assert pool.stats().active_allocations == 2
    del kept
    gc.collect()
    assert pool.stats().active_allocations == 1


def test_copies_do_not_keep_the_block(pool):
    array = pool.empty_array((10, 10), np.dtype("float64"))
    array[...] = 3.0
    copies = [
        array.copy(),
        array + 1,
        array.sum(),
        pickle.loads(pickle.dumps(array)),
        array.base + 1,
    ]
    del array
    assert pool.stats().active_allocations == 0
    assert copies[3][0, 0] == 3.0


def test_results_that_look_like_leases_free_nothing(pool):
    array = pool.empty(100)
    lease = array.base
    assert type(lease).__name__ == "Lease"
    derived = [lease[5:], lease.view(), lease.copy(), np.add(lease, 1), array.view(type(lease))]
    for item in derived:
        assert isinstance(item, np.ndarray)
    del derived, item
    assert pool.stats().active_allocations == 1
    del array, lease
    assert pool.stats().active_allocations == 0


def test_a_finalizer_in_a_garbage_cycle_still_reads_its_array(pool):
    seen = []

    class Node:
        def __init__(self, value):
            self.me = self
            self.array = pool.empty(1000)
            self.array[...] = value

        def __del__(self):
            pool.empty(1000)[...] = 255  # would get the block, were it free
            seen.append(set(self.array.tolist()))

    for value in range(10):
        Node(value)
    gc.collect()
    assert sorted(map(tuple, seen)) == [(value,) for value in range(10)]


def test_arrays_may_die_in_other_threads(pool):
    arrays = [pool.empty(n) for n in range(1, 400)]

    def work():
        while True:
            try:
                array = arrays.pop()
            except IndexError:
                return
            array[...] = 1
            del array
            pool.empty(100)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert pool.stats().active_allocations == 0


def test_an_array_that_cannot_be_made_leaves_nothing(pool, monkeypatch):
    def fail(*_):
        raise MemoryError

    pool.deallocate(pool.allocate(100), 100)
    monkeypatch.setattr(cpu_memory, "_new_array", fail)
    with pytest.raises(MemoryError):
        pool.empty(100)
    assert pool.stats().active_allocations == 0


@pytest.mark.parametrize("size", [1 << 62, (1 << 63) - 1, 1 << 63, 1 << 70])
def test_arrays_beyond_all_memory_are_refused(pool, size):
    with pytest.raises(OutOfMemoryError) as caught:
        pool.empty(size)
    assert caught.value.asked == size
    assert caught.value.device == "cpu"
    with pytest.raises(OutOfMemoryError):
        pool.empty_array((size,), np.dtype("float64"))


# --------------------------------------------------------------------- adopt
@pytest.mark.parametrize(
    "array",
    [
        np.arange(10.0),
        np.arange(12).reshape(3, 4).copy(),
        np.array(5.0),
        np.asfortranarray(np.arange(12.0).reshape(3, 4)),
        np.empty_like(np.zeros((2, 3, 4)).transpose(1, 2, 0)),
    ],
    ids=lambda array: f"{array.shape}-{array.strides}",
)
def test_an_adopted_array_is_counted_until_its_last_view_dies(pool, array):
    array = array.copy(order="K")
    array[...] = np.arange(array.size).reshape(array.shape)
    expected = array.tolist()
    adopted = pool.adopt(array)
    size = array.nbytes
    assert pool.stats().active_bytes == pool.stats().reserved_bytes == size
    assert type(adopted) is np.ndarray
    assert (adopted.shape, adopted.dtype, adopted.strides) == (
        array.shape,
        array.dtype,
        array.strides,
    )
    assert address(adopted) == address(array)
    del array
    assert adopted.tolist() == expected
    view = adopted[...]
    del adopted
    assert pool.allocated_bytes == size
    assert view.tolist() == expected
    del view
    assert pool.stats().reserved_bytes == 0
    assert pool.stats().total_bytes == size


def test_only_memory_of_its_own_is_adopted(pool):
    whole = np.arange(10.0)
    for bad in (
        whole[2:],
        whole[::-1],
        np.broadcast_to(1.0, 5),
        np.zeros((0, 3)),
        np.frombuffer(bytearray(b"12"), "uint8"),
    ):
        with pytest.raises(ValueError, match="adopt"):
            pool.adopt(bad)
    assert pool.stats().total_allocations == 0


def test_adoption_obeys_the_limit_and_the_freeze(pool):
    array = np.zeros(1000)
    pool.freeze()
    with pytest.raises(AllocatorFrozen):
        pool.adopt(array)
    pool.unfreeze()
    pool.set_limit(7999)
    with pytest.raises(OutOfMemoryError) as caught:
        pool.adopt(array)
    assert caught.value.asked == 8000
    pool.set_limit(None)
    assert pool.stats().total_allocations == 0
    pool.adopt(array)
    assert pool.stats().total_allocations == 1


# -------------------------------------------------------------- strictness
def test_strict_follows_the_freeze_and_the_limit(pool):
    changes = []
    pool.on_strict_change.append(lambda: changes.append(pool.strict))
    assert pool.strict is False
    pool.freeze()
    pool.freeze()
    pool.set_limit(1000)
    pool.unfreeze()
    assert pool.strict is True
    assert changes == [True]
    pool.set_limit(2000)
    assert changes == [True]
    pool.set_limit(None)
    assert pool.strict is False
    assert changes == [True, False]
    pool.set_limit(None)
    pool.unfreeze()
    assert changes == [True, False]


def test_arrays_are_refused_while_frozen_or_beyond_the_limit(pool):
    array = pool.empty(100)
    pool.freeze()
    with pytest.raises(AllocatorFrozen):
        pool.empty(100)
    del array
    pool.unfreeze()
    pool.set_limit(1024)
    with pytest.raises(OutOfMemoryError):
        pool.empty_array((200,), np.dtype("float64"))
    assert pool.empty(1024).size == 1024
    pool.set_limit(None)


# ------------------------------------------------------------- raw addresses
@pytest.fixture
def block():
    """Address of 100 bytes, 0 to 99."""
    ptr = CpuRuntime.allocate(100, DEVICE)
    CpuRuntime.copy_to_device(bytes(range(100)), ptr, DEVICE)
    yield ptr
    CpuRuntime.deallocate(ptr, 100, DEVICE)


def test_a_handle_is_the_address(block):
    view = CpuRuntime.host_view(block, 100)
    assert address(view) == block
    assert view.tolist() == list(range(100))
    view[3] = 77
    host = bytearray(4)
    CpuRuntime.copy_from_device(block, host, DEVICE)
    assert list(host) == [0, 1, 2, 77]


def test_a_handle_may_point_into_an_allocation(block):
    assert CpuRuntime.host_view(block + 40, 60).tolist() == list(range(40, 100))
    host = bytearray(3)
    CpuRuntime.copy_from_device(block + 97, host, DEVICE)
    assert list(host) == [97, 98, 99]
    for handle, size in [(block + 40, 61), (block + 100, 1), (block - 1, 1), (block, -1)]:
        with pytest.raises(InvalidHandle):
            CpuRuntime.host_view(handle, size)
    with pytest.raises(InvalidHandle):
        CpuRuntime.deallocate(block + 40, 60, DEVICE)


@given(start=st.integers(0, 99), end=st.integers(0, 99), size=st.integers(0, 100))
@settings(deadline=None)
def test_overlapping_ranges_are_copied_as_if_by_way_of_a_third(start, end, size):
    size = min(size, 100 - start, 100 - end)
    expected = bytearray(range(100))
    expected[end : end + size] = bytes(range(start, start + size))
    ptr = CpuRuntime.allocate(100, DEVICE)
    try:
        CpuRuntime.copy_to_device(bytes(range(100)), ptr, DEVICE)
        CpuRuntime.copy_within_device(ptr + start, ptr + end, size, DEVICE)
        assert CpuRuntime.host_view(ptr, 100).tobytes() == expected
    finally:
        CpuRuntime.deallocate(ptr, 100, DEVICE)


def test_a_view_outlives_its_block_without_harm(pool):
    ptr = pool.allocate(1 << 22)
    view = pool.view(ptr, 1 << 22, "test")
    pool.deallocate(ptr, 1 << 22)
    pool.trim()
    view[...] = 1  # the pages are still there
    assert view.all()


def test_an_unknown_address_is_refused(block):
    for bad in (8, 12345, 1 << 63, -1):
        with pytest.raises(InvalidHandle, match="host_view"):
            CpuRuntime.host_view(bad, 1)


# ------------------------------------------------------------------- cache size
@pytest.mark.parametrize(
    ("memory", "limit"),
    [
        (1 << 30, 1 << 29),  # half of a small machine
        (4 << 30, 1 << 30),
        (8 << 30, 1 << 30),
        (64 << 30, 8 << 30),
    ],
)
def test_the_cache_is_bounded_by_the_machine(monkeypatch, memory, limit):
    monkeypatch.delenv("NUMR_CPU_CACHE_BYTES", raising=False)
    monkeypatch.setattr(cpu_memory, "_physical_memory", lambda: memory)
    assert cpu_memory.default_cache_limit() == limit


def test_a_machine_has_memory():
    assert cpu_memory._physical_memory() > 1 << 27


def test_the_environment_may_bound_the_cache(monkeypatch):
    monkeypatch.setenv("NUMR_CPU_CACHE_BYTES", "1000000")
    allocator = cpu_memory.CpuAllocator("cpu")
    for size in (300_000, 500_000, 700_000, 5_000_000, 5_000_000):
        allocator.empty(size)
    stats = allocator.stats()
    assert stats.active_bytes == 0
    assert 0 < stats.reserved_bytes <= 1_000_000
    monkeypatch.setenv("NUMR_CPU_CACHE_BYTES", "0")
    allocator = cpu_memory.CpuAllocator("cpu")
    allocator.empty(300_000)
    assert allocator.stats().reserved_bytes == 0
    for bad in ("much", "-1", "1e9"):
        monkeypatch.setenv("NUMR_CPU_CACHE_BYTES", bad)
        with pytest.raises(ValueError, match="NUMR_CPU_CACHE_BYTES"):
            cpu_memory.default_cache_limit()
