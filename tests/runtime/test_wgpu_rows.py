"""Computations of rows on WebGPU: one kernel gives what the operations and reductions give one by one, to the bit."""

from __future__ import annotations

import numpy as np
import pytest

from numr import dtypes as dt
from numr.layout import KeepPart, SlicePart
from numr.runtime.client import RuntimeClient
from numr.runtime.wgpu.rows import _ReductionKernels, _RowKernels
from tests import row_programs
from tests.row_programs import PROGRAMS, numbers, operands_of, shapes_of
from tests.runtime.wgpu_support import require_adapter, variant

require_adapter()

F16, F32, F64, I32 = dt.float16, dt.float32, dt.float64, dt.int32
#: Shapes and axes: rows of whole pieces of four and others, short and long, and of several axes.
PLACES = {
    "short": ((37, 24), (1,)),
    "odd": ((37, 23), (1,)),
    "long": ((3, 700), (1,)),
    "long, odd": ((3, 701), (1,)),
    "longer": ((2, 4096), (1,)),
    "two axes": ((3, 2, 6, 12), (2, 3)),
}


@pytest.fixture(scope="module", params=["software", "gpu"])
def client(request):
    """A client that divides work as for a software adapter, or for a GPU."""
    made = variant().default_client(variant().default_device())
    made.context.is_cpu = request.param == "software"
    return made


def given_to(client, computation, shape, axes):
    return [
        client.from_host(x, copy=True) if isinstance(x, np.ndarray) else x
        for x in operands_of(computation, shape, axes)
    ]


def results_of(client, computation, shape, axes):
    shapes = shapes_of(computation, shape, axes)
    return [
        client.empty(own, computation.dtype(v))
        for own, v in zip(shapes, computation.results, strict=True)
    ]


def same(x, y):
    """Whether arrays are equal, signs of zeros and all, but for what a NaN holds."""
    if x.dtype.kind != "f":
        return np.array_equal(x, y)
    nan = np.isnan(x) & np.isnan(y)
    return bool(np.all(nan | ((x == y) & (np.signbit(x) == np.signbit(y)))))


def check(client, computation, shape, axes, operands=None, kernel=True):
    """Compare a computation's kernel with its operations, twice."""
    given = given_to(client, computation, shape, axes) if operands is None else operands
    loop = client.fused_rows(computation, shape, axes)
    assert isinstance(loop, _RowKernels | _ReductionKernels) == kernel
    expected = results_of(client, computation, shape, axes)
    RuntimeClient.fused_rows(client, computation, shape, axes)(given, expected)
    for _ in range(2):
        got = results_of(client, computation, shape, axes)
        loop(given, got)
        for x, y in zip(got, expected, strict=True):
            a, b = client.to_host(x), client.to_host(y)
            assert same(a, b), (str(computation), shape, a, b)
            assert b.any()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_rows(client, name, place):
    if name == "above_mean" and "odd" in place:
        pytest.skip("booleans of several rows share words")
    # Rows that one invocation would take long for are cut in pieces, if there are few.
    pieces = client.context.is_cpu and place in ("long, odd", "longer")
    kernel = not pieces or name in ("norm", "mean")
    check(client, PROGRAMS[name](), *PLACES[place], kernel=kernel)


@pytest.mark.parametrize("shape", [(5, 700), (70, 96), (70, 23)])
def test_costly_values_are_held(client, shape):
    """Where invocations share rows, exponentials are computed once, if a workgroup has room for them."""
    computation = row_programs.softmax()
    check(client, computation, shape, (1,))
    loop = client.fused_rows(computation, shape, (1,))
    assert bool(loop.room()) == (not client.context.is_cpu)
    assert not client.fused_rows(row_programs.layer_norm(), shape, (1,)).room()


def test_results_that_share_words(client):
    """There is no kernel for rows that begin within a word of booleans, or for a boolean of each row."""
    check(client, row_programs.above_mean(), (37, 23), (1,), kernel=False)


@pytest.mark.parametrize("dtype", [F16, F64, I32])
def test_other_dtypes(client, dtype):
    if dtype not in client.dtypes:
        pytest.skip(f"there is no {dtype}")
    if dtype is not I32:
        check(client, row_programs.softmax(dtype), (5, 96), (1,), kernel=dtype is not F16)
        check(client, row_programs.layer_norm(dtype), (5, 96), (1,))
    check(client, row_programs.distance(dtype), (5, 96), (1,), kernel=dtype is not F16)


@pytest.mark.parametrize("name", ["mean", "norm"])
@pytest.mark.parametrize(
    "shape_and_axes",
    [((90, 48), (0,)), ((70, 400), (0, 1)), ((6, 40, 20), (1,)), ((3, 5000), (1,))],
)
def test_one_reduction_over_any_axes(client, name, shape_and_axes):
    check(client, PROGRAMS[name](), *shape_and_axes)


def test_nan_and_zeros(client):
    x = numbers(12, 40)
    x[3, 7], x[4, :], x[5, 0] = np.nan, 0, np.inf
    given = [client.from_host(x, copy=True)]
    check(client, row_programs.softmax(), (12, 40), (1,), given)


def part(client, array, first, length):
    """The elements of a row from some place on."""
    return client.slice(array, (KeepPart(1), SlicePart(first, 1, length)))


def test_operands_somewhere_in_memory(client):
    """What is reduced as it is may lie so that by itself it is reduced in another order."""
    for computation in (row_programs.softmax(), row_programs.variance(), row_programs.norm()):
        given = given_to(client, computation, (5, 64), (1,))
        flat = client.from_host(numbers(1, 5 * 64 + 4), copy=True)
        for start in (1, 4):
            given[0] = client.reshape(part(client, flat, start, 5 * 64), (5, 64))
            check(client, computation, (5, 64), (1,), given)


def test_one_operand_for_all_rows(client):
    computation = row_programs.variance()
    given = given_to(client, computation, (5, 64), (1,))
    one = client.from_host(numbers(1, 1), copy=True)
    for given[2] in (one, client.broadcast(one, (5, 1)), client.reshape(one, ())):
        check(client, computation, (5, 64), (1,), given)


def test_results_in_views(client):
    computation, shape, axes = row_programs.softmax(), (6, 32), (1,)
    given = given_to(client, computation, shape, axes)
    expected = results_of(client, computation, shape, axes)
    loop = client.fused_rows(computation, shape, axes)
    loop(given, expected)
    outer = client.full((6, 40), 7.0, F32)
    largest = client.full((6, 3), 7.0, F32)
    loop(given, [part(client, outer, 4, 32), part(client, largest, 1, 1)])
    got = client.to_host(outer)
    assert same(got[:, 4:36], client.to_host(expected[0]))
    assert same(client.to_host(largest)[:, 1:2], client.to_host(expected[1]))
    assert (np.delete(got, range(4, 36), axis=1) == 7).all()


def test_adapters_without_wide_types():
    client = variant(without={"shader-f64", "shader-int64"})
    made = client.default_client(client.default_device())
    for place in ("short", "odd"):
        check(made, row_programs.softmax(), *PLACES[place])
        check(made, row_programs.layer_norm(), *PLACES[place])
