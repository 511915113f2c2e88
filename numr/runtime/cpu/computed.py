"""Elements that are computed when they are reduced, block by block, so that no array holds all of them."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from numr.dtypes import DType
from numr.ir.ops import Reduction
from numr.runtime.cpu.blockwise import CHEAP
from numr.runtime.cpu.fused import BlockLoop
from numr.runtime.cpu.jit.loops import KernelLoop
from numr.runtime.cpu.memory import ALIGNMENT
from numr.runtime.cpu.reductions import (
    EXTREMUM_BYTES,
    PARTS_ABOVE,
    REDUCTION_BLOCK,
    REDUCTIONS,
    ROWS_BLOCK,
    Empty,
    Key,
    adds_one_by_one,
    keeps_rows,
    reduce_blocks,
)

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
    loop : KernelLoop or BlockLoop
        The computation.
    operands : sequence
        Arrays, and scalars where the computation takes one.
    shape : tuple of int
        What arrays broadcast to.
    dtype : dtype
        Of the result.
    """

    def __init__(
        self,
        loop: KernelLoop | BlockLoop,
        operands: Sequence[Any],
        shape: tuple[int, ...],
        dtype: DType,
    ) -> None:
        self.loop = loop
        self.shape = shape
        self.dtype = dtype
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
        self._loop = computed.loop
        self._dtype = computed.dtype
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
        self._computed = operands, shape

    def block(self, key: Key) -> Array:
        """The elements, computed into memory of the thread."""
        (part,) = key
        operands, shape = self._computed
        row = _scratch.array((part.stop - part.start,), self._dtype)
        for box in _boxes(shape, part.start, part.stop):
            lengths = tuple([piece.stop - piece.start for piece in box])
            first = sum(
                piece.start * math.prod(shape[axis + 1 :]) for axis, piece in enumerate(box)
            )
            place = first - part.start
            target = row[place : place + math.prod(lengths)].reshape(lengths)
            self._loop.serial(_at(operands, box), [target])
        return row

    def in_a_row(self) -> None:
        """They are so already."""

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
    if kind in (Reduction.ANY, Reduction.ALL):
        # In whatever order.
        if size <= REDUCTION_BLOCK:
            return None
        block = REDUCTION_BLOCK
    elif size > CHEAP.whole if computes else size * elements.dtype.itemsize > EXTREMUM_BYTES:
        block = REDUCTION_BLOCK
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
