"""CUDA graphs of captured programs: what is one, what lies between, and what a failure leaves behind."""

from __future__ import annotations

import gc
import threading
import warnings

import numpy as np
import pytest

import numr
from numr.errors import IndexingError
from tests.graph.conftest import same

pytestmark = pytest.mark.skipif("cuda" not in numr.available(), reason="there is no GPU")


@pytest.fixture
def xp():
    return numr.namespace("cuda")


@pytest.fixture
def client(xp):
    return xp.zeros(1)._client


def numbers(xp, *shape, seed=0):
    values = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    return xp.asarray(values)


def scans(xp, x):
    """Steps that are no elementwise work, and some that are."""
    for i in range(6):
        x = xp.cumulative_sum(x * 0.5) - xp.sum(x) + float(i)
    return x


def launched(graph, times=3):
    for _ in range(times):
        graph.launch()
    return graph.graph._bound._graph


def test_a_program_becomes_one_graph_at_its_second_launch(xp):
    x = numbers(xp, 1000)
    graph = numr.capture(lambda x: scans(xp, x), x)
    own = launched(graph, 1)
    assert own.captured is None
    for step in range(4):
        x[...] = numbers(xp, 1000, seed=step)
        graph.launch()
        assert same(graph.outputs[0], scans(xp, x))
        assert own.captured == 1


def test_one_kernel_is_a_graph_too(xp):
    x = numbers(xp, 10)
    graph = numr.capture(lambda x: x * 2 + 1, x)
    assert launched(graph).captured == 1
    x[...] = numbers(xp, 10, seed=1)
    graph.launch()
    assert same(graph.outputs[0], x * 2 + 1)


def test_no_work_is_no_graph(xp):
    assert launched(numr.capture(lambda x: None, numbers(xp, 10))) is None


def test_steps_of_the_host_lie_between(xp):
    def f(x, indices):
        y = xp.sort(xp.cumulative_sum(x) * 2)
        y = xp.take(y, indices) + xp.flip(x)
        square = xp.reshape(y, (20, 20))
        product = xp.cumulative_sum(square @ square, axis=0)
        return xp.argsort(product, axis=1), xp.sum(product, axis=0)

    x = numbers(xp, 400)
    indices = xp.asarray(np.random.default_rng(5).integers(0, 400, 400))
    graph = numr.capture(f, x, indices)
    own = launched(graph)
    assert own.captured == 3
    for step in range(3):
        x[...] = numbers(xp, 400, seed=step)
        graph.launch()
        for got, expected in zip(graph.outputs, f(x, indices), strict=True):
            assert same(got, expected)
    indices[7] = 400
    with pytest.raises(IndexingError):
        graph.launch()
    indices[7] = -400
    graph.launch()
    assert same(graph.outputs[1], f(x, indices)[1])


def test_updates_in_place_happen_once_for_each_launch(xp):
    total = xp.zeros(50, dtype=xp.float32)

    def f(x):
        for _ in range(5):
            total[...] = xp.cumulative_sum(total + x)
        return total * 2

    x = xp.ones(50, dtype=xp.float32)
    graph = numr.capture(f, x)
    launched(graph, 4)
    got = total.to_numpy().copy()
    total[...] = xp.zeros(50, dtype=xp.float32)
    for _ in range(5):
        f(x)
    assert np.array_equal(got, total.to_numpy())


def test_memory_goes_back_with_the_graph(xp, client):
    x = numbers(xp, 3000)
    launched(numr.capture(lambda x: scans(xp, x), x))  # what is kept for the device
    gc.collect()
    before = client.allocator.stats().active_bytes
    for _ in range(5):
        graph = numr.capture(lambda x: scans(xp, x), x)
        launched(graph)
        waste = [xp.full((3000,), float(i), dtype=xp.float32) for i in range(20)]
        graph.launch()
        assert same(graph.outputs[0], scans(xp, x))
        del graph, waste
    gc.collect()
    assert client.allocator.stats().active_bytes == before


def test_a_stream_of_the_caller(xp):
    x = numbers(xp, 1000)
    graph = numr.capture(lambda x: scans(xp, x), x)
    stream = type(x._client.context.stream)(non_blocking=True)
    with numr.namespace("cuda").stream(stream):
        launched(graph)
        assert same(graph.outputs[0], scans(xp, x))
    x[...] = numbers(xp, 1000, seed=1)
    graph.launch()
    assert same(graph.outputs[0], scans(xp, x))


