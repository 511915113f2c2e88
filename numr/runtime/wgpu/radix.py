"""Radix sort of long lines, for GPUs.

Digits of 8 bits, the lowest first; each pass is stable, so that the order of the last one is that of all. A line is
cut into tiles, each the work of a workgroup. A pass first counts the digits of each tile, sums these counts up, and
then moves each element to its place: behind the elements of lower digits in the line, those of the same digit in
tiles before, and those of the same digit before it in its tile.

The last of these three numbers needs no more than the workgroup's memory. Of 32 elements at a time each sets its bit
in a mask that belongs to its digit; the bits below its own are elements of the same digit before it. Elements
are put in order within the tile before they are written, so that those of one digit are written side by side.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from numr import dtypes as dt
from numr.runtime.wgpu.ordering import Order
from numr.runtime.wgpu.pipelines import KernelText, StorageBuffer
from numr.runtime.wgpu.texts import Parameters

if TYPE_CHECKING:
    from numr.runtime.storage import DeviceArray
    from numr.runtime.wgpu.launch import DeviceContext
    from numr.runtime.wgpu.records import Binding

__all__ = ["STORAGE_BYTES", "radix_sort"]

_DIGIT_BITS: Final = 8
_DIGITS: Final = 1 << _DIGIT_BITS
#: Invocations in a workgroup: one for each digit.
_THREADS: Final = _DIGITS
_MASK_BITS: Final = 32
_BLOCKS: Final = _THREADS // _MASK_BITS
#: Words of a workgroup's memory for a mask and a count of each digit in each block, and later for a tile's elements.
_STAGE: Final = 2 * _BLOCKS * _DIGITS
#: Bytes of a workgroup's memory that are needed.
STORAGE_BYTES: Final = 4 * (_STAGE + 2 * _DIGITS)
#: Counters of each digit in a workgroup: where most digits are the same, invocations do not all wait for one counter.
_COUNTERS: Final = 8
#: Counts that an invocation loads at once.
_TOGETHER: Final = 8

_PARAMETERS: Final = Parameters(
    *("first", "length", "tiles", "segment", "segments", "part", "shift", "groups", "row")
)
_SUMS: Final = Parameters("tiles", "segment", "segments", "groups", "row")


def radix_sort(
    context: DeviceContext, order: Order, lines: DeviceArray, out: DeviceArray, *, positions: bool
) -> None:
    """Do what ``merge_sort`` does."""
    length = lines.shape[-1]
    count = lines.size // length
    passes = -(-order.bits // _DIGIT_BITS)
    per_thread = _per_thread(order, positions)
    tiles = -(-length // (_THREADS * per_thread))
    # Tiles are put into segments, as many as each has tiles, so that summing up takes few steps.
    segment = math.isqrt(tiles - 1) + 1 if tiles > 1 else 1
    segments = -(-tiles // segment)
    counts = _Counts(context, count, tiles, segment, segments) if tiles > 1 else None
    groups, row = context.grid(count * tiles, 1)

    def bound(array: DeviceArray) -> Binding:
        return context.bind(array, "sort").binding

    # What the passes write, in turns; the last one writes the result. Where that is positions, the elements
    # themselves go with them until then.
    other = context.empty(out.shape, out.dtype) if passes > 1 else out
    results = [bound(out if (passes - number) % 2 else other) for number in range(passes)]
    elements = results
    if positions:
        temporary = [context.empty(lines.shape, lines.dtype) for _ in range(min(2, passes - 1))]
        elements = [bound(temporary[number % 2]) for number in range(passes - 1)]
    source, first = context.bind(lines, "sort")
    for number in range(passes):
        part, shift = divmod(number * _DIGIT_BITS, 32)
        params = _PARAMETERS.pack(
            *(first, length, tiles, segment, segments, part, shift, count * tiles, row)
        )
        move = _Move(order, positions, number == 0, number == passes - 1, counts is not None)
        sums: list[Binding] = []
        if counts is not None:
            context.run(_count_text(order, per_thread), [source, counts.tiles], params, groups)
            counts.sum_up()
            sums = [counts.tiles, counts.segments]
        before = results[number - 1 : number] if positions and number else []
        moved = [results[number]] if positions else []
        if move.moves_elements:
            moved.append(elements[number])
        context.run(_move_text(move), [source, *before, *sums, *moved], params, groups)
        if move.moves_elements:
            source, first = elements[number], 0


class _Counts:
    """How often each digit occurs in each tile, which becomes where elements of the digit go."""

    def __init__(
        self, context: DeviceContext, lines: int, tiles: int, segment: int, segments: int
    ) -> None:
        self.context = context
        self._grids = [context.grid(count, 1) for count in (lines * segments, lines)]
        self._params = [
            _SUMS.pack(tiles, segment, segments, count, row)
            for count, (_, row) in zip((lines * segments, lines), self._grids, strict=True)
        ]
        arrays = [context.empty((lines * n * _DIGITS,), dt.uint32) for n in (tiles, segments)]
        self.tiles, self.segments = (context.bind(array, "sort").binding for array in arrays)
        self._arrays = arrays  # which keep the memory

    def sum_up(self) -> None:
        """Have each count replaced by the counts before it in the segment, and find where segments begin."""
        bindings = [self.tiles, self.segments]
        for text, params, (groups, _) in zip(_sum_texts(), self._params, self._grids, strict=True):
            self.context.run(text, bindings, params, groups)


class _Move(NamedTuple):
    """What a kernel that moves elements is made for."""

    order: Order
    positions: bool  # whether positions are moved as well
    is_first: bool  # whether positions are those in the line, and in no buffer yet
    is_last: bool
    is_counted: bool  # whether lines have several tiles

    @property
    def moves_elements(self) -> bool:
        """Whether elements are written."""
        return not (self.positions and self.is_last)


def _per_thread(order: Order, positions: bool) -> int:
    """Elements of a tile for each invocation: what the workgroup's memory has room for."""
    return _STAGE // _THREADS // (order.words + positions)


