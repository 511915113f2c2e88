"""The contract of ``Runtime``, ``Device``, ``Allocator`` and ``RuntimeClient``, on every runtime."""

from __future__ import annotations

import array
import contextlib
import copy
import math
import pickle
import random
import threading

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from numr.errors import (
    AllocatorBusy,
    AllocatorFrozen,
    BackendLimitation,
    DeviceMismatch,
    InvalidHandle,
    OutOfMemoryError,
    ReadOnlyError,
)
from numr.runtime import AllocationStats, Allocator, Device, Graph, Runtime, RuntimeClient

MiB = 1 << 20


class Elsewhere(Device):
    """A device of no runtime."""

    __slots__ = ()
    runtime = "elsewhere"


@contextlib.contextmanager
def memory(rt, device, *sizes):
    """Allocations that end with the block."""
    handles = [rt.allocate(size, device) for size in sizes]
    try:
        yield handles[0] if len(handles) == 1 else handles
    finally:
        for handle, size in zip(handles, sizes, strict=True):
            rt.deallocate(handle, size, device)


def read(rt, device, handle, size):
    host = bytearray(size)
    rt.copy_from_device(handle, host, device)
    return bytes(host)


def pattern(size, seed=0):
    return random.Random(seed).randbytes(size)


# ------------------------------------------------------------------ identity
def test_a_runtime_is_complete(rt):
    assert issubclass(rt, Runtime)
    assert not rt.__abstractmethods__
    assert issubclass(rt.Device, Device)
    assert issubclass(rt.Client, RuntimeClient)
    assert issubclass(rt.Allocator, Allocator)
    assert issubclass(rt.Graph, Graph)
    assert isinstance(rt.RawHandle, type)
    assert isinstance(rt.DType, type)
    assert isinstance(rt.namespace, str)
    assert isinstance(rt.host_memory, bool)


def test_a_runtime_has_no_instances(rt):
    with pytest.raises(TypeError, match="no instances"):
        rt()


def test_name_is_the_prefix_of_its_devices(rt):
    for device in rt.devices():
        assert device.runtime == rt.name()
        assert str(device).partition(":")[0] == rt.name()


def test_a_usable_runtime_says_so(rt):
    assert rt.unavailable() is None


# ------------------------------------------------------------------- devices
def test_devices_are_values(rt):
    devices = rt.devices()
    assert devices
    assert rt.default_device() in devices
    assert len(set(devices)) == len({str(device) for device in devices}) == len(devices)
    for device in devices:
        assert isinstance(device, rt.Device)
        assert isinstance(device.name, str)
        assert device.name
        for twin in (
            rt.Device(device.id),
            copy.deepcopy(device),
            pickle.loads(pickle.dumps(device)),
        ):
            assert twin == device
            assert twin.is_same(device)
            assert hash(twin) == hash(device)
            assert str(twin) == str(device)


def test_a_device_equals_no_string_and_no_other_runtimes_device(rt, device):
    other = Elsewhere(device.id)
    assert device != str(device)
    assert device != other
    assert not device.is_same(other)
    assert not device.is_same(str(device))


def test_a_device_cannot_be_changed(device):
    with pytest.raises(AttributeError):
        device.id = 7
    assert device.id != 7


@pytest.mark.parametrize("bad", [-1, 0.0, "0", True, None])
def test_a_device_id_is_a_number_from_zero(rt, bad):
    with pytest.raises(DeviceMismatch, match="id"):
        rt.Device(bad)


def test_device_finds_devices_by_value_and_by_string(rt):
    for device in rt.devices():
        assert rt.device(device) == device
        assert rt.device(str(device)) == device
        assert rt.device(f"{rt.name()}:{device.id}") == device
    assert rt.device(rt.name()) == rt.default_device()


def test_a_device_that_does_not_exist_is_named_with_those_that_do(rt):
    existing = ", ".join(str(device) for device in rt.devices())
    for spec in (f"{rt.name()}:4711", "elsewhere:0", rt.Device(4711), Elsewhere(0), "", None):
        with pytest.raises(DeviceMismatch) as caught:
            rt.device(spec)
        assert existing in str(caught.value)
        assert str(spec) in str(caught.value)


