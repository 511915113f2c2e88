"""The kernels of reductions."""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

from numr.dtypes import DType
from numr.runtime.wgpu import texts, vectors, windows
from numr.runtime.wgpu.epilogues import Epilogue
from numr.runtime.wgpu.folding import VALUE
from numr.runtime.wgpu.lines import WIDTH
from numr.runtime.wgpu.loading import Loads
from numr.runtime.wgpu.pipelines import KernelText
from numr.runtime.wgpu.texts import WORKGROUP, Parameters, Walk
from numr.runtime.wgpu.windows import Pattern

__all__ = ["Variant", "gathered", "text_of"]


class Variant(NamedTuple):
    """What a kernel is made for; everything else arrives at run time.

    Attributes
    ----------
    loads : Loads
        What it reads.
    to_values : bool
        Whether it leaves values for another kernel.
    together : bool
        Whether invocations of a workgroup work on a line together.
    ranks : tuple of int
        Of the walks to the start of a line and along it.
    target : Pattern
        Windows of the result.
    group : int
        Invocations in a workgroup.
    unroll : int
        Loads that are under way at once.
    epilogue : Epilogue or None
        What becomes of results.
    """

    loads: Loads
    to_values: bool
    together: bool
    ranks: tuple[int, int]
    target: Pattern
    group: int
    unroll: int
    epilogue: Epilogue | None = None

    @property
    def result(self) -> DType:
        """The dtype of what is written as results."""
        return self.loads.fold.result if self.epilogue is None else self.epilogue.result


_FIELDS: Final = (
    *("row", "total", "start", "outputs", "length", "elements"),
    *("parts", "first", "span", "step", "width", "slot", "part_slot"),
)


@cache
def text_of(variant: Variant) -> tuple[KernelText, Parameters]:
    """The kernel of a variant."""
    loads, fold, (kept, reduced) = variant.loads, variant.loads.fold, variant.ranks
    walks = 2 * (kept + reduced)
    functions, types = fold.text
    words = walks + loads.words
    if variant.epilogue is not None:
        functions, more = variant.epilogue.text(functions, fold.result, words)
        types |= more
        words += variant.epilogue.words
    params = Parameters(*_FIELDS, words=words)
    buffers, reader = loads.source(walks)
    result = VALUE if variant.to_values else texts.memory_type(variant.result)
    if loads.apart and not variant.to_values:
        buffers += (vectors.target("target0", variant.result),)
        writer = ""
    else:
        buffers += windows.buffers("target", "read_write", result, variant.target)
        writer = windows.writer("target", result, variant.target)
    body = (
        f"{params.text}{texts.prelude(types | loads.types)}{functions}{reader}{writer}"
        "fn base(o: u32) -> u32 {\n"
        f"{Walk.text(kept, 1, 'o')}    return params.start + at0;\n}}\n"
        "fn place(j: u32) -> u32 {\n"
        f"{Walk.text(reduced, 1, 'j', 2 * kept)}    return at0;\n}}\n"
        f"{gathered(loads, variant.unroll)}"
        f"{_together(variant) if variant.together else _alone(variant)}"
    )
    return KernelText(body, buffers, params.size), params


def _joined(values: list[str]) -> str:
    """Values joined by twos."""
    while len(values) > 1:
        pairs = [f"join({a}, {b})" for a, b in zip(values[::2], values[1::2], strict=False)]
        values = pairs + values[len(pairs) * 2 :]
    return values[0]


