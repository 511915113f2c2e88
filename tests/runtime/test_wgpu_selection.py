"""nonzero and compress on WebGPU, with the chunks of software adapters and with those of GPUs."""

from __future__ import annotations

import numpy as np
import pytest

from numr.layout import Layout
from numr.runtime.wgpu import WgpuRuntime
from numr.runtime.wgpu.selection import Selection
from tests.runtime.toy_runtime import refuse
from tests.runtime.wgpu_support import require_adapter, variant

require_adapter()
pytestmark = pytest.mark.wgpu

FORMS = ("software", "gpu")


def client_of(runtime=WgpuRuntime, form="software"):
    """A client that divides masks as for a kind of adapter, whatever the adapter is."""
    names = {name: refuse(name) for name in Selection.__abstractmethods__}
    client = type("C", (Selection,), {"runtime": runtime, **names})(runtime.default_device())
    client.context.is_cpu = form == "software"
    return client


CLIENTS = {form: client_of(form=form) for form in FORMS}
DTYPES = CLIENTS["software"].dtypes


@pytest.fixture(params=FORMS)
def client(request):
    return CLIENTS[request.param]


def assert_nonzero(client, array, host):
    got = client.nonzero(array)
    expected = np.nonzero(host)
    assert len(got) == len(expected)
    for indices, reference in zip(got, expected, strict=True):
        assert indices.dtype == client.defaults.indexing
        assert indices.layout.is_contiguous
        np.testing.assert_array_equal(client.to_host(indices), reference)


def assert_compressed(client, array, host, mask):
    got = client.compress(array, client.from_host(mask, copy=True))
    assert got.dtype == host.dtype
    assert got.layout.is_contiguous
    # Bits are compared: elements are moved, not computed with.
    result, expected = client.to_host(got), host[mask]
    assert result.shape == expected.shape
    assert result.tobytes() == expected.tobytes()


