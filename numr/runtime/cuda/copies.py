"""Gathering a strided view into contiguous memory, for elements of any size."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import TYPE_CHECKING

from numr.layout.strides import contiguous_strides
from numr.runtime.cuda import texts
from numr.runtime.cuda.elementwise import Elementwise

if TYPE_CHECKING:
    from numr.runtime.cuda.context import DeviceContext

__all__ = ["gather_view", "mover"]


def mover(context: DeviceContext, width: int) -> Elementwise:
    """The copy of words of some bytes, which are not looked at."""
    found = context.movers.get(width)
    if found is None:
        word = texts.word(width)
        found = context.movers[width] = Elementwise(
            context, "copy", [(word, True)], word, lambda x: x
        )
    return found


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
    lengths = (*shape, elem_size // width)
    if 0 in lengths:
        return
    steps = (*(step * elem_size for step in strides), width)
    contiguous = tuple(step * width for step in contiguous_strides(lengths))
    mover(context, width).launch([source, target], lengths, (steps, contiguous))
