"""Matrix products on WebGPU: every dtype by every kernel, views, long sums, matrices larger than a binding."""

from __future__ import annotations

import numpy as np
import pytest

from numr import dtypes as dt
from numr.layout import Layout, parse_key, split_key
from numr.runtime.wgpu import product_blocks, product_tiles, product_vectors
from numr.runtime.wgpu.product_arithmetic import arithmetic
from numr.runtime.wgpu.product_frame import Product
from tests.runtime.wgpu_support import kernels_of, require_adapter

require_adapter()
pytestmark = pytest.mark.wgpu


CLIENTS = {"cpu": kernels_of("cpu"), "gpu": kernels_of("gpu")}


@pytest.fixture(params=CLIENTS)
def client(request):
    return CLIENTS[request.param]


def random(rng, shape, dtype):
    if dtype.kind == "b":
        return rng.random(shape) < 0.3
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    values = rng.standard_normal(shape)
    if dtype.kind == "c":
        values = values + 1j * rng.standard_normal(shape)
    return values.astype(dtype)


def check(result, left, right):
    """Compare with NumPy: integers exactly, floats computed in more digits within what rounding can do."""
    dtype = left.dtype
    expected_shape = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    assert result.shape == (*expected_shape, left.shape[-2], right.shape[-1])
    assert result.dtype == dtype
    if dtype.kind in "biu":
        np.testing.assert_array_equal(result, left @ right)
        return
    wide = np.clongdouble if dtype.kind == "c" else np.longdouble
    exact = left.astype(wide) @ right.astype(wide)
    size = np.abs(left).astype(np.longdouble) @ np.abs(right).astype(np.longdouble)
    computed = np.float32 if dtype == np.float16 else dtype
    bound = (left.shape[-1] + 4) * np.finfo(computed).eps * size
    if dtype == np.float16:
        bound += np.finfo(dtype).eps * np.abs(exact) + np.finfo(dtype).smallest_subnormal
    assert (np.abs(result - exact) <= bound).all()


def slice_parts(key, shape):
    return split_key(parse_key(key, shape, "getitem", lambda _: None)).basic


def multiply(client, left, right):
    product = client.matmul(client.from_host(left, copy=True), client.from_host(right, copy=True))
    return client.to_host(product)


SHAPES = [
    ((1, 1), (1, 1)),
    ((3, 4), (4, 5)),
    ((1, 700), (700, 1)),
    ((37, 29), (29, 1)),
    ((1, 40), (40, 61)),
    ((50, 3), (3, 2)),
    ((33, 1), (1, 35)),
    ((20, 19), (19, 50)),
    ((5, 3, 4), (4, 6)),
    ((2, 1, 3, 4), (5, 4, 2)),
]


@pytest.mark.parametrize("dtype", dt.ALL_DTYPES, ids=str)
def test_products_of_every_dtype(client, dtype):
    rng = np.random.default_rng(1)
    for first, second in SHAPES:
        left, right = random(rng, first, dtype), random(rng, second, dtype)
        check(multiply(client, left, right), left, right)


@pytest.mark.parametrize("dtype", [dt.int8, dt.float16, dt.float32, dt.complex64], ids=str)
def test_products_of_views(client, dtype):
    rng = np.random.default_rng(2)
    big = random(rng, (3, 40, 44), dtype)
    array = client.from_host(big, copy=True)

    def views(x, permute, broadcast, part):
        yield part(x, np.s_[0, 3:37, 5:26]), part(x, np.s_[1, 2:23, 1:30])
        yield part(x, np.s_[:, ::2, ::3]), permute(part(x, np.s_[:, 1:30:4, 2:32:2]), (0, 2, 1))
        yield part(x, np.s_[:2, ::-1, 20::-1]), part(x, np.s_[2, 20::-1, ::-3])
        yield permute(x, (2, 0, 1)), broadcast(part(x, np.s_[0, 0, 2:3]), (44, 40, 5))
        yield (
            broadcast(part(x, np.s_[0, 0, :30]), (7, 30)),
            permute(part(x, np.s_[0, 5:25, :30]), (1, 0)),
        )
        yield permute(x, (2, 1, 0)), permute(x, (2, 0, 1))

    def device_part(x, key):
        return client.slice(x, slice_parts(key, x.shape))

    expected = views(big, np.transpose, np.broadcast_to, lambda x, key: x[key])
    for (left, right), host in zip(
        views(array, client.permute, client.broadcast, device_part), expected, strict=True
    ):
        check(client.to_host(client.matmul(left, right)), *host)


