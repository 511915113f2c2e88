"""Python scalars as parameters of kernels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from numr import dtypes as dt
from numr.codegen.elementwise import scalar_of
from numr.dtypes import DType

__all__ = ["declarations", "format_of", "maker", "words_of"]

#: How many words a scalar takes, and as what struct packs it.
_FORMATS: Final = {
    "bool": "I",
    "float16": "f",
    "float64": "d",
    "complex64": "ff",
    "complex128": "dd",
    "int64": "q",
    "uint64": "Q",
}
_KINDS: Final = {"i": "i", "u": "I", "f": "f"}

#: From here on, a number is rounded to infinity in float32: half a unit in the last place beyond the largest.
_SINGLE_END: Final = 3.4028235677973366e38


def format_of(dtype: DType) -> str:
    """The codes of :mod:`struct` for a scalar of a dtype, as :func:`maker` makes it."""
    return _FORMATS.get(dtype.name) or _KINDS[dtype.kind]


def words_of(dtype: DType) -> int:
    """How many words of parameters a scalar of a dtype takes."""
    return max(1, dtype.itemsize // 4)


def maker(dtype: DType) -> Callable[[Any], Sequence[int | float]]:
    """What turns a Python scalar into the numbers that are packed for a dtype.

    It raises OverflowError for an integer that is out of the dtype's range.
    """
    if dtype.kind == "b":
        return lambda value: (bool(value),)
    if dtype.kind in "iu":
        info = dt.iinfo_of(dtype)
        low, high = info.min, info.max

        def integer(value: Any) -> tuple[int]:
            if not low <= value <= high:
                raise OverflowError(f"Python integer {value} out of bounds for {dtype}")
            return (int(value),)

        return integer
    if dtype.name == "float64":
        return lambda value: (float(value),)
    if dtype.name == "float32":
        return lambda value: (_single(float(value)),)
    if dtype.name == "float16":
        return lambda value: (_half(float(value)),)
    part = _single if dtype.name == "complex64" else float

    def components(value: Any) -> tuple[float, float]:
        number = complex(value)
        return part(number.real), part(number.imag)

    return components


def _single(value: float) -> float:
    """A number that struct packs as float32, which it refuses where the result is infinite."""
    return value if abs(value) < _SINGLE_END or value != value else math.copysign(math.inf, value)


def _half(value: float) -> float:
    """A number rounded to float16, once."""
    with np.errstate(over="ignore"):
        return float(np.float16(value))


def declarations(name: str, dtype: DType, words: Sequence[str]) -> list[str]:
    """Declarations of the variables that ``operand(name, dtype)`` names, from the words of a scalar.

    Parameters
    ----------
    name : str
        The operand's name.
    dtype : dtype
        Of the scalar.
    words : sequence of str
        WGSL of its words, as many as :func:`words_of` says.
    """
    if dtype.kind == "c":
        half = len(words) // 2
        part = dt.real_of(dtype)
        return [
            f"let {name}_re = {_value(part, words[:half])};",
            f"let {name}_im = {_value(part, words[half:])};",
        ]
    return [f"let {name} = {_value(dtype, words)};"]


def _value(dtype: DType, words: Sequence[str]) -> str:
    if dtype.kind == "b":
        return f"({words[0]} != 0u)"
    if dtype.name == "float16":
        return f"bitcast<f32>({words[0]})"
    type = scalar_of(dtype).name
    if len(words) == 1:
        return words[0] if type == "u32" else f"bitcast<{type}>({words[0]})"
    bits = f"((u64({words[1]}) << 32u) | u64({words[0]}))"
    return bits if type == "u64" else f"bitcast<{type}>({bits})"
