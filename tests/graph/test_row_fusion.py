"""What becomes one node of rows, and what must not: memory that changes, other rows, and results that others read."""

from __future__ import annotations

import numpy as np
import pytest

import numr
from tests.graph.conftest import close, same


@pytest.fixture(autouse=True)
def _rows(client, monkeypatch):
    """The runtime does all rows that it is given."""
    monkeypatch.setattr(client, "fusion_epilogues", True)
    monkeypatch.setattr(client, "fuses_rows", lambda *_: True)


def numbers(xp, *shape, seed=0):
    values = np.random.default_rng(seed).integers(-8, 9, shape).astype(np.float32) / 4
    return xp.asarray(values)


def check(f, *inputs, nodes=None):
    """Compare a graph with eager code, before and after its inputs have changed."""
    eager = [x.copy() for x in inputs]
    graph = numr.capture(f, *inputs)
    if nodes is not None:
        assert len(graph.nodes) == nodes, str(graph)
    for _ in range(3):
        expected = f(*eager)
        for got, right in zip(
            graph.outputs, expected if isinstance(expected, tuple) else (expected,), strict=True
        ):
            assert same(got, right), str(graph)
        for x, y in zip(inputs, eager, strict=True):
            assert same(x, y), str(graph)
            x *= -2
            y *= -2
        graph.launch()
    return graph


def test_memory_that_changes_between(xp):
    def f(x):
        total = xp.sum(x, axis=1, keepdims=True)
        x += 1.0
        return x - total

    check(f, numbers(xp, 6, 8))

    def g(x):
        total = xp.sum(x, axis=1, keepdims=True)
        y = x - total
        x[...] = y * 2
        return y + xp.sum(x, axis=1, keepdims=True)

    check(g, numbers(xp, 6, 8))


def test_results_that_change_later(xp):
    def f(x):
        largest = xp.max(x, axis=1, keepdims=True)
        y = x - largest
        largest += 1.0
        return y * largest, largest

    check(f, numbers(xp, 6, 8))


def test_a_result_within_memory_that_is_read(xp):
    def f(x):
        x[...] = x - xp.max(x, axis=1, keepdims=True)
        return x * 2

    check(f, numbers(xp, 6, 8))

    def g(x):
        x[:, :1] = xp.sum(x, axis=1, keepdims=True) * 2
        return x - xp.max(x, axis=1, keepdims=True)

    check(g, numbers(xp, 6, 8))


def test_values_that_others_read(xp):
    def f(x):
        total = xp.sum(x, axis=1, keepdims=True)
        y = x * total
        return y - xp.max(y, axis=1, keepdims=True), total, xp.sort(y, axis=1)

    graph = check(f, numbers(xp, 6, 8))
    assert len(graph.nodes) == 2


def test_rows_of_one_shape_along_two_axes(xp):
    x = numbers(xp, 8, 8)
    check(lambda x: x - xp.sum(x, axis=0) - xp.sum(x, axis=1), x)
    check(lambda x: x - xp.sum(x, axis=1)[:, None] * xp.sum(x, axis=0)[None, :], x)
    # The sums of rows, one for each column: no value of the rows.
    check(lambda x: x - xp.sum(x, axis=1), x)
    check(lambda x: x - xp.sum(x, axis=1, keepdims=True)[::-1], x)


def test_other_rows_of_a_result(xp):
    def f(x):
        total = xp.sum(x, axis=1, keepdims=True)
        return x[1:] - total[:-1], x[:-1] + total[:-1]

    check(f, numbers(xp, 7, 5))


def test_reductions_that_lie_otherwise(xp):
    for view in (
        lambda x: xp.permute_dims(x, (1, 0)),
        lambda x: xp.flip(x, axis=1),
        lambda x: x[:, ::2],
        lambda x: xp.broadcast_to(x[:1, :], x.shape),
        lambda x: xp.broadcast_to(x[:, :1], x.shape),
    ):

        def f(x, view=view):
            y = view(x)
            return y - xp.sum(y, axis=1, keepdims=True)

        check(f, numbers(xp, 6, 8))


def test_shared_operands_and_scalars(xp):
    def f(x, w, b, s):
        c = x - xp.mean(x, axis=-1, keepdims=True)
        v = xp.mean(c * c, axis=-1, keepdims=True)
        return c / xp.sqrt(v + s) * w + b

    graph = check(
        f, numbers(xp, 6, 8), numbers(xp, 8), numbers(xp, 6, 1), abs(numbers(xp)) + 0.25, nodes=1
    )
    assert "of each row" in str(graph)


def test_several_reductions_in_one_sweep(xp):
    def f(x):
        low, high = xp.min(x, axis=1, keepdims=True), xp.max(x, axis=1, keepdims=True)
        return (x - low) / (high - low + 1), xp.any(x > 1, axis=1), xp.all(x < 1.5, axis=1)

    check(f, numbers(xp, 6, 8))


def test_three_axes(xp):
    x = numbers(xp, 3, 4, 5)
    for axis in (-1, (1, 2), (0, 1, 2), 0, (0, 2), 1):

        def f(x, axis=axis):
            centered = x - xp.mean(x, axis=axis, keepdims=True)
            return centered * xp.max(abs(centered), axis=axis, keepdims=True)

        check(f, x)


def test_rows_of_one_element_and_one_row(xp):
    for shape in ((5, 1), (1, 5), (1, 1), (4,), (1,)):
        check(lambda x: x - xp.sum(x, axis=-1, keepdims=True) * 2, numbers(xp, *shape))
    empty = numbers(xp, 0, 4)
    check(lambda x: x - xp.sum(x, axis=1, keepdims=True), empty)


def test_outputs_that_are_computed_alike(xp):
    def f(x):
        return (
            x - xp.max(x, axis=1, keepdims=True),
            x - xp.max(x, axis=1, keepdims=True),
            xp.max(x, axis=1, keepdims=True),
        )

    check(f, numbers(xp, 6, 8))


def test_casts_and_integers(xp):
    def f(x):
        i = xp.astype(x * 4, xp.int32)
        total = xp.sum(i, axis=1, keepdims=True)
        return xp.astype(i - total, xp.float32) * 0.5, i % 3

    check(f, numbers(xp, 6, 8))


def test_sizes_above_those_at_which_work_is_cut(xp):
    x = numbers(xp, 700, 300)

    def f(x):
        centered = x - xp.mean(x, axis=1, keepdims=True)
        return centered * centered - xp.sum(centered * centered, axis=1, keepdims=True)

    check(f, x, nodes=1)

    def softmax(x):
        e = xp.exp(x - xp.max(x, axis=1, keepdims=True))
        return e / xp.sum(e, axis=1, keepdims=True)

    graph = numr.capture(softmax, x)
    graph.launch()
    assert close(graph.outputs[0], softmax(x))
