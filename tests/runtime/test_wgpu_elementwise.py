"""Elementwise kernels of the WebGPU runtime: dtypes, layouts, scalars, limits of adapters, writing in place."""

from __future__ import annotations

import itertools
import math
import weakref

import numpy as np
import pytest

from numr import dtypes as dt
from numr.errors import ShapeError, UnsupportedDType
from numr.ir import ops
from numr.layout import Layout
from numr.runtime.wgpu import WgpuRuntime
from numr.runtime.wgpu.elementwise import Elementwise
from numr.runtime.wgpu.submitting import PublicApi
from tests.runtime.wgpu_support import require_adapter, variant

pytestmark = pytest.mark.wgpu
require_adapter()

NUMBERS = [dtype for dtype in dt.ALL_DTYPES if dtype.kind != "b"]


@pytest.fixture(scope="module")
def client():
    rt = variant()
    return rt.Client(rt.default_device())


def client_with(**options):
    rt = variant(**options)
    return rt.Client(rt.default_device())


def require(client, *dtypes):
    for dtype in dtypes:
        if dtype not in client.dtypes:
            pytest.skip(f"{client.device} has no {dtype}")


def run(client, op, *operands):
    """An operation on host arrays and scalars, by way of the device."""
    kinds = tuple(x.dtype if isinstance(x, np.ndarray) else type(x) for x in operands)
    native = [to_device(client, x) for x in operands]
    return client.to_host(client.elementwise_loop(op, kinds)(*native))


def to_device(client, value):
    """A host array with its strides and offset, as a view of a copy of its memory; scalars stay."""
    if not isinstance(value, np.ndarray):
        return value
    root = value
    while isinstance(root.base, np.ndarray):
        root = root.base
    assert root.flags.c_contiguous
    flat = root.reshape(-1).view(value.dtype)
    offset = value.__array_interface__["data"][0] - flat.__array_interface__["data"][0]
    whole = client.from_host(flat, copy=True)
    size = value.itemsize
    layout = Layout(value.shape, tuple(step // size for step in value.strides), offset // size)
    return client.wrap(client.storage(whole), layout, value.dtype)


def numbers(dtype, count, seed=0):
    """Small whole numbers and halves, of which sums and products are exact in every dtype."""
    rng = np.random.default_rng(seed)
    if dtype.kind == "b":
        return rng.integers(0, 2, count).astype(dtype)
    values = rng.integers(0 if dtype.kind == "u" else -8, 9, count)
    if dtype.kind == "c":
        return (values + 1j * rng.integers(-8, 9, count)).astype(dtype)
    return (values / 2 if dtype.kind == "f" else values).astype(dtype)


# ---------------------------------------------------------------------- dtypes
@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 63, 64, 1021])
def test_every_dtype_and_length(client, dtype, count):
    require(client, dtype)
    x, y = numbers(dtype, count, 1), numbers(dtype, count, 2)
    for op, function in ((ops.ADD, np.add), (ops.MULTIPLY, np.multiply), (ops.EQUAL, np.equal)):
        result = run(client, op, x, y)
        assert result.dtype == (np.bool_ if op is ops.EQUAL else dtype)
        np.testing.assert_array_equal(result, function(x, y))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 64, 255])
def test_booleans(client, count):
    x, y = numbers(dt.bool_, count, 3), numbers(dt.bool_, count, 4)
    np.testing.assert_array_equal(run(client, ops.LOGICAL_AND, x, y), x & y)
    np.testing.assert_array_equal(run(client, ops.LOGICAL_XOR, x, y), x ^ y)
    np.testing.assert_array_equal(run(client, ops.LOGICAL_NOT, x), ~x)


PAIRS = [
    (first, second)
    for first, second in itertools.product(dt.ALL_DTYPES, repeat=2)
    if not (first.kind == "c" and second.kind in "iuf")
]


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=lambda dtype: str(dtype))
def test_conversions(client, source, target):
    require(client, source, target)
    x = numbers(source, 77, 5)
    if target.kind == "u":
        x = np.abs(x).astype(source)
    for view in (x, x[1::2], x[::-1]):
        result = client.to_host(client.cast(to_device(client, view), target))
        assert result.dtype == target
        np.testing.assert_array_equal(result, view.astype(target))


