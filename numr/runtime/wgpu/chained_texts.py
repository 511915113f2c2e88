"""The kernels of scans in one pass along lines side by side.

What is before a piece of the lines comes from the pieces before it. A workgroup takes the next piece in order, posts what
its elements join to, and waits for what the pieces before have posted. These are in groups: what is before a group is
posted by the last piece of the group before. So a piece waits for few others, and joins what they posted in an order that
does not depend on when it was there.

All of it is on a board of atomic words, which starts as words of ones: no word that is posted is that. WebGPU does not
promise that other memory is seen in the order in which it was written, so the words are all that is passed on.

A single line is not scanned like this. All of its pieces wait for the very one before, and most of the time for its load.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from numr.runtime.wgpu import texts, vectors, windows
from numr.runtime.wgpu.folding import VALUE
from numr.runtime.wgpu.pipelines import KernelText, StorageBuffer
from numr.runtime.wgpu.scanning_texts import Variant
from numr.runtime.wgpu.texts import Parameters, Walk

if TYPE_CHECKING:
    from numr.codegen.expr import Scalar
    from numr.runtime.wgpu.folding import Fold

__all__ = ["BESIDE", "FILL", "FILLING", "GROUP", "text_of", "words_of"]

#: Pieces in a group.
GROUP: Final = 16
#: Loads side by side in a piece.
BESIDE: Final = 32

_FIELDS: Final = ("total", "start", "outputs", "length", "groups", "strips", "step", "out_step")


def _words(type: Scalar) -> int:
    if type.name == "f32":
        return 1
    return 2 if type.bits == 32 else 4


def words_of(fold: Fold) -> int:
    """Words on the board for a value."""
    return sum(map(_words, fold.types))


def _encoded(part: str, type: Scalar) -> list[str]:
    """Words for a part of a value: halves of 16 bits, or a float32 as it is, but for a NaN that is all ones."""
    if type.name == "f32":
        return [f"canonical(bitcast<u32>({part}))"]
    if type.bits == 32:
        bits = [f"bitcast<u32>({part})"]
    else:
        bits = [f"u32(bitcast<u64>({part}) & 0xfffffffflu)", f"u32(bitcast<u64>({part}) >> 32u)"]
    return [half for word in bits for half in (f"({word} & 0xffffu)", f"({word} >> 16u)")]


def _decoded(words: list[str], type: Scalar) -> str:
    if type.name == "f32":
        return f"bitcast<f32>({words[0]})"
    bits = [f"({low} | ({high} << 16u))" for low, high in zip(words[::2], words[1::2], strict=True)]
    if type.bits == 32:
        return f"bitcast<{type.name}>({bits[0]})"
    return f"bitcast<{type.name}>(u64({bits[0]}) | (u64({bits[1]}) << 32u))"


def _board(fold: Fold, name: str, type: str, parts: tuple[Scalar, ...]) -> str:
    """Functions ``post_NAME`` and ``NAME_at`` for a struct with parts ``v0``, ``v1``, ...; words lie ``step`` apart."""
    places = sum(map(_words, parts))
    encoded = [w for i, part in enumerate(parts) for w in _encoded(f"x.v{i}", part)]
    posts = "".join(
        f"    atomicStore(&board[place + {k}u * step], {word});\n" for k, word in enumerate(encoded)
    )
    loads = "".join(
        f"    var w{k} = atomicLoad(&board[place + {k}u * step]);\n" for k in range(places)
    )
    waits = "".join(
        f"    while (w{k} == 0xffffffffu) {{ w{k} = atomicLoad(&board[place + {k}u * step]); }}\n"
        for k in range(places)
    )
    words = [f"w{k}" for k in range(places)]
    decoded = []
    for part in parts:
        decoded.append(_decoded(words[: _words(part)], part))
        words = words[_words(part) :]
    return (
        f"fn post_{name}(place: u32, step: u32, x: {type}) {{\n{posts}}}\n"
        f"fn {name}_at(place: u32, step: u32) -> {type} {{\n{loads}{waits}"
        f"    return {type}({', '.join(decoded)});\n}}\n"
    )


@cache
def text_of(variant: Variant, rows: int) -> tuple[KernelText, Parameters]:
    """The kernel of a variant, of which each invocation has ``rows`` loads of a line."""
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
    buffers += (StorageBuffer("board", "read_write", "array<atomic<u32>>"),)
    board = (
        "fn canonical(w: u32) -> u32 { return select(w, 0x7fc00000u, w == 0xffffffffu); }\n"
        + _board(fold, "value", VALUE, fold.types)
        + _board(fold, "run", "Run", fold.run_types)
    )
    body = (
        f"{params.text}{texts.prelude(types)}{functions}{reader}{writer}{board}"
        "var<workgroup> number: u32;\n"
        f"{_body(variant, rows)}"
    )
    return KernelText(body, buffers, params.size), params


def _head(variant: Variant) -> str:
    """The start of the function: the workgroup's number in the order in which they begin."""
    return (
        f"@compute @workgroup_size({variant.group})\n"
        "fn main(@builtin(local_invocation_index) t: u32) {\n"
        "    if (t == 0u) { number = atomicAdd(&board[0], 1u) + 1u; }\n"
        "    workgroupBarrier();\n"
        "    if (number >= params.total) { return; }\n"
    )


def _body(variant: Variant, rows: int) -> str:
    """A workgroup scans a piece of some lines: its invocations are beside and below each other."""
    lines, fold = variant.loads.lines, variant.loads.fold
    words, run_words = words_of(fold), sum(map(_words, fold.run_types))
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
    return memory + _head(variant) + "".join(f"    {line}\n" for line in text) + "}\n"


FILL: Final = Parameters("row", "count")
FILLING: Final = KernelText(
    f"{FILL.text}{texts.invocation()}"
    "    if (i < params.count) { board[i] = vec4(0xffffffffu); }\n}\n",
    (StorageBuffer("board", "read_write", "array<vec4<u32>>"),),
    FILL.size,
)
