"""The texts of elementwise kernels: one formula, in a kernel for neighbouring elements and in one for any strides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from numr.codegen import expr as ex
from numr.codegen import wgsl
from numr.codegen.calls import Formula
from numr.codegen.elementwise import operand
from numr.codegen.expr import Expr
from numr.dtypes import DType
from numr.runtime.wgpu import scalars, texts, vectors
from numr.runtime.wgpu.pipelines import KernelText
from numr.runtime.wgpu.texts import Parameters, Walk

__all__ = ["Prepared", "Texts"]

#: Up to this many operations, a kernel has the formula for four elements: more text takes longer to compile.
_SMALL_CODE: Final = 64


class Prepared(NamedTuple):
    """A text, and what packs its parameters: zero, count, row, first, the scalars, and what the kernel takes besides."""

    text: KernelText
    pack: Callable[..., bytes]


class Texts:
    """The texts of one formula for operands of given kinds.

    Parameters
    ----------
    sources, result, formula
        As of :class:`numr.runtime.wgpu.elementwise.Elementwise`.
    """

    def __init__(
        self, sources: Sequence[tuple[DType, bool]], result: DType, formula: Formula
    ) -> None:
        self._sources = tuple(sources)
        self._result = result
        self._formula = formula
        self._arrays = tuple(i for i, (_, is_array) in enumerate(sources) if is_array)
        given = [dtype for dtype, is_array in sources if not is_array]
        self._formats = "".join(map(scalars.format_of, given))
        self._scalar_words = sum(map(scalars.words_of, given))
        self._code: tuple[str, bool] | None = None
        self._strided: dict[tuple[object, ...], Prepared] = {}

    @property
    def is_small(self) -> bool:
        """Whether the formula is short enough for the kernel that has it for several elements."""
        return self._element()[1]

    def _element(self) -> tuple[str, bool]:
        """The function ``element`` from an element's number and operands to the result, and whether it is short."""
        if self._code is None:
            value = self._formula(
                *(operand(f"x{i}", dtype) for i, (dtype, _) in enumerate(self._sources))
            )
            roots = [value] if isinstance(value, Expr) else list(value)
            code = wgsl.code(roots)
            words = iter(range(self._scalar_words))
            arguments, lines, types = ["i: u32"], [], set(code.types)
            for i, (dtype, is_array) in enumerate(self._sources):
                types.add(texts.scalar_type(dtype))
                if is_array:
                    arguments += [
                        f"{part}: {texts.scalar_type(dtype)}" for part in _parts(f"x{i}", dtype)
                    ]
                else:
                    own = [Parameters.word(next(words)) for _ in range(scalars.words_of(dtype))]
                    lines += scalars.declarations(f"x{i}", dtype, own)
            self._code = (
                f"{texts.prelude(frozenset(types))}"
                f"fn element({', '.join(arguments)}) -> {self._element_type()} {{\n"
                + "".join(f"    {line}\n" for line in lines)
                + f"{code.statements}    return {texts.stored(self._result, code.results)};\n}}\n",
                sum(1 for _ in ex.topological(roots)) <= _SMALL_CODE,
            )
        return self._code

    def _element_type(self) -> str:
        return "u32" if texts.lanes(self._result) > 1 else texts.memory_type(self._result)

    def _parameters(self, words: int) -> Parameters:
        return Parameters("count", "row", "first", words=self._scalar_words + words)

    def flat(self, aliased: bool) -> Prepared:
        """The kernel for arrays in C order that start where their bindings do; it writes whole pieces.

        Parameters
        ----------
        aliased : bool
            Whether an operand may be in the result's buffer.
        """
        width = vectors.WIDTH
        params = self._parameters(0)
        buffers = [
            vectors.source(f"p{i}", self._sources[i][0], writable=aliased) for i in self._arrays
        ]
        lines = [f"if ({width}u * i >= params.count) {{ return; }}"]
        for i in self._arrays:
            lines += vectors.loads(f"v{i}", self._sources[i][0], f"p{i}", "i")
        for lane in range(width):
            arguments = [f"params.first + {width}u * i + {lane}u"]
            for i in self._arrays:
                dtype, name = self._sources[i][0], f"x{i}l{lane}"
                piece = vectors.element(f"v{i}", dtype, lane)
                lines += texts.unpacked(name, dtype, piece, f"{lane}u")
                arguments += _parts(name, dtype)
            lines.append(f"let r{lane} = element({', '.join(arguments)});")
        lines += vectors.stores(self._result, "out", "i", [f"r{lane}" for lane in range(width)])
        body = "".join(f"    {line}\n" for line in lines)
        text = KernelText(
            f"{params.text}{self._element()[0]}{texts.invocation()}{body}}}\n",
            (*buffers, vectors.target("out", self._result)),
            params.size,
        )
        return Prepared(text, params.packer(self._formats).pack)

    def strided(self, rank: int, slots: tuple[int, ...], *, fresh: bool, aliased: bool) -> Prepared:
        """The kernel for arrays with any strides.

        Its own parameters are where each array starts in its binding, that of the result last, and the walk.

        Parameters
        ----------
        rank : int
            As of the walk.
        slots : tuple of int
            For each array the number of its binding.
        fresh : bool
            Whether the binding of the result is in C order and has nothing else; its start is no parameter then.
        aliased : bool
            Whether an operand may be in the result's buffer.
        """
        key = (rank, slots, fresh, aliased)
        found = self._strided.get(key)
        if found is None:
            found = self._strided[key] = self._make_strided(rank, slots, fresh, aliased)
        return found

    def _make_strided(
        self, rank: int, slots: tuple[int, ...], fresh: bool, aliased: bool
    ) -> Prepared:
        arrays = len(slots)
        placed = 0 if fresh else 1
        starts = self._scalar_words
        walk = starts + arrays + placed
        words = arrays + placed + rank * (1 + arrays + placed)
        params = self._parameters(words)
        lines = ["let e = params.first + k;"]
        lines += Walk.text(rank, arrays + placed, "e", walk, indent="").splitlines()
        arguments = ["e"]
        for number, i in enumerate(self._arrays):
            dtype = self._sources[i][0]
            place = f"({Parameters.word(starts + number)} + at{number})"
            lines += texts.load(f"x{i}", dtype, f"p{slots[number]}", place)
            arguments += _parts(f"x{i}", dtype)
        value = f"element({', '.join(arguments)})"
        if fresh:
            lines.append(f"return {value};")
            function = f"fn at(k: u32) -> {self._element_type()}"
        else:
            lines.append(f"out[{Parameters.word(starts + arrays)} + at{arrays}] = {value};")
            function = "fn at(k: u32)"
        body = "".join(f"    {line}\n" for line in lines)
        buffers = [
            texts.source(f"p{slot}", self._sources[self._arrays[slot]][0], writable=aliased)
            for slot in dict.fromkeys(slots)
        ]
        text = KernelText(
            f"{params.text}{self._element()[0]}{function} {{\n{body}}}\n"
            f"{texts.invocation()}{self._write(fresh)}}}\n",
            (*buffers, texts.target("out", self._result)),
            params.size,
        )
        return Prepared(text, params.packer(f"{self._formats}{words}I").pack)

    def _write(self, fresh: bool) -> str:
        lanes = texts.lanes(self._result)
        if lanes == 1:
            call = "out[i] = at(i);" if fresh else "at(i);"
            return f"    if (i >= params.count) {{ return; }}\n    {call}\n"
        return (
            f"    let first = {lanes}u * i;\n"
            "    let count = params.count;\n"
            "    if (first >= count) { return; }\n"
            f"{texts.packed(self._result, 'at')}"
            "    out[i] = packed_word;\n"
        )


def _parts(name: str, dtype: DType) -> list[str]:
    """The variables of an operand."""
    return [f"{name}_re", f"{name}_im"] if dtype.kind == "c" else [name]
