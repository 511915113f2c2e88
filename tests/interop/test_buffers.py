"""The buffer protocol, which Python 3.12 and later offer to classes written in Python."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import numr
import numr.cpu as cpu

HAS_BUFFERS = sys.version_info >= (3, 12)


def test_without_the_protocol_numpy_finds_its_own_way() -> None:
    x = cpu.asarray([1.0, 2.0])
    if not HAS_BUFFERS:
        with pytest.raises(TypeError, match="bytes-like"):
            memoryview(x)
    for host in (np.asarray(x), np.from_dlpack(x)):
        assert np.shares_memory(host, x.to_numpy())


@pytest.mark.parametrize("dtype", numr.dtypes.ALL_DTYPES, ids=str)
def test_views_share_the_memory_and_its_layout(dtype: np.dtype) -> None:
    host = np.arange(24).reshape(4, 6).astype(dtype)
    for x in (cpu.asarray(host), cpu.asarray(host)[::-1, 1::2], cpu.asarray(host).T):
        # What Python calls is the method, on every version.
        view = x.__buffer__(0)
        assert view.shape == x.shape
        assert view.strides == tuple(stride * dtype.itemsize for stride in x.strides)
        assert view.format == memoryview(host).format
        assert np.shares_memory(np.asarray(view), host)
        if HAS_BUFFERS:
            assert np.shares_memory(np.asarray(memoryview(x)), host)


def test_read_only_tensors_give_read_only_views() -> None:
    host = np.zeros(3)
    assert not cpu.asarray(host).__buffer__(0).readonly
    host.flags.writeable = False
    assert cpu.asarray(host).__buffer__(0).readonly


def test_writing_into_a_view_writes_into_the_tensor() -> None:
    x = cpu.asarray([1.0, 2.0])
    x.__buffer__(0)[0] = 7.0
    assert x.tolist() == [7.0, 2.0]


@pytest.mark.parametrize("name", [name for name in numr.available() if name != "cpu"])
def test_device_memory_has_no_buffer(name: str) -> None:
    x = numr.namespace(name).zeros(3)
    with pytest.raises(BufferError, match=r"to_numpy\(\)"):
        x.__buffer__(0)
    if HAS_BUFFERS:
        with pytest.raises(BufferError, match=r"to_numpy\(\)"):
            memoryview(x)