def test_operations_refuse_devices_that_do_not_exist(rt, allocator):
    for device in (rt.Device(4711), Elsewhere(0)):
        calls = [
            (rt.allocator, device),
            (rt.default_client, device),
            (rt.allocate, 8, device),
            (rt.deallocate, 1, 8, device),
            (rt.copy_to_device, b"1", 1, device),
            (rt.copy_from_device, 1, bytearray(1), device),
            (rt.copy_within_device, 1, 1, 1, device),
            (rt.copy_strided, 1, 0, 1, (1,), (1,), 1, device),
        ]
        for operation, *arguments in calls:
            with pytest.raises(DeviceMismatch):
                operation(*arguments)


# ------------------------------------------------------------------- clients
def test_each_device_has_one_client(rt):
    for device in rt.devices():
        client = rt.default_client(device)
        assert isinstance(client, rt.Client)
        assert client is rt.default_client(device)
        assert client.device == device
        assert client.runtime is rt
        assert client.allocator is rt.allocator(device)
        assert isinstance(client.allocator, rt.Allocator)
        assert client.synchronize() is None
        assert isinstance(client.compute_stream_handle(), int | None)
        assert isinstance(rt.raw_handle(client), rt.RawHandle)


def test_a_client_is_the_same_in_all_threads(rt, device):
    found = in_threads(8, lambda _: rt.default_client(device))
    assert len({id(client) for client in found}) == 1


# ------------------------------------------------------------------- capture
def test_a_runtime_without_capture_says_so(rt, device):
    if rt.supports_graph_capture():
        pytest.skip("captures; see tests/graph")
    called = []
    with pytest.raises(BackendLimitation) as caught:
        rt.capture_graph_into(rt.default_client(device), [], [], called.append)
    assert caught.value.backend == rt.name()
    assert caught.value.operation == "capture_graph_into"
    assert not called


# -------------------------------------------------------------------- memory
def test_handles_are_integers_of_their_own(rt, device, allocator):
    sizes = [0, 0, 1, 8, 63, 64, 65, 1000, MiB]
    with memory(rt, device, *sizes) as handles:
        assert all(type(handle) is int and handle for handle in handles)
        assert len(set(handles)) == len(handles)
        # Memory of one allocation is not that of another.
        for i, (handle, size) in enumerate(zip(handles, sizes, strict=True)):
            rt.copy_to_device(bytes([i]) * size, handle, device)
        for i, (handle, size) in enumerate(zip(handles, sizes, strict=True)):
            assert read(rt, device, handle, size) == bytes([i]) * size


def test_figures_follow_each_call(rt, device, allocator):
    start = allocator.stats()
    assert isinstance(start, AllocationStats)
    handle = rt.allocate(1000, device)
    one = allocator.stats()
    assert one.total_allocations == start.total_allocations + 1
    assert one.total_bytes == start.total_bytes + 1000
    assert one.active_allocations == start.active_allocations + 1
    assert one.active_bytes == start.active_bytes + 1000 == allocator.allocated_bytes
    assert one.reserved_bytes >= start.reserved_bytes + 1000
    assert one.peak_usage >= one.active_bytes
    rt.deallocate(handle, 1000, device)
    two = allocator.stats()
    assert two.total_allocations == one.total_allocations
    assert two.total_bytes == one.total_bytes
    assert two.active_allocations == start.active_allocations
    assert two.active_bytes == start.active_bytes
    assert two.peak_usage == one.peak_usage


def test_trim_gives_cached_memory_back(rt, device, allocator):
    start = allocator.stats().reserved_bytes
    with memory(rt, device, MiB, 1000):
        assert allocator.trim() == 0
        held = allocator.stats().reserved_bytes
        assert held >= start + MiB + 1000
    cached = allocator.stats().reserved_bytes - start
    assert allocator.trim() == cached
    assert allocator.stats().reserved_bytes == start
    assert allocator.trim() == 0


def test_a_handle_is_given_back_once_with_its_size(rt, device, allocator):
    handle = rt.allocate(100, device)
    with pytest.raises(InvalidHandle, match="100"):
        rt.deallocate(handle, 99, device)
    rt.deallocate(handle, 100, device)
    for bad in (handle, 0, -1, 12345):
        before = allocator.stats()
        with pytest.raises(InvalidHandle, match="deallocate"):
            rt.deallocate(bad, 100, device)
        assert allocator.stats() == before


