"""Running sums, products and extremes on WebGPU, with the kernels for software adapters and with those for GPUs."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from numr.ir.ops import Reduction
from numr.layout import Layout
from numr.runtime.wgpu import chained_lines
from numr.runtime.wgpu.chained_lines import Tile
from numr.runtime.wgpu.folding import fold_of
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

SUM, PROD, MAX, MIN = list(Reduction)[:4]
SCAN = {SUM: np.add, PROD: np.multiply, MAX: np.maximum, MIN: np.minimum}


@pytest.fixture(params=[*FORMS, "ordered"])
def client(request):
    return CLIENTS[request.param]


def scanned(client, array, kind, axis, dtype):
    return client.to_host(client.scan(kind, array, axis, np.dtype(dtype)))


# The kernels for GPUs are tested with fewer dtypes and kinds, as those of reductions.


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_scan_of_every_dtype(client, dtype):
    host = values((9, 44), dtype)
    array = client.from_host(host, copy=True)
    kinds = (SUM, PROD) if dtype.kind in "bc" else SCAN
    for kind in kinds if client.context.is_cpu else (SUM,):
        result = wide(dtype)
        for axis in (0, 1) if kind is SUM and client.context.is_cpu else (1,):
            got = client.to_host(client.scan(kind, array, axis, result))
            compute = None if kind in (MAX, MIN) else exact(result)
            expected = SCAN[kind].accumulate(host, axis, dtype=compute)
            assert_same(got, expected, result, f"{kind} {axis}")


@pytest.mark.parametrize("dtype", ["int8", "complex64"])
def test_scans_of_views_of_any_layout(client, dtype):
    dtype = np.dtype(dtype)
    for host, array in views(client, dtype):
        for axis in range(host.ndim):
            got = client.to_host(client.scan(SUM, array, axis, dtype))
            expected = np.cumsum(host, axis, dtype=exact(dtype))
            assert_same(got, expected, dtype, f"{host.shape} {axis}")


@pytest.mark.parametrize(("dtype", "result"), [("int32", "int32"), ("uint8", "int16")])
def test_scans_of_few_and_many_short_and_long_lines(client, dtype, result):
    for shape, axis in [*SHAPES, ((2, 40000), 1), ((70000, 4), 0), ((66000, 3), 1)]:
        host = values(shape, dtype)
        array = client.from_host(host, copy=True)
        got = client.to_host(client.scan(SUM, array, axis, np.dtype(result)))
        expected = np.cumsum(host, axis, dtype=result)
        np.testing.assert_array_equal(got, expected, err_msg=f"{shape} {axis}")


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_the_error_does_not_grow_with_the_length(client, dtype):
    dtype = np.dtype(dtype)
    host = (np.random.default_rng(1).random(300_000) + 0.1).astype(dtype)
    ends = np.cumsum(host.astype(np.clongdouble)).real
    eps = float(np.finfo(dtype).eps)
    for shape, axis in (((300_000,), 0), ((300_000, 4), 0)):
        columns = np.broadcast_to(host if axis == len(shape) - 1 else host[:, None], shape)
        array = client.from_host(columns, copy=True)
        got = scanned(client, array, SUM, axis, dtype)
        # A workgroup joins the elements of a tile without keeping what rounding takes off.
        assert (np.abs(got.reshape(len(host), -1)[:, -1] - ends) <= 6 * eps * ends).all()


@pytest.mark.parametrize("length", [1_100_000, 1_081_346, 200_003])
@pytest.mark.parametrize(
    "dtype", ["int8", "bool", "float16", "int32", "float32", "uint64", "float64", "complex64"]
)
def test_scans_in_one_pass(dtype, length):
    client = CLIENTS["ordered"]
    dtype = np.dtype(dtype)
    # Alone, as rows, as columns: enough of them that pieces are in more than one group.
    for shape, axis in (((length,), 0), ((2, length // 2), 1), ((length // 264, 264), 0)):
        host = values(shape, dtype)
        array = client.from_host(host, copy=True)
        with np.errstate(over="ignore"):
            for kind in (SUM, MAX) if dtype.kind not in "cb" else (SUM,):
                result = dtype if kind is MAX else wide(dtype)
                compute = None if kind is MAX else exact(result)
                expected = SCAN[kind].accumulate(host, axis, dtype=compute)
                got = client.to_host(client.scan(kind, array, axis, result))
                assert_close_to_sums(got, expected, host, axis)


@pytest.mark.parametrize("dtype", ["int8", "float64"])
def test_long_lines_of_several_regions_in_one_pass(dtype, monkeypatch):
    monkeypatch.setattr(chained_lines, "GROUPS", (128,))
    client = CLIENTS["ordered"]
    if dtype not in map(str, client.dtypes):
        pytest.skip(f"{client.device} has no {dtype}")
    host = values((2, 300_000), dtype)  # 65,536 elements are a region
    # Elements that are loaded one by one make more tiles of a line.
    wide_host = np.zeros((2, 600_000), dtype)
    wide_host[:, ::2] = host
    array = client.from_host(wide_host, copy=True)
    array.layout = Layout(host.shape, (600_000, 2))
    result = wide(np.dtype(dtype))
    got = scanned(client, array, SUM, 1, result)
    again = scanned(client, array, SUM, 1, result)
    np.testing.assert_array_equal(got.view(np.uint8), again.view(np.uint8))
    assert_close_to_sums(got, np.cumsum(host, 1, dtype=result), host, 1)


def test_tiles_of_long_lines_fit_the_device():
    fold = fold_of(SUM, np.dtype("float32"), np.dtype("float32"))
    wider = fold_of(SUM, np.dtype("complex64"), np.dtype("complex64"))
    limits = {
        "max-compute-invocations-per-workgroup": 1024,
        "max-compute-workgroup-storage-size": 48 << 10,
    }
    context = SimpleNamespace(limits=limits)
    assert Tile.of(context, fold, 25_000_000) == (1024, 8)
    assert Tile.of(context, fold, 3_000_000) == (512, 8)
    assert Tile.of(context, fold, 100_000) == (256, 8)
    assert Tile.of(context, wider, 25_000_000) == (512, 4)
    limits["max-compute-workgroup-storage-size"] = 16 << 10
    assert Tile.of(context, fold, 25_000_000) == (512, 4)
    limits["max-compute-invocations-per-workgroup"] = 256
    assert Tile.of(context, fold, 25_000_000) == (256, 8)
    assert Tile.of(context, wider, 25_000_000) == (256, 4)
    limits["max-compute-workgroup-storage-size"] = 3 << 10
    assert Tile.of(context, fold, 25_000_000) is None
    for tile_fold in (fold, wider):
        for memory in range(1 << 12, 1 << 16, 1 << 10):
            limits["max-compute-workgroup-storage-size"] = memory
            tile = Tile.of(context, tile_fold, 1 << 30)
            if tile is not None:
                values = tile.units * tile.group * 33 // 32 + 3 * tile.group
                assert values * tile_fold.stored.itemsize + 64 <= memory


@pytest.mark.parametrize("form", ["gpu", "ordered"])
@pytest.mark.parametrize("dtype", ["int16", "float32", "complex64"])
def test_columns_that_are_enough_by_themselves(form, dtype):
    dtype = np.dtype(dtype)
    host = values((3, 21, 1 << 15), dtype)
    array = CLIENTS[form].from_host(host, copy=True)
    result = wide(dtype)
    got = scanned(CLIENTS[form], array, SUM, 1, result)
    assert_same(got, np.cumsum(host, 1, dtype=exact(result)), result)


def assert_close_to_sums(got, expected, host, axis):
    """Within a few roundings of the sum of the magnitudes so far; integers exactly."""
    if got.dtype.kind in "iu":
        np.testing.assert_array_equal(got, expected)
        return
    bound = np.finfo(got.dtype).eps * 6 * np.cumsum(np.abs(host), axis, dtype="f8") + 1e-30
    if got.dtype == np.float16:
        bound += np.abs(expected) * 2**-10
    assert (np.abs(got - expected) <= bound).all()


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_numbers_that_are_not_finite(client, dtype):
    nan, inf = math.nan, math.inf
    rows = [[1, inf, 2, 3], [inf, -inf, 1, 1], [nan, 1, 1, 1], [-inf, -inf, 5, 5], [-0.0] * 4]
    for length in (4, 1200):
        host = np.ones((len(rows), length), dtype)
        host[4] = -0.0
        host[:, -4:] = np.array(rows, dtype)
        array = client.from_host(host, copy=True)
        with np.errstate(invalid="ignore"):
            expected = np.cumsum(host, 1, dtype="f8").astype(dtype)
        got = scanned(client, array, SUM, 1, dtype)
        np.testing.assert_array_equal(got, expected)
        assert np.signbit(got[4]).all()
        for kind in (MAX, MIN):
            got = scanned(client, array, kind, 1, dtype)
            np.testing.assert_array_equal(got, SCAN[kind].accumulate(host, 1))


def test_the_dtype_that_is_asked_for(client):
    for source, result in (("int8", "int8"), ("bool", "uint8"), ("int32", "complex64")):
        host = values((900,), source)
        array = client.from_host(host, copy=True)
        got = scanned(client, array, SUM, 0, result)
        expected = np.cumsum(host, dtype=exact(np.dtype(result)))
        assert_same(got, expected, np.dtype(result), source)


def test_no_elements(client):
    for shape in ((0, 3), (3, 0)):
        array = client.empty(shape, np.dtype("float32"))
        for axis in (0, 1):
            assert scanned(client, array, SUM, axis, "float32").shape == shape


@pytest.mark.parametrize("form", FORMS)
def test_arrays_larger_than_a_binding(form):
    client = client_of(variant(limits={"max-storage-buffer-binding-size": 4096}), form)
    for dtype, shape in (("float32", (50, 60)), ("int8", (100, 83))):
        dtype = np.dtype(dtype)
        host = values(shape, dtype)
        array = client.from_host(host, copy=True)
        for axis in (0, 1):
            expected = np.cumsum(host, axis, dtype=exact(dtype))
            assert_same(scanned(client, array, SUM, axis, dtype), expected, dtype, f"{axis}")


def test_a_device_without_types_of_64_bits():
    client = client_of(variant(without={"shader-f64", "shader-int64"}))
    for dtype in client.dtypes:
        host = values((5, 300), dtype)
        array = client.from_host(host, copy=True)
        result = wide(dtype)
        expected = np.cumsum(host, 1, dtype=exact(result))
        assert_same(scanned(client, array, SUM, 1, result), expected, result)
