"""Merge sort: for adapters in software, where a workgroup's shared memory does not pay.

Every invocation first sorts a short run. Each pass then merges neighbouring runs to runs of twice the length. An
invocation writes a fixed number of elements of a merged run; where in the two runs they begin it finds by
bisection. So the work of an invocation is bounded, whatever the lengths.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from numr.runtime.wgpu.ordering import Order
from numr.runtime.wgpu.pipelines import KernelText, StorageBuffer
from numr.runtime.wgpu.texts import Parameters, invocation

if TYPE_CHECKING:
    from numr.runtime.storage import DeviceArray
    from numr.runtime.wgpu.launch import DeviceContext

__all__ = ["merge_sort"]

#: Elements that an invocation sorts or merges: sorting them takes time like their square, finding where to begin
#: takes the same time however few they are.
RUN: Final = 32

_PARAMETERS: Final = Parameters("first", "length", "chunks", "count", "width", "row")


def merge_sort(
    context: DeviceContext, order: Order, lines: DeviceArray, out: DeviceArray, *, positions: bool
) -> None:
    """Sort along the last axis of a contiguous array that is not empty, stably.

    Parameters
    ----------
    context : DeviceContext
        The device.
    order : Order
        What to sort by.
    lines : DeviceArray
        The elements, which do not share words.
    out : DeviceArray
        A new contiguous array of the same shape: of the same dtype, or of int32 for positions.
    positions : bool
        Whether the positions of the elements are written instead of the elements.
    """
    length = lines.shape[-1]
    chunks = -(-length // RUN)
    count = lines.size // length * chunks
    source, first = context.bind(lines, "sort")
    groups, row = context.grid(count)
    widths = [RUN << i for i in range((chunks - 1).bit_length())]
    current, other = out, out
    if widths:
        other = context.empty(out.shape, out.dtype)
        if len(widths) % 2:
            current, other = other, out  # so that the last pass writes the result
    bindings = [source, context.bind(current, "sort").binding]
    params = _PARAMETERS.pack(first, length, chunks, count, 0, row)
    context.run(_runs(order, positions), bindings, params, groups)
    for width in widths:
        bindings = [context.bind(array, "sort").binding for array in (current, other)]
        if positions:
            bindings.append(source)
        params = _PARAMETERS.pack(first, length, chunks, count, width, row)
        context.run(_merge(order, positions), bindings, params, groups)
        current, other = other, current


def _head(order: Order, positions: bool) -> str:
    """What is sorted are elements, or positions that stand for them."""
    key = "sort_key(source[params.first + line + item])" if positions else "sort_key(item)"
    return (
        f"{_PARAMETERS.text}{order.text}"
        f"fn key_of(item: {_item(order, positions)}, line: u32) -> {order.type} {{ return {key}; }}\n"
    )


def _item(order: Order, positions: bool) -> str:
    return "u32" if positions else order.type


def _chunk() -> str:
    """The invocation's line, as its first element, and the run of it that the invocation writes."""
    return (
        f"{invocation()}"
        "    if (i >= params.count) { return; }\n"
        "    let number = i / params.chunks;\n"
        "    let line = number * params.length;\n"
        f"    let begin = (i - number * params.chunks) * {RUN}u;\n"
        f"    let end = min(begin + {RUN}u, params.length);\n"
    )


@cache
def _runs(order: Order, positions: bool) -> KernelText:
    item = "place" if positions else "source[params.first + line + place]"
    body = (
        f"{_head(order, positions)}{_chunk()}"
        "    for (var place = begin; place < end; place++) {\n"
        f"        let item = {item};\n"
        "        let key = key_of(item, line);\n"
        "        var to = line + place;\n"
        "        while (to > line + begin) {\n"
        "            let before = ordered[to - 1u];\n"
        "            if (!comes_before(key, key_of(before, line))) { break; }\n"
        "            ordered[to] = before;\n"
        "            to--;\n"
        "        }\n"
        "        ordered[to] = item;\n"
        "    }\n}\n"
    )
    item_type = _item(order, positions)
    ordered = StorageBuffer("ordered", "read_write", f"array<{item_type}>")
    return KernelText(body, (order.buffer("source"), ordered), _PARAMETERS.size)


@cache
def _merge(order: Order, positions: bool) -> KernelText:
    item_type = _item(order, positions)
    body = (
        f"{_head(order, positions)}{_chunk()}"
        "    let pair = begin / (2u * params.width) * (2u * params.width);\n"
        "    let left_end = min(pair + params.width, params.length);\n"
        "    let right_end = min(left_end + params.width, params.length);\n"
        "    let before = begin - pair;\n"
        # How many of the elements before this chunk come from the left run.
        "    var low = before - min(before, right_end - left_end);\n"
        "    var high = min(before, left_end - pair);\n"
        "    while (low < high) {\n"
        "        let middle = (low + high) / 2u;\n"
        "        let left = runs[line + pair + middle];\n"
        "        let right = runs[line + left_end + before - 1u - middle];\n"
        "        if (comes_before(key_of(right, line), key_of(left, line))) { high = middle; }\n"
        "        else { low = middle + 1u; }\n"
        "    }\n"
        "    var left = pair + low;\n"
        "    var right = left_end + before - low;\n"
        "    var left_item = runs[line + left];\n"
        "    var left_key = key_of(left_item, line);\n"
        "    var right_item = runs[line + min(right, params.length - 1u)];\n"
        "    var right_key = key_of(right_item, line);\n"
        # Invocations go through this side by side, so that what both runs need is said once.
        "    for (var place = begin; place < end; place++) {\n"
        "        let takes_right = left == left_end\n"
        "            || (right < right_end && comes_before(right_key, left_key));\n"
        "        merged[line + place] = select(left_item, right_item, takes_right);\n"
        "        let next = select(left, right, takes_right) + 1u;\n"
        # Past the end of a run this reads an element that is not used.
        "        let item = runs[line + min(next, params.length - 1u)];\n"
        "        let key = key_of(item, line);\n"
        "        if (takes_right) { right = next; right_item = item; right_key = key; }\n"
        "        else { left = next; left_item = item; left_key = key; }\n"
        "    }\n}\n"
    )
    buffers = [
        StorageBuffer("runs", "read", f"array<{item_type}>"),
        StorageBuffer("merged", "read_write", f"array<{item_type}>"),
    ]
    if positions:
        buffers.append(order.buffer("source"))
    return KernelText(body, tuple(buffers), _PARAMETERS.size)