def test_conversions_at_the_ends_of_a_range(client):
    floats = np.float32([3e9, -3e9, np.nan, np.inf, -np.inf, 2147483520.0, -2147483648.0, -0.9])
    got = client.to_host(client.cast(client.from_host(floats, copy=True), dt.int32))
    top, bottom = np.iinfo(np.int32).max, np.iinfo(np.int32).min
    assert got.tolist() == [top, bottom, 0, top, bottom, 2147483520, bottom, 0]
    integers = np.int32([300, -1, 255, 256])
    got = client.to_host(client.cast(client.from_host(integers, copy=True), dt.uint8))
    assert got.tolist() == [44, 255, 255, 0]


def test_operands_of_different_dtypes(client):
    x, y = numbers(dt.int8, 33, 6), numbers(dt.uint8, 33, 7)
    result = run(client, ops.SUBTRACT, x, y)
    assert result.dtype == np.int16
    np.testing.assert_array_equal(result, np.subtract(x, y, dtype=np.int16))
    z = numbers(dt.float32, 33, 8)
    result = run(client, ops.MULTIPLY, x, z)
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, x * z)
    half = run(client, ops.DIVIDE, y, np.uint8([2]))
    assert half.dtype == np.float32  # the default dtype of every adapter
    np.testing.assert_array_equal(half, y / np.float32(2))


# --------------------------------------------------------------------- layouts
def views(dtype):
    x = numbers(dtype, 6 * 8 * 10, 9).reshape(6, 8, 10)
    yield "reversed", x[::-1, :, ::-1], x[:, ::-1]
    yield "steps", x[1::2, ::3, 1::4], x[::2, ::3, ::4][..., :3]
    yield "permuted", x.transpose(2, 0, 1), x.transpose(2, 0, 1)[::-1]
    yield "odd offset", x.reshape(-1)[1:100], x.reshape(-1)[3:102]
    yield "aligned offset", x.reshape(-1)[64:200], x.reshape(-1)[128:264]
    yield "rows", x, np.broadcast_to(x[:1, :1], x.shape)
    yield "columns", x, x[:, :, 3:4]
    yield "one element", x, x[2, 3, 4, ...]
    yield "no axes", x[1, 2, 3, ...], x[3, 2, 1, ...]
    yield "axes of length 1", x[:, :1], x[:1, 1:2]
    yield "Fortran order", x.T, x[::-1].copy().T
    yield "empty", x[:0], x[:1]


@pytest.mark.parametrize("dtype", [*NUMBERS, dt.bool_], ids=str)
def test_views(client, dtype):
    require(client, dtype)
    op, function = (ops.LOGICAL_XOR, np.logical_xor) if dtype.kind == "b" else (ops.ADD, np.add)
    for name, x, y in views(dtype):
        expected = function(x, y)
        np.testing.assert_array_equal(run(client, op, x, y), expected, err_msg=name)
        np.testing.assert_array_equal(run(client, ops.EQUAL, y, x), y == x, err_msg=name)


def test_results_of_operands_in_fortran_order_lie_in_that_order(client):
    x = numbers(dt.float32, 12, 10).reshape(3, 4)
    native = client.permute(client.from_host(x, copy=True), (1, 0))
    result = client.elementwise_loop(ops.ADD, (dt.float32, dt.float32))(native, native)
    assert result.strides == (1, 4)
    np.testing.assert_array_equal(client.to_host(result), (x + x).T)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "float16", "int32", "float32", "complex64"])
