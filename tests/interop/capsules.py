"""DLPack capsules as their consumers see them, read without any library."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np

READ_ONLY, IS_COPIED = 1, 2

#: DLPack's kinds of elements, as NumPy's.
KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}


class _Array(ctypes.Structure):
    """``DLTensor``."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Legacy(ctypes.Structure):
    """``DLManagedTensor``."""

    _fields_ = (("array", _Array), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class _Versioned(ctypes.Structure):
    """``DLManagedTensorVersioned``."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("array", _Array),
    )


@dataclass(frozen=True)
class Capsule:
    """What a capsule says of its array."""

    version: tuple[int, int] | None
    flags: int
    device: tuple[int, int]
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]


def read(capsule: Any) -> Capsule:
    """Read a capsule that nobody has consumed."""
    api = ctypes.pythonapi
    api.PyCapsule_GetName.argtypes = (ctypes.py_object,)
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetPointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    name = api.PyCapsule_GetName(capsule)
    classes: dict[bytes, Any] = {b"dltensor": _Legacy, b"dltensor_versioned": _Versioned}
    managed = classes[name].from_address(api.PyCapsule_GetPointer(capsule, name))
    array = managed.array
    axes = range(array.ndim)
    shape = tuple(array.shape[i] for i in axes)
    if array.strides:
        strides = tuple(array.strides[i] for i in axes)
    else:  # C order
        strides = tuple(int(np.prod(shape[i + 1 :])) for i in axes)
    assert array.lanes == 1
    return Capsule(
        (managed.major, managed.minor) if name == b"dltensor_versioned" else None,
        managed.flags if name == b"dltensor_versioned" else 0,
        (array.device_type, array.device_id),
        (array.data or 0) + array.byte_offset,
        shape,
        strides,
        np.dtype(f"{KINDS[array.code]}{array.bits // 8}"),
    )
