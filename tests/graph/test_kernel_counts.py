"""How many kernels programs become, and what new shapes and numbers cost."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import numr
from numr.errors import CaptureError, IndexingError
from tests.graph.conftest import close, same


def numbers(xp, *shape, seed=0):
    values = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    return xp.asarray(values)


def chain(xp, a, b, c):
    return xp.exp(-((a - b) ** 2) / (2 * c)) * xp.sqrt(c) + xp.sin(a)


def softmax(xp, x):
    e = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True)


def softmax_and_maximum(xp, x):
    m = xp.max(x, axis=-1, keepdims=True)
    e = xp.exp(x - m)
    return e / xp.sum(e, axis=-1, keepdims=True), m


def layer_norm(xp, x):
    centered = x - xp.mean(x, axis=-1, keepdims=True)
    variance = xp.mean(centered * centered, axis=-1, keepdims=True)
    return centered / xp.sqrt(variance + 1e-5)


def log_sum_exp(xp, x):
    m = xp.max(x, axis=-1)
    return m + xp.log(xp.sum(xp.exp(x - m[:, None]), axis=-1))


#: What a device may take on: nothing in particular, computing again instead of storing, and rows with all that is done
#: with them.
MODES = {
    "plain": {
        "fusion_recomputes": False,
        "fusion_epilogues": False,
        "fuses_rows": lambda *_: False,
    },
    "recomputing": {
        "fusion_recomputes": True,
        "fusion_epilogues": False,
        "fuses_rows": lambda *_: False,
    },
    "rows": {"fusion_recomputes": True, "fusion_epilogues": True, "fuses_rows": lambda *_: True},
}
#: Programs of one array, with the numbers of kernels and calls that they are in these modes.
COUNTS = {
    "sum of squares": (lambda xp, x: xp.sum(x * x), 1, 1, 1),
    "mean": (lambda xp, x: xp.mean(x), 2, 2, 1),
    "mean of columns": (lambda xp, x: xp.mean(x, axis=0), 2, 2, 1),
    "norm": (lambda xp, x: xp.sqrt(xp.sum(x * x)), 2, 2, 1),
    "softmax": (softmax, 4, 3, 1),
    "layer norm": (layer_norm, 5, 5, 1),
    "log sum exp": (log_sum_exp, 3, 3, 1),
    "softmax and a maximum": (softmax_and_maximum, 4, 3, 1),
    "softmax and another maximum": (
        lambda xp, x: (softmax(xp, x), xp.max(x, axis=1), xp.max(x, axis=1)),
        5,
        4,
        2,
    ),
    "one mean twice": (lambda xp, x: (x - xp.mean(x)) / xp.mean(x, keepdims=True), 3, 3, 1),
    "along both axes": (
        lambda xp, x: x / xp.sum(x, axis=1, keepdims=True) / xp.sum(x, axis=0),
        3,
        3,
        2,
    ),
    "two results": (lambda xp, x: (x * 2 + 1, xp.where(x > 0, x, -x)), 2, 2, 2),
    "a result of another": (lambda xp, x: (x * 2, (x * 2 + 1) * x), 1, 1, 1),
    "through a cast": (
        lambda xp, x: xp.astype(xp.astype(x, xp.int32) + 1, xp.float32) * x,
        1,
        1,
        1,
    ),
    "through a view": (lambda xp, x: xp.permute_dims(x * 2, (1, 0)) + 1, 1, 1, 1),
    "update in place": (lambda xp, x: x.__iadd__(xp.abs(x) * 2), 1, 1, 1),
    "filled": (lambda xp, x: xp.full(x.shape, 2.0, dtype=xp.float32) * x, 1, 1, 1),
}


def test_the_chain_is_one_kernel(xp):
    a, b, c = (numbers(xp, 20, 30, seed=i) for i in range(3))
    graph = numr.capture(lambda a, b, c: chain(xp, a, b, c), a, b, abs(c) + 1)
    assert len(graph.nodes) == 1
    assert graph.nbytes == 0


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", COUNTS)
def test_counts(xp, client, monkeypatch, name, mode):
    for attribute, value in MODES[mode].items():
        monkeypatch.setattr(client, attribute, value)
    f, *counts = COUNTS[name]
    x = numbers(xp, 12, 20)
    graph = numr.capture(lambda x: f(xp, x), x)
    assert len(graph.nodes) == dict(zip(MODES, counts, strict=True))[mode], str(graph)
    expected = f(xp, numbers(xp, 12, 20))
    if name != "update in place":
        graph.launch()
    for got, right in zip(
        graph.outputs, expected if isinstance(expected, tuple) else [expected], strict=True
    ):
        assert close(got, right)


#: Programs over rows, columns and whole arrays, with the most kernels that they are on a GPU.
ON_GPUS = {
    "softmax": (softmax, 1),
    "layer norm": (layer_norm, 1),
    "log sum exp": (log_sum_exp, 1),
    "mean of rows": (lambda xp, x: xp.mean(x, axis=1, keepdims=True), 1),
    "variance of rows": (lambda xp, x: xp.var(x, axis=1), 1),
    "deviation of columns": (lambda xp, x: xp.std(x, axis=0, correction=1), 2),
    "mean": (lambda xp, x: xp.mean(x), 1),
    "variance": (lambda xp, x: xp.var(x), 2),
    "norm": (lambda xp, x: xp.sqrt(xp.sum(x * x)), 1),
    "standardized": (lambda xp, x: (x - xp.mean(x)) / xp.std(x), 3),
}


@pytest.mark.parametrize("name", ON_GPUS)
def test_counts_on_gpus(xp, client, name):
    f, most = ON_GPUS[name]
    if not client.fusion_epilogues or client.runtime.name() == "cpu":
        pytest.skip(f"{client.device} has no kernels for rows")
    x = numbers(xp, 300, 2000)
    graph = numr.capture(lambda x: f(xp, x), x)
    assert len(graph.nodes) <= most, str(graph)
    x[...] = numbers(xp, 300, 2000, seed=1)
    graph.launch()
    assert same(graph.outputs[0], f(xp, x))


def test_long_programs_are_split(xp, client):
    def f(x):
        for i in range(300):
            x = x * 0.5 + float(i % 7)
        return x

    x = numbers(xp, 30)
    graph = numr.capture(f, x)
    assert len(graph.nodes) == -(-600 // client.fusion_steps)
    graph.launch()
    assert same(graph.outputs[0], f(x))


def test_programs_of_many_arrays_are_split(xp, client):
    count = 2 * client.fusion_arrays + 3
    arrays = [numbers(xp, 11, seed=i) for i in range(count)]

    def f(*arrays):
        return sum(arrays[1:], start=arrays[0])

    graph = numr.capture(f, *arrays)
    assert 2 <= len(graph.nodes) <= 4
    graph.launch()
    assert same(graph.outputs[0], f(*arrays))


# ------------------------------------------------------------------------ compiling
def kernels_of(client):
    """What tells how many kernels a device has made."""
    name = client.runtime.name()
    if name == "wgpu":
        return lambda: client.context.opened.pipelines.misses
    if name == "cuda":
        counters = client.context.compiler.counters
        return lambda: counters.compiled + counters.loaded
    pytest.skip(f"{client.device} does not count kernels")


def test_new_shapes_and_numbers_compile_nothing(xp, client):
    made = kernels_of(client)

    def f(x, scale):
        y = x * scale
        return softmax(xp, y), layer_norm(xp, y), xp.sum(y * y, axis=0)

    def run(seed):
        rng = np.random.default_rng(seed)
        rows, columns = (int(n) for n in rng.integers(2, 60, 2))
        scale = float(rng.normal())
        x = numbers(xp, rows, columns)
        graph = numr.capture(lambda x: f(x, scale), x)
        graph.launch()
        for got, expected in zip(graph.outputs, f(x, scale), strict=True):
            assert close(got, expected)

    # There are kernels for lengths that are multiples of four, and for others.
    for seed in range(60):
        run(seed)
    before = made()
    for seed in range(60, 160):
        run(seed)
    assert made() == before


# --------------------------------------------------------------------------- memory
def test_two_graphs_by_turns_with_eager_work_between(xp):
    x, y = numbers(xp, 40, 30), numbers(xp, 30, 20, seed=1)
    f = lambda x: xp.sort(softmax(xp, x), axis=0)
    g = lambda y: xp.matmul(y, xp.permute_dims(y, (1, 0))) - xp.cumulative_sum(y, axis=0)[:, :1]
    one, two = numr.capture(f, x), numr.capture(g, y)
    for step in range(5):
        x[...] = numbers(xp, 40, 30, seed=step)
        one.launch()
        waste = [xp.full((40, 30), float(i), dtype=xp.float32) * 2 for i in range(12)]
        y[...] = numbers(xp, 30, 20, seed=10 + step)
        two.launch()
        del waste
        waste = [xp.full((30, 30), np.nan, dtype=xp.float32) for _ in range(12)]
        assert close(one.outputs[0], f(x))
        assert close(two.outputs[0], g(y))
        assert len(waste) == 12


def test_fifty_failures_leave_nothing_behind(xp, client):
    x, i = numbers(xp, 500), xp.asarray(np.arange(9, dtype=np.int32))
    bad = xp.asarray(np.full(9, 500, np.int32))
    graph = numr.capture(lambda x, i: xp.sort(xp.take(softmax(xp, x), i)), x, i)
    jitted = numr.jit(lambda x, i: xp.sort(xp.take(x * 2, i)))
    jitted(x, i)
    good = xp.asarray(i, copy=True)

    def fail():
        with pytest.raises(CaptureError):
            numr.capture(lambda x: float(xp.sum(xp.sort(softmax(xp, x)))), x)
        i[...] = bad
        with pytest.raises(IndexingError):
            graph.launch()
        with pytest.raises(IndexingError):
            jitted(x, i)
        i[...] = good

    fail()
    gc.collect()
    before = client.allocator.stats()
    for _ in range(50):
        fail()
    gc.collect()
    after = client.allocator.stats()
    assert after.active_bytes == before.active_bytes
    assert after.active_allocations == before.active_allocations
    for _ in range(2):
        graph.launch()
        assert close(graph.outputs[0], xp.sort(xp.take(softmax(xp, x), i)))
        assert same(jitted(x, i), xp.sort(xp.take(x * 2, i)))
