"""Texts of fused kernels: a loop over rows, each of which is computed a vector of elements at a time.

Addresses, strides, lengths and scalars come at run time, in an array of 64-bit words (``arrays.Parameters``). A text
depends on the computation, on how each array is walked along rows and on the width of vectors alone.
"""

from __future__ import annotations

from typing import Final

from numr.codegen.elementwise import operand, scalar_of
from numr.codegen.expr import Expr, topological
from numr.codegen.fused import expressions
from numr.codegen.llvm import METADATA, Printer, element
from numr.dtypes import DType
from numr.ir.fused import Computation
from numr.runtime.cpu.jit.arrays import Array, Parameters, Walk, memory_type

__all__ = ["ALIGNMENT", "NAME", "kernel_text"]

#: The kernel's name.
NAME: Final = "numr_kernel"

#: How many vectors are computed side by side, so that there is always work that waits for nothing.
_VECTORS: Final = 2

#: Results that go past the caches start at multiples of so many bytes.
ALIGNMENT: Final = 64

#: So many bytes ahead operands are fetched. Processors look ahead too, but not far enough while they compute a lot.
_AHEAD: Final = 2048
_LINE: Final = 64

_PREFETCH: Final = "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)"


def kernel_text(
    computation: Computation, walks: tuple[Walk, ...], bits: int, attributes: str
) -> str:
    """The text of a kernel, as a module of LLVM IR.

    Parameters
    ----------
    computation : Computation
        What is computed; no dtype is complex.
    walks : tuple of Walk
        How operands that are arrays, then results, are walked along rows.
    bits : int
        Width of vectors.
    attributes : str
        Of the function.
    """
    return _Text(computation, walks, bits).module(attributes)


