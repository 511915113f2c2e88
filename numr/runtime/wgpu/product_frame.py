"""What the kernels of matrix products share: the product to compute, its parameters, and sums over slices.

The inner axis may be cut into slices, whose products are computed side by side into an array of their own and then
added in order. So a result does not depend on which slice is done first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from numr.layout import Layout
from numr.runtime.storage import DeviceArray
from numr.runtime.wgpu import texts
from numr.runtime.wgpu.pieces import narrowed
from numr.runtime.wgpu.pipelines import KernelText
from numr.runtime.wgpu.texts import Parameters, Walk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numr.dtypes import DType
    from numr.runtime.wgpu.launch import DeviceContext

__all__ = ["Product", "View", "decode", "launch", "parameters"]

_FIELDS: Final = (
    "row",  # numbers in a row of workgroups
    "count",  # numbers
    "rows",
    "columns",
    "inner",
    "chunk",  # of the inner axis, in a slice
    "slices",
    "down",  # blocks along the rows
    "across",  # blocks along the columns
    "left_start",
    "left_row",
    "left_inner",
    "right_start",
    "right_inner",
    "right_column",
    "target_start",
    "target_row",
    "target_column",
    "target_slice",
)
#: Partial sums that an invocation has under way at once.
_ABREAST: Final = 8


@dataclass(frozen=True)
class Product:
    """A matrix product to compute.

    Attributes
    ----------
    left, right : DeviceArray
        Of shapes ``(..., rows, inner)`` and ``(..., inner, columns)`` with the same leading axes, not empty.
    target : DeviceArray
        Where the result goes, of shape ``(..., rows, columns)``; no two of its elements share memory.
    accumulate : bool
        Whether the result is added to what is there.
    """

    left: DeviceArray
    right: DeviceArray
    target: DeviceArray
    accumulate: bool = False

    @property
    def rows(self) -> int:
        """Rows of the result."""
        return self.target.shape[-2]

    @property
    def columns(self) -> int:
        """Columns of the result."""
        return self.target.shape[-1]

    @property
    def inner(self) -> int:
        """Length of the axis that is summed over."""
        return self.left.shape[-1]

    @property
    def batch(self) -> int:
        """Number of matrices."""
        return math.prod(self.target.shape[:-2])

    def transposed(self) -> Product:
        """The same product, computed as that of the transposed matrices."""
        return Product(
            _swapped(self.right), _swapped(self.left), _swapped(self.target), self.accumulate
        )

    def part(self, axis: int, start: int, stop: int) -> Product:
        """The part of the result along a leading axis, the rows (axis -2) or the columns (axis -1)."""
        left, right = self.left, self.right
        return replace(
            self,
            left=left if axis == -1 else narrowed(left, axis, start, stop),
            right=right if axis == -2 else narrowed(right, axis, start, stop),
            target=narrowed(self.target, axis, start, stop),
        )

    def inner_part(self, start: int, stop: int) -> Product:
        """What a range of the inner axis contributes; but for the first it is added."""
        return replace(
            self,
            left=narrowed(self.left, -1, start, stop),
            right=narrowed(self.right, -2, start, stop),
            accumulate=self.accumulate or start > 0,
        )


def _swapped(array: DeviceArray) -> DeviceArray:
    axes = len(array.shape)
    layout = array.layout.permute((*range(axes - 2), axes - 1, axes - 2))
    return DeviceArray(array.storage, layout, array.dtype)


class View(NamedTuple):
    """How a kernel sees a matrix: its first element in the binding, and its strides in elements."""

    start: int
    strides: tuple[int, ...]


@cache
def parameters(rank: int) -> Parameters:
    """Parameters of a kernel that walks through leading axes of that rank, of the factors and the target."""
    return Parameters(*_FIELDS, words=4 * rank)


def decode(rank: int) -> str:
    """Declarations of what a kernel's ``number`` stands for.

    They are ``block_row`` and ``block_column``, where the elements of the matrices start (``left_at``,
    ``right_at``, ``target_at``), and the range ``first`` to ``end`` of the inner axis.
    """
    return (
        "    let block_column = number % params.across;\n"
        "    let lines = number / params.across;\n"
        "    let block_row = lines % params.down;\n"
        "    let parts = lines / params.down;\n"
        "    let slice = parts % params.slices;\n"
        + Walk.text(rank, 3, "parts / params.slices")
        + "    let left_at = params.left_start + at0;\n"
        "    let right_at = params.right_start + at1;\n"
        "    let target_at = params.target_start + at2 + slice * params.target_slice;\n"
        "    let first = slice * params.chunk;\n"
        "    let end = min(first + params.chunk, params.inner);\n"
    )


def launch(
    context: DeviceContext,
    product: Product,
    text: Callable[[int, Sequence[View]], KernelText],
    blocks: tuple[int, int],
    slices: int,
    size: int = 1,
    depth: int = 1,
) -> None:
    """Run a kernel on a product, and add its slices up.

    Parameters
    ----------
    context : DeviceContext
        The device.
    product : Product
        What to compute.
    text : callable
        Makes the kernel from the rank of the leading axes and how it sees the factors and the target.
    blocks : tuple of int
        Blocks of the result along rows and columns.
    slices : int
        Slices of the inner axis.
    size : int
        How many of the kernel's numbers a workgroup has.
    depth : int
        What the length of a slice is a multiple of.
    """
    chunk = -(-product.inner // slices)
    chunk = -(-chunk // depth) * depth
    slices = -(-product.inner // chunk)
    target, step, partial = product.target, 0, None
    if slices > 1 or product.accumulate:
        partial = context.empty((slices, *target.shape), target.dtype)
        step = target.size
        target = DeviceArray(partial.storage, Layout.contiguous(target.shape), target.dtype)
    arrays = (product.left, product.right, target)
    walk = Walk(target.shape[:-2], [array.strides[:-2] for array in arrays])
    memory = target if partial is None else partial
    bound = [context.bind(array, "matmul") for array in (*arrays[:2], memory)]
    views = [View(b.start, array.strides) for b, array in zip(bound, arrays, strict=True)]
    count = math.prod(blocks) * slices * product.batch
    groups, row = context.grid(count, size)
    params = parameters(walk.rank).pack(
        *(row, count, product.rows, product.columns, product.inner, chunk, slices, *blocks),
        *(number for view in views for number in (view.start, *view.strides[-2:])),
        *(step, *walk.packed()),
    )
    context.run(text(walk.rank, views), [each.binding for each in bound], params, groups)
    if partial is not None:
        _add_slices(context, partial, product)


def _add_slices(context: DeviceContext, partial: DeviceArray, product: Product) -> None:
    """Add up the first axis of an array into a product's target."""
    target = product.target
    walk = Walk(target.shape[:-2], [target.strides[:-2]])
    source, result = (context.bind(array, "matmul") for array in (partial, target))
    groups, row = context.grid(target.size)
    params = _sum_parameters(walk.rank).pack(
        *(row, target.size, product.rows, product.columns, partial.shape[0], result.start),
        *(*target.strides[-2:], product.accumulate, *walk.packed()),
    )
    text = _sum_text(partial.dtype, walk.rank)
    context.run(text, [source.binding, result.binding], params, groups)


