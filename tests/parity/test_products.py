"""Products of matrices and vectors, diagonals and norms: in every dtype on every runtime, against exact results."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

from numr import dtypes as dt
from numr.errors import AxisError, DTypeError, ShapeError, UnsupportedDType
from tests.parity import support
from tests.parity.support import (
    Array,
    Reference,
    Refusal,
    accumulating_dtype,
    anything,
    assert_close,
    assert_kind,
    assert_refused,
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


def compare(
    got: Any, exact: Any, size: Any, function: str, dtype: np.dtype[Any], terms: int, note: Any = ""
) -> None:
    """A product of a dtype against the exact one and the sum of the absolute values of its terms."""
    exact = np.asarray(exact, object)
    if dtype.kind in "iu":
        assert_same(got, wrapped(exact, dtype), note)
        return
    assert_kind(got, dtype, exact.shape, note)
    assert_close(got, exact, function, dtype, scale=size, terms=terms, note=note)


#: Shapes of two operands.
MATRICES = [
    ((3, 4), (4, 2)),
    ((1, 1), (1, 1)),
    ((2, 3, 4), (4, 5)),
    ((4,), (4,)),
    ((4,), (4, 3)),
    ((3, 4), (4,)),
    ((2, 1, 2, 3), (3, 3, 2)),
    ((2, 1, 4), (4,)),
    ((5,), (2, 5, 1)),
    ((2, 40), (40, 3)),
]


@for_dtypes(support.NUMERIC)
def test_matmul(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    for one, two in MATRICES:
        a, b = numbers(dtype, one, seed=1), numbers(dtype, two, seed=2)
        exact = np.matmul(exactly(a), exactly(b))
        size = np.matmul(np.abs(exactly(a)), np.abs(exactly(b)))
        for (name, x), (_, y) in zip(layouts(xp, a), layouts(xp, b), strict=True):
            compare(xp.matmul(x, y), exact, size, "matmul", dtype, one[-1], (name, one, two))
        compare(tensor(xp, a) @ tensor(xp, b), exact, size, "matmul", dtype, one[-1])
    for one, two in [
        ((0, 3), (3, 2)),
        ((2, 0), (0, 3)),
        ((0,), (0,)),
        ((0, 2, 3), (3, 2)),
        ((2, 3), (0, 3, 4)),
    ]:
        got = xp.linalg.matmul(tensor(xp, np.ones(one, dtype)), tensor(xp, np.ones(two, dtype)))
        assert_same(got, np.matmul(np.ones(one, dtype), np.ones(two, dtype)))


@for_dtypes(support.INTEGERS)
def test_products_of_integers_wrap(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    a, b = anything(dtype, (5, 7), seed=3), anything(dtype, (7, 5), seed=4)
    x, y = tensor(xp, a), tensor(xp, b)
    exact = exactly(a) @ exactly(b)
    assert_same(xp.matmul(x, y), wrapped(exact, dtype))
    assert_same(xp.tensordot(x, y, axes=1), wrapped(exact, dtype))
    assert_same(xp.tensordot(x, y, axes=((0,), (1,))), wrapped((exactly(b) @ exactly(a)).T, dtype))
    assert_same(xp.vecdot(x, y.mT), wrapped(np.sum(exactly(a) * exactly(b.T), -1), dtype))
    outer = np.multiply.outer(exactly(a[0]), exactly(b[0]))
    assert_same(xp.linalg.outer(x[0], y[0]), wrapped(outer, dtype))
    assert_same(
        xp.linalg.cross(x[:, :3], y[:5, :3]),
        wrapped(np.cross(exactly(a[:, :3]), exactly(b[:5, :3])), dtype),
    )


@for_dtypes(support.ALL)
def test_promotion_of_products(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    one = np.ones(3, dtype)
    x = tensor(xp, one)
    calls = [xp.matmul, xp.vecdot, xp.linalg.outer, xp.linalg.cross, xp.tensordot]
    for function, call in zip(
        ("matmul", "vecdot", "outer", "cross", "tensordot"), calls, strict=True
    ):
        options = {"axes": 1} if function == "tensordot" else {}
        for other in support.ALL:
            if not has(xp, other):
                continue
            y = tensor(xp, np.ones(3, other))
            kinds = {dtype.kind, other.kind}
            wide = {d for d in (dtype, other) if d == dt.uint64}
            if kinds == {"b"} or (kinds == {"i", "u"} and wide):
                with raises(DTypeError, function):
                    call(x, y, **options)
            elif not has(xp, dt.promote(dtype, other)):
                with raises(UnsupportedDType, function, str(dt.promote(dtype, other))):
                    call(x, y, **options)
            else:
                assert call(x, y, **options).dtype == dt.promote(dtype, other)


@for_dtypes(support.NUMERIC)
def test_vecdot(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    for one, two, axis in [
        ((4,), (4,), -1),
        ((3, 4), (3, 4), -1),
        ((3, 4), (3, 4), -2),
        ((2, 3, 4), (4,), -1),
        ((5, 1, 4), (3, 4), -1),
        ((3, 1), (2, 3, 4), -2),
        ((3, 4), (3, 4), 0),
        ((0, 4), (4,), -1),
    ]:
        a, b = numbers(dtype, one, seed=5), numbers(dtype, two, seed=6)
        left, right = np.moveaxis(exactly(a), axis, -1), np.moveaxis(exactly(b), axis, -1)
        exact = np.sum(np.conjugate(left) * right, -1)
        size = np.sum(np.abs(left) * np.abs(right), -1)
        terms = a.shape[axis]
        for (name, x), (_, y) in zip(layouts(xp, a), layouts(xp, b), strict=True):
            compare(xp.vecdot(x, y, axis=axis), exact, size, "vecdot", dtype, terms, (name, one))
        compare(
            xp.linalg.vecdot(tensor(xp, a), tensor(xp, b), axis=axis),
            exact,
            size,
            "vecdot",
            dtype,
            terms,
        )
    nothing = tensor(xp, np.ones((2, 0), dtype))
    assert_same(xp.vecdot(nothing, nothing), np.zeros(2, dtype))


@for_dtypes(support.NUMERIC)
def test_tensordot(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    for one, two, axes in [
        ((2, 3, 4), (3, 4, 2), 2),
        ((2, 3, 4), (4, 3), 1),
        ((2, 3), (4,), 0),
        ((2, 3), (2, 3), ((0, 1), (0, 1))),
        ((2, 3, 4), (4, 2, 5), ((2, 0), (0, 1))),
        ((2, 3, 4), (4, 2, 5), ((-1, 0), (0, -2))),
        ((2, 3), (3, 2), ((), ())),
        ((3,), (3,), 1),
        ((), (3,), 0),
        ((2, 0), (0, 3), 1),
        ((0, 2), (2, 3), 1),
    ]:
        a, b = numbers(dtype, one, seed=7), numbers(dtype, two, seed=8)
        exact = np.asarray(np.tensordot(exactly(a), exactly(b), axes), object)
        size = np.tensordot(np.abs(exactly(a)), np.abs(exactly(b)), axes)
        terms = max(1, a.size)
        if 0 in one:
            exact = size = np.zeros(exact.shape, object)
        pairs = list(zip(layouts(xp, a), layouts(xp, b), strict=False))
        for (name, x), (_, y) in pairs:
            got = xp.tensordot(x, y, axes=axes)
            compare(got, exact, size, "tensordot", dtype, terms, (name, one, two, axes))
    x = tensor(xp, numbers(dtype, (3, 3), seed=9))
    assert_same(xp.linalg.tensordot(x, x), xp.tensordot(x, x).to_numpy())


@for_dtypes(support.FLOATS)
def test_special_values_in_products(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    # What is multiplied by zero does not vanish when it is infinite or NaN.
    x = tensor(xp, np.asarray([[0.0, 1.0], [2.0, 0.0]], dtype))
    for value in (math.inf, math.nan):
        y = tensor(xp, np.asarray([[value, 1.0], [1.0, 2.0]], dtype))
        got = xp.real(xp.matmul(x, y)).to_numpy()
        assert np.isnan(got[0, 0])
        assert got[0, 1] == 2
        assert got[1, 1] == 2
        assert not np.isfinite(got[1, 0])
        dots = xp.real(xp.vecdot(x, y)).to_numpy()
        assert np.isnan(dots[0])
    got = xp.tensordot(
        tensor(xp, np.asarray([-0.0], dtype)), tensor(xp, np.asarray([1.0], dtype)), axes=0
    )
    assert np.signbit(xp.real(got).item())


@for_dtypes(support.NUMERIC)
def test_cross_and_outer(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    for one, two, axis in [
        ((3,), (3,), -1),
        ((4, 3), (4, 3), -1),
        ((3, 4), (3, 4), -2),
        ((3, 4), (3, 4), 0),
        ((2, 1, 3), (5, 3), -1),
        ((0, 3), (3,), -1),
    ]:
        a, b = numbers(dtype, one, seed=10), numbers(dtype, two, seed=11)
        left, right = np.moveaxis(exactly(a), axis, -1), np.moveaxis(exactly(b), axis, -1)
        terms = [
            (left[..., i] * right[..., j], left[..., j] * right[..., i])
            for i, j in ((1, 2), (2, 0), (0, 1))
        ]
        exact = np.stack([np.asarray(p - q, object) for p, q in terms], axis)
        size = np.stack([np.asarray(np.abs(p) + np.abs(q), object) for p, q in terms], axis)
        for (name, x), (_, y) in zip(layouts(xp, a), layouts(xp, b), strict=True):
            got = xp.linalg.cross(x, y, axis=axis)
            compare(got, exact, size, "cross", dtype, 1, (name, one))
    for n, m in [(3, 4), (1, 1), (0, 3), (3, 0)]:
        a, b = numbers(dtype, (n,), seed=12), numbers(dtype, (m,), seed=13)
        exact = np.multiply.outer(exactly(a), exactly(b))
        for (name, x), (_, y) in zip(layouts(xp, a), layouts(xp, b), strict=True):
            compare(xp.linalg.outer(x, y), exact, np.abs(exact), "outer", dtype, 1, name)


@for_dtypes(support.ALL)
def test_diagonal_and_trace(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    result = accumulating_dtype(xp, dtype)
    for shape in ((3, 4), (4, 3), (2, 3, 3), (0, 3), (2, 0, 3), (1, 1)):
        array, small = anything(dtype, shape, seed=14), numbers(dtype, shape, seed=15)
        for offset in (-5, -2, -1, 0, 1, 3):
            expected = np.diagonal(array, offset, -2, -1)
            for name, x in layouts(xp, array):
                assert_same(xp.linalg.diagonal(x, offset=offset), expected, (name, offset))
            exact = exactly(np.diagonal(small, offset, -2, -1))
            total, size = np.sum(exact, -1), np.sum(np.abs(exact), -1)
            for name, x in layouts(xp, small):
                got = xp.linalg.trace(x, offset=offset)
                compare(got, total, size, "trace", result, 4, (name, offset))
    x = xp.zeros((2, 2), dtype=dtype) if has(xp, dtype) else support.needs(xp, dtype)
    xp.linalg.diagonal(x)[...] = tensor(xp, np.ones(2, dtype))
    assert_same(x, np.eye(2, dtype=dtype))
    if dtype.kind in "iu":
        large = np.full((5, 5), np.iinfo(dtype).max, dtype)
        for target in (dtype, result):
            expected = wrapped(np.asarray(5 * int(large[0, 0]), object), target)
            assert_same(xp.linalg.trace(tensor(xp, large), dtype=target), expected)


ORDERS = [2, 1, math.inf, -math.inf, 0, 3, 0.5, 2.5, -1, -2]


def exact_norm(values: list[Any], order: float) -> Any:
    sizes = [abs(v) for v in values]
    if math.isinf(order):
        return max(sizes) if order > 0 else min(sizes)
    if order == 0:
        return mpf(sum(size != 0 for size in sizes))
    return sum((size ** mpf(order) for size in sizes), mpf(0)) ** (1 / mpf(order))


@pytest.mark.parametrize("order", ORDERS)
@for_dtypes(support.FLOATS)
def test_vector_norm(xp: ModuleType, dtype: np.dtype[Any], order: float) -> None:
    array = numbers(dtype, (2, 3, 4), seed=16)
    real = dt.real_of(dtype)
    for axis in axes_of(3):
        axes = tuple(range(3)) if axis is None else (axis,) if isinstance(axis, int) else axis
        axes = tuple(a % 3 for a in axes)
        kept = tuple(a for a in range(3) if a not in axes)
        lanes = exactly(array).transpose(kept + axes)
        shape = tuple(array.shape[a] for a in kept)
        rows = lanes.reshape(math.prod(shape), -1)
        exact = np.asarray([exact_norm(list(row), order) for row in rows], object).reshape(shape)
        reference = Reference(exact)
        terms = rows.shape[1]
        for name, x in layouts(xp, array):
            got = xp.linalg.vector_norm(x, axis=axis, ord=order)
            assert_kind(got, real, shape)
            reference.check(got, "vector_norm", dtype, terms=terms, note=(name, axis, order))
        got = xp.linalg.vector_norm(tensor(xp, array), axis=axis, ord=order, keepdims=True)
        assert got.shape == tuple(1 if i in axes else n for i, n in enumerate(array.shape))
    empty = tensor(xp, np.ones((2, 0), dtype))
    if order == -math.inf:
        with raises(ShapeError, "vector_norm"):
            xp.linalg.vector_norm(empty, axis=1, ord=order)
    elif order >= 0:
        got = xp.linalg.vector_norm(empty, axis=1, ord=order)
        assert_same(got, np.zeros(2, real))


@pytest.mark.parametrize("order", [1, -1, math.inf, -math.inf, "fro", None, 2, -2, "nuc"])
@for_dtypes(support.FLOATS)
def test_matrix_norm(xp: ModuleType, dtype: np.dtype[Any], order: Any) -> None:
    real = dt.real_of(dtype)
    spectral = order in (2, -2, "nuc")
    if spectral and dtype == dt.float16:
        with raises(DTypeError, "matrix_norm", "float16"):
            xp.linalg.matrix_norm(tensor(xp, np.ones((2, 2), dtype)), ord=order)
        return
    for shape in ((3, 4), (4, 3), (2, 3, 3), (1, 1)):
        array = numbers(dtype, shape, seed=17)
        matrices = exactly(array).reshape(-1, *shape[-2:])
        exact = np.asarray([exact_matrix_norm(m, order) for m in matrices], object)
        exact = exact.reshape(shape[:-2])
        scale = None
        if spectral:
            # Smallest singular values are as exact as the largest.
            largest = [exact_matrix_norm(m, "fro") for m in matrices]
            scale = np.asarray(largest, object).reshape(shape[:-2])
        reference = Reference(exact, scale)
        for name, x in layouts(xp, array):
            for keepdims in (False, True):
                got = xp.linalg.matrix_norm(x, ord=order, keepdims=keepdims)
                assert_kind(got, real, shape[:-2] + ((1, 1) if keepdims else ()))
                reference.check(
                    got[..., 0, 0] if keepdims else got,
                    "matrix_norm",
                    dtype,
                    terms=shape[-1],
                    note=(name, order),
                )
    for shape in ((0, 3), (3, 0), (0, 0), (2, 0, 2)):
        x = tensor(xp, np.ones(shape, dtype))
        if order in (-1, -math.inf, -2):
            along = {-1: shape[-1], -math.inf: shape[-2], -2: min(shape[-2:])}[order]
            if not along:
                with raises(ShapeError, "matrix_norm"):
                    xp.linalg.matrix_norm(x, ord=order)
                continue
        assert_same(xp.linalg.matrix_norm(x, ord=order), np.zeros(shape[:-2], real))
    got = xp.linalg.matrix_norm(tensor(xp, np.ones((0, 2, 2), dtype)), ord=order)
    assert_same(got, np.zeros(0, real))


def exact_matrix_norm(m: Array, order: Any) -> Any:
    sizes = np.abs(m)
    if order in ("fro", None):
        return mp.sqrt(np.sum(sizes**2))
    if order in (1, -1, math.inf, -math.inf):
        sums = np.sum(sizes, 0 if abs(order) == 1 else 1)
        return max(sums) if order > 0 else min(sums)
    with mp.workprec(120):
        values = list(mp.svd_c(mp.matrix(m.tolist()), compute_uv=False))
    return sum(values) if order == "nuc" else max(values) if order == 2 else min(values)


@for_dtypes(support.INTEGERS)
def test_norms_of_integers(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    x = tensor(xp, np.asarray([[3, 0], [4, 0]], dtype))
    real = floating_dtype(xp, dtype)
    assert_same(xp.linalg.vector_norm(x), np.asarray(5, real))
    assert_same(xp.linalg.matrix_norm(x, ord=1), np.asarray(7, real))


@for_dtypes(support.FLOATS)
def test_norms_of_special_values(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    for values, norms in [
        (
            [math.nan, 1],
            {2: math.nan, 1: math.nan, math.inf: math.nan, -math.inf: math.nan, 0: 2.0},
        ),
        ([math.inf, 1], {2: math.inf, 1: math.inf, math.inf: math.inf, -math.inf: 1.0, 0: 2.0}),
        ([-0.0, 0], {2: 0.0, 1: 0.0, math.inf: 0.0, -math.inf: 0.0, 0: 0.0, 3: 0.0}),
    ]:
        x = tensor(xp, np.asarray(values, dtype))
        for order, expected in norms.items():
            got = xp.linalg.vector_norm(x, ord=order).to_numpy()
            np.testing.assert_array_equal(got, np.asarray(expected, got.dtype))


def test_bad_arguments(xp: ModuleType) -> None:
    line, matrix = xp.ones(3, dtype=xp.float32), xp.ones((2, 3), dtype=xp.float32)
    point, flags = line[0], xp.asarray([True, False, True])
    cases: list[Refusal] = [
        (ShapeError, "matmul", r"\(2, 3\) and \(2, 3\)", lambda: xp.matmul(matrix, matrix)),
        (ShapeError, "matmul", r"\(\)", lambda: xp.matmul(matrix, point)),
        (ShapeError, "matmul", r"\(3,\) and \(2, 3\)", lambda: xp.matmul(line, matrix)),
        (ShapeError, "matmul", "", lambda: xp.matmul(xp.ones((2, 1, 1)), xp.ones((3, 1, 1)))),
        (DTypeError, "matmul", "bool", lambda: xp.matmul(flags, flags)),
        (ShapeError, "vecdot", r"\(2, 3\).*\(2, 2\)", lambda: xp.vecdot(matrix, matrix[:, :2])),
        (ShapeError, "vecdot", "", lambda: xp.vecdot(matrix, xp.ones((3, 3), dtype=xp.float32))),
        (AxisError, "vecdot", "axis -2", lambda: xp.vecdot(matrix, line, axis=-2)),
        (AxisError, "vecdot", "axis 0", lambda: xp.vecdot(matrix, line, axis=0)),
        (ShapeError, "tensordot", r"\(2, 3\)", lambda: xp.tensordot(matrix, matrix, axes=1)),
        (AxisError, "tensordot", "3", lambda: xp.tensordot(matrix, matrix, axes=3)),
        (AxisError, "tensordot", "-1", lambda: xp.tensordot(matrix, matrix, axes=-1)),
        (AxisError, "tensordot", "2", lambda: xp.tensordot(matrix, matrix, axes=((2,), (0,)))),
        (
            AxisError,
            "tensordot",
            "twice",
            lambda: xp.tensordot(matrix, matrix, axes=((0, 0), (0, 1))),
        ),
        (ShapeError, "tensordot", "", lambda: xp.tensordot(matrix, matrix, axes=((0,), (0, 1)))),
        (ShapeError, "tensordot", "3 entries", lambda: xp.tensordot(line, line, axes=(0, 0, 0))),
        (ShapeError, "cross", r"\(2, 3\)", lambda: xp.linalg.cross(matrix, matrix, axis=0)),
        (ShapeError, "cross", "", lambda: xp.linalg.cross(matrix, xp.ones((3, 3)))),
        (AxisError, "cross", "axis -3", lambda: xp.linalg.cross(matrix, matrix, axis=-3)),
        (ShapeError, "outer", r"\(2, 3\)", lambda: xp.linalg.outer(matrix, line)),
        (ShapeError, "diagonal", r"\(3,\)", lambda: xp.linalg.diagonal(line)),
        (ShapeError, "trace", r"\(3,\)", lambda: xp.linalg.trace(line)),
        (DTypeError, "trace", "bool", lambda: xp.linalg.trace(matrix, dtype=xp.bool)),
        (ShapeError, "matrix_norm", r"\(3,\)", lambda: xp.linalg.matrix_norm(line)),
        (ValueError, "matrix_norm", "'max'", lambda: xp.linalg.matrix_norm(matrix, ord="max")),
        (ValueError, "matrix_norm", "3", lambda: xp.linalg.matrix_norm(matrix, ord=3)),
        (TypeError, "vector_norm", "'fro'", lambda: xp.linalg.vector_norm(line, ord="fro")),
        (AxisError, "vector_norm", "axis 1", lambda: xp.linalg.vector_norm(line, axis=1)),
    ]
    assert_refused(cases)
