"""The texts of pointwise kernels: formulas, in a kernel for neighbouring elements and in one for any strides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

from numr.dtypes import DType
from numr.runtime.wgpu import grouping, texts, vectors
from numr.runtime.wgpu.formulas import Code, Formulas
from numr.runtime.wgpu.pipelines import KernelText, StorageBuffer
from numr.runtime.wgpu.texts import Parameters

__all__ = ["Prepared", "Texts"]


class Prepared(NamedTuple):
    """A text, and what packs its parameters: zero, count, row, first, the scalars, and what the kernel takes besides."""

    text: KernelText
    pack: Callable[..., bytes]


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
        return Code(self._sources, self._results, self._formulas)

    @property
    def size(self) -> int:
        """Number of operations in the formulas."""
        return self._code.size

    def _prepared(
        self, words: int, buffers: Sequence[StorageBuffer], functions: str, body: str
    ) -> Prepared:
        """The kernel that consists of functions and the body of the main function."""
        code = self._code
        params = Parameters("count", "row", "first", words=code.words + words)
        text = f"{params.text}{texts.prelude(code.types)}{code.text}{functions}{texts.invocation()}{body}}}\n"
        packer = params.packer(f"{code.formats}{words}I")
        return Prepared(KernelText(text, tuple(buffers), params.size), packer.pack)

    def grouped(self, modes: str, rank: int, *, aliased: bool, doubled: bool = False) -> Prepared:
        """The kernel for four neighbouring elements of results in C order; it writes whole pieces.

        Its own parameters are the tail of the grouping.

        Parameters
        ----------
        modes, rank
            As of :class:`numr.runtime.wgpu.grouping.Grouping`.
        aliased : bool
            Whether an operand may be in a result's buffer.
        doubled : bool
            Whether memory is read and written by words of 64 bits; see :mod:`numr.runtime.wgpu.vectors`.
        """
        key = (modes, rank, aliased, doubled)
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = self._make_grouped(modes, rank, aliased, doubled)
        return found

    def _make_grouped(self, modes: str, rank: int, aliased: bool, doubled: bool) -> Prepared:
        code = self._code
        buffers, lines = code.group(
            modes, rank, code.words, "params.first", aliased=aliased, doubled=doubled
        )
        made = [code.picked(f"r{lane}") for lane in range(vectors.WIDTH)]
        for k, dtype in enumerate(self._results):
            own = [values[k] for values in made]
            lines += vectors.stores(dtype, f"out{k}", "i", own, doubled=doubled)
            buffers.append(vectors.target(f"out{k}", dtype, doubled=doubled))
        body = f"    if ({vectors.WIDTH}u * i >= params.count) {{ return; }}\n"
        body += "".join(f"    {line}\n" for line in lines)
        functions = vectors.DOUBLES if doubled else ""
        return self._prepared(grouping.words_of(modes, rank), buffers, functions, body)

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
        code, number, placed = self._code, len(slots), fresh.count(False)
        buffers, lines = code.single(rank, slots, code.words, placed=placed, aliased=aliased)
        for k, value in enumerate(code.picked("r")):
            buffers.append(texts.target(f"out{k}", self._results[k]))
            if not fresh[k]:
                start = Parameters.word(code.words + number)
                lines.append(f"out{k}[{start} + at{number}] = {value};")
                number += 1
        body = "".join(f"    {line}\n" for line in lines)
        function = (
            f"fn at(k: u32) -> {code.type} {{\n    let e = params.first + k;\n"
            f"{body}    return r;\n}}\n"
        )
        return self._prepared(number + rank * (1 + number), buffers, function, self._write(fresh))

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
