"""Reading and writing elements at index arrays.

What is moved for each pick is a row: the axes behind those that index arrays name. Elements are moved without being
looked at. Where rows lie close together they are moved in units of up to 16 bytes, whatever their elements are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Final, Literal

from numr import dtypes as dt
from numr.layout.strides import merge_axes
from numr.runtime.wgpu.ordering import element_bits
from numr.runtime.wgpu.picking import AT_ONCE, IndexText, Picks
from numr.runtime.wgpu.pipelines import KernelText, StorageBuffer
from numr.runtime.wgpu.texts import Parameters, Walk, invocation, moved_type, packed, word

if TYPE_CHECKING:
    from numr.runtime.storage import DeviceArray
    from numr.runtime.wgpu.launch import DeviceContext
    from numr.runtime.wgpu.records import Binding

__all__ = ["gather_into", "scatter_into"]

_UNITS: Final = (16, 8, 4)
_OFFSETS: Final = StorageBuffer("offsets", "read")


class _Rows:
    """How rows lie in one or two arrays, counted in units.

    Parameters
    ----------
    itemsize : int
        Bytes in an element.
    shape : tuple of int
        Shape of a row, without lengths of 0.
    strides : sequence of tuple of int
        Strides of the row in each array.
    others : sequence of int
        Everything else that is counted in units: strides along the axes that are named, and offsets.

    Attributes
    ----------
    factor : int
        Elements in a unit.
    itemsize : int
        Bytes in a unit.
    size : int
        Units in a row.
    walk : Walk or None
        The walk through a row; None if that is one unit.
    """

    def __init__(
        self,
        itemsize: int,
        shape: tuple[int, ...],
        strides: Sequence[tuple[int, ...]],
        others: Sequence[int],
    ) -> None:
        lengths, steps = merge_axes(shape, strides)
        outer = [*others, *(step for own in steps for step in own[:-1])]
        self.factor = 1
        if lengths and all(own[-1] == 1 for own in steps):
            common = math.gcd(lengths[-1], *outer)
            factors = [unit // itemsize for unit in _UNITS if unit >= itemsize]
            self.factor = next((factor for factor in factors if common % factor == 0), 1)
        if self.factor > 1:
            lengths[-1] //= self.factor
            steps = [[*(step // self.factor for step in own[:-1]), 1] for own in steps]
        self.itemsize = itemsize * self.factor
        self.size = math.prod(lengths)
        self.walk = Walk(tuple(lengths), [tuple(own) for own in steps]) if self.size > 1 else None

    def units(self, numbers: Sequence[int]) -> list[int]:
        """Numbers of elements, counted in units."""
        return [number // self.factor for number in numbers]


def gather_into(
    context: DeviceContext,
    array: DeviceArray,
    indices: Sequence[DeviceArray],
    out: DeviceArray,
    report: Binding,
) -> None:
    """Read elements at index arrays into a new contiguous array.

    Parameters
    ----------
    context : DeviceContext
        The device.
    array : DeviceArray
        A view of any strides.
    indices : sequence of DeviceArray
        One for each leading axis, of one shape that is not empty, and of integer dtypes.
    out : DeviceArray
        Of the indices' shape and that of a row.
    report : tuple
        The binding where a bad index is reported; ``out`` is arbitrary then.
    """
    named = len(indices)
    shape, steps = array.shape[:named], array.strides[:named]
    if not array.size:
        # Indices count even where there is nothing to read behind them.
        Picks(context, shape, steps, indices, report).offsets()
        return
    others = (*steps, array.offset)
    rows = _Rows(array.itemsize, array.shape[named:], [array.strides[named:]], others)
    picks = Picks(context, shape, rows.units(steps), indices, report)
    index: IndexText | None = None
    words: list[int] = []
    if named <= AT_ONCE:
        index, bindings, words = picks.part(0, named)
    else:
        offsets = picks.offsets()  # kept until the end, so that nobody else is given its memory
        bindings = [context.bind(offsets, "getitem").binding]
    source, first = context.bind(array, "getitem")
    count = picks.count * rows.size
    groups, row = context.grid(-(-count // max(1, 4 // rows.itemsize)))
    rank = 0
    if rows.walk is not None:
        rank = rows.walk.rank
        words += rows.walk.packed()
    text, params = _gather_text(rows.itemsize, index, rank)
    packed_params = params.pack(count, row, rows.size, first // rows.factor, *words)
    target = context.bind(out, "getitem").binding
    context.run(text, [source, *bindings, target], packed_params, groups)


def scatter_into(
    context: DeviceContext,
    array: DeviceArray,
    named: int,
    places: DeviceArray,
    values: DeviceArray,
) -> None:
    """Write elements into a view, where the last of several to one place wins.

    Invocations write in any order. So a table notes for each place the last pick that writes to it. It needs no
    value to start with: first each pick puts itself into the entry of its place, and whichever stays is one of
    those that write there; the largest of these is then the last.

    Parameters
    ----------
    context : DeviceContext
        The device.
    array : DeviceArray
        A view of any strides that is not empty.
    named : int
        How many leading axes are named by indices.
    places : DeviceArray
        For each pick its place: its number among the rows of the array, in C order.
    values : DeviceArray
        A row for each pick: a view of any strides, in other memory than the array.
    """
    leading = array.shape[:named]
    behind = values.ndim - (array.ndim - named)
    others = (*array.strides[:named], *values.strides[:behind], array.offset, values.offset)
    strides = [array.strides[named:], values.strides[behind:]]
    rows = _Rows(array.itemsize, array.shape[named:], strides, others)
    to_rows = Walk(leading, [tuple(rows.units(array.strides[:named]))])
    from_rows = Walk(values.shape[:behind], [tuple(rows.units(values.strides[:behind]))])
    walks = [to_rows, from_rows] if rows.walk is None else [to_rows, from_rows, rows.walk]
    text, params = _scatter_text(rows.itemsize, tuple(walk.rank for walk in walks))
    words = [number for walk in walks for number in walk.packed()]

    target, target_first = context.bind(array, "setitem")
    origin, origin_first = context.bind(values, "setitem")
    place_binding = context.bind(places, "setitem").binding
    total = math.prod(leading)
    room = min(total, context.max_binding // 4)
    table = context.empty((room,), dt.uint32)
    table_binding = context.bind(table, "setitem").binding
    marking, mark_row = context.grid(places.size)
    count = places.size * rows.size
    writing, write_row = context.grid(count)
    firsts = (target_first // rows.factor, origin_first // rows.factor)
    for low in range(0, total, room):
        for mark in _mark_texts():
            mark_params = _MARKS.pack(places.size, mark_row, low, room)
            context.run(mark, [place_binding, table_binding], mark_params, marking)
        context.run(
            text,
            [place_binding, table_binding, origin, target],
            params.pack(count, write_row, low, room, rows.size, *firsts, *words),
            writing,
        )


def _walk_function(name: str, rank: int, arrays: int, start: int) -> str:
    """A function from a number in C order to where that is in one array or two; ``rank`` 0 is one element."""
    result = "u32" if arrays == 1 else f"vec{arrays}<u32>"
    if not rank:
        return f"fn {name}(number: u32) -> {result} {{ return {result}(); }}\n"
    places = ", ".join(f"at{k}" for k in range(arrays))
    walk = Walk.text(rank, arrays, "number", start)
    return f"fn {name}(number: u32) -> {result} {{\n{walk}    return {result}({places});\n}}\n"


def _pick(rank: int) -> str:
    """Declarations of the pick ``pick`` of a unit ``i`` and of its number ``j`` in the row."""
    if not rank:
        return "    let pick = i;\n    let j = 0u;\n"
    return "    let pick = i / params.size;\n    let j = i - pick * params.size;\n"


def _memory(name: str, itemsize: int, *, writable: bool = False) -> StorageBuffer:
    access: Literal["read", "read_write"] = "read_write" if writable else "read"
    return StorageBuffer(name, access, f"array<{moved_type(itemsize)}>")


@cache
def _gather_text(
    itemsize: int, index: IndexText | None, rank: int
) -> tuple[KernelText, Parameters]:
    start = index.words if index else 0
    params = Parameters("count", "row", "size", "start", words=start + 2 * rank)
    find = "fn offset_of(pick: u32) -> u32 { return offsets[pick]; }\n"
    body = (
        f"{params.text}{index.text() if index else find}"
        f"{_walk_function('in_row', rank, 1, start)}"
        f"fn picked(i: u32) -> {moved_type(itemsize)} {{\n"
        f"{_pick(rank)}"
        "    let at = params.start + offset_of(pick) + in_row(j);\n"
        f"    return {element_bits(itemsize, 'elements', 'at')};\n"
        "}\n"
        f"{invocation()}"
    )
    if itemsize < 4:
        body += (
            f"    let first = i * {4 // itemsize}u;\n"
            "    let count = params.count;\n"
            "    if (first >= count) { return; }\n"
            f"{packed(word(itemsize), 'picked')}"
            "    out[i] = packed_word;\n"
        )
    else:
        body += "    if (i < params.count) { out[i] = picked(i); }\n"
    buffers = (
        _memory("elements", itemsize),
        *(index.buffers if index else [_OFFSETS]),
        _memory("out", itemsize, writable=True),
    )
    return KernelText(f"{body}}}\n", buffers, params.size), params


_MARKS: Final = Parameters("count", "row", "low", "room")
_TABLE: Final = StorageBuffer("table", "read_write", "array<atomic<u32>>")


@cache
def _mark_texts() -> tuple[KernelText, KernelText]:
    """Kernels that note in the table any pick of each place, and then the last one."""
    first, second = (
        f"{_MARKS.text}{invocation()}"
        "    if (i >= params.count) { return; }\n"
        "    let entry = offsets[i] - params.low;\n"
        f"    if (entry < params.room) {{ {note}(&table[entry], i); }}\n"
        "}\n"
        for note in ("atomicStore", "atomicMax")
    )
    buffers = (_OFFSETS, _TABLE)
    return KernelText(first, buffers, _MARKS.size), KernelText(second, buffers, _MARKS.size)


@cache
def _scatter_text(itemsize: int, ranks: tuple[int, ...]) -> tuple[KernelText, Parameters]:
    to_rank, from_rank, *rest = ranks
    rank = rest[0] if rest else 0
    words = 2 * to_rank + 2 * from_rank + 3 * rank
    params = Parameters(
        *("count", "row", "low", "room", "size", "target_start", "value_start"), words=words
    )
    memory = _memory("elements", itemsize, writable=True)
    store = "    elements[to] = value;\n"
    if itemsize < 4:
        # Others may write the rest of the word meanwhile.
        memory = StorageBuffer("elements", "read_write", "array<atomic<u32>>")
        count = 4 // itemsize
        bits = 32 // count
        store = (
            f"    let shift = {bits}u * (to % {count}u);\n"
            f"    atomicAnd(&elements[to / {count}u], ~({(1 << bits) - 1}u << shift));\n"
            f"    atomicOr(&elements[to / {count}u], value << shift);\n"
        )
    body = (
        f"{params.text}"
        f"{_walk_function('to_row', to_rank, 1, 0)}"
        f"{_walk_function('from_row', from_rank, 1, 2 * to_rank)}"
        f"{_walk_function('in_row', rank, 2, 2 * (to_rank + from_rank))}"
        f"{invocation()}"
        "    if (i >= params.count) { return; }\n"
        f"{_pick(rank)}"
        "    let entry = offsets[pick] - params.low;\n"
        "    if (entry >= params.room || table[entry] != pick) { return; }\n"
        "    let inside = in_row(j);\n"
        "    let at = params.value_start + from_row(pick) + inside.y;\n"
        "    let to = params.target_start + to_row(offsets[pick]) + inside.x;\n"
        f"    let value = {element_bits(itemsize, 'values', 'at')};\n"
        f"{store}"
        "}\n"
    )
    buffers = (_OFFSETS, StorageBuffer("table", "read"), _memory("values", itemsize), memory)
    return KernelText(body, buffers, params.size), params
