"""The kernel of one pass of a Fourier transform.

Invocations read as many elements as the first radix says, transform them in registers, and hand them to each other
through shared memory for the next step; the last step writes to memory. A pass of a single step shares nothing.

Pass ``p`` of a transform of length ``n`` does ``n / size`` transforms of its size, called lines. With ``done`` the
product of the sizes of earlier passes, line ``l`` has the elements ``l + e * n / size``, which are turned by
``exp(-2j * pi * (l % done) * e / (done * size))`` first, and becomes the elements ``l // done * done * size + l % done
+ e * done``. The steps within a pass do the same on a smaller scale.

Backward transforms are forward ones of numbers whose real and imaginary parts are swapped.
"""

from __future__ import annotations

from functools import cache
from typing import Final, Literal, NamedTuple

from numr.dtypes import DType, real_of
from numr.runtime.wgpu import texts
from numr.runtime.wgpu.butterflies import Butterfly
from numr.runtime.wgpu.pipelines import KernelText
from numr.runtime.wgpu.texts import Parameters, Walk
from numr.runtime.wgpu.transform_plans import LARGEST_RADIX, Pass

__all__ = [
    "SWAP_AFTER_LOAD_FACTOR",
    "SWAP_AFTER_STORE_FACTOR",
    "SWAP_LOADED",
    "SWAP_STORED",
    "Input",
    "Output",
    "Variant",
    "parameters",
    "text",
]

#: Bits of the parameter ``swaps``: where real and imaginary parts change places.
SWAP_LOADED: Final = 1
SWAP_AFTER_LOAD_FACTOR: Final = 2
SWAP_STORED: Final = 4
SWAP_AFTER_STORE_FACTOR: Final = 8

#: What a pass reads: complex numbers, real ones, or half of a Hermitian array.
Input = Literal["complex", "real", "hermitian"]
#: What a pass writes: complex numbers or their real parts.
Output = Literal["complex", "real"]

_FIELDS: Final = (
    "row",  # workgroups in a row
    "count",  # lines
    "length",
    "per",  # lines in a transform: length / size
    "done",
    "turns",  # length / (done * size): what a turn of this pass is, in turns of the length
    "start",
    "stride",
    "given",  # elements that are read, where the rest is zero
    "target_start",
    "kept",  # elements that are written
    "swaps",
    "own_turns",  # where the factors of the pass, and those of the length are in the table
    "fine_turns",
    "coarse_turns",
    "shift",
)


class Variant(NamedTuple):
    """What a kernel is made for.

    Attributes
    ----------
    dtype : dtype
        Of the complex numbers.
    radices, lines : tuple of int, int
        The pass.
    rank : int
        Of the axes before the transformed one.
    input, output : str
        What is read and written.
    load_factors, store_factors : bool
        Whether elements are multiplied by those of a table when they are read, where elements from ``given`` on are
        zero, or written.
    turned : bool
        Whether there were passes before.
    coarse : bool
        Whether factors of the whole length are products of a fine and a coarse one.
    across : tuple of bool
        Whether neighbouring invocations read, and write, neighbouring lines instead of elements of one line.
    """

    dtype: DType
    radices: tuple[int, ...]
    lines: int
    rank: int
    input: Input
    output: Output
    load_factors: bool
    store_factors: bool
    turned: bool
    coarse: bool
    across: tuple[bool, bool]


@cache
def parameters(rank: int) -> Parameters:
    """Parameters of a kernel that walks through axes of that rank."""
    return Parameters(*_FIELDS, words=2 * rank)


@cache
def text(variant: Variant) -> KernelText:
    """The kernel."""
    writer = _Writer(variant)
    dtype = variant.dtype
    scalar = texts.scalar_type(dtype)
    source = real_of(dtype) if variant.input == "real" else dtype
    result = real_of(dtype) if variant.output == "real" else dtype
    buffers = [texts.source("source", source), texts.target("result", result)]
    buffers.append(texts.source("table", dtype))
    buffers += [texts.source("load_factors", dtype)] if variant.load_factors else []
    buffers += [texts.source("store_factors", dtype)] if variant.store_factors else []
    params = parameters(variant.rank)
    body = (
        f"alias number = vec2<{scalar}>;\n{params.text}"
        "fn times(a: number, b: number) -> number {\n"
        "    return number(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);\n"
        "}\n"
        f"{writer.loading()}{writer.storing()}{writer.turning()}{writer.main()}"
    )
    return KernelText(body, tuple(buffers), params.size)


