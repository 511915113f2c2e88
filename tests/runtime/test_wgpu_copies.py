"""Copies on WebGPU: odd lengths and offsets, memory larger than one binding, every way to submit."""

from __future__ import annotations

import random

import numpy as np
import pytest

import numr
from numr.errors import BackendLimitation
from numr.runtime import Storage
from numr.runtime.wgpu import copies
from numr.runtime.wgpu.staging import Staging
from numr.runtime.wgpu.submitting import PublicApi
from tests.runtime.wgpu_support import require_adapter, variant

require_adapter()
pytestmark = pytest.mark.wgpu

VARIANTS = {
    "as-it-is": variant(),
    "public-uniform": variant(without=["immediates"], api=PublicApi),
    "small-bindings": variant(limits={"max-storage-buffer-binding-size": 4096}),
    "gpu": variant(kind="DiscreteGPU"),
    "few-workgroups": variant(limits={"max-compute-workgroups-per-dimension": 10}),
}


@pytest.fixture(params=VARIANTS)
def rt(request):
    return VARIANTS[request.param]


@pytest.fixture
def device(rt):
    return rt.default_device()


def content(rt, device, storage):
    host = bytearray(storage.size)
    rt.copy_from_device(storage.handle, host, device)
    return bytes(host)


def filled(rt, device, data):
    storage = Storage.allocate(len(data), device, rt)
    rt.copy_to_device(data, storage.handle, device)
    return storage


@pytest.mark.parametrize("size", [*range(1, 14), 63, 64, 65, 1023, 1025, 3000])
def test_any_number_of_bytes_is_written_and_copied(rt, device, size):
    data = random.Random(size).randbytes(size)
    before = bytes(range(200, 200 + 13)) * 300
    for room in (0, 1, 5):
        target = filled(rt, device, before[: size + room])
        rt.copy_to_device(data, target.handle, device)
        assert content(rt, device, target) == data + before[size : size + room]
        other = filled(rt, device, before[: size + room])
        rt.copy_within_device(target.handle, other.handle, size, device)
        assert content(rt, device, other) == data + before[size : size + room]


def random_view(rng, rank):
    elem_size = rng.choice([1, 2, 3, 4, 6, 8, 12, 16])
    limit = {0: 1, 1: 900, 2: 25, 3: 9}.get(rank, 3)
    shape = tuple(rng.randint(1, limit) for _ in range(rank))
    strides = tuple(rng.randint(-7, 7) for _ in range(rank))
    low = sum(min(s, 0) * (n - 1) for n, s in zip(shape, strides, strict=True))
    high = sum(max(s, 0) * (n - 1) for n, s in zip(shape, strides, strict=True))
    offset = -low * elem_size + rng.choice([0, 0, 1, 2, 3, 4, 8])
    data = rng.randbytes(offset + (high + 1) * elem_size + rng.randint(0, 5))
    return data, shape, strides, offset, elem_size


@pytest.mark.parametrize("rank", range(8))
def test_views_of_any_rank_are_gathered(rt, device, rank):
    rng = random.Random(rank)
    for _ in range(8):
        data, shape, strides, offset, elem_size = random_view(rng, rank)
        steps = tuple(s * elem_size for s in strides)
        expected = np.ndarray(shape, f"V{elem_size}", data, offset, steps).tobytes()
        source = filled(rt, device, data)
        target = filled(rt, device, b"\xee" * (len(expected) + 3))
        arguments = (shape, strides, elem_size, device)
        rt.copy_strided(source.handle, offset, target.handle, *arguments)
        assert content(rt, device, target) == expected + b"\xee" * 3, arguments


TURNED = [
    # shape of the source, the order of its axes, steps along them
    ((70, 130), (1, 0), (1, 1)),
    ((64, 64), (1, 0), (1, 1)),
    ((8, 200), (1, 0), (1, 1)),
    ((133, 67), (1, 0), (1, 1)),
    ((132, 70), (1, 0), (-1, 1)),
    ((132, 70), (1, 0), (1, -1)),
    ((200, 90), (1, 0), (2, 3)),
    ((3, 68, 36), (0, 2, 1), (1, 1, 1)),
    ((3, 68, 36), (2, 0, 1), (1, 1, 1)),
    ((20, 3, 40), (2, 1, 0), (1, 1, 1)),
    ((5, 20, 3, 40), (3, 2, 0, 1), (1, -1, 1, 1)),
    ((12, 10, 11, 16), (3, 1, 2, 0), (1, 1, 1, 1)),
]


GPUS = {
    "plain": VARIANTS["gpu"],
    "few-workgroups": variant(
        kind="DiscreteGPU", limits={"max-compute-workgroups-per-dimension": 40}
    ),
    "small-bindings": variant(
        kind="DiscreteGPU", limits={"max-storage-buffer-binding-size": 1 << 17}
    ),
}


