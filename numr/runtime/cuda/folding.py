"""What reductions and scans share: how values are joined, as C++ around expressions of the op table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from numr.codegen import cuda
from numr.codegen import expr as ex
from numr.codegen.elementwise import Operand, expression, operand
from numr.codegen.expr import BOOL, Expr
from numr.codegen.fused import expressions
from numr.codegen.libm.formats import is_nan
from numr.dtypes import DType
from numr.ir import ops
from numr.ir.fused import Computation
from numr.ir.ops import Reduction
from numr.runtime.cuda import texts
from numr.runtime.cuda.texts import BLOCK
from numr.runtime.folds import JOINS, BaseFold

if TYPE_CHECKING:
    from numr.runtime.cuda.compiler import Kernel

__all__ = ["BLOCK_JOIN", "GROUP_JOIN", "Epilogue", "Fold", "lines_join"]

#: Joins what neighbouring threads of a warp hold, of which the first ``valid`` have something.
GROUP_JOIN: Final = """\
__device__ __forceinline__ numr_acc numr_group(numr_acc acc, const int t, const int valid, const int width) {
    for (int half = width >> 1; half > 0; half >>= 1) {
        const numr_acc other = numr_down(acc, half, width);
        if (t + half < valid) acc = numr_join(acc, other);
    }
    return acc;
}
"""

#: Joins what the threads of a block hold; the first thread gets the result.
BLOCK_JOIN: Final = """\
__device__ __forceinline__ numr_acc numr_block(numr_acc acc, const int valid, numr_acc* shared) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    acc = numr_group(acc, lane, valid - warp * 32, 32);
    if (lane == 0) shared[warp] = acc;
    __syncthreads();
    if (warp == 0) acc = numr_group(shared[lane & WARPS_1], lane & WARPS_1, (valid + 31) >> 5, WARPS);
    return acc;
}
""".replace("WARPS_1", str(BLOCK // 32 - 1)).replace("WARPS", str(BLOCK // 32))


def lines_join(vector: int) -> str:
    """The function that joins what lines of threads hold in a block, each thread ``vector`` accumulators.

    Of the lines, which have ``lanes`` threads each, the first ``valid`` have something; the first one gets the results.
    """
    each = f"#pragma unroll\n    for (int v = 0; v < {vector}; ++v) "
    return (
        "__device__ __forceinline__ void numr_lines("
        "numr_acc* acc, const int line, const int lanes, const int valid, numr_acc* shared) {\n"
        f"    {each}shared[v * {BLOCK} + threadIdx.x] = acc[v];\n"
        f"    for (int half = {BLOCK} / lanes / 2; half > 0; half >>= 1) {{\n"
        "        __syncthreads();\n"
        "        if (line < half && line + half < valid) {\n"
        f"    {each}{{\n"
        f"            numr_acc* const at = shared + v * {BLOCK} + threadIdx.x;\n"
        "            at[0] = numr_join(at[0], at[half * lanes]);\n        }\n        }\n    }\n"
        f"    {each}acc[v] = shared[v * {BLOCK} + threadIdx.x];\n}}\n"
    )


@dataclass(frozen=True)
class Epilogue:
    """What is computed of each result of a reduction, and stored instead of it.

    Parameters
    ----------
    computation : Computation
        With one result; its first source is the reduction's, all others are scalars.
    parameters : tuple of str
        The kernel's parameters that these are.
    """

    computation: Computation
    parameters: tuple[str, ...]

    def text(self, target: str, result: str, indent: str) -> str:
        """Statements that write it to ``target``, from a result as it would be in memory."""
        sources = self.computation.sources
        (value,) = expressions(
            self.computation, [operand(f"y{i}", x.dtype) for i, x in enumerate(sources)]
        )
        roots = [value] if isinstance(value, Expr) else list(value)
        code = cuda.code(roots, indent=indent)
        loads = [
            line
            for i, (x, given) in enumerate(zip(sources, (result, *self.parameters), strict=True))
            for line in texts.load(f"y{i}", x.dtype, given)
        ]
        (dtype,) = self.computation.result_dtypes
        store = texts.store(target, dtype, code.results)
        return "".join(f"{indent}{x}\n" for x in loads) + f"{code.statements}{indent}{store}\n"


@dataclass(frozen=True)
class Fold(BaseFold):
    """A reduction of elements of one dtype.

    Parameters
    ----------
    kind, source, result, position
        As of :class:`numr.runtime.folds.BaseFold`.
    epilogue : Epilogue, optional
        What is computed of the result.

    Attributes
    ----------
    kernels : dict
        Those of this fold that were needed so far, on one device.
    """

    epilogue: Epilogue | None = None
    kernels: dict[tuple[object, ...], Kernel] = field(
        default_factory=dict, compare=False, repr=False
    )

    @property
    def held(self) -> int:
        """Bytes of an accumulator, at most."""
        return 16 if self.position else max(self.compute.itemsize, 4)

    @property
    def stored(self) -> DType:
        """The dtype of what is stored."""
        return self.epilogue.computation.result_dtypes[0] if self.epilogue else self.result

    def _values(self) -> dict[str, str]:
        """The fields of an accumulator that hold a value, with their types."""
        variable = operand("x", self.compute)
        parts = [variable] if isinstance(variable, Expr) else list(variable)
        return {f"v{i}": cuda.type_name(part.type) for i, part in enumerate(parts)}

    def declarations(self) -> str:
        """The accumulator ``numr_acc``, and the functions on it.

        ``numr_take`` makes one of an element and its position, ``numr_join`` joins two, and ``numr_next`` joins two of
        which the second comes later. ``numr_down``, ``numr_up`` and ``numr_from`` give what another thread of the warp
        holds.
        """
        values = self._values()
        fields = {**values, "at": "long long"} if self.position else values
        declared = "".join(f"    {type} {name};\n" for name, type in fields.items())
        shuffles = "".join(
            f"__device__ __forceinline__ numr_acc {name}(numr_acc a, const int lane, const int width) {{\n"
            + "".join(
                f"    a.{field} = __shfl_{kind}sync(0xffffffffu, {'(int)' if type == 'bool' else ''}a.{field}, "
                "lane, width);\n"
                for field, type in fields.items()
            )
            + "    return a;\n}\n"
            for name, kind in (("numr_down", "down_"), ("numr_up", "up_"), ("numr_from", ""))
        )
        return (
            f"struct numr_acc {{\n{declared}}};\n"
            f"{self._taker()}"
            "__device__ __forceinline__ numr_acc numr_join(const numr_acc a, const numr_acc b) {\n"
            f"{self._join(list(values), '(b.at < a.at)')}}}\n"
            "__device__ __forceinline__ numr_acc numr_next(const numr_acc a, const numr_acc b) {\n"
            f"{self._join(list(values), 'false')}}}\n"
            f"{shuffles}"
        )

    def _taker(self) -> str:
        source = self.source
        taken = texts.taken(operand("e", source), source, self.compute)
        code = cuda.code([taken] if isinstance(taken, Expr) else list(taken))
        loads = "".join(f"    {line}\n" for line in texts.load("e", source, "element"))
        assign = "".join(f"    acc.v{i} = {text};\n" for i, text in enumerate(code.results))
        at = "    acc.at = at;\n" if self.position else ""
        return (
            "__device__ __forceinline__ numr_acc numr_take("
            f"const {texts.memory_type(source)} element, const long long at) {{\n"
            f"    numr_acc acc;\n{loads}{code.statements}{assign}{at}    return acc;\n}}\n"
        )

    def _join(self, values: list[str], earlier: str) -> str:
        """The body of a function that joins ``a`` and ``b``; ``earlier`` says whether ``b`` comes before ``a``."""
        names: dict[str, str] = {}
        for side in "ab":
            variable = operand(side, self.compute)
            parts = [variable] if isinstance(variable, Expr) else list(variable)
            names |= {
                str(part.value): f"{side}.{name}" for part, name in zip(parts, values, strict=True)
            }
        a, b = operand("a", self.compute), operand("b", self.compute)
        if self.position:
            code = cuda.code(
                [_precedes(self.kind, self.compute, a, b)], {**names, "earlier": earlier}
            )
            return f"{code.statements}    return {code.results[0]} ? b : a;\n"
        joined = expression(JOINS[self.kind], self.compute, a, b)
        code = cuda.code([joined] if isinstance(joined, Expr) else list(joined), names)
        assign = "".join(
            f"    acc.{name} = {text};\n" for name, text in zip(values, code.results, strict=True)
        )
        return f"{code.statements}    numr_acc acc;\n{assign}    return acc;\n"

    def finish(self, target: str, acc: str, indent: str = "    ") -> str:
        """Statements that write what an accumulator holds as a result, or what becomes of it."""
        if self.epilogue is None:
            return self._finished(target, acc, indent)
        inner = indent + "    "
        return (
            f"{indent}{{\n{inner}{texts.memory_type(self.result)} reduced;\n"
            f"{self._finished('reduced', acc, inner)}"
            f"{self.epilogue.text(target, 'reduced', inner)}{indent}}}\n"
        )

    def _finished(self, target: str, acc: str, indent: str) -> str:
        if self.position:
            return f"{indent}{target} = {acc}.at;\n"
        variable = operand("r", self.compute)
        parts = [variable] if isinstance(variable, Expr) else list(variable)
        names = {str(part.value): f"{acc}.v{i}" for i, part in enumerate(parts)}
        value: Operand = texts.taken(variable, self.compute, self.result)
        code = cuda.code([value] if isinstance(value, Expr) else list(value), names, indent, "r")
        return code.statements + indent + texts.store(target, self.result, code.results) + "\n"


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
