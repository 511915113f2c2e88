"""NumPy and Python on tensors of every device: what works, what is refused, and how many bytes move."""

from __future__ import annotations

import copy
import operator
import pickle
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import numr
import numr.cpu as cpu
from numr.errors import HostCopyError

ELSEWHERE = [name for name in numr.available() if name != "cpu"]
HOST = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(params=numr.available())
def xp(request: pytest.FixtureRequest) -> ModuleType:
    return numr.namespace(request.param)


@pytest.fixture(params=ELSEWHERE)
def device_xp(request: pytest.FixtureRequest) -> ModuleType:
    return numr.namespace(request.param)


@pytest.fixture
def moved(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], list[int]]:
    """Bytes of each copy to the host of the tensors of a device, from now on."""

    def watch(x: Any) -> list[int]:
        bytes_moved: list[int] = []
        original = x._client.to_host

        def to_host(array: Any) -> np.ndarray:
            bytes_moved.append(array.size * array.dtype.itemsize)
            return original(array)

        monkeypatch.setattr(x._client, "to_host", to_host)
        return bytes_moved

    return watch


# --------------------------------------------------------------- with NumPy arrays
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    **{
        name: getattr(operator, name)
        for name in (
            *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"),
            *("eq", "ne", "lt", "le", "gt", "ge"),
        )
    },
    "divmod": divmod,
}
BITWISE = {name: getattr(operator, name) for name in ("and_", "or_", "xor", "lshift", "rshift")}
INPLACE = {name: getattr(operator, name) for name in ("iadd", "isub", "imul", "itruediv", "ipow")}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_with_arrays_give_tensors_in_host_memory(name: str) -> None:
    host = HOST + 1
    x, apply = cpu.asarray(host), OPERATORS[name]
    for left, right in ((x, host), (host, x)):
        expected = apply(host, host)
        result = apply(left, right)
        for found, wanted in zip(*map(_several, (result, expected)), strict=True):
            assert isinstance(found, numr.Tensor)
            np.testing.assert_allclose(found.to_numpy(), wanted, strict=True, rtol=1e-6)


def _several(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("name", [*OPERATORS, "matmul"])
def test_operators_with_arrays_are_refused_on_devices(
    device_xp: ModuleType, moved: Any, name: str
) -> None:
    x = device_xp.asarray(HOST)
    apply = OPERATORS.get(name, operator.matmul)
    copies = moved(x)
    for left, right in ((x, HOST), (HOST, x)):
        with pytest.raises(TypeError, match=r"to_numpy\(\)"):
            apply(left, right)
    assert copies == []


@pytest.mark.parametrize("name", BITWISE)
def test_bitwise_operators_with_arrays_are_refused_on_devices(
    device_xp: ModuleType, name: str
) -> None:
    host = np.arange(3, dtype=np.int32)
    x = device_xp.asarray(host)
    for left, right in ((x, host), (host, x)):
        with pytest.raises(TypeError, match=r"to_numpy\(\)"):
            BITWISE[name](left, right)


@pytest.mark.parametrize("name", INPLACE)
def test_inplace_operators_with_arrays_are_refused_on_devices(
    device_xp: ModuleType, name: str
) -> None:
    x, host = device_xp.asarray(HOST), HOST.copy()
    for left, right in ((x, host), (host, x)):
        with pytest.raises(TypeError, match=r"to_numpy\(\)"):
            INPLACE[name](left, right)
    np.testing.assert_array_equal(x.to_numpy(), HOST)
    np.testing.assert_array_equal(host, HOST)


def test_scalars_of_numpy_mix_on_every_device(xp: ModuleType) -> None:
    x = xp.asarray([1.0, 2.0], dtype=xp.float32)
    for result in (x * np.float32(2), np.float32(2) * x, x * np.float64(2), np.int64(2) * x):
        assert isinstance(result, numr.Tensor)
        assert result.dtype == np.float32
        assert result.device == x.device
        assert result.tolist() == [2.0, 4.0]


# ------------------------------------------------------------------ conversions
#: What takes a tensor's elements to the host without naming it.
IMPLICIT: dict[str, Callable[[Any], Any]] = {
    "asarray": np.asarray,
    "array": np.array,
    "array of a list": lambda x: np.array([x, x]),
    "assignment": lambda x: np.zeros((2, 3)).__setitem__(slice(None), x),
    "index": lambda x: np.zeros(6)[x],
    "linalg": np.linalg.cond,
    "save": lambda x: np.save("never-written", x),
    "allclose": lambda x: np.allclose(x, x),
    "testing": lambda x: np.testing.assert_array_equal(x, x),
    "reduceat": lambda x: np.add.reduceat(x, [0]),
    "vectorize": np.vectorize(lambda value: value),
}


@pytest.mark.parametrize("name", IMPLICIT)
def test_implicit_copies_are_refused(
    device_xp: ModuleType, moved: Any, name: str, tmp_path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    x = device_xp.asarray(HOST)
    copies = moved(x)
    with pytest.raises(HostCopyError, match=r"to_numpy\(\).*NUMR_ALLOW_HOST_COPIES"):
        IMPLICIT[name](x)
    assert copies == []
    assert not list(tmp_path.iterdir())


def test_implicit_copies_may_be_allowed(device_xp: ModuleType, tmp_path) -> None:
    x = device_xp.asarray(HOST)
    with numr.config.override(allow_host_copies=True):
        np.testing.assert_array_equal(np.asarray(x), HOST, strict=True)
        assert np.asarray(x, dtype=np.float64).dtype == np.float64
        with pytest.raises(numr.errors.CopyError):
            np.asarray(x, copy=False)
        np.save(tmp_path / "x.npy", x)
        assert np.allclose(x, HOST)
        assert isinstance(np.linalg.svd(x, compute_uv=False), numr.Tensor)
        assert isinstance(np.fft.fft2(x), numr.Tensor)
        with pytest.raises(TypeError, match="do not mix"):
            x + HOST  # what moves to the device is asked for still
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), HOST, strict=True)
    with pytest.raises(HostCopyError):
        np.asarray(x)