@pytest.mark.parametrize("itemsize", [1, 2, 4, 8, 16])
@pytest.mark.parametrize(("shape", "order", "steps"), TURNED)
@pytest.mark.parametrize("gpu", GPUS)
def test_axes_that_change_places_are_copied_by_tiles(
    gpu, itemsize, shape, order, steps, monkeypatch
):
    rt = GPUS[gpu]
    device = rt.default_device()
    by_tiles = []
    turn = copies.turn
    monkeypatch.setattr(copies, "turn", lambda *given: by_tiles.append(turn(*given)) or by_tiles[0])
    rng = np.random.default_rng(0)
    lead = 3
    data = rng.integers(0, 256, (lead + np.prod(shape)) * itemsize, np.uint8).tobytes()
    whole = np.frombuffer(data, f"V{itemsize}")[lead:].reshape(shape)
    view = whole[tuple(slice(None, None, step) for step in steps)].transpose(order)
    source = filled(rt, device, data)
    offset = (
        view.__array_interface__["data"][0]
        - np.frombuffer(data, np.uint8).__array_interface__["data"][0]
    )
    target = filled(rt, device, bytes(view.nbytes + 5))
    strides = tuple(step // itemsize for step in view.strides)
    arguments = (offset, target.handle, view.shape, strides, itemsize)
    rt.copy_strided(source.handle, *arguments, device)
    assert content(rt, device, target) == view.tobytes() + bytes(5)
    fits = len(data) < 1 << 16 or gpu != "small-bindings"
    words = view.shape[-1] * itemsize % 4 == 0
    assert by_tiles == [fits and words] or not fits


@pytest.mark.parametrize("strides", [(0, 3), (0, 0), (3, 0), (0, 1, 9), (9, 0, 1), (1, 0, 9)])
def test_broadcast_views_are_copied_by_gpus(strides):
    rt = VARIANTS["gpu"]
    device = rt.default_device()
    shape = (9, 8, 10)[-len(strides) :]
    data = np.arange(200, dtype=np.int32)
    source = filled(rt, device, data.tobytes())
    target = filled(rt, device, bytes(4 * int(np.prod(shape))))
    rt.copy_strided(source.handle, 8, target.handle, shape, strides, 4, device)
    steps = tuple(4 * step for step in strides)
    expected = np.lib.stride_tricks.as_strided(data[2:], shape, steps)
    assert content(rt, device, target) == expected.tobytes()


def test_views_of_more_axes_than_immediates_hold(rt, device):
    values = np.arange(2**14, dtype=np.uint16)
    view = values.reshape((2,) * 14).transpose(np.random.default_rng(3).permutation(14))
    source = filled(rt, device, values.tobytes())
    target = Storage.allocate(values.nbytes, device, rt)
    strides = tuple(s // 2 for s in view.strides)
    rt.copy_strided(source.handle, 0, target.handle, view.shape, strides, 2, device)
    assert content(rt, device, target) == view.tobytes()


def test_a_part_of_an_allocation_is_gathered_into_its_start(rt, device):
    storage = filled(rt, device, bytes(range(100)))
    rt.copy_strided(storage.handle, 99, storage.handle, (30,), (-2,), 1, device)
    assert content(rt, device, storage) == bytes(range(99, 39, -2)) + bytes(range(30, 100))


def test_a_source_of_more_bindings_than_a_kernel_has_is_refused():
    limits = {"max-storage-buffer-binding-size": 256, "max-storage-buffers-per-shader-stage": 8}
    rt = variant(limits=limits)
    device = rt.default_device()
    source, target = (Storage.allocate(2048, device, rt) for _ in range(2))
    rt.copy_strided(source.handle, 0, target.handle, (224,), (2,), 4, device)
    with pytest.raises(BackendLimitation, match=r"max-storage-buffer-binding-size of 256.*of 8"):
        rt.copy_strided(source.handle, 0, target.handle, (255,), (2,), 4, device)


def test_the_clients_arrays_go_there_and_back(rt, device):
    client = rt.default_client(device)
    for dtype in client.dtypes:
        values = np.arange(24).reshape(2, 3, 4).astype(dtype)
        array = client.from_host(values, copy=True)
        view = client.permute(array, (2, 0, 1))
        assert (client.to_host(array) == values).all()
        assert (client.to_host(view) == values.transpose(2, 0, 1)).all()
        copied = client.copy(view)
        assert copied.layout.is_contiguous
        assert (client.to_host(copied) == values.transpose(2, 0, 1)).all()
        assert client.is_writable(array)
    assert client.to_host(client.empty((0, 3), np.dtype("float32"))).shape == (0, 3)


def test_printing_reads_the_elements_that_are_shown(monkeypatch):
    reads = []
    read = Staging.read

    def noted(staging, buffer, target, first=0):
        reads.append(target.size)
        read(staging, buffer, target, first)

    monkeypatch.setattr(Staging, "read", noted)
    host = np.arange(1_000_000, dtype=np.int32)
    for shape, shown in (((1_000_000,), 7), ((1000, 1000), 7 * 7)):
        x = numr.from_numpy(host.reshape(shape), device="wgpu:0", copy=True)
        reads.clear()
        text = repr(x)
        assert "0," in text
        assert "999999]" in text
        assert sum(reads) == 4 * shown
