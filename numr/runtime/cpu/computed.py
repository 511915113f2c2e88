"""Elements that are computed when they are reduced, block by block, so that no array holds all of them."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from numr.dtypes import DType
from numr.ir.fused import Computation, Source, Step
from numr.ir.ops import ADD, Reduction, Signature
from numr.runtime.cpu.blockwise import FOLDS
from numr.runtime.cpu.jit.loops import KernelLoop
from numr.runtime.cpu.memory import ALIGNMENT
from numr.runtime.cpu.reductions import (
    EXTREMUM_BYTES,
    PARTS_ABOVE,
    REDUCTION_BYTES,
    REDUCTIONS,
    ROWS_BLOCK,
    Empty,
    Key,
    add_columns,
    adds_one_by_one,
    keeps_rows,
    reduce_blocks,
)

if TYPE_CHECKING:
    from numr.runtime.cpu.client import CpuClient

__all__ = ["Computed", "reduce_computed"]

Array = np.ndarray[Any, Any]


class _Scratch(threading.local):
    """Memory of a thread for one block."""

    def __init__(self) -> None:
        self.memory: Array = np.empty(0, np.uint8)

    def array(self, shape: tuple[int, ...], dtype: DType) -> Array:
        """A C-contiguous array, whose memory the next one takes."""
        nbytes = math.prod(shape) * dtype.itemsize
        if self.memory.size < nbytes:
            memory = np.empty(nbytes + ALIGNMENT, np.uint8)
            start = -memory.__array_interface__["data"][0] % ALIGNMENT
            self.memory = memory[start : start + nbytes]
        return np.ndarray(shape, dtype, self.memory)


_scratch: Final = _Scratch()


class Computed:
    """The result of a computation on operands broadcast to a shape: the elements of a C-contiguous array.

    Parameters
    ----------
    client : CpuClient
        Prepares the computation.
    computation : Computation
        With one result.
    operands : sequence
        Arrays, and scalars where the computation takes one.
    shape : tuple of int
        What arrays broadcast to.
    """

    def __init__(
        self,
        client: CpuClient,
        computation: Computation,
        operands: Sequence[Any],
        shape: tuple[int, ...],
    ) -> None:
        self.client = client
        self.computation = computation
        self.loop = client.fused(computation)
        self.shape = shape
        self.dtype = computation.result_dtypes[0]
        self.operands = [
            np.broadcast_to(x, shape) if isinstance(x, np.ndarray) else x for x in operands
        ]

    def block(self, key: Key) -> Array:
        """The elements, computed into memory of the thread."""
        split = len(key) - 1
        length = key[split].stop - key[split].start
        lengths = (*self.shape[:split], length, *self.shape[split + 1 :])
        if length == self.shape[split] or math.prod(self.shape[:split]) == 1:
            block = _scratch.array(lengths, self.dtype)
        else:
            # Of the whole array the block would be a part with gaps.
            gap = (*self.shape[:split], length + 1, *self.shape[split + 1 :])
            block = _scratch.array(gap, self.dtype)[(*key[:split], slice(length))]
        self.loop.serial(_at(self.operands, key), [block])
        return block

    def in_a_row(self) -> ComputedRow:
        """The elements along one axis."""
        return ComputedRow(self)

    def outermost(self, axes: list[int]) -> int:
        """The axis of the largest stride: the first that has one."""
        return min(axes)


class ComputedRow:
    """The elements of a computation along one axis, in C order."""

    def __init__(self, computed: Computed) -> None:
        self.shape = (math.prod(computed.shape),)
        self.dtype = computed.dtype
        self._loop = computed.loop
        shape = computed.shape
        operands = computed.operands
        if all(
            x.flags.c_contiguous or not any(x.strides)
            for x in operands
            if isinstance(x, np.ndarray)
        ):
            # Nothing to walk but one axis.
            operands = [_row(x) if isinstance(x, np.ndarray) else x for x in operands]
            shape = self.shape
        self._operands, self._axes = operands, shape
        self._adding: KernelLoop | None = None
        if len(shape) == 1 and isinstance(computed.loop, KernelLoop):
            adding = computed.client.fused(_added(computed.computation))
            self._adding = adding if isinstance(adding, KernelLoop) else None

    def block(self, key: Key) -> Array:
        """The elements, computed into memory of the thread."""
        (part,) = key
        operands, shape = self._operands, self._axes
        row = _scratch.array((part.stop - part.start,), self.dtype)
        for box in _boxes(shape, part.start, part.stop):
            lengths = tuple([piece.stop - piece.start for piece in box])
            first = sum(
                piece.start * math.prod(shape[axis + 1 :]) for axis, piece in enumerate(box)
            )
            place = first - part.start
            target = row[place : place + math.prod(lengths)].reshape(lengths)
            self._loop.serial(_at(operands, box), [target])
        return row

    def in_a_row(self) -> ComputedRow:
        """They are so already."""
        return self

    def add_into(self, sums: Array, part: slice) -> None:
        """Each element is added as soon as it is computed, where one kernel does both."""
        if self._adding is None:
            add_columns(sums, self.block((part,)))
            return
        sums.fill(0)
        whole = part.start + (part.stop - part.start) // sums.size * sums.size
        for start, stop in ((part.start, whole), (whole, part.stop)):
            if start < stop:
                target = sums[: stop - start]
                rows = [
                    x[start:stop].reshape(-1, target.size) if isinstance(x, np.ndarray) else x
                    for x in self._operands
                ]
                self._adding.rows([*rows, target], target, (stop - start) // target.size)

    def outermost(self, axes: list[int]) -> int:
        """The one axis."""
        return 0


def reduce_computed(
    elements: Computed,
    kind: Reduction,
    axes: tuple[int, ...],
    keepdims: bool,
    dtype: DType,
    empty: Empty,
) -> Array | None:
    """The reduction of computed elements, as that of an array of them; None where it takes such an array."""
    shape = elements.shape
    size = math.prod(shape)
    if not axes or not size:
        return None
    ufunc, computes = REDUCTIONS[kind]
    block: int | None
    if kind in (Reduction.ANY, Reduction.ALL):
        # In whatever order.
        if size * elements.dtype.itemsize <= REDUCTION_BYTES:
            return None
        block = None
    elif size > FOLDS.whole if computes else size * elements.dtype.itemsize > EXTREMUM_BYTES:
        block = None
    else:
        # Of an array one call of NumPy would do, which goes row by row as well.
        one_by_one = (
            computes and size > PARTS_ABOVE and adds_one_by_one(shape, axes, contiguous=True)
        )
        if one_by_one or not keeps_rows(elements, axes):
            return None
        block = ROWS_BLOCK
    compute = dtype if computes else None
    return reduce_blocks(elements, axes, keepdims, ufunc, compute, dtype, empty, block)


def _added(computation: Computation) -> Computation:
    """The computation of the result plus another array, which becomes the last source."""
    count = len(computation.sources)

    def moved(value: int) -> int:
        return value if value < count else value + 1

    (result,) = computation.results
    dtype = computation.dtype(result)
    steps = [
        Step(step.op, step.signature, tuple(map(moved, step.arguments)))
        for step in computation.steps
    ]
    steps.append(Step(ADD, Signature(dtype, dtype), (count, moved(result))))
    return Computation(
        (*computation.sources, Source(dtype, is_array=True)),
        tuple(steps),
        (count + len(steps),),
    )


def _row(array: Array) -> Array:
    if array.flags.c_contiguous:
        return array.reshape(-1)
    single: Array = array[(0,) * array.ndim]
    return np.broadcast_to(single, (array.size,))


def _at(operands: list[Any], key: Key) -> list[Any]:
    return [x[key] if isinstance(x, np.ndarray) else x for x in operands]


def _boxes(shape: tuple[int, ...], start: int, stop: int) -> Iterator[Key]:
    """The blocks of a shape that make up its elements from ``start`` to ``stop`` in C order."""
    if len(shape) <= 1:
        if start < stop:
            yield (slice(start, stop),) if shape else ()
        return
    inner = math.prod(shape[1:])
    first, last = -(-start // inner), stop // inner
    if first > last:
        # All within one place of the first axis.
        for box in _boxes(shape[1:], start - last * inner, stop - last * inner):
            yield (slice(last, last + 1), *box)
        return
    for box in _boxes(shape[1:], start - (first - 1) * inner, inner) if start % inner else ():
        yield (slice(first - 1, first), *box)
    if first < last:
        yield (slice(first, last), *(slice(0, n) for n in shape[1:]))
    for box in _boxes(shape[1:], 0, stop - last * inner):
        yield (slice(last, last + 1), *box)
