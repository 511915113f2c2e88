"""The WebGPU queue: batches, order, checks before anything is encoded, and pipelined reads."""

from __future__ import annotations

import gc
import time

import numpy as np
import pytest

from numr.errors import BackendLimitation
from numr.runtime import Storage
from numr.runtime.wgpu.checking import grid
from numr.runtime.wgpu.native import NativeApi
from numr.runtime.wgpu.pipelines import KernelText, StorageBuffer
from numr.runtime.wgpu.queue import BATCH_RECORDS, IN_FLIGHT
from numr.runtime.wgpu.submitting import PublicApi
from tests.runtime.wgpu_support import ADD, add, require_adapter, variant, words

require_adapter()
pytestmark = pytest.mark.wgpu

VARIANTS = {
    "native": variant(),
    "public": variant(api=PublicApi),
    "uniform": variant(without=["immediates"]),
    "public-uniform": variant(without=["immediates"], api=PublicApi),
}


@pytest.fixture(params=VARIANTS, scope="module")
def rt(request):
    return VARIANTS[request.param]


@pytest.fixture(scope="module")
def native():
    return VARIANTS["native"]


@pytest.fixture
def device(rt):
    return rt.default_device()


@pytest.fixture
def zeros(rt, device):
    """A function that gives storages of zeros."""

    def make(size):
        storage = Storage.allocate(size, device, rt)
        rt.copy_to_device(bytes(size), storage.handle, device)
        return storage

    return make


def test_the_known_version_of_wgpu_is_used_from_inside(native):
    import wgpu

    assert wgpu.version_info[:2] == (0, 32), "look through native.py before raising KNOWN_VERSION"
    assert type(native.opened(native.default_device()).api) is NativeApi


# ------------------------------------------------------------------- batches
def test_dispatches_are_submitted_in_batches(rt, device, zeros):
    queue = rt.opened(device).queue
    storage = zeros(64)
    queue.synchronize()
    submissions, dispatches = queue.submissions, queue.dispatches
    for value in range(1000):
        add(rt, device, storage.handle, value)
    assert queue.dispatches == dispatches + 1000
    assert words(rt, device, storage.handle)[0] == sum(range(1000))
    assert queue.submissions - submissions == 1000 // BATCH_RECORDS + 1


def test_what_was_not_submitted_is_submitted_by_a_read(rt, device, zeros):
    queue = rt.opened(device).queue
    storage = zeros(64)
    queue.flush()
    before = queue.submissions
    add(rt, device, storage.handle, 7)
    assert queue.submissions == before
    assert words(rt, device, storage.handle)[0] == 7
    assert queue.submissions == before + 1


def test_much_memory_traffic_is_submitted_early(native, monkeypatch):
    monkeypatch.setattr("numr.runtime.wgpu.queue.BATCH_BYTES", 1 << 20)
    device = native.default_device()
    queue = native.opened(device).queue
    storage = Storage.allocate(1 << 18, device, native)
    queue.flush()
    before = queue.submissions
    for _ in range(16):
        add(native, device, storage.handle, 1, 1 << 16)
    assert queue.submissions == before + 4


def test_submissions_under_way_are_bounded(native):
    device = native.default_device()
    queue = native.opened(device).queue
    storage = Storage.allocate(16, device, native)
    for _ in range(3 * IN_FLIGHT):
        add(native, device, storage.handle, 1)
        queue.flush()
        assert len(queue._under_way) <= IN_FLIGHT


def test_writes_and_work_keep_their_order(rt, device, zeros):
    storage, other = zeros(64), zeros(64)
    for i in range(5):
        rt.copy_to_device(np.uint32([100 * i]), storage.handle, device)
        add(rt, device, storage.handle, 1)
        rt.copy_to_device(np.uint32([5]), other.handle, device)
        rt.copy_within_device(storage.handle, other.handle, 4, device)
        add(rt, device, other.handle, 1)
        rt.copy_to_device(np.uint32([0]), storage.handle, device)
        assert words(rt, device, other.handle)[0] == 100 * i + 2
        assert words(rt, device, storage.handle)[0] == 0


