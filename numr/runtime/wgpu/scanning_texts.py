"""The kernels of scans."""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

from numr.runtime.wgpu import texts, vectors, windows
from numr.runtime.wgpu.folding import VALUE
from numr.runtime.wgpu.lines import WIDTH
from numr.runtime.wgpu.loading import Loads
from numr.runtime.wgpu.pipelines import KernelText
from numr.runtime.wgpu.texts import WORKGROUP, Parameters, Walk
from numr.runtime.wgpu.windows import Pattern

__all__ = ["Variant", "text_of"]


class Variant(NamedTuple):
    """What a kernel is made for; everything else arrives at run time.

    Attributes
    ----------
    loads : Loads
        What it reads; it writes as much at once.
    together : bool
        Whether invocations of a workgroup work on a line together.
    rank : int
        Of the walk to the start of a line.
    target : Pattern
        Windows of the result.
    carried : Pattern or None
        Windows of the values at the ends of pieces; None if lines are not divided.
    group : int
        Invocations in a workgroup.
    units : int
        Loads that are under way at once, in a workgroup of each tile.
    """

    loads: Loads
    together: bool
    rank: int
    target: Pattern
    carried: Pattern | None
    group: int
    units: int

    def load(self, name: str, position: str) -> tuple[list[str], list[str]]:
        """Statements that load from the line at ``base``, and the values."""
        return self.loads.load(name, f"(base + {position} * params.step)", position)

    def stores(self, position: str, values: list[str]) -> list[str]:
        """Statements that write to the line at ``to``."""
        place = f"(to + {position} * params.out_step)"
        if self.loads.of_values:
            return [f"target_put({place}, {values[0]});"]
        bits = [f"finish({value})" for value in values]
        if self.loads.wide:
            return vectors.stores(self.loads.fold.result, "target0", place, bits)
        return [f"target_put({place}, {bits[0]});"]


_FIELDS: Final = (
    *("row", "total", "start", "outputs", "length", "parts", "piece"),
    *("width", "step", "out_step", "slot", "part_slot"),
)


@cache
def text_of(variant: Variant) -> tuple[KernelText, Parameters]:
    """The kernel of a variant."""
    loads, fold = variant.loads, variant.loads.fold
    params = Parameters(*_FIELDS, words=3 * variant.rank)
    functions, types = fold.text
    buffers, reader = loads.source()
    if loads.wide:
        buffers += (vectors.target("target0", fold.result),)
        writer = ""
    else:
        type = VALUE if loads.of_values else texts.memory_type(fold.result)
        buffers += windows.buffers("target", "read_write", type, variant.target)
        writer = windows.writer("target", type, variant.target)
    carry = ""
    if variant.carried:
        buffers += windows.buffers("carried", "read", VALUE, variant.carried)
        carry = windows.reader("carried", VALUE, variant.carried) + (
            "fn before(o: u32, s: u32) -> Run {\n"
            "    return begun(carried_at(o * params.slot + (s - 1u) * params.part_slot));\n}\n"
        )
    body = (
        f"{params.text}{texts.prelude(types)}{functions}{reader}{writer}{carry}"
        f"{_together(variant) if variant.together else _alone(variant)}"
    )
    return KernelText(body, buffers, params.size), params


def _ends(variant: Variant) -> str:
    """Where a piece starts and ends, and where its line does."""
    # The last pieces come first: they have just been read, and may be in the cache.
    last_first = "    s = params.parts - 1u - s;\n" if variant.carried else ""
    return (
        f"{last_first}{Walk.text(variant.rank, 2, 'o')}"
        "    let base = params.start + at0;\n    let to = at1;\n"
        "    let first = s * params.piece;\n"
        "    let end = first + min(params.piece, params.length - first);\n"
    )


