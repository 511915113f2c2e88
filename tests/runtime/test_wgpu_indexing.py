"""Gathering and scattering on WebGPU: every dtype, views, indices of every kind, and which write wins."""

from __future__ import annotations

import numpy as np
import pytest

from numr import dtypes as dt
from numr.errors import IndexingError
from numr.layout import Layout
from tests.runtime.wgpu_support import require_adapter, variant

require_adapter()
pytestmark = pytest.mark.wgpu


def client_of(**options):
    rt = variant(**options)
    return rt.Client(rt.default_device())


CLIENTS = {
    "as-it-is": client_of(),
    "few-workgroups": client_of(limits={"max-compute-workgroups-per-dimension": 2}),
    "without-64-bits": client_of(without=["shader-f64", "shader-int64"]),
    "small-bindings": client_of(limits={"max-storage-buffer-binding-size": 1024}),
}
CLIENT = CLIENTS["as-it-is"]
INTEGERS = [dtype for dtype in dt.ALL_DTYPES if dtype.kind in "iu"]

#: Shape of an array, of its indices, and how many axes they name.
CASES = [
    ((10,), (7,), 1),
    ((10,), (), 1),
    ((4, 5), (3, 2), 1),
    ((4, 5), (13,), 2),
    ((3, 4, 8), (5,), 1),
    ((30, 16), (300,), 1),
    ((3, 2, 4, 3), (2, 2), 2),
    ((2, 3, 2, 3, 2, 3), (9,), 6),
    ((1, 4), (1, 6), 2),
]


def elements(dtype, shape, seed=0):
    rng = np.random.default_rng(seed)
    size = int(np.prod(shape))
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    return np.frombuffer(rng.bytes(size * dtype.itemsize), dtype).copy().reshape(shape)


def random_indices(shape, index_shape, named, dtype=np.int32, seed=0):
    rng = np.random.default_rng(seed)
    lows = [0 if np.dtype(dtype).kind == "u" else -n for n in shape]
    return [
        rng.integers(low, n, index_shape).astype(dtype)
        for low, n in zip(lows[:named], shape, strict=False)
    ]


def on_device(client, arrays):
    return [client.from_host(np.asarray(array), copy=True) for array in arrays]


def views(client, array):
    """The array, and the same elements as they lie in other memory: turned round, spread out, reversed."""
    backwards = tuple(range(array.ndim))[::-1]
    yield client.from_host(array, copy=True)
    yield client.permute(client.from_host(array.transpose(backwards).copy(), copy=True), backwards)
    flipped = client.from_host(np.flip(array).copy(), copy=True)
    yield client.wrap(flipped.storage, flipped.layout.flip(), array.dtype)
    spread = np.zeros((*array.shape, 3), array.dtype)
    spread[..., 1] = array
    base = client.from_host(spread, copy=True)
    yield client.wrap(base.storage, Layout(array.shape, base.strides[:-1], offset=1), array.dtype)


def assert_bits(client, got, expected):
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
    assert client.to_host(got).tobytes() == np.ascontiguousarray(expected).tobytes()


def written(array, indices, values):
    """The array after all writes, one by one."""
    result = array.copy()
    rows = values.reshape(-1, *array.shape[len(indices) :])
    for number, place in enumerate(
        zip(*(index.ravel().tolist() for index in indices), strict=True)
    ):
        result[place] = rows[number]
    return result