def test_a_buffer_outlives_its_allocation_until_its_work_is_done(rt, device, zeros):
    result = zeros(16)
    queue = rt.opened(device).queue
    for i in range(20):
        temporary = zeros(16)
        add(rt, device, temporary.handle, i)
        rt.copy_within_device(temporary.handle, result.handle, 4, device)
        del temporary
        rt.allocator(device).trim()
        again = zeros(16)  # may get what the temporary had
        assert words(rt, device, result.handle)[0] == i
        del again
    assert queue.submissions


def test_more_workgroups_than_one_dimension_has():
    rt = variant(limits={"max-compute-workgroups-per-dimension": 16})
    device = rt.default_device()
    count = 10_000  # 157 groups of 64: 10 rows
    storage = Storage.allocate(4 * count + 64, device, rt)
    rt.copy_to_device(np.arange(count + 16, dtype=np.uint32), storage.handle, device)
    add(rt, device, storage.handle, 3, count)
    expected = np.arange(count + 16)
    expected[:count] += 3
    assert (words(rt, device, storage.handle, count + 16) == expected).all()


@pytest.mark.parametrize("count", [0, 1, 64, 65, 64 * 65535, 64 * 65535 + 1, 2**32 - 1])
def test_a_grid_covers_all_invocations(count):
    (width, rows, depth), row = grid(count, 64)
    assert max(width, rows) <= 65535
    assert depth == 1
    assert row == 64 * width
    assert row * rows >= count
    assert row * (rows - 1) < count or rows == 0


# --------------------------------------------------------------------- checks
def test_bad_dispatches_are_refused_and_the_batch_lives_on(native):
    device = native.default_device()
    opened = native.opened(device)
    storage = Storage.allocate(256, device, native)
    native.copy_to_device(bytes(256), storage.handle, device)
    buffer, _ = native.allocator(device).buffer(storage.handle, None, "test")
    kernel = opened.pipelines.get(ADD)
    two = opened.pipelines.get(
        KernelText(
            "@compute @workgroup_size(1) fn main() { a[0] = b[0]; }",
            (StorageBuffer("a", "read_write"), StorageBuffer("b", "read")),
        )
    )
    add(native, device, storage.handle, 1)
    good = (buffer, 0, 16)
    params = bytes(16)
    too_many = opened.limits["max-compute-workgroups-per-dimension"] + 1
    for bad, error, match in [
        ((kernel, [], params), ValueError, "takes 1 and 16"),
        ((kernel, [good], params[:8]), ValueError, "8 bytes of parameters"),
        ((kernel, [(buffer, 4, 16)], params), ValueError, "multiple of"),
        ((kernel, [(buffer, 0, 0)], params), ValueError, "above 0"),
        ((kernel, [(buffer, 0, 6)], params), ValueError, "one of 4"),
        ((kernel, [(buffer, 0, 260)], params), ValueError, "buffer of 256"),
        ((kernel, [(buffer, 256, 4)], params), ValueError, "buffer of 256"),
        ((kernel, [good], params, (too_many, 1, 1)), BackendLimitation, "workgroups-per-dim"),
        ((kernel, [good], params, (1, -1, 1)), BackendLimitation, "workgroups-per-dim"),
        ((two, [good, (buffer, 64, 16)]), ValueError, "read-only as well"),
    ]:
        with pytest.raises(error, match=match):
            opened.queue.dispatch(*bad)
    for bad in [(0, 2, 0, 4), (0, 0, 4, 3), (252, 0, 0, 8)]:
        source_offset, offset, target_offset, size = bad
        other = opened.create_buffer(256, "COPY_SRC|COPY_DST")
        with pytest.raises(ValueError, match="copy"):
            opened.queue.copy(buffer, source_offset + offset, other, target_offset, size)
    with pytest.raises(ValueError, match="different"):
        opened.queue.copy(buffer, 0, buffer, 8, 4)
    with pytest.raises(ValueError, match="write"):
        opened.queue.write(buffer, 254, np.zeros(4, np.uint8))
    opened.queue.dispatch(kernel, [good], params, (1, 0, 1))  # nothing to do
    assert words(native, device, storage.handle)[0] == 1