def _head(order: Order) -> str:
    part = "" if order.words == 1 else "[params.part]"
    return (
        f"{_PARAMETERS.text}{order.text}"
        f"fn digit_of(element: {order.type}) -> u32 {{\n"
        f"    return (sort_key(element){part} >> params.shift) & {_DIGITS - 1}u;\n}}\n"
    )


def _start(per_thread: int) -> str:
    """The start of a kernel: the workgroup's tile, and the line that it is in."""
    return (
        f"{_main()}"
        "    let line = number / params.tiles;\n"
        f"    let begin = (number - line * params.tiles) * {_THREADS * per_thread}u;\n"
        "    let line_start = line * params.length;\n"
        "    let line_source = params.first + line_start;\n"
    )


def _main() -> str:
    """The start of a kernel: the workgroup's number ``number`` and the invocation's number ``t`` in it."""
    return (
        f"@compute @workgroup_size({_THREADS})\n"
        "fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {\n"
        "    let number = group.x + group.y * params.row;\n"
        "    if (number >= params.groups) { return; }\n"
    )


@cache
def _count_text(order: Order, per_thread: int) -> KernelText:
    """Count the digits of a tile."""
    body = (
        f"{_head(order)}"
        f"var<workgroup> counts: array<atomic<u32>, {_COUNTERS * _DIGITS}>;\n"
        f"{_start(per_thread)}"
        f"    for (var k = 0u; k < {_COUNTERS}u; k++) {{ atomicStore(&counts[k * {_DIGITS}u + t], 0u); }}\n"
        "    workgroupBarrier();\n"
        f"    for (var k = 0u; k < {per_thread}u; k++) {{\n"
        f"        let place = begin + k * {_THREADS}u + t;\n"
        "        if (place < params.length) {\n"
        "            let digit = digit_of(source[line_source + place]);\n"
        f"            atomicAdd(&counts[digit * {_COUNTERS}u + t % {_COUNTERS}u], 1u);\n"
        "        }\n"
        "    }\n"
        "    workgroupBarrier();\n"
        "    var count = 0u;\n"
        f"    for (var k = 0u; k < {_COUNTERS}u; k++) {{ count += atomicLoad(&counts[t * {_COUNTERS}u + k]); }}\n"
        f"    tile_counts[number * {_DIGITS}u + t] = count;\n"
        "}\n"
    )
    return KernelText(body, (order.buffer("source"), _TILE_COUNTS), _PARAMETERS.size)


_TILE_COUNTS: Final = StorageBuffer("tile_counts", "read_write")
_SEGMENT_COUNTS: Final = StorageBuffer("segment_counts", "read_write")


