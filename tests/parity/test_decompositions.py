"""Factorisations in every dtype on every runtime.

Factors are not unique, so they are put together again in extended precision and compared with the matrix; values that are
unique are compared with exact ones.
"""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from mpmath import mp

from numr import dtypes as dt
from tests.parity import bounds, support
from tests.parity.matrices import (
    RECTANGLES,
    SQUARES,
    adjoint,
    assert_orthonormal,
    assert_small,
    definite,
    size,
    wide,
)
from tests.parity.support import (
    assert_close,
    assert_kind,
    exactly,
    for_dtypes,
    layouts,
    numbers,
    tensor,
)

pytestmark = pytest.mark.usefixtures("precise")


@pytest.mark.parametrize("shape", SQUARES, ids=str)
@for_dtypes(support.FACTORED)
def test_cholesky(xp: ModuleType, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    a = definite(dtype, shape, seed=4)
    for upper in (False, True):
        for name, x in layouts(xp, a):
            got = xp.linalg.cholesky(x, upper=upper)
            factor = assert_kind(got, dtype, shape)
            other_triangle = np.tril(factor, -1) if upper else np.triu(factor, 1)
            assert not other_triangle.any()
            product = adjoint(wide(got)) @ wide(got) if upper else wide(got) @ adjoint(wide(got))
            assert_small("cholesky", dtype, product - wide(a), size(wide(got)) ** 2, (name, upper))
            diagonal = np.diagonal(factor, 0, -2, -1)
            assert (diagonal.real > 0).all()
            assert not diagonal.imag.any()
        # The other triangle is not read.
        broken = a.copy()
        broken[
            np.broadcast_to(
                np.tri(shape[-1], k=-1, dtype=bool) if upper else ~np.tri(shape[-1], dtype=bool),
                shape,
            )
        ] = 99
        np.testing.assert_array_equal(
            xp.linalg.cholesky(tensor(xp, broken), upper=upper).to_numpy(),
            xp.linalg.cholesky(tensor(xp, a), upper=upper).to_numpy(),
        )


@pytest.mark.parametrize("shape", RECTANGLES, ids=str)
@for_dtypes(support.FACTORED)
def test_qr(xp: ModuleType, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    a = numbers(dtype, shape, seed=5)
    *batch, m, n = shape
    for mode, k in [("reduced", min(m, n)), ("complete", m)]:
        for name, x in layouts(xp, a):
            result = xp.linalg.qr(x, mode=mode)
            assert type(result)._fields == ("Q", "R")
            assert_kind(result.Q, dtype, (*batch, m, k))
            r = assert_kind(result.R, dtype, (*batch, k, n))
            assert not np.tril(r, -1).any()
            q = wide(result.Q)
            assert_orthonormal("qr", dtype, q)
            assert_small("qr", dtype, q @ wide(result.R) - wide(a), size(wide(a)), (name, mode))
    np.testing.assert_array_equal(
        xp.linalg.qr(tensor(xp, a)).R.to_numpy(),
        xp.linalg.qr(tensor(xp, a), mode="reduced").R.to_numpy(),
    )


@pytest.mark.parametrize("shape", SQUARES, ids=str)
@for_dtypes(support.FACTORED)
def test_eigh(xp: ModuleType, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    a = numbers(dtype, shape, seed=6)
    a = np.asarray(a + adjoint(a), dtype)
    real = dt.real_of(dtype)
    for name, x in layouts(xp, a):
        result = xp.linalg.eigh(x)
        assert type(result)._fields == ("eigenvalues", "eigenvectors")
        values = assert_kind(result.eigenvalues, real, shape[:-1])
        assert_kind(result.eigenvectors, dtype, shape)
        assert (np.diff(values) >= 0).all()
        vectors = wide(result.eigenvectors)
        assert_orthonormal("eigh", dtype, vectors)
        residual = wide(a) @ vectors - vectors * wide(result.eigenvalues)[..., None, :]
        assert_small("eigh", dtype, residual, size(wide(a)), name)
        alone = xp.linalg.eigvalsh(x)
        assert_kind(alone, real, shape[:-1])
        difference = wide(alone)[..., None] - wide(values)[..., None]
        assert_small("eigvalsh", dtype, difference, size(wide(a)), name)
    if 0 < a.size < 30:
        matrices = a.reshape(-1, *shape[-2:])
        with mp.workprec(120):
            exact = [
                list(mp.eigh(mp.matrix(exactly(m).tolist()), eigvals_only=True)) for m in matrices
            ]
        scale = np.repeat(size(wide(matrices)).astype(float)[:, None], shape[-1], 1).reshape(
            shape[:-1]
        )
        got = xp.linalg.eigvalsh(tensor(xp, a))
        values = np.asarray(exact, object).reshape(shape[:-1])
        assert_close(got, values, "eigvalsh", dtype, scale=scale, terms=shape[-1])
    # Only the lower triangle is read.
    broken = a.copy()
    broken[np.broadcast_to(~np.tri(shape[-1], dtype=bool), shape)] = 99
    for function in (xp.linalg.eigvalsh, lambda x: xp.linalg.eigh(x).eigenvalues):
        np.testing.assert_array_equal(
            function(tensor(xp, broken)).to_numpy(), function(tensor(xp, a)).to_numpy()
        )


@pytest.mark.parametrize("shape", SQUARES, ids=str)
@for_dtypes(support.FACTORED)
def test_eig(xp: ModuleType, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    a = numbers(dtype, shape, seed=7)
    cplx = dt.complex_of(dtype)
    for name, x in layouts(xp, a):
        result = xp.linalg.eig(x)
        assert type(result)._fields == ("eigenvalues", "eigenvectors")
        assert_kind(result.eigenvalues, cplx, shape[:-1])
        assert_kind(result.eigenvectors, cplx, shape)
        vectors, values = wide(result.eigenvectors), wide(result.eigenvalues)
        residual = wide(a) @ vectors - vectors * values[..., None, :]
        assert_small("eig", dtype, residual, size(wide(a)) * np.maximum(size(vectors), 1), name)
        lengths = np.sqrt(np.sum(np.abs(vectors) ** 2, -2))
        assert_small("eig", dtype, (lengths - 1)[..., None, :], 1, name)
        # All of them: their sum is the trace, which is better conditioned than each.
        trace = np.trace(wide(a), axis1=-2, axis2=-1)
        missing = (np.sum(values, -1) - trace)[..., None, None]
        n = max(shape[-1], 1)
        assert (size(missing) <= bounds.allowed("eig", dtype, n) * n * size(wide(a))).all()
        alone = xp.linalg.eigvals(x)
        assert_kind(alone, cplx, shape[:-1])
        missing = (np.sum(wide(alone), -1) - trace)[..., None, None]
        assert (size(missing) <= bounds.allowed("eig", dtype, n) * n * size(wide(a))).all()


@for_dtypes(support.FACTORED)
def test_eigenvalues_are_complex_also_where_they_are_real(
    xp: ModuleType, dtype: np.dtype[Any]
) -> None:
    x = tensor(xp, np.asarray([[2, 1], [0, 3]], dtype))
    for values in (xp.linalg.eigvals(x), xp.linalg.eig(x).eigenvalues):
        host = assert_kind(values, dt.complex_of(dtype), (2,))
        np.testing.assert_allclose(np.sort_complex(host), [2, 3], rtol=1e-6)


@pytest.mark.parametrize("shape", RECTANGLES, ids=str)
@for_dtypes(support.FACTORED)
def test_svd(xp: ModuleType, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    a = numbers(dtype, shape, seed=8)
    *batch, m, n = shape
    k, real = min(m, n), dt.real_of(dtype)
    for name, x in layouts(xp, a):
        for full in (False, True):
            result = xp.linalg.svd(x, full_matrices=full)
            assert type(result)._fields == ("U", "S", "Vh")
            assert_kind(result.U, dtype, (*batch, m, m if full else k))
            values = assert_kind(result.S, real, (*batch, k))
            assert_kind(result.Vh, dtype, (*batch, n if full else k, n))
            assert (values >= 0).all()
            assert (np.diff(values) <= 0).all()
            u, s, vh = (wide(factor) for factor in result)
            assert_orthonormal("svd", dtype, u)
            assert_orthonormal("svd", dtype, adjoint(vh))
            product = (u[..., :k] * s[..., None, :]) @ vh[..., :k, :]
            assert_small("svd", dtype, product - wide(a), size(wide(a)), (name, full))
        alone = xp.linalg.svdvals(x)
        assert_kind(alone, real, (*batch, k))
        difference = (wide(alone) - wide(xp.linalg.svd(x).S))[..., None]
        assert_small("svdvals", dtype, difference, size(wide(a)), name)
    assert xp.linalg.svd(tensor(xp, a)).U.shape == (*batch, m, m)
    if 0 < a.size < 25:
        with mp.workprec(120):
            exact = list(mp.svd_c(mp.matrix(exactly(a).tolist()), compute_uv=False))
        got = xp.linalg.svdvals(tensor(xp, a))
        assert_close(got, exact, "svdvals", dtype, scale=float(size(wide(a))), terms=max(m, n))


@pytest.mark.parametrize(
    ("n", "place"),
    [
        (n, place)
        for n in (1, 2, 3, 8)
        for place in ((0, 0), (1, 0), (1, 1), (2, 1), (2, 2))
        if max(place) < n
    ],
)
@for_dtypes(support.FACTORED)
def test_nan_is_not_lost(
    xp: ModuleType, dtype: np.dtype[Any], n: int, place: tuple[int, int]
) -> None:
    a = definite(dtype, (n, n), seed=14)
    a[place] = math.nan
    x = tensor(xp, a)
    for function in (
        "cholesky",
        "det",
        "eig",
        "eigh",
        "eigvals",
        "eigvalsh",
        "inv",
        "slogdet",
        "svd",
    ):
        try:
            result = getattr(xp.linalg, function)(x)
        except np.linalg.LinAlgError:
            continue
        parts = result if isinstance(result, tuple) else (result,)
        assert any(np.isnan(part.to_numpy()).any() for part in parts), function
    solution = xp.linalg.solve(x, tensor(xp, np.ones(n, dtype)))
    assert np.isnan(solution.to_numpy()).any()