def _alone(variant: Variant) -> str:
    """Each invocation scans a piece of a line, or of four lines side by side."""
    runs = range(variant.loads.lines)

    def written(name: str, position: str, first: bool = False) -> list[str]:
        """What is done with what was loaded from the position, at the start of a piece or later."""
        values = variant.load(name, position)[1]
        lines, totals = [], []
        for k, value in enumerate(values):
            run = f"run{k if variant.loads.apart else 0}"
            if first and (variant.loads.apart or k == 0):
                lines.append(f"{run} = begun({value});")
                if variant.carried:
                    line = f"{WIDTH}u * o + {k}u" if variant.loads.apart else "o"
                    lines.append(f"if (s > 0u) {{ {run} = grown(before({line}, s), {value}); }}")
            else:
                lines.append(f"{run} = grown({run}, {value});")
            totals.append(f"{name}_y{k}")
            lines.append(f"let {totals[-1]} = total({run});")
        return lines + variant.stores(position, totals)

    def block(lines: list[str]) -> str:
        return "".join(f"        {line}\n" for line in lines)

    one = variant.load("e", "j")[0]
    many: list[str] = []
    for u in range(variant.units):
        many += [f"let j{u} = j + {u}u;", *variant.load(f"e{u}", f"j{u}")[0]]
    for u in range(variant.units):
        many += written(f"e{u}", f"j{u}")
    several = ""
    if variant.units > 1:
        several = (
            f"    while (end - j >= {variant.units}u) {{\n{block(many)}"
            f"        j += {variant.units}u;\n    }}\n"
        )
    return (
        f"{texts.invocation(variant.group)}    if (i >= params.total) {{ return; }}\n"
        "    var s = i / params.outputs;\n    let o = i - s * params.outputs;\n"
        f"{_ends(variant)}    var j = first;\n"
        f"{''.join(f'    var run{k}: Run;{chr(10)}' for k in runs)}"
        f"    {{\n{block(one + written('e', 'j', first=True))}    }}\n    j++;\n{several}"
        f"    for (; j < end; j++) {{\n{block(one + written('e', 'j'))}    }}\n}}\n"
    )


def _together(variant: Variant) -> str:
    """A part of a workgroup scans a piece of a line, tile by tile.

    Each invocation has ``units`` loads of a tile, and joins what is in one. What comes before it in the tile is then
    found by all together, for each of the loads at once.
    """
    units, count = variant.units, WIDTH if variant.loads.wide else 1
    read, scanned, written = [], [], []
    for u in range(units):
        loads, values = variant.load(f"e{u}", f"j{u}")
        sums = [f"y{u}_{k}" for k in range(count)]
        read += [
            f"        let j{u} = tile + {u}u * params.width + lane;\n",
            f"        let inside{u} = o < params.outputs && j{u} < end;\n",
            *(f"        var {name}: Value;\n" for name in sums),
            f"        if (inside{u}) {{\n",
            *(f"            {line}\n" for line in loads),
            f"            {sums[0]} = {values[0]};\n",
            *(
                f"            {b} = join({a}, {value});\n"
                for a, b, value in zip(sums, sums[1:], values[1:], strict=False)
            ),
            "        }\n",
            f"        held[{u * WORKGROUP}u + t] = {sums[-1]};\n",
        ]
        place = f"{u * WORKGROUP}u + t"
        scanned += [
            f"            var x{u} = held[old + {place}];\n",
            f"            if (lane >= width) {{ x{u} = join(held[old + {place} - width], x{u}); }}\n",
            f"            held[next + {place}] = x{u};\n",
        ]
        written += [
            f"        let end{u} = held[old + {place} + params.width - 1u - lane];\n",
            f"        if (inside{u}) {{\n",
            "            var some = lane > 0u;\n",
            "            var x: Value;\n",
            f"            if (some) {{ x = held[old + {place} - 1u]; }}\n",
            "            if (known) {\n",
            "                var run = carry;\n",
            "                if (some) { run = grown(run, x); }\n",
            "                x = total(run);\n",
            "                some = true;\n",
            "            }\n",
            "            if (some) {\n",
            *(f"                {name} = join(x, {name});\n" for name in sums),
            "            }\n",
            *(f"            {line}\n" for line in variant.stores(f"j{u}", sums)),
            "        }\n",
            f"        if (known) {{ carry = grown(carry, end{u}); }} else {{ carry = begun(end{u}); }}\n",
            "        known = true;\n",
        ]
    half = units * WORKGROUP
    carried = ""
    if variant.carried:
        carried = (
            "    if (s > 0u && o < params.outputs) {\n"
            "        carry = before(o, s);\n        known = true;\n    }\n"
        )
    return (
        f"var<workgroup> held: array<Value, {2 * half}>;\n"
        f"@compute @workgroup_size({WORKGROUP})\n"
        "fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) t: u32) {\n"
        "    let group = id.x + id.y * params.row;\n"
        "    let lane = t % params.width;\n"
        "    let block = group / params.parts;\n"
        "    var s = group - block * params.parts;\n"
        f"    let o = block * ({WORKGROUP}u / params.width) + t / params.width;\n"
        f"{_ends(variant)}"
        f"    var carry: Run;\n    var known = false;\n{carried}"
        f"    for (var tile = first; tile < end; tile += {units}u * params.width) {{\n"
        f"{''.join(read)}        workgroupBarrier();\n"
        "        var old = 0u;\n"
        "        for (var width = 1u; width < params.width; width <<= 1u) {\n"
        f"            let next = {half}u - old;\n"
        f"{''.join(scanned)}            old = next;\n            workgroupBarrier();\n        }}\n"
        f"{''.join(written)}        workgroupBarrier();\n    }}\n}}\n"
    )
