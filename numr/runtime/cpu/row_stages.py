"""Computations of rows in stages: elementwise work between reductions, and where its values are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from numr.dtypes import DType
from numr.ir.ops import Reduction
from numr.ir.passes.fuse import CHEAP
from numr.ir.rows import RowComputation, Sweep
from numr.runtime.cpu.jit.loops import KernelLoop
from numr.runtime.cpu.reductions import REDUCTIONS

if TYPE_CHECKING:
    from numr.runtime.cpu.client import CpuClient
    from numr.runtime.cpu.fused import BlockLoop

__all__ = ["Stage", "Work", "slots_of", "stages_of"]


class Work(NamedTuple):
    """Elementwise work on rows, or on their elements.

    Attributes
    ----------
    loop : KernelLoop or BlockLoop
        What does it.
    reads, writes, arrays : tuple of int
        Numbers of the values, and of those that are arrays.
    """

    loop: KernelLoop | BlockLoop
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    arrays: tuple[int, ...]

    def __call__(self, values: dict[int, Any]) -> None:
        """Do it, on arrays by their numbers, in the calling thread."""
        self.loop.serial([values[v] for v in self.reads], [values[v] for v in self.writes])

    def bound(self, values: dict[int, Any]) -> Callable[..., None] | None:
        """What does it on other arrays like these, given the addresses of ``arrays``; None if nothing does."""
        if not isinstance(self.loop, KernelLoop):
            return None
        return self.loop.bound([values[v] for v in self.reads], [values[v] for v in self.writes])


class Stage(NamedTuple):
    """A sweep made ready.

    Attributes
    ----------
    works : list of Work
        What is done before its reductions, in order.
    reductions : list of (ufunc, dtype or None, int, int)
        What reduces, computing in which dtype, which value to which.
    """

    works: list[Work]
    reductions: list[tuple[np.ufunc, DType | None, int, int]]

    def reduce(self, values: dict[int, Any], axes: tuple[int, ...]) -> None:
        """Reduce arrays by their numbers."""
        for ufunc, dtype, argument, number in self.reductions:
            ufunc.reduce(
                values[argument], axis=axes, dtype=dtype, keepdims=True, out=values[number]
            )


def stages_of(client: CpuClient, computation: RowComputation) -> list[Stage]:
    """The stages of a computation, one for each sweep."""
    known: list[int] = []
    return [
        _staged(client, computation, sweep, held, known)
        for sweep, held in zip(computation.sweeps, computation.held, strict=True)
    ]


def _staged(
    client: CpuClient,
    computation: RowComputation,
    sweep: Sweep,
    held: Sequence[int],
    known: list[int],
) -> Stage:
    """A sweep made ready; ``known`` are the values of elements that are there, to which it adds what it computes."""
    per_row = [v for v, is_so in enumerate(computation.per_row) if is_so]
    works = []

    def add(values: Sequence[int], given: Sequence[int]) -> None:
        if values:
            part, reads = computation.part(values, given)
            arrays = tuple(v for v in (*reads, *values) if not computation.is_scalar(v))
            works.append(Work(client.fused(part), tuple(reads), tuple(values), arrays))

    add(sweep.rows, [v for v in per_row if v not in sweep.rows])
    kept = [v for v in held if v not in known and _is_costly(computation, v, known)]
    made = dict.fromkeys((*computation.targets(sweep), *kept))
    steps = [v for v in made if computation.step(v) and v not in known]
    add(steps, [*per_row, *known])
    known += steps
    reductions = []
    for number in sweep.reductions:
        step = computation.step(number)
        assert step is not None
        assert isinstance(step.op, Reduction)
        ufunc, computes = REDUCTIONS[step.op]
        compute = step.signature.compute if computes else None
        reductions.append((ufunc, compute, step.arguments[0], number))
    return Stage(works, reductions)


def _is_costly(computation: RowComputation, value: int, known: Sequence[int]) -> bool:
    """Whether computing a value again takes longer than storing and loading it."""
    needed = computation.needed((value,), known)
    steps = [computation.step(v) for v in needed if v not in known]
    return any(step and step.op and step.op not in CHEAP for step in steps)


def slots_of(
    computation: RowComputation, stages: Sequence[Stage], copied: Collection[int]
) -> tuple[dict[int, int], list[int]]:
    """The slots of scratch memory for values of elements that are no results, or are copied at the end.

    Returns
    -------
    tuple of (dict of int to int, list of int)
        The slot of each value, and the bytes of an element in each slot. Values that are not needed at the same time
        may share one.
    """
    stored = {v for sweep in computation.sweeps for v in sweep.stores}
    last: dict[int, int] = {}
    for k, stage in enumerate(stages):
        for work in stage.works:
            last.update(dict.fromkeys((*work.reads, *work.writes), 2 * k))
        last.update((argument, 2 * k + 1) for _, _, argument, _ in stage.reductions)
    last.update(dict.fromkeys(copied, 2 * len(stages)))
    slots: dict[int, int] = {}
    sizes: list[int] = []
    free: list[int] = []
    live: dict[int, int] = {}
    for k, stage in enumerate(stages):
        # A result may take the place of what it is computed from.
        free += [live.pop(v) for v in list(live) if last[v] <= 2 * k]
        for v in (v for work in stage.works for v in work.writes):
            if computation.per_row[v] or (v in stored and v not in copied):
                continue
            size = computation.dtype(v).itemsize
            slot = next((s for s in reversed(free) if sizes[s] == size), None)
            if slot is None:
                slot = len(sizes)
                sizes.append(size)
            else:
                free.remove(slot)
            slots[v] = live[v] = slot
    return slots, sizes
