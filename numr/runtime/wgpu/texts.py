"""Parts that the texts of kernels share: elements in memory, parameters, and walking through strided arrays.

A kernel binds each array as an array of the type that :func:`memory_type` names. Elements of 8 and 16 bits are
packed into 32-bit words, the first in the lowest bits; such a word is written by one invocation as a whole.
Parameters are 32-bit words, of which the first is always zero: it is what :func:`numr.codegen.wgsl.prelude` takes to
keep compilers from simplifying.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

import numpy as np

from numr.codegen import wgsl
from numr.codegen.calls import taken
from numr.codegen.elementwise import scalar_of
from numr.codegen.expr import F32
from numr.dtypes import DType
from numr.layout.strides import merge_axes
from numr.runtime.wgpu.pipelines import StorageBuffer

__all__ = [
    "WORKGROUP",
    "Parameters",
    "Walk",
    "invocation",
    "lanes",
    "load",
    "memory_type",
    "moved_type",
    "packed",
    "prelude",
    "scalar_type",
    "source",
    "stored",
    "taken",
    "target",
    "unpacked",
    "word",
]

#: Invocations in a workgroup of a kernel that goes over elements one by one.
WORKGROUP: Final = 256

_MEMORY: Final = {
    "int32": "i32",
    "uint32": "u32",
    "int64": "i64",
    "uint64": "u64",
    "float32": "f32",
    "float64": "f64",
    "complex64": "vec2<f32>",
    "complex128": "vec2<f64>",
}


def lanes(dtype: DType) -> int:
    """How many elements share a 32-bit word: 4, 2, or 1 for those that have a word or more to themselves."""
    return max(1, 4 // dtype.itemsize)


def memory_type(dtype: DType) -> str:
    """The WGSL type of the elements of an array in memory, ``u32`` for words of packed elements."""
    return _MEMORY.get(dtype.name, "u32")


def moved_type(itemsize: int) -> str:
    """The WGSL type of elements that are moved without being looked at; every device has it.

    Elements of 1 and 2 bytes share words here as well.
    """
    return {8: "vec2<u32>", 16: "vec4<u32>"}.get(itemsize, "u32")


def source(name: str, dtype: DType, *, writable: bool = False) -> StorageBuffer:
    """A buffer that a kernel reads; ``writable`` where the same buffer is also written by it."""
    access = "read_write" if writable else "read"
    return StorageBuffer(name, access, f"array<{memory_type(dtype)}>")  # type: ignore[arg-type]


def target(name: str, dtype: DType) -> StorageBuffer:
    """A buffer that a kernel writes."""
    return StorageBuffer(name, "read_write", f"array<{memory_type(dtype)}>")


def word(itemsize: int) -> DType:
    """An unsigned dtype whose elements are moved without being looked at; 16 bytes are two of 8."""
    return np.dtype(f"u{itemsize}")


def load(name: str, dtype: DType, buffer: str, index: str) -> list[str]:
    """Declarations of the variables that ``operand(name, dtype)`` names, from an element of a buffer.

    Parameters
    ----------
    name : str
        The operand's name.
    dtype : dtype
        Of the buffer's elements.
    buffer, index : str
        The buffer, and the element's index of type u32; a name or text in parentheses.
    """
    count = lanes(dtype)
    if count == 1:
        return unpacked(name, dtype, f"{buffer}[{index}]", index)
    return unpacked(name, dtype, f"{buffer}[{index} >> {count.bit_length() - 1}u]", index)


def unpacked(name: str, dtype: DType, element: str, index: str) -> list[str]:
    """What :func:`load` gives, from WGSL of what is in memory: ``element``, or the word that it is packed in."""
    count = lanes(dtype)
    if count == 1:
        if dtype.kind == "c":
            return [f"let {name}_re = {element}.x;", f"let {name}_im = {element}.y;"]
        return [f"let {name} = {element};"]
    bits = 32 // count
    place = f"{bits}u * ({index} & {count - 1}u)"
    if dtype.kind == "i":
        return [f"let {name} = extractBits(bitcast<i32>({element}), {place}, {bits}u);"]
    value = f"(({element} >> ({place})) & {(1 << bits) - 1}u)"
    if dtype.kind == "b":
        return [f"let {name} = ({value} != 0u);"]
    if dtype.kind == "f":
        # As f32, with the sign of the bits: devices lose that of NaN when they convert.
        return [
            f"let {name}_half = {value};",
            f"let {name}_size = bitcast<u32>(unpack2x16float({name}_half).x) & 0x7fffffffu;",
            f"let {name} = bitcast<f32>({name}_size | (({name}_half & 0x8000u) << 16u));",
        ]
    return [f"let {name} = {value};"]


def stored(dtype: DType, results: Sequence[str]) -> str:
    """What is written to memory for an element: of :func:`memory_type`, or the low bits of a word to be packed."""
    if dtype.kind == "c":
        return f"{memory_type(dtype)}({results[0]}, {results[1]})"
    value = results[0]
    count = lanes(dtype)
    if count == 1:
        return value
    if dtype.kind == "b":
        return f"select(0u, 1u, {value})"
    if dtype.kind == "f":
        return f"(pack2x16float(vec2<f32>(f32({value}), 0.0f)) & 0xffffu)"
    mask = f"{(1 << 32 // count) - 1}u"
    return f"(bitcast<u32>({value}) & {mask})" if dtype.kind == "i" else f"({value} & {mask})"


def packed(dtype: DType, element: str, indent: str = "    ") -> str:
    """Statements that make one word ``packed_word`` of the elements ``first``, ``first + 1``, ... below ``count``.

    Parameters
    ----------
    dtype : dtype
        Of elements that share a word.
    element : str
        Name of a function from an element's index to its bits, as :func:`stored` gives them.
    """
    count = lanes(dtype)
    return "".join(
        f"{indent}{line}\n"
        for line in (
            "var packed_word = 0u;",
            f"for (var lane = 0u; lane < {count}u; lane++) {{",
            f"    if (first + lane < count) {{ packed_word |= {element}(first + lane) << ({32 // count}u * lane); }}",
            "}",
        )
    )


def prelude(types: frozenset[str]) -> str:
    """The functions that printed expressions of these types call, in a kernel with :class:`Parameters`."""
    return wgsl.prelude(types, "params.zero")


def scalar_type(dtype: DType) -> str:
    """The WGSL type of variables for elements, or components of complex ones: f32 for float16."""
    return wgsl.type_name(F32 if dtype.name == "float16" else scalar_of(dtype))


class Parameters:
    r"""The struct ``Params`` of a kernel: words with names, and an array of words.

    Parameters
    ----------
    *names : str
        Fields of type u32 after ``zero``, in the order in which :meth:`pack` takes them.
    words : int
        Length of the array that follows them, read by :meth:`word`.

    Examples
    --------
    >>> params = Parameters("count", words=2)
    >>> params.text
    'struct Params { zero: u32, count: u32, pad0: u32, pad1: u32, words: array<vec4<u32>, 1> }\n'
    >>> params.word(1)
    'params.words[0].y'
    >>> params.pack(7, -1, 3) == bytes([0, 0, 0, 0, 7, *[0] * 11, *[255] * 4, 3, *[0] * 11])
    True
    """

    def __init__(self, *names: str, words: int = 0) -> None:
        fields = ["zero", *names]
        fields += [f"pad{i}" for i in range(-len(fields) % 4)]
        self._head = len(fields)
        self._names = len(names)
        self._vectors = -(-words // 4)
        parts = [f"{field}: u32" for field in fields]
        if self._vectors:
            parts.append(f"words: array<vec4<u32>, {self._vectors}>")
        self.text = f"struct Params {{ {', '.join(parts)} }}\n"
        self.size = 4 * self._head + 16 * self._vectors
        self._format = struct.Struct(f"<{self.size // 4}I")

    @staticmethod
    def word(index: int | str) -> str:
        """WGSL of a word of the array; of one that is not known before, ``index`` is WGSL of type u32."""
        if isinstance(index, int):
            return f"params.words[{index // 4}].{'xyzw'[index % 4]}"
        return f"params.words[({index}) >> 2u][({index}) & 3u]"

    def pack(self, *values: int) -> bytes:
        """The bytes of the values, which are taken modulo 2**32: first those of the fields, then the words."""
        named = [value & 0xFFFFFFFF for value in values[: self._names]]
        rest = [value & 0xFFFFFFFF for value in values[self._names :]]
        head = [0, *named] + [0] * (self._head - 1 - self._names)
        return self._format.pack(*head, *rest, *[0] * (4 * self._vectors - len(rest)))

    def packer(self, formats: str) -> struct.Struct:
        """The parameters as a struct whose first members are ``zero`` and the fields, up to the words of the array.

        Parameters
        ----------
        formats : str
            Codes of :mod:`struct` for what the array begins with; the rest of it is zero.
        """
        known = struct.calcsize(f"<{formats}")
        rest = self.size - 4 * self._head - known
        return struct.Struct(
            f"<{self._names + 1}I{4 * (self._head - 1 - self._names)}x{formats}{rest}x"
        )


def invocation(size: int = WORKGROUP, name: str = "main") -> str:
    """The line that a kernel's function starts with, and the declaration of the invocation's number ``i``.

    The parameters have a field ``row``: invocations in a row of workgroups, as ``checking.grid`` gives it.
    """
    return (
        f"@compute @workgroup_size({size})\n"
        f"fn {name}(@builtin(global_invocation_id) id: vec3<u32>) {{\n"
        "    let i = id.x + id.y * params.row;\n"
    )


class Walk:
    """How a kernel walks through arrays of one shape: merged lengths, and each array's steps in elements.

    Parameters
    ----------
    shape : tuple of int
        The shape, without lengths of 0.
    strides : sequence of tuple of int
        Strides of each array, in elements.

    Attributes
    ----------
    rank : int
        For how many axes the kernel is made: a number of few, so that few kernels are.
    words : int
        How many words of parameters the walk takes.
    """

    RANKS: Final = (1, 2, 3, 4, 6, 10, 34)

    def __init__(self, shape: tuple[int, ...], strides: Sequence[tuple[int, ...]]) -> None:
        self.lengths, self.steps = merge_axes(shape, strides)
        axes = len(self.lengths)
        # Every axis left has two elements or more, and a buffer less than 2**34.
        self.rank = next(rank for rank in self.RANKS if axes <= rank)
        self.words = self.rank * (1 + len(self.steps))

    def packed(self) -> list[int]:
        """Lengths and steps as words of parameters."""
        missing = self.rank - len(self.lengths)
        numbers = [1] * missing + self.lengths
        for steps in self.steps:
            numbers += [0] * missing + steps
        return numbers

    @staticmethod
    def text(rank: int, arrays: int, index: str, start: int = 0, indent: str = "    ") -> str:
        """Declarations of ``at0``, ``at1``, ...: where an element lies in each array, from its first one.

        Steps may be negative: sums that wrap around are right in the end.

        Parameters
        ----------
        rank, arrays : int
            As of the walk.
        index : str
            The element's number in C order, of type u32.
        start : int
            The first word of the parameters' array that belongs to the walk.
        """

        def word(number: int) -> str:
            return Parameters.word(start + number)

        lines = [f"var rest = {index};"] + [f"var at{k} = 0u;" for k in range(arrays)]
        for axis in range(rank - 1, 0, -1):
            lines.append(f"{{ let next = rest / {word(axis)};")
            lines.append(f"  let place = rest - next * {word(axis)};")
            lines += [f"  at{k} += place * {word((k + 1) * rank + axis)};" for k in range(arrays)]
            lines.append("  rest = next; }")
        lines += [f"at{k} += rest * {word((k + 1) * rank)};" for k in range(arrays)]
        return "".join(f"{indent}{line}\n" for line in lines)