@pytest.mark.parametrize("size", [-1, -(10**30)])
def test_a_negative_size_is_refused(rt, device, allocator, size):
    before = allocator.stats()
    with pytest.raises(ValueError, match=str(size)):
        rt.allocate(size, device)
    assert allocator.stats() == before


def test_a_frozen_allocator_refuses_and_takes_back(rt, device, allocator):
    handle = rt.allocate(100, device)
    assert not allocator.is_frozen
    assert allocator.freeze() is True
    try:
        assert allocator.freeze() is True  # not nested
        assert allocator.is_frozen
        assert allocator.stats().is_frozen
        before = allocator.stats()
        for size in (0, 100, 10 * MiB):
            with pytest.raises(AllocatorFrozen) as caught:
                rt.allocate(size, device)
            assert caught.value.asked == size
            assert caught.value.device == str(device)
        assert allocator.stats() == before
        rt.copy_to_device(b"works", handle, device)
        assert read(rt, device, handle, 5) == b"works"
        rt.deallocate(handle, 100, device)
        assert allocator.stats().active_allocations == before.active_allocations - 1
    finally:
        allocator.unfreeze()
    assert not allocator.is_frozen
    with memory(rt, device, 100):
        assert allocator.stats().active_allocations == before.active_allocations


def test_a_limit_bounds_what_is_reserved(rt, device, allocator):
    base = allocator.stats().reserved_bytes
    allocator.set_limit(base + MiB)
    try:
        assert allocator.stats().limit_bytes == base + MiB
        with memory(rt, device, MiB // 2):
            before = allocator.stats()
            with pytest.raises(OutOfMemoryError) as caught:
                rt.allocate(MiB, device)
            error = caught.value
            assert isinstance(error, MemoryError)
            assert error.asked == MiB
            assert error.active == before.active_bytes
            assert error.reserved == before.reserved_bytes
            assert error.limit == base + MiB
            assert error.device == str(device)
            assert allocator.stats() == before
        # The half that is cached now makes room.
        with memory(rt, device, MiB):
            assert allocator.stats().reserved_bytes == base + MiB
    finally:
        allocator.set_limit(None)
    with memory(rt, device, 2 * MiB):
        assert allocator.stats().limit_bytes is None


def test_a_limit_below_what_is_active_lets_it_stay(rt, device, allocator):
    with memory(rt, device, MiB) as handle:
        allocator.set_limit(0)
        try:
            rt.copy_to_device(b"still here", handle, device)
            assert read(rt, device, handle, 10) == b"still here"
            with pytest.raises(OutOfMemoryError):
                rt.allocate(1, device)
        finally:
            allocator.set_limit(None)


@pytest.mark.parametrize(("limit", "error"), [(-1, ValueError), (1.5, TypeError)])
def test_a_limit_is_a_number_of_bytes(allocator, limit, error):
    with pytest.raises(error, match="set_limit"):
        allocator.set_limit(limit)


def test_a_request_beyond_all_memory_fails_and_nothing_else_does(rt, device, allocator):
    with memory(rt, device, 64) as handle:
        rt.copy_to_device(b"before", handle, device)
        before = allocator.stats()
        for size in (1 << 62, 1 << 80):
            with pytest.raises(OutOfMemoryError) as caught:
                rt.allocate(size, device)
            assert caught.value.asked == size
            assert caught.value.limit is None
        assert allocator.stats() == before
        assert read(rt, device, handle, 6) == b"before"


def test_reset_needs_an_idle_allocator(rt):
    # On a device of its own where there are several: others may hold memory of the default one.
    device = rt.devices()[-1]
    allocator = rt.allocator(device)
    handle = rt.allocate(10, device)
    before = allocator.stats()
    with pytest.raises(AllocatorBusy) as caught:
        allocator.reset()
    assert caught.value.active_allocations == before.active_allocations
    assert caught.value.active_bytes == before.active_bytes
    assert caught.value.device == str(device)
    assert allocator.stats() == before
    rt.deallocate(handle, 10, device)
    if allocator.stats().active_allocations == 0:
        allocator.reset()
        assert allocator.stats() == AllocationStats()


# -------------------------------------------------------------------- copies
@pytest.mark.parametrize(
    "source",
    [
        b"",
        b"some bytes",
        bytearray(b"some more"),
        memoryview(b"a view of bytes")[2:],
        array.array("d", [1.5, -2.5]),
        np.arange(12.0).reshape(3, 4),
        np.arange(3) + 1j,
        np.array(7, dtype="int16"),
        np.zeros((0, 3)),
        np.array(["2025-12-01"], dtype="datetime64[D]"),
    ],
    ids=lambda source: type(source).__name__,
)
def test_any_contiguous_buffer_goes_to_the_device_and_back(rt, device, allocator, source):
    expected = source.tobytes() if hasattr(source, "tobytes") else bytes(source)
    with memory(rt, device, len(expected)) as handle:
        rt.copy_to_device(source, handle, device)
        assert read(rt, device, handle, len(expected)) == expected
        if isinstance(source, np.ndarray):
            target = np.empty_like(source)
            rt.copy_from_device(handle, target, device)
            assert target.tobytes() == expected


def test_large_copies_are_exact(rt, device, allocator):
    data = pattern(5 * MiB + 3)
    with memory(rt, device, len(data)) as handle:
        rt.copy_to_device(data, handle, device)
        assert read(rt, device, handle, len(data)) == data


def test_a_source_may_change_after_the_copy(rt, device, allocator):
    source = bytearray(b"first")
    with memory(rt, device, 5) as handle:
        rt.copy_to_device(source, handle, device)
        source[:] = b"later"
        assert read(rt, device, handle, 5) == b"first"


def test_parts_of_an_allocation_are_copied_from_its_start(rt, device, allocator):
    with memory(rt, device, 10) as handle:
        rt.copy_to_device(b"0123456789", handle, device)
        rt.copy_to_device(b"abc", handle, device)
        assert read(rt, device, handle, 5) == b"abc34"
        assert read(rt, device, handle, 10) == b"abc3456789"


def test_buffers_with_gaps_are_refused(rt, device, allocator):
    gaps = np.arange(10)[::2]
    with memory(rt, device, 80) as handle:
        rt.copy_to_device(bytes(80), handle, device)
        for bad in (gaps, np.ones((3, 4)).T, memoryview(b"abcdef")[::2]):
            with pytest.raises(ValueError, match=r"copy_to_device.*C-contiguous"):
                rt.copy_to_device(bad, handle, device)
        with pytest.raises(ValueError, match=r"copy_from_device.*C-contiguous"):
            rt.copy_from_device(handle, gaps, device)
        assert read(rt, device, handle, 80) == bytes(80)


def test_objects_without_a_buffer_are_refused(rt, device, allocator):
    with memory(rt, device, 8) as handle:
        for bad in (None, 5, "text", [1, 2]):
            with pytest.raises(TypeError, match=r"copy_to_device.*buffer"):
                rt.copy_to_device(bad, handle, device)
            with pytest.raises(TypeError, match=r"copy_from_device.*buffer"):
                rt.copy_from_device(handle, bad, device)


def test_read_only_targets_are_refused(rt, device, allocator):
    locked = np.zeros(4, dtype="uint8")
    locked.flags.writeable = False
    with memory(rt, device, 4) as handle:
        rt.copy_to_device(b"abcd", handle, device)
        for bad in (b"0000", locked, memoryview(b"0000")):
            with pytest.raises(ReadOnlyError, match="copy_from_device"):
                rt.copy_from_device(handle, bad, device)
    assert not locked.any()


def test_copies_stay_inside_an_allocation(rt, device, allocator):
    with memory(rt, device, 100, 50) as (long, short):
        rt.copy_to_device(bytes(100), long, device)
        rt.copy_to_device(bytes(50), short, device)
        calls = [
            (rt.copy_to_device, b"x" * 101, long, device),
            (rt.copy_from_device, long, bytearray(101), device),
            (rt.copy_within_device, long, short, 51, device),
            (rt.copy_within_device, short, long, 51, device),
            (rt.copy_within_device, short, long, -1, device),
            (rt.copy_strided, long, 0, short, (51,), (1,), 1, device),
            (rt.copy_strided, long, 96, short, (2,), (1,), 4, device),
            (rt.copy_strided, long, 0, short, (2,), (-1,), 4, device),
            (rt.copy_strided, long, 0, short, (2, 3), (100, 1), 1, device),
        ]
        for operation, *arguments in calls:
            with pytest.raises(InvalidHandle):
                operation(*arguments)
        assert read(rt, device, long, 100) == bytes(100)
        assert read(rt, device, short, 50) == bytes(50)


def test_deallocated_memory_cannot_be_used(rt, device, allocator):
    with memory(rt, device, 64) as handle:
        gone = rt.allocate(8, device)
        rt.deallocate(gone, 8, device)
        for bad in (gone, 0):
            calls = [
                (rt.copy_to_device, b"x", bad, device),
                (rt.copy_from_device, bad, bytearray(1), device),
                (rt.copy_within_device, bad, handle, 1, device),
                (rt.copy_within_device, handle, bad, 1, device),
                (rt.copy_strided, bad, 0, handle, (1,), (1,), 1, device),
                (rt.copy_strided, handle, 0, bad, (1,), (1,), 1, device),
            ]
            for operation, *arguments in calls:
                with pytest.raises(InvalidHandle):
                    operation(*arguments)


def test_copy_within_device(rt, device, allocator):
    with memory(rt, device, 8, 8) as (a, b):
        rt.copy_to_device(b"abcdefgh", a, device)
        rt.copy_to_device(b"12345678", b, device)
        rt.copy_within_device(a, b, 3, device)
        assert read(rt, device, b, 8) == b"abc45678"
        rt.copy_within_device(a, a, 8, device)
        rt.copy_within_device(b, a, 0, device)
        assert read(rt, device, a, 8) == b"abcdefgh"


def test_memory_of_two_devices_is_apart(rt):
    if len(rt.devices()) < 2:
        pytest.skip("one device")
    one, two = rt.devices()[:2]
    before = rt.allocator(two).stats()
    with memory(rt, one, 16) as handle:
        rt.copy_to_device(bytes(range(16)), handle, one)
        assert rt.allocator(two).stats() == before
        with memory(rt, two, 16) as other:
            rt.copy_to_device(bytes(16), other, two)
            assert read(rt, one, handle, 16) == bytes(range(16))


# -------------------------------------------------------------- copy_strided
@st.composite
def strided_views(draw):
    """Bytes, and a view of them: shape, strides, byte offset and element size."""
    elem_size = draw(st.sampled_from([1, 2, 3, 4, 8, 12, 16]))
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=4)))
    strides = tuple(draw(st.integers(-6, 6)) for _ in shape)
    low = sum(min(s, 0) * (n - 1) for n, s in zip(shape, strides, strict=True) if n)
    high = sum(max(s, 0) * (n - 1) for n, s in zip(shape, strides, strict=True) if n)
    offset = -low * elem_size + draw(st.integers(0, 9))
    size = offset + (high + 1) * elem_size + draw(st.integers(0, 5))
    data = draw(st.integers(0, 2**32).map(lambda seed: pattern(size, seed)))
    return data, shape, strides, offset, elem_size


