"""Computations of rows, some rows at a time: what lies between their reductions stays in the processor's cache.

Reductions are NumPy's, of the same rows in the same order as those of a whole array; the elementwise work between them is
what :mod:`numr.runtime.cpu.fused` makes of it.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from numr.dtypes import DType
from numr.ir.fused import Computation, Source, Step
from numr.ir.ops import Reduction, Signature
from numr.ir.rows import RowComputation
from numr.runtime.cpu.blockwise import FOLDS, MANY
from numr.runtime.cpu.jit.loops import STREAMED_BYTES, KernelLoop
from numr.runtime.cpu.memory import ALIGNMENT
from numr.runtime.cpu.row_stages import slots_of, stages_of
from numr.runtime.cpu.threads import blocks, run_blocks

if TYPE_CHECKING:
    from numr.runtime.client import FusedLoop
    from numr.runtime.cpu.client import CpuClient

__all__ = ["RowLoop", "keeps_rows_whole", "row_loop"]

Array = np.ndarray[Any, Any]

#: Bytes of the largest elements in one block of rows: the few that are needed at a time fit into the second cache.
_BLOCK_BYTES: Final = 1 << 19
#: Rows of a block are a multiple of so many, so that blocks begin at whole cache lines.
_ROWS: Final = 16


def keeps_rows_whole(shape: tuple[int, ...], axes: tuple[int, ...]) -> bool:
    """Whether reductions of a C-contiguous array go over each row by itself, and rows are at the end."""
    first = len(shape) - len(axes)
    if not first or tuple(sorted(axes)) != tuple(range(first, len(shape))):
        return False
    long = [axis for axis, n in enumerate(shape) if n >= MANY]
    # Of larger arrays the first long axis is split.
    return math.prod(shape) <= FOLDS.whole or bool(long and long[0] < first)


class _Moving(NamedTuple):
    """An array with one axis for rows: its address, and how far it is from row to row."""

    array: Array
    first: int
    step: int


class _Bound(NamedTuple):
    """What is known of all blocks of as many rows, during one run.

    Attributes
    ----------
    computes : list of list of (callable or None)
        For each stage what does its works, given addresses.
    passing : dict of int to (callable or None)
        What copies results past the caches.
    fixed : dict of int to int
        Addresses of arrays that are the same for all blocks.
    viewed : list of int
        The values of which blocks need the arrays themselves.
    """

    computes: list[list[Callable[..., None] | None]]
    passing: dict[int, Callable[..., None] | None]
    fixed: dict[int, int]
    viewed: list[int]


class _Call(NamedTuple):
    """One run.

    Attributes
    ----------
    fixed : dict of int to Any
        Operands that are the same for all rows.
    moving : dict of int to _Moving
        Operands and results of which each block has its rows.
    passed : dict of int to _Moving
        Results that go past the caches.
    bound : dict of int to _Bound
        By the number of rows.
    """

    fixed: dict[int, Any]
    moving: dict[int, _Moving]
    passed: dict[int, _Moving]
    bound: dict[int, _Bound]


#: So many numbers of rows are remembered by each thread: those of whole blocks, and of the last one.
_COUNTS: Final = 2


class _Scratch(threading.local):
    """Memory of a thread for the values of a block, and the arrays and addresses in it by computation and rows."""

    def __init__(self) -> None:
        self.memory: Array = np.empty(0, np.uint8)
        self.arrays: WeakKeyDictionary[
            RowLoop, dict[int, tuple[dict[int, Array], dict[int, int]]]
        ] = WeakKeyDictionary()

    def reserve(self, nbytes: int) -> Array:
        """Memory of at least that size, which the next call may hand out again."""
        if self.memory.size < nbytes:
            memory = np.empty(nbytes + ALIGNMENT, np.uint8)
            start = -memory.__array_interface__["data"][0] % ALIGNMENT
            self.memory = memory[start : start + nbytes]
            self.arrays.clear()
        return self.memory


_scratch: Final = _Scratch()


def row_loop(
    client: CpuClient,
    computation: RowComputation,
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    composed: FusedLoop,
) -> FusedLoop:
    """Prepare a computation of rows; by ``composed`` where blocks of rows would be reduced otherwise than all of them."""
    reduced = []
    for number in computation.reductions:
        step = computation.step(number)
        assert step is not None
        (argument,) = step.arguments
        # NumPy converts rows by pieces whose borders depend on where in an array they are.
        converts = step.signature.compute != computation.dtype(argument)
        if converts and step.op in (Reduction.SUM, Reduction.PROD):
            return composed
        reduced.append(argument)
    if not keeps_rows_whole(shape, axes):
        return composed
    rows = RowLoop(client, computation, shape, axes)
    stored = [i for i in reduced if i < len(computation.sources)]

    def loop(operands: Sequence[Any], results: Sequence[Array]) -> None:
        arrays = [*(operands[i] for i in stored), *results]
        in_order = all(array.flags.c_contiguous for array in arrays)
        (rows if in_order else composed)(operands, results)

    return loop


class RowLoop:
    """A computation of rows of a shape; a ``FusedLoop``.

    Parameters
    ----------
    client : CpuClient
        Prepares elementwise work.
    computation : RowComputation
        What is computed; what sums are of is of the dtype that they compute in.
    shape, axes : tuple of int
        The shape and the axes along which rows lie; see :func:`keeps_rows_whole`.
    """

    def __init__(
        self,
        client: CpuClient,
        computation: RowComputation,
        shape: tuple[int, ...],
        axes: tuple[int, ...],
    ) -> None:
        self._computation = computation
        first = len(shape) - len(axes)
        self._shape = shape
        self._count = math.prod(shape[:first])
        self._row = shape[first:]
        self._ones = (1,) * len(axes)
        self._axes = tuple(range(1, 1 + len(axes)))
        length = math.prod(self._row)
        itemsize = max(computation.dtype(v).itemsize for v in range(len(computation.per_row)))
        rows = max(1, _BLOCK_BYTES // (itemsize * length))
        self._rows = rows // _ROWS * _ROWS or rows
        self._stages = stages_of(client, computation)
        stored = [v for sweep in computation.sweeps for v in sweep.stores]
        #: Results that go past the caches, by what copies them there.
        self._streams: dict[int, KernelLoop] = {}
        for v in stored:
            dtype = computation.dtype(v)
            copying = client.fused(_copy(dtype))
            large = self._count * length * dtype.itemsize >= STREAMED_BYTES
            if large and isinstance(copying, KernelLoop) and self._rows % _ROWS == 0:
                self._streams[v] = copying
        slots, sizes = slots_of(computation, self._stages, self._streams)
        sizes = [size * length for size in sizes]
        for v, per_row in enumerate(computation.per_row):
            if per_row and computation.step(v) and v not in computation.results:
                slots[v] = len(sizes)
                sizes.append(computation.dtype(v).itemsize)
        starts = [0]
        for size in sizes:
            starts.append(starts[-1] + -(-size * self._rows // ALIGNMENT) * ALIGNMENT)
        #: Where in scratch memory values are.
        self._places = {v: starts[slot] for v, slot in slots.items()}
        self._scratch_bytes = starts[-1]

    # --------------------------------------------------------------------- runs
    def __call__(self, operands: Sequence[Any], results: Sequence[Array]) -> None:
        """Compute and write the results, over threads where there are several blocks."""
        whole = {i: self._by_rows(i, x) for i, x in enumerate(operands)}
        passed: dict[int, _Moving] = {}
        for v, array in zip(self._computation.results, results, strict=True):
            row = self._ones if self._computation.per_row[v] else self._row
            array = array.reshape((self._count, *row))
            if v in self._streams:
                passed[v] = _moving(array)
            else:
                whole[v] = array
        moving = {
            v: _moving(x)
            for v, x in whole.items()
            if isinstance(x, np.ndarray) and x.ndim and len(x) > 1
        }
        fixed = {v: x for v, x in whole.items() if v not in moving}
        if self._count <= self._rows:
            self._only_block({**whole, **self._scratch(self._count)[0]})
            return
        call = _Call(fixed, moving, passed, {})
        run_blocks(lambda part: self._block(part, call), blocks(self._count, 1, self._rows))

    def _by_rows(self, number: int, operand: Any) -> Any:
        """An operand with one axis for all rows; one without axes, or a scalar, where it is the same everywhere."""
        if not isinstance(operand, np.ndarray):
            return operand
        if operand.size == 1 or not any(operand.strides):
            key: tuple[Any, ...] = (*(0,) * operand.ndim, ...)
            return operand[key]
        if self._computation.per_row[number]:
            return operand.reshape((self._count, *self._ones))
        if operand.shape != self._shape:
            operand = np.broadcast_to(operand, self._shape)
        if not any(operand.strides[: -len(self._row)]):
            return operand[(0,) * (operand.ndim - len(self._row))][None]
        return operand.reshape((self._count, *self._row))

    def _only_block(self, values: dict[int, Any]) -> None:
        """Compute all rows, which are few."""
        for stage in self._stages:
            for work in stage.works:
                work(values)
            stage.reduce(values, self._axes)

    def _block(self, part: slice, call: _Call) -> None:
        """Compute some rows."""
        count, start = part.stop - part.start, part.start
        scratch, places = self._scratch(count)
        bound = call.bound.get(count)
        if bound is None:
            bound = call.bound[count] = self._bound(part, call, scratch)
        values = {**call.fixed, **scratch}
        for v in bound.viewed:
            values[v] = call.moving[v].array[part]
        addresses = {**bound.fixed, **places}
        for v, (_, first, step) in call.moving.items():
            addresses[v] = first + start * step
        for stage, computes in zip(self._stages, bound.computes, strict=True):
            for work, compute in zip(stage.works, computes, strict=True):
                if compute is None:
                    work(values)
                else:
                    compute(*[addresses[v] for v in work.arrays])
            stage.reduce(values, self._axes)
        for v, (array, first, step) in call.passed.items():
            compute = bound.passing[v]
            if compute is None:
                np.copyto(array[part], values[v])
            else:
                compute(addresses[v], first + start * step)

    def _bound(self, part: slice, call: _Call, scratch: dict[int, Array]) -> _Bound:
        """What is known of all blocks of as many rows as one has."""
        values = {**call.fixed, **scratch}
        values.update((v, x.array[part]) for v, x in call.moving.items())
        computes = []
        viewed: set[int] = set()
        for stage in self._stages:
            found: list[Callable[..., None] | None] = []
            for work in stage.works:
                compute = work.bound(values)
                if compute is None:
                    viewed.update((*work.reads, *work.writes))
                found.append(compute)
            computes.append(found)
            viewed.update(v for reduction in stage.reductions for v in reduction[2:])
        passing = {
            v: self._streams[v].bound([values[v]], [x.array[part]], streams=True)
            for v, x in call.passed.items()
        }
        fixed = {
            v: x.__array_interface__["data"][0]
            for v, x in call.fixed.items()
            if isinstance(x, np.ndarray)
        }
        return _Bound(computes, passing, fixed, [v for v in call.moving if v in viewed])

    def _scratch(self, count: int) -> tuple[dict[int, Array], dict[int, int]]:
        """Arrays for the values of so many rows in memory of the thread, and their addresses."""
        memory = _scratch.reserve(self._scratch_bytes)
        known = _scratch.arrays.setdefault(self, {})
        found = known.get(count)
        if found is None:
            if len(known) >= _COUNTS:
                known.clear()
            computation = self._computation
            arrays = {
                v: np.ndarray(
                    (count, *(self._ones if computation.per_row[v] else self._row)),
                    computation.dtype(v),
                    memory,
                    place,
                )
                for v, place in self._places.items()
            }
            start = memory.__array_interface__["data"][0]
            addresses = {v: start + place for v, place in self._places.items()}
            found = known[count] = (arrays, addresses)
        return found


def _moving(array: Array) -> _Moving:
    return _Moving(array, array.__array_interface__["data"][0], array.strides[0])


def _copy(dtype: DType) -> Computation:
    """The computation that leaves elements as they are."""
    step = Step(None, Signature(dtype, dtype), (0,))
    return Computation((Source(dtype, is_array=True),), (step,), (1,))
