"""Parts that the texts of kernels share: elements in memory, and walking through arrays with any strides."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np

from numr.codegen import cuda
from numr.codegen.calls import taken
from numr.codegen.elementwise import scalar_of
from numr.dtypes import DType

__all__ = [
    "BLOCK",
    "COPY_LATER",
    "NARROW",
    "VECTOR",
    "dims_size",
    "dims_type",
    "head",
    "load",
    "memory_type",
    "pack_dims",
    "power_of_two",
    "quotient",
    "rank_for",
    "signature",
    "store",
    "taken",
    "walk",
    "word",
]

#: Threads in a block.
BLOCK: Final = 256
#: Fewer elements are counted in 31 bits, with room for what a grid goes beyond them.
NARROW: Final = (1 << 31) - (1 << 20)

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
#: A ``numr_vec`` is read and written by one instruction, so it has to lie aligned; a ``numr_row`` need not.
_STRUCTS: Final = """
struct numr_c64 { float re, im; };
struct numr_c128 { double re, im; };
template <typename T, int N> struct __align__(sizeof(T) * N) numr_vec { T v[N]; };
template <typename T, int N> struct numr_row { T v[N]; };
"""
#: Copies of 4, 8 or 16 bytes into memory that a block shares, which threads need not wait for: they go on, commit what they
#: have asked for so far, and wait until at most so many of the commitments are open.
COPY_LATER: Final = """
#if __CUDA_ARCH__ >= 800
#define NUMR_LATER(...) asm volatile(__VA_ARGS__)
#else
#define NUMR_LATER(...)
#endif
template <typename T> __device__ __forceinline__ void numr_copy_later(T* to, const T* from) {
#if __CUDA_ARCH__ >= 800
    const unsigned int place = (unsigned int)__cvta_generic_to_shared(to);
    if (sizeof(T) == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(place), "l"(from) : "memory");
        return;
    }
    if (sizeof(T) == 8 || sizeof(T) == 4) {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" :: "r"(place), "l"(from), "n"(sizeof(T) == 8 ? 8 : 4)
                     : "memory");
        return;
    }
#endif
    *to = *from;
}
__device__ __forceinline__ void numr_commit() { NUMR_LATER("cp.async.commit_group;" ::: "memory"); }
template <int N> __device__ __forceinline__ void numr_wait() { NUMR_LATER("cp.async.wait_group %0;" :: "n"(N) : "memory"); }
"""
#: Bytes that one instruction reads or writes at most.
VECTOR: Final = 16


def memory_type(dtype: DType) -> str:
    """The C++ type that elements have in memory."""
    return _MEMORY[dtype.name]


def head() -> str:
    """What every text begins with."""
    return cuda.PRELUDE + _STRUCTS


def signature(
    parameters: str, name: str = "numr_kernel", resident: int = 1, threads: int = BLOCK
) -> str:
    """The head of a kernel's definition; ``resident`` blocks at least have to fit on a multiprocessor."""
    bounds = f"__launch_bounds__({threads}, {resident})"
    return f'extern "C" __global__ void {bounds} {name}({parameters}) {{\n'


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


def power_of_two(number: int) -> int:
    """The least power of two that is not below a positive number."""
    return 1 << (number - 1).bit_length()


# ------------------------------------------------------------------------ walks
_RANKS: Final = (0, 1, 2, 3, 5, 9, 64)


def rank_for(axes: int) -> int:
    """For how many axes a kernel is made that walks through so many: a number of few, so that few kernels are."""
    return next(rank for rank in _RANKS if axes <= rank)


def dims_type(rank: int, arrays: int, inner: int = 0, name: str = "numr_dims") -> str:
    """The type of the argument that :func:`walk` reads, with ``inner`` further numbers."""
    if not rank:
        return f"struct {name} {{ long long inner[{inner or 1}]; }};\n"
    return (
        f"struct {name} {{ long long step[{arrays * rank}], n[{rank}], inner[{inner or 1}]; "
        f"unsigned int magic[{rank}], shift[{rank}]; }};\n"
    )


def dims_size(rank: int, arrays: int, inner: int = 0) -> int:
    """Bytes of that type."""
    return 8 * (arrays * rank + 2 * rank + (inner or 1))


def pack_dims(
    rank: int, lengths: Sequence[int], steps: Sequence[Sequence[int]], inner: Sequence[int] = ()
) -> bytes:
    """Lengths, and for each array the steps, as that argument; what is missing to the rank are leading axes of 1."""
    missing = rank - len(lengths)
    numbers: list[int] = []
    for own in steps:
        numbers += [0] * missing
        numbers += own
    numbers += [1] * missing
    numbers += lengths
    numbers += inner or (0,)
    magics = [_magic(n) for n in lengths]
    magics = [(1, 0)] * missing + magics
    if not rank:
        return struct.pack(f"{len(numbers)}q", *numbers)
    return struct.pack(
        f"{len(numbers)}q{2 * rank}I", *numbers, *(m for m, _ in magics), *(s for _, s in magics)
    )


@cache
def _magic(length: int) -> tuple[int, int]:
    """Numbers ``m`` and ``s`` with ``x // length == (x * m // 2**32 + x) >> s`` for each x below 2**31."""
    if length >= 1 << 31:
        return (1, 0)  # such arrays are walked in 64 bits
    shift = (length - 1).bit_length()
    return (1 << 32) * ((1 << shift) - length) // length + 1, shift


def quotient(index: str, axis: int, wide: bool, dims: str = "dims") -> str:
    """A number divided by the length of an axis."""
    if wide:
        return f"{index} / (unsigned long long){dims}.n[{axis}]"
    return f"(__umulhi({index}, {dims}.magic[{axis}]) + {index}) >> {dims}.shift[{axis}]"


def walk(
    rank: int, arrays: int, index: str, wide: bool, indent: str = "    ", dims: str = "dims"
) -> str:
    """Declarations of ``at0``, ``at1``, ...: how many bytes into each array an element lies.

    ``wide`` says that elements are counted in more than 31 bits.
    """
    type = "unsigned long long" if wide else "unsigned int"
    lines = [f"{type} rest = ({type})({index});"] if rank else []
    lines += [f"long long at{k} = 0;" for k in range(arrays)]
    for axis in range(rank - 1, 0, -1):
        lines.append(f"{{ const {type} next = {quotient('rest', axis, wide, dims)};")
        lines.append(
            f"  const long long place = (long long)(rest - next * ({type}){dims}.n[{axis}]);"
        )
        lines += [f"  at{k} += place * {dims}.step[{k * rank + axis}];" for k in range(arrays)]
        lines.append("  rest = next; }")
    if rank:
        lines += [f"at{k} += (long long)rest * {dims}.step[{k * rank}];" for k in range(arrays)]
    return "".join(f"{indent}{line}\n" for line in lines)