@pytest.mark.parametrize("dtype", dt.ALL_DTYPES, ids=str)
def test_products_without_elements(client, dtype):
    for first, second in [
        ((0, 3), (3, 4)),
        ((2, 0), (0, 3)),
        ((4, 0, 2, 3), (3, 5)),
        ((2, 5, 0), (2, 0, 3)),
        ((0, 0), (0, 0)),
    ]:
        left, right = np.ones(first, dtype), np.ones(second, dtype)
        result = multiply(client, left, right)
        assert result.dtype == dtype
        np.testing.assert_array_equal(result, left @ right)


def test_sums_longer_than_an_invocation_may_loop():
    client = CLIENTS["cpu"]
    rng = np.random.default_rng(3)
    left, right = random(rng, (1, 300_000), dt.uint32), random(rng, (300_000, 1), dt.uint32)
    check(multiply(client, left, right), left, right)
    # As many matrices as keep the device busy without cutting the sums.
    left, right = random(rng, (4, 70_000), dt.uint32), random(rng, (70_000, 4), dt.uint32)
    wide = client.broadcast(client.from_host(left, copy=True), (64, 4, 70_000))
    result = client.to_host(client.matmul(wide, client.from_host(right, copy=True)))
    np.testing.assert_array_equal(result, np.broadcast_to(left @ right, (64, 4, 4)))


@pytest.mark.parametrize("kernels", CLIENTS)
def test_matrices_larger_than_a_binding(kernels):
    client = kernels_of(kernels, limits={"max-storage-buffer-binding-size": 2048})
    rng = np.random.default_rng(4)
    for first, second in [
        ((50, 30), (30, 40)),
        ((3, 2000), (2000, 2)),
        ((2, 5), (5, 900)),
        ((4, 3, 20, 9), (3, 9, 20)),
    ]:
        left, right = random(rng, first, dt.int32), random(rng, second, dt.int32)
        check(multiply(client, left, right), left, right)
        left, right = random(rng, first[::-1], dt.int32).T, random(rng, second[::-1], dt.int32).T
        device = [
            client.permute(client.from_host(x.T, copy=True), tuple(range(x.ndim))[::-1])
            for x in (left, right)
        ]
        if left.ndim == 2:
            check(client.to_host(client.matmul(*device)), left, right)


@pytest.mark.parametrize("kernels", CLIENTS)
def test_more_workgroups_than_a_row_has(kernels):
    client = kernels_of(kernels, limits={"max-compute-workgroups-per-dimension": 12})
    rng = np.random.default_rng(5)
    for first, second in [((100, 2, 3), (3, 2)), ((200, 20), (20, 140)), ((140, 50), (50, 1))]:
        left, right = random(rng, first, dt.int32), random(rng, second, dt.int32)
        check(multiply(client, left, right), left, right)


@pytest.mark.parametrize("kernels", CLIENTS)
def test_devices_without_64_bit_types_and_float16(kernels):
    missing = {"shader-f64", "shader-int64", "shader-f16", "immediates"}
    client = kernels_of(kernels, without=missing)
    rng = np.random.default_rng(6)
    for dtype in (dt.bool_, dt.int16, dt.uint32, dt.float32, dt.complex64):
        left, right = random(rng, (3, 30, 20), dtype), random(rng, (20, 25), dtype)
        check(multiply(client, left, right), left, right)


