"""Moving elements on WebGPU: writing into views, joining, copying, other dtypes' views, and other libraries."""

from __future__ import annotations

import numpy as np
import pytest

import numr.array_api as xp
from numr import dtypes as dt
from numr.array_api.creation_functions import CreationFunctions
from numr.errors import ShapeError
from numr.layout import Layout
from numr.runtime.wgpu import devices
from numr.tensor.core import wrap
from tests.runtime.wgpu_support import require_adapter, variant

pytestmark = pytest.mark.wgpu
require_adapter()

DTYPES = dt.ALL_DTYPES


def make_client(**options):
    rt = variant(**options)
    return rt.Client(rt.default_device())


@pytest.fixture(scope="module")
def client():
    return make_client()


@pytest.fixture(params=DTYPES, ids=str)
def dtype(request, client):
    if request.param not in client.dtypes:
        pytest.skip(f"{client.device} has no {request.param}")
    return request.param


def bits(dtype, count, seed=0):
    """Elements of arbitrary bits: NaN with payloads, subnormal numbers, both zeros."""
    rng = np.random.default_rng(seed)
    if dtype.kind == "b":
        return rng.integers(0, 2, count).astype(bool)
    return rng.integers(0, 256, count * dtype.itemsize, np.uint8).view(dtype)


def same_bits(got, expected):
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    np.testing.assert_array_equal(
        np.ascontiguousarray(got).reshape(-1).view(np.uint8),
        np.ascontiguousarray(expected).reshape(-1).view(np.uint8),
    )


