"""Matrices for the tests of linear algebra on WebGPU, and what is asked of the results of each method."""

from __future__ import annotations

import math

import numpy as np
import pytest

from numr import dtypes as dt
from tests.runtime.wgpu_support import kernels_of, require_adapter

require_adapter()

#: Runs the kernels for software adapters.
CLIENT = kernels_of("cpu")
FLOATS = (dt.float32, dt.float64, dt.complex64, dt.complex128)
for_dtypes = pytest.mark.parametrize("dtype", FLOATS, ids=str)

#: Stacks of small matrices that share workgroups, and matrices in one, two and three blocks.
SHAPES = ((5, 1), (5, 2), (2, 2, 3), (3, 5), (2, 17), (1, 64), (1, 65))
LARGE = (1, 130)


def random(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape)
    if dtype.kind == "c":
        values = values + 1j * rng.standard_normal(shape)
    return values.astype(dtype)


def hermitian(shape, dtype, seed=0):
    values = random(shape, dtype, seed)
    return values + adjoint(values)


def definite(shape, dtype, seed=0):
    values = random(shape, dtype, seed)
    product = values @ adjoint(values) + np.eye(shape[-1], dtype=dtype)
    return ((product + adjoint(product)) / 2).astype(dtype)


def adjoint(x):
    return np.conjugate(np.swapaxes(x, -1, -2))


def wide(x):
    return np.asarray(x, np.clongdouble if x.dtype.kind == "c" else np.longdouble)


def norm(x):
    return np.sqrt(np.sum(np.abs(x) ** 2, (-2, -1)))


def eps(dtype):
    return float(np.finfo(dtype).eps)


def assert_small(error, scale, n, dtype, factor=4.0):
    assert np.isfinite(np.abs(error)).all()
    assert (norm(error) <= factor * n * eps(dtype) * scale).all()


def assert_orthonormal(q, dtype, factor=4.0):
    n = q.shape[-1]
    assert_small(adjoint(wide(q)) @ wide(q) - np.eye(n), math.sqrt(n), n, dtype, factor)


def assert_same(got, expected):
    """One result or several, the same to the bit."""
    if not isinstance(got, (tuple, list)):
        got, expected = (got,), (expected,)
    for one, two in zip(got, expected, strict=True):
        assert one.dtype == two.dtype
        np.testing.assert_array_equal(one, two)


def device(x, client=CLIENT):
    return client.from_host(np.asarray(x), copy=True)


def host(result, client=CLIENT):
    if isinstance(result, tuple):
        return tuple(client.to_host(part) for part in result)
    return client.to_host(result)


def square(shape):
    return (*shape, shape[-1])


# -------------------------------------------------------------------- each method
def check_cholesky(client, a):
    # Only the lower triangle is read.
    given = np.where(np.tri(a.shape[-1], dtype=bool), a, np.nan).astype(a.dtype)
    factor = host(client.cholesky(device(given, client)), client)
    assert factor.dtype == a.dtype
    assert not np.triu(factor, 1).any()
    diagonal = np.diagonal(factor, 0, -2, -1)
    assert (diagonal.real > 0).all()
    assert not diagonal.imag.any()
    product = wide(factor) @ adjoint(wide(factor))
    assert_small(product - wide(a), norm(wide(factor)) ** 2, a.shape[-1], a.dtype)


def check_solve(client, a, columns=3):
    b = random((*a.shape[:-1], columns), a.dtype, seed=7)
    x = host(client.solve(device(a, client), device(b, client)), client)
    n, scale = a.shape[-1], norm(wide(a))
    assert_small(wide(a) @ wide(x) - wide(b), scale * norm(wide(x)), n, a.dtype)
    inverse = host(client.inv(device(a, client)), client)
    assert_small(wide(a) @ wide(inverse) - np.eye(n), scale * norm(wide(inverse)), n, a.dtype)


def check_determinants(client, a):
    double = np.complex128 if a.dtype.kind == "c" else np.float64
    sign, logarithm = np.linalg.slogdet(a.astype(double))
    condition = np.linalg.cond(a.astype(double)) * a.shape[-1] * 4 * eps(a.dtype)
    got_sign, got_log = host(client.slogdet(device(a, client)), client)
    assert got_sign.dtype == a.dtype
    assert got_log.dtype == dt.real_of(a.dtype)
    assert (np.abs(got_sign - sign) <= condition).all()
    assert (np.abs(got_log - logarithm) <= condition + 4 * eps(a.dtype) * np.abs(logarithm)).all()
    if (np.abs(logarithm) < 80).all():
        exact = sign * np.exp(logarithm)
        det = host(client.det(device(a, client)), client)
        assert det.dtype == a.dtype
        assert (np.abs(det - exact) <= (condition + 100 * np.finfo(double).eps) * abs(exact)).all()


def check_qr(client, a, modes=(False, True)):
    rows, columns = a.shape[-2:]
    for complete in modes:
        q, r = host(client.qr(device(a, client), complete), client)
        kept = rows if complete else min(rows, columns)
        assert q.shape == (*a.shape[:-1], kept)
        assert r.shape == (*a.shape[:-2], kept, columns)
        assert not np.tril(r, -1).any()
        assert_orthonormal(q, a.dtype)
        assert_small(wide(q) @ wide(r) - wide(a), norm(wide(a)), max(rows, columns), a.dtype)


def check_eigh(client, a, factor=4.0):
    n = a.shape[-1]
    given = np.where(np.tri(n, dtype=bool), a, np.nan).astype(a.dtype)
    values, vectors = host(client.eigh(device(given, client)), client)
    assert values.dtype == dt.real_of(a.dtype)
    assert (np.diff(values) >= 0).all()
    assert_orthonormal(vectors, a.dtype, factor)
    residual = wide(a) @ wide(vectors) - wide(vectors) * values[..., None, :]
    assert_small(residual, norm(wide(a)), n, a.dtype, factor)
    double = np.complex128 if a.dtype.kind == "c" else np.float64
    exact = np.linalg.eigvalsh(a.astype(double))
    assert_small((values - exact)[..., None], norm(wide(a)), n, a.dtype, factor)
    np.testing.assert_array_equal(host(client.eigvalsh(device(given, client)), client), values)


def check_svd(client, a, factor=4.0):
    rows, columns = a.shape[-2:]
    kept, longest = min(rows, columns), max(rows, columns)
    for full in (False, True):
        u, s, vh = host(client.svd(device(a, client), full), client)
        assert u.shape == (*a.shape[:-1], rows if full else kept)
        assert vh.shape == (*a.shape[:-2], columns if full else kept, columns)
        assert s.dtype == dt.real_of(a.dtype)
        assert (s >= 0).all()
        assert (np.diff(s) <= 0).all()
        assert_orthonormal(u, a.dtype, factor)
        assert_orthonormal(adjoint(vh), a.dtype, factor)
        product = (wide(u)[..., :kept] * s[..., None, :]) @ wide(vh)[..., :kept, :]
        assert_small(product - wide(a), norm(wide(a)), longest, a.dtype, factor)
    double = np.complex128 if a.dtype.kind == "c" else np.float64
    exact = np.linalg.svd(a.astype(double), compute_uv=False)
    assert_small((s - exact)[..., None], norm(wide(a)), longest, a.dtype, factor)
    np.testing.assert_array_equal(host(client.svdvals(device(a, client)), client), s)