def test_bindings_larger_than_the_limit_are_refused_by_its_name():
    rt = variant(limits={"max-storage-buffer-binding-size": 1 << 12})
    device = rt.default_device()
    storage = Storage.allocate(1 << 13, device, rt)
    with pytest.raises(BackendLimitation, match="max-storage-buffer-binding-size of 4096"):
        add(rt, device, storage.handle, 1, 1 << 11)


def test_kernels_with_too_many_buffers_are_refused_by_the_limits_name():
    rt = variant(limits={"max-storage-buffers-per-shader-stage": 8})
    text = KernelText("", tuple(StorageBuffer(f"b{i}", "read") for i in range(9)))
    with pytest.raises(BackendLimitation, match="max-storage-buffers-per-shader-stage of 8"):
        rt.opened(rt.default_device()).pipelines.get(text)


# -------------------------------------------------------------------- kernels
def test_kernels_are_compiled_once_for_each_text():
    rt = variant()
    device = rt.default_device()
    pipelines = rt.opened(device).pipelines
    storage = Storage.allocate(4000, device, rt)
    assert (pipelines.hits, pipelines.misses) == (0, 0)
    for count in range(1, 101):
        add(rt, device, storage.handle, 1, count)
    assert (pipelines.hits, pipelines.misses) == (99, 1)
    target = Storage.allocate(4000, device, rt)
    for n in range(2, 102):
        rt.copy_strided(storage.handle, 0, target.handle, (n, 7), (1, n), 4, device)
    assert pipelines.misses == 2


def test_bind_groups_are_kept_until_a_buffer_is_dropped():
    rt = variant(cache_limit=0)
    device = rt.default_device()
    opened = rt.opened(device)
    if not isinstance(opened.api, NativeApi):
        pytest.skip("bind groups are kept by the known version of wgpu alone")
    first, second = (Storage.allocate(64, device, rt) for _ in range(2))
    for storage in (first, second, first, first):
        add(rt, device, storage.handle, 1)
    opened.queue.flush()
    assert len(opened.api._pool) == 2
    before = dict(opened.api._pool)
    add(rt, device, first.handle, 1)
    opened.queue.flush()
    assert opened.api._pool == before
    del second
    add(rt, device, first.handle, 1)
    opened.queue.flush()
    assert len(opened.api._pool) == 1
    opened.queue.reclaim()
    assert not opened.api._pool


def test_no_more_bind_groups_are_kept_than_the_limit(monkeypatch):
    monkeypatch.setattr("numr.runtime.wgpu.native.KEPT_GROUPS", 3)
    rt = variant()
    device = rt.default_device()
    opened = rt.opened(device)
    if not isinstance(opened.api, NativeApi):
        pytest.skip("bind groups are kept by the known version of wgpu alone")
    storages = [Storage.allocate(64, device, rt) for _ in range(10)]
    for storage in storages:
        rt.copy_to_device(bytes(64), storage.handle, device)
        add(rt, device, storage.handle, 1)
    assert [int(words(rt, device, storage.handle)[0]) for storage in storages] == [1] * 10
    assert len(opened.api._pool) <= 3


def test_parameters_are_set_again_where_they_change(rt, device, zeros):
    storage = zeros(4)
    for value in (1, 1, 2, 1):
        add(rt, device, storage.handle, value)
    assert words(rt, device, storage.handle)[0] == 5


def test_parameters_are_immediates_where_the_device_has_them(rt, device):
    kernel = rt.opened(device).pipelines.get(ADD)
    assert kernel.immediates is ("immediates" in rt.opened(device).features)
    assert kernel.uniform is not kernel.immediates


