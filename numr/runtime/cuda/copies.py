"""Gathering a strided view into contiguous memory, for elements of any size."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import gcd
from typing import TYPE_CHECKING

from numr.runtime.cuda import texts
from numr.runtime.cuda.texts import BLOCK, Walk

if TYPE_CHECKING:
    from numr.runtime.cuda.context import DeviceContext

__all__ = ["gather_view"]


def gather_view(
    context: DeviceContext,
    source: int,
    target: int,
    shape: Sequence[int],
    strides: Sequence[int],
    elem_size: int,
) -> None:
    """Copy a view whose first element lies at ``source`` to ``target``, in C order; strides are in elements."""
    # Elements are moved in words, the largest that divide them and lie aligned.
    width = gcd(elem_size, source, target, 8)
    words = elem_size // width
    lengths = (*shape, words)
    steps = (*(step * elem_size for step in strides), width)
    size = 1
    for n in lengths:
        size *= n
    if not size:
        return
    walk = Walk(lengths, [steps], size)
    source_text = _text(width, walk.rank, walk.wide)
    with context.current():
        (kernel,) = context.compiler.functions(source_text, "numr_kernel")
        arguments = [source, target, size, walk.packed()]
        kernel((-(-size // BLOCK),), (BLOCK,), arguments, 0, context.stream)


@cache
def _text(width: int, rank: int, wide: bool) -> str:
    memory = texts.memory_type(texts.word(width))
    return (
        f"{texts.head()}{texts.dims_type(rank, 1)}"
        f'extern "C" __global__ void __launch_bounds__({BLOCK}) numr_kernel('
        f"const char* source, {memory}* target, const long long size, const numr_dims dims) {{\n"
        f"    const long long i = (long long)blockIdx.x * {BLOCK} + threadIdx.x;\n"
        "    if (i >= size) return;\n"
        f"{texts.walk(rank, 1, 'i', wide)}"
        f"    target[i] = *(const {memory}*)(source + at0);\n"
        "}\n"
    )
