"""Equations, inverses, determinants and ranks in every dtype on every runtime."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from mpmath import mp

from numr import dtypes as dt
from numr.errors import DTypeError, ShapeError
from tests.parity import support
from tests.parity.matrices import (
    RECTANGLES,
    SQUARES,
    adjoint,
    assert_small,
    condition,
    exact_determinant,
    invertible,
    size,
    wide,
)
from tests.parity.support import (
    Refusal,
    anything,
    assert_close,
    assert_kind,
    assert_refused,
    assert_same,
    default_dtype,
    for_dtypes,
    layouts,
    numbers,
    raises,
    tensor,
)

pytestmark = pytest.mark.usefixtures("precise")


@pytest.mark.parametrize("shape", SQUARES, ids=str)
@for_dtypes(support.FACTORED)
def test_solve(xp: ModuleType, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    a = invertible(dtype, shape)
    n = shape[-1]
    sides: list[tuple[int, ...]] = [(n,), (n, 3), (n, 0), (2, *shape[:-2], n, 2), shape]
    for side in sides:
        b = numbers(dtype, side, seed=1)
        for (name, x), (_, y) in zip(layouts(xp, a), layouts(xp, b), strict=True):
            got = xp.linalg.solve(x, y)
            columns = b[:, None] if b.ndim == 1 else b
            expected = np.broadcast_shapes(shape[:-2], columns.shape[:-2])
            assert_kind(
                got, dtype, (*expected, n, *columns.shape[-1:])[: -1 if b.ndim == 1 else None]
            )
            solution = wide(got)[..., None] if b.ndim == 1 else wide(got)
            residual = wide(a) @ solution - wide(columns)
            assert_small("solve", dtype, residual, size(wide(a)) * size(solution), (name, side))


@pytest.mark.parametrize("shape", SQUARES, ids=str)
@for_dtypes(support.FACTORED)
def test_inverse_and_powers(xp: ModuleType, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    a = invertible(dtype, shape, seed=2)
    n = shape[-1]
    for name, x in layouts(xp, a):
        got = xp.linalg.inv(x)
        assert_kind(got, dtype, shape)
        inverse = wide(got)
        scale = size(wide(a)) * size(inverse)
        assert_small("inv", dtype, wide(a) @ inverse - np.eye(n), scale, name)
        for power in (0, 1, 2, 3, 5, 8, -1, -3):
            got = xp.linalg.matrix_power(x, power)
            assert_kind(got, dtype, shape)
            exact = np.broadcast_to(np.eye(n), shape).astype(wide(a).dtype)
            factor = size(np.broadcast_to(np.eye(n), shape))
            for _ in range(abs(power)):
                exact = exact @ wide(a)
                factor = factor * size(wide(a))
            if power >= 0:
                assert_small("matrix_power", dtype, wide(got) - exact, factor, (name, power))
            else:
                residual = wide(got) @ exact - np.eye(n)
                scale = (size(wide(a)) * size(inverse)) ** abs(power)
                assert_small("matrix_power", dtype, residual, scale, (name, power))
    x = tensor(xp, a)
    xp.linalg.matrix_power(x, 1)[...] = 0
    assert_same(x, a)


@pytest.mark.parametrize("shape", [s for s in SQUARES if s[-1] < 6], ids=str)
@for_dtypes(support.FACTORED)
def test_determinants(xp: ModuleType, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    a = numbers(dtype, shape, seed=3)
    matrices = a.reshape(-1, *shape[-2:]) if a.size else np.ones((math.prod(shape[:-2]), 0, 0))
    exact = np.empty(len(matrices), object)
    exact[:] = [exact_determinant(m.tolist()) for m in matrices]
    exact = exact.reshape(shape[:-2])
    scale = np.abs(exact) * condition(a)
    signs = np.asarray([d / abs(d) for d in exact.ravel()], object).reshape(exact.shape)
    logs = np.asarray([mp.log(abs(d)) for d in exact.ravel()], object).reshape(exact.shape)
    n = shape[-1]
    for name, x in layouts(xp, a):
        got = xp.linalg.det(x)
        assert_kind(got, dtype, shape[:-2])
        assert_close(got, exact, "det", dtype, scale=scale, terms=n, note=name)
        result = xp.linalg.slogdet(x)
        assert type(result)._fields == ("sign", "logabsdet")
        assert_kind(result.sign, dtype, shape[:-2])
        assert_kind(result.logabsdet, dt.real_of(dtype), shape[:-2])
        # The logarithm of a number with a relative error has that as its absolute error, beside its own rounding.
        wanted = condition(a) + np.abs(np.asarray(logs, float))
        assert_close(result.sign, signs, "slogdet", dtype, scale=condition(a), terms=n, note=name)
        assert_close(result.logabsdet, logs, "slogdet", dtype, scale=wanted, terms=n, note=name)


@for_dtypes(support.FACTORED)
def test_special_determinants(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    singular = tensor(xp, np.asarray([[1, 2], [2, 4]], dtype))
    assert_same(xp.linalg.det(singular), np.zeros((), dtype))
    sign, logarithm = xp.linalg.slogdet(singular)
    assert_same(sign, np.zeros((), dtype))
    assert_same(logarithm, np.asarray(-math.inf, dt.real_of(dtype)))
    nothing = tensor(xp, np.ones((0, 0), dtype))
    assert_same(xp.linalg.det(nothing), np.ones((), dtype))
    # Beyond the range of the dtype.
    large = tensor(xp, np.eye(50, dtype=dtype) * dtype.type(-1e30))
    sign, logarithm = xp.linalg.slogdet(large)
    assert sign.dtype == dtype
    assert sign.item() == 1
    correct = np.asarray(50 * mp.log(mp.mpf(abs(complex(dtype.type(1e30))))), object)
    assert_close(logarithm, correct, "slogdet", dtype)
    for value in (math.nan, math.inf):
        got = xp.linalg.det(tensor(xp, np.asarray([[value, 1], [1, value]], dtype)))
        assert not np.isfinite(got.to_numpy())


@pytest.mark.parametrize("shape", RECTANGLES, ids=str)
@for_dtypes(support.FACTORED)
def test_pinv(xp: ModuleType, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    *batch, m, n = shape
    full = numbers(dtype, shape, seed=9)
    # Of rank one, or of none where there are no elements.
    thin = numbers(dtype, (*batch, m, 1), seed=10) @ numbers(dtype, (*batch, 1, n), seed=11)
    for a in (full, thin):
        for name, x in layouts(xp, a):
            got = xp.linalg.pinv(x)
            assert_kind(got, dtype, (*batch, n, m))
            given, inverse = wide(a), wide(got)
            # The four conditions that define it.
            scale = size(given) * size(inverse)
            assert_small("pinv", dtype, given @ inverse @ given - given, size(given) * scale, name)
            assert_small(
                "pinv", dtype, inverse @ given @ inverse - inverse, size(inverse) * scale, name
            )
            for product in (given @ inverse, inverse @ given):
                assert_small("pinv", dtype, product - adjoint(product), np.maximum(scale, 1), name)


@for_dtypes(support.FACTORED)
def test_rank_and_tolerance(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    integral = default_dtype(xp, "integral")
    for shape in ((5, 3), (3, 5), (4, 4), (2, 3, 4, 4)):
        *batch, m, n = shape
        for rank in range(min(m, n) + 1):
            a = numbers(dtype, (*batch, m, rank), seed=12) @ numbers(
                dtype, (*batch, rank, n), seed=13
            )
            for name, x in layouts(xp, a):
                got = xp.linalg.matrix_rank(x)
                assert_same(got, np.full(tuple(batch), rank, integral), (name, rank))
    for shape in ((0, 3), (3, 0), (0, 0)):
        assert_same(
            xp.linalg.matrix_rank(tensor(xp, np.ones(shape, dtype))), np.zeros((), integral)
        )
    x = tensor(xp, np.diag(np.asarray([1, 1e-2, 1e-4], dtype)))
    real = dt.real_of(dtype)
    for tolerance, rank in [(1e-3, 2), (0.5, 1), (1e-5, 3), (0.0, 3), (1.0, 0)]:
        assert int(xp.linalg.matrix_rank(x, rtol=tolerance)) == rank
        assert int(xp.linalg.matrix_rank(x, rtol=tensor(xp, tolerance, real))) == rank
        inverse = xp.linalg.pinv(x, rtol=tolerance).to_numpy()
        assert np.count_nonzero(np.diagonal(inverse)) == rank
    stack = xp.stack([x, x, 2 * x])
    tolerances = tensor(xp, [1e-3, 0.5, 1e-5], real)
    assert xp.linalg.matrix_rank(stack, rtol=tolerances).tolist() == [2, 1, 3]
    inverses = xp.linalg.pinv(stack, rtol=tolerances).to_numpy()
    assert [np.count_nonzero(np.diagonal(m)) for m in inverses] == [2, 1, 3]


SQUARE_FUNCTIONS = ["cholesky", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "slogdet"]
ALL_FUNCTIONS = [*SQUARE_FUNCTIONS, "matrix_rank", "pinv", "qr", "svd", "svdvals"]


@pytest.mark.parametrize("function", ALL_FUNCTIONS)
@for_dtypes((dt.bool_, *support.INTEGERS, dt.float16))
def test_other_dtypes(xp: ModuleType, dtype: np.dtype[Any], function: str) -> None:
    call = getattr(xp.linalg, function)
    x = tensor(xp, np.asarray([[1, 0], [0, 1]], dtype))
    if dtype == dt.float16:
        with raises(DTypeError, function, "float16"):
            call(x)
        with raises(DTypeError, "solve", "float16"):
            xp.linalg.solve(x, x)
        with raises(DTypeError, "matrix_power", "float16"):
            xp.linalg.matrix_power(x, 2)
        return
    real = default_dtype(xp, "real floating")
    got, expected = call(x), call(xp.astype(x, real))
    for one, two in zip(
        *((r,) if not isinstance(r, tuple) else r for r in (got, expected)), strict=True
    ):
        assert_same(one, two.to_numpy())
    assert_same(xp.linalg.solve(x, x), np.eye(2, dtype=real))
    assert_same(xp.linalg.matrix_power(x, 3), np.eye(2, dtype=real))


def test_bad_arguments(xp: ModuleType) -> None:
    line, wide_matrix = xp.ones(3, dtype=xp.float32), xp.ones((2, 3), dtype=xp.float32)
    square = xp.eye(3, dtype=xp.float32)
    cases: list[Refusal] = []
    for function in ALL_FUNCTIONS:
        call = getattr(xp.linalg, function)
        cases.append((ShapeError, function, r"\(3,\)", lambda call=call: call(line)))
        if function in SQUARE_FUNCTIONS:
            cases.append((ShapeError, function, r"\(2, 3\)", lambda call=call: call(wide_matrix)))
    solve, power = xp.linalg.solve, xp.linalg.matrix_power
    cases += [
        (ShapeError, "solve", r"\(2, 3\)", lambda: solve(wide_matrix, line)),
        (ShapeError, "solve", r"\(3, 3\) and \(2, 3\)", lambda: solve(square, wide_matrix)),
        (ShapeError, "solve", r"\(3,\)", lambda: solve(line, line)),
        (ShapeError, "solve", r"\(\)", lambda: solve(square, line[0])),
        (ShapeError, "solve", "", lambda: solve(xp.ones((2, 3, 3)), xp.ones((3, 3, 3)))),
        (ShapeError, "matrix_power", r"\(2, 3\)", lambda: power(wide_matrix, 2)),
        (TypeError, "matrix_power", "", lambda: power(square, 1.5)),
        (ValueError, "qr", "'full'", lambda: xp.linalg.qr(square, mode="full")),
        (
            DTypeError,
            "pinv",
            "int32",
            lambda: xp.linalg.pinv(square, rtol=xp.asarray(1, dtype=xp.int32)),
        ),
    ]
    assert_refused(cases)


@pytest.mark.parametrize(
    ("function", "matrix"),
    [
        ("cholesky", [[1, 2], [2, 1]]),
        ("inv", [[1, 2], [2, 4]]),
        ("solve", [[1, 2], [2, 4]]),
        ("matrix_power", [[1, 2], [2, 4]]),
        ("eig", [[math.nan, 1], [1, 1]]),
        ("eigvals", [[math.nan, 1], [1, 1]]),
        ("svd", [[math.nan, 1], [1, 1]]),
        ("svdvals", [[math.nan, 1], [1, 1]]),
        ("pinv", [[math.nan, 1], [1, 1]]),
        ("matrix_rank", [[math.nan, 1], [1, 1]]),
        ("matrix_norm", [[math.nan, 1], [1, 1]]),
    ],
)
@for_dtypes(support.FACTORED)
def test_matrices_without_a_result(
    xp: ModuleType, dtype: np.dtype[Any], function: str, matrix: list[list[float]]
) -> None:
    options: dict[str, tuple[Any, ...]] = {
        "solve": (tensor(xp, np.ones(2, dtype)),),
        "matrix_power": (-1,),
    }
    call = getattr(xp.linalg, function)
    keywords = {"ord": 2} if function == "matrix_norm" else {}
    arguments = options.get(function, ())
    single = tensor(xp, np.asarray(matrix, dtype))
    with raises(np.linalg.LinAlgError, function, f"{dtype}"):
        call(single, *arguments, **keywords)
    # One of a stack is enough.
    stack = tensor(xp, np.asarray([np.eye(2), matrix], dtype))
    with raises(np.linalg.LinAlgError, function):
        call(stack, *arguments, **keywords)


@for_dtypes(support.ALL)
def test_matrix_transpose_is_in_both_namespaces(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    array = anything(dtype, (2, 3, 4), seed=14)
    assert_same(xp.linalg.matrix_transpose(tensor(xp, array)), array.swapaxes(1, 2))
