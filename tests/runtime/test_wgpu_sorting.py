"""Sorting and searching on WebGPU: every algorithm, every dtype, views, and what is equal."""

from __future__ import annotations

import numpy as np
import pytest

from numr import dtypes as dt
from numr.layout import Layout
from tests.runtime.wgpu_support import require_adapter, variant

require_adapter()
pytestmark = pytest.mark.wgpu


def client_of(*, software, **options):
    """A client; adapters in software merge, others sort in the memory of workgroups."""
    rt = variant(**options)
    client = rt.Client(rt.default_device())
    client.context.is_cpu = software
    return client


CLIENTS = {
    "merging": client_of(software=True),
    "workgroups": client_of(software=False),
    "few-workgroups": client_of(
        software=False, limits={"max-compute-workgroups-per-dimension": 40}
    ),
    "small-memory": client_of(software=False, limits={"max-compute-workgroup-storage-size": 16384}),
    "without-64-bits": client_of(software=True, without=["shader-f64", "shader-int64"]),
}
MERGING, WORKGROUPS = CLIENTS["merging"], CLIENTS["workgroups"]


def elements(dtype, shape, seed=0):
    """Any bits, with many equal elements among them, zeros of both signs, infinities and several NaN."""
    rng = np.random.default_rng(seed)
    size = int(np.prod(shape))
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    real = dt.real_of(dtype) if dtype.kind == "c" else dtype
    size *= dtype.itemsize // real.itemsize
    result = np.frombuffer(rng.bytes(size * real.itemsize), real).copy()
    common = [0, 1, 2]
    if real.kind == "f":
        tiny = np.finfo(real).smallest_subnormal
        common = [0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1.5, tiny, -tiny]
    chosen = rng.random(size) < 0.5
    result[chosen] = rng.choice(np.asarray(common, real), int(chosen.sum()))
    return result.view(dtype).reshape(shape)


def stable_order(array, axis, descending):
    keys = array
    if descending:
        keys = -array if array.dtype.kind in "fc" else ~array
    return np.argsort(keys, axis=axis, stable=True)


def assert_sorts(client, x, array, axis, descending=False):
    """Sort and argsort, against NumPy's; elements bit by bit, so that what is equal keeps its order."""
    order = stable_order(array, axis, descending)
    found = client.argsort(x, axis, descending)
    assert found.dtype == client.defaults.indexing
    np.testing.assert_array_equal(client.to_host(found), order)
    got = client.sort(x, axis, descending)
    assert (got.shape, got.dtype) == (array.shape, array.dtype)
    assert got.offset == 0
    assert got.layout.is_contiguous
    expected = np.ascontiguousarray(np.take_along_axis(array, order, axis))
    host = client.to_host(got)
    np.testing.assert_array_equal(host, expected)
    assert host.tobytes() == expected.tobytes()


@pytest.mark.parametrize("descending", [False, True], ids=["rising", "falling"])
@pytest.mark.parametrize("dtype", dt.ALL_DTYPES, ids=str)
def test_every_dtype(dtype, descending):
    for client in (MERGING, WORKGROUPS):
        for seed, (shape, axis) in enumerate([((1,), 0), ((2, 3), 1), ((3, 200), 1), ((70, 5), 0)]):
            array = elements(dtype, shape, seed)
            x = client.from_host(array, copy=True)
            assert_sorts(client, x, array, axis, descending)


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("length", [1, 2, 31, 32, 33, 64, 65, 1000, 1023, 1024, 1025])
def test_lengths(name, length):
    client = CLIENTS[name]
    for lines in (1, 3):
        array = elements(dt.float32, (lines, length), length)
        assert_sorts(client, client.from_host(array, copy=True), array, 1)


@pytest.mark.parametrize(
    ("dtype", "descending"),
    [
        (dt.float32, True),
        (dt.bool_, True),
        (dt.float16, False),
        (dt.int64, True),
        (dt.float64, False),
        (dt.complex128, False),
    ],
    ids=str,
)
def test_digits_of_every_width(dtype, descending):
    for shape in ((2, 1500), (9000,)):
        array = elements(dtype, shape)
        x = WORKGROUPS.from_host(array, copy=True)
        assert_sorts(WORKGROUPS, x, array, len(shape) - 1, descending)