def gather(data, shape, strides, offset, elem_size):
    """What ``copy_strided`` is to write, by NumPy."""
    view = np.ndarray(shape, f"V{elem_size}", data, offset, tuple(s * elem_size for s in strides))
    return view.tobytes()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(case=strided_views())
def test_copy_strided_gathers_any_view(rt, device, case):
    data, shape, strides, offset, elem_size = case
    expected = gather(*case)
    with memory(rt, device, len(data), len(expected) + 3) as (source, target):
        rt.copy_to_device(data, source, device)
        rt.copy_to_device(b"\xee" * (len(expected) + 3), target, device)
        rt.copy_strided(source, offset, target, shape, strides, elem_size, device)
        assert read(rt, device, target, len(expected) + 3) == expected + b"\xee" * 3
        assert read(rt, device, source, len(data)) == data


@pytest.mark.parametrize(
    ("shape", "strides", "offset", "elem_size", "expected"),
    [
        ((3,), (-1,), 4, 2, b"452301"),
        ((2, 2), (0, 1), 2, 1, b"2323"),
        ((2, 3), (1, 2), 0, 1, b"024135"),
        ((), (), 3, 2, b"34"),
        ((0, 5), (9, 9), 6, 1, b""),
        ([2], [3], 0, 1, b"03"),
    ],
)
def test_copy_strided_by_hand(rt, device, allocator, shape, strides, offset, elem_size, expected):
    with memory(rt, device, 6, 6) as (source, target):
        rt.copy_to_device(b"012345", source, device)
        rt.copy_to_device(b"......", target, device)
        rt.copy_strided(source, offset, target, shape, strides, elem_size, device)
        assert read(rt, device, target, 6) == expected.ljust(6, b".")


