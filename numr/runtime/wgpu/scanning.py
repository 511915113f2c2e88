"""The kernels of running sums, products, maxima and minima.

A long line is divided into pieces. Their values are found first, and scanned in their turn; then each piece is scanned,
beginning with what came before it. Where workgroups begin and go on in order, lines are scanned in one pass instead:
side by side (:mod:`numr.runtime.wgpu.chained`) and by themselves (:mod:`numr.runtime.wgpu.chained_lines`). On a GPU a
workgroup scans a line whose elements are neighbours in memory; else an invocation runs along a line, beside others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from numr.layout.strides import merge_axes
from numr.runtime.wgpu import texts
from numr.runtime.wgpu.chained import chain, may_be_chained
from numr.runtime.wgpu.chained_lines import chain_lines, tile_for_chain
from numr.runtime.wgpu.lines import WIDTH, Lines, by_loads, fits
from numr.runtime.wgpu.loading import Elements, Loads
from numr.runtime.wgpu.packing import pack_into
from numr.runtime.wgpu.reducing import (
    BUSY_INVOCATIONS,
    BUSY_SOFTWARE,
    MOST_LOADS,
    SHORT_PIECE,
    SOFTWARE_GROUP,
    Division,
    partial,
)
from numr.runtime.wgpu.scanning_texts import Variant, text_of
from numr.runtime.wgpu.texts import WORKGROUP, Walk
from numr.runtime.wgpu.windows import Windows

if TYPE_CHECKING:
    from numr.runtime.storage import DeviceArray
    from numr.runtime.wgpu.folding import Fold
    from numr.runtime.wgpu.launch import DeviceContext
    from numr.runtime.wgpu.programs import Recording

__all__ = ["Scan", "scan_into"]

#: Workgroups that keep a GPU busy, so that lines are not divided, and how many work on one otherwise: with many, few
#: are left over at the end.
_ENOUGH_GROUPS: Final = 512
_MANY_GROUPS: Final = 8192
#: Lines side by side that keep a GPU busy.
_ENOUGH_INVOCATIONS: Final = 1 << 16
#: Loads of a piece at least, for an invocation that runs along it.
_LONG_PIECE: Final = 16
#: Bytes of a workgroup's memory, which every device has.
_WORKGROUP_BYTES: Final = 1 << 14


class Scan:
    """How an array's lines are scanned; steps and positions count loads, as for :class:`Lines`.

    Attributes
    ----------
    outputs, length, start, wide, apart
        As of ``Lines``.
    kept : Walk
        The way to the start of each line, in the source and in the result.
    steps : tuple of int
        The step along a line in both.
    by_columns : bool
        Whether neighbours in the result belong to different lines.
    """

    def __init__(
        self,
        context: DeviceContext,
        array: DeviceArray,
        out: DeviceArray,
        axis: int,
        seen: Windows,
        target: Windows,
    ) -> None:
        others = [i for i in range(array.ndim) if i != axis]
        lengths, strides = merge_axes(
            tuple(array.shape[i] for i in others),
            [tuple(x.strides[i] for i in others) for x in (array, out)],
        )
        kept = [list(zip(lengths, steps, strict=True)) for steps in strides]
        length = array.shape[axis]
        along = [[(length, x.strides[axis])] for x in (array, out)]
        starts = (seen.start, 0)
        self.outputs = 1
        for n in lengths:
            self.outputs *= n
        nearest = min((step for step in strides[1]), default=1 << 62)
        self.by_columns = nearest < out.strides[axis]
        self.wide = self.apart = False
        if seen.is_one and target.is_one and array.dtype.kind != "V":
            alone = self.outputs == 1
            self.wide = all(
                fits(a, k, start, may_end_anywhere=alone)
                for a, k, start in zip(along, kept, starts, strict=True)
            )
            if not self.wide and not self._are_enough(context, array, out):
                self.wide = self.apart = all(
                    fits(k, a, start) for a, k, start in zip(along, kept, starts, strict=True)
                )
        self.start = seen.start
        if self.wide:
            kept, along = [by_loads(k) for k in kept], [by_loads(a) for a in along]
            self.start //= WIDTH
            if self.apart:
                self.outputs //= WIDTH
        self.kept = Walk(tuple(n for n, _ in kept[0]), [tuple(step for _, step in k) for k in kept])
        self.length = along[0][0][0]
        self.steps = (along[0][0][1], along[1][0][1])

    def _are_enough(self, context: DeviceContext, array: DeviceArray, out: DeviceArray) -> bool:
        """Whether lines keep a GPU busy by themselves, and would not if an invocation took four."""
        return (
            not context.is_cpu
            and _ENOUGH_INVOCATIONS <= self.outputs < WIDTH * _ENOUGH_INVOCATIONS
            and min(array.itemsize, out.itemsize) >= 4
        )

    def division(self, context: DeviceContext, tile: int) -> Division:
        """How lines are divided; ``tile`` is how many loads a workgroup works on at once, together."""
        length, outputs = self.length, self.outputs
        if context.is_cpu:
            parts = 1
            if length > 8 * SHORT_PIECE:
                parts = min(-(-BUSY_SOFTWARE // outputs), length // SHORT_PIECE)
            return _pieces(length, max(parts, -(-length // MOST_LOADS)), WIDTH)
        if self.by_columns or length <= 2 * WIDTH:
            parts = 1
            if outputs < _ENOUGH_INVOCATIONS:
                parts = min(-(-BUSY_INVOCATIONS // outputs), length // _LONG_PIECE)
            return _pieces(length, max(parts, 1), WIDTH)
        width = 2
        while width < WORKGROUP and width * (tile // WORKGROUP) < length:
            width *= 2
        groups = -(-outputs * width // WORKGROUP)
        parts = 1
        if groups < _ENOUGH_GROUPS:
            parts = max(1, min(_MANY_GROUPS // groups, length // (4 * tile)))
        return _pieces(length, parts, tile)._replace(together=True, width=width)


def _units_of_tiles(fold: Fold) -> int:
    """Loads of a tile for each invocation, such that a workgroup's memory holds the values."""
    values = _WORKGROUP_BYTES // fold.stored.itemsize - 2 * WORKGROUP
    return max(1, min(values * 32 // (33 * WORKGROUP), WIDTH))


def _pieces(length: int, parts: int, unit: int) -> Division:
    """Pieces of a multiple of ``unit`` loads, or one."""
    return Division.pieces(length, -(-length // (parts * unit)) * unit if parts > 1 else length)


def scan_into(work: Recording, fold: Fold, array: DeviceArray, axis: int, out: DeviceArray) -> None:
    """Scan an array that is not empty along an axis, into a fresh C-contiguous array of its shape."""
    function = f"cumulative {fold.kind.value}"
    seen, target = (Windows.of(work.context, x, function) for x in (array, out))
    scan = Scan(work.context, array, out, axis, seen, target)
    if texts.lanes(out.dtype) > 1 and not scan.wide:
        bits = work.empty(out.shape, np.dtype(np.uint32))
        _scan(work, fold, array, axis, bits, seen, function)
        pack_into(work, bits, out, function)
    else:
        _scan(work, fold, array, axis, out, seen, function)


def _scan(
    work: Recording,
    fold: Fold,
    array: DeviceArray,
    axis: int,
    out: DeviceArray,
    seen: Windows,
    function: str,
) -> None:
    context = work.context
    target = Windows.of(context, out, function)
    scan = Scan(context, array, out, axis, seen, target)
    loads = Loads(fold, array.dtype == fold.stored, scan.wide, scan.apart, seen.pattern)
    units = _units_of_tiles(fold)
    division = scan.division(context, units * WORKGROUP)
    if division.parts > 1:
        tile = tile_for_chain(context, fold, scan, seen, target) if division.together else None
        if tile is not None:
            chain_lines(work, fold, scan, loads, seen, target, tile)
            return
        if not division.together and may_be_chained(context, fold, scan, seen, target):
            chain(work, fold, scan, loads, seen, target)
            return
    if not division.together:
        units = 1 if context.is_cpu else loads.at_once(software=False)
    bound = [seen, target]
    carried = None
    slots: tuple[int, ...] = (0, 0)
    if division.parts > 1:
        before = _carries(work, fold, array, axis, seen, scan, division, function)
        slots = before.strides
        carried = Windows.of(context, before, function)
        bound.append(carried)
    variant = Variant(
        loads,
        division.together,
        scan.kept.rank,
        target.pattern,
        carried.pattern if carried else None,
        SOFTWARE_GROUP if context.is_cpu else WORKGROUP,
        units,
    )
    if division.together:
        total = -(-scan.outputs // (WORKGROUP // division.width)) * division.parts
        groups, row = context.grid(total, 1)
    else:
        total = scan.outputs * division.parts
        groups, row = context.grid(total, variant.group)
    text, params = text_of(variant)
    work.run(
        text,
        bound,
        params.pack(
            *(row, total, scan.start, scan.outputs, scan.length, division.parts, division.first),
            *(division.width, *scan.steps, *slots),
            *scan.kept.packed(),
        ),
        groups,
    )


def _carries(
    work: Recording,
    fold: Fold,
    array: DeviceArray,
    axis: int,
    seen: Windows,
    scan: Scan,
    division: Division,
    function: str,
) -> DeviceArray:
    """The values of each line up to the end of each piece, of shape (lines, pieces)."""
    lines = Lines.of(array, (axis,), seen, ordered=True)
    in_line = [x.wide and not x.apart for x in (scan, lines)]
    piece = division.span * (WIDTH if in_line[0] else 1) // (WIDTH if in_line[1] else 1)
    width = WORKGROUP if division.together else 0
    pieces = Division.pieces(lines.length, piece, width)
    values = partial(work, fold, Elements(array, seen), lines, pieces)
    result = work.empty(values.shape, fold.stored)
    result.layout = values.layout
    _scan(work, fold, values, 1, result, Windows.of(work.context, values, function), function)
    return result
