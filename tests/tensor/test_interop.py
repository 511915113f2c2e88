"""Exchange with Python and other libraries."""

from __future__ import annotations

import copy
import math
import pickle
import subprocess
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import numr
import numr.cpu as cpu
from numr import errors
from tests.tensor.strategies import arrays

DTYPES = numr.dtypes.ALL_DTYPES


@pytest.fixture(params=numr.available())
def xp(request: pytest.FixtureRequest) -> ModuleType:
    return numr.namespace(request.param)


# --------------------------------------------------------------------- Python
def test_scalars_convert(xp: ModuleType) -> None:
    x = xp.asarray(3)
    assert bool(x) is True
    assert int(x) == 3
    assert float(x) == 3.0
    assert complex(x) == 3 + 0j
    assert x.__index__() == 3
    assert [10, 20, 30, 40][x] == 40
    assert f"{xp.asarray(2.5, dtype=xp.float32):.2f}" == "2.50"
    assert round(xp.asarray(2.6, dtype=xp.float32)) == 3
    assert math.trunc(xp.asarray(2.6, dtype=xp.float32)) == 2
    assert math.sqrt(xp.asarray(4.0, dtype=xp.float32)) == 2.0
    assert xp.asarray([[7]]).item() == 7
    assert xp.asarray([[1, 2]]).tolist() == [[1, 2]]


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "uint8", "uint16", "uint32"])
def test_every_integer_dtype_is_an_index(xp: ModuleType, dtype: str) -> None:
    assert range(5)[xp.asarray(4, dtype=getattr(xp, dtype))] == 4


def test_iteration_length_and_membership(xp: ModuleType) -> None:
    x = xp.asarray([[1, 2], [3, 4]])
    assert len(x) == 2
    assert [row.tolist() for row in x] == [[1, 2], [3, 4]]
    assert 3 in x
    assert 9 not in x
    assert None not in x
    first, second = x
    assert first.shape == second.shape == (2,)
    with pytest.raises(TypeError, match="no axes"):
        iter(xp.asarray(1))
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)


def test_operators_give_not_implemented_for_foreign_operands(xp: ModuleType) -> None:
    x = xp.asarray([1, 2])
    assert (x == "text") is False
    assert (x != None) is True  # noqa: E711
    with pytest.raises(TypeError, match="unsupported operand"):
        x + "text"
    with pytest.raises(TypeError, match="unsupported operand"):
        object() + x

    class Other:
        def __radd__(self, other: object) -> str:
            return "mine"

    assert x + Other() == "mine"


# ----------------------------------------------------------- pickle and copy
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_pickle(xp: ModuleType, protocol: int, dtype: np.dtype) -> None:
    if dtype not in xp.zeros(1)._client.dtypes:
        pytest.skip(f"the device has no {dtype}")
    x = xp.asarray(np.arange(12).reshape(3, 4).astype(dtype))[::-1, 1:]
    again = pickle.loads(pickle.dumps(x, protocol))
    assert again.dtype == dtype
    assert again.device == x.device
    np.testing.assert_array_equal(again.to_numpy(), x.to_numpy())
    again[...] = True
    assert not np.array_equal(again.to_numpy(), x.to_numpy()) or dtype == np.dtype(bool)


def test_pickle_out_of_band_moves_no_bytes_through_the_stream() -> None:
    x = cpu.arange(100_000)
    buffers: list[pickle.PickleBuffer] = []
    stream = pickle.dumps(x, 5, buffer_callback=buffers.append)
    assert len(stream) < 1000
    assert sum(buffer.raw().nbytes for buffer in buffers) == x.nbytes
    np.testing.assert_array_equal(pickle.loads(stream, buffers=buffers).to_numpy(), x.to_numpy())