class Both:
    """An array on the host and the same on the device, with the same views of both."""

    def __init__(self, client, host, native=None):
        self.client = client
        self.host = host
        self.native = client.from_host(host, copy=True) if native is None else native

    def view(self, make):
        """``make`` of both; the host's strides and offset are those of the device's view."""
        host = make(self.host)
        base = self.host.__array_interface__["data"][0]
        size = host.itemsize
        offset = self.native.offset + (host.__array_interface__["data"][0] - base) // size
        layout = Layout(host.shape, tuple(step // size for step in host.strides), offset)
        return Both(
            self.client, host, self.client.wrap(self.native.storage, layout, self.native.dtype)
        )

    def check(self):
        same_bits(self.client.to_host(self.native), self.host)


TARGETS = {
    "all": lambda x: x,
    "odd offset": lambda x: x.reshape(-1)[1:],
    "inner part": lambda x: x.reshape(-1)[5:333],
    "one element": lambda x: x.reshape(-1)[7:8],
    "no axes": lambda x: x[1, 2, 3, ...],
    "steps": lambda x: x[::2, 1::3, ::4],
    "reversed": lambda x: x[::-1, ::-1, ::-1],
    "columns": lambda x: x[:, :, 3:6],
    "whole columns": lambda x: x[:, :, 4:8],
    "permuted": lambda x: x.transpose(2, 0, 1),
    "axes of length 1": lambda x: x[2:3, :, 1:2],
    "empty": lambda x: x[:, :0],
}


@pytest.mark.parametrize("name", TARGETS)
def test_assignment_writes_the_view_and_nothing_beside_it(client, dtype, name):
    array = Both(client, bits(dtype, 5 * 7 * 12, 1).reshape(5, 7, 12))
    target = array.view(TARGETS[name])
    source = Both(client, bits(dtype, target.host.size, 2).reshape(target.host.shape))
    client.assign(target.native, source.native)
    target.host[...] = source.host
    array.check()


@pytest.mark.parametrize("name", ["odd offset", "steps", "columns", "permuted", "reversed"])
def test_sources_of_all_layouts(client, dtype, name):
    array = Both(client, bits(dtype, 50 * 12, 3).reshape(50, 12))
    source = Both(client, bits(dtype, 5 * 7 * 12, 4).reshape(5, 7, 12)).view(TARGETS[name])
    target = array.view(lambda x: x.reshape(-1)[3 : 3 + source.host.size])
    shaped = target.view(lambda x: x.reshape(source.host.shape))
    client.assign(shaped.native, source.native)
    target.host[...] = source.host.reshape(-1)
    array.check()
    last = Both(client, bits(dtype, 12, 5))
    client.assign(array.native, last.native)  # broadcast
    array.host[...] = last.host
    array.check()


def test_overlap_is_as_if_the_source_had_been_copied(client, dtype):
    for to, of in (
        (lambda x: x[1:], lambda x: x[:-1]),
        (lambda x: x[:-3], lambda x: x[3:]),
        (lambda x: x[:], lambda x: x[::-1]),
        (lambda x: x[::2], lambda x: x[:32]),
        (lambda x: x[32:], lambda x: x[:32]),
        (lambda x: x[5:21].reshape(4, 4), lambda x: x[5:21].reshape(4, 4).T),
        (lambda x: x, lambda x: x),
    ):
        array = Both(client, bits(dtype, 64, 6))
        target, source = array.view(to), array.view(of)
        client.assign(target.native, source.native)
        target.host[...] = source.host.copy()
        array.check()


def test_the_last_of_several_writes_to_an_element_wins(client, dtype):
    array = Both(client, bits(dtype, 6, 7))
    source = Both(client, bits(dtype, 4 * 6 * 3, 8).reshape(4, 6, 3))
    layout = Layout((4, 6, 3), (0, 1, 0))
    target = client.wrap(array.native.storage, layout, dtype)
    client.assign(target, source.native)
    array.host[...] = source.host[-1, :, -1]
    array.check()


def test_assignment_converts(client):
    array = Both(client, np.arange(24, dtype=np.int16).reshape(4, 6))
    for make in (lambda x: x, lambda x: x[::2, 1:], lambda x: x.T):
        for other in (dt.uint8, dt.float32, dt.bool_, dt.int32):
            target = array.view(make)
            source = Both(client, (np.arange(target.host.size) % 7).astype(other))
            shaped = source.view(lambda x, shape=target.host.shape: x.reshape(shape))
            client.assign(target.native, shaped.native)
            target.host[...] = shaped.host
            array.check()
    wide = Both(client, np.zeros((3, 4), np.float32))
    target = wide.view(lambda x: x[:, 1::2])
    source = Both(client, np.arange(6, dtype=np.uint8).reshape(3, 2))
    client.assign(target.native, source.native)
    target.host[...] = source.host
    wide.check()


def test_assignment_through_other_dtypes_of_the_same_memory(client):
    array = Both(client, bits(dt.uint32, 16, 9))
    bytes_of = client.bitcast(array.native, dt.uint8)
    flags = Both(client, bits(dt.uint8, 64, 10))
    client.assign(bytes_of, flags.native)
    array.host.view(np.uint8)[...] = flags.host
    array.check()
    # The source is the target's own memory, read as another dtype.
    halves = client.bitcast(array.native, dt.uint16)
    client.assign(array.native, client.slice(halves, _slice(16)))
    array.host[...] = array.host.view(np.uint16)[:16].copy()
    array.check()


def _slice(stop):
    from numr.layout import SlicePart

    return (SlicePart(0, 1, stop),)


def test_views_that_one_binding_cannot_hold(dtype):
    client = make_client(limits={"max-storage-buffer-binding-size": 4096})
    if dtype not in client.dtypes:
        pytest.skip("the adapter has no such dtype")
    array = Both(client, bits(dtype, 6000, 11))
    for make in (lambda x: x[1:], lambda x: x[::-2], lambda x: x.reshape(60, 100)[:, 3:60].T):
        target = array.view(make)
        source = Both(client, bits(dtype, target.host.size, 12).reshape(target.host.shape))
        client.assign(target.native, source.native)
        target.host[...] = source.host
        array.check()


def test_more_workgroups_than_a_row():
    client = make_client(limits={"max-compute-workgroups-per-dimension": 4})
    for dtype in (dt.uint8, dt.float32):
        array = Both(client, bits(dtype, 4000, 13))
        target = array.view(lambda x: x[1::2])
        source = Both(client, bits(dtype, 2000, 14))
        client.assign(target.native, source.native)
        target.host[...] = source.host
        array.check()


# --------------------------------------------------------------------- joining
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_concat(client, dtype, axis):
    whole = bits(dtype, 3 * 5 * 7, 15).reshape(3, 5, 7)
    parts = [np.take(whole, range(n), axis) for n in (1, 2, 0, 3)]
    parts[1] = parts[1][::-1]  # a view on the host as on the device
    native = [Both(client, np.ascontiguousarray(part)).native for part in parts]
    native[1] = client.wrap(native[1].storage, native[1].layout.flip((0,)), dtype)
    parts[1] = parts[1][::-1]
    same_bits(client.to_host(client.concat(native, axis)), np.concatenate(parts, axis))


def test_concat_of_broadcast_and_empty_arrays(client, dtype):
    one = client.from_host(bits(dtype, 1, 16), copy=True)
    repeated = client.broadcast(one, (4, 3))
    none = client.empty((0, 3), dtype)
    same_bits(
        client.to_host(client.concat([repeated, none, repeated], 0)),
        np.broadcast_to(bits(dtype, 1, 16), (8, 3)),
    )
    assert client.concat([none, none], 0).shape == (0, 3)


# --------------------------------------------------------------------- reading
@pytest.mark.parametrize("name", TARGETS)
def test_copies_and_reads_of_views(client, dtype, name):
    view = Both(client, bits(dtype, 5 * 7 * 12, 17).reshape(5, 7, 12)).view(TARGETS[name])
    view.check()
    copied = client.copy(view.native)
    assert copied.layout == Layout.contiguous(view.host.shape)
    same_bits(client.to_host(copied), view.host)


def test_reading_part_of_an_array_moves_that_part_alone(client):
    array = client.from_host(np.arange(1_000_000, dtype=np.float32), copy=True)
    staging = client.context.opened.staging
    sizes = []
    take = staging._take
    staging._take = lambda size: sizes.append(size) or take(size)
    try:
        row = client.wrap(array.storage, Layout((3,), (1,), 999_990), array.dtype)
        assert client.to_host(row).tolist() == [999990, 999991, 999992]
        assert repr(wrap(array, client)).startswith("Tensor([0.00000e+00, 1.00000e+00,")
    finally:
        del staging._take
    assert max(sizes) <= 64


# ----------------------------------------------------------------- other dtypes
@pytest.mark.parametrize("new", DTYPES, ids=str)
def test_views_as_another_dtype(client, dtype, new):
    if new not in client.dtypes:
        pytest.skip("the adapter has no such dtype")
    host = np.random.default_rng(18).integers(0, 2, 4 * 6 * 16, np.uint8)
    array = Both(client, host.view(dtype).reshape(4, 6, -1))
    for make in (lambda x: x, lambda x: x[1:, ::2], lambda x: x[::-1]):
        view = array.view(make)
        got = client.bitcast(view.native, new)
        assert got.storage is array.native.storage
        same_bits(client.to_host(got), view.host.view(new))


def test_views_as_another_dtype_that_do_not_exist(client):
    array = Both(client, np.arange(24, dtype=np.int16).reshape(4, 6))
    for make, dtype in (
        (lambda x: x[:, ::2], dt.int8),  # gaps
        (lambda x: x.T, dt.int32),
        (lambda x: x[:, 1:5], dt.int32),  # starts within an element
        (lambda x: x[:, :3], dt.int32),  # ends within one
        (lambda x: x[1, 1, ...], dt.int8),  # no axis to grow
    ):
        with pytest.raises(ShapeError, match=f"view: .*int16 cannot be read as {dtype}"):
            client.bitcast(array.view(make).native, dtype)


# ---------------------------------------------------------------- other libraries
@pytest.fixture(scope="module")
def make():
    return CreationFunctions(variant())


def test_dlpack_goes_through_host_memory(make):
    x = make.asarray([[1.5, 2.5], [3.5, 4.5]])[:, ::-1]
    kind = {"Vulkan": 7, "Metal": 8}.get(devices.adapters()[0].interface, 15)
    assert x.__dlpack_device__() == (kind, 0)
    host = np.from_dlpack(x, device="cpu")
    assert host.tolist() == [[2.5, 1.5], [4.5, 3.5]]
    host[0, 0] = 7
    assert x.tolist() == [[2.5, 1.5], [4.5, 3.5]]
    np.from_dlpack(x, device="cpu", copy=True)
    for options, words in (
        ({}, r"has no address.*none was asked for.*dl_device=\(1, 0\)"),
        ({"dl_device": (kind, 0)}, rf"dl_device=\({kind}, 0\) was"),
        ({"dl_device": (2, 0)}, r"dl_device=\(2, 0\) was"),
        ({"dl_device": (1, 0), "copy": False}, "copy=False"),
        ({"dl_device": (1, 0), "stream": 1}, "stream=1"),
    ):
        with pytest.raises(BufferError, match=words):
            x.__dlpack__(**options)


def test_arrays_of_other_libraries_are_copied(make):
    host = np.arange(6, dtype=np.int16).reshape(2, 3)[:, ::-1]
    x = make.from_dlpack(host)
    host[0, 0] = 99
    assert x.tolist() == [[2, 1, 0], [5, 4, 3]]
    assert make.from_dlpack(host, copy=True).tolist() == host.tolist()
    with pytest.raises(BufferError, match=r"from_dlpack: .*\(1, 0\).*copy=False"):
        make.from_dlpack(host, copy=False)
    readonly = np.arange(3.0, dtype=np.float32)
    readonly.flags.writeable = False
    y = make.from_dlpack(readonly)
    y += 1
    assert y.tolist() == [1, 2, 3]
    swapped = np.arange(3, dtype=np.dtype(">i4"))
    assert make.asarray(swapped).tolist() == [0, 1, 2]


def test_a_producer_elsewhere_is_asked_for_host_memory(make):
    class Elsewhere:
        def __dlpack_device__(self):
            return (2, 0)

        def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
            assert dl_device == (1, 0)
            return np.arange(3, dtype=np.int32).__dlpack__(max_version=max_version)

    assert make.from_dlpack(Elsewhere()).tolist() == [0, 1, 2]


# ------------------------------------------------------------------- on tensors
def test_tensors_are_written_and_read_as_numpy_arrays_are(make):
    host = np.arange(60, dtype=np.int32).reshape(3, 4, 5)
    x = make.asarray(host)
    for key, value in (
        (np.s_[0], 7),
        (np.s_[:, 1], 8),
        (np.s_[..., ::2], np.arange(3, dtype=np.int32)),
        (np.s_[1:, ::-1, 3], 9),
        (np.s_[2, 3, 4], 10),
        (np.s_[:], x[::-1]),
    ):
        host[key] = value.to_numpy() if hasattr(value, "to_numpy") else value
        x[key] = value
        np.testing.assert_array_equal(x.to_numpy(), host)
    x[1:] = x[:-1]
    host[1:] = host[:-1].copy()
    x += x[:1]
    host += host[:1].copy()
    np.testing.assert_array_equal(x.to_numpy(), host)
    assert x[1, 2, 3].item() == host[1, 2, 3]
    assert xp.reshape(x, (12, 5))[11].tolist() == host.reshape(12, 5)[11].tolist()
    assert (
        xp.stack([x[0], x[1]], axis=1).to_numpy().tolist()
        == np.stack([host[0], host[1]], 1).tolist()
    )
    assert xp.roll(x, 3, axis=2).to_numpy().tolist() == np.roll(host, 3, 2).tolist()


def test_a_choice_of_elements_under_a_condition(make):
    x = make.asarray([1.0, -2.0, 3.0])
    assert xp.where(x > 0, x, 0.0).tolist() == [1, 0, 3]
    x[x < 0] = 5.0
    assert x.tolist() == [1, 5, 3]