def test_parameters_too_large_for_immediates_are_uniforms(native):
    device = native.default_device()
    limit = native.opened(device).limits["max-immediate-size"]
    count = limit // 16 + 1
    text = KernelText(
        f"struct Params {{ v: array<vec4<u32>, {count}> }}\n"
        "@compute @workgroup_size(1) fn main() {\n"
        f"    for (var i = 0u; i < {count}u; i++) {{ words[i] = params.v[i].x + params.v[i].w; }}\n"
        "}",
        (StorageBuffer("words", "read_write"),),
        16 * count,
    )
    kernel = native.opened(device).pipelines.get(text)
    assert kernel.uniform
    storage = Storage.allocate(4 * count, device, native)
    buffer, _ = native.allocator(device).buffer(storage.handle, None, "test")
    # Many of them, so that the buffer of parameters grows.
    for i in range(BATCH_RECORDS * 2 + 3):
        values = np.arange(4 * count, dtype=np.uint32).reshape(count, 4) + np.uint32(i)
        size = 4 * count + 3 & -4
        native.opened(device).queue.dispatch(kernel, [(buffer, 0, size)], values.tobytes())
    expected = values[:, 0] + values[:, 3]
    assert (words(native, device, storage.handle, count) == expected).all()


# ------------------------------------------------------- interrupted and nested
def test_an_interrupted_submission_is_made_up_for(rt, device, zeros, monkeypatch):
    opened = rt.opened(device)
    storage = zeros(16)
    opened.queue.flush()
    add(rt, device, storage.handle, 5)

    def interrupted(self, *arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(opened.api), "_encode", interrupted)
        with pytest.raises(KeyboardInterrupt):
            opened.queue.flush()
    assert gc.isenabled()
    rt.copy_to_device(np.uint32([10]), storage.handle, device)  # behind the work, not before it
    add(rt, device, storage.handle, 1)
    assert words(rt, device, storage.handle)[0] == 11


def test_a_signal_handler_during_a_submission_is_refused(rt, device, zeros, monkeypatch):
    opened = rt.opened(device)
    storage = zeros(16)
    add(rt, device, storage.handle, 5)
    encode = type(opened.api)._encode
    caught = []

    def with_signal(self, encoder, records):
        monkeypatch.setattr(type(opened.api), "_encode", encode)
        add(rt, device, storage.handle, 1)
        try:
            words(rt, device, storage.handle)
        except RuntimeError as error:
            caught.append(str(error))
        encode(self, encoder, records)

    monkeypatch.setattr(type(opened.api), "_encode", with_signal)
    opened.queue.flush()
    assert "signal handler" in caught[0]
    assert words(rt, device, storage.handle)[0] == 6


def test_finalizers_read_memory_while_work_is_recorded(rt, device, zeros):
    seen = []

    class Node:
        def __init__(self, i):
            self.me = self
            self.storage = zeros(16)
            self.number = i
            add(rt, device, self.storage.handle, i)

        def __del__(self):
            seen.append((self.number, int(words(rt, device, self.storage.handle)[0])))

    gc.collect()
    threshold = gc.get_threshold()
    gc.set_threshold(3)
    try:
        for i in range(40):
            Node(i)
    finally:
        gc.set_threshold(*threshold)
    gc.collect()
    assert sorted(seen) == [(i, i) for i in range(40)]


def test_finalizers_wait_for_the_end_of_a_submission(rt, device, zeros, monkeypatch):
    opened = rt.opened(device)
    storage = zeros(16)
    add(rt, device, storage.handle, 5)
    encode = type(opened.api)._encode
    seen = []

    class Node:
        def __init__(self):
            self.me = self

        def __del__(self):
            seen.append(int(words(rt, device, storage.handle)[0]))

    def with_garbage(self, encoder, records):
        monkeypatch.setattr(type(opened.api), "_encode", encode)
        for _ in range(50):
            Node()
        assert not seen
        encode(self, encoder, records)

    monkeypatch.setattr(type(opened.api), "_encode", with_garbage)
    threshold = gc.get_threshold()
    gc.set_threshold(3)
    try:
        opened.queue.flush()
    finally:
        gc.set_threshold(*threshold)
    gc.collect()
    assert seen == [5] * 50


