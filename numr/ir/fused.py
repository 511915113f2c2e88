"""Fused elementwise computations: several operations of the op table on the elements of the same operands.

A :class:`Computation` says what is computed for one element, in static single assignment: values have numbers, first
the sources, then one for each step. It knows neither shapes nor memory, can be compared and hashed, and is what
runtimes make one kernel of. Each step means what the operation by itself means, roundings included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from numr.dtypes import DType
from numr.ir.ops import Op, Signature

__all__ = ["Computation", "Source", "Step", "check_values"]


class Source(NamedTuple):
    """A value that a computation is given.

    Attributes
    ----------
    dtype : dtype
        Of the element; of a scalar the dtype that it is taken as.
    is_array : bool
        Whether it is an element of an array; else it is one scalar for all elements.
    """

    dtype: DType
    is_array: bool


class Step(NamedTuple):
    """One operation.

    Attributes
    ----------
    op : Op or None
        A row of the op table; None for a conversion to ``signature.result``.
    signature : Signature
        The dtypes that it computes in and gives.
    arguments : tuple of int
        Numbers of the values that it takes; they are converted to what it computes in.
    """

    op: Op | None
    signature: Signature
    arguments: tuple[int, ...]


def check_values(
    sources: int, arguments: Sequence[tuple[int, ...]], results: tuple[int, ...]
) -> None:
    """Raise ValueError unless each step takes values before its own, and each result is a step's value."""
    for number, taken in enumerate(arguments, sources):
        if any(not 0 <= value < number for value in taken):
            raise ValueError(f"step {number} takes values {taken}, which do not all precede it")
    end = sources + len(arguments)
    if not results or any(not sources <= value < end for value in results):
        raise ValueError(f"results {results} are not all values of steps {sources} to {end - 1}")


@dataclass(frozen=True)
class Computation:
    """What is computed for each element.

    Parameters
    ----------
    sources : tuple of Source
        What is given, values 0 and up.
    steps : tuple of Step
        What is computed, in order; each takes values that come before it.
    results : tuple of int
        Numbers of the values that are results; each is the value of a step.

    Raises
    ------
    ValueError
        If a step takes a value that does not come before it, or a result is not a step's value.

    Examples
    --------
    >>> from numr import dtypes as dt
    >>> from numr.ir import ops
    >>> x = Source(dt.float32, is_array=True)
    >>> both = Signature(dt.float32, dt.float32)
    >>> square_and_root = Computation(
    ...     (x,), (Step(ops.SQUARE, both, (0,)), Step(ops.SQRT, both, (1,))), (2,)
    ... )
    >>> print(square_and_root)
    v1 = square(v0: float32)
    v2 = sqrt(v1: float32)
    results: v2: float32
    """

    sources: tuple[Source, ...]
    steps: tuple[Step, ...]
    results: tuple[int, ...]

    def __post_init__(self) -> None:
        check_values(len(self.sources), [step.arguments for step in self.steps], self.results)

    @cached_property
    def _hash(self) -> int:
        return hash((self.sources, self.steps, self.results))

    def __hash__(self) -> int:
        return self._hash

    def dtype(self, value: int) -> DType:
        """The dtype of a value."""
        count = len(self.sources)
        if value < count:
            return self.sources[value].dtype
        return self.steps[value - count].signature.result

    @property
    def result_dtypes(self) -> tuple[DType, ...]:
        """The dtypes of the results."""
        return tuple(self.dtype(value) for value in self.results)

    def __str__(self) -> str:
        lines = []
        for number, step in enumerate(self.steps, len(self.sources)):
            arguments = ", ".join(f"v{value}: {self.dtype(value)}" for value in step.arguments)
            name = step.op.name if step.op else f"astype[{step.signature.result}]"
            lines.append(f"v{number} = {name}({arguments})")
        results = ", ".join(f"v{value}: {self.dtype(value)}" for value in self.results)
        return "\n".join([*lines, f"results: {results}"])
