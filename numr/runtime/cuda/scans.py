"""Running sums, products, maxima and minima along an axis, in one pass over memory.

A block of threads scans a tile of a line; where neighbours in memory belong to different lines, a tile goes over lines
side by side. Where there are enough lines to keep the device busy, a block goes along its lines tile by tile. Else
blocks take tiles by turns: each leaves the tile's total for the others, and waits for those of the tiles before. Tiles
are handed out in order, so that whoever is waited for is at work. Totals are joined in groups of tiles in a fixed
order, so that results do not depend on who comes first.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from numr.runtime.cuda.folding import Fold
from numr.runtime.cuda.scan_texts import RESIDENT, across, columns, items_of, rows
from numr.runtime.cuda.texts import BLOCK, VECTOR, power_of_two

if TYPE_CHECKING:
    from numr.runtime.cuda.context import DeviceContext

__all__ = ["scan_into"]

#: Blocks from which each goes along its lines by itself.
_BUSY: Final = 512
#: A warp scans shorter lines by itself.
_SHORT: Final = 1024
#: Tiles in a group, at most, and groups that follow each other where many lines go side by side.
_GROUP: Final = 256
_GROUPS: Final = 96


class _Plan(NamedTuple):
    """How lines of a contiguous array are scanned."""

    #: The kind of kernel, a key of ``scan_texts.HELD``.
    kind: str
    #: Whether vectors are read.
    whole: bool
    grid: int
    #: Bytes of what blocks leave for each other.
    words: int
    numbers: tuple[int, ...]


@lru_cache(maxsize=4096)
def _plan(outer: int, length: int, inner: int, itemsize: int, held: int, aligned: bool) -> _Plan:
    """For ``outer`` times ``inner`` lines; ``itemsize`` is the larger of elements and results."""
    vector = VECTOR // itemsize
    pieces = -(-held // 4)
    slots = outer * inner
    if inner > 1:
        vector = across(itemsize)
        whole = aligned and vector > 1 and inner % vector == 0
        vector = vector if whole else 1
        kind = "columns"
        for kind in ("columns", "linked columns"):
            items = items_of(kind, held, vector)
            lines = min(power_of_two(-(-length // items)), BLOCK)
            lanes = min(power_of_two(-(-inner // vector)), max(32, BLOCK // lines))
            strips = -(-inner // (lanes * vector))
            tiles = -(-length // (BLOCK // lanes * items))
            if tiles == 1 or outer * strips >= _BUSY:
                break
        group = min(-(-tiles // _GROUPS), _GROUP)
        numbers: tuple[int, ...] = (length, inner, outer, strips, tiles, group, lanes)
        grid = outer * strips
    else:
        whole = aligned and vector > 1 and (length % vector == 0 or outer == 1)
        vector = vector if whole else 1
        kind = "short" if length <= _SHORT else "rows"
        items = items_of(kind, held, vector)
        lanes = min(power_of_two(-(-length // items)), 32) if kind == "short" else BLOCK
        if kind == "rows" and outer < _BUSY and length > BLOCK * items:
            kind = "linked rows"
            items = items_of(kind, held, vector)
        tiles = -(-length // (lanes * items))
        group = min(tiles, _GROUP)
        numbers = (length, outer, tiles, group, lanes)
        grid = -(-outer // (BLOCK // lanes))
    words = 0
    if kind.startswith("linked"):
        words = 8 * (1 + slots * (tiles + -(-tiles // group)) * pieces)
        grid *= tiles
    return _Plan(kind, whole, grid, words, numbers)


def scan_into(context: DeviceContext, fold: Fold, array: Any, axis: int, out: Any) -> None:
    """Scan a C-contiguous array that has elements along an axis, into another one of its shape."""
    shape = array.shape
    outer = inner = 1
    for n in shape[:axis]:
        outer *= n
    for n in shape[axis + 1 :]:
        inner *= n
    source, target = array.data.ptr, out.data.ptr
    itemsize = max(fold.source.itemsize, fold.result.itemsize)
    plan = _plan(outer, shape[axis], inner, itemsize, fold.held, not (source | target) & 15)
    key = ("scan", plan.kind, plan.whole)
    kernel = fold.kernels.get(key)
    if kernel is None:
        with context.current():
            print_kernel = columns if plan.kind.endswith("columns") else rows
            text = print_kernel(fold, plan.kind, plan.whole)
            kernel = context.compiler.kernel(text, 3 + len(plan.numbers))
        fold.kernels[key] = kernel
    words = context.allocator.pointer(plan.words)
    grid = plan.grid
    if plan.words:
        context.set_bytes(words.ptr, 0, plan.words)
        if plan.kind == "linked columns":
            grid = min(grid, context.processors * RESIDENT[plan.kind])
    context.launch(kernel, grid, 1, BLOCK, 1, source, target, words.ptr, *plan.numbers)