@pytest.mark.parametrize("name", ["merging", "workgroups", "few-workgroups"])
def test_long_lines(name):
    client = CLIENTS[name]
    array = elements(dt.float32, (200_001,))
    assert_sorts(client, client.from_host(array, copy=True), array, 0)
    array = array[:120_000].reshape(3, 40_000)
    assert_sorts(client, client.from_host(array, copy=True), array, 1)


@pytest.mark.parametrize("name", ["merging", "workgroups"])
def test_order_that_is_there_already(name):
    client = CLIENTS[name]
    for array in (np.arange(5000), np.arange(5000)[::-1], np.full(5000, 7), np.arange(5000) // 70):
        array = array.astype(np.float32)
        for descending in (False, True):
            assert_sorts(client, client.from_host(array, copy=True), array, 0, descending)


@pytest.mark.parametrize("name", ["merging", "few-workgroups"])
def test_many_short_lines(name):
    client = CLIENTS[name]
    array = elements(dt.int32, (3000, 3))
    x = client.from_host(array, copy=True)
    assert_sorts(client, x, array, 1)
    assert_sorts(client, x, array, 0)


@pytest.mark.parametrize("dtype", [dt.int8, dt.float16, dt.float32, dt.complex64], ids=str)
def test_views(dtype):
    for client in (MERGING, WORKGROUPS):
        array = elements(dtype, (4, 6, 9))
        x = client.from_host(array, copy=True)
        views = [
            (client.permute(x, (2, 0, 1)), array.transpose(2, 0, 1)),
            (client.wrap(x.storage, x.layout.flip(), dtype), array[::-1, ::-1, ::-1]),
            (
                client.wrap(x.storage, Layout((3, 3, 4), (54, 18, 2), 64), dtype),
                array[1:, 1::2, 1::2][:, :, :4],
            ),
            (client.broadcast(x, (2, 4, 6, 9)), np.broadcast_to(array, (2, 4, 6, 9))),
        ]
        for view, expected in views:
            assert view.shape[1:] == expected.shape[1:]
            host = client.to_host(view)
            for axis in range(view.ndim):
                assert_sorts(client, view, host, axis, descending=axis == 1)
        assert client.to_host(x).tobytes() == array.tobytes()


def test_without_elements():
    client = MERGING
    for shape, axis in [((0,), 0), ((0, 3), 1), ((3, 0), 1), ((3, 0), 0)]:
        array = np.ones(shape, np.float32)
        assert_sorts(client, client.from_host(array, copy=True), array, axis)


def test_a_device_without_64_bits():
    client = CLIENTS["without-64-bits"]
    for dtype in client.dtypes:
        array = elements(dtype, (3, 100))
        assert_sorts(client, client.from_host(array, copy=True), array, 1)


# ------------------------------------------------------------------- searching


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", dt.ALL_DTYPES, ids=str)
def test_searching(dtype, side):
    client = MERGING
    values = elements(dtype, (6, 25), seed=1)
    x = client.from_host(values, copy=True)
    for size in (0, 1, 2, 7, 100):
        ordered = np.sort(elements(dtype, (size,)))
        found = client.searchsorted(client.from_host(ordered, copy=True), x, side)
        assert found.dtype == client.defaults.indexing
        expected = np.searchsorted(ordered, values, side)
        np.testing.assert_array_equal(client.to_host(found), expected)


@pytest.mark.parametrize("dtype", [dt.uint8, dt.float16, dt.float32, dt.int64], ids=str)
def test_searching_in_views(dtype):
    client = MERGING
    ordered = np.sort(elements(dtype, (101,)))
    spread = np.repeat(ordered[::-1], 2)[1:]
    base = client.from_host(spread, copy=True)
    falling = client.wrap(base.storage, Layout((100,), (-2,), 200), dtype)
    host = client.to_host(falling)
    values = elements(dtype, (7, 9), seed=2)
    x = client.from_host(values, copy=True)
    for view in (
        x,
        client.permute(x, (1, 0)),
        client.wrap(x.storage, x.layout.flip(0), dtype),
        client.broadcast(x, (3, 7, 9)),
        client.wrap(x.storage, Layout((), (), 13), dtype),
        client.wrap(x.storage, Layout((3, 0), (1, 1), 13), dtype),
    ):
        found = client.searchsorted(falling, view, "right")
        expected = np.searchsorted(host, client.to_host(view), "right")
        assert found.shape == view.shape
        np.testing.assert_array_equal(client.to_host(found), expected)