def gathered(loads: Loads, unroll: int) -> str:
    """The function that joins each ``step``-th load of a line, from ``first`` to before ``end``."""
    in_line = loads.wide and not loads.apart
    runs = range(loads.lines)
    lines, values = loads.load("e", "(base + place(j))", "j")
    one = [f"    {line}" for line in lines]
    if in_line:
        # The last load may have elements from behind the end of the line.
        one.append(f"    var x0 = {values[0]};")
        one += [
            f"    if ({WIDTH}u * j + {k}u < params.elements) {{ x0 = join(x0, {values[k]}); }}"
            for k in range(1, WIDTH)
        ]
    else:
        one += [f"    let x{k} = {values[k]};" for k in runs]
    many: list[str] = []
    blocks: list[list[str]] = [[] for _ in runs]
    for u in range(unroll):
        lines, values = loads.load(f"e{u}", f"(base + place(j{u}))", f"j{u}")
        many += [f"        {line}" for line in (f"let j{u} = j + {u}u * step;", *lines)]
        for k in runs:
            blocks[k] += values if in_line else [values[k]]
    many += [f"        run{k} = grown(run{k}, {_joined(blocks[k])});" for k in runs]
    full = f"min(end, params.elements / {WIDTH}u)" if in_line else "end"
    totals = ", ".join(f"total(run{k})" for k in runs)
    text = [
        *(["struct Values { s0: Value, s1: Value, s2: Value, s3: Value }"] if loads.apart else []),
        f"fn gathered(base: u32, first: u32, end: u32, step: u32) -> {_type(loads)} {{",
        "    var j = first;",
        *one,
        *(f"    var run{k} = begun(x{k});" for k in runs),
        "    j += step;",
        f"    let full = {full};",
        f"    while (j < full && full - j > {unroll - 1}u * step) {{",
        *many,
        f"        j += {unroll}u * step;",
        "    }",
        "    while (j < end) {",
        *(f"    {line}" for line in one),
        *(f"        run{k} = grown(run{k}, x{k});" for k in runs),
        "        j += step;",
        "    }",
        f"    return {f'Values({totals})' if loads.apart else totals};",
        "}",
    ]
    return "".join(f"{line}\n" for line in text)


def _type(loads: Loads) -> str:
    return "Values" if loads.apart else VALUE


_PIECE: Final = (
    "    let first = s * params.first;\n"
    "    let end = first + min(params.span, params.length - first);\n"
)


def _alone(variant: Variant) -> str:
    """Each invocation reduces a piece of a line, or the lines of all results in a word."""
    result, apart = variant.result, variant.loads.apart
    head = f"{texts.invocation(variant.group)}    if (i >= params.total) {{ return; }}\n"
    if not variant.to_values and not apart and texts.lanes(result) > 1:
        return (
            "fn result(o: u32) -> u32 { return finish(gathered(base(o), 0u, params.length, 1u)); }\n"
            f"{head}    let first = i * {texts.lanes(result)}u;\n    let count = params.outputs;\n"
            f"{texts.packed(result, 'result')}    target_put(i, packed_word);\n}}\n"
        )
    text = (
        f"{head}    let s = i / params.outputs;\n    let o = i - s * params.outputs;\n{_PIECE}"
        "    let x = gathered(base(o), first, end, params.step);\n"
    )
    if not apart:
        return f"{text}{_put(variant, 'o', 'x')}}}\n"
    if variant.to_values:
        puts = [_put(variant, f"({WIDTH}u * o + {k}u)", f"x.s{k}") for k in range(WIDTH)]
        return f"{text}{''.join(puts)}}}\n"
    bits = [f"finish(x.s{k})" for k in range(WIDTH)]
    stores = vectors.stores(result, "target0", "o", bits)
    return text + "".join(f"    {line}\n" for line in stores) + "}\n"


def _together(variant: Variant) -> str:
    """Invocations of a workgroup reduce pieces of lines."""
    return (
        f"var<workgroup> held: array<Value, {WORKGROUP}>;\n"
        f"@compute @workgroup_size({WORKGROUP})\n"
        "fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) t: u32) {\n"
        "    let group = id.x + id.y * params.row;\n"
        "    let lane = t % params.width;\n"
        "    let block = group / params.parts;\n"
        "    let s = group - block * params.parts;\n"
        f"    let o = block * ({WORKGROUP}u / params.width) + t / params.width;\n"
        f"{_PIECE}"
        "    let used = min(params.width, end - first);\n"
        "    let working = o < params.outputs && lane < used;\n"
        "    if (working) { held[t] = gathered(base(o), first + lane, end, params.width); }\n"
        "    workgroupBarrier();\n"
        "    for (var half = params.width / 2u; half > 0u; half >>= 1u) {\n"
        "        if (working && lane < half && lane + half < used) {\n"
        "            held[t] = join(held[t], held[t + half]);\n        }\n"
        "        workgroupBarrier();\n    }\n"
        "    if (lane > 0u || o >= params.outputs) { return; }\n"
        f"{_put(variant, 'o', 'held[t]')}}}\n"
    )


def _put(variant: Variant, place: str, value: str) -> str:
    if variant.to_values:
        return f"    target_put({place} * params.slot + s * params.part_slot, {value});\n"
    return f"    target_put({place}, finish({value}));\n"