@pytest.mark.parametrize("words", ["of 64 bits", "of 32 bits"])
def test_elements_are_read_by_words(dtype, words):
    without = {"shader-f64", "shader-int64"} if words == "of 32 bits" else ()
    client = client_with(without=without, kind="CPU")
    require(client, np.dtype(dtype))
    for size in (1, 2, 3, 4, 5, 8, 1027):
        x, y = (numbers(np.dtype(dtype), size, seed) for seed in (1, 2))
        np.testing.assert_array_equal(run(client, ops.ADD, x, y), x + y)
        np.testing.assert_array_equal(run(client, ops.LESS, x.real, y.real), x.real < y.real)
    (made,) = client.operation(ops.ADD, (x.dtype, y.dtype))._texts._made.values()
    has_wide_words = "u64" in made.text.buffers[0].type
    assert has_wide_words == (words == "of 64 bits" and x.itemsize > 1)


def test_gpus_copy_large_operands_that_lie_across(monkeypatch):
    monkeypatch.setattr("numr.runtime.wgpu.launch._WORTH_TURNING", 1000)
    client = client_with(kind="DiscreteGPU")
    a, b = (numbers(np.dtype("float32"), 40 * 36, seed) for seed in (1, 2))
    a, b = a.reshape(40, 36), b.reshape(36, 40).T
    for _ in range(2):
        np.testing.assert_array_equal(run(client, ops.ADD, a, b), a + b)
        np.testing.assert_array_equal(run(client, ops.ADD, b, 2.0), b + np.float32(2))
    operation = client.operation(ops.ADD, (a.dtype, b.dtype))
    assert not operation._planned  # a plan for the copies would not do for the operands
    target = to_device(client, a)
    client.elementwise_into(ops.ADD, (a.dtype, b.dtype), (target, to_device(client, b)), target)
    np.testing.assert_array_equal(client.to_host(target), a + b)


def test_shapes_that_do_not_broadcast(client):
    x = client.from_host(np.zeros((2, 3), np.float32), copy=True)
    y = client.from_host(np.zeros((2, 4), np.float32), copy=True)
    with pytest.raises(ShapeError, match=r"add.*\(2, 3\).*\(2, 4\)"):
        client.elementwise_loop(ops.ADD, (dt.float32, dt.float32))(x, y)


def test_many_axes(client):
    x = numbers(dt.int32, 2**13, 11).reshape((2,) * 13)
    y = x.transpose(range(13)[::-1])
    np.testing.assert_array_equal(run(client, ops.SUBTRACT, x, y), x - y)
    z = x.astype(np.int8)
    np.testing.assert_array_equal(run(client, ops.SUBTRACT, z, z.T), z - z.T)


# -------------------------------------------------------------------- limits
def test_more_workgroups_than_a_row():
    client = client_with(limits={"max-compute-workgroups-per-dimension": 3})
    x, y = numbers(dt.float32, 5000, 12), numbers(dt.float32, 5000, 13)
    np.testing.assert_array_equal(run(client, ops.ADD, x, y), x + y)
    np.testing.assert_array_equal(
        run(client, ops.ADD, x[::-1][:1500], y[:1500]), x[::-1][:1500] + y[:1500]
    )


@pytest.mark.parametrize(
    "dtype", [dt.int8, dt.int16, dt.float32, dt.float64, dt.complex128], ids=str
)
def test_arrays_larger_than_a_binding(dtype):
    client = client_with(limits={"max-storage-buffer-binding-size": 4096})
    require(client, dtype)
    x, y = numbers(dtype, 5003, 14), numbers(dtype, 5003, 15)
    np.testing.assert_array_equal(run(client, ops.ADD, x, y), x + y)
    np.testing.assert_array_equal(run(client, ops.EQUAL, x[1:], y[:-1]), x[1:] == y[:-1])
    np.testing.assert_array_equal(run(client, ops.ADD, x[::-1], y[7]), x[::-1] + y[7])
    square, row = x[:4900].reshape(70, 70), y[:70]
    np.testing.assert_array_equal(run(client, ops.ADD, square, row), square + row)
    np.testing.assert_array_equal(run(client, ops.ADD, square.T, square), square.T + square)
    np.testing.assert_array_equal(
        run(client, ops.SIN, np.float32(x.real)), run(client_with(), ops.SIN, np.float32(x.real))
    )


