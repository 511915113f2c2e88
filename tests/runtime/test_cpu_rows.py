"""Computations of rows on the CPU: block by block they give what operations and reductions give one by one, to the bit."""

from __future__ import annotations

import numpy as np
import pytest

import numr
from numr import dtypes as dt
from numr.runtime import client_of
from numr.runtime.client import RuntimeClient
from numr.runtime.cpu import rows
from numr.runtime.cpu.rows import RowLoop, keeps_rows_whole
from tests import row_programs
from tests.row_programs import PROGRAMS, numbers, operands_of, shapes_of

CLIENT = client_of("cpu")
F16, F32, F64, I32 = dt.float16, dt.float32, dt.float64, dt.int32
PLACES = {
    "one block": ((37, 24), (1,)),
    "odd": ((5, 23), (1,)),
    "one row": ((1, 700), (1,)),
    "blocks": ((1000, 300), (1,)),
    "more axes": ((30, 20, 6, 12), (2, 3)),
    "few long rows": ((3, 40_000), (1,)),
}


@pytest.fixture(autouse=True, params=["compiled", "numpy"])
def compiled(request, monkeypatch):
    """With kernels, and with NumPy's functions alone; in small blocks, the results of which go past the caches."""
    monkeypatch.setattr(rows, "_BLOCK_BYTES", 1 << 15)
    monkeypatch.setattr(rows, "STREAMED_BYTES", 1 << 16)
    with numr.config.override(jit=request.param == "compiled"), np.errstate(all="ignore"):
        yield


def results_of(computation, shape, axes):
    return [
        np.empty(own, computation.dtype(v))
        for own, v in zip(shapes_of(computation, shape, axes), computation.results, strict=True)
    ]


def same(x, y):
    if x.dtype.kind != "f":
        return np.array_equal(x, y)
    nan = np.isnan(x) & np.isnan(y)
    return bool(np.all(nan | ((x == y) & (np.signbit(x) == np.signbit(y)))))


def check(computation, shape, axes, operands=None, results=None):
    given = operands_of(computation, shape, axes) if operands is None else operands
    expected = results_of(computation, shape, axes)
    RuntimeClient.fused_rows(CLIENT, computation, shape, axes)(given, expected)
    got = results_of(computation, shape, axes) if results is None else results
    loop = CLIENT.fused_rows(computation, shape, axes)
    for _ in range(2):
        for x in got:
            x[...] = 0
        loop(given, got)
        for x, y in zip(got, expected, strict=True):
            assert same(x, y), (str(computation), shape)
            assert y.any()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_rows(name, place):
    check(PROGRAMS[name](), *PLACES[place])


@pytest.mark.parametrize("dtype", [F16, F64, I32])
def test_other_dtypes(dtype):
    for name in ("distance",) if dtype is I32 else ("softmax", "layer_norm", "distance"):
        check(PROGRAMS[name](dtype), (200, 96), (1,))


def test_what_is_computed_against_numpy():
    x = numbers(500, 120, dtype=F64)
    got, largest = np.empty_like(x), np.empty((500, 1))
    CLIENT.fused_rows(row_programs.softmax(F64), x.shape, (1,))([x], [got, largest])
    e = np.exp(x - x.max(axis=1, keepdims=True))
    assert np.array_equal(largest, x.max(axis=1, keepdims=True))
    assert np.allclose(got, e / e.sum(axis=1, keepdims=True), rtol=1e-14, atol=0)
    assert np.allclose(got.sum(axis=1), 1, rtol=1e-14)


def test_threads_change_nothing():
    x = numbers(4000, 300)
    found = []
    for threads in (1, 3):
        results = results_of(row_programs.softmax(), x.shape, (1,))
        with numr.config.override(num_threads=threads):
            CLIENT.fused_rows(row_programs.softmax(), x.shape, (1,))([x], results)
        found.append(results[0])
    assert same(*found)


def test_operands_that_lie_otherwise():
    """What is reduced as it is has to be in order, since NumPy's order of additions depends on that."""
    shape = (300, 64)
    flat = numbers(300 * 64 + 1)
    for x in (numbers(64, 300).T, numbers(300, 128)[:, ::2], flat[1:].reshape(shape)):
        check(row_programs.variance(), shape, (1,), [x, 64.0, numbers(300, 1)])
    raw = np.frombuffer(flat.tobytes(), np.uint8)[3 : 3 + 4 * 300 * 64].view(F32).reshape(shape)
    assert not raw.flags.aligned
    check(row_programs.variance(), shape, (1,), [raw, 64.0, numbers(300, 1)])


def test_one_operand_for_all_rows():
    one = numbers(1, 1)
    for given in (one, np.broadcast_to(one, (300, 1)), one.reshape(())):
        check(row_programs.variance(), (300, 64), (1,), [numbers(300, 64), 64.0, given])
    computation = row_programs.layer_norm()
    given = operands_of(computation, (300, 64), (1,))
    given[3] = np.broadcast_to(given[3], (300, 64))
    check(computation, (300, 64), (1,), given)


def test_results_in_views():
    computation, shape = row_programs.softmax(), (300, 64)
    for outer in (np.zeros((300, 80), F32), np.zeros((300, 67), F32)):
        check(computation, shape, (1,), None, [outer[:, 3:67], np.zeros((300, 3), F32)[:, 1:2]])


def test_which_rows_are_reduced_by_themselves():
    assert keeps_rows_whole((100, 50), (1,))
    assert keeps_rows_whole((4, 5000), (1,))
    assert not keeps_rows_whole((4, 1_000_000), (1,))
    assert keeps_rows_whole((4, 20, 100_000), (2,))
    assert not keeps_rows_whole((100, 50), (0,))
    assert not keeps_rows_whole((100, 50), (0, 1))


def test_values_share_scratch_memory():
    loop = RowLoop(CLIENT, row_programs.softmax(), (1000, 300), (1,))
    assert loop._scratch_bytes < 3 * loop._rows * 300 * 4
