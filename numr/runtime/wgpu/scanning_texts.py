"""The kernels of scans."""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

from numr.runtime.wgpu import texts, vectors, windows
from numr.runtime.wgpu.folding import VALUE
from numr.runtime.wgpu.lines import WIDTH
from numr.runtime.wgpu.loading import Loads
from numr.runtime.wgpu.pipelines import KernelText, StorageBuffer
from numr.runtime.wgpu.texts import Parameters, Walk
from numr.runtime.wgpu.windows import Pattern

__all__ = ["LAST", "Variant", "text_of", "tile", "tile_memory", "tile_stores"]


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

    def destination(self) -> tuple[tuple[StorageBuffer, ...], str]:
        """The bindings that it writes to, and the function that does, where one is needed."""
        fold = self.loads.fold
        if self.loads.wide:
            return (vectors.target("target0", fold.result),), ""
        type = VALUE if self.loads.of_values else texts.memory_type(fold.result)
        buffers = windows.buffers("target", "read_write", type, self.target)
        return buffers, windows.writer("target", type, self.target)

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


#: The variable with what a tile joins to.
LAST: Final = "whole"

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
    targets, writer = variant.destination()
    buffers += targets
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


def _ends(variant: Variant, place: str = "o") -> str:
    """Where a piece starts and ends, and where its line does, whose number is ``place``."""
    # The last pieces come first: they have just been read, and may be in the cache.
    last_first = "    s = params.parts - 1u - s;\n" if variant.carried else ""
    return (
        f"{last_first}{Walk.text(variant.rank, 2, place)}"
        "    let base = params.start + at0;\n    let to = at1;\n"
        "    let first = s * params.piece;\n"
        "    let end = first + min(params.piece, params.length - first);\n"
    )


def _block(lines: list[str]) -> str:
    return "".join(f"        {line}\n" for line in lines)


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

    one = variant.load("e", "j")[0]
    many: list[str] = []
    for u in range(variant.units):
        many += [f"let j{u} = j + {u}u;", *variant.load(f"e{u}", f"j{u}")[0]]
    for u in range(variant.units):
        many += written(f"e{u}", f"j{u}")
    several = ""
    if variant.units > 1:
        several = (
            f"    while (end - j >= {variant.units}u) {{\n{_block(many)}"
            f"        j += {variant.units}u;\n    }}\n"
        )
    return (
        f"{texts.invocation(variant.group)}    if (i >= params.total) {{ return; }}\n"
        "    var s = i / params.outputs;\n    let o = i - s * params.outputs;\n"
        f"{_ends(variant)}    var j = first;\n"
        f"{''.join(f'    var run{k}: Run;{chr(10)}' for k in runs)}"
        f"    {{\n{_block(one + written('e', 'j', first=True))}    }}\n    j++;\n{several}"
        f"    for (; j < end; j++) {{\n{_block(one + written('e', 'j'))}    }}\n}}\n"
    )


def tile_memory(variant: Variant) -> str:
    """Declarations of what :func:`tile` uses; its places avoid that invocations meet in a bank of the memory."""
    return (
        f"var<workgroup> held: array<Value, {variant.units * variant.group * 33 // 32}>;\n"
        f"var<workgroup> ends: array<Value, {2 * variant.group}>;\n"
        "fn at(i: u32) -> u32 { return i + (i >> 5u); }\n"
    )


