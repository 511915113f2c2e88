"""Data types of the standard.

Each name is NumPy's scalar type, as in NumPy's own namespace: equal to the ``numpy.dtype`` that a tensor's ``dtype`` is,
and taken wherever a dtype is. The dtype instance itself would be a trap: ``None == numpy.dtype("float64")`` is
true, so that code that compares with ``xp.float64`` takes a missing dtype for it.
"""

from __future__ import annotations

from numpy import (
    bool,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)

__all__ = ["bool", "complex64", "complex128", "float16", "float32", "float64"]
__all__ += ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
