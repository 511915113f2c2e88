"""Files: what is written is what NumPy and the format's text say, and what is read is checked."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import numr
import numr.cpu as cpu
from numr.errors import CopyError, DTypeError

DTYPES = numr.dtypes.ALL_DTYPES


@pytest.fixture(params=numr.available())
def xp(request: pytest.FixtureRequest) -> ModuleType:
    return numr.namespace(request.param)


def device_of(xp: ModuleType) -> Any:
    return xp.__array_namespace_info__().default_device()


def has(xp: ModuleType, dtype: np.dtype) -> bool:
    return dtype in xp.zeros(1)._client.dtypes


def arrays(dtype: np.dtype) -> dict[str, np.ndarray]:
    whole = np.arange(24).reshape(2, 3, 4).astype(dtype)
    return {
        "whole": whole,
        "view": whole[:, ::-1, 1::2],
        "transposed": whole.T,
        "scalar": np.asarray(whole[1, 1, 1]),
        "empty": whole[:0],
    }


# --------------------------------------------------------------- NumPy's formats
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_one_tensor(xp: ModuleType, tmp_path: Path, dtype: np.dtype) -> None:
    if not has(xp, dtype):
        pytest.skip(f"the device has no {dtype}")
    for name, host in arrays(dtype).items():
        file = tmp_path / f"{name}.npy"
        numr.save(file, xp.asarray(host))
        np.testing.assert_array_equal(np.load(file), host, strict=True)
        np.save(file, host)
        again = numr.load(str(file), device=device_of(xp))
        assert isinstance(again, numr.Tensor)
        assert again.device == device_of(xp)
        np.testing.assert_array_equal(again.to_numpy(), host, strict=True)


def test_several_tensors(xp: ModuleType, tmp_path: Path) -> None:
    hosts = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b/c": np.asarray(3, np.int32)}
    numr.save(tmp_path / "x.npz", {name: xp.asarray(host) for name, host in hosts.items()})
    with np.load(tmp_path / "x.npz") as stored:
        assert list(stored.files) == ["a", "b/c"]
        for name, host in hosts.items():
            np.testing.assert_array_equal(stored[name], host, strict=True)
    for write in (np.savez, np.savez_compressed):
        write(tmp_path / "y.npz", **hosts)
        again = numr.load(tmp_path / "y.npz", device=str(device_of(xp)))
        assert {type(tensor) for tensor in again.values()} == {numr.Tensor}
        for name, host in hosts.items():
            np.testing.assert_array_equal(again[name].to_numpy(), host, strict=True)


def test_a_loaded_tensor_is_writable_and_a_mapped_one_is_not(tmp_path: Path) -> None:
    file = tmp_path / "x.npy"
    numr.save(file, cpu.arange(3))
    loaded = numr.load(file)
    loaded[0] = 9
    mapped = numr.load(file, mmap=True)
    assert mapped.tolist() == [0, 1, 2]
    with pytest.raises(numr.errors.ReadOnlyError):
        mapped[0] = 9
    with file.open("r+b") as stream:
        stream.seek(-8, 2)
        stream.write((7).to_bytes(8, "little"))
    assert mapped.tolist() == [0, 1, 7]  # it lies over the file


def test_other_byte_orders_and_layouts_are_read(tmp_path: Path) -> None:
    file = tmp_path / "x.npy"
    np.save(file, np.asfortranarray(np.arange(6, dtype=">i4").reshape(2, 3)))
    x = numr.load(file)
    assert (x.dtype, x.tolist()) == (np.int32, [[0, 1, 2], [3, 4, 5]])
    with pytest.raises(CopyError):
        numr.load(file, mmap=True)


def test_what_cannot_be_saved_or_loaded_says_why(xp: ModuleType, tmp_path: Path) -> None:
    x = xp.zeros(2)
    for name, value in (("x.npz", x), ("x", x), ("x.npy", {"x": x}), ("x.txt", {"x": x})):
        with pytest.raises(ValueError, match=rf"save: .*{name}"):
            numr.save(tmp_path / name, value)
    for value in (np.zeros(2), [x], {"x": np.zeros(2)}, {1: x}, None):
        with pytest.raises(TypeError, match=r"save.*asarray\(\)"):
            numr.save(tmp_path / "x.npz", value)
        with pytest.raises(TypeError, match=r"save_safetensors.*asarray\(\)"):
            numr.save_safetensors(tmp_path / "x.safetensors", value)
    assert not list(tmp_path.iterdir())
    np.save(tmp_path / "objects.npy", np.asarray([{}, None], object), allow_pickle=True)
    with pytest.raises(ValueError, match="allow_pickle"):
        numr.load(tmp_path / "objects.npy")
    np.save(tmp_path / "text.npy", np.asarray(["a", "b"]))
    with pytest.raises(DTypeError, match="dtype"):
        numr.load(tmp_path / "text.npy", device=device_of(xp))
    numr.save(tmp_path / "x.npz", {"x": x})
    with pytest.raises(CopyError, match="archive" if xp is cpu else "memory of their own"):
        numr.load(tmp_path / "x.npz", mmap=True, device=device_of(xp))


# ------------------------------------------------------------------ safetensors
def written(file: Path) -> tuple[dict[str, Any], bytes]:
    """Header and elements of a file, by the format's description."""
    content = file.read_bytes()
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def write(file: Path, header: Any, data: bytes) -> None:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text + data)


