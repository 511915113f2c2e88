"""Computations of rows: one kernel for several reductions of a row and the elementwise work around them.

A computation that is one reduction, with something computed of its results, has the kernels of reductions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from numr.dtypes import DType
from numr.ir.rows import RowComputation, SingleReduction
from numr.layout import Layout
from numr.runtime.client import FusedLoop
from numr.runtime.storage import DeviceArray
from numr.runtime.wgpu import texts
from numr.runtime.wgpu.computed import Computed, pack_scalars, way_of
from numr.runtime.wgpu.epilogues import Epilogue
from numr.runtime.wgpu.lines import WIDTH, Lines
from numr.runtime.wgpu.loading import Elements
from numr.runtime.wgpu.programs import Recording
from numr.runtime.wgpu.ranges import is_whole
from numr.runtime.wgpu.reducing import MOST_LOADS, SOFTWARE_GROUP, After, Division, reduce_elements
from numr.runtime.wgpu.reductions import MOST_COMPUTED, SMALL, Reductions
from numr.runtime.wgpu.row_parts import costly, fold_at, largest, operands_of
from numr.runtime.wgpu.row_texts import RowVariant, row_text
from numr.runtime.wgpu.texts import WORKGROUP
from numr.runtime.wgpu.windows import Windows

__all__ = ["Rows"]


#: Workgroups have room to hold values for multiples of so many loads, so that there are few kernels.
_ROOM: Final = 512


class Rows(Reductions):
    """The families of computations of rows."""

    fusion_epilogues = True

    def fuses_rows(
        self, shape: tuple[int, ...], axes: tuple[int, ...], dtypes: tuple[DType, ...]
    ) -> bool:
        return self._row_lines(shape, axes, dtypes) is not None

    def _row_lines(
        self, shape: tuple[int, ...], axes: tuple[int, ...], dtypes: tuple[DType, ...]
    ) -> tuple[Lines, Division] | None:
        """How the rows of a shape are walked, and divided; None if they are not at the end, or are cut in pieces."""
        size, context = math.prod(shape), self.context
        most = context.max_binding - 2 * context.alignment
        if (
            tuple(sorted(axes)) != tuple(range(len(shape) - len(axes), len(shape)))
            or size > MOST_COMPUTED
            or any(size * dtype.itemsize > most for dtype in dtypes)
        ):
            return None
        lines = Lines.of_layout(Layout.contiguous(shape), axes)
        division = Division.of(context, lines)
        if lines.apart or lines.by_columns or division.parts > 1:
            return None
        # A software adapter stops an invocation that goes through all sweeps too long.
        if not division.together and lines.length * (len(dtypes) + 1) > MOST_LOADS:
            return None
        return lines, division

    def fused_rows(
        self, computation: RowComputation, shape: tuple[int, ...], axes: tuple[int, ...]
    ) -> FusedLoop:
        composed = super().fused_rows(computation, shape, axes)
        single = computation.single_reduction()
        if single is not None:
            return _ReductionKernels(self, computation, single, shape, axes, composed)
        reduced = [step.arguments[0] for step in computation.steps if step.is_reduction]
        found = self._row_lines(shape, axes, tuple(map(computation.dtype, reduced)))
        if found is None or not self._has_kernel(computation, found[0]):
            return composed
        return _RowKernels(self, computation, shape, axes, found, composed)

    def _has_kernel(self, computation: RowComputation, lines: Lines) -> bool:
        """Whether results can be written row by row, and there are no more operations than suit a kernel."""
        alone = (computation.dtype(v) for v in computation.results)
        words = (
            texts.lanes(dtype) == 1 or (lines.wide and not computation.per_row[v])
            for v, dtype in zip(computation.results, alone, strict=True)
        )
        return all(words) and largest(computation) <= SMALL


class _ReductionKernels:
    """The kernels of one reduction, and what is computed of its results.

    Parameters
    ----------
    client, computation, shape, axes, composed
        As of :class:`_RowKernels`.
    single : SingleReduction
        The computation as a reduction.
    """

    def __init__(
        self,
        client: Rows,
        computation: RowComputation,
        single: SingleReduction,
        shape: tuple[int, ...],
        axes: tuple[int, ...],
        composed: FusedLoop,
    ) -> None:
        self._client = client
        self._computation = computation
        self._single = single
        self._shape, self._axes = shape, axes
        self._composed = composed
        elements, self._scalars, rows = operands_of(computation)
        self._arrays = [*elements, *rows]
        self._fold = fold_at(computation, single.number)
        self._epilogue = None if single.epilogue is None else Epilogue(single.epilogue)

    def __call__(self, operands: Sequence[Any], results: Sequence[DeviceArray]) -> None:
        """Compute the result and write it into an array."""
        client, single = self._client, self._single
        stored = single.argument in self._arrays
        if not stored and not client.computes(single.prologue, operands, self._shape, self._fold):
            self._composed(operands, results)
            return
        arrays = [operands[i] for i in self._arrays]
        given = [operands[i] for i in self._scalars]
        (target,) = results
        handles = {x.storage.handle for x in arrays}
        own = is_whole(target) and target.storage.handle not in handles
        out = target if own else client.empty(target.shape, target.dtype)

        def reduced(work: Recording) -> Sequence[DeviceArray]:
            elements = (
                Elements.of(work.context, operands[single.argument], "graph")
                if stored
                else Computed(work.context, single.prologue, operands, self._shape)
            )
            after = None
            if self._epilogue is not None:
                dtypes = [self._computation.dtype(i) for i in self._scalars]
                after = After(self._epilogue, pack_scalars(given, dtypes))
            reduce_elements(work, self._fold, elements, self._axes, out, after)
            return (out,)

        key = (self._computation, self._shape, self._axes, *map(repr, given))
        client.programs.run_on(key, [*arrays, out], reduced)
        if out is not target:
            client.assign(target, out)


class _RowKernels:
    """The kernel of a computation of rows of a shape.

    Parameters
    ----------
    client : Rows
        The device.
    computation, shape, axes
        As of :meth:`Rows.fused_rows`.
    way : (Lines, Division)
        How rows are walked.
    composed : FusedLoop
        What else does the same.
    """

    def __init__(
        self,
        client: Rows,
        computation: RowComputation,
        shape: tuple[int, ...],
        axes: tuple[int, ...],
        way: tuple[Lines, Division],
        composed: FusedLoop,
    ) -> None:
        self._client = client
        self._computation = computation
        self._shape, self._axes = shape, axes
        self._lines, self._division = way
        self._composed = composed
        self._elements, self._scalars, self._rows = operands_of(computation)
        reduced = {step.arguments[0] for step in computation.steps if step.is_reduction}
        self._read_as_they_are = [i for i in self._elements if i in reduced]

    def __call__(self, operands: Sequence[Any], results: Sequence[DeviceArray]) -> None:
        """Compute the results and write them into arrays."""
        client, context = self._client, self._client.context
        arrays = [operands[i] for i in (*self._elements, *self._rows)]
        handles = {x.storage.handle for x in arrays}
        if not (
            all(map(context.fits, (*arrays, *results)))
            and all(self._lies_so(operands[i]) for i in self._read_as_they_are)
        ):
            self._composed(operands, results)
            return
        made = [
            out
            if is_whole(out) and out.storage.handle not in handles
            else client.empty(out.shape, out.dtype)
            for out in results
        ]
        given = [operands[i] for i in self._scalars]

        def computed(work: Recording) -> Sequence[DeviceArray]:
            self._run(work, arrays, given, made)
            return made

        key = (self._computation, self._shape, self._axes, *map(repr, given))
        client.programs.run_on(key, [*arrays, *made], computed)
        for target, array in zip(results, made, strict=True):
            if target is not array:
                client.assign(target, array)

    def _lies_so(self, array: DeviceArray) -> bool:
        """Whether an array by itself would be reduced along the same lines as one of its own memory."""
        seen = Windows.of(self._client.context, array, "graph")
        lines = Lines.of(array, self._axes, seen)
        return (lines.wide, lines.length) == (self._lines.wide, self._lines.length)

    def room(self) -> int:
        """Loads for which a workgroup holds values; 0 where none are worth it, or there is no room."""
        context, division = self._client.context, self._division
        values = sum(map(len, costly(self._computation)))
        if not values or not division.together or context.is_cpu:
            return 0
        loads = WORKGROUP // division.width * self._lines.length
        room = -(-loads // _ROOM) * _ROOM
        width = 4 * WIDTH if self._lines.wide else 4
        # The values of reductions are there as well.
        own = WORKGROUP * sum(
            fold_at(self._computation, number).stored.itemsize
            for number in self._computation.reductions
        )
        limit = context.limits["max-compute-workgroup-storage-size"]
        return room if values * room * width + own <= limit else 0

    def _run(
        self,
        work: Recording,
        arrays: Sequence[DeviceArray],
        given: Sequence[Any],
        outs: Sequence[DeviceArray],
    ) -> None:
        context, lines, division = work.context, self._lines, self._division
        count = len(self._elements)
        modes, rank, tail = way_of(context, arrays[:count], self._shape, wide=lines.wide)
        bound = [Windows.of(context, array, "graph") for array in (*arrays, *outs)]
        places: list[int] = []
        for array, windows in zip(arrays[count:], bound[count:], strict=False):
            one = all(
                n == 1 or not step for n, step in zip(array.shape, array.strides, strict=True)
            )
            places += [windows.start, 0 if one else 1]
        group = SOFTWARE_GROUP if context.is_cpu and not division.together else WORKGROUP
        variant = RowVariant(
            self._computation,
            lines.wide,
            division.together,
            modes,
            rank,
            len(tail),
            group,
            context.is_cpu,
            self.room(),
        )
        if division.together:
            groups, row = context.grid(-(-lines.outputs // (WORKGROUP // division.width)), 1)
        else:
            groups, row = context.grid(lines.outputs, group)
        text, params = row_text(variant)
        dtypes = [self._computation.dtype(i) for i in self._scalars]
        numbers = (
            *(row, lines.outputs, lines.length, lines.elements, division.width),
            *pack_scalars(given, dtypes),
            *tail,
            *places,
        )
        work.run(text, bound, params.pack(*numbers), groups)
