"""The kernels of scans in one pass along lines side by side.

What is before a piece of the lines comes from the pieces before it. A workgroup takes the next piece in order, posts what
its elements join to, and waits for what the pieces before have posted (:mod:`numr.runtime.wgpu.boards`). These are in
groups: what is before a group is posted by the last piece of the group before. So a piece waits for few others.

Long single lines have more pieces, one after the other: see :mod:`numr.runtime.wgpu.chained_lines`.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from numr.runtime.wgpu import boards, texts
from numr.runtime.wgpu.pipelines import KernelText
from numr.runtime.wgpu.scanning_texts import Variant
from numr.runtime.wgpu.texts import Parameters, Walk

__all__ = ["BESIDE", "GROUP", "text_of"]

#: Pieces in a group.
GROUP: Final = 16
#: Loads side by side in a piece.
BESIDE: Final = 32

_FIELDS: Final = ("total", "start", "outputs", "length", "groups", "strips", "step", "out_step")


@cache
def text_of(variant: Variant, rows: int) -> tuple[KernelText, Parameters]:
    """The kernel of a variant, of which each invocation has ``rows`` loads of a line."""
    loads, fold = variant.loads, variant.loads.fold
    params = Parameters(*_FIELDS, words=3 * variant.rank)
    functions, types = fold.text
    buffers, reader = loads.source()
    targets, writer = variant.destination()
    buffers += targets
    buffers += (boards.BOARD,)
    body = (
        f"{params.text}{texts.prelude(types)}{functions}{reader}{writer}"
        f"{boards.functions(fold)}{_body(variant, rows)}"
    )
    return KernelText(body, buffers, params.size), params


def _body(variant: Variant, rows: int) -> str:
    """A workgroup scans a piece of some lines: its invocations are beside and below each other."""
    lines, fold = variant.loads.lines, variant.loads.fold
    words, run_words = boards.words_of(fold), boards.run_words_of(fold)
    runs, beside, below = range(lines), BESIDE, variant.group // BESIDE
    values = [f"held[{k * variant.group}u + t]" for k in runs]
    text: list[str] = [
        "let s = number / params.strips;",
        f"let near = t % {beside}u;",
        f"let far = t / {beside}u;",
        f"let o = (number - s * params.strips) * {beside}u + near;",
        *Walk.text(variant.rank, 2, "min(o, params.outputs - 1u)", indent="").splitlines(),
        "let base = params.start + at0;",
        "let to = at1;",
        f"let first = s * {rows * below}u + far * {rows}u;",
        "let last = params.length - 1u;",
    ]
    found: list[list[str]] = []
    for r in range(rows):
        load, each = variant.load(f"e{r}", f"j{r}")
        text += [f"let j{r} = min(first + {r}u, last);", *load]
        found.append(each)
    for k in runs:
        text.append(f"var x{k} = {found[0][k]};")
        text += [f"x{k} = join(x{k}, {found[r][k]});" for r in range(1, rows)]
        text.append(f"{values[k]} = x{k};")
    text += [
        "workgroupBarrier();",
        "// What is above in the piece, and all of it.",
        *(f"var above{k}: Value;" for k in runs),
        "for (var q = 0u; q < far; q++) {",
        *(f"    let v{k} = held[{k * variant.group}u + q * {beside}u + near];" for k in runs),
        *(
            f"    if (q == 0u) {{ above{k} = v{k}; }} else {{ above{k} = join(above{k}, v{k}); }}"
            for k in runs
        ),
        "}",
        f"let slot = number * {beside}u + near;",
        f"let slots = params.total * {beside}u;",
        f"if (far == {below - 1}u) {{",
        *(f"    x{k} = join(above{k}, x{k});" for k in runs),
        *(f"    post_value(1u + {words * k}u * slots + slot, slots, x{k});" for k in runs),
        *(f"    wholes[{k * beside}u + near] = x{k};" for k in runs),
        "}",
        "// What the pieces above in the group have posted.",
        f"let others = s % {GROUP}u;",
        f"let group = s / {GROUP}u;",
        f"let strip = {beside}u * params.strips;",
        *(f"var v{k}: Value;" for k in runs),
        f"for (var q = far; q < others; q += {below}u) {{",
        "    let place = 1u + slot - (others - q) * strip;",
        *(f"    let w{k} = value_at(place + {words * k}u * slots, slots);" for k in runs),
        *(
            f"    if (q == far) {{ v{k} = w{k}; }} else {{ v{k} = join(v{k}, w{k}); }}"
            for k in runs
        ),
        "}",
        *(f"posted[{k * variant.group}u + t] = v{k};" for k in runs),
        "workgroupBarrier();",
        "if (far == 0u) {",
        f"    let runs = 1u + {words * lines}u * slots + near + (number - s * params.strips) * {beside}u;",
        "    let run_slots = params.groups * strip;",
        f"    let parts = min(others, {below}u);",
        *(
            f"    for (var q = 1u; q < parts; q++) {{ v{k} = join(v{k}, posted[{k * variant.group}u + q * {beside}u + near]); }}"
            for k in runs
        ),
        *(f"    var run{k}: Run;" for k in runs),
        "    if (group > 0u) {",
        *(
            f"        run{k} = run_at(runs + {run_words * k}u * run_slots + group * strip, run_slots);"
            for k in runs
        ),
        *(f"        if (others > 0u) {{ run{k} = grown(run{k}, v{k}); }}" for k in runs),
        "    } else if (others > 0u) {",
        *(f"        run{k} = begun(v{k});" for k in runs),
        "    }",
        f"    if (others == {GROUP - 1}u && group + 1u < params.groups) {{",
        *(
            f"        post_run(runs + {run_words * k}u * run_slots + (group + 1u) * strip, run_slots, "
            f"grown(run{k}, wholes[{k * beside}u + near]));"
            for k in runs
        ),
        "    }",
        *(f"    before[{k * beside}u + near] = run{k};" for k in runs),
        "}",
        "workgroupBarrier();",
        "if (o >= params.outputs) { return; }",
        *(f"var run{k} = before[{k * beside}u + near];" for k in runs),
        "var known = s > 0u;",
        "if (far > 0u) {",
        *(
            f"    if (known) {{ run{k} = grown(run{k}, above{k}); }} else {{ run{k} = begun(above{k}); }}"
            for k in runs
        ),
        "    known = true;",
        "}",
    ]
    for r in range(rows):
        totals = [f"y{r}_{k}" for k in runs]
        for k in runs:
            grown = f"run{k} = grown(run{k}, {found[r][k]});"
            if r == 0:
                grown = f"if (known) {{ {grown} }} else {{ run{k} = begun({found[r][k]}); }}"
            text += [grown, f"let {totals[k]} = total(run{k});"]
        text += [f"if (first + {r}u <= last) {{", *variant.stores(f"j{r}", totals), "}"]
    memory = (
        f"var<workgroup> held: array<Value, {lines * variant.group}>;\n"
        f"var<workgroup> posted: array<Value, {lines * variant.group}>;\n"
        f"var<workgroup> wholes: array<Value, {lines * beside}>;\n"
        f"var<workgroup> before: array<Run, {lines * beside}>;\n"
    )
    head = (
        f"@compute @workgroup_size({variant.group})\n"
        "fn main(@builtin(local_invocation_index) t: u32) {\n"
    )
    return memory + head + boards.HEAD + "".join(f"    {line}\n" for line in text) + "}\n"
