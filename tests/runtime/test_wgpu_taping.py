"""Launches of graphs on WebGPU: what is recorded again, the memory that it works on, and steps that need the host."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

from numr import dtypes as dt
from numr.errors import DeviceLostError, IndexingError
from numr.ir import ops
from numr.ir.ops import Reduction
from numr.layout import Layout
from numr.runtime.graphs.prepared import Replay
from numr.runtime.graphs.recording import recording
from numr.runtime.graphs.replay import ReplayGraph, optimized
from numr.runtime.wgpu.submitting import PublicApi
from numr.runtime.wgpu.taping import Pool
from tests.runtime.wgpu_support import require_adapter, variant

pytestmark = pytest.mark.wgpu
require_adapter()

F32 = dt.float32
VARIANTS = {
    "native": {},
    "public": {"api": PublicApi},
    "uniform": {"without": ["immediates"]},
    "public-uniform": {"without": ["immediates"], "api": PublicApi},
}


def client_of(**options):
    rt = variant(**options)
    return rt.Client(rt.default_device())


@pytest.fixture(scope="module", params=VARIANTS)
def client(request):
    return client_of(**VARIANTS[request.param])


@pytest.fixture(scope="module")
def native():
    return client_of()


def upload(client, array):
    return client.from_host(np.ascontiguousarray(array), copy=True)


def binary(client, op, x, y):
    kinds = tuple(z.dtype if hasattr(z, "dtype") else type(z) for z in (x, y))
    return client.elementwise_loop(op, kinds)(x, y)


def replay_of(client, f, *inputs):
    """A function of a client and arrays, made ready; the results of the first run."""
    with recording(client, inputs) as recorder:
        results = f(recorder, *inputs)
        program = recorder.finish(results)
    return Replay(client, recorder, optimized(program, client)), results


def graph_of(client, f, *inputs):
    replay, results = replay_of(client, f, *inputs)
    return ReplayGraph(replay, inputs, results), results


def mixed(client, x):
    """Kernels of several families, one after the other."""
    y = client.sort(binary(client, ops.MULTIPLY, x, 2.0), 0, False)
    z = client.scan(Reduction.SUM, y, 0, F32)
    return [binary(client, ops.ADD, z, x), client.reduce(Reduction.MAX, z, (0,), False, F32)]


def mixed_by_hand(x):
    z = np.cumsum(np.sort(x * np.float32(2)))
    return [z + x, z.max()]


def write(client, target, values):
    client.assign(target, upload(client, values))


def whole_numbers(seed, size=50):
    return np.random.default_rng(seed).integers(-9, 9, size).astype(np.float32)


# ---------------------------------------------------------------------- launches
def test_launches_work_on_new_values(client):
    x = upload(client, whole_numbers(0))
    graph, results = graph_of(client, mixed, x)
    for seed in range(1, 6):
        write(client, x, whole_numbers(seed))
        graph.launch()
        for got, expected in zip(results, mixed_by_hand(whole_numbers(seed)), strict=True):
            np.testing.assert_array_equal(client.to_host(got), expected)


def test_many_launches_in_one_batch(client):
    def f(client, x):
        client.assign(x, binary(client, ops.ADD, client.sort(x, 0, True), 1.0))
        return []

    x = upload(client, whole_numbers(0))
    graph, _ = graph_of(client, f, x)
    expected = np.sort(whole_numbers(0))[::-1]
    for _ in range(40):
        graph.launch()
    np.testing.assert_array_equal(client.to_host(x), expected + 41)


def test_a_launch_is_one_submission(native):
    x = upload(native, whole_numbers(0))
    graph, _ = graph_of(native, mixed, x)
    queue = native.context.opened.queue
    graph.launch()
    native.synchronize()
    dispatches, submissions = queue.dispatches, queue.submissions
    graph.launch()
    count = queue.dispatches - dispatches
    assert count > 4
    assert queue.submissions == submissions
    native.synchronize()
    assert queue.submissions == submissions + 1
    graph.launch()
    native.synchronize()
    assert queue.dispatches == dispatches + 2 * count


def test_a_launch_calls_no_family(native, monkeypatch):
    x = upload(native, whole_numbers(0))
    graph, results = graph_of(native, mixed, x)
    graph.launch()

    def fail(*_):
        raise AssertionError("a launch came to a family")

    for name in ("sort", "scan", "reduce", "fused", "elementwise_into", "assign", "empty"):
        monkeypatch.setattr(type(native), name, fail)
    monkeypatch.setattr(type(native.context), "fresh", fail)
    graph.launch()
    monkeypatch.undo()
    np.testing.assert_array_equal(native.to_host(results[0]), mixed_by_hand(whole_numbers(0))[0])


def test_bind_groups_are_made_once(native, monkeypatch):
    x = upload(native, whole_numbers(0))
    graph, _ = graph_of(native, mixed, x)
    for _ in range(2):
        graph.launch()
        native.synchronize()
    api = native.context.opened.api

    def fail(*_):
        raise AssertionError("a bind group was made again")

    monkeypatch.setattr(type(api), "_new_group", fail)
    graph.launch()
    native.context.opened.queue.flush()
    monkeypatch.undo()
    native.synchronize()


def test_long_work_is_submitted_in_parts(native, monkeypatch):
    monkeypatch.setattr("numr.runtime.wgpu.taping.BATCH_BYTES", 1000)
    monkeypatch.setattr("numr.runtime.wgpu.queue.BATCH_BYTES", 1000)
    x = upload(native, whole_numbers(0))
    graph, results = graph_of(native, mixed, x)
    graph.launch()
    native.synchronize()
    before = native.context.opened.queue.submissions
    graph.launch()
    native.synchronize()
    assert native.context.opened.queue.submissions > before + 1
    np.testing.assert_array_equal(native.to_host(results[0]), mixed_by_hand(whole_numbers(0))[0])


# ------------------------------------------------------------------------ memory
def poison(client):
    """Write into all memory that is free, and return what has it now."""
    allocator = client.allocator
    blocks = [(block.capacity, len(free)) for free in allocator._free.values() for block in free]
    taken = [client.empty((capacity,), dt.uint8) for capacity, _ in blocks]
    for array in taken:
        client.assign(array, client.full((), 255, dt.uint8))
    return taken


def several(client, x):
    n = x.shape[0]
    square = client.matmul(client.reshape(x, (1, n)), client.reshape(x, (n, 1)))
    return [
        *mixed(client, x),
        square,
        client.fft(client.cast(x, dt.complex64), "forward", n),
        client.argsort(x, 0, False),
        client.concat([x, client.scan(Reduction.PROD, x, 0, F32)], 0),
        client.argreduce(Reduction.MAX, x, 0, False),
    ]


def test_nobody_else_gets_the_memory_of_a_graph(native):
    for size in (50, 331):  # the latter's transform is a convolution
        x = upload(native, np.random.default_rng(0).normal(size=size).astype(np.float32))
        graph, results = graph_of(native, several, x)
        graph.launch()
        gc.collect()
        for seed in (1, 2):
            poisoned = poison(native)
            assert poisoned
            # Tables may be dropped at any time.
            native._tables._kept.clear()
            gc.collect()
            poisoned += poison(native)
            values = np.random.default_rng(seed).normal(size=size).astype(np.float32)
            write(native, x, values)
            graph.launch()
            got = [native.to_host(y) for y in results]
            expected = [native.to_host(y) for y in several(native, upload(native, values))]
            for a, b in zip(got, expected, strict=True):
                np.testing.assert_array_equal(a, b)


def test_a_graph_gives_all_memory_back(native):
    def use():
        x = upload(native, whole_numbers(0))
        graph, results = graph_of(native, several, x)
        graph.launch()
        graph.launch()
        replay, _ = replay_of(native, mixed, x)
        for _ in range(4):
            results = replay.run([x])
        return results

    use()
    gc.collect()
    before = native.allocator.stats()
    for _ in range(5):
        kept = use()
    gc.collect()
    assert [y.shape for y in kept] == [(50,), ()]
    del kept
    after = native.allocator.stats()
    assert after.active_bytes == before.active_bytes
    assert after.active_allocations == before.active_allocations


def test_memory_of_a_tape_serves_its_later_work(native):
    def chain(client, x):
        for _ in range(30):
            x = client.sort(x, 0, False)
        return [x]

    x = upload(native, np.zeros(10000, np.float32))
    graph, _ = graph_of(native, chain, x)
    before = native.allocator.stats().active_bytes
    graph.launch()
    # Two arrays of 40 KB, and what one call needs besides.
    assert native.allocator.stats().active_bytes - before < 12 * 40000


def test_a_pool(native):
    allocator = native.allocator
    gc.collect()
    before = allocator.stats().active_allocations
    context = native.context
    pool = Pool(context)
    layout = Layout((10,), (1,))
    a = pool.fresh(layout, 40, F32)
    handle = a.storage.handle
    del a
    b = pool.fresh(layout, 40, F32)
    assert b.storage.handle == handle
    assert b.storage.size == 40
    c = pool.fresh(layout, 40, F32)
    assert c.storage.handle != handle
    assert allocator.stats().active_allocations == before + 2
    pool.let_go([c.storage.handle])
    del c
    assert allocator.stats().active_allocations == before + 1
    # What is in use outlives the pool.
    del pool
    assert allocator.stats().active_allocations == before + 1
    del b
    assert allocator.stats().active_allocations == before


# -------------------------------------------------------------------------- host
def picking(client, x, i):
    """A gather, which reads on the host whether its indices are in range, between other work."""
    y = binary(client, ops.MULTIPLY, client.sort(x, 0, False), 3.0)
    z = client.gather(y, [i])
    return [client.scan(Reduction.SUM, z, 0, F32), client.sort(z, 0, True)]


def picking_by_hand(x, i):
    z = (np.sort(x) * np.float32(3))[i]
    return [np.cumsum(z), np.sort(z)[::-1]]


def test_steps_that_read_on_the_host(client):
    x, i = upload(client, whole_numbers(0)), upload(client, np.arange(20, dtype=np.int32))
    graph, results = graph_of(client, picking, x, i)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        picks = rng.integers(0, 50, 20).astype(np.int32)
        write(client, x, whole_numbers(seed))
        write(client, i, picks)
        graph.launch()
        for got, expected in zip(results, picking_by_hand(whole_numbers(seed), picks), strict=True):
            np.testing.assert_array_equal(client.to_host(got), expected)


@pytest.mark.parametrize("launches", [0, 1, 2])
def test_bad_indices_raise_at_each_launch(native, launches):
    x, i = upload(native, whole_numbers(0)), upload(native, np.arange(20, dtype=np.int32))
    graph, results = graph_of(native, picking, x, i)
    for _ in range(launches):
        graph.launch()
    for _ in range(2):
        write(native, i, np.full(20, 50, np.int32))
        with pytest.raises(
            IndexingError, match="index 50 is out of bounds for axis 0 with size 50"
        ):
            graph.launch()
    write(native, i, np.arange(20, dtype=np.int32)[::-1])
    graph.launch()
    expected = picking_by_hand(whole_numbers(0), np.arange(20)[::-1])
    np.testing.assert_array_equal(native.to_host(results[0]), expected[0])
    assert native.context.pool is None
    assert native.context.taping.acquire(blocking=False)
    native.context.taping.release()


def test_singular_matrices_raise_at_each_launch(native):
    def f(client, a):
        return [client.inv(binary(client, ops.MULTIPLY, a, 2.0))]

    good = np.eye(3, dtype=np.float32) * 4
    a = upload(native, good)
    graph, results = graph_of(native, f, a)
    for _ in range(2):
        write(native, a, good)
        graph.launch()
        np.testing.assert_array_equal(native.to_host(results[0]), np.eye(3) / 8)
        write(native, a, np.zeros((3, 3), np.float32))
        with pytest.raises(np.linalg.LinAlgError):
            graph.launch()


def test_scattering(native):
    def f(client, x, i):
        y = client.copy(x)
        client.scatter(y, [i], binary(client, ops.ADD, client.gather(x, [i]), 100.0))
        return [client.sort(y, 0, False)]

    x, i = upload(native, whole_numbers(0)), upload(native, np.arange(5, dtype=np.int64))
    graph, results = graph_of(native, f, x, i)
    for seed in range(3):
        picks = np.random.default_rng(seed).permutation(50)[:5]
        write(native, i, picks)
        graph.launch()
        expected = whole_numbers(0)
        expected[picks] += 100
        np.testing.assert_array_equal(native.to_host(results[0]), np.sort(expected))


# --------------------------------------------------------------------------- runs
def test_runs_on_other_inputs_into_new_outputs(client):
    x = upload(client, whole_numbers(0))
    replay, _ = replay_of(client, mixed, x)
    kept = []
    for seed in range(6):
        values = whole_numbers(seed)
        results = replay.run([upload(client, values)])
        kept.append((values, results))
    assert len(replay._tapes) == 1
    for values, results in kept:
        for got, expected in zip(results, mixed_by_hand(values), strict=True):
            np.testing.assert_array_equal(client.to_host(got), expected)
    handles = [y.storage.handle for _, results in kept for y in results]
    assert len(set(handles)) == len(handles)


def test_few_records_are_made_anew_for_each_run(native):
    def chain(client, x):
        for _ in range(20):
            x = client.scan(Reduction.SUM, x, 0, F32)
        return [x]

    x = upload(native, np.zeros(10, np.float32))
    replay, _ = replay_of(native, chain, x)
    for _ in range(3):
        replay.run([x])
    (run,) = replay._tapes.values()
    (segment,) = run._taped._parts
    assert len(segment._records) == 20
    assert len(segment._templates) == 2


def test_runs_with_steps_that_read_on_the_host(native):
    x, i = upload(native, whole_numbers(0)), upload(native, np.arange(20, dtype=np.int32))
    replay, _ = replay_of(native, picking, x, i)
    for seed in range(5):
        picks = np.random.default_rng(seed).integers(0, 50, 20).astype(np.int32)
        values = whole_numbers(seed)
        results = replay.run([upload(native, values), upload(native, picks)])
        for got, expected in zip(results, picking_by_hand(values, picks), strict=True):
            np.testing.assert_array_equal(native.to_host(got), expected)
    with pytest.raises(IndexingError):
        replay.run([x, upload(native, np.full(20, -51, np.int32))])


def test_inputs_are_updated_in_place(native):
    def f(client, x):
        client.assign(x, binary(client, ops.ADD, x, 1.0))
        return [x, binary(client, ops.MULTIPLY, x, 2.0)]

    replay, _ = replay_of(native, f, upload(native, whole_numbers(0)))
    for seed in range(5):
        x = upload(native, whole_numbers(seed))
        same, doubled = replay.run([x])
        np.testing.assert_array_equal(native.to_host(x), whole_numbers(seed) + 1)
        np.testing.assert_array_equal(native.to_host(same), whole_numbers(seed) + 1)
        np.testing.assert_array_equal(native.to_host(doubled), 2 * whole_numbers(seed) + 2)
        assert same.storage.handle != x.storage.handle


def test_inputs_that_start_elsewhere(native):
    memory = upload(native, np.arange(400, dtype=np.float32))

    def window(start):
        return native.wrap(memory.storage, Layout((50,), (1,), start), F32)

    replay, _ = replay_of(native, mixed, window(0))
    for start in [0, 0, 1, 1, 64, 64, *range(2, 12), 300, 300, 300, 64]:
        results = replay.run([window(start)])
        expected = mixed_by_hand(np.arange(start, start + 50, dtype=np.float32))
        np.testing.assert_array_equal(native.to_host(results[0]), expected[0])
        assert len(replay._tapes) <= 4
    assert ((300, 1600),) in replay._tapes


def test_an_input_that_is_a_captured_array(native):
    weight = upload(native, whole_numbers(1))

    def f(client, x):
        client.assign(x, binary(client, ops.ADD, x, weight))
        return [client.sort(x, 0, False)]

    replay, _ = replay_of(native, f, upload(native, whole_numbers(0)))
    for _ in range(3):
        replay.run([upload(native, whole_numbers(0))])
    (sorted_,) = replay.run([weight])
    np.testing.assert_array_equal(native.to_host(weight), 2 * whole_numbers(1))
    np.testing.assert_array_equal(native.to_host(sorted_), np.sort(2 * whole_numbers(1)))


def test_a_tape_does_not_keep_its_first_inputs_and_outputs(native):
    replay, _ = replay_of(native, mixed, upload(native, whole_numbers(0)))
    gc.collect()
    before = native.allocator.stats().active_bytes
    x = upload(native, np.zeros(50, np.float32))
    results = replay.run([x])
    replay.run([x])
    del x, results
    gc.collect()
    held = native.allocator.stats().active_bytes - before
    (run,) = replay._tapes.values()
    assert held == sum(owned.size for owned in run._taped._tape._pool._owned.values())


# ------------------------------------------------------------------------ threads
def test_first_launches_in_several_threads(native):
    inputs = [upload(native, whole_numbers(seed)) for seed in range(6)]
    graphs = [graph_of(native, mixed, x) for x in inputs]
    barrier = threading.Barrier(len(graphs))
    wrong = []

    def work(seed):
        graph, results = graphs[seed]
        barrier.wait()
        for _ in range(5):
            graph.launch()
            expected = mixed_by_hand(whole_numbers(seed))
            if not np.array_equal(native.to_host(results[0]), expected[0]):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(len(graphs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# ---------------------------------------------------------------------------- loss
def test_a_graph_ends_with_its_device():
    rt = variant()
    device = rt.default_device()
    client = rt.Client(device)
    x = upload(client, whole_numbers(0))
    graph, _ = graph_of(client, mixed, x)
    graph.launch()
    opened = client.context.opened
    client.allocator.close(forked=False)
    assert client.context.opened is not opened
    with pytest.raises(DeviceLostError):
        graph.launch()
    again, results = graph_of(client, mixed, upload(client, whole_numbers(1)))
    again.launch()
    again.launch()
    np.testing.assert_array_equal(client.to_host(results[0]), mixed_by_hand(whole_numbers(1))[0])
