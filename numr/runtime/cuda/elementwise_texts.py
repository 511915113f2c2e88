"""The texts of elementwise kernels: a formula on arrays that are walked through in rows or in tiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from numr.codegen import cuda
from numr.codegen.elementwise import Operand, operand
from numr.codegen.expr import Expr
from numr.dtypes import DType
from numr.runtime.cuda import texts
from numr.runtime.cuda.texts import BLOCK, VECTOR

__all__ = ["COPIES", "Texts"]

#: How often the code of one element may stand in a kernel, by its number of operations.
COPIES: Final = ((24, 16), (64, 8), (128, 4))
#: Operations from which an element is more work than reading it, and blocks that fit on a multiprocessor at least then,
#: unless a thread holds elements of more bytes, which would not leave registers for the work.
_MUCH: Final = 64
_RESIDENT: Final = 4
_FEW: Final = 128
#: Bytes of elements that a thread holds at a time, at most.
_HELD: Final = 1024


class Texts:
    """Prints the kernels of a formula, or of several whose results have one shape; tiles are for one alone.

    Parameters
    ----------
    sources : sequence of (dtype, bool)
        For each operand the dtype of its elements, and whether it is an array; else it is a scalar of that dtype.
    results : sequence of dtype
        Of the results' elements.
    formulas : callable
        Makes the results' expressions from the operands'.
    copies : sequence of (int, int)
        How often the code of one element may stand in a kernel: up to a number of operations so often.

    Attributes
    ----------
    size : int
        How many operations one element takes.
    vector, unroll : int
        Elements that a thread takes by one instruction, and how often it does, so that enough memory is under way.
    """

    def __init__(
        self,
        sources: Sequence[tuple[DType, bool]],
        results: Sequence[DType],
        formulas: Callable[..., Sequence[Operand]],
        copies: Sequence[tuple[int, int]] = COPIES,
    ) -> None:
        self.sources = tuple(sources)
        self.results = tuple(results)
        self.arrays = tuple(i for i, (_, is_array) in enumerate(sources) if is_array)
        #: Of the arrays, and of the results, which follow them.
        self.dtypes = (*(sources[i][0] for i in self.arrays), *results)
        operands = [operand(f"x{i}", dtype) for i, (dtype, _) in enumerate(sources)]
        parts = [
            [value] if isinstance(value, Expr) else list(value) for value in formulas(*operands)
        ]
        code = cuda.code([root for roots in parts for root in roots], indent="            ")
        self.size = code.size
        self._statements = code.statements
        given = iter(code.results)
        self._values = [[next(given) for _ in roots] for roots in parts]
        most = next((most for size, most in copies if code.size <= size), 1)
        itemsizes = [dtype.itemsize for dtype in self.dtypes]
        most = min(most, max(1, _HELD // sum(itemsizes)))
        self.vector = min(VECTOR // max(itemsizes), most)
        self.unroll = min(most // self.vector, 4)
        is_light = self.vector * self.unroll * sum(itemsizes) <= _FEW
        self._resident = _RESIDENT if self.size > _MUCH and is_light else 1

    # ------------------------------------------------------------------ parts
    def _memory(self, array: int) -> str:
        """The type in memory of an array, or of a result."""
        return texts.memory_type(self.dtypes[array])

    def _names(self) -> list[str]:
        """The parameters of the arrays, those of the results last."""
        return [*(f"p{i}" for i in self.arrays), *(f"out{k}" for k in range(len(self.results)))]

    def _parameters(self, numbers: str, dims: bool) -> str:
        parts = []
        for i, (dtype, is_array) in enumerate(self.sources):
            name = texts.memory_type(dtype)
            parts.append(f"const {name}* p{i}" if is_array else f"const {name} s{i}")
        parts += [f"{texts.memory_type(dtype)}* out{k}" for k, dtype in enumerate(self.results)]
        parts += [f"const long long {name}" for name in numbers.split()]
        if dims:
            parts.append("const numr_dims dims")
        return ", ".join(parts)

    def _body(self, elements: Sequence[str], targets: Sequence[str]) -> str:
        """Statements that compute one element of each result; ``elements`` are the texts of the arrays'."""
        lines = []
        given = iter(elements)
        for i, (dtype, is_array) in enumerate(self.sources):
            lines += texts.load(f"x{i}", dtype, next(given) if is_array else f"s{i}")
        loads = "".join(f"            {line}\n" for line in lines)
        stores = "".join(
            f"            {texts.store(target, dtype, values)}\n"
            for target, dtype, values in zip(targets, self.results, self._values, strict=True)
        )
        return f"{loads}{self._statements}{stores}"

    # ------------------------------------------------------------------- rows
    def rows(self, whole: bool, classes: str, rank: int, wide: bool) -> str:
        """Threads take elements side by side along rows; see ``Geometry`` for the parameters.

        All reads of a thread come before its first write, so that they are under way together.
        """
        vector = self.vector if whole else 1
        row = "numr_vec" if whole else "numr_row"
        index = "long long" if wide else "int"
        first = len(self.arrays)
        has_dims = bool(rank) or "s" in classes
        starts, reads, raws = "", "", ""
        at, held = [], []
        for k, (name, kind) in enumerate(zip(self._names(), classes, strict=True)):
            memory = self._memory(k)
            const = "const " if k < first else ""
            pointer = f"({const}{memory}*)(({const}char*){name} + at{k})" if rank else name
            if kind == "0":
                starts += f"    const {memory} z{k} = *{pointer};\n"
                at.append(f"z{k}")
                held.append(f"z{k}")
                continue
            starts += f"    {const}{memory}* const q{k} = {pointer};\n"
            at.append(
                f"q{k}[i]"
                if kind == "c"
                else f"*({const}{memory}*)(({const}char*)q{k} + i * dims.inner[{k}])"
            )
            held.append(f"raw{k}[u].v[e]")
            if k < first:
                raws += f"    {row}<{memory}, {vector}> raw{k}[{self.unroll}];\n"
                source = f"*(const {row}<{memory}, {vector}>*)(q{k} + i)"
                reads += f" raw{k}[u] = {source};" if kind == "c" else f" raw{k}[u].v[0] = {at[k]};"
        declared, written, targets = "", "", at[first:]
        for k, kind in enumerate(classes[first:], first):
            if kind == "c":
                made = f"{row}<{self._memory(k)}, {vector}>"
                declared += f"            {made} made{k};\n"
                written += f"            *({made}*)(q{k} + at) = made{k};\n"
                targets[k - first] = f"made{k}.v[e]"
        rest = ""
        if vector > 1 and not rank:
            rest = (
                f" else {{\n            for ({index} i = at; i < length; ++i) {{\n"
                f"{self._body(at[:first], at[first:])}            }}\n        }}"
            )
        if rank:
            place = (
                "    const unsigned int band = blockIdx.x / (unsigned int)chunks, "
                "chunk = blockIdx.x - band * (unsigned int)chunks;\n"
                "    const long long o = (long long)band * blockDim.y + threadIdx.y;\n"
                "    if (o >= rows) return;\n"
                f"{texts.walk(rank, len(classes), 'o', wide)}"
                f"    const {index} step = ({index})blockDim.x * {vector};\n"
                f"    const {index} start = ({index})chunk * step * {self.unroll} + threadIdx.x * {vector};\n"
            )
        else:
            place = (
                f"    const {index} step = {BLOCK * vector};\n"
                f"    const {index} start = ({index})blockIdx.x * step * {self.unroll} + threadIdx.x * {vector};\n"
            )
        fits = f"i <= length - {vector}" if vector > 1 else "i < length"
        return (
            f"{texts.head()}"
            + (texts.dims_type(rank, len(classes), len(classes)) if has_dims else "")
            + texts.signature(
                self._parameters("length rows chunks" if rank else "length", has_dims),
                resident=self._resident,
            )
            + f"{place}{starts}{raws}"
            "    #pragma unroll\n"
            f"    for (int u = 0; u < {self.unroll}; ++u) {{\n"
            f"        const {index} i = start + u * step;\n"
            f"        if ({fits}) {{{reads} }}\n"
            "    }\n"
            "    #pragma unroll\n"
            f"    for (int u = 0; u < {self.unroll}; ++u) {{\n"
            f"        const {index} at = start + u * step;\n"
            f"        if ({fits.replace('i ', 'at ', 1)}) {{\n"
            f"{declared}"
            "            #pragma unroll\n"
            f"            for (int e = 0; e < {vector}; ++e) {{\n"
            f"            const {index} i = at + e;\n"
            f"{self._body(held[:first], targets)}"
            "            }\n"
            f"{written}"
            f"        }}{rest}\n"
            "    }\n"
            "}\n"
        )

    # ------------------------------------------------------------------ tiles
    def tiles(self, tiled: tuple[int, ...], side: int, vector: int, rank: int, wide: bool) -> str:
        """A block takes a square of the last axis and another one; see ``Geometry`` for the parameters.

        Arrays whose neighbours lie along the other axis are read along it into shared memory, whose lines are longer by
        one element, so that both ways of going through it are spread over its banks. What is read along the last axis
        is read early, so that all reads are under way together.
        """
        arrays = len(self.arrays) + 1
        row = "numr_vec" if vector > 1 else "numr_row"
        lanes = side // vector
        down = BLOCK // lanes
        rounds = side // down
        shared, reads, early = "", "", ""
        elements = []
        for k, name in enumerate(self._names()):
            memory = self._memory(k)
            const = "" if k == arrays - 1 else "const "
            place = f"at{k} + i * dims.inner[{k}] + j * dims.inner[{arrays + k}]"
            element = f"*({const}{row}<{memory}, {vector}>*)(({const}char*){name} + {place})"
            if k in tiled:
                shared += f"    __shared__ {memory} tile{k}[{side}][{side + 1}];\n"
                reads += (
                    f" const {row}<{memory}, {vector}> raw{k} = {element};\n"
                    "        #pragma unroll\n"
                    f"        for (int e = 0; e < {vector}; ++e) tile{k}[r][c + e] = raw{k}.v[e];"
                )
                elements.append(f"tile{k}[c + e][r]")
            elif k < arrays - 1:
                shared += f"    {row}<{memory}, {vector}> raw{k}[{rounds}];\n"
                early += f" raw{k}[round] = {element};"
                elements.append(f"raw{k}[round].v[e]")
            else:
                elements.append(element)

        def loop(column: str, line: str, body: str) -> str:
            """Lanes run along one axis, and rounds along the other."""
            return (
                f"    #pragma unroll\n    for (int round = 0; round < {rounds}; ++round) {{\n"
                f"        const int c = lane * {vector}, r = round * {down} + level;\n"
                f"        const long long {column} = {column}_start + c, {line} = {line}_start + r;\n"
                f"        if (i < length && j < other) {{{body} }}\n    }}\n"
            )

        target = f"{row}<{self._memory(arrays - 1)}, {vector}>"
        compute = (
            f"\n            {target} made;\n"
            "            #pragma unroll\n"
            f"            for (int e = 0; e < {vector}; ++e) {{\n{self._body(elements[:-1], ['made.v[e]'])}"
            f"            }}\n            {elements[-1]} = made;\n       "
        )
        return (
            f"{texts.head()}{texts.dims_type(rank, arrays, 2 * arrays)}"
            + texts.signature(self._parameters("length other across down", True))
            + f"{shared}"
            f"    const int lane = threadIdx.x % {lanes}, level = threadIdx.x / {lanes};\n"
            "    const long long tile = blockIdx.x / across, o = tile / down;\n"
            f"    const long long i_start = (blockIdx.x - tile * across) * {side}, "
            f"j_start = (tile - o * down) * {side};\n"
            f"{texts.walk(rank, arrays, 'o', wide)}"
            f"{loop('j', 'i', reads)}"
            f"{loop('i', 'j', early) if early else ''}"
            f"    __syncthreads();\n{loop('i', 'j', compute)}}}\n"
        )
