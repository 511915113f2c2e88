"""Sorting and searching in every dtype on every runtime, against Python's own sort and definitions written out."""

from __future__ import annotations

import bisect
import math
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from numr import dtypes as dt
from numr.errors import AxisError, DTypeError, ShapeError
from tests.parity import support
from tests.parity.support import (
    Array,
    Refusal,
    anything,
    assert_refused,
    assert_same,
    for_dtypes,
    has,
    layouts,
    raises,
    tensor,
)

SHAPE = (4, 5, 3)


def key(value: Any) -> tuple[bool, Any]:
    """The order of elements: NaN last, the two zeros equal."""
    return (True, 0) if value != value else (False, value)


def falling_key(value: Any) -> tuple[bool, Any]:
    return (True, 0) if value != value else (False, -value)


def sorting_order(lane: list[Any], descending: bool) -> list[int]:
    by = falling_key if descending else key
    return sorted(range(len(lane)), key=lambda i: by(lane[i]))


def along(function: Any, array: Array, axis: int, dtype: Any) -> Array:
    """Apply a function of a list to every lane."""
    moved = np.moveaxis(array, axis, -1)
    lanes = [function(lane) for lane in moved.reshape(-1, moved.shape[-1]).tolist()]
    return np.moveaxis(np.asarray(lanes, dtype).reshape(moved.shape), -1, axis)


def repetitive(dtype: np.dtype[Any], shape: tuple[int, ...], seed: int = 0) -> Array:
    """Values among which some occur often."""
    array = anything(dtype, shape, seed)
    flat = array.reshape(-1)
    rng = np.random.default_rng(seed)
    flat[rng.random(flat.size) < 0.4] = flat[:1]
    return array


