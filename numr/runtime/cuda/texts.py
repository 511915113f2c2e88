"""Parts that the texts of kernels share: elements in memory, and walking through arrays with any strides."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from numr.codegen import cuda
from numr.codegen.calls import taken
from numr.codegen.elementwise import scalar_of
from numr.dtypes import DType
from numr.layout.strides import merge_axes

__all__ = [
    "BLOCK",
    "Walk",
    "head",
    "load",
    "memory_type",
    "pack",
    "store",
    "taken",
    "walk",
    "word",
]

#: Threads in a block.
BLOCK: Final = 256

_MEMORY: Final = {
    "bool": "unsigned char",
    "int8": "signed char",
    "int16": "short",
    "int32": "int",
    "int64": "long long",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long long",
    "float16": "unsigned short",
    "float32": "float",
    "float64": "double",
    "complex64": "numr_c64",
    "complex128": "numr_c128",
}
_STRUCTS: Final = """
struct numr_c64 { float re, im; };
struct numr_c128 { double re, im; };
"""


def memory_type(dtype: DType) -> str:
    """The C++ type that elements have in memory."""
    return _MEMORY[dtype.name]


def head() -> str:
    """What every text begins with."""
    return cuda.PRELUDE + _STRUCTS


def word(size: int) -> DType:
    """A dtype of the same size whose elements are moved without being looked at."""
    return _WORDS[size]


_WORDS: Final = {
    **{size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)},
    16: np.dtype("complex128"),
}


def load(name: str, dtype: DType, text: str) -> list[str]:
    """Declarations of the variables that ``operand(name, dtype)`` names, from an element as it is in memory."""
    if dtype.kind == "c":
        part = cuda.type_name(scalar_of(dtype))
        return [f"const {part} {name}_re = {text}.re, {name}_im = {text}.im;"]
    value = text
    if dtype.name == "float16":
        value = f"numr_from_half({text})"
    elif dtype.kind == "b":
        value = f"({text} != 0)"
    return [f"const {cuda.type_name(scalar_of(dtype))} {name} = {value};"]


def store(target: str, dtype: DType, results: Sequence[str]) -> str:
    """The statement that writes an element into memory."""
    if dtype.kind == "c":
        return f"{target} = {memory_type(dtype)}{{{results[0]}, {results[1]}}};"
    value = results[0]
    if dtype.name == "float16":
        value = f"numr_to_half({value})"
    return f"{target} = ({memory_type(dtype)})({value});"


class Walk:
    """How a kernel walks through arrays of one shape: merged lengths, and each array's steps in bytes."""

    __slots__ = ("lengths", "size", "steps")

    def __init__(
        self, shape: tuple[int, ...], strides: Sequence[tuple[int, ...]], size: int
    ) -> None:
        self.lengths, self.steps = merge_axes(shape, strides)
        self.size = size

    @property
    def rank(self) -> int:
        """For how many axes the kernel is made: a number of few, so that few kernels are."""
        axes = len(self.lengths)
        for rank in _RANKS:
            if axes <= rank:
                return rank
        raise AssertionError("arrays have at most 64 axes")

    @property
    def wide(self) -> bool:
        """Whether elements are counted in 64 bits."""
        return self.size >= 1 << 31

    def packed(self) -> np.ndarray[Any, Any]:
        """Lengths and steps as the kernel's argument."""
        rank = self.rank
        missing = rank - len(self.lengths)
        numbers = [1] * missing + self.lengths
        for steps in self.steps:
            numbers += [0] * missing + steps
        return pack(numbers)


_RANKS: Final = (1, 2, 3, 4, 6, 10, 64)


def pack(numbers: Sequence[int]) -> np.ndarray[Any, Any]:
    """64-bit integers as one kernel argument, which is passed by value."""
    data = struct.pack(f"{len(numbers)}q", *numbers)
    return np.frombuffer(data, f"V{len(data)}")


def walk(rank: int, arrays: int, index: str, wide: bool, indent: str = "    ") -> str:
    """Declarations of ``at0``, ``at1``, ...: how many bytes into each array an element lies.

    The argument ``dims`` has the lengths and, for each array, the steps.
    """
    type = "unsigned long long" if wide else "unsigned int"
    lines = [f"{type} rest = ({type})({index});"]
    lines += [f"long long at{k} = 0;" for k in range(arrays)]
    for axis in range(rank - 1, 0, -1):
        lines.append(f"{{ const {type} length = ({type})dims.n[{axis}], next = rest / length;")
        lines.append("  const long long place = (long long)(rest - next * length);")
        lines += [f"  at{k} += place * dims.n[{(k + 1) * rank + axis}];" for k in range(arrays)]
        lines.append("  rest = next; }")
    lines += [f"at{k} += (long long)rest * dims.n[{(k + 1) * rank}];" for k in range(arrays)]
    return "".join(f"{indent}{line}\n" for line in lines)


def dims_type(rank: int, arrays: int, name: str = "numr_dims") -> str:
    """The type of the argument that :func:`walk` reads."""
    return f"struct {name} {{ long long n[{rank * (arrays + 1)}]; }};\n"
