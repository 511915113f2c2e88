"""Fused computations in blocks that stay in cache, over threads: NumPy's functions, and compiled kernels between them."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from numr.config import config
from numr.errors import ShapeError
from numr.ir.fused import Computation
from numr.ir.ops import SELECT
from numr.layout import broadcast_shapes
from numr.runtime.cpu.blockwise import in_memory_order
from numr.runtime.cpu.jit.compiler import Compiler
from numr.runtime.cpu.jit.host import host
from numr.runtime.cpu.jit.loops import KernelLoop
from numr.runtime.cpu.memory import ALIGNMENT
from numr.runtime.cpu.stages import Stage, Stages, stages_of
from numr.runtime.cpu.threads import run_blocks

if TYPE_CHECKING:
    from numr.runtime.cpu.client import CpuClient

__all__ = ["BLOCK_BYTES", "BlockLoop", "compiler", "fused_loop"]

Array = np.ndarray[Any, Any]
#: Selects a block of arrays that have one shape, or are a single element.
Key = tuple[slice, ...]

#: Bytes of a block of the largest elements: the few that a computation needs at a time fit into the second cache.
BLOCK_BYTES: Final = 1 << 18


@cache
def _compiler() -> Compiler | None:
    found = host()
    return None if found is None else Compiler(found)


def compiler() -> Compiler | None:
    """The compiler of kernels; None where there is none, or it is switched off."""
    return _compiler() if config.jit else None


def fused_loop(client: CpuClient, computation: Computation) -> KernelLoop | BlockLoop:
    """Prepare a computation: one kernel, if that can be, and else blocks in several stages."""
    compiles = compiler()
    stages = stages_of(computation, compiled=compiles is not None)
    if compiles is not None and stages.kernel is not None:
        return KernelLoop(stages.kernel, compiles)
    return BlockLoop(client, stages, compiles)


class _Run(NamedTuple):
    """A stage made ready.

    Attributes
    ----------
    compute : callable
        Writes arrays of a block, computed from others and from scalars.
    reads, writes : tuple of int
        Numbers of the values.
    in_place : bool
        Whether a result may take the place of an operand.
    """

    compute: Callable[[list[Any], list[Array]], object]
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    in_place: bool


class _Store(NamedTuple):
    """Where the values of a block are.

    Attributes
    ----------
    direct : tuple of (int, int)
        Values that are written into results at once, and which.
    slots : tuple of (int, int)
        Other values, and the slots of scratch memory that they have.
    sizes : tuple of int
        Bytes of an element of each slot.
    copied : tuple of (int, int)
        Results that are copied from a value at the end.
    """

    direct: tuple[tuple[int, int], ...]
    slots: tuple[tuple[int, int], ...]
    sizes: tuple[int, ...]
    copied: tuple[tuple[int, int], ...]


class _Scratch(threading.local):
    """Memory of a thread for the values of a block, and the arrays that computations see in it."""

    def __init__(self) -> None:
        self.memory: Array = np.empty(0, np.uint8)
        self.views: WeakKeyDictionary[BlockLoop, dict[Any, list[Array]]] = WeakKeyDictionary()

    def reserve(self, nbytes: int) -> Array:
        """Memory of at least that size, which the next call may hand out again."""
        if self.memory.size < nbytes:
            memory = np.empty(nbytes + ALIGNMENT, np.uint8)
            start = -memory.__array_interface__["data"][0] % ALIGNMENT
            self.memory = memory[start : start + nbytes]
            self.views.clear()
        return self.memory


_scratch = _Scratch()


class BlockLoop:
    """A computation in stages, block by block; a ``FusedLoop``.

    Parameters
    ----------
    client : CpuClient
        Knows NumPy's functions.
    stages : Stages
        The computation.
    compiles : Compiler or None
        For those stages that are kernels.
    """

    def __init__(self, client: CpuClient, stages: Stages, compiles: Compiler | None) -> None:
        self._sources = stages.sources
        self._dtypes = stages.dtypes
        #: Elements of a block.
        self.block = BLOCK_BYTES // max(dtype.itemsize for dtype in stages.dtypes)
        self._results = stages.results
        #: Stages may be the same work on other values.
        self._kernels: dict[Computation, KernelLoop] = {}
        self._runs = [self._prepared(client, stage, compiles) for stage in stages.stages]
        array_sources = {i for i, source in enumerate(stages.sources) if source.is_array}
        #: After this stage no operand is read any more.
        self._last_read = max(
            (i for i, run in enumerate(self._runs) if array_sources.intersection(run.reads)),
            default=-1,
        )
        self._apart = self._stored(shared=False)
        self._shared = self._stored(shared=True)

    # ------------------------------------------------------------- preparation
    def _prepared(self, client: CpuClient, stage: Stage, compiles: Compiler | None) -> _Run:
        if stage.computation is not None:
            assert compiles is not None
            kernel = self._kernels.get(stage.computation)
            if kernel is None:
                kernel = self._kernels[stage.computation] = KernelLoop(stage.computation, compiles)
            return _Run(kernel.serial, stage.reads, stage.writes, in_place=True)
        step = stage.step
        assert step is not None
        dtypes = [self._dtypes[value] for value in stage.reads]
        scalars = [
            value < len(self._sources) and not self._sources[value].is_array
            for value in stage.reads
        ]
        if step.op is None:

            def convert(operands: list[Any], targets: list[Array]) -> None:
                client.assign(targets[0], np.asarray(operands[0], dtypes[0]))

            return _Run(convert, stage.reads, stage.writes, in_place=False)
        target = step.signature.compute
        kinds = [float if x else dtype for x, dtype in zip(scalars, dtypes, strict=True)]
        function, converts = client.resolve(step.op, tuple(kinds), target)
        write = client.writing(function, converts)
        # Scalars of another dtype than that which is computed in: those that arrays were filled with.
        adapted = [
            place
            for place, is_scalar in enumerate(scalars)
            if is_scalar and dtypes[place] != target and not (step.op is SELECT and not place)
        ]

        def compute(operands: list[Any], targets: list[Array]) -> None:
            for place in adapted:
                operands[place] = np.asarray(operands[place], dtypes[place]).astype(target)
            write(targets[0], tuple(operands))

        in_place = isinstance(function, np.ufunc) and not any(converts)
        return _Run(compute, stage.reads, stage.writes, in_place)

    def _stored(self, *, shared: bool) -> _Store:
        """Where values are, if operands share memory with results, or if they do not."""
        direct: dict[int, int] = {}
        copied = []
        made_in = {value: i for i, run in enumerate(self._runs) for value in run.writes}
        for place, value in enumerate(self._results):
            stage = made_in[value]
            early = stage < self._last_read or (
                stage == self._last_read and not self._runs[stage].in_place
            )
            if value in direct or (shared and early):
                copied.append((place, value))
            else:
                direct[value] = place
        kept = {value for _, value in copied}
        last = {value: i for i, run in enumerate(self._runs) for value in run.reads}
        slots: dict[int, int] = {}
        sizes: list[int] = []
        free: list[int] = []
        for i, run in enumerate(self._runs):
            ending = [
                slots[value]
                for value in dict.fromkeys(run.reads)
                if value in slots and last[value] == i and value not in kept
            ]
            if run.in_place:
                free += ending
            for value in run.writes:
                if value in direct:
                    continue
                size = self._dtypes[value].itemsize
                found = next((slot for slot in reversed(free) if sizes[slot] == size), None)
                if found is None:
                    found = len(sizes)
                    sizes.append(size)
                else:
                    free.remove(found)
                slots[value] = found
                if value not in last and value not in kept:
                    ending.append(found)
            if not run.in_place:
                free += ending
        return _Store(tuple(direct.items()), tuple(slots.items()), tuple(sizes), tuple(copied))

    # --------------------------------------------------------------------- runs
    def __call__(self, operands: Sequence[Any], results: Sequence[Array]) -> None:
        """Compute and write the results, over threads where that pays."""
        self._run(operands, results, run_blocks)

    def serial(self, operands: Sequence[Any], results: Sequence[Array]) -> None:
        """Compute and write the results in the calling thread."""

        def one_by_one(body: Callable[[slice], None], parts: list[slice]) -> None:
            for part in parts:
                body(part)

        self._run(operands, results, one_by_one)

    def _run(
        self,
        operands: Sequence[Any],
        results: Sequence[Array],
        over: Callable[[Callable[[slice], None], list[slice]], None],
    ) -> None:
        if not results[0].size:
            return
        arrays = [x for x, s in zip(operands, self._sources, strict=True) if s.is_array]
        shared = any(np.may_share_memory(x, y) for x in arrays for y in results)
        store = self._shared if shared else self._apart
        values, targets = _alike(list(operands), list(results))
        keys = _blocks(targets[0].shape, self.block)

        def body(part: slice) -> None:
            self._block(keys[part.start], values, targets, store)

        over(body, [slice(i, i + 1) for i in range(len(keys))])

    def _block(self, key: Key, operands: list[Any], results: list[Array], store: _Store) -> None:
        values: list[Any] = [
            x[key] if x.__class__ is np.ndarray and x.ndim else x for x in operands
        ]
        values += [None] * (len(self._dtypes) - len(operands))
        targets = [x[key] for x in results]
        for value, place in store.direct:
            values[value] = targets[place]
        for (value, _), view in zip(store.slots, self._views(store, targets[0].shape), strict=True):
            values[value] = view
        for run in self._runs:
            run.compute([values[i] for i in run.reads], [values[i] for i in run.writes])
        for place, value in store.copied:
            np.copyto(targets[place], values[value])

    def _views(self, store: _Store, shape: tuple[int, ...]) -> list[Array]:
        """Arrays of a block's shape in the scratch memory of the thread, one for each value that has a slot."""
        starts = [0]
        for size in store.sizes:
            starts.append(starts[-1] + size * self.block)
        memory = _scratch.reserve(starts[-1])
        known = _scratch.views.setdefault(self, {})
        key = (store is self._shared, shape)
        found = known.get(key)
        if found is None:
            if len(known) >= _SHAPES:
                known.clear()
            found = known[key] = [
                np.ndarray(shape, self._dtypes[value], memory, starts[slot])
                for value, slot in store.slots
            ]
        return found