@for_dtypes(support.REAL)
def test_sort(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    index = support.default_dtype(xp, "indexing")
    array = repetitive(dtype, SHAPE)
    for axis in (0, 1, 2, -1, -3):
        for descending in (False, True):
            order = along(partial(sorting_order, descending=descending), array, axis, np.int64)
            expected = np.take_along_axis(array, order, axis)
            for name, x in layouts(xp, array):
                note = (name, axis, descending)
                options = {"axis": axis, "descending": descending}
                assert_same(xp.argsort(x, **options), order.astype(index), note)
                got = xp.sort(x, **options)
                assert_same(got, expected, note)
                for stable in (True, False):
                    np.testing.assert_array_equal(
                        xp.sort(x, stable=stable, **options).to_numpy(), expected
                    )
                # Where order is free among equals, positions still have to point at the sorted values.
                positions = xp.argsort(x, stable=False, **options)
                assert positions.dtype == index
                np.testing.assert_array_equal(
                    xp.take_along_axis(x, positions, axis=axis).to_numpy(), expected
                )
                assert_same(x, array, note)
    assert_same(
        xp.sort(tensor(xp, array)),
        np.take_along_axis(
            array, along(lambda lane: sorting_order(lane, False), array, -1, np.int64), -1
        ),
    )


@pytest.mark.parametrize("length", [0, 1, 2, 17, 300])
@for_dtypes(support.REAL)
def test_sort_lengths(xp: ModuleType, dtype: np.dtype[Any], length: int) -> None:
    array = anything(dtype, (length,), seed=length)
    for descending in (False, True):
        order = np.asarray(sorting_order(array.tolist(), descending), np.int64)
        x = tensor(xp, array)
        assert_same(xp.sort(x, descending=descending), array[order])
        index = support.default_dtype(xp, "indexing")
        assert_same(xp.argsort(x, descending=descending), order.astype(index))
        rows = tensor(xp, np.broadcast_to(array, (2, length)).copy())
        assert_same(xp.sort(rows, descending=descending), np.stack([array[order]] * 2))
    if not length:
        assert_same(xp.sort(tensor(xp, np.ones((0, 3), dtype))), np.ones((0, 3), dtype))


@for_dtypes(support.REAL_FLOATS)
def test_nan_is_sorted_last_and_zeros_stay(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    values = [math.nan, 1.0, -0.0, math.inf, 0.0, -math.inf, math.nan, -0.0, -1.0]
    x = tensor(xp, values, dtype)
    rising = [5, 8, 2, 4, 7, 1, 3, 0, 6]
    falling = [3, 1, 2, 4, 7, 8, 5, 0, 6]
    for descending, order in [(False, rising), (True, falling)]:
        assert xp.argsort(x, descending=descending).tolist() == order
        assert_same(xp.sort(x, descending=descending), np.asarray(values, dtype)[order])


@for_dtypes(support.REAL)
def test_argmax_and_argmin(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    index = support.default_dtype(xp, "indexing")
    array = repetitive(dtype, SHAPE, seed=1)
    if dtype.kind == "f":
        array[0] = np.nan_to_num(array[0])
    # NaN counts as the extreme, and is the first of its kind.
    for function, by in [("argmax", falling_key), ("argmin", key)]:

        def first(lane: list[Any], by: Any = by) -> int:
            for i, value in enumerate(lane):
                if value != value:
                    return i
            return min(range(len(lane)), key=lambda i: by(lane[i]))

        search = getattr(xp, function)
        for name, x in layouts(xp, array):
            flat = first(array.reshape(-1).tolist())
            assert_same(search(x), np.asarray(flat, index), name)
            assert_same(search(x, keepdims=True), np.full((1, 1, 1), flat, index), name)
            for axis in (0, 1, 2, -1):
                moved = np.moveaxis(array, axis, -1)
                lanes = moved.reshape(-1, moved.shape[-1]).tolist()
                expected = np.asarray([first(lane) for lane in lanes], index)
                expected = expected.reshape(moved.shape[:-1])
                assert_same(search(x, axis=axis), expected, (name, axis))
                kept = np.expand_dims(expected, axis)
                assert_same(search(x, axis=axis, keepdims=True), kept, (name, axis))
        point = tensor(xp, array[0, 0, 0])
        assert_same(search(point), np.zeros((), index))
        assert_same(search(point, keepdims=True), np.zeros((), index))
        empty = tensor(xp, np.ones((0, 2), dtype))
        assert_same(search(empty, axis=1), np.zeros(0, index))
        with raises(ShapeError, function, r"\(0, 2\)"):
            search(empty)
        with raises(ShapeError, function, r"\(0, 2\).*axis 0"):
            search(empty, axis=0)
    if dtype.kind == "f":
        for values, position in [
            ([0.0, -0.0], (0, 0)),
            ([-0.0, 0.0], (0, 0)),
            ([1.0, math.nan, math.inf, math.nan], (1, 1)),
            ([-math.inf, math.inf, -math.inf], (1, 0)),
        ]:
            x = tensor(xp, values, dtype)
            assert (xp.argmax(x).item(), xp.argmin(x).item()) == position


@for_dtypes(support.ALL)
def test_nonzero(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    index = support.default_dtype(xp, "indexing")
    array = anything(dtype, SHAPE, seed=2)
    array[:, 1] = 0
    for name, x in layouts(xp, array):
        got = xp.nonzero(x)
        assert type(got) is tuple
        for result, expected in zip(got, np.nonzero(array), strict=True):
            assert_same(result, expected.astype(index), name)
    for shape in ((0,), (2, 0), (3,)):
        (got, *_) = xp.nonzero(tensor(xp, np.zeros(shape, dtype)))
        assert_same(got, np.zeros(0, index))
    if dtype.kind in "fc":
        (got,) = xp.nonzero(tensor(xp, np.asarray([-0.0, math.nan, 0.0, math.inf], dtype)))
        assert got.tolist() == [1, 3]
    if dtype.kind == "c":
        (got,) = xp.nonzero(
            tensor(xp, np.asarray([complex(-0.0, -0.0), 1j, complex(0, math.nan)], dtype))
        )
        assert got.tolist() == [1, 2]
    with raises(ShapeError, "nonzero"):
        xp.nonzero(tensor(xp, np.ones((), dtype)))


@pytest.mark.parametrize("side", ["left", "right"])
@for_dtypes(support.REAL)
def test_searchsorted(xp: ModuleType, dtype: np.dtype[Any], side: str) -> None:
    index = support.default_dtype(xp, "indexing")
    for size in (0, 1, 6, 40):
        array = repetitive(dtype, (size,), seed=3)
        order = sorting_order(array.tolist(), False)
        ordered = array[order]
        values = np.concatenate([array, anything(dtype, (8,), seed=4)])
        known = [key(value) for value in ordered.tolist()]
        find = bisect.bisect_left if side == "left" else bisect.bisect_right
        expected = np.asarray([find(known, key(value)) for value in values.tolist()], index)
        for (name, x), (_, v) in zip(layouts(xp, ordered), layouts(xp, values), strict=True):
            assert_same(xp.searchsorted(x, v, side=side), expected, name)
            matrix = xp.reshape(v[:8], (2, 2, 2))
            got = xp.searchsorted(x, matrix, side=side)
            assert_same(got, expected[:8].reshape(2, 2, 2), name)
        for sorter_dtype in (np.int32, np.uint8, index):
            sorter = tensor(xp, order, sorter_dtype)
            got = xp.searchsorted(tensor(xp, array), tensor(xp, values), side=side, sorter=sorter)
            assert_same(got, expected)
        point = xp.searchsorted(tensor(xp, ordered), tensor(xp, values[0]), side=side)
        assert_same(point, expected[0])
        value = values[0].item()
        assert_same(xp.searchsorted(tensor(xp, ordered), value, side=side), expected[0])
        assert_same(
            xp.searchsorted(tensor(xp, ordered), tensor(xp, np.ones((2, 0), dtype)), side=side),
            np.zeros((2, 0), index),
        )


def test_searchsorted_promotes(xp: ModuleType) -> None:
    x = xp.asarray([1, 3, 5], dtype=xp.int8)
    values = xp.asarray([2.5, 3.0, 6.0], dtype=xp.float32)
    assert xp.searchsorted(x, values).tolist() == [1, 1, 3]
    assert xp.searchsorted(x, 2.5).tolist() == 1
    wide = xp.asarray([-300, 3, 300], dtype=xp.int16)
    assert xp.searchsorted(x, wide, side="right").tolist() == [0, 2, 3]
    if has(xp, dt.uint64):
        large = tensor(xp, [0, 2**63, 2**64 - 1], np.uint64)
        assert xp.searchsorted(large, large, side="right").tolist() == [1, 2, 3]
        with raises(DTypeError, "searchsorted", "uint64"):
            xp.searchsorted(large, wide)


def test_bad_arguments(xp: ModuleType) -> None:
    line = xp.asarray([1.0, 2.0, 3.0], dtype=xp.float32)
    matrix = xp.zeros((2, 3), dtype=xp.float32)
    z = xp.ones(3, dtype=xp.complex64)
    index = xp.asarray([0, 1], dtype=xp.int32)
    cases: list[Refusal] = [
        (
            ValueError,
            "searchsorted",
            "'middle'",
            lambda: xp.searchsorted(line, line, side="middle"),
        ),
        (ShapeError, "searchsorted", r"\(2, 3\)", lambda: xp.searchsorted(matrix, line)),
        (
            ShapeError,
            "searchsorted",
            r"\(2,\).*\(3,\)",
            lambda: xp.searchsorted(line, line, sorter=index),
        ),
        (DTypeError, "searchsorted", "float32", lambda: xp.searchsorted(line, line, sorter=line)),
        (DTypeError, "searchsorted", "complex64", lambda: xp.searchsorted(z, z)),
        (DTypeError, "searchsorted", "complex64", lambda: xp.searchsorted(line, z)),
        (DTypeError, "where", "float32", lambda: xp.where(line, line, line)),
        (ShapeError, "where", r"\(2, 3\).*\(2,\)", lambda: xp.where(matrix > 0, index, 0)),
    ]
    for function in ("sort", "argsort", "argmax", "argmin", "max", "min"):
        call = getattr(xp, function)
        cases.append((DTypeError, function, "complex64.*real-valued", lambda call=call: call(z)))
        cases.append((AxisError, function, "axis 2", lambda call=call: call(matrix, axis=2)))
        cases.append((AxisError, function, "axis -3", lambda call=call: call(matrix, axis=-3)))
    for function in ("sort", "argsort"):
        call = getattr(xp, function)
        cases.append((AxisError, function, "axis -1", lambda call=call: call(line[0])))
    assert_refused(cases)
