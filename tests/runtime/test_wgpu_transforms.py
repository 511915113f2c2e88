"""Fourier transforms on WebGPU: every kind and many lengths against sums in more digits, views, limits of devices."""

from __future__ import annotations

import math

import numpy as np
import pytest

from numr import dtypes as dt
from numr.errors import BackendLimitation
from numr.layout import parse_key, split_key
from numr.runtime.wgpu import transform_tables
from numr.runtime.wgpu.transform_plans import (
    LARGEST_RADIX,
    Resources,
    convolution_length,
    is_smooth,
    passes,
)
from tests.runtime.wgpu_support import kernels_of, require_adapter

require_adapter()
pytestmark = pytest.mark.wgpu

KINDS = ["forward", "backward", "real", "hermitian"]
PRECISIONS = [dt.complex64, dt.complex128]


CLIENTS = {"cpu": kernels_of("cpu"), "gpu": kernels_of("gpu")}


@pytest.fixture(params=CLIENTS)
def client(request):
    return CLIENTS[request.param]


def random(rng, lead, kind, points, dtype):
    """What a transform of a kind over so many points takes."""
    shape = (*lead, points // 2 + 1 if kind == "hermitian" else points)
    real = rng.standard_normal(shape)
    if kind == "real":
        return real.astype(dt.real_of(dtype))
    return (real + 1j * rng.standard_normal(shape)).astype(dtype)


def turns(length):
    """``exp(-2j * pi * k / length)`` in more digits."""
    angles = 8 * np.arctan(np.longdouble(1)) * np.arange(length) / length
    return np.cos(angles) - 1j * np.sin(angles)


def exact(values, kind, points):
    """The transform as it is defined where that is quick, else NumPy's, in more digits."""
    values = values.astype(np.longdouble if kind == "real" else np.clongdouble)
    if kind == "hermitian":
        mirrored = np.conj(values[..., (points - 1) // 2 : 0 : -1])
        values = np.concatenate([values, mirrored], -1)
        values[..., 0] = values[..., 0].real
        if points % 2 == 0:
            values[..., points // 2] = values[..., points // 2].real
    if points > 300:
        result = (
            np.fft.fft(values)
            if kind in ("forward", "real")
            else np.fft.ifft(values, norm="forward")
        )
    else:
        k = np.arange(points)
        factors = turns(points)[np.outer(k, k) % points]
        result = values @ (factors if kind in ("forward", "real") else np.conj(factors))
    if kind == "real":
        return result[..., : points // 2 + 1]
    return result.real if kind == "hermitian" else result


def check(result, values, kind, points):
    """Compare: the error of all elements together is as small as is usual, and the dtype is right."""
    expected = exact(values, kind, points)
    assert result.shape == expected.shape
    assert result.dtype == (
        dt.real_of(values.dtype) if kind == "hermitian" else dt.complex_of(values.dtype)
    )
    eps = np.finfo(values.dtype).eps
    error = np.linalg.norm((result - expected).ravel()) / np.linalg.norm(expected.ravel())
    assert error <= 0.4 * eps * max(math.log2(points), 1)


def transform(client, values, kind, points):
    return client.to_host(client.fft(client.from_host(values, copy=True), kind, points))


@pytest.mark.parametrize("dtype", PRECISIONS, ids=str)
@pytest.mark.parametrize(
    "points", [*range(1, 20), 26, 30, 37, 64, 100, 143, 169, 210, 243, 251, 256]
)
def test_transforms_of_every_kind(client, points, dtype):
    rng = np.random.default_rng(points)
    for kind in KINDS:
        values = random(rng, (3,), kind, points, dtype)
        check(transform(client, values, kind, points), values, kind, points)


@pytest.mark.parametrize("points", [1000, 2048, 4097, 5000, 8192, 10007, 60060])
def test_long_transforms(client, points):
    rng = np.random.default_rng(points)
    for kind, dtype in zip(KINDS, 2 * PRECISIONS, strict=True):
        values = random(rng, (2,), kind, points, dtype)
        check(transform(client, values, kind, points), values, kind, points)


def test_transforms_of_views(client):
    rng = np.random.default_rng(1)
    base = rng.standard_normal((7, 6, 41))
    base = (base + 1j * base[::-1]).astype(dt.complex64)
    device = client.from_host(base, copy=True)
    cases = [
        (device, base),
        (client.permute(device, (2, 1, 0)), base.transpose(2, 1, 0)),
        (client.permute(device, (0, 2, 1)), base.transpose(0, 2, 1)),
        (client.permute(device, (1, 2, 0)), base.transpose(1, 2, 0)),
    ]
    cases += [
        (client.slice(device, slice_parts(key, base.shape)), base[key])
        for key in (np.s_[::-2, 1:5, 39::-1], np.s_[1:6:2, ::3, 3:])
    ]
    wide = (5, 7, 6, 41)
    cases.append((client.broadcast(device, wide), np.broadcast_to(base, wide)))
    for view, values in cases:
        points = values.shape[-1]
        check(client.to_host(client.fft(view, "forward", points)), values, "forward", points)
        points = 2 * points - 1
        check(client.to_host(client.fft(view, "hermitian", points)), values, "hermitian", points)
    real = base.real.copy()
    device = client.from_host(real, copy=True)
    for key in (np.s_[:, :, 1:], np.s_[1:, ::-1, 1:38:3]):
        view, values = client.slice(device, slice_parts(key, real.shape)), real[key]
        points = values.shape[-1]
        check(client.to_host(client.fft(view, "real", points)), values, "real", points)


def slice_parts(key, shape):
    return split_key(parse_key(key, shape, "getitem", lambda _: None)).basic


def test_no_transforms_at_all(client):
    for kind, length in [("forward", 6), ("backward", 6), ("real", 4), ("hermitian", 6)]:
        values = random(np.random.default_rng(0), (3, 0), kind, 6, dt.complex64)
        result = transform(client, values, kind, 6)
        assert result.shape == (3, 0, length)
        assert result.dtype == (dt.float32 if kind == "hermitian" else dt.complex64)


def test_imaginary_parts_that_cancel_are_ignored(client):
    for points in (6, 7, 34, 37):
        values = random(np.random.default_rng(points), (2,), "hermitian", points, dt.complex64)
        plain = values.copy()
        plain.imag[:, 0] = 0
        values.imag[:, 0] = np.nan
        if points % 2 == 0:
            plain.imag[:, -1] = 0
            values.imag[:, -1] = np.inf
        results = [transform(client, x, "hermitian", points) for x in (values, plain)]
        np.testing.assert_array_equal(*results)


def test_many_short_transforms(client):
    rng = np.random.default_rng(2)
    for points in (1, 3, 16, 20, 23):
        values = random(rng, (700,), "forward", points, dt.complex64)
        check(transform(client, values, "forward", points), values, "forward", points)


@pytest.mark.parametrize("kernels", CLIENTS)
@pytest.mark.parametrize(
    "limits",
    [
        {"max-storage-buffer-binding-size": 4096},
        {"max-compute-workgroups-per-dimension": 5},
        {"max-compute-workgroup-storage-size": 16384},
    ],
    ids=lambda limits: next(iter(limits)),
)
def test_devices_with_low_limits(kernels, limits):
    client = kernels_of(kernels, limits=limits)
    rng = np.random.default_rng(3)
    for lead, points in [((3, 5), 60), ((4, 7), 37), ((), 256), ((9,), 101)]:
        for kind in KINDS:
            values = random(rng, lead, kind, points, dt.complex64)
            check(transform(client, values, kind, points), values, kind, points)


def test_a_transform_longer_than_a_binding_is_refused():
    client = kernels_of("gpu", limits={"max-storage-buffer-binding-size": 4096})
    values = np.ones((2, 1024), np.complex64)
    with pytest.raises(BackendLimitation, match=r"fft: .*max-storage-buffer-binding-size of 4096"):
        client.fft(client.from_host(values, copy=True), "forward", 1024)


@pytest.mark.parametrize("kernels", CLIENTS)
def test_devices_without_64_bit_types(kernels):
    client = kernels_of(kernels, without={"shader-f64", "shader-int64", "immediates"})
    rng = np.random.default_rng(4)
    for points in (60, 37, 6000):
        for kind in KINDS:
            values = random(rng, (3,), kind, points, dt.complex64)
            check(transform(client, values, kind, points), values, kind, points)


def test_results_are_the_same_every_time(client):
    values = random(np.random.default_rng(5), (3,), "forward", 6007, dt.complex64)
    first = transform(client, values, "forward", 6007)
    for _ in range(3):
        np.testing.assert_array_equal(transform(client, values, "forward", 6007), first)


def test_tables_are_kept_up_to_a_number_of_bytes(monkeypatch):
    client = kernels_of("cpu")
    made = []
    for name in ("turns", "chirp"):
        original = getattr(transform_tables, name)
        monkeypatch.setattr(
            f"numr.runtime.wgpu.transforms.{name}",
            lambda *a, original=original: made.append(a) or original(*a),
        )
    array = client.from_host(np.ones(500, np.complex64), copy=True)
    client.fft(array, "forward", 500)
    assert made
    before = len(made)
    client.fft(array, "backward", 500)
    assert len(made) == before
    client.allocator.trim()
    used = client.allocator.stats().active_bytes
    monkeypatch.setattr(transform_tables, "KEPT_BYTES", 5000)
    for points in (509, 510, 511, 500):
        client.fft(client.from_host(np.ones(points, np.complex64), copy=True), "forward", points)
    assert client.allocator.stats().active_bytes <= used + 5000
    assert len(made) > before
    before = len(made)
    client.fft(array, "forward", 500)
    assert len(made) == before


@pytest.mark.parametrize("shared", [0, 16384, 32768, 49152])
@pytest.mark.parametrize("itemsize", [8, 16])
def test_plans_cover_their_length_within_the_resources(shared, itemsize):
    for length in [*range(1, 400), 1000, 2048, 4096, 10**6, 2**24, 2**20 * 27, 13**6, 11 * 2**20]:
        if not is_smooth(length):
            assert convolution_length(length) >= 2 * length - 1
            assert is_smooth(convolution_length(length))
            continue
        plan = passes(length, Resources(itemsize, shared))
        assert math.prod(one.size for one in plan) == length
        for one in plan:
            assert max(one.radices) <= LARGEST_RADIX
            assert one.invocations <= 256
            for interleaved in (False, True):
                assert one.places(interleaved) * one.buffers * itemsize <= shared


def test_tables_are_made_anew_when_the_device_is_opened_again():
    client = kernels_of("cpu")
    values = random(np.random.default_rng(6), (2,), "forward", 37, dt.complex64)
    check(transform(client, values, "forward", 37), values, "forward", 37)
    client.allocator.close(forked=False)
    check(transform(client, values, "forward", 37), values, "forward", 37)