def test_what_lies_around_a_view_does_not_matter(client):
    around = np.full((70, 72), np.nan, np.float32)
    around[3:40, 4:37] = 2
    array = client.from_host(around, copy=True)
    left = client.wrap(array.storage, Layout((37, 33), (72, 1), 3 * 72 + 4), array.dtype)
    for pair in ((left, client.permute(left, (1, 0))), (client.permute(left, (1, 0)), left)):
        result = client.to_host(client.matmul(*pair))
        assert (result == 4 * pair[0].shape[1]).all()


def test_scattered_elements_that_are_read_often():
    client = CLIENTS["gpu"]
    rng = np.random.default_rng(11)
    big = random(rng, (2, 150, 75), dt.int32)
    right = random(rng, (25, 70), dt.int32)
    array = client.from_host(big, copy=True)
    view = client.slice(array, slice_parts(np.s_[:, ::2, ::3], big.shape))
    wide = client.broadcast(view, (3, 2, 75, 25))
    result = client.matmul(wide, client.from_host(right, copy=True))
    check(client.to_host(result), np.broadcast_to(big[:, ::2, ::3], (3, 2, 75, 25)), right)


def test_nan_and_infinity_stay_in_their_rows(client):
    left, right = np.ones((40, 35), np.float32), np.ones((35, 38), np.float32)
    left[5, 3], left[7, 0], left[7, 1], left[9, 2] = np.nan, np.inf, -np.inf, np.inf
    result = multiply(client, left, right)
    assert np.isnan(result[[5, 7]]).all()
    assert (result[9] == np.inf).all()
    assert (np.delete(result, [5, 7, 9], 0) == 35).all()


@pytest.mark.parametrize("dtype", [dt.uint8, dt.float32, dt.float64, dt.complex64], ids=str)
def test_tiles_of_every_size_in_slices(dtype):
    client = CLIENTS["gpu"]
    numbers = arithmetic(dtype)
    rng = np.random.default_rng(7)
    left, right = random(rng, (2, 150, 44), dtype), random(rng, (2, 44, 140), dtype)
    first, second = (client.from_host(x, copy=True) for x in (left, right))
    shared = client.context.limits["max-compute-workgroup-storage-size"]
    for tile in product_tiles.tiles(numbers):
        for slices in (1, 3):
            result = client.context.empty((2, 150, 140), numbers.total)
            product = Product(first, second, result)
            product_tiles.multiply(client.context, product, numbers, tile, slices)
            check(client.to_host(result).astype(dtype), left, right)
        assert tile.memory(numbers) <= shared


@pytest.mark.parametrize("dtype", [dt.uint16, dt.float32, dt.complex64], ids=str)
def test_products_with_few_columns_in_slices(dtype):
    client = CLIENTS["gpu"]
    numbers = arithmetic(dtype)
    rng = np.random.default_rng(8)
    for rows, inner, columns in [(1, 3000, 1), (300, 500, 1), (60, 100, 3), (20, 7, 4)]:
        left, right = random(rng, (rows, inner), dtype), random(rng, (inner, columns), dtype)
        second = client.from_host(right, copy=True)
        for first in (
            client.from_host(left, copy=True),
            client.permute(client.from_host(left.T, copy=True), (1, 0)),
        ):
            for slices in (1, 3):
                result = client.context.empty((rows, columns), numbers.total)
                product = Product(first, second, result)
                product_vectors.multiply(client.context, product, numbers, slices)
                check(client.to_host(result).astype(dtype), left, right)


def test_large_blocks_and_the_edges_beside_them():
    client = CLIENTS["cpu"]
    rng = np.random.default_rng(9)
    for dtype in (dt.float32, dt.int64, dt.complex64):
        left, right = random(rng, (101, 120), dtype), random(rng, (120, 107), dtype)
        assert 101 % product_blocks.large(arithmetic(dtype)).rows
        check(multiply(client, left, right), left, right)


def test_results_are_the_same_every_time(client):
    rng = np.random.default_rng(10)
    left, right = random(rng, (30, 3000), dt.float32), random(rng, (3000, 20), dt.float32)
    first = multiply(client, left, right)
    for _ in range(3):
        np.testing.assert_array_equal(multiply(client, left, right), first)
