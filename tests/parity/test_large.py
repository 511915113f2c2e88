"""Operations on so many elements that runtimes work in blocks, over threads or in several passes.

The values are small whole numbers wherever sums are taken, so that every order of summation gives the same result.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import numr
from numr import dtypes as dt
from tests.parity import bounds, support
from tests.parity.support import (
    Array,
    accumulating_dtype,
    assert_kind,
    assert_same,
    default_dtype,
    floating_dtype,
    for_dtypes,
    tensor,
)

#: More than two blocks of a reduction on the CPU.
SHAPE = (18, 170, 180)
SIZE = math.prod(SHAPE)
#: What is computed element by element, copied and accumulated comes in blocks on the CPU from 2**20 elements.
WIDE = (18, 240, 250)
#: Long and narrow, wide and flat.
LONG = [(SIZE,), (SIZE // 2, 2), (2, SIZE // 2), (3, 2, SIZE // 6)]

DTYPES = (dt.float64, dt.int32, dt.bool_, dt.complex64)
SUBSETS = [axes for count in range(4) for axes in itertools.combinations(range(3), count) if count]


def whole_numbers(dtype: np.dtype[Any], shape: tuple[int, ...], seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    values = rng.integers(0 if dtype.kind == "u" else -3, 4, shape, np.int8).astype(dtype)
    if dtype.kind == "c":
        values.imag = rng.integers(-3, 4, shape, np.int8)
    return values


def large_layouts(xp: ModuleType, array: Array) -> Iterator[tuple[str, Any]]:
    """Layouts whose axes are walked in different orders and directions."""
    backwards = tuple(range(array.ndim))[::-1]
    yield "contiguous", tensor(xp, array)
    yield "Fortran order", xp.permute_dims(tensor(xp, array.transpose(backwards).copy()), backwards)
    order = (1, 0, *range(2, array.ndim)) if array.ndim > 1 else (0,)
    turned = array[..., ::-1].transpose(order).copy()
    yield "turned", xp.permute_dims(tensor(xp, turned), order)[..., ::-1]
    yield "strided", tensor(xp, np.repeat(array, 2, -1))[..., ::2]


@for_dtypes(DTYPES)
def test_reductions_over_all_axes(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    array = whole_numbers(dtype, SHAPE)
    # True and False are rare, so that every block has a result of its own.
    sparse = array * (np.random.default_rng(1).random(SHAPE) < 1e-4)
    x_sparse = tensor(xp, sparse)
    result = accumulating_dtype(xp, dtype)
    layouts = list(large_layouts(xp, array))
    for axes in SUBSETS:
        total = np.sum(array, axes, dtype=result)
        count = np.sum(array != 0, axes, dtype=default_dtype(xp, "indexing"))
        for name, x in layouts:
            note = (name, axes)
            assert_same(xp.sum(x, axis=axes), total, note)
            if name in ("contiguous", "turned"):
                assert_same(xp.count_nonzero(x, axis=axes), count, note)
                assert_same(xp.all(x, axis=axes), np.all(array, axes), note)
        if dtype.kind != "c":
            least, most = np.min(array, axes, keepdims=True), np.max(array, axes)
            for name, x in layouts:
                assert_same(xp.max(x, axis=axes), most, (name, axes))
                assert_same(xp.min(x, axis=axes, keepdims=True), least, (name, axes))
        assert_same(xp.any(x_sparse, axis=axes), np.any(sparse, axes), axes)
        none = xp.all(xp.equal(x_sparse, False), axis=axes, keepdims=True)
        assert_same(none, np.all(sparse == 0, axes, keepdims=True), axes)
    x = tensor(xp, array)
    assert_same(xp.sum(x, axis=()), array.astype(result))
    assert_same(xp.sum(x), np.sum(array, dtype=result))
    assert_same(xp.sum(x, keepdims=True), np.sum(array, dtype=result, keepdims=True))


@for_dtypes((dt.float32, dt.uint8))
def test_reductions_of_long_arrays(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    result = accumulating_dtype(xp, dtype)
    for shape in LONG:
        array = whole_numbers(dtype, shape, seed=2)
        layouts = list(large_layouts(xp, array))
        for axis in (None, *range(len(shape))):
            total, most = np.sum(array, axis, dtype=result), np.max(array, axis)
            for name, x in layouts:
                note = (name, shape, axis)
                assert_same(xp.sum(x, axis=axis), total, note)
                assert_same(xp.max(x, axis=axis), most, note)
        signs = np.ones(shape, dtype)
        flat = signs.reshape(-1)
        # A product that every order of multiplication gives exactly, of factors from all over.
        flat[:: SIZE // 5] = 2
        if dtype.kind != "u":
            flat[7 :: SIZE // 13] = -1
        for axis in (None, 0):
            got = xp.prod(tensor(xp, signs), axis=axis)
            assert_same(got, np.prod(signs, axis, dtype=result), (shape, axis))


@for_dtypes((dt.float16, dt.float32, dt.complex64, dt.int32))
def test_moments_over_all_axes(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    array = whole_numbers(dtype, SHAPE, seed=3)
    compute = floating_dtype(xp, dtype)
    parts = [array.real, array.imag] if dtype.kind == "c" else [array]
    whole = [part.astype(np.int64) for part in parts]
    layouts = list(large_layouts(xp, array))
    for axes in SUBSETS:
        terms = math.prod(SHAPE[i] for i in axes)
        sums = [np.sum(part, axes) for part in whole]
        squares = np.sum([np.sum(part * part, axes) for part in whole], 0)
        # All of it is in integers but for one division.
        mean = sums[0] / terms + (1j * (sums[1] / terms) if dtype.kind == "c" else 0)
        variance = (squares * terms - np.sum(np.square(sums), 0)) / terms**2
        for name, x in layouts[: 3 if len(axes) == 1 else 2]:
            got = assert_kind(xp.mean(x, axis=axes), compute, mean.shape)
            eps = float(np.finfo(dt.real_of(compute)).eps)
            assert np.all(np.abs(got - mean) <= eps * np.abs(mean)), (name, axes)
            got = assert_kind(xp.var(x, axis=axes), dt.real_of(compute), mean.shape)
            bound = bounds.allowed("var", compute, terms)
            assert np.all(np.abs(got - variance) <= bound * variance), (name, axes)


@for_dtypes((dt.float32, dt.complex128))
def test_sums_of_real_numbers(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    array = support.numbers(dtype, (SIZE,), seed=4)
    parts = [array.real, array.imag] if dtype.kind == "c" else [array]
    exact = [math.fsum(part.tolist()) for part in parts]
    size = math.fsum(np.abs(array).tolist())
    bound = bounds.allowed("sum", dtype, SIZE) * size
    for shape in ((SIZE,), (SIZE // 4, 4), (4, SIZE // 4)):
        for name, x in large_layouts(xp, array.reshape(shape)):
            got = xp.sum(x).item()
            got_parts = [got.real, got.imag] if dtype.kind == "c" else [got]
            for value, correct in zip(got_parts, exact, strict=True):
                assert abs(value - correct) <= bound, (name, shape)


@for_dtypes((dt.float16, dt.float32))
def test_special_values_in_any_block(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    places = [0, 2**18 - 1, 2**18, SIZE - 1]
    for place in places:
        array = np.ones(SIZE, dtype)
        array[place] = math.nan
        for shape in ((SIZE,), SHAPE):
            x = tensor(xp, array.reshape(shape))
            for function in (xp.max, xp.min, xp.sum):
                assert math.isnan(function(x).item()), (place, shape)
            for axis in range(len(shape)):
                expected = np.isnan(array.reshape(shape)).any(axis)
                for function in (xp.max, xp.min):
                    got = function(x, axis=axis).to_numpy()
                    np.testing.assert_array_equal(np.isnan(got), expected)
            assert xp.argmax(x).item() == place
            assert xp.argmin(x).item() == place
        array[place] = -math.inf
        x = tensor(xp, array)
        assert xp.min(x).item() == -math.inf
        assert xp.argmin(x).item() == place
        assert xp.max(x).item() == 1
        assert xp.argmax(x).item() == (place == 0)


@for_dtypes((dt.float32, dt.int16))
def test_running_sums(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    result = accumulating_dtype(xp, dtype)
    for shape in (WIDE, (math.prod(WIDE) // 2, 2)):
        array = whole_numbers(dtype, shape, seed=5)
        for axis in range(len(shape)):
            expected = np.cumsum(array, axis, dtype=result)
            for name, x in large_layouts(xp, array):
                assert_same(xp.cumulative_sum(x, axis=axis), expected, (name, shape, axis))
                if name == "Fortran order":
                    break
    got = xp.cumulative_sum(tensor(xp, array), axis=0, include_initial=True)
    expected = np.cumulative_sum(array, axis=0, dtype=result, include_initial=True)
    assert_same(got, expected)
    signs = 1 - 2 * (np.random.default_rng(6).random(WIDE) < 0.5).astype(np.int8)
    for axis in range(3):
        got = xp.cumulative_prod(tensor(xp, signs.astype(dtype)), axis=axis)
        host = assert_kind(got, result, WIDE)
        np.testing.assert_array_equal(host, np.cumprod(signs, axis))


@for_dtypes((dt.float32, dt.complex64))
def test_elementwise_and_broadcasting(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    array = whole_numbers(dtype, WIDE, seed=7)
    operands = [
        array,
        whole_numbers(dtype, WIDE[1:], seed=8),
        whole_numbers(dtype, (WIDE[0], 1, WIDE[2]), seed=9),
        whole_numbers(dtype, (WIDE[0], WIDE[1], 1), seed=10),
        whole_numbers(dtype, (1, 1, 1), seed=11),
        np.asarray(3, dtype),
    ]
    for (name, x), other in itertools.product(large_layouts(xp, array), operands):
        note = (name, other.shape)
        y = tensor(xp, other)
        assert_same(x + y, array + other, note)
        assert_same(xp.subtract(y, x), other - array, note)
        if dtype.kind != "c":
            assert_same(y < x, other < array, note)
    # Both in Fortran order, which the result may share, but not in different orders.
    layouts = dict(large_layouts(xp, array))
    turned = layouts["Fortran order"]
    assert_same(turned * turned, array * array)
    assert_same(turned * layouts["contiguous"], array * array)
    assert_same(layouts["turned"] + turned, array + array)
    assert_same(xp.add(turned, 2), array + dtype.type(2))
    # No operand alone is large.
    row = np.tile(operands[1][0], 5)
    line = tensor(xp, row)
    assert_same(line[:, None] - line, np.subtract.outer(row, row))
    short = line[:900]
    assert_same(xp.add(short, line[:, None]), row[:900] + row[:, None])
    # In place, also where the operand is the target itself in another order.
    square = array[:, : WIDE[1], : WIDE[1]]
    x = tensor(xp, square)
    x += xp.matrix_transpose(x)
    assert_same(x, square + square.swapaxes(1, 2))
    x = tensor(xp, array)
    x += tensor(xp, operands[1])
    x[...] = x + x
    assert_same(x, (array + operands[1]) * dtype.type(2))


@for_dtypes((dt.float32, dt.complex64, dt.bool_))
def test_where(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    array = whole_numbers(dtype, WIDE, seed=12)
    mask = np.random.default_rng(13).random(WIDE) < 0.5
    other = whole_numbers(dtype, (WIDE[1], 1), seed=14)
    for (name, x), (_, m) in zip(large_layouts(xp, array), large_layouts(xp, mask), strict=True):
        y = tensor(xp, other)
        assert_same(xp.where(m, x, y), np.where(mask, array, other), name)
        assert_same(xp.where(m, y, x), np.where(mask, other, array), name)
        assert_same(xp.where(m, x, False), np.where(mask, array, dtype.type(0)), name)
        assert_same(xp.where(m[:, :, :1], x, y), np.where(mask[:, :, :1], array, other), name)
    if dtype != dt.bool_:
        got = xp.where(tensor(xp, mask), tensor(xp, array), tensor(xp, np.ones((), np.bool_)))
        assert_same(got, np.where(mask, array, dtype.type(1)))


CASTS = [
    (dt.float64, dt.float32),
    (dt.int64, dt.float32),
    (dt.float32, dt.int8),
    (dt.uint8, dt.int64),
    (dt.complex64, dt.bool_),
    (dt.float32, dt.complex64),
    (dt.bool_, dt.float16),
]


@pytest.mark.parametrize(("source", "target"), CASTS, ids=str)
def test_casts_and_copies(xp: ModuleType, source: np.dtype[Any], target: np.dtype[Any]) -> None:
    support.needs(xp, target)
    for shape in (WIDE, (math.prod(WIDE) // 2, 2)):
        array = whole_numbers(source, shape, seed=15)
        for name, x in large_layouts(xp, array):
            assert_same(xp.astype(x, target), array.astype(target), name)
            copied = xp.asarray(x, copy=True)
            assert_same(copied, array, name)
            assert_same(xp.reshape(x, (-1,)), array.reshape(-1), name)
            target_tensor = xp.zeros(shape, dtype=source)
            target_tensor[...] = x
            assert_same(target_tensor, array, name)
    flat = xp.permute_dims(target_tensor, tuple(range(target_tensor.ndim))[::-1])
    flat[...] = True
    assert_same(target_tensor, np.ones(shape, source))


@for_dtypes((dt.float64, dt.int8))
def test_joining_and_moving(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    array = whole_numbers(dtype, WIDE, seed=16)
    for name, x in large_layouts(xp, array):
        for axis in (0, 2, None):
            assert_same(
                xp.concat([x, x], axis=axis),
                np.concatenate([array, array], axis),
                (name, axis),
            )
        for axis in (0, 3):
            assert_same(xp.stack([x, x], axis=axis), np.stack([array, array], axis), (name, axis))
        for shift, axis in [(math.prod(WIDE) // 3, None), (5, 0), ((7, -9), (1, 2))]:
            assert_same(xp.roll(x, shift, axis=axis), np.roll(array, shift, axis), (name, axis))
    x = tensor(xp, array)
    small = tensor(xp, array[:, :, :1])
    assert_same(
        xp.concat([small, x, small], axis=2),
        np.concatenate([array[:, :, :1], array, array[:, :, :1]], 2),
    )
    assert_same(xp.flip(x) + 0 * x, array[::-1, ::-1, ::-1])
    assert_same(xp.tile(x[0], (20, 1)), np.tile(array[0], (20, 1)))
    assert_same(xp.repeat(x[0], 20, axis=1), np.repeat(array[0], 20, 1))
    counts = np.arange(WIDE[2]) % 4
    assert_same(xp.repeat(x, tensor(xp, counts), axis=2), np.repeat(array, counts, 2))
    index = np.random.default_rng(17).integers(-WIDE[1], WIDE[1], 200)
    assert_same(xp.take(x, tensor(xp, index), axis=1), np.take(array, index, 1))
    along = np.random.default_rng(17).integers(-WIDE[0], WIDE[0], (5, WIDE[1], 1))
    got = xp.take_along_axis(x, tensor(xp, along), axis=0)
    assert_same(got, np.take_along_axis(array, along, 0))
    assert_same(xp.tril(x, k=3), np.tril(array, 3))
    assert_same(xp.diff(x, axis=1), np.diff(array, axis=1))


@for_dtypes((dt.float64, dt.uint8))
def test_sorting_and_searching(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    index = default_dtype(xp, "indexing")
    rng = np.random.default_rng(18)
    array = rng.integers(0, 250, SIZE).astype(dtype)
    for shape in ((SIZE,), (4, SIZE // 4)):
        matrix = array.reshape(shape)
        for axis in range(len(shape)):
            x = tensor(xp, matrix)
            order = np.argsort(matrix, axis, stable=True)
            assert_same(xp.argsort(x, axis=axis), order.astype(index))
            assert_same(xp.sort(x, axis=axis), np.take_along_axis(matrix, order, axis))
            got = xp.sort(x, axis=axis, descending=True)
            assert_same(got, np.flip(np.sort(matrix, axis), axis))
            assert_same(xp.argmax(x, axis=axis), np.argmax(matrix, axis).astype(index))
            assert_same(xp.argmin(x, axis=axis), np.argmin(matrix, axis).astype(index))
    x = tensor(xp, array)
    result = xp.unique_all(x)
    for got, expected in zip(result, np.unique_all(array), strict=True):
        np.testing.assert_array_equal(got.to_numpy(), expected)
    ordered, values = np.sort(array[:1000]), array
    got = xp.searchsorted(tensor(xp, ordered), x, side="right")
    assert_same(got, np.searchsorted(ordered, values, "right").astype(index))
    for got, expected in zip(
        xp.nonzero(xp.reshape(x, SHAPE)), np.nonzero(array.reshape(SHAPE)), strict=True
    ):
        assert_same(got, expected.astype(index))
    assert_same(xp.isin(x, tensor(xp, ordered[:5])), np.isin(array, ordered[:5]))
    mask = x > 100
    assert_same(x[mask], array[array > 100])
    x[mask] = 100
    assert_same(x, np.minimum(array, 100))


def in_blocks(xp: ModuleType, dtype: np.dtype[Any]) -> dict[str, Callable[[], Any]]:
    """Calls that the CPU runtime splits over threads."""
    rng = np.random.default_rng(19)
    array = support.numbers(dtype, WIDE, seed=20)
    x, y = tensor(xp, array), tensor(xp, support.numbers(dtype, WIDE[1:], seed=21))
    turned = xp.permute_dims(tensor(xp, array.T.copy()), (2, 1, 0))
    mask = tensor(xp, rng.random(WIDE) < 0.5)
    calls: dict[str, Callable[[], Any]] = {
        "exp": lambda: xp.exp(x / 8),
        "sin": lambda: xp.sin(turned),
        "power": lambda: xp.abs(x) ** 1.5,
        "add": lambda: x + y,
        "multiply": lambda: x * turned,
        "divide": lambda: turned / x,
        "where": lambda: xp.where(mask, x, y),
        "astype": lambda: xp.astype(x, xp.bool),
        "copy": lambda: xp.asarray(turned, copy=True),
        "concat": lambda: xp.concat([x, turned], axis=1),
        "roll": lambda: xp.roll(x, 3, axis=2),
        "cumulative_sum": lambda: xp.cumulative_sum(turned, axis=0),
        "cumulative_prod": lambda: xp.cumulative_prod(x / 2, axis=2),
    }
    for axes in [(0,), (2,), (0, 1), (0, 1, 2)]:
        for function in ("sum", "var") if len(axes) < 3 else ("sum", "var", "mean", "prod", "std"):
            call = getattr(xp, function)
            for name, z in [("x", x), ("turned", turned)]:
                calls[f"{function} of {name} over {axes}"] = partial(call, z, axis=axes)
    return calls


@for_dtypes((dt.float32, dt.complex64))
def test_results_do_not_depend_on_threads(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    for name, call in in_blocks(xp, dtype).items():
        with numr.config.override(num_threads=1):
            alone = call().to_numpy().tobytes()
        with numr.config.override(num_threads=2):
            assert call().to_numpy().tobytes() == alone, name


def test_threads_see_the_callers_error_handling(xp: ModuleType) -> None:
    if xp.__name__ != "numr.cpu":
        pytest.skip("only NumPy has error handling of its own")
    x = xp.zeros(math.prod(WIDE))
    with numr.config.override(num_threads=2):
        with np.errstate(divide="ignore"):
            assert xp.all(xp.isinf(1 / x)).item()
        with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
            1 / x
        # The threads are usable after an error.
        assert xp.sum(x + 1).item() == math.prod(WIDE)
