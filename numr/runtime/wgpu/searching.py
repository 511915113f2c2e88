"""Insertion points in a sorted array, by bisection."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from numr.dtypes import DType
from numr.runtime.wgpu.ordering import Order, element_bits
from numr.runtime.wgpu.pipelines import KernelText, StorageBuffer
from numr.runtime.wgpu.texts import Parameters, Walk, invocation, moved_type

if TYPE_CHECKING:
    from numr.runtime.storage import DeviceArray
    from numr.runtime.wgpu.launch import DeviceContext

__all__ = ["search_into"]


def search_into(
    context: DeviceContext, ordered: DeviceArray, values: DeviceArray, right: bool, out: DeviceArray
) -> None:
    """Write where values belong in a sorted one-dimensional array of the same dtype.

    Parameters
    ----------
    context : DeviceContext
        The device.
    ordered, values : DeviceArray
        Views of any strides; neither is empty.
    right : bool
        Whether values go behind elements that are equal to them, not before.
    out : DeviceArray
        A new array of int32 and the values' shape.
    """
    walk = Walk(values.shape, [values.strides])
    elements, first = context.bind(ordered, "searchsorted")
    found, start = context.bind(values, "searchsorted")
    groups, row = context.grid(values.size)
    params = _parameters(walk.rank).pack(
        *(values.size, row, first, ordered.size, ordered.strides[0], start), *walk.packed()
    )
    bindings = [elements, found, context.bind(out, "searchsorted").binding]
    context.run(_text(values.dtype, right, walk.rank), bindings, params, groups)


@cache
def _parameters(rank: int) -> Parameters:
    return Parameters("count", "row", "first", "length", "step", "start", words=2 * rank)


@cache
def _text(dtype: DType, right: bool, rank: int) -> KernelText:
    order = Order(dtype)
    params = _parameters(rank)
    element = element_bits(dtype.itemsize, "ordered", "(params.first + middle * params.step)")
    value = element_bits(dtype.itemsize, "values", "(params.start + at0)")
    before = "!comes_before(key, other)" if right else "comes_before(other, key)"
    body = (
        f"{params.text}{order.text}{invocation()}"
        "    if (i >= params.count) { return; }\n"
        f"{Walk.text(rank, 1, 'i')}"
        f"    let key = sort_key({value});\n"
        "    var low = 0u;\n"
        "    var high = params.length;\n"
        "    while (low < high) {\n"
        "        let middle = low + (high - low) / 2u;\n"
        f"        let other = sort_key({element});\n"
        f"        if ({before}) {{ low = middle + 1u; }} else {{ high = middle; }}\n"
        "    }\n"
        "    places[i] = low;\n"
        "}\n"
    )
    memory = f"array<{moved_type(dtype.itemsize)}>"
    buffers = (
        StorageBuffer("ordered", "read", memory),
        StorageBuffer("values", "read", memory),
        StorageBuffer("places", "read_write"),
    )
    return KernelText(body, buffers, params.size)