@pytest.mark.parametrize("dtype", [dt.uint8, dt.float32, dt.complex64], ids=str)
def test_fewer_storage_buffers_than_operands(dtype):
    client = client_with(limits={"max-storage-buffers-per-shader-stage": 3})
    x, y = numbers(dtype, 300, 16), numbers(dtype, 300, 17)
    condition = numbers(dt.bool_, 300, 18)
    np.testing.assert_array_equal(
        run(client, ops.SELECT, condition, x, y), np.where(condition, x, y)
    )
    np.testing.assert_array_equal(
        run(client, ops.SELECT, condition[::3], x[1::3], y[:1]),
        np.where(condition[::3], x[1::3], y[:1]),
    )


def test_adapters_without_64_bit_types_compute_all_others():
    client = client_with(without={"shader-f64", "shader-int64", "shader-f16"})
    for dtype in client.dtypes:
        x, y = numbers(dtype, 41, 19), numbers(dtype, 41, 20)
        np.testing.assert_array_equal(run(client, ops.SELECT, x == y, x, y), np.where(x == y, x, y))
        if dtype.kind in "iufc":
            np.testing.assert_array_equal(run(client, ops.ADD, x, 3), x + dtype.type(3))
            np.testing.assert_array_equal(run(client, ops.ADD, x[::-2], y[20:]), x[::-2] + y[20:])
    x, y = client.empty((2,), dt.int32), client.empty((2,), dt.uint32)
    with pytest.raises(UnsupportedDType, match=r"add: .*int64.*shader-int64"):
        client.elementwise_loop(ops.ADD, (dt.int32, dt.uint32))(x, y)


# --------------------------------------------------------------------- scalars
@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_scalars_of_every_dtype(client, dtype):
    require(client, dtype)
    x = numbers(dtype, 21, 21)
    values = {
        "i": [3, True, -8],
        "u": [3, True, 100],
        "f": [0.5, 3, True, math.nan, math.inf, -0.0, 1e300, 1e-300],
        "c": [0.5, 2, 1 + 2j, complex(math.inf, 1.0)],
    }[dtype.kind]
    with np.errstate(all="ignore"):
        for value in values:
            scalar = np.asarray(value).astype(dtype)
            np.testing.assert_array_equal(run(client, ops.ADD, x, value), x + scalar)
            if dtype.kind != "c":
                np.testing.assert_array_equal(run(client, ops.SUBTRACT, value, x), scalar - x)


@pytest.mark.parametrize("dtype", [d for d in NUMBERS if d.kind in "iu"], ids=str)
def test_integers_at_and_beyond_the_ends_of_the_range(client, dtype):
    require(client, dtype)
    info = np.iinfo(dtype)
    x = np.asarray([info.min, info.max, 0, 1], dtype)
    for end in (int(info.min), int(info.max)):
        result = run(client, ops.SUBTRACT, x, end)
        np.testing.assert_array_equal(result, x - dtype.type(end))
    for beyond in (int(info.min) - 1, int(info.max) + 1):
        with pytest.raises(OverflowError, match=f"{beyond} out of bounds for {dtype}"):
            run(client, ops.ADD, x, beyond)
        for op, function in (
            (ops.EQUAL, np.equal),
            (ops.NOT_EQUAL, np.not_equal),
            (ops.LESS, np.less),
            (ops.GREATER_EQUAL, np.greater_equal),
        ):
            expected = function(x.astype(object), beyond).astype(bool)
            np.testing.assert_array_equal(run(client, op, x, beyond), expected)
            expected = function(beyond, x.astype(object)).astype(bool)
            np.testing.assert_array_equal(run(client, op, beyond, x), expected)