@cache
def _sum_texts() -> tuple[KernelText, KernelText]:
    """Sum up the counts in a segment of tiles; then those of a line's segments and of lower digits."""
    in_segment = (
        f"{_SUMS.text}{_main()}"
        "    let line = number / params.segments;\n"
        "    let begin = (number - line * params.segments) * params.segment;\n"
        "    let end = line * params.tiles + min(begin + params.segment, params.tiles);\n"
        "    var sum = 0u;\n"
        f"{_running_sums('line * params.tiles + begin', 'end', 'tile_counts')}"
        f"    segment_counts[number * {_DIGITS}u + t] = sum;\n"
        "}\n"
    )
    in_line = (
        f"{_SUMS.text}var<workgroup> sums: array<u32, {_DIGITS}>;\n{_main()}"
        "    let begin = number * params.segments;\n"
        "    let end = begin + params.segments;\n"
        "    var total = 0u;\n"
        "    for (var k = begin; k < end; k++) {\n"
        f"        total += segment_counts[k * {_DIGITS}u + t];\n"
        "    }\n"
        f"{_digit_sums('sums')}"
        "    var sum = sums[t];\n"
        f"{_running_sums('begin', 'end', 'segment_counts')}"
        "}\n"
    )
    buffers = (_TILE_COUNTS, _SEGMENT_COUNTS)
    return KernelText(in_segment, buffers, _SUMS.size), KernelText(in_line, buffers, _SUMS.size)


def _running_sums(begin: str, end: str, buffer: str) -> str:
    """Replace a digit's counts by ``sum`` and what is before them; several are loaded at once, as that takes long."""
    lines = [f"for (var k = {begin}; k < {end}; k += {_TOGETHER}u) {{"]
    for j in range(_TOGETHER):
        lines.append(f"    let at{j} = (k + {j}u) * {_DIGITS}u + t;")
        lines.append(f"    var count{j} = 0u;")
        lines.append(f"    if (k + {j}u < {end}) {{ count{j} = {buffer}[at{j}]; }}")
    for j in range(_TOGETHER):
        lines.append(f"    if (k + {j}u < {end}) {{ {buffer}[at{j}] = sum; }}")
        lines.append(f"    sum += count{j};")
    return "".join(f"    {line}\n" for line in (*lines, "}"))


def _digit_sums(name: str) -> str:
    """Put the sum of ``total`` of all lower digits into an array of the workgroup."""
    return (
        f"    {name}[t] = total;\n"
        "    workgroupBarrier();\n"
        "    var inclusive = total;\n"
        f"    for (var step = 1u; step < {_DIGITS}u; step *= 2u) {{\n"
        f"        if (t >= step) {{ inclusive += {name}[t - step]; }}\n"
        "        workgroupBarrier();\n"
        f"        {name}[t] = inclusive;\n"
        "        workgroupBarrier();\n"
        "    }\n"
        f"    {name}[t] = inclusive - total;\n"
        "    workgroupBarrier();\n"
    )


