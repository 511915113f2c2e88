"""Scans in one pass along lines side by side, for devices whose workgroups begin and go on in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from numr.runtime.wgpu.chained_texts import BESIDE, FILL, FILLING, GROUP, text_of, words_of
from numr.runtime.wgpu.lines import WIDTH
from numr.runtime.wgpu.scanning_texts import Variant
from numr.runtime.wgpu.texts import WORKGROUP
from numr.runtime.wgpu.windows import Windows

if TYPE_CHECKING:
    from numr.runtime.wgpu.folding import Fold
    from numr.runtime.wgpu.launch import DeviceContext
    from numr.runtime.wgpu.loading import Loads
    from numr.runtime.wgpu.programs import Recording
    from numr.runtime.wgpu.scanning import Scan

__all__ = ["chain", "may_be_chained"]

#: Bytes of a line that an invocation holds, and the most loads of them.
_HELD_BYTES: Final = 128
_MOST_ROWS: Final = 16
#: Bytes of a value at most: of wider ones a workgroup's memory holds too few, and their words would be many.
_VALUE_BYTES: Final = 4
#: With fewer loads side by side too many invocations have nothing to do.
_FEWEST: Final = BESIDE // 2


def may_be_chained(
    context: DeviceContext, fold: Fold, scan: Scan, seen: Windows, target: Windows
) -> bool:
    """Whether lines side by side, of more than one piece each, can be scanned in one pass."""
    return (
        context.in_order
        and scan.by_columns
        and scan.outputs >= _FEWEST
        and fold.stored.itemsize <= _VALUE_BYTES
        and seen.is_one
        and target.is_one
    )


def chain(
    work: Recording, fold: Fold, scan: Scan, loads: Loads, seen: Windows, target: Windows
) -> None:
    """Scan lines side by side in one pass."""
    context = work.context
    itemsize = fold.source.itemsize * (WIDTH if scan.wide else 1)
    rows = max(1, min(_MOST_ROWS, _HELD_BYTES // itemsize))
    variant = Variant(loads, False, scan.kept.rank, target.pattern, None, WORKGROUP, 1)
    strips = -(-scan.outputs // BESIDE)
    pieces = -(-scan.length // (rows * (WORKGROUP // BESIDE)))
    groups = -(-pieces // GROUP)
    words = words_of(fold)
    run_words = words * len(fold.run_types) // len(fold.types)
    size = 1 + loads.lines * BESIDE * strips * (words * pieces + run_words * groups)
    board = work.empty((-(-size // 4) * 4,), np.dtype(np.uint32))
    posted = Windows.of(context, board, "scan")
    grid, row = context.grid(board.size // 4)
    work.run(FILLING, (posted,), FILL.pack(row, board.size // 4), grid)
    text, params = text_of(variant, rows)
    grid, _ = context.grid(strips * pieces, 1)
    numbers = (
        *(strips * pieces, scan.start, scan.outputs, scan.length, groups, strips),
        *(*scan.steps, *scan.kept.packed()),
    )
    work.run(text, (seen, target, posted), params.pack(*numbers), grid)