def test_scalars_are_rounded_as_numpy_rounds_them(client):
    x = np.zeros(1, np.float32)
    largest = float(np.finfo(np.float32).max)
    for value in (largest, math.nextafter(3.4028235677973366e38, 0), 3.4028235677973366e38, -1e39):
        with np.errstate(over="ignore"):
            assert run(client, ops.ADD, x, value)[0] == np.float32(value)
    require(client, dt.float16)
    half = np.zeros(1, np.float16)
    for value in (65519.99, 65520.0, 1.0 + 2.0**-11 + 2.0**-30, 6e-8):
        with np.errstate(over="ignore"):
            assert run(client, ops.ADD, half, value)[0] == np.float16(value)


def test_a_scalar_does_not_make_a_new_kernel(client):
    x = client.from_host(np.ones(8, np.float32), copy=True)
    loop = client.elementwise_loop(ops.MULTIPLY, (dt.float32, float))
    loop(x, 2.0)
    pipelines = client.context.opened.pipelines
    before = pipelines.misses
    for value in (3.0, 4.0, math.nan):
        np.testing.assert_array_equal(client.to_host(loop(x, value)), np.full(8, value, np.float32))
    assert pipelines.misses == before


def test_shapes_and_strides_do_not_make_new_kernels(client):
    loop = client.elementwise_loop(ops.ADD, (dt.float32, dt.float32))
    x = numbers(dt.float32, 4000, 22)
    native = client.from_host(x, copy=True)

    def view(shape, strides, offset):
        return client.wrap(native.storage, Layout(shape, strides, offset), native.dtype)

    loop(native, native), loop(view((9,), (2,), 0), view((9,), (3,), 0))
    pipelines = client.context.opened.pipelines
    before = pipelines.misses
    for count, step, offset in [(100, 7, 11), (200, -3, 1000), (3000, 1, 900)]:
        got = client.to_host(loop(view((count,), (step,), offset), view((count,), (1,), 3)))
        index = offset + step * np.arange(count)
        np.testing.assert_array_equal(got, x[index] + x[3 : 3 + count])
    assert pipelines.misses == before


# ------------------------------------------------------------- special values
def test_a_choice_moves_bits(client):
    bits = np.uint32([0x7FC01234, 0xFFFFFFFF, 0x80000000, 1, 0x807FFFFF, 0x3F800000])
    x = bits.view(np.float32)
    y = bits[::-1].copy().view(np.float32)
    condition = np.array([True, False, True, True, True, False])
    expected = np.where(condition, x.view(np.uint32), y.view(np.uint32))
    got = run(client, ops.SELECT, condition, x, y)
    np.testing.assert_array_equal(got.view(np.uint32), expected)
    pairs = run(client, ops.SELECT, condition[::2], x.view(np.complex64), y.view(np.complex64))
    expected = np.where(condition[::2], bits.view(np.uint64), bits[::-1].copy().view(np.uint64))
    np.testing.assert_array_equal(pairs.view(np.uint64), expected)


def test_a_choice_converts_its_operands(client):
    condition = np.array([True, False, True])
    result = run(client, ops.SELECT, condition, np.float32([1.5, 2.5, 3.5]), np.int8([7, 8, 9]))
    assert result.dtype == np.float32
    assert result.tolist() == [1.5, 8.0, 3.5]
    result = run(client, ops.SELECT, condition, np.float32([1.5, 2.5, 3.5]), -0.0)
    assert np.signbit(result).tolist() == [False, True, False]