@cache
def _move_text(move: _Move) -> KernelText:
    """Move a tile's elements to their places in the line."""
    order = move.order
    per_thread = _per_thread(order, move.positions)
    tile = per_thread * _THREADS
    loads, ranks, puts = "", "", ""
    for k in range(per_thread):
        loads += (
            f"    let place{k} = begin + block * {_MASK_BITS * per_thread}u + {_MASK_BITS * k}u + lane;\n"
            f"    let is_element{k} = place{k} < params.length;\n"
            f"    let element{k} = source[line_source + min(place{k}, params.length - 1u)];\n"
        )
        # A mask is used by all, then cleared by one; the barriers keep these apart.
        ranks += (
            f"    let digit{k} = digit_of(element{k});\n"
            f"    let slot{k} = block * {_DIGITS}u + digit{k};\n"
            f"    if (is_element{k}) {{ atomicOr(&stage[slot{k}], bit); }}\n"
            "    workgroupBarrier();\n"
            f"    let mask{k} = atomicLoad(&stage[slot{k}]);\n"
            f"    let before{k} = atomicLoad(&stage[counts + slot{k}]);\n"
            "    workgroupBarrier();\n"
            f"    if (is_element{k} && (mask{k} & (bit - 1u)) == 0u) {{\n"
            f"        atomicStore(&stage[slot{k}], 0u);\n"
            f"        atomicStore(&stage[counts + slot{k}], before{k} + countOneBits(mask{k}));\n"
            "    }\n"
            f"    let rank{k} = before{k} + countOneBits(mask{k} & (bit - 1u));\n"
            "    workgroupBarrier();\n"
        )
        puts += f"    let to{k} = first_of[digit{k}] + atomicLoad(&stage[counts + slot{k}]) + rank{k};\n"
    puts += "    workgroupBarrier();\n"
    for k in range(per_thread):
        parts = [f"element{k}{part}" for part in _parts(order)]
        if move.positions:
            at = f"line_start + min(place{k}, params.length - 1u)"
            parts.append(f"place{k}" if move.is_first else f"places[{at}]")
        stores = "".join(
            f" atomicStore(&stage[{w * tile}u + to{k}], {part});" for w, part in enumerate(parts)
        )
        puts += f"    if (is_element{k}) {{{stores} }}\n"
    body = (
        f"{_head(order)}"
        f"const counts = {_STAGE // 2}u;\n"
        f"var<workgroup> stage: array<atomic<u32>, {_STAGE}>;\n"
        f"var<workgroup> first_of: array<u32, {_DIGITS}>;\n"
        f"var<workgroup> moves: array<u32, {_DIGITS}>;\n"
        f"{_start(per_thread)}"
        f"    let block = t / {_MASK_BITS}u;\n"
        f"    let lane = t % {_MASK_BITS}u;\n"
        "    let bit = 1u << lane;\n"
        f"{loads}"
        f"    for (var k = t; k < {_STAGE}u; k += {_THREADS}u) {{ atomicStore(&stage[k], 0u); }}\n"
        "    workgroupBarrier();\n"
        f"{ranks}"
        "    var total = 0u;\n"
        f"    for (var k = t; k < {_BLOCKS * _DIGITS}u; k += {_DIGITS}u) {{\n"
        "        let count = atomicLoad(&stage[counts + k]);\n"
        "        atomicStore(&stage[counts + k], total);\n"
        "        total += count;\n"
        "    }\n"
        f"{_digit_sums('first_of')}"
        f"{_destination(move)}"
        f"{puts}"
        "    workgroupBarrier();\n"
        f"    let size = min({tile}u, params.length - begin);\n"
        f"    for (var k = t; k < size; k += {_THREADS}u) {{\n"
        f"        let element = {_staged(order, tile)};\n"
        "        let to = line_start + k + moves[digit_of(element)];\n"
        f"{_writes(move, tile)}"
        "    }\n}\n"
    )
    buffers = [order.buffer("source")]
    if move.positions and not move.is_first:
        buffers.append(StorageBuffer("places", "read"))
    if move.is_counted:
        buffers += [_TILE_COUNTS, _SEGMENT_COUNTS]
    if move.positions:
        buffers.append(StorageBuffer("moved_places", "read_write"))
    if move.moves_elements:
        buffers.append(order.buffer("moved", writable=True))
    return KernelText(body, tuple(buffers), _PARAMETERS.size)


def _destination(move: _Move) -> str:
    """How far elements of a digit move on from their place in the sorted tile."""
    if not move.is_counted:
        return "    moves[t] = 0u;\n"
    return (
        "    let tile_number = number - line * params.tiles;\n"
        "    let segment = line * params.segments + tile_number / params.segment;\n"
        f"    moves[t] = segment_counts[segment * {_DIGITS}u + t]\n"
        f"        + tile_counts[number * {_DIGITS}u + t] - first_of[t];\n"
    )


def _parts(order: Order) -> list[str]:
    """How the words of an element are named."""
    return [""] if order.words == 1 else [f".{part}" for part in "xyzw"[: order.words]]


def _staged(order: Order, tile: int) -> str:
    """An element of the sorted tile."""
    words = [f"atomicLoad(&stage[{w * tile}u + k])" for w in range(order.words)]
    return words[0] if order.words == 1 else f"{order.type}({', '.join(words)})"


def _writes(move: _Move, tile: int) -> str:
    text = ""
    if move.moves_elements:
        text += "        moved[to] = element;\n"
    if move.positions:
        place = f"atomicLoad(&stage[{move.order.words * tile}u + k])"
        text += f"        moved_places[to] = {place};\n"
    return text
