"""Moving bytes within a device: whole words by copies, everything else by two small kernels.

WebGPU copies multiples of 4 bytes between different buffers. Kernels see buffers as 32-bit words, so a byte is
written by writing the word that it is in. Each word has one invocation that writes it, and keeps the bytes
of the word that are not part of the result; two invocations never share a word.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from numr.errors import BackendLimitation
from numr.layout import Layout
from numr.runtime.wgpu.checking import grid
from numr.runtime.wgpu.copy_kernels import Piece, copy_neighbours, turn
from numr.runtime.wgpu.pipelines import KernelText, StorageBuffer

if TYPE_CHECKING:
    from numr.runtime.wgpu.opened import OpenDevice

__all__ = ["copy_bytes", "gather", "merge_word"]

_WORKGROUP = 256
#: Axes that parameters have room for: as many as fit into immediates of 128 bytes, and as many as a view can
#: have whose result fits into a buffer, since every axis left has two elements or more.
_FEW_AXES, _ALL_AXES = 12, 34
_HEADER_WORDS = 8
#: Views of up to this many axes have kernels of their own.
_UNROLLED = 4

_MERGE = KernelText(
    """
struct Params { word: u32, mask: u32, value: u32, zero: u32 }

@compute @workgroup_size(1)
fn main() {
    target_words[params.word] = (target_words[params.word] & ~params.mask) | params.value;
}
""",
    (StorageBuffer("target_words", "read_write"),),
    16,
)


def merge_word(opened: OpenDevice, buffer: Any, offset: int, data: bytes) -> None:
    """Write one to three bytes at the start of the word at ``offset``, and keep the rest of it."""
    alignment = opened.limits["min-storage-buffer-offset-alignment"]
    base = offset // alignment * alignment
    mask = (1 << 8 * len(data)) - 1
    opened.queue.dispatch(
        opened.pipelines.get(_MERGE),
        [(buffer, base, offset - base + 4)],
        struct.pack("<4I", (offset - base) // 4, mask, int.from_bytes(data, "little"), 0),
    )


def copy_bytes(
    opened: OpenDevice, source: Any, source_offset: int, target: Any, size: int, available: int
) -> None:
    """Copy bytes from one buffer to the start of another.

    Parameters
    ----------
    opened : OpenDevice
        The device.
    source, target : GPUBuffer
        Different buffers.
    source_offset, size : int
        The bytes to copy.
    available : int
        Bytes of the target that are anybody's; behind them lies only what fills the last word.
    """
    if source_offset % 4:
        _gather(opened, source, Layout((size,), (1,)), source_offset, 1, target, 0)
        return
    whole = 0
    if not opened.adapter.is_cpu:
        # Capacities are multiples of 16 bytes.
        whole = size + 15 & -16 if size == available else size & -16
        if whole and not copy_neighbours(opened, Piece(source, source_offset), target, whole):
            whole = 0
    if not whole:
        # Both buffers end with a whole word.
        whole = size + 3 & -4 if size == available else size & -4
        opened.queue.copy(source, source_offset, target, 0, whole)
    if whole < size:
        tail = Layout((size - whole,), (1,))
        _gather(opened, source, tail, source_offset + whole, 1, target, whole)


def gather(
    opened: OpenDevice,
    source: Any,
    byte_offset: int,
    shape: Sequence[int],
    strides: Sequence[int],
    elem_size: int,
    target: Any,
    available: int,
    target_offset: int = 0,
) -> None:
    """Copy the elements of a view to a buffer, in C order.

    Parameters
    ----------
    opened : OpenDevice
        The device.
    source, target : GPUBuffer
        Where the view lies, and where its elements go; if they are one buffer, to another part of it.
    byte_offset, shape, strides, elem_size
        The view, which lies inside the source: strides in elements.
    available : int
        Bytes of the target that are anybody's.
    target_offset : int
        Where in the target they go.
    """
    layout = Layout(tuple(shape), tuple(strides)).collapse()
    size = layout.size * elem_size
    if size == 0:
        return
    if layout.is_contiguous and source is not target and not target_offset:
        copy_bytes(opened, source, byte_offset, target, size, available)
    elif (
        source is target
        or target_offset
        or opened.adapter.is_cpu
        or not turn(opened, Piece(source, byte_offset), layout, elem_size, target)
    ):
        _gather(opened, source, layout, byte_offset, elem_size, target, target_offset)


def _gather(
    opened: OpenDevice,
    source: Any,
    layout: Layout,
    byte_offset: int,
    elem_size: int,
    target: Any,
    target_offset: int,
) -> None:
    """Do what :func:`gather` does by the kernel, to any place of the target.

    Everything is counted in units: the largest of 1, 2 and 4 bytes that elements and offsets are multiples of.
    """
    limits = opened.limits
    unit = math.gcd(elem_size, byte_offset, target_offset, 4)
    alignment = max(limits["min-storage-buffer-offset-alignment"], 4)
    window = limits["max-storage-buffer-binding-size"] // alignment * alignment
    low, high = layout.span()
    first, end = byte_offset + low * elem_size, byte_offset + high * elem_size

    # The source, in as many bindings as its size needs.
    source_base = first // alignment * alignment
    source_end = end + 3 & -4
    windows = [
        (source, start, min(window, source_end - start))
        for start in range(source_base, source_end, window)
    ]
    if len(windows) + 1 > limits["max-storage-buffers-per-shader-stage"]:
        raise BackendLimitation(
            "wgpu",
            "copy_strided",
            f"the view spans {end - first} bytes, but {opened.adapter} has the limits "
            f"max-storage-buffer-binding-size of {window} and max-storage-buffers-per-shader-stage of "
            f"{limits['max-storage-buffers-per-shader-stage']}. Copy smaller views.",
        )
    axes = [
        (length, stride * elem_size // unit)
        for length, stride in zip(reversed(layout.shape), reversed(layout.strides), strict=True)
    ]
    variant = _Variant(
        unit=unit,
        whole=unit == elem_size,
        axes=len(axes) if len(axes) <= _UNROLLED else None,
        room=_FEW_AXES if len(axes) <= _FEW_AXES else _ALL_AXES,
        windows=len(windows),
        window_words=window // 4,
        aliased=source is target,
    )
    kernel = opened.pipelines.get(_text(variant))

    # The target, one dispatch for each binding.
    target_base = target_offset // alignment * alignment
    lead = (target_offset - target_base) // unit
    units = layout.size * elem_size // unit
    words = -(-(lead + units) * unit // 4)
    for start in range(0, words, window // 4):
        count = min(window // 4, words - start)
        groups, row = grid(count, _WORKGROUP, limits["max-compute-workgroups-per-dimension"])
        params = struct.pack(
            f"<{_HEADER_WORDS}I",
            *(units, start, lead, (byte_offset - source_base) // unit),
            *(elem_size // unit, len(axes), row, count),
        )
        for length, step in axes:
            params += struct.pack("<2I", length, step & 0xFFFFFFFF)
        opened.queue.dispatch(
            kernel,
            [(target, target_base + 4 * start, 4 * count), *windows],
            params.ljust(kernel.text.params_size, b"\0"),
            groups,
        )


class _Variant(NamedTuple):
    """What a kernel is made for; everything else arrives at run time."""

    unit: int
    whole: bool  # whether an element is one unit
    axes: int | None  # None for any number, in a loop
    room: int  # axes that the parameters have room for
    windows: int
    window_words: int
    aliased: bool


@cache
def _text(variant: _Variant) -> KernelText:
    """The kernel of a variant.

    Byte offsets of buffers need all 32 bits; sums and products that wrap around are right, as the final
    offset is not negative and fits.
    """
    access: Literal["read", "read_write"] = "read_write" if variant.aliased else "read"
    buffers = [
        StorageBuffer("target_words", "read_write"),
        *(StorageBuffer(f"source{i}", access) for i in range(variant.windows)),
    ]
    body = f"""
