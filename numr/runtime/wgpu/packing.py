"""Elements of 8 and 16 bits, each in a word of its own, put together in words."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from numr.runtime.wgpu import texts, windows
from numr.runtime.wgpu.pipelines import KernelText
from numr.runtime.wgpu.texts import Parameters
from numr.runtime.wgpu.windows import Pattern, Windows

if TYPE_CHECKING:
    from numr.dtypes import DType
    from numr.runtime.storage import DeviceArray
    from numr.runtime.wgpu.programs import Recording

__all__ = ["pack_into"]

_PARAMS = Parameters("row", "count")


def pack_into(work: Recording, bits: DeviceArray, out: DeviceArray, function: str) -> None:
    """Pack the low bits of words into a fresh array of as many elements, both C-contiguous and not empty."""
    source, target = (Windows.of(work.context, array, function) for array in (bits, out))
    words = -(-out.size // texts.lanes(out.dtype))
    groups, row = work.context.grid(words)
    text = _text(out.dtype, source.pattern, target.pattern)
    work.run(text, (source, target), _PARAMS.pack(row, out.size), groups)


@cache
def _text(dtype: DType, source: Pattern, target: Pattern) -> KernelText:
    lanes = texts.lanes(dtype)
    body = (
        f"{_PARAMS.text}{windows.reader('source', 'u32', source)}"
        f"{windows.writer('target', 'u32', target)}"
        f"{texts.invocation()}    let first = i * {lanes}u;\n    let count = params.count;\n"
        "    if (first >= count) { return; }\n"
        f"{texts.packed(dtype, 'source_at')}    target_put(i, packed_word);\n}}\n"
    )
    buffers = windows.buffers("source", "read", "u32", source)
    buffers += windows.buffers("target", "read_write", "u32", target)
    return KernelText(body, buffers, _PARAMS.size)
