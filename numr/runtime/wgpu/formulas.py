"""Formulas as WGSL: a function from the operands of one element to its results, and reading the operands for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from numr.codegen import expr as ex
from numr.codegen import wgsl
from numr.codegen.elementwise import Operand, operand
from numr.codegen.expr import U32, Expr
from numr.dtypes import DType
from numr.runtime.wgpu import scalars, texts, vectors
from numr.runtime.wgpu.grouping import SIDE_BY_SIDE
from numr.runtime.wgpu.pipelines import StorageBuffer
from numr.runtime.wgpu.texts import Parameters, Walk
from numr.runtime.wgpu.vectors import WIDTH

__all__ = ["ZERO", "Code", "Formulas"]

#: Makes the expressions of the results from those of the operands.
Formulas: TypeAlias = Callable[..., Sequence[Operand]]

#: A 0 that compilers do not know.
ZERO: Final = ex.var("params.zero", U32)

_RESULTS: Final = "Results"


class Code:
    """The function ``element`` of formulas: from an element's number ``i`` and its operands to the results.

    A result is given as it is stored in memory, a packed one as the bits of its element alone.

    Parameters
    ----------
    sources, results, formulas
        As of :class:`numr.runtime.wgpu.pointwise.Pointwise`.
    first : int
        The first word of the parameters' array that belongs to the scalars.
    opaque : bool
        Whether the results are used in further arithmetic, so that compilers must not see where they come from.

    Attributes
    ----------
    size : int
        Number of operations.
    text : str
        The function, and the type that it needs.
    types : frozenset of str
        The types that occur in it, for the prelude.
    type : str
        The WGSL type of what it gives.
    arrays : tuple of int
        The operands that are arrays.
    words : int
        How many words of parameters the scalars take.
    formats : str
        As what struct packs these.
    """

    def __init__(
        self,
        sources: Sequence[tuple[DType, bool]],
        results: Sequence[DType],
        formulas: Formulas,
        *,
        first: int = 0,
        opaque: bool = False,
    ) -> None:
        self._sources = tuple(sources)
        self.arrays = tuple(i for i, (_, is_array) in enumerate(sources) if is_array)
        given = [dtype for dtype, is_array in sources if not is_array]
        self.formats = "".join(map(scalars.format_of, given))
        self.words = sum(map(scalars.words_of, given))
        operands = [operand(f"x{i}", dtype) for i, (dtype, _) in enumerate(sources)]
        values = [
            [value] if isinstance(value, Expr) else list(value) for value in formulas(*operands)
        ]
        roots = [part for value in values for part in value]
        self.size = sum(1 for _ in ex.topological(roots))
        code = wgsl.code(roots)
        self.types = code.types | {texts.scalar_type(dtype) for dtype, _ in sources}
        made = iter(map(wgsl.barrier, roots, code.results) if opaque else code.results)
        stored = [
            texts.stored(dtype, [next(made) for _ in value])
            for dtype, value in zip(results, values, strict=True)
        ]
        types = ["u32" if texts.lanes(x) > 1 else texts.memory_type(x) for x in results]
        self._count = len(results)
        self.type, value = types[0], stored[0]
        self.text = ""
        if self._count > 1:
            self.type, value = _RESULTS, f"{_RESULTS}({', '.join(stored)})"
            fields = ", ".join(f"r{k}: {type}" for k, type in enumerate(types))
            self.text = f"struct {_RESULTS} {{ {fields} }}\n"
        arguments, lines = self._arguments(first)
        self.text += (
            f"fn element({', '.join(arguments)}) -> {self.type} {{\n{_indented(lines)}"
            f"{code.statements}    return {value};\n}}\n"
        )

    def _arguments(self, first: int) -> tuple[list[str], list[str]]:
        """The arguments of the function, and declarations of the scalars."""
        words = iter(range(first, first + self.words))
        arguments, lines = ["i: u32"], []
        for i, (dtype, is_array) in enumerate(self._sources):
            if is_array:
                type = texts.scalar_type(dtype)
                arguments += [f"{part}: {type}" for part in _parts(f"x{i}", dtype)]
            else:
                own = [Parameters.word(next(words)) for _ in range(scalars.words_of(dtype))]
                lines += scalars.declarations(f"x{i}", dtype, own)
        return arguments, lines

    def picked(self, name: str) -> list[str]:
        """The results, from the name of what ``element`` gave."""
        return [name] if self._count == 1 else [f"{name}.r{k}" for k in range(self._count)]

    def group(
        self,
        modes: str,
        rank: int,
        start: int,
        first: str,
        *,
        aliased: bool,
        doubled: bool = False,
    ) -> tuple[list[StorageBuffer], list[str]]:
        """The buffers of the operands, and statements that compute ``r0`` to ``r3``, the results of group ``i``.

        Parameters
        ----------
        modes, rank
            As of :class:`numr.runtime.wgpu.grouping.Grouping`.
        start : int
            The first word of the parameters' array that belongs to the grouping's tail.
        first : str
            WGSL of the number of the first element of group 0.
        aliased : bool
            Whether an operand may be in a result's buffer.
        doubled : bool
            Whether operands are read by words of 64 bits; see :mod:`numr.runtime.wgpu.vectors`.
        """
        count = len(modes)
        lines, buffers = [], []
        if rank:
            lines += Walk.text(rank, count, "i", start + count, indent="").splitlines()
        for n, (i, mode) in enumerate(zip(self.arrays, modes, strict=True)):
            dtype, word = self._sources[i][0], Parameters.word(start + n)
            place = f"({word} + at{n})" if rank else "i" if mode == SIDE_BY_SIDE else word
            if mode == SIDE_BY_SIDE:
                buffers.append(vectors.source(f"p{i}", dtype, writable=aliased, doubled=doubled))
                lines += vectors.loads(f"v{i}", dtype, f"p{i}", place, doubled=doubled)
            else:
                buffers.append(texts.source(f"p{i}", dtype, writable=aliased))
                lines += texts.load(f"x{i}", dtype, f"p{i}", place)
        for lane in range(WIDTH):
            arguments = [f"{first} + {WIDTH}u * i + {lane}u"]
            for i, mode in zip(self.arrays, modes, strict=True):
                dtype, name = self._sources[i][0], f"x{i}"
                if mode == SIDE_BY_SIDE:
                    name += f"l{lane}"
                    piece = vectors.element(f"v{i}", dtype, lane)
                    lines += texts.unpacked(name, dtype, piece, f"{lane}u")
                arguments += _parts(name, dtype)
            lines.append(f"let r{lane} = element({', '.join(arguments)});")
        return buffers, lines

    def single(
        self, rank: int, slots: tuple[int, ...], start: int, *, placed: int = 0, aliased: bool
    ) -> tuple[list[StorageBuffer], list[str]]:
        """The buffers of the operands, and statements that compute ``r``, the results of element ``e``.

        Parameters
        ----------
        rank : int
            Of the walk.
        slots : tuple of int
            For each array the number of its binding.
        start : int
            The first word of the parameters' array that belongs to this: where each array starts in its binding, then
            each of the placed results, and the walk through all.
        placed : int
            How many results have places of their own in their bindings.
        aliased : bool
            Whether an operand may be in a result's buffer.
        """
        walked = len(slots) + placed
        lines = Walk.text(rank, walked, "e", start + walked, indent="").splitlines()
        arguments = ["e"]
        for n, i in enumerate(self.arrays):
            dtype = self._sources[i][0]
            place = f"({Parameters.word(start + n)} + at{n})"
            lines += texts.load(f"x{i}", dtype, f"p{slots[n]}", place)
            arguments += _parts(f"x{i}", dtype)
        lines.append(f"let r = element({', '.join(arguments)});")
        buffers = [
            texts.source(f"p{slot}", self._sources[self.arrays[slot]][0], writable=aliased)
            for slot in dict.fromkeys(slots)
        ]
        return buffers, lines


def _indented(lines: Sequence[str]) -> str:
    return "".join(f"    {line}\n" for line in lines)


def _parts(name: str, dtype: DType) -> list[str]:
    """The variables of an operand."""
    return [f"{name}_re", f"{name}_im"] if dtype.kind == "c" else [name]
