"""Linear algebra on WebGPU of special matrices: without a result, of low rank, graded, at the ends of the range."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import numr
from numr import dtypes as dt
from tests.parity import flushing
from tests.runtime.wgpu_matrices import (
    CLIENT,
    FLOATS,
    adjoint,
    assert_orthonormal,
    assert_small,
    check_eigh,
    check_qr,
    check_svd,
    definite,
    device,
    eps,
    for_dtypes,
    host,
    norm,
    random,
    wide,
)

pytestmark = pytest.mark.wgpu


@for_dtypes
def test_matrices_without_a_result_raise(dtype):
    singular_one = np.asarray([[1, 2], [2, 4]], dtype)
    for a in (singular_one, np.stack([np.eye(2, dtype=dtype), singular_one])):
        for call in (CLIENT.inv, lambda x: CLIENT.solve(x, x)):
            with pytest.raises(np.linalg.LinAlgError, match="Singular"):
                call(device(a))
        assert (host(CLIENT.det(device(a))).ravel()[-1]) == 0
        sign, logarithm = host(CLIENT.slogdet(device(a)))
        assert sign.ravel()[-1] == 0
        assert logarithm.ravel()[-1] == -math.inf
    large = random((90, 90), dtype)
    large[:, 70] = 0
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        CLIENT.inv(device(large))
    assert host(CLIENT.det(device(large))) == 0
    for n, place in [(3, 2), (90, 80)]:
        a = np.eye(n, dtype=dtype)
        for wrong in (0, -1, math.nan):
            a[place, place] = wrong
            with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
                CLIENT.cholesky(device(np.stack([np.eye(n, dtype=dtype), a])))


@for_dtypes
def test_nan_and_infinity(dtype):
    for n in (3, 70):
        for place in [(0, 0), (2, 0), (2, 2)]:
            for value in (math.nan, math.inf):
                a = definite((2, n, n), dtype)
                a[1][place] = value
                x = device(a)
                with pytest.raises(np.linalg.LinAlgError, match="converge"):
                    CLIENT.svd(x, False)
                with pytest.raises(np.linalg.LinAlgError, match="converge"):
                    CLIENT.svdvals(x)
                values, vectors = host(CLIENT.eigh(x))
                assert np.isnan(values[1]).all()
                assert np.isnan(vectors[1]).all()
                assert np.isfinite(values[0]).all()
                assert np.isfinite(vectors[0]).all()
                if math.isnan(value):
                    assert np.isnan(host(CLIENT.inv(x))[1]).any()
                    assert np.isnan(host(CLIENT.solve(x, device(np.ones((n, 1), dtype))))[1]).any()
                    assert np.isnan(host(CLIENT.det(x))[1])
                    assert np.isnan(host(CLIENT.qr(x, False)[1])[1]).any()
            if n == 70:
                return
    infinite = np.asarray([[math.inf, 1], [1, math.inf]], dtype)
    assert not np.isfinite(host(CLIENT.det(device(infinite))))


@for_dtypes
@pytest.mark.parametrize("n", [4, 17])
def test_matrices_of_low_rank(dtype, n):
    full = random((n, n), dtype)
    zeros = np.zeros((n, n), dtype)
    # One of a stack each.
    cases = [
        zeros,
        zeros + dtype.type(1),
        random((n, 2), dtype) @ random((2, n), dtype),
        np.where(np.arange(n) % 3 > 0, full, zeros),
        np.where(np.arange(n)[:, None] % 3 > 0, full, zeros),
        full[:, np.arange(n) // 2],
    ]
    check_svd(CLIENT, np.stack(cases))
    check_svd(CLIENT, cases[2][:3])
    check_svd(CLIENT, cases[2][:, :3])
    check_qr(CLIENT, np.stack(cases))


@pytest.mark.parametrize("dtype", [dt.float32, dt.complex128], ids=str)
def test_large_matrices_of_low_rank(dtype):
    check_svd(CLIENT, np.ones((70, 70), dtype))
    check_svd(CLIENT, random((68, 2), dtype) @ random((2, 66), dtype))
    check_qr(CLIENT, np.ones((70, 70), dtype))


@pytest.mark.parametrize(
    ("n", "dtype"),
    [*((6, dtype) for dtype in FLOATS), (66, dt.float32), (66, dt.complex128)],
    ids=str,
)
def test_special_hermitian_matrices(dtype, n):
    basis = np.linalg.qr(random((n, n), np.dtype(np.complex128)))[0]
    if dtype.kind == "f":
        basis = np.linalg.qr(random((n, n), dt.float64))[0]
    signs = np.where(np.arange(n) % 2, 1, -1)
    cases = [
        np.zeros((n, n)),
        np.ones((n, n)),
        # Two eigenvalues, each many times.
        (basis * signs) @ adjoint(basis),
        # As good as multiples of the identity.
        np.eye(n) + 1e-5 * (basis * signs) @ adjoint(basis),
        # Pairs of eigenvalues that are almost equal.
        np.diag(np.abs(np.arange(n) - n // 2) * 1.0) + np.eye(n, k=1) + np.eye(n, k=-1),
    ]
    for case in cases if n == 6 else cases[1:4]:
        a = case.astype(dtype)
        check_eigh(CLIENT, np.tril(a) + adjoint(np.tril(a, -1)), 8.0)
    diagonal = np.roll(np.arange(n) - 2.5, 3)
    values = host(CLIENT.eigvalsh(device(np.diag(diagonal).astype(dtype))))
    np.testing.assert_array_equal(values, np.sort(diagonal).astype(values.dtype))


@for_dtypes
def test_small_singular_values_of_graded_columns_are_relatively_exact(dtype):
    double = np.complex128 if dtype.kind == "c" else np.float64
    for n in (6, 70):
        # Within what double precision can tell.
        grades = np.logspace(0, -5 if eps(dtype) > 1e-10 else -2, n)
        a = (random((n, n), dtype, seed=3) * grades).astype(dtype)
        exact = np.linalg.svd(a.astype(double), compute_uv=False)
        condition = np.linalg.cond(a.astype(double) / grades)
        for order in (1, -1):
            values = host(CLIENT.svdvals(device(a[:, ::order])))
            assert (np.abs(values / exact - 1) <= 4 * n * eps(dtype) * condition).all()


@for_dtypes
@pytest.mark.parametrize("n", [5, 66])
def test_numbers_at_the_ends_of_the_range(dtype, n):
    info = np.finfo(dtype)
    for size in (float(info.max) / (40 * n), float(info.tiny) * 2 / eps(dtype)):
        a = (random((n, n), dtype) * size).astype(dtype)
        expected = np.linalg.svd(a.astype(dt.complex128) / size, compute_uv=False)
        values = host(CLIENT.svdvals(device(a))).astype(float) / size
        assert_small((values - expected)[:, None], norm(expected[:, None]), n, dtype)
        b = np.tril(a) + adjoint(np.tril(a, -1))
        expected = np.linalg.eigvalsh(b.astype(dt.complex128) / size)
        values = host(CLIENT.eigvalsh(device(b))).astype(float) / size
        assert_small((values - expected)[:, None], norm(expected[:, None]), n, dtype)
        q, r = host(CLIENT.qr(device(a), False))
        assert_orthonormal(q, dtype)
        given = wide(a) / size
        assert_small(wide(q) @ (wide(r) / size) - given, norm(given), n, dtype)
        inverse = host(CLIENT.inv(device(a)))
        scale = norm(given) * norm(wide(inverse) * size)
        # Of an inverse whose elements are as small as can be, a device may lack those that are subnormal.
        flushes = flushing.flushes(numr.namespace("wgpu"), dtype)
        lost = n * float(info.smallest_normal) * size if flushes else 0.0
        scale += norm(given) * lost / (4 * n * eps(dtype))
        assert_small(given @ (wide(inverse) * size) - np.eye(n), scale, n, dtype)


@for_dtypes
def test_determinants_are_exact_where_products_are(dtype):
    rng = np.random.default_rng(0)
    for n in range(1, 6):
        a = rng.integers(-3, 4, (6, n, n))
        got = host(CLIENT.det(device(a.astype(dtype))))
        sign, logarithm = host(CLIENT.slogdet(device(a.astype(dtype))))
        for i, matrix in enumerate(a):
            exact = float(determinant([[Fraction(int(v)) for v in row] for row in matrix]))
            bound = 8 * n * eps(dtype) * max(abs(exact), 30.0)
            assert abs(got[i] - exact) <= bound
            if exact:
                assert abs(sign[i] - math.copysign(1, exact)) <= bound
                assert abs(logarithm[i] - math.log(abs(exact))) <= bound
    # Neither the product so far nor the elements need be next to one.
    tiny, huge = 2.0**-100, 2.0**100
    a = np.diag([huge, huge, huge, tiny, tiny, -tiny, 3.0]).astype(dtype)
    assert host(CLIENT.det(device(a))) == -3
    # Nor need components of a product be in range where its factors are.
    largest = float(np.finfo(dtype).max)
    phase = 1 + 1j if dtype.kind == "c" else 1
    a = np.diag(np.asarray([largest, largest, 4 / largest, 8 / largest]) * phase).astype(dtype)
    exact = 32 * phase**4
    assert abs(host(CLIENT.det(device(a))) - exact) <= 8 * eps(dtype) * abs(exact)
    a = (np.eye(50) * -huge).astype(dtype)
    sign, logarithm = host(CLIENT.slogdet(device(a)))
    assert sign == 1
    assert abs(logarithm - 5000 * math.log(2)) <= 4 * eps(dtype) * 5000
    if eps(dtype) > 1e-10:
        assert host(CLIENT.det(device(a))) == math.inf
        assert host(CLIENT.det(device(np.eye(50, dtype=dtype) * dtype.type(tiny)))) == 0


def determinant(rows):
    result = Fraction(1)
    for i in range(len(rows)):
        pivot = next((r for r in range(i, len(rows)) if rows[r][i]), None)
        if pivot is None:
            return Fraction(0)
        if pivot != i:
            rows[i], rows[pivot] = rows[pivot], rows[i]
            result = -result
        result *= rows[i][i]
        for r in range(i + 1, len(rows)):
            factor = rows[r][i] / rows[i][i]
            rows[r] = [v - factor * w for v, w in zip(rows[r], rows[i], strict=True)]
    return result
