"""Blocks over threads on the CPU."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import numr
from numr.runtime import client_of
from numr.runtime.client import RuntimeClient
from numr.runtime.cpu.reductions import DECISION_BYTES
from numr.runtime.cpu.threads import run_blocks

PARTS = [slice(i, i + 1) for i in range(50)]


@pytest.mark.parametrize("count", [1, 2, 7])
def test_every_part_is_done_once(count):
    with numr.config.override(num_threads=count):
        done = []
        run_blocks(lambda part: done.append(part.start), PARTS)
    assert sorted(done) == list(range(50))


@pytest.mark.parametrize("count", [1, 2, 7])
def test_an_exception_reaches_the_caller_and_ends_the_work(count):
    def body(part):
        if part.start == 7:
            raise KeyError(part.start)

    with numr.config.override(num_threads=count):
        with pytest.raises(KeyError, match="7"):
            run_blocks(body, PARTS)
        done = []
        run_blocks(lambda part: done.append(part.start), PARTS)
    assert sorted(done) == list(range(50))


def test_an_exception_in_a_helper_reaches_the_caller():
    caller = threading.get_ident()
    other = threading.Event()

    def body(_part):
        if threading.get_ident() != caller:
            other.set()
            raise ZeroDivisionError
        assert other.wait(30)

    with numr.config.override(num_threads=2), pytest.raises(ZeroDivisionError):
        run_blocks(body, PARTS)


def test_helpers_work_under_the_errstate_of_the_caller():
    states = set()
    both = threading.Barrier(2)

    def body(_part):
        both.wait(30)
        states.add((threading.get_ident(), np.geterr()["over"]))

    with numr.config.override(num_threads=2), np.errstate(over="raise"):
        run_blocks(body, PARTS[:2])
    assert {state for _, state in states} == {"raise"}
    assert len(states) == 2


def test_a_caller_does_not_wait_for_helpers_that_are_busy_elsewhere():
    release = threading.Event()
    started = threading.Event()

    def slow(_part):
        started.set()
        assert release.wait(30)

    with numr.config.override(num_threads=2):
        first = threading.Thread(target=run_blocks, args=(slow, PARTS[:2]))
        first.start()
        assert started.wait(30)
        done = []
        # The one helper may be in the slow work for as long as it likes.
        run_blocks(lambda part: done.append(part.start), PARTS)
        assert sorted(done) == list(range(50))
        assert first.is_alive()
        release.set()
        first.join(30)
    assert not first.is_alive()


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int32"])
@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 2), (0, 1, 2)])
def test_squared_distances_are_those_of_the_composed_form(dtype, axes):
    client = client_of("cpu")
    rng = np.random.default_rng(4)
    array = rng.integers(-3, 4, (17, 90, 110)).astype(dtype)
    center = array.mean(axis=axes, keepdims=True).astype(
        "complex64" if dtype == "complex64" else "float64" if dtype == "int32" else dtype
    )
    exact = np.square(np.abs(array.astype("complex128") - center)).sum(axis=axes)
    for keepdims in (False, True):
        got = client.squared_distances(array, center, axes, keepdims)
        composed = RuntimeClient.squared_distances(client, array, center, axes, keepdims)
        assert got.dtype == composed.dtype == np.abs(center).dtype
        assert got.shape == composed.shape == array.sum(axis=axes, keepdims=keepdims).shape
        bound = 8 * np.finfo(got.dtype).eps
        for result in (got, composed):
            error = np.abs(result.reshape(exact.shape) - exact)
            assert np.all(error <= bound * exact * max(1, np.log2(array.size)))


@pytest.mark.parametrize("place", [None, 0, 5_000_000, -1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_large_decisions_are_those_of_numpy(place, keepdims):
    host = np.zeros((3, DECISION_BYTES // 2), dtype=np.bool)
    if place is not None:
        host.reshape(-1)[place] = True
    x = numr.cpu.asarray(host)
    for values, tensor in ((host, x), (~host, ~x)):
        for name in ("any", "all"):
            found = getattr(numr.cpu, name)(tensor, keepdims=keepdims)
            expected = getattr(np, name)(values, keepdims=keepdims)
            assert found.shape == np.shape(expected)
            np.testing.assert_array_equal(found.to_numpy(), expected)


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("axis", [0, 1])
def test_large_parts_are_joined_as_numpy_joins_them(count, axis):
    hosts = [np.arange(800_000, dtype=np.float64).reshape(800, 1000) + i for i in range(count)]
    joined = numr.cpu.concat([numr.cpu.asarray(host) for host in hosts], axis=axis)
    np.testing.assert_array_equal(joined.to_numpy(), np.concatenate(hosts, axis=axis))
