"""Parts of kernel texts that work on four neighbouring elements at once, by the widest accesses there are.

An array is bound as one of *pieces*: of 16 bytes, or of what four elements of 8 or 16 bits have. A kernel reads and
writes whole pieces, also where the array ends within one.

Software adapters take their time for each word that they read or write, of 32 bits or 64. *Doubled* pieces are of words
of 64 bits, for elements of which several are in one; a kernel that has them needs :data:`DOUBLES`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from numr.dtypes import DType
from numr.runtime.wgpu.pipelines import StorageBuffer
from numr.runtime.wgpu.texts import memory_type

__all__ = ["DOUBLES", "WIDTH", "element", "loads", "source", "stores", "target"]

#: Elements that are worked on together.
WIDTH: Final = 4

_COMPONENTS: Final = "xyzw"


#: Functions that take words of 64 bits apart and put them together.
DOUBLES: Final = """\
fn halves(v: u64) -> vec2<u32> { return vec2(u32(v), u32(v >> 32u)); }
fn whole(v: vec2<u32>) -> u64 { return u64(v.x) | (u64(v.y) << 32u); }
fn quarters(v: vec2<u64>) -> vec4<u32> { return vec4(halves(v.x), halves(v.y)); }
fn wholes(v: vec4<u32>) -> vec2<u64> { return vec2(whole(v.xy), whole(v.zw)); }
"""


def _is_doubled(dtype: DType, doubled: bool) -> bool:
    return doubled and (dtype.itemsize in (2, 4) or dtype.name == "complex64")


def _piece_type(dtype: DType, doubled: bool = False) -> str:
    if _is_doubled(dtype, doubled):
        return "u64" if dtype.itemsize == 2 else "vec2<u64>"
    if dtype.name == "complex64":
        return "vec4<f32>"
    if dtype.itemsize == 16:
        return memory_type(dtype)
    return {
        1: "u32",
        2: "vec2<u32>",
        4: f"vec4<{memory_type(dtype)}>",
        8: f"vec2<{memory_type(dtype)}>",
    }[dtype.itemsize]


def _pieces(dtype: DType) -> int:
    return max(1, WIDTH * dtype.itemsize // 16)


def source(
    name: str, dtype: DType, *, writable: bool = False, doubled: bool = False
) -> StorageBuffer:
    """A buffer of pieces that a kernel reads; ``writable`` where the same buffer is also written by it."""
    access: Literal["read", "read_write"] = "read_write" if writable else "read"
    return StorageBuffer(name, access, f"array<{_piece_type(dtype, doubled)}>")


def target(name: str, dtype: DType, *, doubled: bool = False) -> StorageBuffer:
    """A buffer of pieces that a kernel writes."""
    return StorageBuffer(name, "read_write", f"array<{_piece_type(dtype, doubled)}>")


def loads(name: str, dtype: DType, buffer: str, index: str, *, doubled: bool = False) -> list[str]:
    """Declarations of the pieces with the elements ``4 * index`` to ``4 * index + 3`` of a buffer."""
    count = _pieces(dtype)
    lines = []
    for k in range(count):
        place = index if count == 1 else f"{count}u * {index} + {k}u"
        piece = f"{buffer}[{place}]"
        if _is_doubled(dtype, doubled):
            if dtype.itemsize == 2:
                piece = f"halves({piece})"
            else:
                piece = f"bitcast<{_piece_type(dtype)}>(quarters({piece}))"
        lines.append(f"let {name}_{k} = {piece};")
    return lines


def element(name: str, dtype: DType, lane: int) -> str:
    """What :func:`loads` read of one of the four elements, as it is in memory: the element or its word."""
    if dtype.itemsize == 1:
        return f"{name}_0"
    if dtype.itemsize == 2:
        return f"{name}_0.{_COMPONENTS[lane // 2]}"
    if dtype.name == "complex64":
        return f"{name}_{lane // 2}.{('xy', 'zw')[lane % 2]}"
    per_piece = WIDTH // _pieces(dtype)
    piece = f"{name}_{lane // per_piece}"
    return piece if per_piece == 1 else f"{piece}.{_COMPONENTS[lane % per_piece]}"


def stores(
    dtype: DType, buffer: str, index: str, values: Sequence[str], *, doubled: bool = False
) -> list[str]:
    """Statements that write four elements, which are given as :func:`numr.runtime.wgpu.texts.stored` has them."""
    if dtype.itemsize <= 2:
        per_word = 4 // dtype.itemsize
        bits = 32 // per_word
        words = [
            " | ".join(
                value if k == 0 else f"({value} << {bits * k}u)"
                for k, value in enumerate(values[start : start + per_word])
            )
            for start in range(0, WIDTH, per_word)
        ]
        packed = words[0] if len(words) == 1 else f"vec2<u32>({', '.join(words)})"
        if _is_doubled(dtype, doubled):
            packed = f"whole({packed})"
        return [f"{buffer}[{index}] = {packed};"]
    count = _pieces(dtype)
    per_piece = WIDTH // count
    lines = []
    for k in range(count):
        members = values[k * per_piece : (k + 1) * per_piece]
        piece = members[0] if per_piece == 1 else f"{_piece_type(dtype)}({', '.join(members)})"
        if _is_doubled(dtype, doubled):
            piece = f"wholes(bitcast<vec4<u32>>({piece}))"
        place = index if count == 1 else f"{count}u * {index} + {k}u"
        lines.append(f"{buffer}[{place}] = {piece};")
    return lines