# -------------------------------------------------------------------- reading
def test_staging_buffers_are_used_again(native):
    device = native.default_device()
    staging = native.opened(device).staging
    storage = Storage.allocate(40_000, device, native)
    words(native, device, storage.handle, 10_000)
    created, reused = staging.created, staging.reused
    for count in (10_000, 9_000, 8_500):
        words(native, device, storage.handle, count)
    assert (staging.created, staging.reused) == (created, reused + 3)


def test_large_reads_go_in_pieces(rt, device, monkeypatch):
    monkeypatch.setattr("numr.runtime.wgpu.staging.PIECE", 1 << 16)
    data = np.random.default_rng(1).integers(0, 256, 1_000_003, dtype=np.uint8)
    storage = Storage.allocate(data.size, device, rt)
    rt.copy_to_device(data, storage.handle, device)
    result = np.zeros_like(data)
    rt.copy_from_device(storage.handle, result, device)
    assert (result == data).all()
    event = rt.record_compute_event(device)
    result[:] = 0
    rt.copy_from_device_pipelined(storage.handle, result, device, event)
    assert (result == data).all()


SLOW = KernelText(
    """
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    var x = id.x;
    for (var i = 0u; i < 20000u; i++) { x = x * 1664525u + 1013904223u; }
    words[id.x] = x;
}
""",
    (StorageBuffer("words", "read_write"),),
)


def test_a_pipelined_read_does_not_wait_for_later_work(native):
    device = native.default_device()
    opened = native.opened(device)
    if opened.adapter.interface == "OpenGL":
        pytest.skip("OpenGL's submissions are waited for one and all")
    kernel = opened.pipelines.get(SLOW)
    count = 1 << 14
    storage = Storage.allocate(4 * count, device, native)
    buffer, _ = native.allocator(device).buffer(storage.handle, None, "test")
    slow = (kernel, [(buffer, 0, 4 * count)], b"", (count // 64, 1, 1))
    opened.queue.dispatch(*slow)  # compiled
    result = np.empty(count, np.uint32)
    native.copy_to_device(np.full(count, 7, np.uint32), storage.handle, device)
    native.copy_from_device(storage.handle, result, device)  # there is a staging buffer

    start = time.perf_counter()
    for _ in range(4):
        opened.queue.dispatch(*slow)
    opened.queue.synchronize()
    slow_time = time.perf_counter() - start

    native.copy_to_device(np.full(count, 7, np.uint32), storage.handle, device)
    event = native.record_compute_event(device)
    assert event > 0
    for _ in range(4):
        opened.queue.dispatch(*slow)
    start = time.perf_counter()
    native.copy_from_device_pipelined(storage.handle, result, device, event)
    read_time = time.perf_counter() - start
    assert (result == 7).all()  # what was there at the event
    assert read_time < slow_time / 2
    assert (words(native, device, storage.handle, count) != 7).any()


def test_events_are_numbers_of_this_device(rt, device, zeros):
    storage = zeros(16)
    first = rt.record_compute_event(device)
    add(rt, device, storage.handle, 1)
    second = rt.record_compute_event(device)
    assert 0 < first < second
    host = bytearray(4)
    rt.copy_from_device_pipelined(
        storage.handle, host, device, 0
    )  # without an event: waits for all
    assert host == b"\1\0\0\0"
    for bad in (-1, second + 1000):
        with pytest.raises(ValueError, match="no event"):
            rt.copy_from_device_pipelined(storage.handle, host, device, bad)
