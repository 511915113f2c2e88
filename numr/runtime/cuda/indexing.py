"""Gathering and scattering by index arrays, with every index checked.

Whether an index is out of range is known to the device alone. So each call waits for the device, some ten
microseconds; in exchange a bad index is an error, as on the CPU, and not another element.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from math import gcd
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from numr.errors import IndexingError
from numr.layout.strides import merge_axes
from numr.runtime.cuda import indexing_texts as kernels
from numr.runtime.cuda import texts
from numr.runtime.cuda.texts import BLOCK, NARROW, VECTOR, power_of_two

if TYPE_CHECKING:
    from numr.runtime.cuda.context import DeviceContext

__all__ = ["gather_across", "gather_into", "prefers_across", "scatter_from"]

_RANKS: Final = (1, 2, 3, 4, 8, 64)
#: Blocks that keep a device busy: as many as there can be, so that few rows are in the cache at a time.
_BUSY: Final = 512
#: Short rows are read as a whole where one of so many of their elements is picked, and if side by side, so many bytes.
_SPARSE: Final = 8
_STRETCH: Final = 16 << 10
_SHARES: Final = 4 << 10
#: Indices are checked by themselves where there are so many bytes behind each, and so many in all.
_WORTH: Final = 64
_MUCH: Final = 1 << 22


class _Plan(NamedTuple):
    """How the elements behind each pick of an array's leading axes are moved, in words that are not looked at."""

    #: Bytes of a word.
    width: int
    #: Words behind a pick.
    inner: int
    #: Places that an index picks from.
    places: int
    index_rank: int
    inner_rank: int
    #: Lengths and strides of the indexed axes, and those of the others.
    indexed: bytes
    dims: bytes


@lru_cache(maxsize=1024)
def _plan(
    shape: tuple[int, ...], strides: tuple[int, ...], count: int, itemsize: int, alignment: int
) -> _Plan:
    """For an array of which the first ``count`` axes are indexed; addresses are multiples of ``alignment``."""
    lengths: list[int] = []
    steps: list[int] = []
    inner = 1
    for n in shape[count:]:
        inner *= n
    width = itemsize
    if inner:
        lengths, (steps,) = merge_axes(shape[count:], [strides[count:]])
        if steps[-1:] == [itemsize]:
            # What is behind a pick, and behind the next, lies in whole words of at most 16 bytes.
            run = lengths[-1] * itemsize
            width = gcd(alignment, VECTOR, run, *strides[:count], *steps[:-1])
            lengths[-1], steps[-1] = run // width, width
            inner = inner * itemsize // width
    index_rank = next(rank for rank in _RANKS if count <= rank)
    missing = index_rank - count
    numbers = [*shape[:count], *[1] * missing, *strides[:count], *[0] * missing]
    inner_rank = texts.rank_for(len(lengths))
    places = 1
    for n in shape[:count]:
        places *= n
    return _Plan(
        width,
        inner,
        places,
        index_rank,
        inner_rank,
        struct.pack(f"{len(numbers)}q", *numbers),
        texts.pack_dims(inner_rank, lengths, [steps]),
    )


def gather_into(context: DeviceContext, array: Any, indices: Sequence[Any], out: Any) -> None:
    """Read elements at index arrays, which are contiguous and int64, into a C-contiguous array.

    Raises
    ------
    IndexingError
        If an index is out of range; ``out`` is arbitrary then.
    """
    if indices[0].size:
        _Moves(context, array, indices, out).gather()


def prefers_across(array: Any, indices: Sequence[Any]) -> bool:
    """Whether neighbours in memory are neighbours of the one indexed axis, so that picks should run along rows."""
    shape, strides = array.shape, array.strides
    if len(indices) != 1 or len(shape) < 2 or indices[0].size < 32 or not array.size:
        return False
    return all(
        n == 1 or abs(step) > abs(strides[0])
        for n, step in zip(shape[1:], strides[1:], strict=True)
    )


