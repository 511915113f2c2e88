"""Reductions and cumulative functions in every dtype on every runtime, against exact results."""

from __future__ import annotations

import math
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

from numr import dtypes as dt
from numr.errors import AxisError, DTypeError, ShapeError
from tests.parity import support
from tests.parity.support import (
    Array,
    Reference,
    accumulating_dtype,
    anything,
    assert_close,
    assert_kind,
    assert_same,
    axes_of,
    exactly,
    floating_dtype,
    for_dtypes,
    has,
    layouts,
    numbers,
    raises,
    tensor,
    wrapped,
)

pytestmark = pytest.mark.usefixtures("precise")

SHAPE = (3, 4, 5)
#: Shapes without elements, and what is left of them along axis 1.
EMPTY = [((0, 2), (0,)), ((2, 0), (2,)), ((0, 0, 3), (0, 3))]

NAN, INF = math.nan, math.inf


def terms_of(array: Array, axis: Any) -> int:
    """How many elements one result is made of."""
    axes = range(array.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    return math.prod(array.shape[i] for i in axes)


def assert_kept(function: Any, x: Any, axis: Any, reduced: Any) -> None:
    """``keepdims`` gives the same elements with the reduced axes of length 1."""
    kept = function(x, axis=axis, keepdims=True)
    axes = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    gone = {a % x.ndim for a in axes}
    assert kept.dtype == reduced.dtype
    assert kept.shape == tuple(1 if i in gone else n for i, n in enumerate(x.shape))
    assert kept.to_numpy().tobytes() == reduced.to_numpy().tobytes()


def exact_variance(exact: Array, axis: Any, correction: float) -> Array:
    terms = terms_of(exact, axis)
    axes = tuple(range(exact.ndim)) if axis is None else axis
    mean = np.sum(exact, axis=axes, keepdims=True) / mpf(terms)
    squares = np.abs(exact - mean) ** 2
    return np.asarray(np.sum(squares, axis=axes) / mpf(terms - correction))


@for_dtypes(support.ALL)
def test_sum(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    array = numbers(dtype, SHAPE)
    result = accumulating_dtype(xp, dtype)
    exact = exactly(array)
    for axis in axes_of(3):
        total = np.sum(exact, axis=axis)
        reference = Reference(total, np.sum(np.abs(exact), axis=axis))
        for name, x in layouts(xp, array):
            got = xp.sum(x, axis=axis)
            if result.kind in "iu":
                assert_same(got, wrapped(total, result), (name, axis))
            else:
                assert_kind(got, result, np.shape(total))
                terms = terms_of(array, axis)
                reference.check(got, "sum", result, terms=terms, note=(name, axis))
            assert_kept(xp.sum, x, axis, got)


@for_dtypes(support.ALL)
def test_prod(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    array = numbers(dtype, SHAPE, seed=1)
    if dtype == dt.float16:
        array = np.sign(array) * (1 + np.abs(array) / 64)
    result = accumulating_dtype(xp, dtype)
    exact = exactly(array)
    for axis in axes_of(3):
        product = np.prod(exact, axis=axis)
        reference = Reference(product)
        for name, x in layouts(xp, array):
            got = xp.prod(x, axis=axis)
            if result.kind in "iu":
                assert_same(got, wrapped(product, result), (name, axis))
            else:
                assert_kind(got, result, np.shape(product))
                terms = terms_of(array, axis)
                reference.check(got, "prod", result, terms=terms, note=(name, axis))
            assert_kept(xp.prod, x, axis, got)


@for_dtypes(support.INTEGERS)
def test_sums_and_products_of_integers_wrap(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    array = anything(dtype, (7, 9))
    exact = exactly(array)
    for result in (accumulating_dtype(xp, dtype), *support.INTEGERS):
        if not has(xp, result):
            continue
        x = tensor(xp, array)
        for axis in (None, 0, 1):
            # The elements are converted first.
            converted = exactly(wrapped(exact, result))
            options = {"axis": axis, "dtype": result}
            assert_same(xp.sum(x, **options), wrapped(np.sum(converted, axis), result))
            assert_same(xp.prod(x, **options), wrapped(np.prod(converted, axis), result))
            if axis is not None:
                running = np.add.accumulate(converted, axis)
                assert_same(xp.cumulative_sum(x, **options), wrapped(running, result))
                running = np.multiply.accumulate(converted, axis)
                assert_same(xp.cumulative_prod(x, **options), wrapped(running, result))


@pytest.mark.parametrize("function", ["sum", "prod", "cumulative_sum", "cumulative_prod"])
@for_dtypes(support.ALL)
def test_dtype_of_accumulation(xp: ModuleType, dtype: np.dtype[Any], function: str) -> None:
    x = tensor(xp, np.asarray([3, 2.75, 0, 1]).astype(dtype))
    accumulate = getattr(xp, function)
    for target in support.ALL:
        if not has(xp, target):
            continue
        if target.kind == "b":
            with raises(DTypeError, function, "dtype is bool"):
                accumulate(x, dtype=target)
        elif dtype.kind == "c" and target.kind != "c":
            with raises(DTypeError, function, f"{dtype}.*{target}"):
                accumulate(x, dtype=target)
        else:
            got = accumulate(x, dtype=target)
            assert got.dtype == target
            # The few small values are exact in every dtype once they have been converted.
            np.testing.assert_array_equal(
                got.to_numpy(), accumulate(xp.astype(x, target), dtype=target).to_numpy()
            )
            accumulated = {"sum": np.sum, "prod": np.prod, "cumulative_sum": np.cumsum}
            reference = accumulated.get(function, np.cumprod)
            converted = x.to_numpy().astype(target)
            np.testing.assert_array_equal(got.to_numpy(), reference(converted, dtype=target))
    with raises(DTypeError, function):
        accumulate(x, dtype="datetime64[s]")


@for_dtypes(support.ALL)
def test_mean(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    array = numbers(dtype, SHAPE, seed=2)
    result = floating_dtype(xp, dtype)
    exact = exactly(array) * mpf(1)
    for axis in axes_of(3):
        terms = terms_of(array, axis)
        mean = np.sum(exact, axis=axis) / mpf(terms)
        reference = Reference(mean, np.sum(np.abs(exact), axis=axis) / mpf(terms))
        for name, x in layouts(xp, array):
            got = xp.mean(x, axis=axis)
            assert_kind(got, result, np.shape(mean))
            reference.check(got, "mean", result, terms=terms, note=(name, axis))
            assert_kept(xp.mean, x, axis, got)


@for_dtypes(support.ALL)
def test_mean_in_a_given_dtype(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    array = numbers(dtype, SHAPE, seed=2)
    exact = exactly(array) * mpf(1)
    for target in support.FLOATS:
        if not has(xp, target):
            continue
        if dtype.kind == "c" and target.kind != "c":
            with raises(DTypeError, "mean"):
                xp.mean(tensor(xp, array), dtype=target)
            continue
        terms = terms_of(array, 1)
        reference = Reference(
            np.sum(exact, axis=1) / mpf(terms), np.sum(np.abs(exact), axis=1) / mpf(terms)
        )
        for name, x in layouts(xp, array):
            got = xp.mean(x, axis=1, dtype=target)
            assert_kind(got, target, np.shape(exact[:, 0]))
            reference.check(got, "mean", target, terms=terms, note=name)
    for target in (np.int64, np.bool_):
        with raises(DTypeError, "mean"):
            xp.mean(tensor(xp, array), dtype=target)


@for_dtypes(support.ALL)
def test_variance(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    array = numbers(dtype, SHAPE, seed=3)
    compute = floating_dtype(xp, dtype)
    result = dt.real_of(compute)
    exact = exactly(array) * mpf(1)
    root = np.vectorize(mp.sqrt, otypes=[object])
    for axis in axes_of(3):
        terms = terms_of(array, axis)
        if terms == 1:
            for function in (xp.var, xp.std):
                assert_same(function(tensor(xp, array), axis=axis), np.zeros(SHAPE, result))
            continue
        for correction in (0, 1, 0.5, -2):
            variance = exact_variance(exact, axis, correction)
            references = Reference(variance), Reference(root(variance))
            for name, x in layouts(xp, array):
                note = (name, axis, correction)
                for reference, function in zip(references, ("var", "std"), strict=True):
                    call = getattr(xp, function)
                    got = call(x, axis=axis, correction=correction)
                    assert_kind(got, result, variance.shape, note)
                    reference.check(got, function, compute, terms=terms, note=note)
                    assert_kept(partial(call, correction=correction), x, axis, got)
                if correction != 1:
                    break


@for_dtypes(support.FLOATS)
def test_variance_beside_a_large_mean(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    # The differences are exact in the dtype, and would be lost in the mean of squares minus the square of the mean.
    large = 1 / float(np.finfo(dt.real_of(dtype)).eps) ** 0.5
    array = (np.asarray([1, 2, 4, 9, 3, 5]) + large).astype(dtype)
    exact = exactly(array)
    expected = exact_variance(exact, None, 0)
    assert_close(xp.var(tensor(xp, array)), expected, "var", dtype, terms=6)


@pytest.mark.parametrize("function", ["var", "std"])
@for_dtypes(support.FLOATS)
def test_variance_without_enough_elements_is_nan(
    xp: ModuleType, dtype: np.dtype[Any], function: str
) -> None:
    variance = getattr(xp, function)
    x = tensor(xp, np.ones((2, 3), dtype))
    # Real ones without so much as a warning.
    with np.errstate(all="raise" if dtype.kind == "f" else "ignore"):
        for axis, corrections in [(0, (2, 2.5, 7)), (1, (3, 4)), (None, (6, 8)), ((), (1, 2))]:
            for correction in corrections:
                got = variance(x, axis=axis, correction=correction)
                assert np.isnan(got.to_numpy()).all()
                assert got.size
        for shape, left in EMPTY:
            empty = tensor(xp, np.ones(shape, dtype))
            for correction in (0, 1):
                got = variance(empty, axis=1, correction=correction)
                host = assert_kind(got, dt.real_of(dtype), left)
                assert np.isnan(host).all()
    # A correction just below the number of elements still divides by something.
    assert_same(variance(x, correction=5.5), np.zeros((), dt.real_of(dtype)))


@for_dtypes(support.REAL)
def test_extremes(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    array = anything(dtype, SHAPE, seed=4)
    for function, reference in [("max", np.max), ("min", np.min)]:
        for axis in axes_of(3):
            expected = np.asarray(reference(array, axis=axis))
            for name, x in layouts(xp, array):
                got = getattr(xp, function)(x, axis=axis)
                host = assert_kind(got, dtype, expected.shape)
                np.testing.assert_array_equal(host, expected, err_msg=f"{name} {axis}")
                assert_kept(getattr(xp, function), x, axis, got)


@for_dtypes(support.REAL_FLOATS)
def test_extremes_of_special_values(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    # Elements, their maximum, their minimum.
    cases: list[tuple[list[float], float, float]] = [
        ([INF, 1.0, -INF], INF, -INF),
        ([-INF, -INF], -INF, -INF),
        ([NAN], NAN, NAN),
        ([0.0, -0.0], 0.0, 0.0),
        ([-0.0, 0.0, -0.0], 0.0, 0.0),
    ]
    # NaN wins wherever it stands, also in the middle of what vector loops take at once.
    for length in (2, 7, 40):
        for place in {0, 1, length // 2, length - 1}:
            elements = [float(i % 5) for i in range(length)]
            elements[place] = NAN
            cases.append((elements, NAN, NAN))
    for elements, largest, smallest in cases:
        x = tensor(xp, elements, dtype)
        for got, expected in [(xp.max(x), largest), (xp.min(x), smallest)]:
            np.testing.assert_array_equal(got.to_numpy(), np.asarray(expected, dtype))
        column = xp.stack([x, x], axis=1)
        got = xp.max(column, axis=0)
        np.testing.assert_array_equal(got.to_numpy(), np.asarray([largest] * 2, dtype))


@for_dtypes(support.FLOATS)
def test_special_values_in_sums(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    for elements, total, product in [
        ([INF, 1, 2], INF, INF),
        ([INF, -INF], NAN, -INF),
        ([NAN, 1], NAN, NAN),
        ([INF, 0], INF, NAN),
        ([-0.0, -0.0], 0.0, 0.0),
    ]:
        x = tensor(xp, np.asarray(elements).astype(dtype))
        if dtype.kind == "c":
            # Infinite times finite complex numbers leaves the other component open.
            got = xp.real(xp.sum(x)), xp.real(xp.mean(x))
            np.testing.assert_array_equal([g.item() for g in got], [total, total / 1])
            continue
        got = xp.sum(x), xp.mean(x), xp.prod(x), xp.cumulative_sum(x)[-1], xp.cumulative_prod(x)[-1]
        np.testing.assert_array_equal(
            [g.item() for g in got], [total, total, product, total, product]
        )
        assert math.isnan(xp.var(x).item()) == (not np.isfinite(elements).all())


def test_float16_is_summed_and_averaged_beyond_its_range(xp: ModuleType) -> None:
    x = tensor(xp, np.ones(70_000, np.float16))
    assert_same(xp.mean(x), np.float16(1))
    assert_same(xp.var(x), np.float16(0))
    large = tensor(xp, np.full(8, 60_000, np.float16))
    assert_same(xp.mean(large), np.float16(60_000))
    assert_same(
        xp.mean(tensor(xp, np.full((300, 300), 3, np.float16)), axis=0), np.full(300, 3, np.float16)
    )


@for_dtypes(support.ALL)
def test_reductions_of_nothing(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    result = accumulating_dtype(xp, dtype)
    for shape, left in EMPTY:
        x = tensor(xp, np.ones(shape, dtype))
        kept = (*shape[:1], 1, *shape[2:])
        for axis, keepdims, expected in [(None, False, ()), (1, False, left), (1, True, kept)]:
            options = {"axis": axis, "keepdims": keepdims}
            full = 1 if axis == 1 and 0 not in shape[1:2] else 0
            ones = np.full(expected, shape[1] if full else 0, result)
            assert_same(xp.sum(x, **options), ones)
            assert_same(xp.prod(x, **options), np.ones(expected, result))
            assert_same(xp.all(x, **options), np.ones(expected, bool))
            if axis is None or shape[1] == 0:
                assert_same(xp.any(x, **options), np.zeros(expected, bool))
                host = assert_kind(xp.mean(x, **options), floating_dtype(xp, dtype), expected)
                assert np.isnan(host).all()
        if dtype.kind == "c":
            continue
        for function in ("max", "min"):
            with raises(ShapeError, function, rf"\({shape[0]}, "):
                getattr(xp, function)(x)
    # Nothing is missing where the axes reduced are not the empty ones.
    x = tensor(xp, np.ones((0, 2), dtype))
    assert xp.sum(x, axis=1).shape == (0,)
    if dtype.kind != "c":
        assert_same(xp.max(x, axis=1), np.ones(0, dtype))
        assert_same(xp.min(x, axis=(1,), keepdims=True), np.ones((0, 1), dtype))


@for_dtypes(support.ALL)
def test_reductions_of_one_element(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    array = np.asarray(1, dtype)
    x = tensor(xp, array)
    result, mean = accumulating_dtype(xp, dtype), floating_dtype(xp, dtype)
    for axis in (None, ()):
        for keepdims in (False, True):
            options = {"axis": axis, "keepdims": keepdims}
            assert_same(xp.sum(x, **options), np.ones((), result))
            assert_same(xp.prod(x, **options), np.ones((), result))
            assert_same(xp.mean(x, **options), np.ones((), mean))
            assert_same(xp.var(x, **options), np.zeros((), dt.real_of(mean)))
            assert_same(xp.std(x, **options), np.zeros((), dt.real_of(mean)))
            assert_same(xp.any(x, **options), np.bool_(True))
            assert_same(xp.all(x, **options), np.bool_(True))
            if dtype.kind != "c":
                assert_same(xp.max(x, **options), array)
                assert_same(xp.min(x, **options), array)
    for axis in (0, -1, (0,)):
        with raises(AxisError, "sum"):
            xp.sum(x, axis=axis)
    with raises(ShapeError, "cumulative_sum"):
        xp.cumulative_sum(x)
    with raises(AxisError, "cumulative_prod"):
        xp.cumulative_prod(x, axis=0)