def tile(variant: Variant, post: str = "") -> str:
    """Statements by which a part of a workgroup loads a tile of a line and scans it.

    Each invocation has ``units`` loads, in which it joins what it has read: ``y0_0``, ``y0_1``, ... What comes up to the
    end of each load of the tile is then in ``held``: all loads in order, of which an invocation first joins its own
    few, and then all invocations what each has.

    Parameters
    ----------
    variant : Variant
        What the kernel is made for.
    post : str, optional
        A statement to do as soon as the last invocation knows what the tile joins to, as :data:`LAST`.
    """
    units, count = variant.units, WIDTH if variant.loads.wide else 1
    # All loads are under way before the first is used. Beyond the end the last one is loaded again, and not stored.
    lines, values = [], []
    for u in range(units):
        loads, found = variant.load(f"e{u}", f"j{u}")
        values.append(found)
        lines += [
            f"let i{u} = tile + {u}u * params.width + lane;",
            f"let inside{u} = o < params.outputs && i{u} < end;",
            f"let j{u} = min(i{u}, end - 1u);",
            *loads,
        ]
    for u, found in enumerate(values):
        sums = [f"y{u}_{k}" for k in range(count)]
        lines.append(f"var {sums[0]} = {found[0]};")
        lines += [
            f"var {b} = join({a}, {value});"
            for a, b, value in zip(sums, sums[1:], found[1:], strict=False)
        ]
        lines.append(f"held[at(part + {u}u * params.width + lane)] = {sums[-1]};")
    text = _block(lines)
    own = [f"held[at(part + {units}u * lane + {u}u)]" for u in range(units)]
    lines = ["workgroupBarrier();", f"var x0 = {own[0]};"]
    lines += [f"var x{u} = join(x{u - 1}, {own[u]});" for u in range(1, units)]
    lines += [
        f"ends[t] = x{units - 1};",
        "workgroupBarrier();",
        "var old = 0u;",
        "for (var width = 1u; width < params.width; width <<= 1u) {",
        "    var x = ends[old + t];",
        "    if (lane >= width) { x = join(ends[old + t - width], x); }",
        f"    old = {variant.group}u - old;",
        "    ends[old + t] = x;",
        "    workgroupBarrier();",
        "}",
        "if (lane > 0u) {",
        "    let x = ends[old + t - 1u];",
        *(f"    x{u} = join(x, x{u});" for u in range(units)),
        "}",
        *([f"let {LAST} = x{units - 1};", post] if post else []),
        *(f"{place} = x{u};" for u, place in enumerate(own)),
        "workgroupBarrier();",
    ]
    return text + _block(lines)


def tile_stores(variant: Variant) -> str:
    """Statements that write a tile which :func:`tile` scanned, behind ``carry`` where something is ``known``."""
    count = WIDTH if variant.loads.wide else 1
    text = ""
    for u in range(variant.units):
        sums = [f"y{u}_{k}" for k in range(count)]
        lines = [
            f"if (inside{u}) {{",
            f"    let i = part + {u}u * params.width + lane;",
            "    var some = i > part;",
            "    var x: Value;",
            "    if (some) { x = held[at(i - 1u)]; }",
            "    if (known) {",
            "        var run = carry;",
            "        if (some) { run = grown(run, x); }",
            "        x = total(run);",
            "        some = true;",
            "    }",
            "    if (some) {",
            *(f"        {name} = join(x, {name});" for name in sums),
            "    }",
            *(f"    {line}" for line in variant.stores(f"j{u}", sums)),
            "}",
        ]
        text += _block(lines)
    return text


def _together(variant: Variant) -> str:
    """A part of a workgroup scans a piece of a line, tile by tile."""
    units = variant.units
    carried = ""
    if variant.carried:
        carried = (
            "    if (s > 0u && o < params.outputs) {\n"
            "        carry = before(o, s);\n        known = true;\n    }\n"
        )
    return (
        f"{tile_memory(variant)}@compute @workgroup_size({variant.group})\n"
        "fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) t: u32) {\n"
        "    let group = id.x + id.y * params.row;\n"
        "    let lane = t % params.width;\n"
        f"    let part = (t - lane) * {units}u;\n"
        "    let block = group / params.parts;\n"
        "    var s = group - block * params.parts;\n"
        f"    let o = block * ({variant.group}u / params.width) + t / params.width;\n"
        f"{_ends(variant, 'min(o, params.outputs - 1u)')}"
        f"    var carry: Run;\n    var known = false;\n{carried}"
        f"    for (var tile = first; tile < end; tile += {units}u * params.width) {{\n"
        f"{tile(variant)}{tile_stores(variant)}"
        f"        let x = held[at(part + {units}u * params.width - 1u)];\n"
        "        if (known) { carry = grown(carry, x); } else { carry = begun(x); }\n"
        "        known = true;\n        workgroupBarrier();\n    }\n}\n"
    )