def gather_across(context: DeviceContext, array: Any, index: Any, out: Any) -> None:
    """Read elements at one index array, as :func:`gather_into` does, with the picks as ``out``'s last axis.

    Raises
    ------
    IndexingError
        If an index is out of range; ``out`` is arbitrary then.
    """
    if index.size:
        _Moves(context, array, [index], out).gather_across()


def scatter_from(context: DeviceContext, array: Any, indices: Sequence[Any], values: Any) -> None:
    """Write a C-contiguous array's elements at index arrays; the last write to an element wins.

    Threads write in any order. So that the last value wins, a first kernel notes for each place the last
    position that writes to it, in a table of 4 or 8 bytes for each indexed place.

    Raises
    ------
    IndexingError
        If an index is out of range; nothing is written then.
    """
    if indices[0].size:
        _Moves(context, array, indices, values).scatter()


class _Moves:
    """Elements of an array that index arrays pick, and their counterparts in a contiguous one."""

    def __init__(
        self, context: DeviceContext, array: Any, indices: Sequence[Any], other: Any
    ) -> None:
        self.context = context
        self.shape, self.steps = array.shape, array.strides
        self.picks = int(indices[0].size)
        self.addresses = array.data.ptr, other.data.ptr
        plan = self.plan = _plan(
            array.shape,
            array.strides,
            len(indices),
            array.dtype.itemsize,
            gcd(*self.addresses, VECTOR),
        )
        pointers = [index.data.ptr for index in indices]
        pointers += [0] * (plan.index_rank - len(indices))
        self.count = len(indices)
        self.index = struct.pack(f"{len(pointers)}q", *pointers) + plan.indexed

    def gather(self) -> None:
        if self._is_checked_first():
            self._move(0, 0, scatters=False, wide=False)
            return
        with self.context.report() as report:
            self._move(0, report.ptr, scatters=False, wide=False)
            self.context.synchronize()
            self._check(report.values)

    def _is_checked_first(self) -> bool:
        """Check the indices by themselves where that is little work beside the rest, so that none waits for the rest."""
        plan = self.plan
        if plan.inner * plan.width < _WORTH or plan.inner * plan.width * self.picks < _MUCH:
            return False
        kernel = self.context.kernel(kernels.check(plan.index_rank), 3, len(self.index))
        with self.context.report() as report:
            arguments = report.ptr, self.picks, self.count, self.index
            self.context.launch(kernel, -(-self.picks // BLOCK), 1, BLOCK, 1, *arguments)
            self.context.synchronize()
            self._check(report.values)
        return True

    def gather_across(self) -> None:
        if self._gather_from_rows():
            return
        plan, picks = self.plan, self.picks
        # A block goes along a whole row, of which the cache keeps what other picks read, unless there are few rows.
        chunks = max(1, min(-(-picks // (kernels.LARGE * kernels.UNROLL)), _BUSY // plan.inner))
        text = kernels.across(plan.width, plan.inner_rank, plan.inner >= NARROW)
        tail = self.index + plan.dims
        kernel = self.context.kernel(text, 5, len(tail))
        grid = plan.inner * chunks
        if self._is_checked_first():
            self.context.launch(
                kernel, grid, 1, kernels.LARGE, 1, *self.addresses, 0, picks, chunks, tail
            )
            return
        with self.context.report() as report:
            arguments = *self.addresses, report.ptr, picks, chunks, tail
            self.context.launch(kernel, grid, 1, kernels.LARGE, 1, *arguments)
            self.context.synchronize()
            self._check(report.values)

    def _gather_from_rows(self) -> bool:
        """Read short rows as a whole, and pick in the memory that the threads of a block share; False where that is worse."""
        context, plan, picks = self.context, self.plan, self.picks
        row = plan.places * plan.width
        most = context.shared_limit // 2 - VECTOR
        if self.steps[0] != plan.width or row > most or picks * _SPARSE < plan.places:
            return False
        lengths, (steps,) = merge_axes(self.shape[1:], [self.steps[1:]])
        together = 1
        if row < _STRETCH and len(lengths) <= 1 and (steps or [row]) == [row]:
            # Rows side by side are read as one.
            together = max(1, min(_STRETCH // row, kernels.LARGE * kernels.PICKS // picks))
        if row * together < _WORTH or picks * together >= NARROW:
            return False
        lines = -(-plan.inner // together)
        dims, rank = plan.dims, plan.inner_rank
        if together > 1:
            steps, rank = [row * together], texts.rank_for(1)
            dims = texts.pack_dims(rank, [lines], [steps])
        whole = not any(number % VECTOR for number in (self.addresses[0], *steps))
        chunks = -(-picks * together // (kernels.LARGE * kernels.PICKS))
        tail = self.index + dims
        text = kernels.from_rows(plan.width, rank, whole, lines >= NARROW)
        # In few sizes, each of which is a kernel of its own.
        shared = min(-(-2 * (row * together + VECTOR) // _SHARES) * _SHARES, context.shared_limit)
        kernel = context.kernel(text, 10, len(tail), shared)
        grid = min(lines, -(-context.processors * kernels.RESIDENT // chunks)) * chunks
        checked = self._is_checked_first()
        numbers: tuple[int, ...] = lines, chunks, plan.places * together, picks * together, picks
        numbers += plan.places * plan.inner, picks * plan.inner
        with context.report() as report:
            given = *self.addresses, 0 if checked else report.ptr, *numbers, tail
            context.launch(kernel, grid, 1, kernels.LARGE, 1, *given)
            if not checked:
                context.synchronize()
                self._check(report.values)
        return True

    def scatter(self) -> None:
        context, plan = self.context, self.plan
        wide = self.picks >= NARROW
        size = (8 if wide else 4) * max(plan.places, 1)
        table = context.allocator.pointer(size)
        context.set_bytes(table.ptr, 0xFF, size)
        text = kernels.mark(plan.index_rank, wide)
        mark = context.kernel(text, 4, len(self.index))
        with context.report() as report:
            blocks = -(-self.picks // BLOCK)
            arguments = table.ptr, report.ptr, self.picks, self.count, self.index
            context.launch(mark, blocks, 1, BLOCK, 1, *arguments)
            context.synchronize()
            self._check(report.values)
        if plan.inner:
            self._move(table.ptr, 0, scatters=True, wide=wide)

    def _move(self, table: int, report: int, *, scatters: bool, wide: bool) -> None:
        plan, picks = self.plan, self.picks
        single = plan.inner == 1
        chunks, down = 1, 1
        if single:
            across, blocks = BLOCK, -(-picks // (BLOCK * kernels.UNROLL))
        else:
            across = min(power_of_two(max(-(-plan.inner // kernels.UNROLL), 1)), BLOCK)
            down = BLOCK // across
            chunks = max(-(-plan.inner // (across * kernels.UNROLL)), 1)
            blocks = chunks * -(-picks // down)
        text = kernels.move(
            plan.width,
            plan.index_rank,
            plan.inner_rank,
            single,
            scatters,
            wide,
            plan.inner >= NARROW,
        )
        tail = self.index + plan.dims
        kernel = self.context.kernel(text, 8, len(tail))
        arguments = *self.addresses, table, report, picks, self.count, plan.inner, chunks, tail
        self.context.launch(kernel, blocks, 1, across, down, *arguments)

    def _check(self, report: Any) -> None:
        """Raise IndexingError if a kernel met an index out of range."""
        if report[0]:
            axis = int(report[2])
            raise IndexingError(
                f"indexing an array of shape {self.shape}: index {int(report[1])} is out of bounds for axis {axis} "
                f"with size {self.shape[axis]}."
            )
