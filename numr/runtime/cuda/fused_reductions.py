"""Reductions of what a fused computation gives, without an array of it.

The kernels are those that reduce an array, but for their reading: they compute each element from the operands where they
would load it. They go through the same places in the same order as in a C-contiguous array of the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from numr.codegen import cuda
from numr.codegen.elementwise import operand
from numr.codegen.expr import Expr
from numr.codegen.fused import expressions
from numr.ir.fused import Computation
from numr.layout.strides import contiguous_strides, merge_axes
from numr.runtime.cuda import texts
from numr.runtime.cuda.compiler import Kernel
from numr.runtime.cuda.elementwise import broadcast_strides, scalar_slot
from numr.runtime.cuda.reductions import Plan, Reading, launch, plan_for, text_of, vector_of
from numr.runtime.cuda.texts import VECTOR

if TYPE_CHECKING:
    from numr.runtime.cuda.context import DeviceContext
    from numr.runtime.cuda.folding import Fold

__all__ = ["FusedReduction", "way_through"]

Array = Any

#: Vectors that a thread reads before it joins them, by the number of operations of an element.
_UNROLL: Final = ((12, 8), (96, 4), (192, 2))
#: Ways through operands that are remembered.
_REMEMBERED: Final = 256
#: Bytes of arguments that a kernel takes at most.
_ARGUMENTS: Final = 4000


class Way(NamedTuple):
    """How operands are walked through beside the places of a C-contiguous array.

    Parameters
    ----------
    classes : str
        For each operand: ``f`` if it lies as the array does, ``1`` if it is one element for all; of those that are
        walked through ``0`` if it does not change along the last axis, ``c`` if it steps to the neighbour, else ``s``.
    rank : int
        Axes of the walk.
    in_rows : bool
        Whether all elements of a vector are in one row of the walk.
    aligned : bool
        Whether vectors of the operands that lie as the array does are aligned.
    wide : bool
        Whether places are counted in 64 bits.
    """

    classes: str
    rank: int
    in_rows: bool
    aligned: bool
    wide: bool


class FusedReduction:
    """The kernels of a reduction of a computation.

    Parameters
    ----------
    computation : Computation
        What is computed, with one result.
    fold : Fold
        What becomes of the results; a fold for nothing else.
    """

    def __init__(self, computation: Computation, fold: Fold) -> None:
        self.computation = computation
        self.fold = fold
        self._arrays = tuple(i for i, x in enumerate(computation.sources) if x.is_array)
        self._scalars = tuple(
            (i, *scalar_slot(x.dtype)) for i, x in enumerate(computation.sources) if not x.is_array
        )
        self._itemsizes = tuple(computation.sources[i].dtype.itemsize for i in self._arrays)
        self._kernels: dict[tuple[object, ...], Kernel] = {}
        self._plans: dict[tuple[Any, ...], tuple[Plan, Kernel, bytes] | None] = {}
        self._code: cuda.Code | None = None

    def into(
        self,
        context: DeviceContext,
        operands: Sequence[Any],
        shape: tuple[int, ...],
        axes: tuple[int, ...],
        out: Array,
    ) -> bool:
        """Reduce over axes of a shape that has elements; False where operands need too many arguments."""
        values = list(operands)
        addresses = 0
        strides = []
        for i in self._arrays:
            array = operands[i]
            values[i] = ptr = array.data.ptr
            addresses |= ptr
            strides.append(
                array.strides if array.shape == shape else broadcast_strides(array, shape)
            )
        for i, _, make in self._scalars:
            values[i] = make(values[i])
        key = (shape, tuple(strides), axes, not addresses & 15)
        if key not in self._plans:
            if len(self._plans) >= _REMEMBERED:
                self._plans.clear()
            self._plans[key] = self._planned(context, *key)
        found = self._plans[key]
        if found is None:
            return False
        plan, kernel, dims = found
        launch(context, kernel, self.fold, plan, values, out, dims)
        return True

    def _planned(
        self,
        context: DeviceContext,
        shape: tuple[int, ...],
        strides: tuple[tuple[int, ...], ...],
        axes: tuple[int, ...],
        aligned: bool,
    ) -> tuple[Plan, Kernel, bytes] | None:
        itemsize = self.fold.source.itemsize
        contiguous = contiguous_strides(shape)
        plan = plan_for(shape, tuple(n * itemsize for n in contiguous), axes, itemsize, True)
        vector = vector_of(self.fold, plan)
        way, dims = way_through(shape, strides, self._itemsizes, contiguous, vector, aligned)
        dims = plan.dims + dims
        if 16 * (len(self.computation.sources) + 7) + len(dims) > _ARGUMENTS:
            return None
        key = (plan.kind, *plan.variant, *way)
        kernel = self._kernels.get(key)
        if kernel is None:
            text = self.text(plan, way)
            layout = ["q8x"] * len(self.computation.sources)
            for i, scalar, _ in self._scalars:
                layout[i] = scalar
            layout += ["q8x"] * 7
            with context.current():
                kernel = context.compiler.laid_out(text, "".join(layout) + f"{len(dims)}s")
            self._kernels[key] = kernel
        return plan, kernel, dims

    # ------------------------------------------------------------------- texts
    def text(self, plan: Plan, way: Way) -> str:
        """The text of the kernel for a plan and a way."""
        code = self._code
        if code is None:
            operands = [operand(f"x{i}", x.dtype) for i, x in enumerate(self.computation.sources)]
            (value,) = expressions(self.computation, operands)
            roots = [value] if isinstance(value, Expr) else list(value)
            code = self._code = cuda.code(roots, indent="        ")
        walked = sum(kind in "0cs" for kind in way.classes)
        memory = texts.memory_type(self.fold.source)
        vector = vector_of(self.fold, plan)
        parameters = ", ".join(
            f"const {texts.memory_type(x.dtype)}{'*' if x.is_array else ''} p{i}"
            for i, x in enumerate(self.computation.sources)
        )
        ones = "".join(
            f"    const auto z{i} = *p{i};\n"
            for i, kind in zip(self._arrays, way.classes, strict=True)
            if kind == "1"
        )
        start = (
            f"    const long long numr_first = 0;\n{ones}"
            f"    const auto numr_element_at = [&](const long long at) -> {memory} {{\n"
            f"        {memory} made;\n{self._elements(way, 1, code)}        return made;\n    }};\n"
            "    const auto numr_row_at = [&](const long long at) -> numr_row_type {\n"
        )
        if vector > 1 and way.in_rows:
            start += f"        numr_row_type made;\n{self._elements(way, vector, code)}        return made;\n"
        else:
            # One element after the other, each at its own place.
            start += (
                "        numr_row_type made;\n        #pragma unroll\n"
                f"        for (int e = 0; e < {vector}; ++e) "
                f"made.v[e] = numr_element_at(at + e * {self.fold.source.itemsize});\n"
                "        return made;\n"
            )
        start += "    };\n"
        reading = Reading(
            parameters,
            "long long",
            texts.dims_type(way.rank, walked, walked, "numr_operands"),
            "numr_operands given; ",
            start,
            next((most for size, most in _UNROLL if code.size <= size), 1),
        )
        return text_of(self.fold, plan, reading)

    def _elements(self, way: Way, vector: int, code: cuda.Code) -> str:
        """Statements that compute ``made``, the element or vector at a place of the array."""
        sources = self.computation.sources
        walked = sum(kind in "0cs" for kind in way.classes)
        lines = [f"const long long l = at / {self.fold.source.itemsize};"]
        if walked:
            lines += texts.walk(way.rank, walked, "l", way.wide, "", "dims.given").splitlines()
        elements: dict[int, str] = {}
        number = 0
        for i, kind in zip(self._arrays, way.classes, strict=True):
            memory = texts.memory_type(sources[i].dtype)
            if kind == "1":
                elements[i] = f"z{i}"
                continue
            place = f"p{i} + l"
            if kind != "f":
                place = f"(const {memory}*)((const char*)p{i} + at{number})"
            if vector == 1 or kind == "0":
                lines.append(f"const auto w{i} = *({place});")
                elements[i] = f"w{i}"
            elif kind in "fc":
                whole = kind == "f" and way.aligned and vector * sources[i].dtype.itemsize <= VECTOR
                row = f"{'numr_vec' if whole else 'numr_row'}<{memory}, {vector}>"
                lines.append(f"const auto w{i} = *(const {row}*)({place});")
                elements[i] = f"w{i}.v[e]"
            else:
                step = f"dims.given.inner[{number}]"
                lines.append(
                    f"{memory} w{i}[{vector}];\n        #pragma unroll\n        for (int e = 0; e < {vector}; ++e) "
                    f"w{i}[e] = *(const {memory}*)((const char*)({place}) + e * {step});"
                )
                elements[i] = f"w{i}[e]"
            number += kind != "f"
        loads = []
        for i, source in enumerate(sources):
            loads += texts.load(f"x{i}", source.dtype, elements.get(i, f"p{i}"))
        target = "made" if vector == 1 else "made.v[e]"
        body = "".join(f"        {line}\n" for line in loads) + code.statements
        body += f"        {texts.store(target, self.fold.source, code.results)}\n"
        if vector > 1:
            body = f"        #pragma unroll\n        for (int e = 0; e < {vector}; ++e) {{\n{body}        }}\n"
        return "".join(f"        {line}\n" for line in lines) + body


def way_through(
    shape: tuple[int, ...],
    strides: tuple[tuple[int, ...], ...],
    itemsizes: tuple[int, ...],
    contiguous: tuple[int, ...],
    vector: int,
    aligned: bool,
) -> tuple[Way, bytes]:
    """The way through operands, and the argument for it; strides are in bytes, ``contiguous`` ones in elements."""
    classes = []
    walked = []
    for own, itemsize in zip(strides, itemsizes, strict=True):
        lies_so = all(
            n == 1 or step == unit * itemsize
            for n, step, unit in zip(shape, own, contiguous, strict=True)
        )
        one = all(n == 1 or not step for n, step in zip(shape, own, strict=True))
        classes.append("1" if one else "f" if lies_so else "w")
        if classes[-1] == "w":
            walked.append((own, itemsize))
    size = 1
    for n in shape:
        size *= n
    lengths, steps = merge_axes(shape, [own for own, _ in walked]) if walked else ([], [])
    inner = [own[-1] for own in steps]
    kinds = iter(
        "0" if not step else "c" if step == itemsize else "s"
        for step, (_, itemsize) in zip(inner, walked, strict=True)
    )
    rank = texts.rank_for(len(lengths)) if walked else 0
    way = Way(
        "".join(next(kinds) if kind == "w" else kind for kind in classes),
        rank,
        not walked or lengths[-1] % vector == 0,
        aligned,
        size >= texts.NARROW,
    )
    return way, texts.pack_dims(rank, lengths if rank else [], steps, inner)