def test_numpy_saves_tensors_in_host_memory(tmp_path) -> None:
    x = cpu.asarray(HOST)[:, ::-1]
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "x.npz", x=x, y=x.T)
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), HOST[:, ::-1], strict=True)
    with np.load(tmp_path / "x.npz") as stored:
        np.testing.assert_array_equal(stored["x"], HOST[:, ::-1], strict=True)
        np.testing.assert_array_equal(stored["y"], HOST[:, ::-1].T, strict=True)


# ---------------------------------------------------------------- pickle and copy
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "C order": lambda x: x,
    "Fortran order": lambda x: x.T,
    "reversed": lambda x: x[::-1],
    "every other": lambda x: x[:, ::2],
    "a part": lambda x: x[10:20, 3:5],
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_elements_pickle_out_of_band(xp: ModuleType, name: str) -> None:
    host = np.arange(50_000, dtype=np.float32).reshape(100, 500)
    x, expected = LAYOUTS[name](xp.asarray(host)), LAYOUTS[name](host)
    buffers: list[pickle.PickleBuffer] = []
    stream = pickle.dumps(x, 5, buffer_callback=buffers.append)
    assert len(stream) < 500
    assert sum(buffer.raw().nbytes for buffer in buffers) == expected.nbytes
    shared, copied = (
        pickle.loads(stream, buffers=given)
        for given in (buffers, [bytes(buffer.raw()) for buffer in buffers])
    )
    for again in (shared, copied):
        assert again.device == x.device
        np.testing.assert_array_equal(again.to_numpy(), expected, strict=True)
    copied[...] = 0.0  # writable, although its buffer was not
    assert float(xp.max(xp.abs(copied))) == 0.0
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(x.copy(), protocol))
        assert again.shape == expected.shape


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_duplicates_share_no_memory(xp: ModuleType, duplicate: Callable[[Any], Any]) -> None:
    x = xp.zeros((2, 3))
    view = x[1]
    for original in (x, view, x.T):
        other = duplicate(original)
        other[...] = 1.0
        assert float(xp.sum(x)) == 0.0
        assert other.device == x.device


# ---------------------------------------------------------------------- display
def test_display_moves_only_what_it_shows(xp: ModuleType, moved: Any) -> None:
    x = xp.zeros((1000, 1000), dtype=xp.float32)
    copies = moved(x)
    shown = (
        7 * 7 * 4
    )  # three elements at both ends of each axis, and one that stands for the others
    for show in (repr, str, format, lambda y: y._repr_html_()):
        copies.clear()
        assert "..." in show(x)
        assert copies == [shown]
    copies.clear()
    assert len(x._repr_inline_(40)) <= 40
    assert x._repr_inline_(5) == "numr.Tensor"
    assert copies == []


def test_scalars_move_one_element(xp: ModuleType, moved: Any) -> None:
    x = xp.asarray([[1, 2], [3, 4]], dtype=xp.int32)
    copies = moved(x)
    for convert, expected in (
        (int, 4),
        (float, 4.0),
        (complex, 4 + 0j),
        (bool, True),
        (round, 4),
        (operator.index, 4),
        (lambda y: f"{y:03d}", "004"),
        (lambda y: y.item(), 4),
        (lambda y: list(range(9))[y], 4),
    ):
        copies.clear()
        assert convert(x[1, 1]) == expected
        assert copies == [4]
    for convert in (float, operator.index, round, lambda y: f"{y:03d}"):
        with pytest.raises(TypeError, match="shape"):
            convert(x)
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)
    with pytest.raises(TypeError, match="integer"):
        operator.index(xp.asarray(1.0, dtype=xp.float32))


def test_bytes_are_the_elements_in_c_order(xp: ModuleType) -> None:
    x = xp.asarray([[1, 256], [2, 3]], dtype=xp.int32)
    assert bytes(x) == np.asarray([[1, 256], [2, 3]], np.int32).tobytes()
    assert bytes(x.T) == np.asarray([[1, 2], [256, 3]], np.int32).tobytes()


def test_divmod_leaves_foreign_operands_to_them(xp: ModuleType) -> None:
    x = xp.asarray([7, 8], dtype=xp.int32)
    quotient, remainder = divmod(x, 3)
    assert (quotient.tolist(), remainder.tolist()) == ([2, 2], [1, 2])
    quotient, remainder = divmod(30, x)
    assert (quotient.tolist(), remainder.tolist()) == ([4, 3], [2, 6])
    with pytest.raises(TypeError, match="unsupported operand"):
        divmod(x, "text")
    with pytest.raises(TypeError, match="unsupported operand"):
        divmod(object(), x)
