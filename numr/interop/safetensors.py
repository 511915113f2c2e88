"""Tensors in files of the safetensors format.

A file is the length of a header, the header in JSON, which gives dtype, shape and place of each tensor by name, and the
elements, little-endian and in C order, one tensor after the other without gaps.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from numr import dtypes as dt
from numr.errors import DTypeError
from numr.interop.files import FilePath, on_device, require_mappable, require_tensors
from numr.runtime.device import Device
from numr.tensor.core import Tensor

__all__ = ["load_safetensors", "save_safetensors"]

#: The format's names of dtypes.
NAMES: Final[dict[dt.DType, str]] = {
    dt.bool_: "BOOL",
    dt.int8: "I8",
    dt.int16: "I16",
    dt.int32: "I32",
    dt.int64: "I64",
    dt.uint8: "U8",
    dt.uint16: "U16",
    dt.uint32: "U32",
    dt.uint64: "U64",
    dt.float16: "F16",
    dt.float32: "F32",
    dt.float64: "F64",
    dt.complex64: "C64",
}
DTYPES: Final = {name: dtype for dtype, name in NAMES.items()}
METADATA: Final = "__metadata__"
_LENGTH_BYTES: Final = 8
#: The largest header that readers of the format take.
_LONGEST_HEADER: Final = 100_000_000


def save_safetensors(file: FilePath, tensors: Mapping[str, Tensor], /) -> None:
    """Write tensors to a safetensors file.

    Parameters
    ----------
    file : path-like
        The file, which is replaced where it exists.
    tensors : mapping of str to Tensor
        What is written, of any device and any dtype but complex128, which the format does not have.

    Raises
    ------
    DTypeError
        If a tensor is complex128.
    TypeError
        If something is no tensor, or a name no string.
    ValueError
        If a tensor is called ``"__metadata__"``.

    Examples
    --------
    >>> import tempfile
    >>> import numr
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numr.save_safetensors(f"{folder}/w.safetensors", {"w": numr.cpu.asarray([0.5, 2.0])})
    ...     numr.load_safetensors(f"{folder}/w.safetensors")
    {'w': Tensor([0.5, 2. ], dtype=float64, device=cpu)}
    """
    require_tensors("save_safetensors", tensors)
    header: dict[str, Any] = {}
    for name, tensor in tensors.items():
        if name == METADATA:
            raise ValueError(f"save_safetensors: a tensor cannot be called {METADATA!r}.")
        if tensor.dtype not in NAMES:
            raise DTypeError(
                f"save_safetensors: {name!r} has dtype {tensor.dtype}, which the format does not have. Save real() "
                "and imag() of it, or use save()."
            )
    # The widest elements come first, so that all of them lie at multiples of their size.
    order = sorted(tensors, key=lambda name: (-tensors[name].itemsize, name))
    end = 0
    for name in order:
        tensor = tensors[name]
        start, end = end, end + tensor.nbytes
        header[name] = {
            "dtype": NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [start, end],
        }
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    with Path(file).open("wb") as stream:
        stream.write(len(text).to_bytes(_LENGTH_BYTES, "little"))
        stream.write(text)
        for name in order:
            host = np.asarray(tensors[name].to_numpy(), order="C")
            stream.write(host.astype(host.dtype.newbyteorder("<"), copy=False).data)


def load_safetensors(
    file: FilePath, /, *, device: Device | str = "cpu", mmap: bool = False
) -> dict[str, Tensor]:
    """Read the tensors of a safetensors file.

    Parameters
    ----------
    file : path-like
        The file.
    device : Device or str
        Where the tensors go, of any runtime.
    mmap : bool
        Whether the tensors lie over the file, read-only, so that only what is used is read. On the CPU.

    Returns
    -------
    dict of str to Tensor
        All tensors by name. Text that is kept with them is left out.

    Raises
    ------
    CopyError
        If ``mmap`` is asked for where only a copy gives the tensors.
    DTypeError
        If numr or the device does not have a dtype of the file.
    ValueError
        If the file is not of the format.

    Examples
    --------
    >>> import tempfile
    >>> import numr
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numr.save_safetensors(f"{folder}/w.safetensors", {"w": numr.cpu.asarray([0.5, 2.0])})
    ...     numr.load_safetensors(f"{folder}/w.safetensors")["w"]
    Tensor([0.5, 2. ], dtype=float64, device=cpu)
    """
    if mmap:
        require_mappable("load_safetensors", device)
    path = Path(file)
    header, begin = _read_header(path)
    places = {name: entry for name, entry in header.items() if name != METADATA}
    parts = {name: _part(path, name, entry) for name, entry in places.items()}
    _require_no_gaps(path, sorted((start, end) for _, _, start, end in parts.values()), begin)
    empty = begin == path.stat().st_size  # which cannot be mapped
    data = np.empty(0, np.uint8) if empty else np.memmap(path, np.uint8, "r", begin)
    tensors = {}
    for name, (dtype, shape, start, end) in parts.items():
        stored = data[start:end].view(np.ndarray).view(dtype.newbyteorder("<")).reshape(shape)
        tensors[name] = on_device(stored, device, copy=not mmap)
    return tensors


def _fault(path: Path, what: str) -> ValueError:
    return ValueError(f"load_safetensors: {os.fspath(path)!r} is no file of the format: {what}.")


def _read_header(path: Path) -> tuple[dict[str, Any], int]:
    """The header and where the elements begin."""
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(_LENGTH_BYTES), "little")
        begin = _LENGTH_BYTES + length
        if length > _LONGEST_HEADER or begin > path.stat().st_size or not length:
            raise _fault(path, f"the header would have {length} bytes")
        text = stream.read(length)
    try:
        header = json.loads(text.decode(), object_pairs_hook=_without_repetition)
    except ValueError as error:
        raise _fault(path, f"the header cannot be read ({error})") from error
    if not isinstance(header, dict):
        raise _fault(path, "the header is no mapping")
    return header, begin


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is there twice")
    return found


def _part(path: Path, name: str, entry: Any) -> tuple[dt.DType, tuple[int, ...], int, int]:
    """Dtype, shape and place of a tensor, checked against each other."""
    try:
        kind, shape, (start, end) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
    except (KeyError, TypeError, ValueError):
        raise _fault(path, f"{name!r} lacks dtype, shape or place") from None
    if kind not in DTYPES:
        raise DTypeError(
            f"load_safetensors: {name!r} has the dtype {kind}, which numr does not have. It has "
            f"{', '.join(DTYPES)}."
        )
    dtype = DTYPES[kind]
    numbers = (*shape, start, end)
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise _fault(path, f"{name!r} has shape {shape} at {start} to {end}")
    if end - start != math.prod(shape) * dtype.itemsize:
        raise _fault(path, f"{name!r} of shape {shape} and dtype {kind} lies at {start} to {end}")
    return dtype, shape, start, end


def _require_no_gaps(path: Path, places: list[tuple[int, int]], begin: int) -> None:
    """Raise unless the places, in their order, follow each other up to the end of the file."""
    reached = 0
    for start, end in places:
        if start != reached:
            raise _fault(path, f"a tensor begins at {start} and the one before ends at {reached}")
        reached = end
    if begin + reached != path.stat().st_size:
        raise _fault(
            path, f"the tensors end at {begin + reached}, the file at {path.stat().st_size}"
        )