def test_functions_devices_and_dtypes_pickle(xp: ModuleType) -> None:
    for thing in (
        xp.zeros,
        xp.asarray,
        xp.sin,
        xp.linalg.svd,
        xp.fft.fftfreq,
        xp.__array_namespace_info__,
    ):
        again = pickle.loads(pickle.dumps(thing))
        assert again.__name__ == thing.__name__
    device = xp.zeros(1).device
    assert pickle.loads(pickle.dumps(device)) == device
    assert copy.deepcopy(device) == device
    assert len({device, copy.copy(device)}) == 1


def test_copies_do_not_share_memory(xp: ModuleType) -> None:
    x = xp.zeros(3)
    for duplicate in (copy.copy(x), copy.deepcopy(x), x.copy(), xp.asarray(x, copy=True)):
        duplicate[0] = 1.0
    assert float(x[0]) == 0.0
    assert xp.asarray(x) is x
    pair = [x, x]
    first, second = copy.deepcopy(pair)
    assert first is second


# ---------------------------------------------------------------------- NumPy
def test_numpy_conversion_shares_memory_on_the_cpu() -> None:
    x = cpu.zeros(3)
    host = np.asarray(x)
    assert type(host) is np.ndarray
    host[0] = 5.0
    assert float(x[0]) == 5.0
    assert np.asarray(x, dtype=np.float32).dtype == np.float32
    np.array(x)[1] = 9.0
    assert float(x[1]) == 0.0
    with pytest.raises(errors.CopyError, match="__array__: copy=False"):
        x.__array__(np.dtype("float32"), copy=False)


def test_from_numpy_shares_or_copies_as_asked() -> None:
    host = np.arange(4.0)
    shared = numr.from_numpy(host)
    host[0] = 9.0
    assert float(shared[0]) == 9.0
    copied = numr.from_numpy(host, copy=True)
    host[1] = 9.0
    assert float(copied[1]) == 1.0
    swapped = numr.from_numpy(np.arange(3, dtype=">i4"))
    assert swapped.dtype == np.dtype("int32")
    assert swapped.tolist() == [0, 1, 2]
    with pytest.raises(errors.CopyError):
        cpu.asarray(np.arange(3, dtype=">i4"), copy=False)


def test_ufuncs_and_functions_of_numpy_stay_tensors(xp: ModuleType) -> None:
    x = xp.asarray([0.25, 0.5], dtype=xp.float32)
    for result, expected in (
        (np.sin(x), np.sin(np.float32([0.25, 0.5]))),
        (np.add(x, 1.0), [1.25, 1.5]),
        (np.float64(2) * x, [0.5, 1.0]),
        (np.sum(x), 0.75),
        (np.concatenate([x, x]), [0.25, 0.5, 0.25, 0.5]),
        (np.where(x > 0.3, x, -x), [-0.25, 0.5]),
    ):
        assert isinstance(result, numr.Tensor)
        assert result.dtype == np.float32
        np.testing.assert_allclose(result.to_numpy(), expected, rtol=1e-6)


def test_a_tensor_with_an_ndarray_stays_a_tensor_on_the_cpu() -> None:
    x, host = cpu.asarray([1.0, 2.0]), np.asarray([3.0, 4.0])
    for result in (x + host, host + x, np.hypot(host, x), np.cross(np.eye(3)[0], cpu.ones(3))):
        assert isinstance(result, numr.Tensor)
    out = np.zeros(2)
    assert np.add(x, x, out=out) is out
    np.testing.assert_array_equal(out, [2, 4])
    target = cpu.zeros(2)
    assert np.add(x, x, out=target) is target
    assert target.tolist() == [2, 4]
    assert isinstance(np.add.reduce(x), numr.Tensor)
    assert np.shape(x) == (2,)


