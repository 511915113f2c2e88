"""What reductions and scans share: how values are joined, as C++ around expressions of the op table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from numr import dtypes as dt
from numr.codegen import cuda
from numr.codegen import expr as ex
from numr.codegen.elementwise import Operand, expression, operand
from numr.codegen.expr import BOOL, Expr
from numr.codegen.libm.formats import is_nan
from numr.dtypes import DType
from numr.ir import ops
from numr.ir.ops import Reduction
from numr.runtime.cuda import texts

__all__ = ["ACCUMULATOR_BYTES", "Fold"]

#: At least as many bytes as an accumulator has.
ACCUMULATOR_BYTES: Final = 32

_JOINS: Final = {
    Reduction.SUM: ops.ADD,
    Reduction.PROD: ops.MULTIPLY,
    Reduction.MAX: ops.MAXIMUM,
    Reduction.MIN: ops.MINIMUM,
    Reduction.ANY: ops.LOGICAL_OR,
    Reduction.ALL: ops.LOGICAL_AND,
}
#: What a reduction of no elements gives, where there is such a value.
_EMPTY: Final = {
    Reduction.SUM: 0,
    Reduction.PROD: 1,
    Reduction.ANY: 0,
    Reduction.ALL: 1,
}


@dataclass(frozen=True)
class Fold:
    """A reduction of elements of one dtype.

    Parameters
    ----------
    kind : Reduction
        How values are joined.
    source : dtype
        Of the elements.
    result : dtype
        Of the result; for positions that of indices.
    position : bool
        Whether the position of the maximum or minimum is wanted instead of its value.
    """

    kind: Reduction
    source: DType
    result: DType
    position: bool = False

    @property
    def dtype(self) -> DType:
        """What is computed in."""
        if self.position:
            return self.source
        if self.kind in (Reduction.ANY, Reduction.ALL):
            return dt.bool_
        # Sums of float16 are rounded once, at their end.
        return np.dtype(np.float32) if self.result == dt.float16 else self.result

    def declarations(self) -> str:
        """The accumulator ``numr_acc``, and the functions that make an empty one, take an element and join two.

        ``numr_merge`` joins two of which neither is empty.
        """
        variable = operand("x", self.dtype)
        parts = [variable] if isinstance(variable, Expr) else list(variable)
        type = cuda.type_name(parts[0].type)
        values = [f"v{i}" for i in range(len(parts))]
        fields = "".join(f"    {type} {name};\n" for name in values)
        return (
            f"struct numr_acc {{\n    long long at;\n{fields}    int has;\n}};\n"
            "__device__ __forceinline__ numr_acc numr_none() {\n"
            "    numr_acc acc;\n    acc.at = 0;\n"
            + "".join(f"    acc.{name} = 0;\n" for name in values)
            + "    acc.has = 0;\n    return acc;\n}\n"
            f"{self.taker('numr_take', self.source)}"
            "__device__ __forceinline__ numr_acc numr_merge(const numr_acc a, const numr_acc b) {\n"
            f"{self._join(values)}}}\n"
            "__device__ __forceinline__ numr_acc numr_join(const numr_acc a, const numr_acc b) {\n"
            "    if (!b.has) return a;\n    if (!a.has) return b;\n    return numr_merge(a, b);\n}\n"
        )

    def taker(self, name: str, source: DType) -> str:
        """The function that makes an accumulator of an element in memory and its position."""
        taken = texts.taken(operand("e", source), source, self.dtype)
        code = cuda.code([taken] if isinstance(taken, Expr) else list(taken))
        loads = "".join(f"    {line}\n" for line in texts.load("e", source, "element"))
        assign = "".join(f"    acc.v{i} = {text};\n" for i, text in enumerate(code.results))
        return (
            f"__device__ __forceinline__ numr_acc {name}("
            f"const {texts.memory_type(source)} element, const long long at) {{\n"
            f"    numr_acc acc;\n{loads}{code.statements}    acc.at = at;\n{assign}    acc.has = 1;\n"
            "    return acc;\n}\n"
        )

    def _join(self, values: list[str]) -> str:
        names: dict[str, str] = {}
        for side in "ab":
            variable = operand(side, self.dtype)
            parts = [variable] if isinstance(variable, Expr) else list(variable)
            names |= {
                str(part.value): f"{side}.{name}" for part, name in zip(parts, values, strict=True)
            }
        a, b = operand("a", self.dtype), operand("b", self.dtype)
        if self.position:
            code = cuda.code(
                [_precedes(self.kind, self.dtype, a, b)], {**names, "earlier": "(b.at < a.at)"}
            )
            return f"{code.statements}    return {code.results[0]} ? b : a;\n"
        joined = expression(_JOINS[self.kind], self.dtype, a, b)
        code = cuda.code([joined] if isinstance(joined, Expr) else list(joined), names)
        assign = "".join(
            f"    acc.{name} = {text};\n" for name, text in zip(values, code.results, strict=True)
        )
        return f"{code.statements}    numr_acc acc = a;\n{assign}    return acc;\n"

    def finish(self, target: str, acc: str, indent: str = "    ") -> str:
        """Statements that write what an accumulator holds as a result."""
        if self.position:
            return f"{indent}{target} = {acc}.at;\n"
        variable = operand("r", self.dtype)
        parts = [variable] if isinstance(variable, Expr) else list(variable)
        names = {str(part.value): f"{acc}.v{i}" for i, part in enumerate(parts)}
        value: Operand = texts.taken(variable, self.dtype, self.result)
        code = cuda.code([value] if isinstance(value, Expr) else list(value), names, indent, "r")
        return code.statements + indent + texts.store(target, self.result, code.results) + "\n"

    def empty(self) -> str:
        """The statement that gives an accumulator of no elements the value that it has then."""
        if self.position or self.kind not in _EMPTY:
            return ""
        return f"if (!acc.has) acc.v0 = {_EMPTY[self.kind]};"


def _precedes(kind: Reduction, dtype: DType, a: Operand, b: Operand) -> Expr:
    """Whether ``b`` counts instead of ``a``: NaN first, then the larger or smaller one, then the earlier one."""
    earlier = ex.var("earlier", BOOL)
    op = ops.GREATER if kind is Reduction.MAX else ops.LESS
    better = expression(op, dtype, b, a)
    same = expression(ops.EQUAL, dtype, a, b)
    assert isinstance(better, Expr)
    assert isinstance(same, Expr)
    wins = better | (same & earlier)
    if dtype.kind != "f":
        return wins
    assert isinstance(a, Expr)
    assert isinstance(b, Expr)
    return ex.select(is_nan(b), ~is_nan(a) | earlier, ~is_nan(a) & wins)
