"""Boards: memory over which the workgroups of a kernel tell each other what their elements join to.

A workgroup takes the next number in the order in which workgroups begin, and waits only for those that began before it,
where such a workgroup goes on (``DeviceContext.in_order``). A board is one array of atomic words, which start as words of
ones: no word that is posted is that. WebGPU does not promise that other memory is seen in the order in which it was
written, so the words are all that is passed on. Whoever waits joins what was posted in an order that does not depend on
when it was there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from numr.runtime.wgpu import texts
from numr.runtime.wgpu.folding import VALUE
from numr.runtime.wgpu.pipelines import KernelText, StorageBuffer
from numr.runtime.wgpu.texts import Parameters
from numr.runtime.wgpu.windows import Windows

if TYPE_CHECKING:
    from numr.codegen.expr import Scalar
    from numr.runtime.wgpu.folding import Fold
    from numr.runtime.wgpu.programs import Recording

__all__ = ["BOARD", "HEAD", "board_of", "functions", "run_words_of", "words_of"]

#: The buffer.
BOARD: Final = StorageBuffer("board", "read_write", "array<atomic<u32>>")

#: The first statements of a kernel that has ``total`` workgroups at least, the rest of which have nothing to do.
HEAD: Final = (
    "    if (t == 0u) { number = atomicAdd(&board[0], 1u) + 1u; }\n"
    "    workgroupBarrier();\n"
    "    if (number >= params.total) { return; }\n"
)

_FILL: Final = Parameters("row", "count")
_FILLING: Final = KernelText(
    f"{_FILL.text}{texts.invocation()}"
    "    if (i < params.count) { board[i] = vec4(0xffffffffu); }\n}\n",
    (StorageBuffer("board", "read_write", "array<vec4<u32>>"),),
    _FILL.size,
)


def board_of(work: Recording, words: int) -> Windows:
    """A new board: the word that counts workgroups, and as many others."""
    context = work.context
    board = work.empty((-(-(1 + words) // 4) * 4,), np.dtype(np.uint32))
    bound = Windows.of(context, board, "scan")
    groups, row = context.grid(board.size // 4)
    work.run(_FILLING, (bound,), _FILL.pack(row, board.size // 4), groups)
    return bound


def words_of(fold: Fold) -> int:
    """Words on the board for a value."""
    return sum(map(_words, fold.types))


def run_words_of(fold: Fold) -> int:
    """Words on the board for a run."""
    return sum(map(_words, fold.run_types))


def functions(fold: Fold) -> str:
    """WGSL of ``number``, ``post_value``, ``value_at``, ``post_run`` and ``run_at``."""
    return (
        "var<workgroup> number: u32;\n"
        "fn canonical(w: u32) -> u32 { return select(w, 0x7fc00000u, w == 0xffffffffu); }\n"
        + _posting("value", VALUE, fold.types)
        + _posting("run", "Run", fold.run_types)
    )


def _words(type: Scalar) -> int:
    if type.name == "f32":
        return 1
    return 2 if type.bits == 32 else 4


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


def _posting(name: str, type: str, parts: tuple[Scalar, ...]) -> str:
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