#: Calls as code for NumPy makes them: by position, with NumPy's names, with defaults said.
NUMPY_CALLS: dict[str, Any] = {
    "axis by position": lambda x: np.sum(x, 0),
    "dtype by position": lambda x: np.sum(x, 1, np.float32),
    "defaults": lambda x: np.mean(x, axis=None, dtype=None, out=None),
    "ddof": lambda x: np.std(x, 1, ddof=1),
    "correction": lambda x: np.var(x, axis=0, correction=1, keepdims=True),
    "limits": lambda x: np.clip(x, 1.0, 3.0),
    "limits by name": lambda x: np.clip(x, a_min=2, a_max=None),
    "kind": lambda x: np.sort(x, 0, "stable"),
    "concatenate": lambda x: np.concatenate((x, x), 1),
    "stack": lambda x: np.stack([x, x], -1),
    "vstack": lambda x: np.vstack([x, x]),
    "roll": lambda x: np.roll(x, 2, 1),
    "moveaxis": lambda x: np.moveaxis(x, 0, 1),
    "transpose": lambda x: np.transpose(x, (1, 0)),
    "tril": lambda x: np.tril(x, -1),
    "full_like": lambda x: np.full_like(x, np.float32(3), shape=(2, 2)),
    "zeros_like": lambda x: np.zeros_like(x, np.int32, "C", True, (4,)),
    "like": lambda x: np.asarray([1.0, 2.0], np.float32, like=x),
    "arange like": lambda x: np.arange(2, 9, 3, dtype=np.int32, like=x),
    "eye like": lambda x: np.eye(3, k=1, dtype=np.float32, like=x),
    "cumsum": lambda x: np.cumsum(x, 1),
    "cumsum of all": lambda x: np.cumsum(x),
    "cumprod": lambda x: np.cumprod(x, axis=0),
    "dot": lambda x: np.dot(x, x.T),
    "einsum": lambda x: np.einsum("ij,kj->ik", x, x, optimize=True, dtype=np.float32),
    "take": lambda x: np.take(x, [1, 0, 1], 1),
    "take one": lambda x: np.take(x, 2, axis=1),
    "tensordot": lambda x: np.tensordot(x, x, ((0, 1), (0, 1))),
    "nanmean": lambda x: np.nanmean(x, 1),
    "median": lambda x: np.median(x, 1),
    "fft": lambda x: np.fft.fft(x, 4, 0),
    "rfft": lambda x: np.fft.rfft(x, axis=1, norm="ortho"),
    "svd": lambda x: np.linalg.svdvals(x),
    "inv": lambda x: np.linalg.inv(x[:, :2]),
    "qr": lambda x: np.abs(np.linalg.qr(x, "reduced").R),
    "in float32": lambda x: np.add(x, 1, dtype=np.float32),
}


