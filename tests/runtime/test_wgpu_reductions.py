"""Reductions on WebGPU, with the kernels for software adapters and with those for GPUs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from numr.errors import DTypeError, ShapeError
from numr.ir.ops import Reduction
from numr.layout import Layout
from tests.runtime.wgpu_reducing import (
    CLIENTS,
    DTYPES,
    FORMS,
    SHAPES,
    assert_same,
    client_of,
    exact,
    values,
    views,
    wide,
)
from tests.runtime.wgpu_support import variant

pytestmark = pytest.mark.wgpu

SUM, PROD, MAX, MIN, ANY, ALL = Reduction
REDUCE = {SUM: np.sum, PROD: np.prod, MAX: np.max, MIN: np.min, ANY: np.any, ALL: np.all}


@pytest.fixture(params=FORMS)
def client(request):
    return CLIENTS[request.param]


def reduced(client, array, kind, axes, keepdims=False, dtype=None):
    dtype = np.dtype(dtype or client.to_host(array).dtype)
    return client.to_host(client.reduce(kind, array, axes, keepdims, dtype))


def expected_of(kind, host, axes, keepdims, dtype):
    if kind in (ANY, ALL):
        return REDUCE[kind](host, axis=axes, keepdims=keepdims)
    if kind in (MAX, MIN):
        return REDUCE[kind](host, axis=axes, keepdims=keepdims)
    return REDUCE[kind](host, axis=axes, keepdims=keepdims, dtype=exact(dtype))


def kinds_of(dtype):
    return (SUM, PROD, ANY, ALL) if dtype.kind in "bc" else tuple(Reduction)


# Compiling takes most of the time of these tests. What differs between the forms is how lines are divided, not what is
# done with the values, so that the kernels for GPUs are tested with fewer dtypes and kinds.


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_kind_of_every_dtype(client, dtype):
    host = values((7, 60), dtype)
    array = client.from_host(host, copy=True)
    for kind in kinds_of(dtype) if client.context.is_cpu else (SUM,):
        result = (
            dtype if kind in (MAX, MIN) else np.dtype(bool) if kind in (ANY, ALL) else wide(dtype)
        )
        for axes in ((1,), (0,)) if kind is SUM else ((1,),):
            got = reduced(client, array, kind, axes, dtype=result)
            assert_same(got, expected_of(kind, host, axes, False, result), result, f"{kind} {axes}")


@pytest.mark.parametrize(
    ("form", "dtype"),
    [("gpu", "int16"), *(("software", d) for d in ("float32", "int8", "bool", "complex128"))],
)
def test_views_of_any_layout_over_any_axes(form, dtype):
    client, dtype = CLIENTS[form], np.dtype(dtype)
    for host, array in views(client, dtype):
        subsets = [
            tuple(axis for axis in range(host.ndim) if bits >> axis & 1)
            for bits in range(1 << host.ndim)
        ]
        for axes in subsets:
            kind = ANY if dtype.kind == "b" else SUM
            got = reduced(client, array, kind, axes[::-1], len(axes) == 2, dtype)
            expected = expected_of(kind, host, axes, len(axes) == 2, dtype)
            assert_same(got, np.asarray(expected), dtype, f"{host.shape} {axes}")


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_few_and_many_results_of_short_and_long_lines(client, dtype):
    for shape, axis in SHAPES:
        host = values(shape, dtype)
        array = client.from_host(host, copy=True)
        got = reduced(client, array, SUM, (axis,), dtype="float32")
        assert_same(got, host.sum(axis, dtype="f8"), np.dtype("float32"), f"{shape} {axis}")
        got = reduced(client, array, ALL, (axis,), dtype="bool")
        assert_same(got, host.all(axis), np.dtype(bool), f"{shape} {axis}")
        host.ravel()[-1] = 99
        array = client.from_host(host, copy=True)
        got = client.argreduce(MAX, array, axis, False)
        assert got.dtype == client.defaults.indexing
        np.testing.assert_array_equal(client.to_host(got), host.argmax(axis), err_msg=f"{shape}")


def test_lines_of_more_elements_than_an_invocation_has_turns_of_its_loops():
    client = CLIENTS["software"]
    host = np.ones((2, 1_000_003), np.uint8)
    host[1, -1] = 0
    array = client.from_host(host, copy=True)
    assert reduced(client, array, SUM, (1,), dtype="int32").tolist() == [1_000_003, 1_000_002]
    assert reduced(client, array, ALL, (1,), dtype="bool").tolist() == [True, False]
    assert reduced(client, array, MIN, (1,)).tolist() == [1, 0]
    # Many results of long lines: an invocation for each piece.
    long = client.broadcast(client.from_host(np.ones((300, 1), np.int8), copy=True), (300, 40000))
    assert (reduced(client, long, SUM, (1,), dtype="int32") == 40000).all()
    assert reduced(client, long, ALL, (1,), dtype="bool").all()


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_sums_are_as_exact_as_numpys_pairwise_ones_over_every_axis(client, dtype):
    dtype = np.dtype(dtype)
    rng = np.random.default_rng(1)
    host = (rng.random(300_000) + 0.1).astype(dtype)
    total = math.fsum(host.real)
    eps = float(np.finfo(dtype).eps)
    for shape, axis in (((300_000, 1), 0), ((1, 300_000), 1)):
        array = client.from_host(host.reshape(shape), copy=True)
        got = reduced(client, array, SUM, (axis,))[0]
        assert abs(got - total) <= 2 * eps * total
    columns = np.broadcast_to(host[:60_000, None], (60_000, 8))
    array = client.from_host(columns, copy=True)
    total = math.fsum(host[:60_000].real)
    assert (np.abs(reduced(client, array, SUM, (0,)) - total) <= 2 * eps * total).all()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_sums_of_numbers_that_are_not_finite(client, dtype):
    nan, inf = math.nan, math.inf
    rows = [[1, inf, 2, 3], [inf, -inf, 1, 1], [nan, 1, 1, 1], [-inf, -inf, 5, 5], [-0.0] * 4]
    for length in (4, 64, 1200):
        host = np.resize(np.ones(1, dtype), (len(rows), length))
        host[4] = -0.0
        host[:, -4:] = np.array(rows, dtype)
        array = client.from_host(host, copy=True)
        got = reduced(client, array, SUM, (1,))
        np.testing.assert_array_equal(got[:4], [inf, nan, nan, -inf])
        assert got[4] == 0
        assert np.signbit(got[4])


def test_sums_of_float16_are_rounded_once(client):
    host = np.full((1, 4099), 1.0, np.float16)
    array = client.from_host(host, copy=True)
    assert reduced(client, array, SUM, (1,)).tolist() == [np.float16(4099)]
    big = client.from_host(np.array([60000, 60000, -60000], np.float16), copy=True)
    assert reduced(client, big, SUM, (0,)) == 60000


def test_products_of_complex_infinities_are_those_of_the_elements_alone(client):
    for length in (1, 4, 5, 8):
        host = np.ones(length, np.complex64)
        host[0] = complex(math.inf, 0)
        got = reduced(client, client.from_host(host[:1], copy=True), PROD, (0,))
        assert got == complex(math.inf, 0)
        assert got.imag == 0
        array = client.from_host(host, copy=True)
        assert math.isinf(reduced(client, array, PROD, (0,)).real) == (length == 1)


@pytest.mark.parametrize(
    ("form", "dtype"),
    [("gpu", "float32"), *(("software", d) for d in ("float16", "float32", "float64"))],
)
def test_extremes_of_special_numbers(form, dtype):
    client = CLIENTS[form]
    nan, inf = math.nan, math.inf
    tiny = float(np.finfo(dtype).smallest_subnormal)
    rows = np.array(
        [
            [1, nan, 3, nan, 2, 0],
            [-inf, -1, -2, -inf, -3, -4],
            [inf, 1, inf, -inf, 0, 0],
            [-0.0, 0.0, -0.0, 0.0, -0.0, 0.0],
            [tiny, 2 * tiny, 0, -tiny, -2 * tiny, 0],
            [np.copysign(nan, -1), 1, 2, 3, 4, inf],
        ],
        dtype,
    )
    long = np.pad(rows, ((0, 0), (700, 700)), mode="edge")
    for host, axis in ((rows, 1), (long, 1), (rows.T.copy(), 0)):
        array = client.from_host(host, copy=True)
        for kind in (MAX, MIN):
            got = reduced(client, array, kind, (axis,))
            np.testing.assert_array_equal(got, REDUCE[kind](host, axis))
            at = client.to_host(client.argreduce(kind, array, axis, True))
            function = np.argmax if kind is MAX else np.argmin
            np.testing.assert_array_equal(at, function(host, axis, keepdims=True))
        truth = reduced(client, array, ALL, (axis,), dtype="bool")
        np.testing.assert_array_equal(truth, host.all(axis))
    numbers = np.array([0.0, -0.0, tiny], dtype)
    for host in (numbers[:2], numbers):
        got = reduced(client, client.from_host(host, copy=True), ANY, (0,), dtype="bool")
        assert got == host.any()


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.kind != "c"], ids=str)
def test_the_first_extreme_counts(dtype):
    client = CLIENTS["software"]
    host = values((5, 301), dtype)
    array = client.from_host(host, copy=True)
    for kind, function in ((MAX, np.argmax), (MIN, np.argmin)):
        got = client.to_host(client.argreduce(kind, array, 1, False))
        np.testing.assert_array_equal(got, function(host, 1))
        assert got.dtype == client.defaults.indexing


def test_positions_in_views(client):
    host = values((8, 300), "int8")
    array = client.from_host(host, copy=True)
    flipped = client.wrap(array.storage, Layout((8, 300), (300, -1), 299), array.dtype)
    for source, view in (
        (host, array),
        (host[:, ::-1], flipped),
        (host.T, client.permute(array, (1, 0))),
    ):
        for axis in (0, 1):
            for keepdims in (False, True):
                got = client.to_host(client.argreduce(MIN, view, axis, keepdims))
                np.testing.assert_array_equal(got, np.argmin(source, axis, keepdims=keepdims))


def test_the_ends_of_the_range_of_integers(client):
    for dtype in ("int8", "uint16", "uint32", "int64"):
        info = np.iinfo(dtype)
        host = np.array([info.min, info.max, 0, info.min, info.max], dtype)
        array = client.from_host(host, copy=True)
        for kind in (MAX, MIN):
            assert reduced(client, array, kind, (0,)) == REDUCE[kind](host)
        assert reduced(client, array, SUM, (0,)) == host.sum(dtype=dtype)


def test_sums_are_computed_in_the_dtype_that_is_asked_for(client):
    for source, result in [
        *[("int8", "int64"), ("uint8", "float32"), ("bool", "uint8")],
        *[("float32", "float64"), ("int32", "complex64")],
    ]:
        host = values((900,), source) * np.ones((), source)
        array = client.from_host(host, copy=True)
        got = reduced(client, array, SUM, (0,), dtype=result)
        assert_same(got, host.sum(dtype=exact(np.dtype(result))), np.dtype(result), source)


def test_reductions_of_no_elements(client):
    array = client.empty((0, 3), np.dtype("float32"))
    for kind, value in ((SUM, 0), (PROD, 1), (ANY, False), (ALL, True)):
        got = reduced(client, array, kind, (0,), dtype="float32")
        assert got.tolist() == [value] * 3
        assert reduced(client, array, kind, (0, 1), True, "float32").tolist() == [[value]]
        assert reduced(client, array, kind, (1,)).shape == (0,)
    assert reduced(client, array, MAX, (1,), True).shape == (0, 1)
    with pytest.raises(ShapeError, match=r"max: .*\(0, 3\) has no elements along the axes \(0,\)"):
        client.reduce(MAX, array, (0,), False, np.dtype("float32"))
    with pytest.raises(ShapeError, match=r"min: .*at least one"):
        client.argreduce(MIN, array, 0, False)


def test_complex_numbers_have_no_extremes(client):
    array = client.from_host(np.ones(3, np.complex64), copy=True)
    with pytest.raises(DTypeError, match="maximum: complex64"):
        client.reduce(MAX, array, (0,), False, array.dtype)


def test_results_are_the_same_bits_in_each_run(client):
    host = np.random.default_rng(5).standard_normal((301, 999)).astype("f4")
    array = client.from_host(host, copy=True)
    for axes in ((0,), (1,), (0, 1)):
        first, *others = (reduced(client, array, SUM, axes) for _ in range(3))
        assert all((first == other).all() for other in others)


def test_what_is_kept_of_a_call_serves_other_arrays_and_devices_that_were_opened_again():
    client = client_of(variant())
    for round in range(4):
        if round == 2:
            client.allocator.close(forked=False)
        misses = client.context.opened.pipelines.misses
        host = values((40, 2000), "float32", seed=round)
        array = client.from_host(host, copy=True)
        assert_same(reduced(client, array, SUM, (0, 1)), host.sum(dtype="f8"), host.dtype)
        assert (host.argmin(1) == client.to_host(client.argreduce(MIN, array, 1, True)).T).all()
        got = client.to_host(client.scan(SUM, array, 1, host.dtype))
        assert_same(got, host.cumsum(1, dtype="f8"), host.dtype)
        assert (client.context.opened.pipelines.misses == misses) == (round % 2 == 1)
    shifted = client.wrap(array.storage, Layout((40, 1000), (2000, 2), 1), array.dtype)
    assert_same(reduced(client, shifted, SUM, (1,)), host[:, 1::2].sum(1, dtype="f8"), host.dtype)


@pytest.mark.parametrize("form", FORMS)
def test_arrays_larger_than_a_binding(form):
    client = client_of(variant(limits={"max-storage-buffer-binding-size": 4096}), form)
    for dtype in ("float32", "int8"):
        dtype = np.dtype(dtype)
        host = values((50, 60) if dtype.itemsize > 1 else (100, 83), dtype)
        array = client.from_host(host, copy=True)
        for axes in ((0,), (1,), (0, 1)):
            got = reduced(client, array, SUM, axes)
            assert_same(got, host.sum(axes, dtype=exact(dtype)), dtype, f"{dtype} {axes}")
    # More results than a binding holds.
    pairs = client.from_host(values((2, 3, 1500), "float32"), copy=True)
    got = reduced(client, pairs, MAX, (0,))
    np.testing.assert_array_equal(got, client.to_host(pairs).max(0))


@pytest.mark.parametrize("form", FORMS)
def test_more_workgroups_than_a_row_of_them(form):
    client = client_of(variant(limits={"max-compute-workgroups-per-dimension": 60}), form)
    for shape, axis in (((300, 900), 1), ((9, 6001), 0), ((20011, 5), 1), ((3, 300_000), 1)):
        host = values(shape, "int16")
        array = client.from_host(host, copy=True)
        got = reduced(client, array, SUM, (axis,), dtype="int32")
        np.testing.assert_array_equal(got, host.sum(axis))
        got = client.to_host(client.scan(SUM, array, axis, np.dtype("int32")))
        np.testing.assert_array_equal(got, host.cumsum(axis))


def test_a_device_without_types_of_64_bits():
    client = client_of(variant(without={"shader-f64", "shader-int64"}))
    assert np.dtype("float64") not in client.dtypes
    for dtype in client.dtypes:
        host = values((5, 300), dtype)
        array = client.from_host(host, copy=True)
        result = wide(dtype)
        got = reduced(client, array, SUM, (1,), dtype=result)
        assert_same(got, host.sum(1, dtype=exact(result)), result)
        if dtype.kind != "c":
            at = client.argreduce(MAX, array, 1, False)
            np.testing.assert_array_equal(client.to_host(at), host.argmax(1))
            assert at.dtype == client.defaults.indexing
