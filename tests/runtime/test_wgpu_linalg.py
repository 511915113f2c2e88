"""Factorisations, equations and determinants on WebGPU: every method, views, limits of the device, and the host."""

from __future__ import annotations

import math

import numpy as np
import pytest

from numr import config
from numr import dtypes as dt
from numr.errors import BackendLimitation
from numr.layout import Layout
from numr.runtime.storage import DeviceArray
from numr.runtime.wgpu.linalg import eigen, elimination, orthogonal, products, rotations, singular
from tests.runtime.wgpu_matrices import (
    CLIENT,
    LARGE,
    SHAPES,
    assert_same,
    assert_small,
    check_cholesky,
    check_determinants,
    check_eigh,
    check_qr,
    check_solve,
    check_svd,
    definite,
    device,
    for_dtypes,
    hermitian,
    host,
    norm,
    random,
    square,
    wide,
)
from tests.runtime.wgpu_support import kernels_of

pytestmark = pytest.mark.wgpu


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
