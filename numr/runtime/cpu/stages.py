"""Fused computations in stages: what one compiled kernel computes, and what NumPy computes.

A kernel computes most operations as their expressions say. Those whose results would differ from what the operation by
itself gives, which NumPy computes, are left to NumPy (:data:`DIFFERENT`). Where there is no compiler, all are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from numr import dtypes as dt
from numr.dtypes import DType
from numr.ir import ops
from numr.ir.fused import Computation, Source, Step
from numr.ir.ops import SELECT, Op, Signature
from numr.runtime.cpu.blockwise import COSTLY_OPS

__all__ = ["DIFFERENT", "KERNEL_LENGTH", "SLOW", "Stage", "Stages", "compiles", "stages_of"]

#: Operations whose expressions differ from NumPy's results, and in which dtypes. In all other real dtypes the expression
#: of an operation equals NumPy's result to the bit, NaN apart, or the operation is transcendental. One thing is open:
#: which of two zeros a maximum, minimum or bound is, which NumPy decides by where in an array they are.
DIFFERENT: Final[dict[Op, frozenset[DType]]] = {
    # Expressions round the exact quotient down, NumPy one that has been rounded.
    ops.FLOOR_DIVIDE: frozenset({dt.float16, dt.float32, dt.float64}),
}
#: Operations that take 64-bit integer arithmetic which no processor has for vectors, so that NumPy is quicker.
SLOW: Final[dict[Op, frozenset[DType]]] = {
    ops.POW: frozenset({dt.int64, dt.uint64}),
    ops.REMAINDER: frozenset({dt.float64}),
}
#: Of complex numbers NumPy takes products with fused multiplications, and has other formulas for the rest.
_COMPLEX: Final = "c"

#: How long a kernel may become, where an operation such as the exponential counts as one. The time that compiling
#: takes grows faster than the length, and beside this much work storing a value in cache costs nothing.
KERNEL_LENGTH: Final = 9.0
_LENGTHS: Final[dict[Op | None, float]] = {
    **dict.fromkeys(COSTLY_OPS, 1.0),
    # Large angles have code of their own.
    **dict.fromkeys((ops.SIN, ops.COS, ops.TAN), 3.0),
    **dict.fromkeys((ops.POW, ops.LOGADDEXP), 2.0),
    ops.REMAINDER: 6.0,
}
_SHORT: Final = 0.05


def compiles(step: Step, arguments: tuple[DType, ...]) -> bool:
    """Whether a kernel computes a step, on arguments of given dtypes, as the operation by itself."""
    compute, result = step.signature
    if any(dtype.kind == _COMPLEX for dtype in (compute, result, *arguments)):
        return False
    if step.op is None:
        # What numbers beyond the range of integers become is left open, but it must be the same everywhere.
        return not (arguments[0].kind == "f" and result.kind in "iu")
    return not any(compute in table.get(step.op, ()) for table in (DIFFERENT, SLOW))


@dataclass(frozen=True)
class Stage:
    """A part of a computation that is done in one go, for a block of elements.

    Attributes
    ----------
    computation : Computation or None
        What a kernel computes; its sources are ``reads``, its results ``writes``.
    step : Step or None
        What NumPy computes instead, on ``reads``, which have the dtype that it computes in.
    reads : tuple of int
        Numbers of the values that are taken.
    writes : tuple of int
        Numbers of the values that are given.
    """

    computation: Computation | None
    step: Step | None
    reads: tuple[int, ...]
    writes: tuple[int, ...]


@dataclass
class Stages:
    """A computation in stages.

    Attributes
    ----------
    sources : tuple of Source
        What is given, values 0 and up.
    dtypes : list of dtype
        Of all values, including conversions that are stages of their own.
    stages : list of Stage
        In order.
    results : tuple of int
        Numbers of the values that are results.
    """

    sources: tuple[Source, ...]
    dtypes: list[DType] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)
    results: tuple[int, ...] = ()

    @property
    def kernel(self) -> Computation | None:
        """The computation of the one kernel that does it all; None if there is no such kernel."""
        if len(self.stages) == 1 and self.stages[0].writes == self.results:
            return self.stages[0].computation
        return None


def stages_of(computation: Computation, *, compiled: bool) -> Stages:
    """Divide a computation into stages: as few kernels as can be, and between them the steps that NumPy does."""
    count = len(computation.sources)
    numbers = range(count, count + len(computation.steps))
    steps = dict(zip(numbers, computation.steps, strict=True))
    kernels = {
        number
        for number, step in steps.items()
        if compiled and compiles(step, tuple(map(computation.dtype, step.arguments)))
    }
    # Kernels are at even levels, NumPy at odd ones: a value is at the least level that its arguments allow.
    level = dict.fromkeys(range(count), 0)
    for number, step in steps.items():
        own = 0 if number in kernels else 1
        lowest = max((level[value] for value in step.arguments), default=0)
        level[number] = lowest + (lowest - own) % 2
    result = Stages(computation.sources, [computation.dtype(n) for n in range(count + len(steps))])
    result.results = computation.results
    for current in range(max(level.values()) + 1):
        members = [number for number in numbers if level[number] == current]
        if current % 2:
            for number in members:
                _add_step(result, computation, number)
        else:
            for part in _cut(computation, members):
                _add_kernel(result, computation, part)
    return result


def _cut(computation: Computation, members: list[int]) -> list[list[int]]:
    """The steps of kernels that are short enough."""
    parts: list[list[int]] = []
    length = KERNEL_LENGTH
    for number in members:
        own = _LENGTHS.get(computation.steps[number - len(computation.sources)].op, _SHORT)
        if length + own > KERNEL_LENGTH:
            parts.append([])
            length = 0.0
        parts[-1].append(number)
        length += own
    return parts


def _add_kernel(result: Stages, computation: Computation, members: list[int]) -> None:
    count = len(computation.sources)
    inside = set(members)
    steps = {number: computation.steps[number - count] for number in members}
    elsewhere = {
        value
        for number, step in enumerate(computation.steps, count)
        if number not in inside
        for value in step.arguments
    }
    needed = inside & (elsewhere | set(computation.results))
    # In the order of the results, so that a computation that is one kernel stays as it is.
    writes = [value for value in computation.results if value in needed]
    writes += [value for value in members if value in needed and value not in writes]
    reads = _in_order(
        value for step in steps.values() for value in step.arguments if value not in inside
    )
    if len(members) == len(computation.steps):
        reads = list(range(count))
    place = {value: i for i, value in enumerate([*reads, *members])}
    part = Computation(
        tuple(
            computation.sources[value]
            if value < count
            else Source(computation.dtype(value), is_array=True)
            for value in reads
        ),
        tuple(
            Step(step.op, step.signature, tuple(place[value] for value in step.arguments))
            for step in steps.values()
        ),
        tuple(place[value] for value in writes),
    )
    result.stages.append(Stage(part, None, tuple(reads), tuple(writes)))


def _add_step(result: Stages, computation: Computation, number: int) -> None:
    step = computation.steps[number - len(computation.sources)]
    reads = []
    for position, value in enumerate(step.arguments):
        target = step.signature.compute
        if step.op is None or (step.op is SELECT and position == 0):
            target = computation.dtype(value)
        if computation.dtype(value) != target and not _is_scalar(computation, value):
            # A conversion of its own, into memory that is there already.
            source = computation.dtype(value)
            converted = len(result.dtypes)
            result.dtypes.append(target)
            conversion = Step(None, Signature(source, target), (0,))
            result.stages.append(Stage(None, conversion, (value,), (converted,)))
            value = converted
        reads.append(value)
    result.stages.append(Stage(None, step, tuple(reads), (number,)))


def _is_scalar(computation: Computation, value: int) -> bool:
    return value < len(computation.sources) and not computation.sources[value].is_array


def _in_order(values: Iterable[int]) -> list[int]:
    return sorted(set(values))