struct Params {{
    units: u32,  // in the result
    start: u32,  // word of the result that this dispatch begins with
    lead: u32,  // units in the target before the result
    origin: u32,  // unit of the source that the view begins with
    element: u32,  // units in an element
    axes: u32,
    row: u32,  // invocations in a row of workgroups
    words: u32,  // for this dispatch to write
    axis: array<vec4<u32>, {variant.room // 2}>,  // lengths and steps of two axes each, the innermost first
}}

fn load(word: u32) -> u32 {{{_load(variant)}
}}

fn position(unit: u32) -> u32 {{{_position(variant)}
    return place;
}}

@compute @workgroup_size({_WORKGROUP})
fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
    let word = id.x + id.y * params.row;
    if (word >= params.words) {{ return; }}
    let at = (params.start + word) * {4 // variant.unit}u;{_store(variant.unit)}
}}
"""
    return KernelText(body, tuple(buffers), 4 * _HEADER_WORDS + 8 * variant.room)


def _load(variant: _Variant) -> str:
    if variant.windows == 1:
        return """
    return source0[word];"""
    size = variant.window_words
    cases = "".join(
        f"""
        case {i}u: {{ return source{i}[word % {size}u]; }}"""
        for i in range(1, variant.windows)
    )
    return f"""
    switch word / {size}u {{{cases}
        default: {{ return source0[word]; }}
    }}"""


def _position(variant: _Variant) -> str:
    if variant.whole:
        text = """
    var element = unit;
    var place = params.origin;"""
    else:
        text = """
    var element = unit / params.element;
    var place = params.origin + (unit - element * params.element);"""
    if variant.axes is None:
        return f"""{text}
    for (var i = 0u; i < params.axes; i++) {{
        let pair = params.axis[i / 2u];
        let axis = select(pair.xy, pair.zw, i % 2u == 1u);
        place += element % axis.x * axis.y;
        element /= axis.x;
    }}"""
    # Divisions are what this costs; the outermost axis needs none.
    for i in range(variant.axes):
        axis = f"params.axis[{i // 2}].{'xy' if i % 2 == 0 else 'zw'}"
        if i + 1 < variant.axes:
            text += f"""
    let next{i} = element / {axis}.x;
    place += (element - next{i} * {axis}.x) * {axis}.y;
    element = next{i};"""
        else:
            text += f"""
    place += element * {axis}.y;"""
    return text


def _store(unit: int) -> str:
    if unit == 4:
        return """
    if (at >= params.lead && at - params.lead < params.units) {
        target_words[word] = load(position(at - params.lead));
    }"""
    per_word, bits, ones = 4 // unit, 8 * unit, (1 << 8 * unit) - 1
    return f"""
    var value = 0u;
    var mask = 0u;
    for (var i = 0u; i < {per_word}u; i++) {{
        let unit = at + i;
        if (unit >= params.lead && unit - params.lead < params.units) {{
            let place = position(unit - params.lead);
            let found = load(place / {per_word}u) >> (place % {per_word}u * {bits}u) & {ones}u;
            value |= found << (i * {bits}u);
            mask |= {ones}u << (i * {bits}u);
        }}
    }}
    if (mask == 0xffffffffu) {{
        target_words[word] = value;
    }} else if (mask != 0u) {{
        target_words[word] = (target_words[word] & ~mask) | value;
    }}"""