@pytest.mark.parametrize("dtype", dt.ALL_DTYPES, ids=str)
def test_every_dtype(dtype):
    for shape, index_shape, named in CASES:
        array = elements(dtype, shape)
        indices = random_indices(shape, index_shape, named)
        expected = array[tuple(indices)]
        values = elements(dtype, expected.shape, seed=1)
        after = written(array, indices, values)
        given = on_device(CLIENT, indices)
        for x in views(CLIENT, array):
            got = CLIENT.gather(x, given)
            assert got.layout == Layout.contiguous(expected.shape)
            assert_bits(CLIENT, got, expected)
            around = CLIENT.wrap(x.storage, Layout((x.storage.size // x.itemsize,), (1,)), dtype)
            before = CLIENT.to_host(around)
            CLIENT.scatter(x, given, CLIENT.from_host(values, copy=True))
            assert_bits(CLIENT, x, after)
            # What lies between the elements of a view is as it was.
            changed = np.flatnonzero(before.view(np.uint8) != CLIENT.to_host(around).view(np.uint8))
            own = set(x.layout.element_offsets())
            assert {int(byte) // x.itemsize for byte in changed} <= own


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_indices_of_every_dtype(dtype):
    array = elements(dt.float32, (100, 7))
    x = CLIENT.from_host(array, copy=True)
    indices = random_indices(array.shape, (50,), 2, dtype)
    assert_bits(CLIENT, CLIENT.gather(x, on_device(CLIENT, indices)), array[tuple(indices)])
    # Index arrays need not have the same dtype.
    mixed = [indices[0], indices[1].astype(np.int16)]
    assert_bits(CLIENT, CLIENT.gather(x, on_device(CLIENT, mixed)), array[tuple(indices)])


def test_views_of_indices():
    array = elements(dt.float32, (6, 9))
    x = CLIENT.from_host(array, copy=True)
    first, second = random_indices(array.shape, (4, 5), 2)
    a, b = on_device(CLIENT, [first, second])
    flipped = CLIENT.wrap(a.storage, a.layout.flip(), a.dtype)
    assert_bits(CLIENT, CLIENT.gather(x, [flipped, b]), array[first[::-1, ::-1], second])
    got = CLIENT.gather(x, [CLIENT.permute(a, (1, 0)), CLIENT.permute(b, (1, 0))])
    assert_bits(CLIENT, got, array[first.T, second.T])
    column = CLIENT.wrap(a.storage, Layout((4, 5), (5, 0)), a.dtype)
    got = CLIENT.gather(x, [column, b])
    assert_bits(CLIENT, got, array[first[:, :1], second])
    # An array may be its own index.
    order = np.asarray([2, 0, 1, 1], np.int32)
    own = CLIENT.from_host(order, copy=True)
    assert_bits(CLIENT, CLIENT.gather(own, [own]), order[order])
    CLIENT.scatter(own, [own], own)
    assert_bits(CLIENT, own, written(order, [order], order))


def test_broadcast_array():
    row = elements(dt.int16, (7,))
    x = CLIENT.broadcast(CLIENT.from_host(row, copy=True), (100_000, 100_000, 7))
    places = [np.asarray([0, 99_999, -1], np.int32)] * 2
    got = CLIENT.gather(x, on_device(CLIENT, places))
    assert_bits(CLIENT, got, np.broadcast_to(row, (3, 7)))


@pytest.mark.parametrize("dtype", [dt.int8, dt.float32, dt.complex128], ids=str)
def test_the_last_write_wins(dtype):
    rng = np.random.default_rng(3)
    for places, picks, row in [(1, 1000, ()), (5, 50_000, ()), (40, 900, (3,)), (4, 700, (16,))]:
        array = elements(dtype, (places, *row))
        index = rng.integers(-places, places, picks).astype(np.int32)
        values = elements(dtype, (picks, *row), seed=4)
        x = CLIENT.from_host(array, copy=True)
        CLIENT.scatter(x, on_device(CLIENT, [index]), CLIENT.from_host(values, copy=True))
        assert_bits(CLIENT, x, written(array, [index], values))


def test_values_are_broadcast_and_cast():
    array = elements(dt.int32, (5, 4))
    index = np.asarray([3, 0, 3], np.int32)
    for values in (
        np.int8(-7),
        np.arange(4, dtype=np.int16),
        np.arange(3, dtype=np.uint8)[:, None],
    ):
        x = CLIENT.from_host(array, copy=True)
        CLIENT.scatter(
            x, on_device(CLIENT, [index]), CLIENT.from_host(np.asarray(values), copy=True)
        )
        expected = array.copy()
        expected[index] = values
        assert_bits(CLIENT, x, expected)


@pytest.mark.parametrize("dtype", [dt.uint8, dt.float32], ids=str)
def test_overlap_is_as_if_copied_first(dtype):
    array = elements(dtype, (50,))
    x = CLIENT.from_host(array, copy=True)
    index = np.arange(1, 50, dtype=np.int32)
    values = CLIENT.wrap(x.storage, Layout((49,), (1,)), dtype)
    CLIENT.scatter(x, on_device(CLIENT, [index]), values)
    assert_bits(CLIENT, x, np.concatenate([array[:1], array[:-1]]))


@pytest.mark.parametrize(
    ("dtype", "bad"),
    [
        ("int8", -11),
        ("uint8", 10),
        ("int16", 300),
        ("int32", 10),
        ("int32", -(2**31)),
        ("uint32", 2**32 - 1),
        ("int64", -11),
        ("int64", 2**32),
        ("int64", 2**32 - 1),
        ("int64", -(2**32)),
        ("int64", -(2**63)),
        ("uint64", 2**64 - 1),
        ("uint64", 2**64 - 2**32),
    ],
)
def test_indices_out_of_range(dtype, bad):
    array = elements(dt.float32, (10, 3))
    x = CLIENT.from_host(array, copy=True)
    good = np.zeros(1000, np.int32)
    wrong = np.zeros(1000, dtype)
    wrong[[400, 401, 900]] = bad
    wrong[500] = 9
    values = CLIENT.from_host(np.ones((1000, 3), np.float32), copy=True)
    message = rf"shape \(10, 3\): index {bad} is out of bounds for axis 0 with size 10"
    for _ in range(2):  # what one call reports, the next must not
        with pytest.raises(IndexingError, match=message):
            CLIENT.gather(x, on_device(CLIENT, [wrong]))
        with pytest.raises(IndexingError, match=message):
            CLIENT.scatter(x, on_device(CLIENT, [wrong]), values)
        assert_bits(CLIENT, CLIENT.gather(x, on_device(CLIENT, [good])), array[good])
    with pytest.raises(IndexingError, match="out of bounds for axis 0 with size 3"):
        CLIENT.gather(CLIENT.permute(x, (1, 0)), on_device(CLIENT, [wrong, good]))
    assert_bits(CLIENT, x, array)


def test_the_first_bad_index_is_named():
    x = CLIENT.from_host(np.ones((4, 5), np.float32), copy=True)
    first = np.zeros((600, 2), np.int32)
    second = first.copy()
    second[300, 1], first[301, 0], second[10, 0] = 6, 7, -6
    with pytest.raises(IndexingError, match=r"index -6 .* axis 1 with size 5"):
        CLIENT.gather(x, on_device(CLIENT, [first, second]))
    second[10, 0] = 0
    with pytest.raises(IndexingError, match=r"index 6 .* axis 1 with size 5"):
        CLIENT.gather(x, on_device(CLIENT, [first, second]))


def test_without_elements():
    nothing = CLIENT.from_host(np.zeros((3, 0), np.int32), copy=True)
    for shape in ((5, 2), (0, 2)):
        array = np.ones(shape, np.float32)
        x = CLIENT.from_host(array, copy=True)
        assert CLIENT.gather(x, [nothing]).shape == (3, 0, 2)
        CLIENT.scatter(x, [nothing], CLIENT.from_host(np.zeros((), np.float32), copy=True))
        assert_bits(CLIENT, x, array)
    # There is nothing to read behind an index, and it is checked all the same.
    x = CLIENT.from_host(np.ones((5, 0), np.float32), copy=True)
    good, bad = on_device(CLIENT, [np.asarray([4, -5], np.int32), np.asarray([5, 0], np.int32)])
    value = CLIENT.from_host(np.ones((), np.float32), copy=True)
    assert CLIENT.gather(x, [good]).shape == (2, 0)
    CLIENT.scatter(x, [good], value)
    empty = CLIENT.from_host(np.ones((0, 2), np.float32), copy=True)
    for target in (x, empty):
        with pytest.raises(IndexingError, match="index 5"):
            CLIENT.gather(target, [bad])
        with pytest.raises(IndexingError, match="index 5"):
            CLIENT.scatter(target, [bad], value)


def test_what_reports_bad_indices_is_in_no_figures():
    x = CLIENT.from_host(np.ones(5, np.float32), copy=True)
    good, bad = on_device(CLIENT, [np.asarray([4, 0], np.int32), np.asarray([7, 0], np.int32)])
    before = CLIENT.allocator.stats().active_allocations
    for _ in range(3):
        with pytest.raises(IndexingError, match="index 7"):
            CLIENT.gather(x, [bad])
        CLIENT.gather(x, [good])  # the word is zero again
        assert CLIENT.allocator.stats().active_allocations == before


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("dtype", [dt.uint8, dt.float16, dt.int32, dt.complex64], ids=str)
def test_devices(name, dtype):
    client = CLIENTS[name]
    # As much as the smallest binding holds; the table that scatter keeps for it is larger.
    size = 1024 // dtype.itemsize
    picks = min(size, 256)
    array = elements(dtype, (size,))
    index = np.random.default_rng(5).integers(-size, size, picks).astype(np.int32)
    values = elements(dtype, (picks,), seed=6)
    x = client.from_host(array, copy=True)
    given = on_device(client, [index])
    assert_bits(client, client.gather(x, given), array[index])
    client.scatter(x, given, client.from_host(values, copy=True))
    assert_bits(client, x, written(array, [index], values))
    with pytest.raises(IndexingError, match=f"index {size}"):
        client.gather(x, on_device(client, [np.asarray([size], np.int32)]))
