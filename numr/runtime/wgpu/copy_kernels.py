"""Copies at the speed of memory on GPUs: of neighbours, and of planes whose axes change places.

Drivers copy between buffers by engines that have a part of the memory's bandwidth; kernels have all of it. Where
neighbours of the result are not neighbours of the source, a workgroup takes a tile through its own memory, so that
neighbouring invocations read as well as write neighbours. Elements are moved as words.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from numr.layout import Layout
from numr.runtime.wgpu import texts
from numr.runtime.wgpu.checking import grid
from numr.runtime.wgpu.pipelines import KernelText, StorageBuffer
from numr.runtime.wgpu.texts import Parameters, Walk

if TYPE_CHECKING:
    from numr.runtime.wgpu.opened import OpenDevice

__all__ = ["Piece", "copy_neighbours", "is_turned", "turn"]

#: Bytes of the widest access, and what bindings start at multiples of.
_WIDE: Final = 16
#: Bytes that a workgroup has of its own memory on every device.
_WORKGROUP_BYTES: Final = 1 << 14
#: Axes shorter than this are not worth a tile.
_SHORT: Final = 8
#: Elements of 4 bytes that are read and written together.
_WIDTH: Final = 4


class Piece(NamedTuple):
    """A part of a buffer: the buffer and a byte in it."""

    buffer: Any
    offset: int


def copy_neighbours(opened: OpenDevice, source: Piece, target: Any, size: int) -> bool:
    """Copy a multiple of 16 bytes to the start of another buffer, if the source allows wide accesses."""
    alignment = opened.limits["min-storage-buffer-offset-alignment"]
    base = source.offset // alignment * alignment
    lead = source.offset - base
    if lead % _WIDE:
        return False
    window = opened.limits["max-storage-buffer-binding-size"] // alignment * alignment
    kernel = opened.pipelines.get(_STRAIGHT)
    limit = opened.limits["max-compute-workgroups-per-dimension"]
    for start in range(0, size, window - alignment):
        count = min(size - start, window - alignment)
        groups, row = grid(count // _WIDE, texts.WORKGROUP, limit)
        opened.queue.dispatch(
            kernel,
            [(target, start, count), (source.buffer, base + start, lead + count)],
            _STRAIGHT_PARAMS.pack(count // _WIDE, row, lead // _WIDE),
            groups,
        )
    return True


_STRAIGHT_PARAMS: Final = Parameters("count", "row", "start")
_STRAIGHT: Final = KernelText(
    f"{_STRAIGHT_PARAMS.text}{texts.invocation()}"
    "    if (i < params.count) { target_words[i] = source_words[params.start + i]; }\n}\n",
    (
        StorageBuffer("target_words", "read_write", "array<vec4<u32>>"),
        StorageBuffer("source_words", "read", "array<vec4<u32>>"),
    ),
    _STRAIGHT_PARAMS.size,
)


class _Variant(NamedTuple):
    """What a kernel is made for; everything else arrives at run time."""

    itemsize: int
    wide: bool  # whether four elements of 4 bytes are moved together
    rank: int  # of the walk through planes


class _Planes(NamedTuple):
    """A view as planes of two axes: the one along which the result has neighbours, and the one of the source."""

    #: Lengths of the two.
    across: int
    along: int
    #: Steps of the source along them, and of the result along the second.
    across_step: int
    along_step: int
    target_step: int
    #: Lengths of the other axes, and steps along them in the source and in the result.
    lengths: tuple[int, ...]
    steps: tuple[tuple[int, ...], tuple[int, ...]]

    @classmethod
    def of(cls, layout: Layout) -> _Planes | None:
        """The planes of a collapsed layout that is copied in C order; None where tiles do not pay."""
        if layout.ndim < 2 or layout.shape[-1] < _SHORT:
            return None
        *others, last = range(layout.ndim)
        strides = layout.strides
        moving = [axis for axis in others if strides[axis]]
        near = min(moving, key=lambda axis: abs(strides[axis]), default=last)
        if abs(strides[near]) >= abs(strides[last]) or layout.shape[near] < _SHORT:
            return None
        target = Layout.contiguous(layout.shape).strides
        rest = [axis for axis in others if axis != near]
        return cls(
            layout.shape[last],
            layout.shape[near],
            strides[last],
            strides[near],
            target[near],
            tuple(layout.shape[axis] for axis in rest),
            (tuple(strides[axis] for axis in rest), tuple(target[axis] for axis in rest)),
        )


def is_turned(layout: Layout) -> bool:
    """Whether neighbours in C order lie so that a copy by tiles pays."""
    return _Planes.of(layout.collapse()) is not None


def turn(opened: OpenDevice, source: Piece, layout: Layout, itemsize: int, target: Any) -> bool:
    """Copy a view in C order to the start of another buffer by tiles, if that pays and one binding holds each.

    Parameters
    ----------
    opened : OpenDevice
        The device.
    source : Piece
        Where the view's first element is.
    layout : Layout
        The view: its shape and strides, not empty and collapsed.
    itemsize : int
        Bytes of an element.
    target : GPUBuffer
        A buffer of a capacity that is a multiple of 16.
    """
    if itemsize not in (1, 2, 4, 8, 16) or source.offset % itemsize:
        return False
    planes = _Planes.of(layout)
    if planes is None:
        return False
    lanes = max(1, 4 // itemsize)
    if planes.across % lanes:
        return False  # words of the result would belong to two rows
    limits = opened.limits
    alignment = max(limits["min-storage-buffer-offset-alignment"], _WIDE)
    low, high = Layout(layout.shape, layout.strides).span()
    first, end = source.offset + low * itemsize, source.offset + high * itemsize
    base = first // alignment * alignment
    bound = min(end + _WIDE - 1 & -_WIDE, source.buffer.size) - base
    written = (layout.size * itemsize + _WIDE - 1) & -_WIDE
    if max(bound, written) > limits["max-storage-buffer-binding-size"]:
        return False
    start = (source.offset - base) // itemsize
    wide = (
        itemsize == 4
        and planes.along_step == 1
        and all(
            number % _WIDTH == 0
            for number in (start, planes.across, planes.across_step, *planes.steps[0])
        )
    )
    walk = Walk(planes.lengths, planes.steps)
    text, params, tile = _text(_Variant(itemsize, wide, walk.rank))
    tiles = -(-planes.across // tile), -(-planes.along // tile)
    total = tiles[0] * tiles[1] * math.prod(planes.lengths)
    groups, row = grid(total, 1, limits["max-compute-workgroups-per-dimension"])
    numbers = (
        *(row, total, *tiles, planes.across, planes.along),
        *(planes.across_step, planes.along_step, planes.target_step, start),
        *walk.packed(),
    )
    opened.queue.dispatch(
        opened.pipelines.get(text),
        [(target, 0, written), (source.buffer, base, bound)],
        params.pack(*numbers),
        groups,
    )
    return True


_FIELDS: Final = (
    *("row", "total", "tiles_across", "tiles_along", "across", "along"),
    *("across_step", "along_step", "target_step", "start"),
)


@cache
def _text(variant: _Variant) -> tuple[KernelText, Parameters, int]:
    """The kernel of a variant, its parameters, and the length of a tile's sides."""
    params = Parameters(*_FIELDS, words=3 * variant.rank)
    held = max(variant.itemsize, 4)
    tile = 1 << ((_WORKGROUP_BYTES // held).bit_length() - 1) // 2
    type = texts.moved_type(variant.itemsize)
    moves = _wide_moves(tile) if variant.wide else _moves(variant.itemsize, tile)
    if variant.wide:
        type = "vec4<u32>"
    text = (
        f"{params.text}"
        f"var<workgroup> held: array<{type}, {_WORKGROUP_BYTES // (16 if variant.wide else held)}>;\n"
        f"@compute @workgroup_size({texts.WORKGROUP})\n"
        "fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) t: u32) {\n"
        "    let group = id.x + id.y * params.row;\n"
        "    if (group >= params.total) { return; }\n"
        "    let band = group / params.tiles_across;\n"
        "    let plane = band / params.tiles_along;\n"
        f"{Walk.text(variant.rank, 2, 'plane')}"
        f"    let left = (group - band * params.tiles_across) * {tile}u;\n"
        f"    let top = (band - plane * params.tiles_along) * {tile}u;\n"
        "    let origin = params.start + at0 + left * params.across_step + top * params.along_step;\n"
        "    let to = at1 + left + top * params.target_step;\n"
        f"{moves}}}\n"
    )
    memory = f"array<{type}>"
    buffers = (
        StorageBuffer("target_words", "read_write", memory),
        StorageBuffer("source_words", "read", memory),
    )
    return KernelText(text, buffers, params.size), params, tile


def _moves(itemsize: int, tile: int) -> str:
    """The body for single elements.

    Reads are not guarded: those outside the view are not used. An element's place in the tile is changed such that
    neither a row nor a column has two elements in one bank of the workgroup's memory.
    """
    lanes = max(1, 4 // itemsize)
    rows = texts.WORKGROUP // tile
    steps = range(tile // rows)
    lines = [f"let near = t % {tile}u;", f"let far = t / {tile}u;"]
    lines.append("let begin = origin + far * params.across_step + near * params.along_step;")
    for s in steps:
        lines.append(f"let p{s} = begin + {s * rows}u * params.across_step;")
        word = f"source_words[p{s}]"
        if lanes > 1:
            bits = 32 // lanes
            word = (
                f"extractBits(source_words[p{s} / {lanes}u], {bits}u * (p{s} % {lanes}u), {bits}u)"
            )
        lines.append(f"let e{s} = {word};")
    for s in steps:
        x = f"(far + {s * rows}u)"
        lines.append(f"held[{x} * {tile}u + (near ^ ({x} & 31u))] = e{s};")
    lines.append("workgroupBarrier();")
    across = tile // lanes
    rows = texts.WORKGROUP // across
    lines += [f"let x = t % {across}u * {lanes}u;", f"let row = t / {across}u;"]
    for s in range(tile // rows):
        y = f"y{s}"
        lines += [
            f"let {y} = row + {s * rows}u;",
            f"if (left + x < params.across && top + {y} < params.along) {{",
        ]
        found = [f"held[(x + {k}u) * {tile}u + ({y} ^ ((x + {k}u) & 31u))]" for k in range(lanes)]
        bits = 32 // lanes
        value = " | ".join(f"({one} << {bits * k}u)" if k else one for k, one in enumerate(found))
        place = f"to + x + {y} * params.target_step"
        lines.append(
            f"    target_words[({place}) / {lanes}u] = {value};"
            if lanes > 1
            else f"    target_words[{place}] = {value};"
        )
        lines.append("}")
    return "".join(f"    {line}\n" for line in lines)


def _wide_moves(tile: int) -> str:
    """The body for elements of 4 bytes by fours: each invocation turns a block of 4 by 4 in its registers."""
    blocks = tile // _WIDTH
    rows = texts.WORKGROUP // blocks
    lines = [
        f"let near = t % {blocks}u;",
        f"let far = t / {blocks}u;",
        f"let begin = (origin + {_WIDTH}u * far * params.across_step) / {_WIDTH}u + near;",
        f"let step = params.across_step / {_WIDTH}u;",
    ]
    lines += [f"let v{k} = source_words[begin + {k}u * step];" for k in range(_WIDTH)]
    for k in range(_WIDTH):
        column = ", ".join(f"v{j}.{'xyzw'[k]}" for j in range(_WIDTH))
        place = f"({_WIDTH}u * near + {k}u) * {blocks}u + (far ^ near)"
        lines.append(f"held[{place}] = vec4<u32>({column});")
    lines.append("workgroupBarrier();")
    for s in range(tile // rows):
        y = f"y{s}"
        lines += [
            f"let {y} = far + {s * rows}u;",
            f"if (left + {_WIDTH}u * near < params.across && top + {y} < params.along) {{",
            f"    let place{s} = (to + {y} * params.target_step) / {_WIDTH}u + near;",
            f"    target_words[place{s}] = held[{y} * {blocks}u + (near ^ ({y} / {_WIDTH}u))];",
            "}",
        ]
    return "".join(f"    {line}\n" for line in lines)