class _Writer:
    """Writes the parts of a kernel."""

    def __init__(self, variant: Variant) -> None:
        self.variant = variant
        self.one = Pass(variant.radices, variant.lines)
        self.interleaved = any(variant.across)

    def loading(self) -> str:
        """The function that reads an element of a transform, whose first one is at a place."""
        variant = self.variant
        lines = ["fn load(base: u32, e: u32) -> number {"]
        if variant.load_factors:
            lines.append("if (e >= params.given) { return number(); }")
        if variant.input == "real":
            lines.append(
                f"var v = number(source[base + e * params.stride], {texts.scalar_type(variant.dtype)}());"
            )
        elif variant.input == "complex":
            lines.append("var v = source[base + e * params.stride];")
        else:
            lines += [
                "let mirror = params.given - e;",
                "var v = source[base + min(e, mirror) * params.stride];",
                "if (e > mirror) { v.y = -v.y; }",
                # Frequencies that are their own mirror images are real, whatever is there.
                f"if (e == 0u || e == mirror) {{ v.y = {texts.scalar_type(variant.dtype)}(); }}",
            ]
        lines.append(self._swap(SWAP_LOADED))
        if variant.load_factors:
            lines += ["v = times(v, load_factors[e]);", self._swap(SWAP_AFTER_LOAD_FACTOR)]
        return "\n".join([*lines, "return v;", "}\n"])

    def storing(self) -> str:
        """The function that writes an element of a transform, whose first one goes to a place."""
        variant = self.variant
        lines = ["fn store(base: u32, e: u32, value: number) {", "var v = value;"]
        lines += ["if (e >= params.kept) { return; }", self._swap(SWAP_STORED)]
        if variant.store_factors:
            lines += ["v = times(v, store_factors[e]);", self._swap(SWAP_AFTER_STORE_FACTOR)]
        lines.append(f"result[base + e] = {'v.x' if variant.output == 'real' else 'v'};")
        return "\n".join([*lines, "}\n"])

    @staticmethod
    def _swap(bit: int) -> str:
        return f"v = select(v, v.yx, (params.swaps & {bit}u) != 0u);"

    def turning(self) -> str:
        """The functions that give factors, of the pass and of the whole length."""
        coarse = "times({0}, table[params.coarse_turns + (turn >> params.shift)])"
        fine = "table[params.fine_turns + (turn & ((1u << params.shift) - 1u))]"
        whole = coarse.format(fine) if self.variant.coarse else "table[params.fine_turns + turn]"
        return (
            "fn own_factor(turn: u32) -> number { return table[params.own_turns + turn]; }\n"
            f"fn factor(turn: u32) -> number {{ return {whole}; }}\n"
        )

    def main(self) -> str:
        """The kernel's function, and what it shares."""
        one, radices = self.one, self.variant.radices
        shared = ""
        if one.buffers:
            places = one.places(self.interleaved)
            shared = f"var<workgroup> held: array<array<number, {places}>, {one.buffers}>;\n"
        code = [
            "let group = id.x + id.y * params.row;",
            f"let first = group * {one.lines}u;",
            "if (first >= params.count) { return; }",
        ]
        done = 1
        for step, radix in enumerate(radices):
            if step:
                code.append("workgroupBarrier();")
            code += self._step(step, radix, done)
            done *= radix
        return (
            f"{shared}@compute @workgroup_size({one.invocations})\n"
            "fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) t: u32) {\n"
            + "\n".join([*code, "}\n"])
        )

    def _step(self, step: int, radix: int, done: int) -> list[str]:
        """One step: the transforms of its radix in all lines of the workgroup."""
        one, variant = self.one, self.variant
        first, last = step == 0, step == len(variant.radices) - 1
        each = one.size // radix
        total = each * one.lines
        across = self.interleaved
        if first or last:
            across = variant.across[0 if first else 1]
        line, j = (f"b % {one.lines}u", f"b / {one.lines}u")
        if not across:
            line, j = (f"b / {each}u", f"b % {each}u")
        loop = f"for (var b = t; b < {total}u; b += {one.invocations}u) {{"
        code = [loop] if total > one.invocations else [f"if (t < {total}u) {{", "let b = t;"]
        code += [f"let line = {line};", f"let j = {j};"]
        if first or last:
            code += [
                "if (first + line < params.count) {",
                "let transform = (first + line) / params.per;",
                "let l = (first + line) % params.per;",
            ]
        code += self._reading(step, radix, done) if step else self._loading(radix)
        butterfly = Butterfly(texts.scalar_type(variant.dtype))
        names = butterfly.transform([f"x{i}" for i in range(radix)])
        code += butterfly.lines
        code.append(f"let to = j / {done}u * {done * radix}u + j % {done}u;")
        if last:
            code += [
                "let k = l % params.done;",
                f"let place = (l - k) * {one.size}u + k;",
                "let row = params.target_start + transform * params.kept;",
            ]
        for i, name in enumerate(names):
            at = f"to + {i * done}u"
            if last:
                code.append(f"store(row, place + ({at}) * params.done, {name});")
            else:
                code.append(f"held[{step % one.buffers}][{self._place(at)}] = {name};")
        return [*code, *(["}"] if first or last else []), "}"]

    def _loading(self, radix: int) -> list[str]:
        """Declarations of the numbers that the first step works on."""
        each = self.one.size // radix
        code = [Walk.text(self.variant.rank, 1, "transform"), "let base = params.start + at0;"]
        names = [f"x{i}" for i in range(radix)]
        elements = [f"(j + {i * each}u)" for i in range(radix)]
        loads = [f"load(base, l + {element} * params.per)" for element in elements]
        if not self.variant.turned:
            return code + [f"let {name} = {load};" for name, load in zip(names, loads, strict=True)]
        # All are read before the first is used.
        code += [f"let read{i} = {load};" for i, load in enumerate(loads)]
        code.append("let turn = l % params.done * params.turns;")
        return code + [
            f"let {name} = times(read{i}, factor(turn * {element}));"
            for i, (name, element) in enumerate(zip(names, elements, strict=True))
        ]

    def _reading(self, step: int, radix: int, done: int) -> list[str]:
        """Declarations of the numbers that a later step works on."""
        one = self.one
        each, before = one.size // radix, (step - 1) % one.buffers
        code = [f"let turn = j % {done}u * {one.size // (done * radix)}u;"]
        for i in range(radix):
            value = f"held[{before}][{self._place(f'j + {i * each}u')}]"
            if i:
                value = f"times({value}, own_factor(turn * {i}u))"
            code.append(f"let x{i} = {value};")
        return code

    def _place(self, element: str) -> str:
        """Where an element of ``line`` is in shared memory."""
        if self.interleaved:
            return f"({element}) * {self.one.lines | 1}u + line"
        row = self.one.places(interleaved=False) // self.one.lines
        return f"line * {row}u + ({element}) + (({element}) / {LARGEST_RADIX}u)"
