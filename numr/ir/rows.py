"""Fused work on rows: reductions along the same axes, with the elementwise work before, between and after them.

A :class:`RowComputation` is to rows what :class:`numr.ir.fused.Computation` is to elements. A *row* is what one result
of a reduction is made from. A value belongs to each element of a row, or to the row as a whole: what a reduction gives,
and what is computed of such values alone. A softmax is one of these computations, and so is a variance.

It is carried out in *sweeps*: each goes over the elements of a row once and ends with reductions, whose results the next
sweep may take.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from numr.dtypes import DType
from numr.ir.fused import Computation, Source, Step, check_values
from numr.ir.ops import Op, Reduction, Signature

__all__ = ["RowComputation", "RowSource", "RowStep", "SingleReduction", "Sweep", "kept_shape"]


class RowSource(NamedTuple):
    """A value that a computation is given.

    Attributes
    ----------
    dtype : dtype
        Of the element; of a scalar the dtype that it is taken as.
    is_array : bool
        Whether it is an element of an array; else it is one scalar for all rows.
    per_row : bool
        Whether it is one for each row, or for all; else one for each element.
    """

    dtype: DType
    is_array: bool
    per_row: bool


class RowStep(NamedTuple):
    """One operation, or one reduction.

    Attributes
    ----------
    op : Op or Reduction or None
        A row of the op table; a reduction of its one argument, a value of each element; None for a conversion.
    signature : Signature
        The dtypes that it computes in and gives.
    arguments : tuple of int
        Numbers of the values that it takes.
    """

    op: Op | Reduction | None
    signature: Signature
    arguments: tuple[int, ...]

    @property
    def is_reduction(self) -> bool:
        """Whether it makes one value of each row."""
        return isinstance(self.op, Reduction)

    @property
    def name(self) -> str:
        """What it does, in a word."""
        if isinstance(self.op, Reduction):
            return self.op.value
        return self.op.name if self.op else "astype"


class Sweep(NamedTuple):
    """What is done in one go over the elements of a row; numbers of values.

    Attributes
    ----------
    rows : tuple of int
        Values of the row that are computed before it.
    reductions : tuple of int
        The reductions that it makes.
    stores : tuple of int
        Results for each element that it gives.
    """

    rows: tuple[int, ...]
    reductions: tuple[int, ...]
    stores: tuple[int, ...]


class SingleReduction(NamedTuple):
    """A computation of rows that is one reduction, of whose results and scalars alone something is computed.

    Attributes
    ----------
    number : int
        The value that the reduction gives.
    argument : int
        What it takes.
    prologue : Computation
        What gives the argument, of all sources.
    scalars : tuple of int
        The sources that are scalars.
    epilogue : Computation or None
        What gives the one result, of the reduction's and of these; None where the reduction's is the result.
    """

    number: int
    argument: int
    prologue: Computation
    scalars: tuple[int, ...]
    epilogue: Computation | None


@dataclass(frozen=True)
class RowComputation:
    """What is computed for each row.

    Parameters
    ----------
    sources : tuple of RowSource
        What is given, values 0 and up.
    steps : tuple of RowStep
        What is computed, in order; each takes values that come before it.
    results : tuple of int
        Numbers of the values that are results, each of them once; each is the value of a step.

    Raises
    ------
    ValueError
        If a step takes a value that does not come before it, a reduction takes one that belongs to the row, or a
        result is not a step's value.

    Examples
    --------
    >>> from numr import dtypes as dt
    >>> from numr.ir import ops
    >>> both = Signature(dt.float32, dt.float32)
    >>> normalized = RowComputation(
    ...     (RowSource(dt.float32, is_array=True, per_row=False),),
    ...     (RowStep(Reduction.SUM, both, (0,)), RowStep(ops.DIVIDE, both, (0, 1))),
    ...     (2,),
    ... )
    >>> print(normalized)
    v1 = sum(v0: float32) of each row
    v2 = divide(v0: float32, v1: float32)
    results: v2: float32
    >>> normalized.sweeps
    (Sweep(rows=(), reductions=(1,), stores=()), Sweep(rows=(), reductions=(), stores=(2,)))
    """

    sources: tuple[RowSource, ...]
    steps: tuple[RowStep, ...]
    results: tuple[int, ...]

    def __post_init__(self) -> None:
        count = len(self.sources)
        check_values(count, [step.arguments for step in self.steps], self.results)
        for number, step in enumerate(self.steps, count):
            if step.is_reduction and self.per_row[step.arguments[0]]:
                raise ValueError(
                    f"step {number} reduces value {step.arguments[0]}, one for a whole row"
                )

    @cached_property
    def _hash(self) -> int:
        return hash((self.sources, self.steps, self.results))

    def __hash__(self) -> int:
        return self._hash

    # ------------------------------------------------------------------- values
    def step(self, value: int) -> RowStep | None:
        """The step that gives a value, None for a source."""
        count = len(self.sources)
        return None if value < count else self.steps[value - count]

    def dtype(self, value: int) -> DType:
        """The dtype of a value."""
        step = self.step(value)
        return self.sources[value].dtype if step is None else step.signature.result

    def is_scalar(self, value: int) -> bool:
        """Whether a value is a scalar that is given."""
        return value < len(self.sources) and not self.sources[value].is_array

    @cached_property
    def per_row(self) -> tuple[bool, ...]:
        """For each value whether it is one for a whole row."""
        known = [source.per_row for source in self.sources]
        for step in self.steps:
            known.append(step.is_reduction or all(known[value] for value in step.arguments))
        return tuple(known)

    @property
    def reductions(self) -> list[int]:
        """The values that reductions give."""
        return [
            number for number, step in enumerate(self.steps, len(self.sources)) if step.is_reduction
        ]

    # ------------------------------------------------------------------- sweeps
    @cached_property
    def _levels(self) -> tuple[int, ...]:
        """For each value the first sweep that may take it."""
        levels = [0] * len(self.sources)
        for step in self.steps:
            level = max((levels[value] for value in step.arguments), default=0)
            levels.append(level + step.is_reduction)
        return tuple(levels)

    @cached_property
    def sweeps(self) -> tuple[Sweep, ...]:
        """The sweeps, in order; what follows the last reduction may be no more than values of the row."""
        levels, numbers = self._levels, range(len(self.sources), len(self._levels))
        found = []
        for level in range(max(levels) + 1):
            rows, reductions, stores = [], [], []
            for number in numbers:
                step = self.steps[number - len(self.sources)]
                if step.is_reduction:
                    if levels[number] == level + 1:
                        reductions.append(number)
                elif levels[number] == level:
                    if self.per_row[number]:
                        rows.append(number)
                    elif number in self.results:
                        stores.append(number)
            found.append(Sweep(tuple(rows), tuple(reductions), tuple(stores)))
        while found and found[-1] == ((), (), ()):
            found.pop()
        return tuple(found)

    def targets(self, sweep: Sweep) -> tuple[int, ...]:
        """The values of each element that a sweep is for, each once."""
        reduced = [self.steps[n - len(self.sources)].arguments[0] for n in sweep.reductions]
        return tuple(dict.fromkeys([*reduced, *sweep.stores]))

    def needed(self, values: Iterable[int], given: Collection[int] = ()) -> list[int]:
        """The values of each element that some need, themselves included, in order; nothing that is given needs any."""
        wanted = set(values)
        for value in range(len(self.per_row) - 1, -1, -1):
            step = self.step(value)
            if value in wanted and step is not None and value not in given:
                wanted.update(n for n in step.arguments if not self.per_row[n])
        return sorted(wanted)

    @cached_property
    def held(self) -> tuple[tuple[int, ...], ...]:
        """For each sweep the values of each element that it has or makes and that later sweeps take.

        Where they are held, no sweep reads or computes again what an earlier one did.
        """
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        for k, sweep in enumerate(self.sweeps):
            for value in self.needed(self.targets(sweep), first):
                if value not in first:
                    first[value] = k
                    step = self.step(value)
                    for n in step.arguments if step else ():
                        last[n] = k
                last[value] = k
        return tuple(
            tuple(value for value in first if first[value] <= k < last[value])
            for k in range(len(self.sweeps))
        )

    def part(
        self,
        values: Sequence[int],
        given: Collection[int],
        sources: Sequence[int] | None = None,
    ) -> tuple[Computation, list[int]]:
        """The computation of some values from those that are given, and which of these it takes.

        Parameters
        ----------
        values : sequence of int
            Which. One that is given itself is taken as it is.
        given : collection of int
            Numbers of values; the computation's sources need not be among them.
        sources : sequence of int, optional
            The values that it shall take, needed or not; by default those that are needed, in their order.
        """
        wanted = set(values)
        for value in range(max(values), -1, -1):
            step = self.step(value)
            if value in wanted and value not in given and step is not None:
                wanted.update(step.arguments)
        taken = [n for n in sorted(wanted) if n in given or self.step(n) is None]
        computed = [n for n in sorted(wanted) if n not in set(taken)]
        if sources is not None:
            taken = list(sources)
        place = {value: i for i, value in enumerate([*taken, *computed])}
        made = []
        for number in computed:
            step = self.steps[number - len(self.sources)]
            assert not isinstance(step.op, Reduction)
            arguments = tuple(place[value] for value in step.arguments)
            made.append(Step(step.op, step.signature, arguments))
        for value in set(values).intersection(taken):
            dtype = self.dtype(value)
            made.append(Step(None, Signature(dtype, dtype), (place[value],)))
            place[value] = len(taken) + len(made) - 1
        computation = Computation(
            tuple(Source(self.dtype(n), not self.is_scalar(n)) for n in taken),
            tuple(made),
            tuple(place[value] for value in values),
        )
        return computation, taken

    def single_reduction(self) -> SingleReduction | None:
        """The computation as one reduction, over whatever axes; None if it is more."""
        reductions = self.reductions
        if len(reductions) != 1 or len(self.results) != 1:
            return None
        (number,), (result,) = reductions, self.results
        if not self.per_row[result]:
            return None
        step = self.step(number)
        assert step is not None
        (argument,) = step.arguments
        sources = range(len(self.sources))
        scalars = tuple(i for i in sources if self.is_scalar(i))
        prologue, _ = self.part((argument,), sources, sources)
        epilogue = None
        if result != number:
            given = [*sources, number]
            _, taken = self.part((result,), given)
            if not set(taken) <= {number, *scalars}:
                return None
            epilogue, _ = self.part((result,), given, [number, *scalars])
        return SingleReduction(number, argument, prologue, scalars, epilogue)

    # --------------------------------------------------------------------- text
    @property
    def title(self) -> str:
        """What it does, in words."""
        return "+".join(step.name for step in self.steps)

    def __str__(self) -> str:
        lines = []
        for number, step in enumerate(self.steps, len(self.sources)):
            arguments = ", ".join(f"v{value}: {self.dtype(value)}" for value in step.arguments)
            name = step.name if step.op else f"astype[{step.signature.result}]"
            rows = " of each row" if step.is_reduction else ""
            lines.append(f"v{number} = {name}({arguments}){rows}")
        results = ", ".join(f"v{value}: {self.dtype(value)}" for value in self.results)
        return "\n".join([*lines, f"results: {results}"])


def kept_shape(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of what reductions over axes give, where these stay with length 1."""
    return tuple([1 if axis in axes else n for axis, n in enumerate(shape)])
