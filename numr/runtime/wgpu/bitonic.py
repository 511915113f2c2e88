"""Sorting short lines, each within a workgroup's memory.

Keys are loaded together with their positions, and sorted by a bitonic network, whose comparisons do not depend on
the data. It is not stable by itself; comparing positions where keys are equal makes it so. A workgroup sorts as
many lines as its memory has room for.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from numr.runtime.wgpu.ordering import Order
from numr.runtime.wgpu.pipelines import KernelText, StorageBuffer
from numr.runtime.wgpu.texts import WORKGROUP, Parameters

if TYPE_CHECKING:
    from numr.runtime.storage import DeviceArray
    from numr.runtime.wgpu.launch import DeviceContext

__all__ = ["LONGEST", "bitonic_sort", "storage_bytes"]

#: The longest line: keys and positions that a workgroup's memory has room for.
LONGEST: Final = 1024

_PARAMETERS: Final = Parameters("first", "length", "room", "lines", "groups", "row")


def storage_bytes(order: Order) -> int:
    """Bytes of a workgroup's memory that are needed."""
    return 4 * LONGEST * (order.words + 1)


def bitonic_sort(
    context: DeviceContext, order: Order, lines: DeviceArray, out: DeviceArray, *, positions: bool
) -> None:
    """Do what ``merge_sort`` does, for lines of up to :data:`LONGEST` elements."""
    length = lines.shape[-1]
    count = lines.size // length
    room = 1 << (length - 1).bit_length()
    groups = -(-count // (LONGEST // room))
    source, first = context.bind(lines, "sort")
    dispatch, row = context.grid(groups, 1)
    params = _PARAMETERS.pack(first, length, room, count, groups, row)
    bindings = [source, context.bind(out, "sort").binding]
    context.run(_text(order, positions), bindings, params, dispatch)


@cache
def _text(order: Order, positions: bool) -> KernelText:
    item_type = "u32" if positions else order.type
    item = "place" if positions else "source[params.first + line * params.length + place]"
    slots = (
        f"    for (var slot = t; slot < {LONGEST}u; slot += {WORKGROUP}u) {{\n"
        "        let line = first_line + slot / params.room;\n"
        "        let index = slot & (params.room - 1u);\n"
        "        let is_element = index < params.length && line < params.lines;\n"
    )
    body = (
        f"{_PARAMETERS.text}{order.text}"
        f"var<workgroup> keys: array<{order.type}, {LONGEST}>;\n"
        f"var<workgroup> places: array<u32, {LONGEST}>;\n"
        "fn put_in_order(low: u32, high: u32) {\n"
        "    let a = keys[low];\n"
        "    let b = keys[high];\n"
        "    let a_place = places[low];\n"
        "    let b_place = places[high];\n"
        "    if (comes_before(b, a) || (!comes_before(a, b) && b_place < a_place)) {\n"
        "        keys[low] = b;\n"
        "        keys[high] = a;\n"
        "        places[low] = b_place;\n"
        "        places[high] = a_place;\n"
        "    }\n}\n"
        f"@compute @workgroup_size({WORKGROUP})\n"
        "fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {\n"
        "    let number = group.x + group.y * params.row;\n"
        "    if (number >= params.groups) { return; }\n"
        f"    let first_line = number * ({LONGEST}u / params.room);\n"
        f"{slots}"
        # What fills a line up comes behind everything, even behind NaN with the same key.
        f"        var key = {order.largest};\n"
        "        if (is_element) {\n"
        "            key = sort_key(source[params.first + line * params.length + index]);\n"
        "        }\n"
        "        keys[slot] = key;\n"
        "        places[slot] = index;\n"
        "    }\n"
        "    workgroupBarrier();\n"
        "    for (var size = 2u; size <= params.room; size *= 2u) {\n"
        f"        for (var pair = t; pair < {LONGEST // 2}u; pair += {WORKGROUP}u) {{\n"
        "            let inside = pair & (size / 2u - 1u);\n"
        "            let block = 2u * (pair - inside);\n"
        "            put_in_order(block + inside, block + size - 1u - inside);\n"
        "        }\n"
        "        workgroupBarrier();\n"
        "        for (var step = size / 4u; step > 0u; step /= 2u) {\n"
        f"            for (var pair = t; pair < {LONGEST // 2}u; pair += {WORKGROUP}u) {{\n"
        "                let low = 2u * pair - (pair & (step - 1u));\n"
        "                put_in_order(low, low + step);\n"
        "            }\n"
        "            workgroupBarrier();\n"
        "        }\n"
        "    }\n"
        f"{slots}"
        "        if (is_element) {\n"
        "            let place = places[slot];\n"
        f"            ordered[line * params.length + index] = {item};\n"
        "        }\n"
        "    }\n}\n"
    )
    ordered = StorageBuffer("ordered", "read_write", f"array<{item_type}>")
    return KernelText(body, (order.buffer("source"), ordered), _PARAMETERS.size)