def test_other_threads_go_on(xp):
    expected = scans(xp, numbers(xp, 500)).to_numpy()
    stop, wrong = threading.Event(), []

    def work():
        while not stop.is_set():
            got = scans(xp, numbers(xp, 500)).to_numpy()
            if not np.array_equal(got, expected):
                wrong.append(got)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for seed in range(20):
            x = numbers(xp, 700, seed=seed)
            graph = numr.capture(lambda x: scans(xp, x), x)
            assert launched(graph).captured == 1
            assert same(graph.outputs[0], scans(xp, x))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not wrong


# ----------------------------------------------------------------------- failures
def test_what_cannot_be_captured_is_done_step_by_step(xp, client, monkeypatch):
    double = client.capturing()
    original = type(client).scan

    def scan(self, kind, array, axis, dtype):
        if self is double.client and array.size == 999:
            # No stream can be waited for while it captures, which makes the capture invalid.
            self.context.stream.synchronize()
        return original(self, kind, array, axis, dtype)

    monkeypatch.setattr(type(client), "scan", scan)
    x, y = numbers(xp, 999), numbers(xp, 1000)
    launched(numr.capture(lambda x: scans(xp, x), y))
    gc.collect()
    before = client.allocator.stats().active_bytes
    for _ in range(25):
        graph = numr.capture(lambda x: scans(xp, x), x)
        with pytest.warns(RuntimeWarning, match="step by step"):
            own = launched(graph, 4)
        assert own.captured is None
        assert same(graph.outputs[0], scans(xp, x))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            graph.launch()
        assert same(graph.outputs[0], scans(xp, x))
        del graph, own
    gc.collect()
    assert client.allocator.stats().active_bytes == before
    graph = numr.capture(lambda x: scans(xp, x), y)
    assert launched(graph).captured == 1
    assert same(graph.outputs[0], scans(xp, y))


# --------------------------------------------------------------------------- jit
def test_jitted_programs_of_many_steps_run_on_memory_of_their_own(xp):
    jitted = numr.jit(lambda x: scans(xp, x))
    kept = []
    for seed in range(5):
        x = numbers(xp, 600, seed=seed)
        kept.append((jitted(x), scans(xp, x)))
    ((replay, _),) = jitted._graphs.values()
    assert replay.staged._bound._graph.captured == 1
    assert all(same(got, expected) for got, expected in kept)


def test_jitted_updates_in_place(xp):
    def f(x, y):
        for _ in range(6):
            x[...] = xp.cumulative_sum(x + y)
            y[1:3] = xp.cumulative_sum(y[3:5])
        return x[::2] * 2

    jitted = numr.jit(f)
    x, y = numbers(xp, 40), numbers(xp, 40, seed=1)
    x2, y2 = numbers(xp, 40), numbers(xp, 40, seed=1)
    for _ in range(4):
        got, expected = jitted(x, y), f(x2, y2)
        assert same(got, expected)
        assert same(x, x2)
        assert same(y, y2)
        x *= 1e-3
        x2 *= 1e-3


# --------------------------------------------------------------------- layouts
def test_several_results_of_operands_in_other_orders(xp):
    def f(x, y, z):
        both = xp.permute_dims(x, (1, 0)) * y + z
        return both, both > 0, xp.astype(both, xp.float64) * 0.5

    x, y, z = numbers(xp, 70, 50), numbers(xp, 50, 70, seed=1), numbers(xp, 50, 1, seed=2)
    graph = numr.capture(f, x, y, z)
    assert len(graph.nodes) == 1
    for seed in range(3):
        x[...] = numbers(xp, 70, 50, seed=seed)
        graph.launch()
        for got, expected in zip(graph.outputs, f(x, y, z), strict=True):
            assert same(got, expected)


def test_more_axes_than_arguments_hold(xp):
    x = numbers(xp, *[2] * 10)
    order = (1, 3, 5, 7, 9, 0, 2, 4, 6, 8)

    def f(x):
        parts = [xp.permute_dims(x, order[i:] + order[:i]) for i in range(10)]
        total = sum(parts[1:], start=parts[0])
        return total * 2, xp.sum(total * parts[3], axis=(1, 4, 6))

    graph = numr.capture(f, x)
    graph.launch()
    for got, expected in zip(graph.outputs, f(x), strict=True):
        assert same(got, expected)