def test_special_values(client):
    x = np.float32([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(run(client, ops.SUBTRACT, x, x), x - x)
        np.testing.assert_array_equal(run(client, ops.MULTIPLY, x, 0.0), x * np.float32(0))
    np.testing.assert_array_equal(run(client, ops.NOT_EQUAL, x, x), x != x)
    assert np.signbit(run(client, ops.NEGATIVE, x[3:])).tolist() == [True, False, True]
    assert np.signbit(run(client, ops.ADD, x[3:], -0.0)).tolist() == [False, True, False]


# -------------------------------------------------------------------- in place
@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_in_place(client, dtype):
    require(client, dtype)
    kinds = (dtype, dtype)
    for make in (
        lambda x: x,
        lambda x: x[1:],
        lambda x: x[3:200],
        lambda x: x[::-3],
        lambda x: x.reshape(20, 15)[2:5, 1::2],
        lambda x: x.reshape(20, 15).T,
    ):
        host = numbers(dtype, 300, 23)
        native = client.from_host(host, copy=True)
        target = make(host)
        view = client.wrap(native.storage, to_device(client, target).layout, dtype)
        other = numbers(dtype, target.size, 24).reshape(target.shape)
        client.elementwise_into(ops.ADD, kinds, (view, to_device(client, other)), view)
        target += other
        client.elementwise_into(ops.MULTIPLY, kinds, (view, view), view)
        target *= target
        client.elementwise_into(ops.ADD, (dtype, int), (view, 1), view)
        target += dtype.type(1)
        np.testing.assert_array_equal(client.to_host(native), host)


def test_in_place_with_operands_that_overlap(client):
    for dtype in (dt.int32, dt.uint8):
        host = np.arange(50).astype(dtype)
        native = client.from_host(host, copy=True)

        def view(start, stop, step=1, native=native, dtype=dtype):
            count = len(range(start, stop, step))
            return client.wrap(native.storage, Layout((count,), (step,), start), dtype)

        kinds = (dtype, dtype)
        client.elementwise_into(ops.ADD, kinds, (view(1, 50), view(0, 49)), view(1, 50))
        host[1:] = host[1:] + host[:-1]
        np.testing.assert_array_equal(client.to_host(native), host)
        client.elementwise_into(ops.ADD, kinds, (view(0, 50), view(49, -1, -1)), view(0, 50))
        host[:] = host + host[::-1]
        np.testing.assert_array_equal(client.to_host(native), host)


def test_in_place_beyond_a_binding():
    client = client_with(limits={"max-storage-buffer-binding-size": 1024})
    for dtype in (dt.int8, dt.float32):
        host, other = numbers(dtype, 3001, 25), numbers(dtype, 3001, 26)
        native = client.from_host(host, copy=True)
        client.elementwise_into(ops.ADD, (dtype, dtype), (native, to_device(client, other)), native)
        view = client.wrap(native.storage, Layout((2999,), (1,), 1), dtype)
        client.elementwise_into(ops.ADD, (dtype, int), (view, 2), view)
        host += other
        host[1:3000] += dtype.type(2)
        np.testing.assert_array_equal(client.to_host(native), host)


# -------------------------------------------------------------------- creation
@pytest.mark.parametrize("dtype", dt.ALL_DTYPES, ids=str)
def test_full(client, dtype):
    require(client, dtype)
    value = {"b": True, "i": -3, "u": 200, "f": -0.0, "c": 1.5 - 2j}[dtype.kind]
    for shape in ((), (0,), (1,), (7,), (3, 5), (1025,)):
        result = client.to_host(client.full(shape, value, dtype))
        assert result.dtype == dtype
        np.testing.assert_array_equal(result, np.full(shape, value, dtype))
    if dtype.kind == "f":
        assert np.signbit(client.to_host(client.full((5,), value, dtype))).all()


@pytest.mark.parametrize("dtype", [d for d in NUMBERS if d.kind in "iu"], ids=str)
@pytest.mark.parametrize(("start", "step"), [(0, 1), (5, -3), (-7, 1000), (2**70, 3), (200, 2**31)])
def test_ranges_of_integers_wrap(client, dtype, start, step):
    require(client, dtype)
    result = client.to_host(client.iota(1003, start, step, dtype))
    expected = [(start + i * step) % 2 ** (8 * dtype.itemsize) for i in range(1003)]
    np.testing.assert_array_equal(
        result.view(f"u{dtype.itemsize}"),
        np.array(expected, np.uint64).astype(f"u{dtype.itemsize}"),
    )


RANGES = [
    (0.0, 1.0),
    (0.1, 0.1),
    (-1e30, 3.7e27),
    (1.0, 2.0**-40),
    (1e-40, 1e-43),
    (3e38, -1.7e35),
    (-3.4e38, 6.8e35),
    (0.0, -0.3),
    (1 / 3, 1e-7 / 3),
    (16777216.0, 1 / 3),
]


def flushes_subnormals(client):
    """Whether the adapter takes float32 numbers below 1.18e-38 for zero in arithmetic, as some GPUs do."""
    tiny = np.array([1e-40], np.float32)
    (total,) = run(client, ops.ADD, tiny, tiny)
    assert total in (0, 2 * tiny[0])
    return total == 0


def assert_rounded_once(result, exact, *, flushed):
    """That each number is the nearest to an exact one; but for what is left where numbers 2**20 times as large cancel.

    Subnormal numbers may be zero instead where they are ``flushed``.
    """
    with np.errstate(over="ignore"):
        expected = exact.astype(result.dtype)
    small = np.abs(exact) < np.abs(exact).max() / 2**20
    subnormal = np.abs(exact) < np.finfo(result.dtype).smallest_normal
    strict = ~small & ~subnormal
    np.testing.assert_array_equal(result[strict], expected[strict])
    if flushed:
        strict |= subnormal & (result == 0)
    error = np.abs(result.astype(np.longdouble) - exact)[~strict]
    tiny = np.finfo(result.dtype).smallest_subnormal
    assert (
        error <= np.abs(exact).max() * 2.0**-45 + np.abs(exact[~strict]) * 2.0**-24 + tiny
    ).all()


@pytest.mark.parametrize("doubles", [True, False], ids=["with float64", "without"])
@pytest.mark.parametrize(("start", "step"), RANGES)
def test_ranges_of_floats_are_rounded_once(client, doubles, start, step):
    if not doubles:
        client = client_with(without={"shader-f64", "shader-int64"})
    size = 1001
    flushed = not doubles and flushes_subnormals(client)

    def exact(start, step):
        return np.longdouble(start) + np.arange(size, dtype=np.longdouble) * np.longdouble(step)

    single = client.to_host(client.iota(size, start, step, dt.float32))
    assert_rounded_once(single, exact(start, step), flushed=flushed)
    first, second = complex(start, step), complex(step, start)
    parts = client.to_host(client.iota(size, first, second, dt.complex64))
    assert_rounded_once(parts.real, exact(start, step), flushed=flushed)
    assert_rounded_once(parts.imag, exact(step, start), flushed=flushed)
    if dt.float16 in client.dtypes and max(abs(start), abs(step)) < 1e5:
        halves = client.to_host(client.iota(size, start, step, dt.float16))
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(halves, exact(start, step).astype(np.float16))
    if doubles and dt.float64 in client.dtypes:
        wide = client.to_host(client.iota(size, start, step, dt.float64))
        np.testing.assert_array_equal(wide, start + np.arange(size) * step)


@pytest.mark.parametrize("doubles", [True, False], ids=["with float64", "without"])
def test_ranges_that_are_not_finite(client, doubles):
    if not doubles:
        client = client_with(without={"shader-f64", "shader-int64"})
    for start, step in [(math.inf, 1.0), (-math.inf, 1.0), (math.nan, 1.0), (0.0, math.inf)]:
        with np.errstate(all="ignore"):
            expected = (start + np.arange(4.0) * step).astype(np.float32)
        np.testing.assert_array_equal(
            client.to_host(client.iota(4, start, step, dt.float32)), expected
        )


def test_the_number_of_an_element_counts_through_all_dispatches():
    client = client_with(limits={"max-storage-buffer-binding-size": 1024})
    for dtype in (dt.uint8, dt.int32, dt.float32):
        result = client.to_host(client.iota(5000, 1, 1, dtype))
        np.testing.assert_array_equal(result, (1 + np.arange(5000)).astype(dtype))


# ------------------------------------------------------------------- the device
def test_operations_outlive_the_device():
    client = client_with()
    loop = client.elementwise_loop(ops.ADD, (dt.float32, dt.float32))
    for _ in range(2):
        x = client.from_host(np.float32([1, 2, 3]), copy=True)
        for _ in range(3):
            assert client.to_host(loop(x, x)).tolist() == [2, 4, 6]
        client.context.allocator.close(forked=False)


@pytest.mark.parametrize("dtype", [dt.int8, dt.int16, dt.float32, dt.complex64], ids=str)
def test_a_plan_fits_buffers_of_every_size(client, dtype):
    require(client, dtype)
    loop = client.elementwise_loop(ops.ADD, (dtype, dtype))
    count = 64 // dtype.itemsize
    for size in (100 * count, 2 * count, 4 * count):
        host = numbers(dtype, size, 27)
        native = client.from_host(host, copy=True)
        view = client.wrap(native.storage, Layout((count,), (1,), count), dtype)
        got = client.to_host(loop(view, view))
        np.testing.assert_array_equal(got, host[count : 2 * count] * dtype.type(2))


def test_plans_are_dropped_when_there_are_many(client):
    loop = client.elementwise_loop(ops.NEGATIVE, (dt.int32,))
    assert isinstance(loop, Elementwise)
    for size in [*range(1, 300), *range(1, 300)]:
        x = client.iota(size, 0, 1, dt.int32)
        assert client.to_host(loop(x))[-1] == 1 - size
    assert len(loop._planned) <= 256


def test_the_client_is_that_of_the_runtime():
    assert issubclass(variant().Client, WgpuRuntime.Client)


# ------------------------------------------------------------- repeated records
def chained(client, x, y, count):
    """Add and add again."""
    loop = client.elementwise_loop(ops.ADD, (x.dtype, y.dtype))
    for _ in range(count):
        x = loop(x, y)
    return x


@pytest.mark.parametrize("api", [None, PublicApi], ids=["native", "public"])
@pytest.mark.parametrize("without", [(), ("immediates",)], ids=["immediates", "uniforms"])
def test_what_is_computed_again_in_the_same_buffers_is_one_record(api, without):
    client = client_with(without=without, **({"api": api} if api else {}))
    queue = client.context.opened.queue
    x, y = (client.from_host(np.full(300, value, np.float32), copy=True) for value in (5, 1))
    chained(client, x, y, 4)
    known = dict(queue.repeated)
    assert 0 < len(known) <= 4
    np.testing.assert_array_equal(client.to_host(chained(client, x, y, 600)), np.full(300, 605))
    # Two buffers take turns, and each may come first.
    assert len(queue.repeated) <= 6
    assert all(queue.repeated[key] is record for key, record in known.items())


def test_records_are_forgotten_when_a_buffer_is_dropped():
    client = client_with(cache_limit=0)
    queue = client.context.opened.queue
    x, y = (client.from_host(np.full(300, value, np.float32), copy=True) for value in (5, 1))
    chained(client, x, y, 4)
    assert queue.repeated
    buffers = [weakref.ref(buffer) for buffer in client.context.table.buffers.values()]
    client.allocator.trim()
    queue.flush()
    assert not queue.repeated
    client.synchronize()
    assert sum(buffer() is not None for buffer in buffers) == 2  # of x and y
    np.testing.assert_array_equal(client.to_host(chained(client, x, y, 3)), np.full(300, 8))


def test_no_more_records_are_kept_than_the_limit(monkeypatch):
    monkeypatch.setattr("numr.runtime.wgpu.queue.KEPT_GROUPS", 3)
    client = client_with()
    x, y = (client.from_host(np.full(300, value, np.float32), copy=True) for value in (5, 1))
    loop = client.elementwise_loop(ops.ADD, (x.dtype, y.dtype))
    results = [loop(x, y) for _ in range(10)]
    assert len(client.context.opened.queue.repeated) <= 3
    for result in results:
        np.testing.assert_array_equal(client.to_host(result), np.full(300, 6))


def test_a_device_that_is_opened_again_has_records_of_its_own():
    rt = variant()
    client = rt.Client(rt.default_device())
    host = np.ones(300, np.float32)
    for _ in range(2):
        x = client.from_host(host, copy=True)
        np.testing.assert_array_equal(client.to_host(chained(client, x, x, 5)), host * 6)
        client.allocator.close(forked=False)