def test_copy_strided_moves_bytes_without_reading_them(rt, device, allocator):
    # Signalling NaNs, negative zeros and subnormals in each width that a processor may take for a float.
    words = np.array(
        [0x7FA00001_80000000, 0x7FF00000_00000001, 0x00000000_00000001, 1 << 63], dtype="uint64"
    )
    data = words.tobytes()
    for elem_size in (2, 4, 8, 16):
        count = len(data) // elem_size
        with memory(rt, device, len(data), len(data)) as (source, target):
            rt.copy_to_device(data, source, device)
            rt.copy_strided(
                source, len(data) - elem_size, target, (count,), (-1,), elem_size, device
            )
            reversed_elements = [data[i : i + elem_size] for i in range(0, len(data), elem_size)][
                ::-1
            ]
            assert read(rt, device, target, len(data)) == b"".join(reversed_elements)


@pytest.mark.parametrize(
    ("shape", "strides", "offset", "elem_size"),
    [
        ((2,), (1, 1), 0, 1),
        ((2, 2), (1,), 0, 1),
        ((-1,), (1,), 0, 1),
        ((2,), (1,), -1, 1),
        ((2,), (1,), 0, 0),
        ((2,), (1,), 0, -4),
    ],
)
def test_copy_strided_refuses_what_is_no_view(
    rt, device, allocator, shape, strides, offset, elem_size
):
    with (
        memory(rt, device, 64, 64) as (source, target),
        pytest.raises(ValueError, match=r"copy_strided.*make no view"),
    ):
        rt.copy_strided(source, offset, target, shape, strides, elem_size, device)


