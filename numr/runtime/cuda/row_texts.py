"""The texts of kernels that compute rows: several reductions of a row, and what comes before, between and after them.

Some threads share a row, as in the reductions of :mod:`numr.runtime.cuda.reductions`, and join values in the same order.
Each of them takes every so many vectors of the row. Where these are few, it holds what it has read and computed of them;
else each sweep reads and computes anew, from the caches.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from numr.codegen import cuda
from numr.codegen.elementwise import operand
from numr.codegen.expr import Expr
from numr.codegen.fused import expressions
from numr.ir.ops import Reduction
from numr.ir.rows import RowComputation
from numr.runtime.cuda import texts
from numr.runtime.cuda.folding import BLOCK_JOIN, GROUP_JOIN, Fold
from numr.runtime.cuda.texts import BLOCK, VECTOR

__all__ = ["RowTexts", "Variant"]


class Variant(NamedTuple):
    """What the text of a kernel depends on, besides the computation.

    Attributes
    ----------
    by_blocks : bool
        Whether a block of threads shares a row; else some threads of a warp do.
    vector : int
        Elements that a thread takes by one instruction.
    copies : int
        Vectors that it takes before it computes.
    holds : bool
        Whether these are all that it has of a row.
    classes : str
        Where the elements of each array that is read are: ``f`` if they lie as those of the results do, ``l`` if there
        is one row for all, ``r`` if there is one for each row, ``1`` if there is a single one.
    aligned : bool
        Whether all arrays start at multiples of 16 bytes.
    """

    by_blocks: bool
    vector: int
    copies: int
    holds: bool
    classes: str
    aligned: bool


class RowTexts:
    """The texts of a computation.

    Attributes
    ----------
    folds : dict of int to Fold
        By the values that they give, the reductions.
    """

    def __init__(self, computation: RowComputation) -> None:
        self.computation = computation
        self.folds: dict[int, Fold] = {}
        for number in computation.reductions:
            step = computation.step(number)
            assert step is not None
            assert isinstance(step.op, Reduction)
            source = computation.dtype(step.arguments[0])
            self.folds[number] = Fold(step.op, source, step.signature.result)

    @cached_property
    def size(self) -> int:
        """How many operations one element takes, with nothing computed twice."""
        computation = self.computation
        steps = {
            value
            for sweep in computation.sweeps
            for value in computation.needed(computation.targets(sweep))
            if computation.step(value)
        }
        if not steps:
            return 1
        given = [value for value, per_row in enumerate(computation.per_row) if per_row]
        part, sources = computation.part(sorted(steps), given)
        variables = [operand(f"x{v}", computation.dtype(v)) for v in sources]
        return cuda.code(_roots(expressions(part, variables))).size

    @property
    def held_bytes(self) -> int:
        """Bytes of an element's values that are held at a time, at most."""
        computation = self.computation
        return max(
            sum(max(computation.dtype(value).itemsize, 4) for value in held)
            for held in computation.held
        )

    # -------------------------------------------------------------------- parts
    def _memory(self, value: int) -> str:
        return texts.memory_type(self.computation.dtype(value))

    def _computed(
        self, values: Sequence[int], given: Sequence[int], elements: dict[int, str], indent: str
    ) -> str:
        """Statements that compute values from given ones and write them into what ``elements`` says."""
        computation = self.computation
        if not values:
            return ""
        part, sources = computation.part(values, given)
        results = expressions(part, [operand(f"x{v}", computation.dtype(v)) for v in sources])
        code = cuda.code(_roots(results), indent=indent)
        lines = [
            line for v in sources for line in texts.load(f"x{v}", computation.dtype(v), elements[v])
        ]
        made = iter(code.results)
        stores = [
            texts.store(elements[v], computation.dtype(v), [next(made) for _ in _roots([result])])
            for v, result in zip(values, results, strict=True)
        ]
        return (
            "".join(f"{indent}{line}\n" for line in lines)
            + code.statements
            + "".join(f"{indent}{line}\n" for line in stores)
        )

    # --------------------------------------------------------------------- text
    def text(self, variant: Variant) -> str:
        """The kernel of a variant."""
        computation = self.computation
        sources = computation.sources
        classes = iter(variant.classes)
        self._classes = {i: next(classes) for i, source in enumerate(sources) if source.is_array}
        parameters = [
            f"const {self._memory(i)}{'*' if source.is_array else ''} p{i}"
            for i, source in enumerate(sources)
        ]
        parameters += [f"{self._memory(v)}* out{v}" for v in computation.results]
        parameters += [f"const long long {name}" for name in ("outputs", "total", "lanes")]
        rows = {v: f"row{v}" for v, per_row in enumerate(computation.per_row) if per_row}
        rows |= {i: f"p{i}" for i in rows if computation.is_scalar(i)}
        body = self._place(variant)
        for i, kind in self._classes.items():
            if i in rows:
                place = "o" if kind == "r" else "0"
                body += f"    const {self._memory(i)} row{i} = p{i}[{place}];\n"
        if variant.holds:
            body += "    const int first = begin;\n"
            for value in dict.fromkeys(v for held in computation.held for v in held):
                body += f"    {self._piece(value, variant)} held{value}[{variant.copies}];\n"
        known: list[int] = []
        for number, sweep in enumerate(computation.sweeps):
            body += self._row_values(sweep.rows, rows)
            if sweep.reductions or sweep.stores:
                body += self._swept(number, variant, rows, known)
        body += "".join(
            f"    if (t == 0 && here) out{v}[o] = row{v};\n"
            for v in computation.results
            if computation.per_row[v]
        )
        return (
            texts.head()
            + "".join(self._namespace(number, variant) for number in self.folds)
            + texts.signature(", ".join(parameters))
            + f"{body}}}\n"
        )

    def _namespace(self, number: int, variant: Variant) -> str:
        """The functions of a reduction."""
        joins = GROUP_JOIN + (BLOCK_JOIN if variant.by_blocks else "")
        return f"namespace f{number} {{\n{self.folds[number].declarations()}{joins}}}\n"

    def _place(self, variant: Variant) -> str:
        """Which row a thread works on, and where in it."""
        vector = variant.vector
        text = (
            f"    const int t = threadIdx.x, width = {BLOCK};\n    const long long row = blockIdx.x;\n"
            if variant.by_blocks
            else "    const int width = (int)lanes, t = threadIdx.x & (width - 1);\n"
            "    const long long row = (blockIdx.x * (long long)blockDim.x + threadIdx.x) / width;\n"
        )
        for number in self.folds if variant.by_blocks else ():
            text += f"    __shared__ f{number}::numr_acc shared{number}[{BLOCK // 32}], whole{number};\n"
        return text + (
            "    const bool here = row < outputs;\n"
            "    const long long o = here ? row : 0, base = o * total;\n"
            f"    const int length = here ? (int)total : 0, step = width * {vector}, begin = t * {vector};\n"
            f"    const int vectors = ((int)total + {vector - 1}) / {vector};\n"
            "    const int valid = vectors < width ? vectors : width;\n"
        )

    def _row_values(self, values: Sequence[int], rows: dict[int, str]) -> str:
        """Statements that compute values of the row."""
        if not values:
            return ""
        declared = "".join(f"    {self._memory(v)} row{v};\n" for v in values)
        given = [v for v in rows if v not in values]
        return f"{declared}    {{\n{self._computed(values, given, rows, '        ')}    }}\n"

    def _piece(self, value: int, variant: Variant) -> str:
        """The type of a vector of an array's elements, or of computed values."""
        size = variant.vector * self.computation.dtype(value).itemsize
        vec = "numr_vec" if variant.aligned and size <= VECTOR else "numr_row"
        return f"{vec}<{self._memory(value)}, {variant.vector}>"

    def _swept(self, number: int, variant: Variant, rows: dict[int, str], known: list[int]) -> str:
        """One sweep; ``known`` are the values of elements that are held, to which it adds its own."""
        computation, vector = self.computation, variant.vector
        sweep = computation.sweeps[number]
        targets = computation.targets(sweep)
        needed = computation.needed(targets, known)
        held = computation.held[number] if variant.holds else ()
        read = [v for v in needed if computation.step(v) is None and v not in known]
        made = [v for v in (*targets, *held) if computation.step(v) and v not in known]
        made = list(dict.fromkeys(made))
        elements = rows | {v: f"held{v}[c].v[e]" for v in (*known, *held)}
        elements |= {v: f"read{v}[c].v[e]" for v in read if v not in held}
        elements |= {v: f"made{v}" for v in made if v not in held}
        open_loop = close_loop = ""
        begins = "c + e == 0"
        if not variant.holds:
            open_loop = f"    for (int first = begin; first < length; first += step * {variant.copies}) {{\n"
            close_loop = "    }\n"
            begins = f"first == begin && {begins}"
        text = "".join(f"    f{r}::numr_acc acc{r} = f{r}::numr_acc();\n" for r in sweep.reductions)
        text += open_loop
        each = (
            f"    #pragma unroll\n    for (int c = 0; c < {variant.copies}; ++c) {{\n"
            "        const int j = first + c * step;\n        if (j >= length) continue;\n"
        )
        if read:
            text += "".join(
                f"    {self._piece(v, variant)} read{v}[{variant.copies}];\n"
                for v in read
                if v not in held
            )
            text += each
            for v in read:
                name = f"{'held' if v in held else 'read'}{v}[c]"
                place = "base + j" if self._classes[v] == "f" else "j"
                text += f"        {name} = *(const {self._piece(v, variant)}*)(p{v} + {place});\n"
            text += "    }\n"
        text += each
        text += "".join(f"        {self._piece(v, variant)} result{v};\n" for v in sweep.stores)
        text += f"        #pragma unroll\n        for (int e = 0; e < {vector}; ++e) {{\n"
        text += "".join(f"            {self._memory(v)} made{v};\n" for v in made if v not in held)
        given = [*rows, *known, *read]
        text += f"            {{\n{self._computed(made, given, elements, '                ')}            }}\n"
        for r in sweep.reductions:
            step = computation.step(r)
            assert step is not None
            taken = f"f{r}::numr_take({elements[step.arguments[0]]}, j + e)"
            text += f"            acc{r} = {begins} ? {taken} : f{r}::numr_next(acc{r}, {taken});\n"
        text += "".join(f"            result{v}.v[e] = {elements[v]};\n" for v in sweep.stores)
        text += "        }\n"
        text += "".join(
            f"        *({self._piece(v, variant)}*)(out{v} + base + j) = result{v};\n"
            for v in sweep.stores
        )
        text += f"    }}\n{close_loop}"
        known += [v for v in held if v not in known]
        return text + "".join(self._joined(r, variant) for r in sweep.reductions)

    def _joined(self, number: int, variant: Variant) -> str:
        """Statements that join what the threads of a row have, and tell all of them."""
        acc = f"acc{number}"
        if variant.by_blocks:
            text = (
                f"    {acc} = f{number}::numr_block({acc}, valid, shared{number});\n"
                f"    if (t == 0) whole{number} = {acc};\n    __syncthreads();\n"
                f"    {acc} = whole{number};\n"
            )
        else:
            text = (
                f"    {acc} = f{number}::numr_group({acc}, t, valid, width);\n"
                f"    {acc} = f{number}::numr_from({acc}, 0, width);\n"
            )
        finish = self.folds[number].finish(f"row{number}", acc, "        ")
        return f"{text}    {self._memory(number)} row{number};\n    {{\n{finish}    }}\n"


def _roots(results: Sequence[object]) -> list[Expr]:
    """The expressions of results, complex ones in two."""
    roots: list[Expr] = []
    for result in results:
        roots += [result] if isinstance(result, Expr) else list(result)  # type: ignore[call-overload]
    return roots