class _Text:
    """A text while it is written.

    Blocks follow one another: ``entry``; for each row ``rows``, ``axes`` and ``axis``, which find its place, and
    ``placed``; the loop ``vector``, which is entered from ``main`` for the whole vectors of the row, and once more for
    what remains, in buffers of one vector that ``fill`` and ``drain`` copy to and from. So there is one body, and an
    element's result is the same wherever it stands.
    """

    def __init__(self, computation: Computation, walks: tuple[Walk, ...], bits: int) -> None:
        sources = computation.sources
        operands = [operand(f"v{i}", source.dtype) for i, source in enumerate(sources)]
        roots = expressions(computation, operands)
        self.roots = [root for root in roots if isinstance(root, Expr)]
        # No narrower than the elements of the smallest dtypes in memory.
        widest = max([8, *(node.type.bits for node in topological(self.roots))])
        self.lanes = lanes = _VECTORS * bits // widest
        self.printer = Printer(self.roots, lanes, prefix="t", vectors=_VECTORS)
        used = set(self.printer.order)
        dtypes = [source.dtype for source in sources if source.is_array]
        dtypes += computation.result_dtypes
        count = len(dtypes) - len(self.roots)
        self.arrays = [
            Array(i, dtype, walk, i >= count)
            for i, (dtype, walk) in enumerate(zip(dtypes, walks, strict=True))
        ]
        array_variables = [x for x, s in zip(operands, sources, strict=True) if s.is_array]
        scalar_variables = [
            (x, s.dtype) for x, s in zip(operands, sources, strict=True) if not s.is_array
        ]
        #: Operands that the results depend on.
        self.inputs = [
            (array, x) for array, x in zip(self.arrays, array_variables, strict=False) if x in used
        ]
        self.outputs = self.arrays[count:]
        #: Arrays that move along a row, operands and results.
        self.moving = [a for a, _ in self.inputs if a.walk is not Walk.ZERO] + self.outputs
        self.scalars = [
            (place, x, dtype) for place, (x, dtype) in enumerate(scalar_variables) if x in used
        ]
        self.places = Parameters(len(self.arrays), len(scalar_variables))
        self.lines: list[str] = []
        self._count = 0

    def module(self, attributes: str) -> str:
        """All of it."""
        self._entry()
        self._rows()
        self._row_start()
        self._segments()
        self._body()
        self._row_end()
        body = "\n".join(self.lines)
        declarations = "\n".join((_PREFETCH, *self.printer.declarations))
        return (
            f"define void @{NAME}(ptr %p, i64 %row.start, i64 %row.stop, i64 %start, i64 %stop) #0 {{\n"
            f"{body}\n}}\n{declarations}\nattributes #0 = {{ {attributes} }}\n{METADATA}!1 = !{{i32 1}}\n"
        )

    # -------------------------------------------------------------------- parts
    def _put(self, text: str) -> str:
        name = f"%n{self._count}"
        self._count += 1
        self.lines.append(f"  {name} = {text}")
        return name

    def _do(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def _block(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.printer.block = label

    def _word(self, place: int, type: str = "i64") -> str:
        address = self._put(f"getelementptr inbounds i64, ptr %p, i64 {place}")
        return self._put(f"load {type}, ptr {address}, align 8")

    def _phi(self, name: str, type: str, *sources: tuple[str, str]) -> None:
        values = ", ".join(f"[ {value}, %{block} ]" for value, block in sources)
        self._do(f"{name} = phi {type} {values}")

    def _moved(self, pointer: str, distance: str) -> str:
        return self._put(f"getelementptr i8, ptr {pointer}, i64 {distance}")

    def _spread(self, value: str, type: str) -> str:
        """A vector of one value."""
        vector = f"<{self.lanes} x {type}>"
        first = self._put(f"insertelement {vector} poison, {type} {value}, i64 0")
        return self._put(
            f"shufflevector {vector} {first}, {vector} poison, <{self.lanes} x i32> zeroinitializer"
        )

    def _emit(self, nodes: list[Expr]) -> None:
        self.printer.compute(nodes)
        self.lines.append(self.printer.taken().rstrip("\n"))

    def _held(self, value: str, dtype: DType) -> str:
        """A vector from memory as it is computed with."""
        if dtype.kind == "b":
            return self._put(f"icmp ne <{self.lanes} x i8> {value}, zeroinitializer")
        if dtype.kind in "iu" and dtype.itemsize < 4:
            extend = "sext" if dtype.kind == "i" else "zext"
            memory = memory_type(dtype)
            return self._put(f"{extend} <{self.lanes} x {memory}> {value} to <{self.lanes} x i32>")
        return value

    def _given(self, value: str, dtype: DType) -> str:
        """A vector as it lies in memory."""
        held, memory = element(scalar_of(dtype)), memory_type(dtype)
        if held == memory:
            return value
        shorten = "zext" if dtype.kind == "b" else "trunc"
        return self._put(f"{shorten} <{self.lanes} x {held}> {value} to <{self.lanes} x {memory}>")

    def _entry(self) -> None:
        self._block("entry")
        lanes = self.lanes
        for array in self.moving:
            vector = f"<{lanes} x {array.memory}>"
            self._do(f"%buffer{array.number} = alloca {vector}, align 64")
            self._do(f"store {vector} zeroinitializer, ptr %buffer{array.number}, align 64")
        self.base = {a.number: self._word(a.number, "ptr") for a in self._present}
        self.step = {
            a.number: self._word(self.places.steps + a.number)
            if a.walk is Walk.STRIDED
            else str(a.size)
            for a in self.moving
        }
        known = []
        for place, x, dtype in self.scalars:
            memory = memory_type(dtype)
            value = self._word(self.places.values + place, memory)
            self.printer.variables[str(x.value)] = self._held(self._spread(value, memory), dtype)
            known.append(x)
        streamed = self._word(self.places.streamed)
        self.streamed = self._put(f"icmp ne i64 {streamed}, 0")
        self.outer = self._word(self.places.outer)
        self.known: list[Expr] = known
        self._emit(self.printer.only_with(known))
        self._do("br label %rows")
        self.entered_from = self.printer.block

    @property
    def _present(self) -> list[Array]:
        return [a for a, _ in self.inputs] + self.outputs

    def _rows(self) -> None:
        """The loop over rows, and within it the one that finds a row's place."""
        self._block("rows")
        self._phi("%row", "i64", ("%row.start", self.entered_from), ("%row.next", "row.end"))
        self._do("%row.more = icmp slt i64 %row, %row.stop")
        self._do("br i1 %row.more, label %axes, label %exit")
        self._block("axes")
        self._phi("%rest", "i64", ("%row", "rows"), ("%rest.next", "axis"))
        self._phi("%depth", "i64", (self.outer, "rows"), ("%depth.next", "axis"))
        for a in self._present:
            self._phi(f"%place{a.number}", "i64", ("0", "rows"), (f"%place{a.number}.next", "axis"))
        self._do("%axis.more = icmp sgt i64 %depth, 0")
        self._do("br i1 %axis.more, label %axis, label %placed")
        self._block("axis")
        self._do("%depth.next = sub i64 %depth, 1")
        width = self.places.arrays + 1
        start = self._put(f"mul i64 %depth.next, {width}")
        words = self._put(f"getelementptr i64, ptr %p, i64 {start}")
        first = self._put(f"getelementptr i64, ptr {words}, i64 {self.places.axes}")
        length = self._put(f"load i64, ptr {first}, align 8")
        self._do(f"%rest.next = udiv i64 %rest, {length}")
        whole = self._put(f"mul i64 %rest.next, {length}")
        index = self._put(f"sub i64 %rest, {whole}")
        for a in self._present:
            address = self._put(
                f"getelementptr i64, ptr {words}, i64 {self.places.axes + 1 + a.number}"
            )
            stride = self._put(f"load i64, ptr {address}, align 8")
            distance = self._put(f"mul i64 {index}, {stride}")
            self._do(f"%place{a.number}.next = add i64 %place{a.number}, {distance}")
        self._do("br label %axes")

    def _row_start(self) -> None:
        """What a row starts with: its addresses and what is the same all along it."""
        self._block("placed")
        self.start: dict[int, str] = {}
        for array, x in self.inputs:
            address = self._moved(self.base[array.number], f"%place{array.number}")
            if array.walk is Walk.ZERO:
                value = self._put(f"load {array.memory}, ptr {address}, align {array.size}")
                spread = self._spread(value, array.memory)
                self.printer.variables[str(x.value)] = self._held(spread, array.dtype)
                self.known.append(x)
            else:
                self.start[array.number] = address
        for array in self.outputs:
            self.start[array.number] = self._moved(self.base[array.number], f"%place{array.number}")
        for array in self.moving:
            distance = self._put(f"mul i64 %start, {self.step[array.number]}")
            self.start[array.number] = self._moved(self.start[array.number], distance)
        self._emit(self.printer.only_with(self.known))
        self._do("%length = sub i64 %stop, %start")
        self._do(f"%over = srem i64 %length, {self.lanes}")
        self._do("%whole = sub i64 %length, %over")
        #: Where the whole vectors of the row end.
        self.ends: dict[int, str] = {}
        for array in self.moving:
            distance = self._put(f"mul i64 %whole, {self.step[array.number]}")
            self.ends[array.number] = self._moved(self.start[array.number], distance)
        self._do("%any.whole = icmp sgt i64 %whole, 0")
        self._do("br i1 %any.whole, label %main, label %remaining")
        self.row_block = self.printer.block

    def _segments(self) -> None:
        """The vectors of a row, and then what is left of it, in buffers of one vector."""
        self._block("remaining")
        self._do("%any.over = icmp sgt i64 %over, 0")
        self._do("br i1 %any.over, label %fill, label %row.end")
        sources = [a for a in self.moving if not a.is_result]
        self._block("fill")
        self._do("br label %fill.one")
        self._copy("fill", sources, into_buffers=True, after="main")
        self._block("main")
        for array in self.moving:
            n = array.number
            self._phi(
                f"%at{n}", "ptr", (self.start[n], self.row_block), (f"%buffer{n}", "fill.end")
            )
            if array.walk is Walk.STRIDED:
                self._phi(
                    f"%by{n}", "i64", (self.step[n], self.row_block), (str(array.size), "fill.end")
                )
        self._phi("%count", "i64", ("%whole", self.row_block), (str(self.lanes), "fill.end"))
        self._phi("%in.row", "i1", ("true", self.row_block), ("false", "fill.end"))
        self._phi("%stream", "i1", (self.streamed, self.row_block), ("false", "fill.end"))
        self._do("br label %vector")

    def _copy(self, name: str, arrays: list[Array], into_buffers: bool, after: str) -> None:
        """A loop that copies the elements that are left to buffers, or back."""
        self._block(f"{name}.one")
        index = f"%{name}.index"
        self._phi(index, "i64", ("0", name), (f"{index}.next", f"{name}.one"))
        for array in arrays:
            n = array.number
            offset = self._put(f"mul i64 {index}, {self.step[n]}")
            there = self._moved(self.ends[n], offset)
            here = self._put(f"getelementptr {array.memory}, ptr %buffer{n}, i64 {index}")
            source, target = (there, here) if into_buffers else (here, there)
            value = self._put(f"load {array.memory}, ptr {source}, align {array.size}")
            self._do(f"store {array.memory} {value}, ptr {target}, align {array.size}")
        self._do(f"{index}.next = add i64 {index}, 1")
        self._do(f"%{name}.more = icmp slt i64 {index}.next, %over")
        self._do(f"br i1 %{name}.more, label %{name}.one, label %{name}.end")
        self._block(f"{name}.end")
        self._do(f"br label %{after}")

    def _body(self) -> None:
        """The loop over vectors."""
        lanes = self.lanes
        self._block("vector")
        self._phi("%i", "i64", ("0", "main"), ("%i.next", "vector.end"))
        strided = [a for a in self.moving if a.walk is Walk.STRIDED]
        for a in strided:
            self._phi(
                f"%next{a.number}",
                "ptr",
                (f"%at{a.number}", "main"),
                (f"%next{a.number}.next", "vector.end"),
            )
        address = {
            a.number: self._put(f"getelementptr {a.memory}, ptr %at{a.number}, i64 %i")
            for a in self.moving
            if a.walk is Walk.UNIT
        }
        for array, x in self.inputs:
            if array.walk is Walk.ZERO:
                continue
            vector = f"<{lanes} x {array.memory}>"
            if array.walk is Walk.UNIT:
                value = self._put(f"load {vector}, ptr {address[array.number]}, align {array.size}")
            else:
                value = "poison"
                place = f"%next{array.number}"
                for lane in range(lanes):
                    if lane:
                        place = self._moved(place, f"%by{array.number}")
                    one = self._put(f"load {array.memory}, ptr {place}, align {array.size}")
                    value = self._put(
                        f"insertelement {vector} {value}, {array.memory} {one}, i64 {lane}"
                    )
            self.printer.variables[str(x.value)] = self._held(value, array.dtype)
        for array, _ in self.inputs:
            if array.walk is Walk.UNIT:
                for line in range(0, lanes * array.size, _LINE):
                    ahead = self._moved(address[array.number], str(_AHEAD + line))
                    self._do(f"call void @llvm.prefetch.p0(ptr {ahead}, i32 0, i32 3, i32 1)")
        self._emit(self.roots)
        values = [
            self._given(self.printer.text[root], array.dtype)
            for root, array in zip(self.roots, self.outputs, strict=True)
        ]
        streams = any(a.walk is Walk.UNIT for a in self.outputs)
        if streams:
            self._do("br i1 %stream, label %vector.stream, label %vector.store")
            self._block("vector.stream")
            self._store(values, address, ", !nontemporal !1")
            self._do("br label %vector.end")
            self._block("vector.store")
        self._store(values, address, "")
        self._do("br label %vector.end")
        self._block("vector.end")
        for a in strided:
            distance = self._put(f"mul i64 %by{a.number}, {lanes}")
            self._do(
                f"%next{a.number}.next = getelementptr i8, ptr %next{a.number}, i64 {distance}"
            )
        self._do(f"%i.next = add i64 %i, {lanes}")
        self._do("%vector.more = icmp slt i64 %i.next, %count")
        self._do("br i1 %vector.more, label %vector, label %vectors.end")

    def _store(self, values: list[str], address: dict[int, str], stream: str) -> None:
        for array, value in zip(self.outputs, values, strict=True):
            vector = f"<{self.lanes} x {array.memory}>"
            if array.walk is Walk.UNIT:
                align = min(self.lanes * array.size, ALIGNMENT) if stream else array.size
                self._do(
                    f"store {vector} {value}, ptr {address[array.number]}, align {align}{stream}"
                )
                continue
            place = f"%next{array.number}"
            for lane in range(self.lanes):
                if lane:
                    place = self._moved(place, f"%by{array.number}")
                one = self._put(f"extractelement {vector} {value}, i64 {lane}")
                self._do(f"store {array.memory} {one}, ptr {place}, align {array.size}")

    def _row_end(self) -> None:
        self._block("vectors.end")
        self._do("br i1 %in.row, label %remaining, label %drain")
        self._block("drain")
        self._do("br label %drain.one")
        self._copy("drain", self.outputs, into_buffers=False, after="row.end")
        self._block("row.end")
        self._do("%row.next = add i64 %row, 1")
        self._do("br label %rows")
        self._block("exit")
        self._do("ret void")