def test_copy_strided_of_a_large_transpose(rt, device, allocator):
    values = np.arange(300 * 200, dtype="int32").reshape(300, 200)
    result = np.empty((200, 300), dtype="int32")
    with memory(rt, device, values.nbytes, values.nbytes) as (source, target):
        rt.copy_to_device(values, source, device)
        rt.copy_strided(source, 0, target, (200, 300), (1, 200), 4, device)
        rt.copy_from_device(target, result, device)
    assert (result == values.T).all()


# -------------------------------------------------------------------- events
def test_pipelined_copies_give_what_was_there_at_the_event(rt, device, allocator):
    host = bytearray(4)
    with memory(rt, device, 4) as handle:
        rt.copy_to_device(b"data", handle, device)
        event = rt.record_compute_event(device)
        assert isinstance(event, int)
        rt.copy_from_device_pipelined(handle, host, device, event)
        assert host == b"data"
        with pytest.raises(InvalidHandle):
            rt.copy_from_device_pipelined(handle, bytearray(5), device, event)


# ------------------------------------------------------------------- threads
def in_threads(count, body):
    """Results of ``body(i)`` in that many threads at once; its exceptions are raised here."""
    results = [None] * count
    errors = []
    barrier = threading.Barrier(count)

    def run(i):
        try:
            barrier.wait()
            results[i] = body(i)
        except BaseException as error:  # noqa: BLE001  (handed to the caller)
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


def test_threads_do_not_see_each_others_memory(rt, device, allocator):
    def body(number):
        random_ = random.Random(number)
        live = []
        for _ in range(200):
            if live and random_.random() < 0.5:
                handle, data = live.pop(random_.randrange(len(live)))
                assert read(rt, device, handle, len(data)) == data
                rt.deallocate(handle, len(data), device)
            else:
                data = random_.randbytes(int(math.exp(random_.uniform(0, 10))))
                handle = rt.allocate(len(data), device)
                rt.copy_to_device(data, handle, device)
                live.append((handle, data))
        for handle, data in live:
            assert read(rt, device, handle, len(data)) == data
            rt.deallocate(handle, len(data), device)
        return True

    total = allocator.stats().total_allocations
    assert in_threads(8, body) == [True] * 8
    assert allocator.stats().total_allocations > total