SAFE = {
    "BOOL": "?",
    "I8": "i1",
    "I16": "i2",
    "I32": "i4",
    "I64": "i8",
    "U8": "u1",
    "U16": "u2",
    "U32": "u4",
    "U64": "u8",
    "F16": "f2",
    "F32": "f4",
    "F64": "f8",
    "C64": "c8",
}


@pytest.mark.parametrize("name", SAFE)
def test_safetensors_of_every_dtype(xp: ModuleType, tmp_path: Path, name: str) -> None:
    dtype = np.dtype(SAFE[name])
    if not has(xp, dtype):
        pytest.skip(f"the device has no {dtype}")
    file = tmp_path / "x.safetensors"
    hosts = arrays(dtype)
    numr.save_safetensors(file, {key: xp.asarray(host) for key, host in hosts.items()})
    header, data = written(file)
    assert set(header) == set(hosts)
    for key, host in hosts.items():
        start, end = header[key]["data_offsets"]
        assert (header[key]["dtype"], header[key]["shape"]) == (name, list(host.shape))
        assert data[start:end] == host.tobytes()
    again = numr.load_safetensors(file, device=device_of(xp))
    for key, host in hosts.items():
        assert again[key].device == device_of(xp)
        np.testing.assert_array_equal(again[key].to_numpy(), host, strict=True)
        again[key][...] = True


def test_safetensors_lie_at_multiples_of_their_size(tmp_path: Path) -> None:
    file = tmp_path / "x.safetensors"
    kinds = ("uint8", "float64", "int16", "complex64", "float32")
    numr.save_safetensors(file, {kind: cpu.ones(3, dtype=kind) for kind in kinds})
    header, data = written(file)
    assert (file.stat().st_size - len(data)) % 8 == 0
    for kind in kinds:
        assert header[kind]["data_offsets"][0] % np.dtype(kind).itemsize == 0
    for tensor in numr.load_safetensors(file, mmap=True).values():
        assert tensor.tolist() == [1, 1, 1]
        with pytest.raises(numr.errors.ReadOnlyError):
            tensor[0] = 0


def test_safetensors_of_nothing_and_with_text(tmp_path: Path) -> None:
    file = tmp_path / "x.safetensors"
    numr.save_safetensors(file, {})
    assert numr.load_safetensors(file) == {}
    entry = {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}
    write(file, {"__metadata__": {"format": "pt"}, "größe": entry}, b"\x01\x02")
    assert numr.load_safetensors(file)["größe"].tolist() == [1, 2]


def test_safetensors_have_no_complex128(tmp_path: Path) -> None:
    with pytest.raises(DTypeError, match=r"'z' has dtype complex128"):
        numr.save_safetensors(tmp_path / "x", {"z": cpu.ones(1, dtype=cpu.complex128)})
    with pytest.raises(ValueError, match="__metadata__"):
        numr.save_safetensors(tmp_path / "x", {"__metadata__": cpu.ones(1)})
    assert not list(tmp_path.iterdir())


GOOD = {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}
BROKEN: dict[str, tuple[Any, bytes]] = {
    "no JSON": (b"{nothing", b""),
    "no text": (b"\xff\xfe{}", b""),
    "a list": ([], b""),
    "a name twice": (b'{"a": {}, "a": {}}', b""),
    "no place": ({"a": {"dtype": "U8", "shape": [2]}}, b"12"),
    "a number as entry": ({"a": 3}, b"12"),
    "a negative length": ({"a": {**GOOD, "shape": [-2]}}, b"12"),
    "a length that is no integer": ({"a": {**GOOD, "shape": [2.0]}}, b"12"),
    "another size": ({"a": {**GOOD, "dtype": "U16"}}, b"12"),
    "beyond the end": ({"a": GOOD}, b"1"),
    "bytes left over": ({"a": GOOD}, b"123"),
    "a hole": ({"a": {**GOOD, "data_offsets": [1, 3]}}, b"123"),
    "overlap": ({"a": GOOD, "b": {**GOOD, "data_offsets": [1, 3]}}, b"123"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_safetensors_are_refused(tmp_path: Path, name: str) -> None:
    file = tmp_path / "x.safetensors"
    write(file, *BROKEN[name])
    with pytest.raises(ValueError, match=r"load_safetensors: .*x\.safetensors.* is no file"):
        numr.load_safetensors(file)


def test_safetensors_with_an_impossible_header_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.safetensors"
    for content in (b"", b"\0" * 8, b"\xff" * 8, (10).to_bytes(8, "little") + b"{}"):
        file.write_bytes(content)
        with pytest.raises(ValueError, match="is no file of the format"):
            numr.load_safetensors(file)
    write(file, {"a": {**GOOD, "dtype": "BF16", "shape": [1]}}, b"12")
    with pytest.raises(DTypeError, match="BF16"):
        numr.load_safetensors(file)


def test_mapping_needs_host_memory(tmp_path: Path) -> None:
    file = tmp_path / "x.safetensors"
    numr.save_safetensors(file, {"x": cpu.ones(2)})
    for name in numr.available():
        xp = numr.namespace(name)
        if xp is not cpu:
            with pytest.raises(CopyError, match="memory of their own"):
                numr.load_safetensors(file, mmap=True, device=device_of(xp))