#: So many shapes of blocks are remembered by each thread.
_SHAPES: Final = 8


def _alike(operands: list[Any], results: list[Array]) -> tuple[list[Any], list[Array]]:
    """The same elements in arrays of one shape whose axes are in the order of memory; single elements have none.

    Raises
    ------
    ShapeError
        If results have several shapes, or operands do not broadcast to theirs.
    """
    shape = results[0].shape
    arrays = [x for x in operands if isinstance(x, np.ndarray)]
    same = all(x.shape == shape for x in results)
    if not same or broadcast_shapes(*(x.shape for x in arrays), shape) != shape:
        raise ShapeError(
            f"fused: got operands of shapes {[x.shape for x in arrays]} and results of "
            f"{[x.shape for x in results]}; operands must broadcast to the one shape of the results."
        )
    operands = [x.reshape(()) if isinstance(x, np.ndarray) and x.size == 1 else x for x in operands]
    order = in_memory_order(shape, (*operands, *results))
    if order:

        def turned(x: Any) -> Any:
            if not isinstance(x, np.ndarray) or (not x.ndim and x is not results[0]):
                return x
            return (x if order == "C" else x.T).reshape(-1)

        return [turned(x) for x in operands], [
            x.reshape(-1) if order == "C" else x.T.reshape(-1) for x in results
        ]
    axes = sorted(range(len(shape)), key=lambda axis: -abs(results[0].strides[axis]))
    return [
        np.broadcast_to(x, shape).transpose(axes) if isinstance(x, np.ndarray) and x.ndim else x
        for x in operands
    ], [x.transpose(axes) for x in results]


def _blocks(shape: tuple[int, ...], size: int) -> list[Key]:
    """Keys of blocks of at most ``size`` elements that make up a shape."""
    axis = 0
    while axis < len(shape) - 1 and math.prod(shape[axis + 1 :]) > size:
        axis += 1
    step = max(1, size // max(1, math.prod(shape[axis + 1 :])))
    whole = [[slice(i, i + 1) for i in range(n)] for n in shape[:axis]]
    cut = [slice(i, min(i + step, shape[axis])) for i in range(0, shape[axis], step)]
    return list(product(*whole, cut))
