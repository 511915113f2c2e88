"""Scans in one pass along lines side by side, for devices whose workgroups begin and go on in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from numr.runtime.wgpu.boards import board_of, run_words_of, words_of
from numr.runtime.wgpu.chained_texts import BESIDE, GROUP, text_of
from numr.runtime.wgpu.lines import WIDTH
from numr.runtime.wgpu.scanning_texts import Variant
from numr.runtime.wgpu.texts import WORKGROUP

if TYPE_CHECKING:
    from numr.runtime.wgpu.folding import Fold
    from numr.runtime.wgpu.launch import DeviceContext
    from numr.runtime.wgpu.loading import Loads
    from numr.runtime.wgpu.programs import Recording
    from numr.runtime.wgpu.scanning import Scan
    from numr.runtime.wgpu.windows import Windows

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
    counts = words_of(fold) * pieces + run_words_of(fold) * groups
    posted = board_of(work, loads.lines * BESIDE * strips * counts)
    text, params = text_of(variant, rows)
    grid, _ = context.grid(strips * pieces, 1)
    numbers = (
        *(strips * pieces, scan.start, scan.outputs, scan.length, groups, strips),
        *(*scan.steps, *scan.kept.packed()),
    )
    work.run(text, (seen, target, posted), params.pack(*numbers), grid)
