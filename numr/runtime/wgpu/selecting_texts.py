"""The kernels that count and number the elements of a mask that are true.

A mask is divided into chunks. Software adapters run an invocation along each; on GPUs a workgroup has a chunk, whose
positions it gathers in its own memory, so that neighbours write neighbours.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from numr.runtime.wgpu import texts, windows
from numr.runtime.wgpu.pipelines import KernelText
from numr.runtime.wgpu.texts import Parameters
from numr.runtime.wgpu.windows import Pattern

__all__ = ["CHUNKS", "FLAGS", "TOGETHER", "counting", "writing"]

#: Booleans that are looked at together.
FLAGS: Final = 16
#: Invocations of a workgroup, which look at so many times as many.
TOGETHER: Final = 128

CHUNKS: Final = Parameters("row", "chunks", "each", "size", "start")

#: The lowest bit of each byte of a vector of booleans says whether it is one that counts.
_VECTOR: Final = f"""\
fn flags(v: u32) -> vec4<u32> {{
    let bytes = mask_at(params.start + v);
    let low = bytes & vec4(0x7f7f7f7fu);
    let found = (((low + 0x7f7f7f7fu) | bytes) >> vec4(7u)) & vec4(0x01010101u);
    let first = v * {FLAGS}u;
    if (params.size - first >= {FLAGS}u) {{ return found; }}
    // Bytes behind the last boolean are anything.
    let counted = clamp(
        vec4<i32>(i32(params.size - first)) - vec4(0, 4, 8, 12), vec4<i32>(0), vec4<i32>(4));
    let shifts = vec4<u32>(counted) * 8u;
    return select(found & ((vec4(1u) << (shifts & vec4(31u))) - 1u), found, shifts >= vec4(32u));
}}
"""
_CHUNK: Final = f"""\
    if (i >= params.chunks) {{ return; }}
    let first = i * params.each;
    let end = min(first + params.each, (params.size + {FLAGS - 1}u) / {FLAGS}u);
"""
_TOGETHER: Final = f"""\
@compute @workgroup_size({TOGETHER})
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) t: u32) {{
    let chunk = id.x + id.y * params.row;
    if (chunk >= params.chunks) {{ return; }}
    let v = chunk * {TOGETHER}u + t;
    var found = vec4(0u);
    if (v < (params.size + {FLAGS - 1}u) / {FLAGS}u) {{ found = flags(v); }}
    let bits = countOneBits(found);
    let count = bits.x + bits.y + bits.z + bits.w;
"""


def _vectors(mask: Pattern) -> Pattern:
    """The windows of a mask that is bound as vectors of words."""
    return mask._replace(size=mask.size // 4)


@cache
def counting(mask: Pattern, counts: Pattern, *, together: bool) -> KernelText:
    """The kernel that counts what is true in each chunk."""
    vectors = _vectors(mask)
    body = (
        f"{CHUNKS.text}{windows.reader('mask', 'vec4<u32>', vectors)}{_VECTOR}"
        f"{windows.writer('counts', 'u32', counts)}"
    )
    if together:
        body += (
            f"var<workgroup> total: atomic<u32>;\n{_TOGETHER}"
            # Some drivers start it with whatever is there.
            "    if (t == 0u) { atomicStore(&total, 0u); }\n    workgroupBarrier();\n"
            "    atomicAdd(&total, count);\n    workgroupBarrier();\n"
            "    if (t == 0u) { counts_put(chunk, atomicLoad(&total)); }\n}\n"
        )
    else:
        body += (
            f"{texts.invocation()}{_CHUNK}    var sum = vec4(0u);\n"
            "    for (var v = first; v < end; v++) { sum += countOneBits(flags(v)); }\n"
            "    counts_put(i, sum.x + sum.y + sum.z + sum.w);\n}\n"
        )
    buffers = windows.buffers("mask", "read", "vec4<u32>", vectors)
    buffers += windows.buffers("counts", "read_write", "u32", counts)
    return KernelText(body, buffers, CHUNKS.size)


def _tests(found: str) -> str:
    """A statement for each boolean of a vector, which it runs if that is true; ``#`` is its number."""
    return "".join(
        f"    if ((found.{'xyzw'[word]} & {1 << 8 * byte:#x}u) != 0u) {{\n"
        f"        {found.replace('#', str(4 * word + byte))}\n        at++;\n    }}\n"
        for word in range(4)
        for byte in range(4)
    )


@cache
def writing(mask: Pattern, ends: Pattern, target: Pattern, *, together: bool) -> KernelText:
    """The kernel that writes the positions of what is true behind those of the chunks before."""
    vectors = _vectors(mask)
    body = (
        f"{CHUNKS.text}{windows.reader('mask', 'vec4<u32>', vectors)}{_VECTOR}"
        f"{windows.reader('ends', 'u32', ends)}{windows.writer('target', 'u32', target)}"
    )
    if together:
        body += (
            f"var<workgroup> sums: array<u32, {2 * TOGETHER}>;\n"
            f"var<workgroup> places: array<u32, {FLAGS * TOGETHER * 33 // 32}>;\n{_TOGETHER}"
            "    sums[t] = count;\n    workgroupBarrier();\n    var old = 0u;\n"
            f"    for (var width = 1u; width < {TOGETHER}u; width <<= 1u) {{\n"
            "        var sum = sums[old + t];\n"
            "        if (t >= width) { sum += sums[old + t - width]; }\n"
            f"        old = {TOGETHER}u - old;\n        sums[old + t] = sum;\n"
            "        workgroupBarrier();\n    }\n"
            f"    let total = sums[old + {TOGETHER - 1}u];\n"
            "    var at = sums[old + t] - count;\n"
            f"{_tests(f'places[at + (at >> 5u)] = {FLAGS}u * t + #u;')}    workgroupBarrier();\n"
            "    var before = 0u;\n    if (chunk > 0u) { before = ends_at(chunk - 1u); }\n"
            f"    for (var j = t; j < total; j += {TOGETHER}u) {{\n"
            f"        target_put(before + j, chunk * {FLAGS * TOGETHER}u + places[j + (j >> 5u)]);\n    }}\n}}\n"
        )
    else:
        body += (
            f"{texts.invocation()}{_CHUNK}"
            "    var at = 0u;\n    if (i > 0u) { at = ends_at(i - 1u); }\n"
            "    for (var v = first; v < end; v++) {\n    let found = flags(v);\n"
            "    if (all(found == vec4(0u))) { continue; }\n"
            f"{_tests(f'target_put(at, v * {FLAGS}u + #u);')}    }}\n}}\n"
        )
    buffers = windows.buffers("mask", "read", "vec4<u32>", vectors)
    buffers += windows.buffers("ends", "read", "u32", ends)
    buffers += windows.buffers("target", "read_write", "u32", target)
    return KernelText(body, buffers, CHUNKS.size)
