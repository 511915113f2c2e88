"""What kernels of rows compute: the functions of an element, for each reduction and for what is stored."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from numr.codegen.elementwise import Operand, operand
from numr.codegen.fused import expressions
from numr.ir.fused import Computation
from numr.ir.ops import Reduction
from numr.ir.rows import RowComputation
from numr.runtime.wgpu.elementwise import express
from numr.runtime.wgpu.folding import Fold, fold_of
from numr.runtime.wgpu.formulas import ZERO, Code

__all__ = ["Part", "costly", "fold_at", "largest", "operands_of", "variable_of"]

#: Dtypes whose values are held, and the number of operations from which on they are.
_HELD: Final = ("float32", "int32", "uint32")
_COSTLY: Final = 24


def operands_of(computation: RowComputation) -> tuple[list[int], list[int], list[int]]:
    """The sources of a computation: arrays of elements, scalars, and arrays of rows."""
    numbers = range(len(computation.sources))
    given = [i for i in numbers if computation.is_scalar(i)]
    elements = [i for i in numbers if not computation.sources[i].per_row]
    return elements, given, [i for i in numbers if i not in given and i not in elements]


def fold_at(computation: RowComputation, number: int) -> Fold:
    """The fold of a reduction."""
    step = computation.step(number)
    assert step is not None
    assert isinstance(step.op, Reduction)
    return fold_of(step.op, computation.dtype(step.arguments[0]), step.signature.result)


class Part(NamedTuple):
    """What is computed of an element for one purpose.

    Attributes
    ----------
    computation : Computation
        Its sources are all arrays of elements and scalars, and then values of rows.
    names : tuple of str
        The variables of these.
    """

    computation: Computation
    names: tuple[str, ...]

    @classmethod
    def of(
        cls, computation: RowComputation, values: Sequence[int], held: Collection[int] = ()
    ) -> Part:
        """What some values need, of which some of each element are held."""
        elements, given, _ = operands_of(computation)
        rows = [v for v, per_row in enumerate(computation.per_row) if per_row and v not in given]
        _, taken = computation.part(values, [*elements, *rows, *held])
        known = [v for v in taken if v in rows or v in held]
        order = [*elements, *given, *known]
        part, _ = computation.part(values, order, order)
        # The function of an element has its number by the name of ``i``.
        return cls(part, tuple(f"held{v}_at(i)" if v in held else variable_of(v) for v in known))

    def code(self, start: int) -> Code:
        """Its function, whose scalars are in the parameters' words from ``start`` on."""
        return _code(self, start)


@lru_cache(maxsize=256)
def _code(part: Part, start: int) -> Code:
    computation, names = part
    count = len(computation.sources) - len(names)
    own, rows = computation.sources[:count], computation.sources[count:]

    def formulas(*operands: Operand) -> list[Operand]:
        known = [operand(name, x.dtype) for name, x in zip(names, rows, strict=True)]
        return expressions(computation, [*operands, *known], express, ZERO)

    return Code(own, computation.result_dtypes, formulas, first=start, opaque=True)


def largest(computation: RowComputation) -> int:
    """Number of operations of an element in the largest function of a kernel."""
    parts = [
        Part.of(computation, (value,))
        for sweep in computation.sweeps
        for value in computation.targets(sweep)
    ]
    return max((part.code(0).size for part in parts), default=0)


def costly(computation: RowComputation) -> list[list[int]]:
    """For each sweep the values of each element that it computes and that are better held than computed again."""
    found: list[list[int]] = []
    for held in computation.held:
        known = [value for values in found for value in values]
        found.append(
            [
                value
                for value in held
                if value not in known
                and computation.step(value)
                and computation.dtype(value).name in _HELD
                and Part.of(computation, (value,), known).code(0).size >= _COSTLY
            ]
        )
    return found


def variable_of(value: int) -> str:
    """The variable that has a value of the row."""
    return f"row{value}"