def _sum_parameters(rank: int) -> Parameters:
    names = ("row", "count", "rows", "columns", "slices", "start", "target_row", "target_column")
    return Parameters(*names, "accumulate", words=2 * rank)


@cache
def _sum_text(dtype: DType, rank: int) -> KernelText:
    steps = range(_ABREAST)
    read = "".join(
        f"        let v{i} = partial[i + (slice + {i}u) * params.count];\n" for i in steps
    )
    body = (
        texts.invocation() + "    if (i >= params.count) { return; }\n"
        "    let line = i / params.columns;\n"
        "    let column = i - line * params.columns;\n"
        + Walk.text(rank, 1, "line / params.rows")
        + "    let place = params.start + at0 + line % params.rows * params.target_row\n"
        "        + column * params.target_column;\n"
        f"    var total = {texts.memory_type(dtype)}();\n"
        "    if (params.accumulate != 0u) { total = result[place]; }\n"
        "    var slice = 0u;\n"
        f"    for (; slice + {_ABREAST}u <= params.slices; slice += {_ABREAST}u) {{\n"
        + read
        + "".join(f"        total += v{i};\n" for i in steps)
        + "    }\n"
        "    for (; slice < params.slices; slice++) { total += partial[i + slice * params.count]; }\n"
        "    result[place] = total;\n"
        "}\n"
    )
    params = _sum_parameters(rank)
    buffers = (texts.source("partial", dtype), texts.target("result", dtype))
    return KernelText(params.text + body, buffers, params.size)
