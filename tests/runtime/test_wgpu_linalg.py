"""Factorisations, equations and determinants on WebGPU: small matrices in teams, large ones in blocks, special ones."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from numr import config
from numr import dtypes as dt
from numr.errors import BackendLimitation
from numr.layout import Layout
from numr.runtime.storage import DeviceArray
from numr.runtime.wgpu.linalg import eigen, elimination, orthogonal, products, rotations, singular
from tests.runtime.wgpu_support import kernels_of, require_adapter

require_adapter()
pytestmark = pytest.mark.wgpu

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


@for_dtypes
def test_cholesky(dtype):
    for shape in (*SHAPES, LARGE):
        check_cholesky(CLIENT, definite(square(shape), dtype))


@for_dtypes
def test_solve_and_inverse(dtype):
    for shape in (*SHAPES, LARGE):
        check_solve(CLIENT, random(square(shape), dtype))
    for columns in (1, 20):
        check_solve(CLIENT, random((3, 5, 5), dtype), columns)


@for_dtypes
def test_determinants(dtype):
    for shape in (*SHAPES, LARGE):
        check_determinants(CLIENT, random(square(shape), dtype))


@for_dtypes
def test_qr(dtype):
    for shape in [(4, 1, 1), (2, 2, 2), (2, 2, 3, 3), (3, 5, 2), (3, 2, 5), (2, 17, 17), (20, 90)]:
        check_qr(CLIENT, random(shape, dtype))
    for shape in [(64, 64), (65, 65), (90, 70), (130, 130), (300, 3)]:
        check_qr(CLIENT, random(shape, dtype))


@for_dtypes
def test_eigh(dtype):
    large = LARGE if dtype in (dt.float32, dt.complex128) else (1, 70)
    for shape in (*SHAPES, large):
        check_eigh(CLIENT, hermitian(square(shape), dtype))


@for_dtypes
def test_svd(dtype):
    for shape in [(5, 1, 1), (5, 2, 2), (2, 2, 3, 3), (3, 5, 2), (3, 2, 5), (2, 17, 17), (40, 9)]:
        check_svd(CLIENT, random(shape, dtype))
    for shape in [(64, 64), (9, 70), (65, 65)]:
        check_svd(CLIENT, random(shape, dtype))
    if dtype in (dt.float32, dt.complex128):
        a = random((130, 130), dtype)
        values = host(CLIENT.svdvals(device(a)))
        exact = np.linalg.svd(a, compute_uv=False)
        assert_small((values - exact)[:, None], norm(wide(a)), 130, dtype)


@pytest.mark.parametrize("dtype", [dt.float32, dt.complex128], ids=str)
def test_the_kernels_that_gpus_are_given(dtype):
    client = kernels_of("gpu")
    for n in (5, 70):
        check_cholesky(client, definite((n, n), dtype))
        check_solve(client, random((n, n), dtype))
        check_qr(client, random((n, n), dtype))
        check_eigh(client, hermitian((n, n), dtype))
        check_svd(client, random((n, n), dtype))


@pytest.mark.parametrize("dtype", [dt.float32, dt.complex64], ids=str)
def test_devices_without_64_bit_types(dtype):
    client = kernels_of("cpu", without={"shader-f64", "shader-int64", "immediates"})
    for n in (5, 66):
        check_cholesky(client, definite((n, n), dtype))
        check_solve(client, random((n, n), dtype))
        check_determinants(client, random((n, n), dtype))
        check_qr(client, random((n, n), dtype))
        check_eigh(client, hermitian((n, n), dtype))
        check_svd(client, random((n, n), dtype))
    assert client.eigvals(device(random((3, 3), dtype), client)).dtype == dt.complex64


# ------------------------------------------------------------------- shapes and views
def views(a):
    """The same matrices under other layouts: name and array."""
    yield "whole", device(a)
    padded = np.zeros((*a.shape[:-2], a.shape[-2] + 1, a.shape[-1] + 2), a.dtype)
    padded[..., 1:, 1:-1] = a
    whole = device(padded)
    offset = whole.strides[-2] + 1
    yield "part", DeviceArray(whole.storage, Layout(a.shape, whole.strides, offset), a.dtype)
    swapped = device(np.swapaxes(a, -1, -2))
    axes = (*range(a.ndim - 2), a.ndim - 1, a.ndim - 2)
    yield "transposed", CLIENT.permute(swapped, axes)
    turned = device(a[..., ::-1, ::-1])
    strides = (*turned.strides[:-2], -turned.strides[-2], -turned.strides[-1])
    end = math.prod(a.shape[-2:]) - 1
    yield "reversed", DeviceArray(turned.storage, Layout(a.shape, strides, end), a.dtype)


@for_dtypes
def test_views_give_the_same_results(dtype):
    a, b = definite((2, 3, 4, 4), dtype), random((2, 3, 4, 2), dtype)
    calls = {
        "cholesky": CLIENT.cholesky,
        "qr": lambda x: CLIENT.qr(x, True),
        "eigh": CLIENT.eigh,
        "svd": lambda x: CLIENT.svd(x, False),
        "inv": CLIENT.inv,
        "slogdet": CLIENT.slogdet,
        "solve": lambda x: CLIENT.solve(x, device(b)),
    }
    for call in calls.values():
        expected = host(call(device(a)))
        for _, view in views(a):
            got = host(call(view))
            assert_same(got, expected)
    sides = host(CLIENT.solve(device(a), device(b)))
    for _, view in views(b):
        np.testing.assert_array_equal(host(CLIENT.solve(device(a), view)), sides)
    # One matrix under many names is one of a stack.
    repeated = CLIENT.broadcast(device(a[0, 0]), (3, 4, 4))
    inverse = host(CLIENT.inv(repeated))
    np.testing.assert_array_equal(inverse, np.broadcast_to(inverse[0], (3, 4, 4)))


@for_dtypes
def test_stacks_of_equations_broadcast(dtype):
    for left, right in [((4, 4), (3, 4, 2)), ((3, 4, 4), (4, 2)), ((2, 1, 4, 4), (3, 4, 2))]:
        a, b = random(left, dtype), random(right, dtype)
        x = host(CLIENT.solve(device(a), device(b)))
        assert x.shape == (a @ b).shape
        assert_small(wide(a) @ wide(x) - wide(b), norm(wide(a)) * norm(wide(x)), 4, dtype)
    one = random((1, 1, 66, 66), dtype)
    b = random((2, 66, 1), dtype)
    x = host(CLIENT.solve(device(one), device(b)))
    assert x.shape == (1, 2, 66, 1)
    assert_small(wide(one) @ wide(x) - wide(b), norm(wide(one)) * norm(wide(x)), 66, dtype)


@pytest.mark.parametrize(
    "shape", [(0, 0), (0, 3), (3, 0), (2, 0, 3), (0, 3, 2), (0, 2, 2), (2, 0, 0)]
)
def test_empty(shape):
    dtype = dt.complex64
    a = np.empty(shape, dtype)
    x = device(a)

    for flag in (False, True):
        assert_same(
            host(CLIENT.qr(x, flag)), np.linalg.qr(a, mode="complete" if flag else "reduced")
        )
        assert_same(host(CLIENT.svd(x, flag)), np.linalg.svd(a, full_matrices=flag))
    assert_same(host((CLIENT.svdvals(x),)), (np.linalg.svd(a, compute_uv=False),))
    if shape[-1] == shape[-2]:
        assert_same(host((CLIENT.det(x),)), (np.linalg.det(a),))
        assert_same(host(CLIENT.slogdet(x)), np.linalg.slogdet(a))
        assert_same(
            host((CLIENT.inv(x), CLIENT.cholesky(x))), (np.linalg.inv(a), np.linalg.cholesky(a))
        )
        assert_same(host(CLIENT.eigh(x)), np.linalg.eigh(a))
        assert_same(host((CLIENT.eigvalsh(x),)), (np.linalg.eigvalsh(a),))
        assert_same(host((CLIENT.solve(x, x),)), (np.linalg.solve(a, a),))
        assert CLIENT.eig(x)[0].shape == shape[:-1]
    assert host(CLIENT.solve(device(np.eye(3)), device(np.ones((2, 3, 0))))).shape == (2, 3, 0)


# ------------------------------------------------------------------ special matrices
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


# ------------------------------------------------------------------ limits and the host
def everything(client, a):
    """Results of all functions on stacks of definite matrices."""
    x = device(a, client)
    results = [
        client.cholesky(x),
        client.inv(x),
        client.solve(x, x),
        client.det(x),
        *client.slogdet(x),
        *client.qr(x, True),
        *client.eigh(x),
        *client.svd(x, True),
    ]
    return [host(result, client) for result in results]


def test_stacks_that_do_not_fit_into_a_binding_are_cut():
    a = definite((3, 7, 6, 6), dt.float32)
    expected = everything(CLIENT, a)
    small = kernels_of("cpu", limits={"max-storage-buffer-binding-size": 1024})
    assert_same(everything(small, a), expected)
    with pytest.raises(BackendLimitation, match=r"cholesky.*\(1, 30, 30\)"):
        small.cholesky(device(np.eye(30, dtype=np.float32), small))


def test_more_workgroups_than_a_row_has():
    a = definite((70, 3, 3), dt.float32)
    b = definite((1, 66, 66), dt.float32)
    client = kernels_of("cpu", limits={"max-compute-workgroups-per-dimension": 4})
    # Elements of the larger ones need more workgroups than that.
    rows = kernels_of("cpu", limits={"max-compute-workgroups-per-dimension": 10})
    for other, matrices in ((client, a), (rows, b)):
        assert_same(everything(other, matrices), everything(CLIENT, matrices))


def test_work_is_cut_where_an_invocation_may_not_go_on(monkeypatch):
    a = definite((2, 20, 20), dt.float32)
    expected = everything(CLIENT, a)
    for module in (eigen, elimination, singular):
        monkeypatch.setattr(module, "STEPS", 7)
    monkeypatch.setattr(products, "_INNER", 16)
    assert_same(everything(CLIENT, a), expected)
    # Long columns leave less of them to a workgroup, and to the products of their vectors.
    monkeypatch.setattr(orthogonal, "STEPS", 8000)
    for columns in (2, 9):
        check_qr(CLIENT, random((20000, columns), dt.float32), (False,))
    monkeypatch.setattr(orthogonal, "STEPS", 400)
    with pytest.raises(BackendLimitation, match=r"qr.*\(90000, 2\)"):
        CLIENT.qr(device(np.ones((90000, 2), np.float32)), False)


def test_failure_to_converge_is_told(monkeypatch):
    for module in (eigen, singular, rotations):
        monkeypatch.setattr(module, "MOST_SWEEPS", 3)
    for n in (12, 70):
        a = device(hermitian((n, n), dt.float32))
        with pytest.raises(np.linalg.LinAlgError, match="Eigenvalues did not converge"):
            CLIENT.eigh(a)
        with pytest.raises(np.linalg.LinAlgError, match="SVD did not converge"):
            CLIENT.svd(a, False)


@pytest.mark.parametrize(
    ("family", "reads"),
    [
        ("cholesky", 1),
        ("inv", 1),
        ("det", 0),
        ("slogdet", 0),
        ("eigh", 1),
        ("svdvals", 1),
    ],
)
def test_the_host_reads_one_status(monkeypatch, family, reads):
    read = []
    to_host = CLIENT.to_host
    monkeypatch.setattr(CLIENT, "to_host", lambda array: read.append(array) or to_host(array))
    getattr(CLIENT, family)(device(definite((4, 8, 8), dt.float32)))
    assert len(read) == reads
    assert all(array.nbytes < 512 for array in read)


@for_dtypes
def test_eigenvalues_of_general_matrices_are_found_on_the_host(dtype):
    client = kernels_of("cpu")
    a = random((2, 5, 5), dtype)
    x = device(a, client)
    values, vectors = host(client.eig(x), client)
    assert values.dtype == vectors.dtype == dt.complex_of(dtype)
    residual = wide(a) @ wide(vectors) - wide(vectors) * wide(values)[..., None, :]
    assert_small(residual, norm(wide(a)) * norm(wide(vectors)), 5, dtype)
    assert host(client.eigvals(device(np.eye(2, dtype=dtype), client)), client).tolist() == [1, 1]
    assert client.host_operations == {"eig": 1, "eigvals": 1}
    with config.override(allow_host_operations=False):
        for call, name in ((client.eig, "eig"), (client.eigvals, "eigvals")):
            with pytest.raises(BackendLimitation, match=f"{name}:.*host"):
                call(x)
    with pytest.raises(np.linalg.LinAlgError):
        client.eig(device(np.full((2, 2), math.nan, dtype), client))