def random_bits(shape, dtype, seed=0):
    """Elements with any bits, NaN among them; booleans are 0 and 1."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    count = int(np.prod(shape)) * dtype.itemsize
    return np.frombuffer(rng.bytes(count), dtype).reshape(shape)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_elements_of_every_dtype(client, dtype):
    host = np.random.default_rng(0).integers(-1, 2, (37, 9)).astype(dtype)
    assert_nonzero(client, client.from_host(host, copy=True), host)
    bits = random_bits((37, 9), dtype)
    array = client.from_host(bits, copy=True)
    for axes in (1, 2):
        mask = np.random.default_rng(axes).random(bits.shape[:axes]) < 0.4
        assert_compressed(client, array, bits, mask)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 1.0])
def test_masks_of_any_length(client, share):
    for size in (*range(1, 35), 255, 4097, 70001):
        mask = np.random.default_rng(size).random(size) < share
        mask[-1] |= share > 0
        assert_nonzero(client, client.from_host(mask, copy=True), mask)
        host = np.arange(size, dtype=np.int16)
        assert_compressed(client, client.from_host(host, copy=True), host, mask)


def test_bytes_behind_the_end_of_a_mask_are_not_counted(client):
    ones = client.from_host(np.ones(4096, bool), copy=True)
    for size in (1, 3, 4, 15, 17, 1000):
        part = client.wrap(ones.storage, Layout((size,), (1,)), ones.dtype)
        assert client.nonzero(part)[0].size == size


def test_what_is_not_zero(client):
    for dtype in ("float16", "float32", "float64"):
        tiny = float(np.finfo(dtype).smallest_subnormal)
        host = np.array([0.0, -0.0, tiny, -tiny, np.nan, np.inf, -1, 0], dtype)
        assert_nonzero(client, client.from_host(host, copy=True), host)
        pairs = np.stack([host, host[::-1]], 1).astype("f4").view("c8")[:, 0]
        assert_nonzero(client, client.from_host(pairs, copy=True), pairs)
    # Any byte but 0 is true.
    odd = client.from_host(np.array([0, 1, 2, 128, 255, 0], np.uint8), copy=True)
    array = client.wrap(odd.storage, odd.layout, np.dtype(bool))
    assert client.to_host(client.nonzero(array)[0]).tolist() == [1, 2, 3, 4]


def views(client, dtype):
    base = np.random.default_rng(2).integers(0, 3, (6, 7, 8)).astype(dtype)
    whole = client.from_host(base, copy=True)

    def view(*layout):
        return client.wrap(whole.storage, Layout(*layout), whole.dtype)

    yield base[::-1, :, ::-2], view((6, 7, 4), (-56, 8, -2), 5 * 56 + 7)
    yield base.transpose(2, 0, 1), client.permute(whole, (2, 0, 1))
    yield base[1:, 3, 1:], view((5, 7), (56, 1), 56 + 24 + 1)
    yield base.reshape(-1)[5:], view((331,), (1,), 5)
    yield base.reshape(-1)[16:], view((320,), (1,), 16)
    yield np.broadcast_to(base[2, 3], (9, 5, 8)), view((9, 5, 8), (0, 0, 1), 2 * 56 + 24)
    yield base[0, 0, 0], view((), ())


@pytest.mark.parametrize("dtype", ["bool", "uint8", "float32", "complex128"])
def test_views_of_any_layout(client, dtype):
    for host, array in views(client, dtype):
        if host.ndim:
            assert_nonzero(client, array, host)
        for axes in range(host.ndim + 1):
            mask = np.asarray(np.random.default_rng(axes).random(host.shape[:axes]) < 0.5)
            assert_compressed(client, array, host, mask)


def test_masks_that_are_views(client):
    host = np.arange(24.0).reshape(2, 3, 4)
    array = client.from_host(host, copy=True)
    for mask, view in views(client, "bool"):
        if mask.ndim == 3:
            array = client.from_host(np.arange(mask.size).reshape(mask.shape), copy=True)
            got = client.to_host(client.compress(array, view))
            np.testing.assert_array_equal(got, np.flatnonzero(mask))


def test_nothing_to_select(client):
    empty = client.empty((0, 3), np.dtype("float32"))
    assert [x.shape for x in client.nonzero(empty)] == [(0,), (0,)]
    mask = client.from_host(np.ones((4,), bool), copy=True)
    for shape in ((4, 0), (4, 0, 2)):
        got = client.compress(client.empty(shape, np.dtype("int8")), mask)
        assert got.shape == shape
    none = client.from_host(np.zeros((4,), bool), copy=True)
    got = client.compress(client.from_host(np.ones((4, 3)), copy=True), none)
    assert got.shape == (0, 3)
    for flag in (False, True):
        scalar = client.from_host(np.array(flag), copy=True)
        host = np.arange(6).reshape(2, 3)
        got = client.to_host(client.compress(client.from_host(host, copy=True), scalar))
        np.testing.assert_array_equal(got, host[np.array(flag)])


def test_one_read_of_the_host_for_each_call(client, monkeypatch):
    reads = []
    read = client.runtime.copy_from_device

    def counting(src, dst, device):
        reads.append(memoryview(dst).nbytes)
        read(src, dst, device)

    monkeypatch.setattr(client.runtime, "copy_from_device", counting)
    host = np.arange(1000) % 3 == 0
    array = client.from_host(host, copy=True)
    client.nonzero(array)
    client.compress(array, array)
    assert reads == [4, 4]


def test_chunks_of_more_booleans_than_an_invocation_has_turns_of_its_loops():
    client = CLIENTS["software"]
    # A row that is repeated, as a mask of 256 chunks of 78125 booleans.
    row = np.zeros(200_000, bool)
    row[::7919] = True
    array = client.broadcast(client.from_host(row, copy=True), (100, len(row)))
    got = [client.to_host(indices) for indices in client.nonzero(array)]
    expected = np.nonzero(np.broadcast_to(row, (100, len(row))))
    assert all((a == b).all() for a, b in zip(got, expected, strict=True))


@pytest.mark.parametrize("form", FORMS)
def test_arrays_larger_than_a_binding(form):
    client = client_of(variant(limits={"max-storage-buffer-binding-size": 4096}), form)
    rng = np.random.default_rng(3)
    mask = rng.random(9001) < 0.7
    assert_nonzero(client, client.from_host(mask, copy=True), mask)
    for dtype in ("int8", "float16", "float32", "complex64"):
        host = random_bits((9001,) if np.dtype(dtype).itemsize < 4 else (1501,), dtype)
        assert_compressed(client, client.from_host(host, copy=True), host, mask[: host.size])
    host = rng.integers(0, 2, (1100, 2)).astype("f4")
    assert_nonzero(client, client.from_host(host, copy=True), host)


def test_more_workgroups_than_a_row_of_them():
    client = client_of(variant(limits={"max-compute-workgroups-per-dimension": 30}), "gpu")
    mask = np.random.default_rng(4).random((300, 999)) < 0.3
    assert_nonzero(client, client.from_host(mask, copy=True), mask)
    host = random_bits(mask.shape, "int16")
    assert_compressed(client, client.from_host(host, copy=True), host, mask)


@pytest.mark.parametrize("form", FORMS)
def test_a_device_without_types_of_64_bits(form):
    client = client_of(variant(without={"shader-f64", "shader-int64"}), form)
    for dtype in client.dtypes:
        host = np.random.default_rng(0).integers(-1, 2, (37, 9)).astype(dtype)
        array = client.from_host(host, copy=True)
        assert_nonzero(client, array, host)
        assert_compressed(client, array, host, host != 0)
