"""The texts of pointwise kernels: formulas, in a kernel for neighbouring elements and in one for any strides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

from numr.codegen import expr as ex
from numr.codegen import wgsl
from numr.codegen.elementwise import Operand, operand
from numr.codegen.expr import Expr
from numr.dtypes import DType
from numr.runtime.wgpu import scalars, texts, vectors
from numr.runtime.wgpu.grouping import SAME, SIDE_BY_SIDE
from numr.runtime.wgpu.pipelines import KernelText
from numr.runtime.wgpu.texts import Parameters, Walk

__all__ = ["Code", "Formulas", "Prepared", "Texts"]

#: Makes the expressions of the results from those of the operands.
Formulas: TypeAlias = Callable[..., Sequence[Operand]]

_RESULTS: Final = "Results"


class Prepared(NamedTuple):
    """A text, and what packs its parameters: zero, count, row, first, the scalars, and what the kernel takes besides."""

    text: KernelText
    pack: Callable[..., bytes]


class Code:
    """The function ``element`` of formulas: from an element's number ``i`` and the operands to the results.

    Parameters
    ----------
    sources, results, formulas
        As of :class:`numr.runtime.wgpu.pointwise.Pointwise`.
    stored : callable
        From a result's dtype and the texts of its parts to what the function gives of it.
    types : sequence of str
        What types these have.

    Attributes
    ----------
    size : int
        Number of operations.
    text : str
        The function, and the types and functions that it needs.
    type : str
        The WGSL type of what it gives.
    """

    def __init__(
        self,
        sources: Sequence[tuple[DType, bool]],
        results: Sequence[DType],
        formulas: Formulas,
        stored: Callable[[DType, Sequence[str]], str],
        types: Sequence[str],
    ) -> None:
        operands = [operand(f"x{i}", dtype) for i, (dtype, _) in enumerate(sources)]
        values = [
            [value] if isinstance(value, Expr) else list(value) for value in formulas(*operands)
        ]
        roots = [part for value in values for part in value]
        self.size = sum(1 for _ in ex.topological(roots))
        self.arrays = tuple(i for i, (_, is_array) in enumerate(sources) if is_array)
        given = [dtype for dtype, is_array in sources if not is_array]
        self.formats = "".join(map(scalars.format_of, given))
        self.words = sum(map(scalars.words_of, given))
        code = wgsl.code(roots)
        words = iter(range(self.words))
        arguments, lines = ["i: u32"], []
        for i, (dtype, is_array) in enumerate(sources):
            if is_array:
                type = texts.scalar_type(dtype)
                arguments += [f"{part}: {type}" for part in parts(f"x{i}", dtype)]
            else:
                own = [Parameters.word(next(words)) for _ in range(scalars.words_of(dtype))]
                lines += scalars.declarations(f"x{i}", dtype, own)
        self._count = len(results)
        self.type = types[0] if self._count == 1 else _RESULTS
        texts_of_parts = iter(code.results)
        made = [
            stored(dtype, [next(texts_of_parts) for _ in value])
            for dtype, value in zip(results, values, strict=True)
        ]
        value = made[0]
        self.text = texts.prelude(code.types | {texts.scalar_type(dtype) for dtype, _ in sources})
        if self._count > 1:
            fields = ", ".join(f"r{k}: {type}" for k, type in enumerate(types))
            self.text += f"struct {_RESULTS} {{ {fields} }}\n"
            value = f"{_RESULTS}({', '.join(made)})"
        self.text += (
            f"fn element({', '.join(arguments)}) -> {self.type} {{\n"
            + "".join(f"    {line}\n" for line in lines)
            + f"{code.statements}    return {value};\n}}\n"
        )

    def picked(self, name: str) -> list[str]:
        """The results, from the name of what ``element`` gave."""
        return [name] if self._count == 1 else [f"{name}.r{k}" for k in range(self._count)]


class Texts:
    """The texts of formulas for operands of given kinds.

    Parameters
    ----------
    sources, results, formulas
        As of :class:`numr.runtime.wgpu.pointwise.Pointwise`.
    """

    def __init__(
        self,
        sources: Sequence[tuple[DType, bool]],
        results: Sequence[DType],
        formulas: Formulas,
    ) -> None:
        self._sources = tuple(sources)
        self._results = tuple(results)
        self._formulas = formulas
        self._made: dict[tuple[object, ...], Prepared] = {}

    @cached_property
    def _code(self) -> Code:
        types = ["u32" if texts.lanes(x) > 1 else texts.memory_type(x) for x in self._results]
        return Code(self._sources, self._results, self._formulas, texts.stored, types)

    @property
    def size(self) -> int:
        """Number of operations in the formulas."""
        return self._code.size

    def _parameters(self, words: int) -> Parameters:
        return Parameters("count", "row", "first", words=self._code.words + words)

    def grouped(self, modes: str, rank: int, *, aliased: bool) -> Prepared:
        """The kernel for four neighbouring elements of results in C order; it writes whole pieces.

        Its own parameters are the tail of the grouping.

        Parameters
        ----------
        modes, rank
            As of :class:`numr.runtime.wgpu.grouping.Grouping`.
        aliased : bool
            Whether an operand may be in a result's buffer.
        """
        key = (modes, rank, aliased)
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = self._make_grouped(modes, rank, aliased)
        return found

    def _make_grouped(self, modes: str, rank: int, aliased: bool) -> Prepared:
        width, code = vectors.WIDTH, self._code
        count = len(modes)
        starts = code.words
        words = (1 + count) * rank
        if rank or SAME in modes:
            words += count
        params = self._parameters(words)
        lines = [f"if ({width}u * i >= params.count) {{ return; }}"]
        if rank:
            lines += Walk.text(rank, count, "i", starts + count, indent="").splitlines()
        buffers, elements = [], []
        for n, (i, mode) in enumerate(zip(code.arrays, modes, strict=True)):
            dtype, start = self._sources[i][0], Parameters.word(starts + n)
            place = f"({start} + at{n})" if rank else "i" if mode == SIDE_BY_SIDE else start
            make = vectors.source if mode == SIDE_BY_SIDE else texts.source
            buffers.append(make(f"p{i}", dtype, writable=aliased))
            if mode == SIDE_BY_SIDE:
                lines += vectors.loads(f"v{i}", dtype, f"p{i}", place)
            else:
                lines += texts.load(f"x{i}", dtype, f"p{i}", place)
            elements.append((i, dtype, mode))
        for lane in range(width):
            arguments = [f"params.first + {width}u * i + {lane}u"]
            for i, dtype, mode in elements:
                name = f"x{i}" if mode == SAME else f"x{i}l{lane}"
                if mode == SIDE_BY_SIDE:
                    piece = vectors.element(f"v{i}", dtype, lane)
                    lines += texts.unpacked(name, dtype, piece, f"{lane}u")
                arguments += parts(name, dtype)
            lines.append(f"let r{lane} = element({', '.join(arguments)});")
        made = [code.picked(f"r{lane}") for lane in range(width)]
        for k, dtype in enumerate(self._results):
            lines += vectors.stores(dtype, f"out{k}", "i", [values[k] for values in made])
            buffers.append(vectors.target(f"out{k}", dtype))
        body = "".join(f"    {line}\n" for line in lines)
        text = f"{params.text}{code.text}{texts.invocation()}{body}}}\n"
        formats = f"{code.formats}{words}I"
        return Prepared(KernelText(text, tuple(buffers), params.size), params.packer(formats).pack)

    def strided(
        self, rank: int, slots: tuple[int, ...], *, fresh: tuple[bool, ...], aliased: bool
    ) -> Prepared:
        """The kernel for arrays with any strides.

        Its own parameters are where each array starts in its binding, those of results that are not fresh last, and
        the walk.

        Parameters
        ----------
        rank : int
            As of the walk.
        slots : tuple of int
            For each array the number of its binding.
        fresh : tuple of bool
            For each result whether its binding is in C order and has nothing else; its start is no parameter then.
        aliased : bool
            Whether an operand may be in a result's buffer.
        """
        key = (rank, slots, fresh, aliased)
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = self._make_strided(rank, slots, fresh, aliased)
        return found

    def _make_strided(
        self, rank: int, slots: tuple[int, ...], fresh: tuple[bool, ...], aliased: bool
    ) -> Prepared:
        code = self._code
        arrays = len(slots)
        walked = arrays + fresh.count(False)
        starts = code.words
        walk = starts + walked
        words = walked + rank * (1 + walked)
        params = self._parameters(words)
        lines = ["let e = params.first + k;"]
        lines += Walk.text(rank, walked, "e", walk, indent="").splitlines()
        arguments = ["e"]
        for number, i in enumerate(code.arrays):
            dtype = self._sources[i][0]
            place = f"({Parameters.word(starts + number)} + at{number})"
            lines += texts.load(f"x{i}", dtype, f"p{slots[number]}", place)
            arguments += parts(f"x{i}", dtype)
        lines.append(f"let r = element({', '.join(arguments)});")
        number = arrays
        for k, value in enumerate(code.picked("r")):
            if not fresh[k]:
                lines.append(f"out{k}[{Parameters.word(starts + number)} + at{number}] = {value};")
                number += 1
        body = "".join(f"    {line}\n" for line in [*lines, "return r;"])
        buffers = [
            texts.source(f"p{slot}", self._sources[code.arrays[slot]][0], writable=aliased)
            for slot in dict.fromkeys(slots)
        ]
        buffers += [texts.target(f"out{k}", dtype) for k, dtype in enumerate(self._results)]
        text = KernelText(
            f"{params.text}{code.text}fn at(k: u32) -> {code.type} {{\n{body}}}\n"
            f"{texts.invocation()}{self._write(fresh)}}}\n",
            tuple(buffers),
            params.size,
        )
        return Prepared(text, params.packer(f"{code.formats}{words}I").pack)

    def _write(self, fresh: tuple[bool, ...]) -> str:
        """What an invocation does: the elements of one word, where elements of any result share words."""
        values = self._code.picked("r")
        written = [(k, texts.lanes(x)) for k, x in enumerate(self._results) if fresh[k]]
        most = max((lanes for _, lanes in written), default=1)
        if most == 1:
            stores = "".join(f"    out{k}[i] = {values[k]};\n" for k, _ in written)
            return f"    if (i >= params.count) {{ return; }}\n    let r = at(i);\n{stores}"
        head = f"    let first = {most}u * i;\n    if (first >= params.count) {{ return; }}\n"
        body, tail = "", ""
        for k, lanes in written:
            if lanes == 1:
                body += f"        out{k}[e] = {values[k]};\n"
                continue
            head += f"    var word{k} = 0u;\n"
            place = "lane" if lanes == most else f"(lane & {lanes - 1}u)"
            body += f"        word{k} |= {values[k]} << ({32 // lanes}u * {place});\n"
            if lanes == most:
                tail += f"    out{k}[i] = word{k};\n"
            else:
                body += (
                    f"        if ({place} == {lanes - 1}u || e + 1u == params.count) {{\n"
                    f"            out{k}[e / {lanes}u] = word{k};\n            word{k} = 0u;\n        }}\n"
                )
        return (
            f"{head}    for (var lane = 0u; lane < {most}u; lane++) {{\n"
            "        let e = first + lane;\n"
            "        if (e >= params.count) { break; }\n"
            f"        let r = at(e);\n{body}    }}\n{tail}"
        )


def parts(name: str, dtype: DType) -> list[str]:
    """The variables of an operand."""
    return [f"{name}_re", f"{name}_im"] if dtype.kind == "c" else [name]