@pytest.mark.parametrize("name", NUMPY_CALLS)
def test_calls_as_numpy_takes_them_stay_on_the_device(
    xp: ModuleType, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = np.asarray([[4.0, 1.0, 3.0], [2.0, 5.0, 0.5]], np.float32)
    x = xp.asarray(host)
    client = x._client
    original = client.to_host

    def to_host(array: Any) -> np.ndarray:
        # Factorisations look whether they succeeded, at integers.
        assert array.dtype.kind not in "fc", "elements left the device"
        return original(array)

    with monkeypatch.context() as patch:
        patch.setattr(client, "to_host", to_host)
        result = NUMPY_CALLS[name](x)
    assert isinstance(result, numr.Tensor)
    assert result.device == x.device
    expected = NUMPY_CALLS[name](host)
    assert result.dtype == expected.dtype
    np.testing.assert_allclose(result.to_numpy(), expected, rtol=1e-5, atol=1e-5)


def test_calls_that_mean_something_else_run_in_numpy() -> None:
    x = cpu.asarray([[2, 1], [1, 3]])
    assert np.linalg.inv(x).dtype == np.float64  # of integers, which the standard does not invert
    y = cpu.asarray([[2.0, 1.0], [1.0, 3.0]])
    assert isinstance(np.linalg.qr(y, mode="r"), numr.Tensor)
    assert np.linalg.eigvals(y).dtype == np.float64  # the standard's are complex
    assert float(np.sum(y, where=y > 1)) == 5.0
    assert float(np.max(y, initial=9.0)) == 9.0
    assert np.linalg.svd(y, compute_uv=False).shape == (2,)
    out = np.zeros(2)
    assert np.sum(y, axis=0, out=out) is out
    np.testing.assert_array_equal(out, [3.0, 4.0])
    target = cpu.zeros(2)
    assert np.sum(y, axis=1, out=target) is target
    assert target.tolist() == [3.0, 4.0]


def test_results_in_containers_are_tensors_too() -> None:
    x = cpu.asarray([[2.0, 1.0], [1.0, 3.0]])
    for results in (np.linalg.qr(x), np.linalg.eigh(x), np.linalg.svd(x), np.unique_counts(x)):
        assert hasattr(results, "_fields")
        assert {type(result) for result in results} == {numr.Tensor}
    assert [type(part) for part in np.split(x, 2)] == [numr.Tensor] * 2
    vectors = np.linalg.eigh(x).eigenvectors
    np.testing.assert_allclose((vectors.T @ vectors).to_numpy(), np.eye(2), atol=1e-15)


def test_numpy_results_of_other_dtypes_are_refused() -> None:
    x = cpu.asarray([1.0, 2.0])
    for dtype in (object, [("value", float)], "datetime64[s]"):
        with pytest.raises(errors.DTypeError, match=r"empty_like: .* no dtype"):
            np.empty_like(x, dtype=dtype)
        with pytest.raises(errors.DTypeError, match=r"empty_like: .* no dtype"):
            np.empty_like(x, dtype=dtype, shape=(3,))


@pytest.mark.skipif(sys.version_info < (3, 12), reason="__buffer__ is Python 3.12's")
def test_buffer_protocol() -> None:
    x = cpu.asarray([1.0, 2.0])
    view = memoryview(x)
    view[0] = 7.0
    assert float(x[0]) == 7.0
    assert bytes(cpu.asarray([1, 2], dtype=cpu.uint8)) == b"\x01\x02"


def test_asarray_takes_buffers_and_other_libraries() -> None:
    data = bytearray(b"\x01\x02\x03")
    x = cpu.asarray(data)
    assert x.dtype == np.uint8
    x[0] = 9
    assert data[0] == 9
    assert cpu.asarray(range(3)).tolist() == [0, 1, 2]
    assert cpu.asarray([cpu.asarray(1.0), 2]).tolist() == [1.0, 2.0]
    assert cpu.asarray([[cpu.asarray([1, 2])], [cpu.asarray([3, 4])]]).shape == (2, 1, 2)
    assert cpu.asarray([]).dtype == np.float64
    assert cpu.asarray([True, 2]).dtype == np.int64
    for dtype in (np.float16, np.float32, np.float64):
        assert float(cpu.asarray(dtype(2))) == 2.0
        assert cpu.asarray([dtype(2), dtype(3)]).tolist() == [2.0, 3.0]


# --------------------------------------------------------------------- DLPack
@given(host=arrays())
@settings(max_examples=100, deadline=None)
def test_dlpack_both_ways_with_numpy(host: np.ndarray) -> None:
    x = cpu.asarray(host)
    np.testing.assert_array_equal(np.from_dlpack(x), host)
    back = cpu.from_dlpack(host)
    assert back.dtype == host.dtype
    np.testing.assert_array_equal(back.to_numpy(), host)


def test_dlpack_shares_copies_and_refuses() -> None:
    x = cpu.zeros(3)
    shared = np.from_dlpack(x)
    x[0] = 4.0
    assert shared[0] == 4.0
    copied = cpu.from_dlpack(x, copy=True)
    x[1] = 5.0
    assert float(copied[1]) == 0.0
    assert cpu.from_dlpack(x, copy=False) is not None
    assert tuple(x.__dlpack_device__()) == (1, 0)
    with pytest.raises(BufferError, match=r"__dlpack__: stream=1"):
        x.__dlpack__(stream=1)
    with pytest.raises(BufferError, match=r"__dlpack__: dl_device=\(2, 0\)"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(AttributeError, match="from_dlpack: list has no __dlpack__"):
        cpu.from_dlpack([1])


def test_dlpack_capsules_are_legacy_or_versioned_as_the_consumer_asks() -> None:
    x = cpu.zeros(3)
    assert '"dltensor"' in repr(x.__dlpack__())
    assert '"dltensor_versioned"' in repr(x.__dlpack__(max_version=(1, 0)))
    fixed = np.zeros(3)
    fixed.flags.writeable = False
    with pytest.raises(BufferError):
        cpu.asarray(fixed).__dlpack__()
    assert not np.from_dlpack(cpu.asarray(fixed)).flags.writeable


def test_the_memory_outlives_its_tensor() -> None:
    def produce() -> np.ndarray:
        return np.from_dlpack(cpu.full((1000, 1000), 3.0))

    host = produce()
    for _ in range(4):
        cpu.full((1000, 1000), 8.0)
    assert float(host.min()) == float(host.max()) == 3.0


# ------------------------------------------------------------------- printing
def test_repr_and_str(xp: ModuleType) -> None:
    x = xp.asarray([[1, 2], [3, 4]], dtype=xp.int32)
    device = str(x.device)
    assert repr(x) == f"Tensor([[1, 2],\n        [3, 4]], dtype=int32, device={device})"
    assert str(x) == "[[1 2]\n [3 4]]"
    assert repr(xp.asarray(2, dtype=xp.int32)) == f"Tensor(2, dtype=int32, device={device})"
    assert repr(xp.zeros((0, 3), dtype=xp.int32)) == (
        f"Tensor([], shape=(0, 3), dtype=int32, device={device})"
    )
    assert x._repr_html_().startswith("<pre>Tensor([[1, 2],")
    assert x._repr_inline_(80) == f"numr.Tensor int32 on {device}"


@pytest.mark.parametrize(
    "shape", [(5000,), (40, 50), (3, 2000), (11, 12, 13), (2, 2, 2, 400), (7, 1000)]
)
def test_a_large_tensor_prints_as_numpy_prints_it(xp: ModuleType, shape: tuple[int, ...]) -> None:
    host = np.arange(math.prod(shape), dtype=np.int32).reshape(shape)
    assert str(xp.asarray(host)) == str(host)


def test_printing_a_large_tensor_moves_only_what_it_shows(
    xp: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = xp.zeros((1000, 1000), dtype=xp.float32)
    moved: list[int] = []
    client = x._client
    original = client.to_host
    monkeypatch.setattr(client, "to_host", lambda a: (moved.append(a.size), original(a))[1])
    repr(x)
    assert moved == [7 * 7]


# ------------------------------------------------------------------ processes
def test_fork_after_threaded_work_leaves_the_child_usable() -> None:
    code = (
        "import os, numr.cpu as xp\n"
        "x = xp.ones(1_000_000); y = x + x\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    ok = float(xp.sum(xp.ones(1_000_000) + x)) == 2e6\n"
        "    os._exit(0 if ok else 1)\n"
        "_, status = os.waitpid(pid, 0)\n"
        "raise SystemExit(os.waitstatus_to_exitcode(status))\n"
    )
    if sys.platform == "win32":
        pytest.skip("Windows has no fork")
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def test_many_threads_compute_on_shared_tensors(xp: ModuleType) -> None:
    from concurrent.futures import ThreadPoolExecutor

    x = xp.arange(50_000, dtype=xp.float32)

    def work(i: int) -> Any:
        y = x
        for _ in range(5):
            y = y + float(i)
        return float(xp.max(y))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(64))) == [49_999.0 + 5 * i for i in range(64)]
