"""The texts of kernels that compute rows: several reductions of a row, and what comes before, between and after them.

Each reduction of a row is the function that reduces an array, on what is computed of the row where it would load that. It
reads anew each time, from the caches. What is costly to compute is held in memory of the workgroup between sweeps, where
there is room. Values of rows are variables of the invocation.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple

from numr.codegen import wgsl
from numr.codegen.elementwise import operand
from numr.codegen.expr import F16, Expr
from numr.codegen.fused import expressions
from numr.ir.rows import RowComputation
from numr.runtime.wgpu import scalars, texts, vectors
from numr.runtime.wgpu.computed import ComputedLoads, functions_of
from numr.runtime.wgpu.elementwise import express
from numr.runtime.wgpu.epilogues import assigned, variables
from numr.runtime.wgpu.formulas import ZERO, Code
from numr.runtime.wgpu.lines import WIDTH
from numr.runtime.wgpu.pipelines import KernelText, StorageBuffer
from numr.runtime.wgpu.reducing_texts import gathered
from numr.runtime.wgpu.row_parts import Part, costly, fold_at, operands_of, variable_of
from numr.runtime.wgpu.texts import WORKGROUP, Parameters
from numr.runtime.wgpu.windows import Pattern

__all__ = ["RowVariant", "row_text"]


class RowVariant(NamedTuple):
    """What a kernel is made for; everything else arrives at run time.

    Attributes
    ----------
    computation : RowComputation
        What is computed.
    wide : bool
        Whether four elements are worked on at once.
    together : bool
        Whether invocations of a workgroup work on a row together.
    modes, rank, words
        How arrays of elements are read, as of :class:`numr.runtime.wgpu.computed.ComputedLoads`, and the words of
        parameters that say where.
    group : int
        Invocations in a workgroup.
    software : bool
        Whether the adapter is a software one.
    held : int
        Loads of all rows of a workgroup for which it has room to hold values; 0 if nothing is held.
    """

    computation: RowComputation
    wide: bool
    together: bool
    modes: str | None
    rank: int
    words: int
    group: int
    software: bool
    held: int


#: Functions and types that each reduction, and what is stored, has of its own.
_OWN: Final = re.compile(
    r"(?<![.\w])(Value|Values|Run|take|join|finish|begun|grown|total|gathered|element|Results|source_at|four_at|Four)\b"
)
_FIELDS: Final = ("row", "outputs", "length", "elements", "width")


@dataclass(frozen=True)
class _Loads(ComputedLoads):
    """Loads of what a reduction takes."""

    part: Part

    def code(self, start: int) -> Code:
        return self.part.code(start)


def _indented(lines: Sequence[str], indent: str = "    ") -> str:
    return "".join(f"{indent}{line}\n" for line in lines)


@cache
def row_text(variant: RowVariant) -> tuple[KernelText, Parameters]:
    """The kernel of a variant.

    The words of its parameters are the scalars, those that say where elements are, and for each array of rows where it
    starts and its step. It binds the arrays of elements, those of rows, and the results.
    """
    return _Text(variant).made()


class _Text:
    """A text while it is written."""

    def __init__(self, variant: RowVariant) -> None:
        self.variant = variant
        self.computation = variant.computation
        self.elements, self.given, self.rows = operands_of(self.computation)
        self.scalars = sum(scalars.words_of(self.computation.dtype(i)) for i in self.given)
        self.places = self.scalars + variant.words
        self.costly = costly(self.computation) if variant.held else []
        #: Values of each element that are held.
        self.held: list[int] = []
        self.types: frozenset[str] = frozenset()
        self.buffers: tuple[StorageBuffer, ...] = ()
        self.functions = ""

    def made(self) -> tuple[KernelText, Parameters]:
        """The text, and what packs its parameters."""
        computation, variant = self.computation, self.variant
        params = Parameters(*_FIELDS, words=self.places + 2 * len(self.rows))
        body = self._given()
        for number, sweep in enumerate(computation.sweeps):
            body += self._row_values(sweep.rows)
            if self.costly:
                body += self._held(self.costly[number])
            body += "".join(map(self._reduced, sweep.reductions))
            body += self._stored(number, sweep.stores)
        targets = [v for v in computation.results if computation.per_row[v]]
        if targets:
            body += "    if (here && lane == 0u) {\n"
            for v in targets:
                dtype = computation.dtype(v)
                body += f"        out{v}[o] = {texts.stored(dtype, variables(variable_of(v), dtype))};\n"
            body += "    }\n"
        own = [v for v, per_row in enumerate(computation.per_row) if per_row]
        declared = "".join(
            f"var<private> {name}: {texts.scalar_type(computation.dtype(v))};\n"
            for v in own
            for name in variables(variable_of(v), computation.dtype(v))
        )
        buffers = [*self.buffers]
        buffers += [texts.source(f"q{v}", computation.dtype(v)) for v in self.rows]
        for v in computation.results:
            wide = variant.wide and not computation.per_row[v]
            make = vectors.target if wide else texts.target
            buffers.append(make(f"out{v}", computation.dtype(v)))
        text = (
            f"{params.text}{texts.prelude(self.types)}{declared}"
            "fn place(j: u32) -> u32 { return j; }\n"
            "var<private> origin: u32;\n"
            f"{self.functions}{self._head()}{body}}}\n"
        )
        return KernelText(text, tuple(buffers), params.size), params

    def _head(self) -> str:
        """The begin of the main function: which row, and where in it."""
        if self.variant.together:
            head = (
                f"@compute @workgroup_size({WORKGROUP})\n"
                "fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) t: u32) {\n"
                "    let lane = t % params.width;\n"
                f"    let at = (id.x + id.y * params.row) * ({WORKGROUP}u / params.width) + t / params.width;\n"
                "    let step = params.width;\n"
            )
        else:
            head = f"{texts.invocation(self.variant.group)}    let at = i;\n    let lane = 0u;\n    let step = 1u;\n"
        return (
            f"{head}    let here = at < params.outputs;\n"
            "    let o = min(at, params.outputs - 1u);\n"
            "    let base = o * params.length;\n"
            + (
                "    origin = (at - t / params.width) * params.length;\n"
                if self.variant.held
                else ""
            )
        )

    def _given(self) -> str:
        """Statements that read what is given for each row."""
        lines: list[str] = []
        place = 0
        for i in self.given:
            dtype = self.computation.dtype(i)
            words = [Parameters.word(place + k) for k in range(scalars.words_of(dtype))]
            place += len(words)
            lines += scalars.declarations(f"given{i}", dtype, words)
            lines += assigned(
                variables(variable_of(i), dtype), variables(f"given{i}", dtype), dtype
            )
        for n, i in enumerate(self.rows):
            dtype = self.computation.dtype(i)
            start, step = (Parameters.word(self.places + 2 * n + k) for k in range(2))
            lines += texts.load(f"given{i}", dtype, f"q{i}", f"({start} + o * {step})")
            lines += assigned(
                variables(variable_of(i), dtype), variables(f"given{i}", dtype), dtype
            )
            self.types |= {texts.scalar_type(dtype)}
        return _indented(lines)

    def _row_values(self, values: Sequence[int]) -> str:
        """Statements that compute values of rows from others."""
        if not values:
            return ""
        computation = self.computation
        given = [v for v, per_row in enumerate(computation.per_row) if per_row and v not in values]
        part, sources = computation.part(values, given)
        results = expressions(
            part, [operand(variable_of(v), computation.dtype(v)) for v in sources], express, ZERO
        )
        roots = [root for x in results for root in ([x] if isinstance(x, Expr) else list(x))]
        code = wgsl.code(roots)
        self.types |= code.types
        names = [name for v in values for name in variables(variable_of(v), computation.dtype(v))]
        text = "    {\n" + "".join(f"    {line}\n" for line in code.statements.splitlines())
        for name, root, made in zip(names, roots, code.results, strict=True):
            # Numbers of float16 are held as those of float32.
            value = f"f32({made})" if root.type is F16 else wgsl.barrier(root, made)
            text += f"        {name} = {value};\n"
        return f"{text}    }}\n"

    def _reduced(self, number: int) -> str:
        """Statements that reduce the row."""
        variant, computation = self.variant, self.computation
        step = computation.step(number)
        assert step is not None
        part = Part.of(computation, step.arguments, self.held)
        fold = fold_at(computation, number)
        loads = _Loads(
            fold,
            False,
            variant.wide,
            False,
            Pattern(1, 0),
            part.computation,
            variant.modes,
            variant.rank,
            part,
        )
        functions, types = fold.text
        self.types |= types | loads.types
        functions += self._elements(part)
        functions += gathered(loads, loads.at_once(software=variant.software))
        name = f"_r{number}"
        if variant.together:
            functions += f"var<workgroup> held{number}: array<Value, {WORKGROUP}>;\n"
            held = f"held{number}"
            text = (
                "    {\n        let used = min(params.width, params.length);\n"
                "        let working = here && lane < used;\n"
                f"        if (working) {{ {held}[t] = gathered(base, lane, params.length, params.width); }}\n"
                "        workgroupBarrier();\n"
                "        for (var half = params.width / 2u; half > 0u; half >>= 1u) {\n"
                "            if (working && lane < half && lane + half < used) {\n"
                f"                {held}[t] = join({held}[t], {held}[t + half]);\n            }}\n"
                "            workgroupBarrier();\n        }\n"
                f"        let bits = finish({held}[t - lane]);\n"
            )
        else:
            text = "    {\n        let bits = finish(gathered(base, 0u, params.length, 1u));\n"
        dtype = computation.dtype(number)
        lines = texts.unpacked(f"made{number}", dtype, "bits", "0u")
        lines += assigned(
            variables(variable_of(number), dtype), variables(f"made{number}", dtype), dtype
        )
        self.functions += _OWN.sub(rf"\g<0>{name}", functions)
        return _OWN.sub(rf"\g<0>{name}", text) + _indented(lines, "        ") + "    }\n"

    def _elements(self, part: Part) -> str:
        """The functions that compute elements."""
        variant = self.variant
        self.buffers, text = functions_of(
            part.code(0), variant.modes, variant.rank, self.scalars, wide=variant.wide
        )
        return text

    def _stored(self, number: int, values: Sequence[int]) -> str:
        """Statements that compute and write results for each element."""
        if not values:
            return ""
        code, made = self._made(values, f"_s{number}")
        lines = []
        for k, v in enumerate(values):
            own = [code.picked(name)[k] for name in made]
            if self.variant.wide:
                lines += vectors.stores(self.computation.dtype(v), f"out{v}", "(base + j)", own)
            else:
                lines += [f"out{v}[base + j] = {value};" for value in own]
        return self._along_row(lines, f"_s{number}")

    def _held(self, values: Sequence[int]) -> str:
        """Statements that compute values of each element and hold them."""
        room, text = self.variant.held, ""
        for v in values:
            code, made = self._made((v,), f"_h{v}")
            type = texts.memory_type(self.computation.dtype(v))
            place = "base + j - origin"
            # Side by side for invocations side by side.
            places = [f"{lane * room}u + {place}" for lane in range(len(made))]
            lines = [
                f"held{v}[{at}] = {code.picked(name)[0]};"
                for at, name in zip(places, made, strict=True)
            ]
            at = f"(e & 3u) * {room}u + (e >> 2u)" if self.variant.wide else "e"
            start = f"{WIDTH}u * origin" if self.variant.wide else "origin"
            self.functions += (
                f"var<workgroup> held{v}: array<{type}, {room * len(made)}>;\n"
                f"fn held{v}_at(i: u32) -> {type} {{\n    let e = i - {start};\n    return held{v}[{at}];\n}}\n"
            )
            text += self._along_row(lines, f"_h{v}")
        self.held += values
        return text

    def _made(self, values: Sequence[int], name: str) -> tuple[Code, list[str]]:
        """The function that computes values of elements, and the names of what it gives for each of a load."""
        part = Part.of(self.computation, values, self.held)
        code = part.code(0)
        self.types |= code.types
        self.functions += _OWN.sub(rf"\g<0>{name}", self._elements(part))
        return code, [f"made.l{lane}" for lane in range(WIDTH)] if self.variant.wide else ["made"]

    def _along_row(self, lines: Sequence[str], name: str) -> str:
        """Statements that each invocation does for its loads of a row, of which ``made`` is what is computed."""
        function = f"four_at{name}" if self.variant.wide else f"source_at{name}"
        lines = [f"let made = {function}(base + j);", *lines]
        return (
            "    if (here) {\n        for (var j = lane; j < params.length; j += step) {\n"
            f"{_indented(lines, '            ')}        }}\n    }}\n"
        )
