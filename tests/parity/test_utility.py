"""Logical reductions, counts, running sums and differences, in every dtype on every runtime."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from numr.errors import DTypeError, ShapeError
from tests.parity import support
from tests.parity.support import (
    Reference,
    accumulating_dtype,
    anything,
    assert_kind,
    assert_same,
    axes_of,
    exactly,
    for_dtypes,
    layouts,
    numbers,
    raises,
    tensor,
    wrapped,
)

pytestmark = pytest.mark.usefixtures("precise")

SHAPE = (3, 4, 5)

NAN, INF = math.nan, math.inf


@for_dtypes(support.ALL)
def test_logical_reductions(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    array = numbers(dtype, SHAPE, seed=5)
    array[:, :, ::2] = 0
    array[1, 2] = 1
    for function, reference in [("any", np.any), ("all", np.all)]:
        for axis in axes_of(3):
            for keepdims in (False, True):
                expected = np.asarray(reference(array != 0, axis=axis, keepdims=keepdims))
                for name, x in layouts(xp, array):
                    got = getattr(xp, function)(x, axis=axis, keepdims=keepdims)
                    assert_same(got, expected, (name, axis))
    special: list[Any] = [1]
    if dtype.kind in "fc":
        special += [NAN, INF, -INF]
    if dtype.kind == "c":
        special += [1j, complex(0, NAN), complex(0, np.finfo(dtype).smallest_subnormal)]
    for value in special:
        x = tensor(xp, [value, 0], dtype)
        assert xp.any(x).item() is True
        assert xp.all(x).item() is False
        assert xp.all(x[:1]).item() is True
    if dtype.kind in "fc":
        assert xp.any(tensor(xp, [-0.0], dtype)).item() is False


@pytest.mark.parametrize("function", ["cumulative_sum", "cumulative_prod"])
@for_dtypes(support.ALL)
def test_cumulative(xp: ModuleType, dtype: np.dtype[Any], function: str) -> None:
    array = numbers(dtype, SHAPE, seed=6)
    result = accumulating_dtype(xp, dtype)
    exact = exactly(array)
    is_sum = function == "cumulative_sum"
    ufunc = np.add if is_sum else np.multiply
    accumulate = getattr(xp, function)
    for axis in (0, 1, 2, -1, -3):
        running = ufunc.accumulate(exact, axis)
        sizes = np.add.accumulate(np.abs(exact), axis) if is_sum else np.abs(running)
        first = np.full_like(np.take(running, [0], axis), int(not is_sum))
        for initial in (False, True):
            expected = np.concatenate([first, running], axis) if initial else running
            size = np.concatenate([0 * first, sizes], axis) if initial else sizes
            reference = Reference(expected, size)
            for name, x in layouts(xp, array):
                got = accumulate(x, axis=axis, include_initial=initial)
                if result.kind in "iu":
                    assert_same(got, wrapped(expected, result), (name, axis))
                    continue
                assert_kind(got, result, expected.shape)
                reference.check(got, function, result, terms=5, note=(name, axis))
    line = tensor(xp, array[0, 0])
    np.testing.assert_array_equal(accumulate(line).to_numpy(), accumulate(line, axis=0).to_numpy())
    for shape in ((0,), (0, 2), (2, 0)):
        x = tensor(xp, np.ones(shape, dtype))
        got = accumulate(x, axis=0, include_initial=True)
        assert_kind(got, result, (shape[0] + 1, *shape[1:]))
        assert_kind(accumulate(x, axis=0), result, shape)
    got = accumulate(tensor(xp, np.ones(0, dtype)), include_initial=True)
    assert_same(got, np.full(1, int(not is_sum), result))
    with raises(ShapeError, function, r"\(3, 4, 5\)"):
        accumulate(tensor(xp, array))


@for_dtypes(support.ALL)
def test_count_nonzero(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    array = anything(dtype, SHAPE, seed=7)
    index = support.default_dtype(xp, "indexing")
    for axis in axes_of(3):
        for keepdims in (False, True):
            expected = np.sum(array != 0, axis=axis, keepdims=keepdims, dtype=index)
            for name, x in layouts(xp, array):
                got = xp.count_nonzero(x, axis=axis, keepdims=keepdims)
                assert_same(got, np.asarray(expected), (name, axis))
    assert_same(xp.count_nonzero(tensor(xp, np.ones((0, 3), dtype)), axis=0), np.zeros(3, index))


@for_dtypes(support.NUMERIC)
def test_diff(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    # One subtraction is exact or correctly rounded everywhere; unsigned integers wrap around.
    array = numbers(dtype, SHAPE, seed=8)
    before, behind = numbers(dtype, (3, 1, 5), seed=9), numbers(dtype, (3, 2, 5), seed=10)
    for name, x in layouts(xp, array):
        for axis in (0, 1, -1):
            for n in (0, 1, 2, 3, 7):
                got = xp.diff(x, axis=axis, n=n)
                assert_same(got, np.diff(array, n, axis) if n else array, (name, axis, n))
        got = xp.diff(x, axis=1, prepend=tensor(xp, before), append=tensor(xp, behind))
        assert_same(got, np.diff(array, 1, 1, prepend=before, append=behind))
        assert_same(
            xp.diff(x, axis=1, n=2, append=tensor(xp, behind)),
            np.diff(array, 2, 1, append=behind),
        )
    assert_same(xp.diff(tensor(xp, array)), np.diff(array))
    assert_same(xp.diff(tensor(xp, np.ones((2, 0), dtype))), np.ones((2, 0), dtype))
    x = tensor(xp, array)
    copied = xp.diff(x, n=0)
    copied[...] = 0
    assert_same(x, array)
    with raises(ValueError, "diff", "-1"):
        xp.diff(x, n=-1)
    with raises(ShapeError, "concat|diff", r"\(3, 4, 5\)"):
        xp.diff(x, axis=0, prepend=tensor(xp, before))
    with raises(DTypeError, "diff", "bool"):
        xp.diff(tensor(xp, [True, False]))
