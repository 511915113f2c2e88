"""Index keys against NumPy's own indexing, over random layouts."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import numr
from numr.tensor import indexing
from tests.tensor.strategies import arrays, keys

SETTINGS = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(params=numr.available())
def xp(request: pytest.FixtureRequest) -> ModuleType:
    return numr.namespace(request.param)


def supported(xp: ModuleType, host: np.ndarray) -> bool:
    return host.dtype in xp.__array_namespace_info__().dtypes().values()


def on_device(xp: ModuleType, host: np.ndarray) -> Any:
    """The tensor of a host array with its layout, which host memory keeps and other memory rebuilds."""
    return xp.asarray(host)


def tensor_key(xp: ModuleType, key: Any) -> Any:
    if isinstance(key, tuple):
        return tuple(tensor_key(xp, part) for part in key)
    if not isinstance(key, np.ndarray):
        return key
    dtype = key.dtype
    if dtype.kind == "i":
        dtype = xp.__array_namespace_info__().default_dtypes()["indexing"]
    return xp.asarray(key, dtype=dtype)


def legal(host: np.ndarray, key: Any) -> bool:
    try:
        host[key]
    except IndexError:
        return False
    return True


@given(st.data())
@SETTINGS
def test_reading_equals_numpy(xp: ModuleType, data: Any) -> None:
    host = data.draw(arrays())
    key = data.draw(keys(host.shape))
    if not (supported(xp, host) and legal(host, key)):
        return
    expected = host[key]
    x = on_device(xp, host)
    result = x[tensor_key(xp, key)]
    assert result.shape == expected.shape
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result.to_numpy(), expected)
    # The parsed path, which runtimes without an index of their own take for every key.
    parsed = x._like(indexing._read(x._client, x._data, tensor_key(xp, key)))
    np.testing.assert_array_equal(parsed.to_numpy(), expected)


@given(st.data())
@SETTINGS
def test_writing_equals_numpy(xp: ModuleType, data: Any) -> None:
    host = data.draw(arrays())
    key = data.draw(keys(host.shape))
    if not (supported(xp, host) and legal(host, key)):
        return
    expected = np.array(host)
    selected = expected[key].shape
    if data.draw(st.booleans()):
        value: Any = data.draw(st.sampled_from([True, 3, 7]))
        value = bool(value) if host.dtype == bool else value
        expected[key] = value
    else:
        keep = data.draw(st.integers(0, len(selected)))
        shape = tuple(data.draw(st.sampled_from([1, n])) for n in selected[len(selected) - keep :])
        host_value = np.arange(int(np.prod(shape))).reshape(shape).astype(host.dtype)
        # Where an element is written twice, the order of the writes is nobody's promise.
        if any(isinstance(part, np.ndarray) and part.dtype != bool for part in np_parts(key)):
            host_value = np.zeros_like(host_value)
        expected[key] = host_value
        value = xp.asarray(host_value)
    for writer in (lambda x, k, v: x.__setitem__(k, v), write_parsed):
        x = xp.asarray(np.array(host))
        writer(x, tensor_key(xp, key), value)
        np.testing.assert_array_equal(x.to_numpy(), expected)


def write_parsed(x: Any, key: Any, value: Any) -> None:
    indexing._write(x._client, x._data, key, indexing._value(x._client, x.dtype, value))


def np_parts(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


@pytest.mark.parametrize(
    "key",
    [True, False, (True, 0), (0, False), (True, True), (slice(1), False), np.asarray(True)],
    ids=str,
)
def test_masks_without_axes(xp: ModuleType, key: Any) -> None:
    host = np.arange(6, dtype=np.int32).reshape(2, 3)
    expected = host[key]
    x = xp.asarray(host)
    result = x[tensor_key(xp, key)]
    assert result.shape == expected.shape
    np.testing.assert_array_equal(result.to_numpy(), expected)
    target, written = np.array(host), xp.asarray(np.array(host))
    target[key] = 9
    written[tensor_key(xp, key)] = 9
    np.testing.assert_array_equal(written.to_numpy(), target)


@pytest.mark.parametrize(
    "dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
)
@pytest.mark.parametrize("size", [127, 128, 129, 255, 256, 257])
def test_narrow_index_dtypes_do_not_overflow(xp: ModuleType, dtype: str, size: int) -> None:
    if dtype not in xp.__array_namespace_info__().dtypes():
        pytest.skip(f"the device has no {dtype}")
    last = min(size - 1, np.iinfo(dtype).max)
    x = xp.arange(size)
    index = xp.asarray([0, last], dtype=getattr(xp, dtype))
    np.testing.assert_array_equal(x[index].to_numpy(), [0, last])
    x[index] = -1
    assert int(xp.sum(x == -1)) == len({0, last})


def test_host_arrays_lists_and_ranges_as_keys(xp: ModuleType) -> None:
    x = xp.arange(5)
    for key in (np.asarray([1, 3]), [1, 3]):
        np.testing.assert_array_equal(x[key].to_numpy(), [1, 3])
    np.testing.assert_array_equal(x[[]].to_numpy(), [])
    np.testing.assert_array_equal(x[[True, False, True, False, False]].to_numpy(), [0, 2])
    assert int(x[np.int64(2)]) == 2
    assert int(x[xp.asarray(2)]) == 2
    np.testing.assert_array_equal(x[xp.asarray(1) : xp.asarray(3)].to_numpy(), [1, 2])


def test_an_overlapping_assignment_reads_before_it_writes(xp: ModuleType) -> None:
    x = xp.arange(100_000)
    expected = np.arange(100_000)
    x[1:] = x[:-1]
    expected[1:] = expected[:-1].copy()
    np.testing.assert_array_equal(x.to_numpy(), expected)
    x[::-1] = x
    np.testing.assert_array_equal(x.to_numpy(), expected[::-1])


def test_views_share_memory_and_copies_do_not(xp: ModuleType) -> None:
    x = xp.zeros((3, 4))
    x[1][2] = 5.0
    x[:, ::-1][0, 0] = 7.0
    x.mT[1, 2] = 8.0
    expected = np.zeros((3, 4))
    expected[1, 2], expected[0, 3], expected[2, 1] = 5, 7, 8
    np.testing.assert_array_equal(x.to_numpy(), expected)
    picked = x[xp.asarray([0, 1])]
    picked[...] = -1.0
    np.testing.assert_array_equal(x.to_numpy(), expected)


def test_values_of_the_same_kind_are_cast(xp: ModuleType) -> None:
    x = xp.zeros(2, dtype=xp.float32)
    x[...] = xp.asarray([1, 2], dtype=xp.int32)
    np.testing.assert_array_equal(x.to_numpy(), [1, 2])
    y = xp.zeros(2, dtype=xp.int32)
    y[...] = xp.asarray([3, 4], dtype=xp.int8)
    np.testing.assert_array_equal(y.to_numpy(), [3, 4])
    y[0] = [9]
    np.testing.assert_array_equal(y.to_numpy(), [9, 4])


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("index", [0, 2, -3])
def test_take_with_one_integer_takes_the_axis_away(xp: ModuleType, axis: int, index: int) -> None:
    host = np.arange(60, dtype=np.int32).reshape(3, 4, 5)
    x = xp.asarray(host)
    taken = xp.take(x, index, axis=axis)
    np.testing.assert_array_equal(taken.to_numpy(), np.take(host, index, axis=axis), strict=True)
    taken[...] = 0  # a copy, as for indices in a tensor
    np.testing.assert_array_equal(x.to_numpy(), host)
    with pytest.raises(numr.errors.IndexingError, match=r"index 5 .*(bounds|range)"):
        xp.take(x, 5, axis=axis)
    with pytest.raises(TypeError, match="take"):
        xp.take(x, True, axis=axis)
