"""The kernels that find elements which are not zero, and that collect the elements at given positions.

What is not zero becomes a mask of packed booleans. The mask is divided into chunks; their counts are scanned, and the
positions of each chunk are written behind those of the chunks before. Positions are those of the mask in C order.
Elements are moved as words.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from numr import dtypes as dt
from numr.codegen import expr as ex
from numr.codegen import wgsl
from numr.codegen.elementwise import scalar_of
from numr.ir.ops import Reduction
from numr.layout import Layout
from numr.runtime.storage import DeviceArray
from numr.runtime.wgpu import texts, windows
from numr.runtime.wgpu.folding import fold_of
from numr.runtime.wgpu.loading import Loads
from numr.runtime.wgpu.pipelines import KernelText
from numr.runtime.wgpu.programs import Programs, Recording
from numr.runtime.wgpu.reducing import reduce_into
from numr.runtime.wgpu.scanning import scan_into
from numr.runtime.wgpu.selecting_texts import CHUNKS, FLAGS, TOGETHER, counting, writing
from numr.runtime.wgpu.texts import Parameters, Walk
from numr.runtime.wgpu.windows import Pattern, Windows

if TYPE_CHECKING:
    from numr.dtypes import DType
    from numr.runtime.wgpu.launch import DeviceContext

__all__ = ["collected", "indices_of", "positions_of"]

#: Chunks that keep a software adapter busy, the smallest that are worth it, and the largest for its loops.
_SOFTWARE_CHUNKS: Final = 256
_SMALLEST_CHUNK: Final = 4
_LARGEST_CHUNK: Final = 1 << 14

_UINT32: Final = np.dtype(np.uint32)


def positions_of(
    context: DeviceContext, programs: Programs, array: DeviceArray, function: str
) -> DeviceArray | None:
    """The positions of all elements that are not zero, as uint32 in ascending order; None if there are none."""
    if not array.size:
        return None
    each = TOGETHER
    if context.is_cpu:
        each = max(-(-array.size // (FLAGS * _SOFTWARE_CHUNKS)), _SMALLEST_CHUNK)
        each = min(each, _LARGEST_CHUNK)

    def counted(work: Recording) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
        mask = _mask(work, array, function)
        return mask, *_ends(work, mask, each, function)

    mask, ends, total = programs.run((function, array.dtype), array, counted)
    host: Any = np.empty(1, np.uint32)
    context.runtime.copy_from_device(total.storage.handle, host, context.device)
    count = int(host[0])
    if not count:
        return None
    positions = context.empty((count,), _UINT32)
    seen, before, target = (Windows.of(context, x, function) for x in (mask, ends, positions))
    groups, numbers = _chunks(context, mask, seen, each)
    patterns = seen.pattern, before.pattern, target.pattern
    text = writing(*patterns, together=not context.is_cpu)
    bindings = [*seen.bindings, *before.bindings, *target.bindings]
    context.run(text, bindings, CHUNKS.pack(*numbers), groups)
    return positions


def _chunks(
    context: DeviceContext, mask: DeviceArray, seen: Windows, each: int
) -> tuple[tuple[int, int, int], tuple[int, ...]]:
    """Workgroups for the chunks of a mask, and the numbers that their kernels take."""
    chunks = -(-mask.size // (FLAGS * each))
    groups, row = context.grid(chunks, texts.WORKGROUP if context.is_cpu else 1)
    return groups, (row, chunks, each, mask.size, seen.start // FLAGS)


def _ends(
    work: Recording, mask: DeviceArray, each: int, function: str
) -> tuple[DeviceArray, DeviceArray]:
    """How many booleans are true up to the end of each chunk, and in all."""
    context = work.context
    seen = Windows.of(context, mask, function)
    groups, numbers = _chunks(context, mask, seen, each)
    chunks = numbers[1]
    counts, ends = (work.empty((chunks,), _UINT32) for _ in range(2))
    counted = Windows.of(context, counts, function)
    text = counting(seen.pattern, counted.pattern, together=not context.is_cpu)
    work.run(text, (seen, counted), CHUNKS.pack(*numbers), groups)
    scan_into(work, fold_of(Reduction.SUM, _UINT32, _UINT32), counts, 0, ends)
    if chunks == 1:
        return ends, ends
    # The host reads from the start of a buffer.
    total = work.empty((1,), _UINT32)
    last = DeviceArray(ends.storage, Layout((1,), (1,), chunks - 1), _UINT32)
    reduce_into(work, fold_of(Reduction.SUM, _UINT32, _UINT32), last, (0,), total)
    return ends, total


def _mask(work: Recording, array: DeviceArray, function: str) -> DeviceArray:
    """A C-contiguous boolean array, which starts with a whole vector, of what is not zero."""
    context = work.context
    seen = Windows.of(context, array, function)
    if array.dtype == dt.bool_ and array.layout.is_contiguous and seen.start % FLAGS == 0:
        return array
    mask = work.empty(array.shape, dt.bool_)
    target = Windows.of(context, mask, function)
    walk = Walk(array.shape, [array.strides])
    groups, row = context.grid(-(-array.size // 4))
    text, params = _testing(array.dtype, walk.rank, seen.pattern, target.pattern)
    numbers = (row, array.size, seen.start, *walk.packed())
    work.run(text, (seen, target), params.pack(*numbers), groups)
    return mask


@cache
def _testing(
    dtype: DType, rank: int, source: Pattern, target: Pattern
) -> tuple[KernelText, Parameters]:
    params = Parameters("row", "count", "start", words=2 * rank)
    fold = fold_of(Reduction.ANY, dtype, dt.bool_)
    functions, types = fold.text
    loads = Loads(fold, False, False, False, source)
    buffers, reader = loads.source()
    lines, values = loads.load("e", "(params.start + at0)", "0u")
    body = (
        f"{params.text}{texts.prelude(types)}{functions}{reader}"
        f"{windows.writer('target', 'u32', target)}"
        f"fn element(j: u32) -> u32 {{\n{Walk.text(rank, 1, 'j')}"
        f"{''.join(f'    {line}{chr(10)}' for line in lines)}    return finish({values[0]});\n}}\n"
        f"{texts.invocation()}    let first = i * 4u;\n    let count = params.count;\n"
        "    if (first >= count) { return; }\n"
        f"{texts.packed(dt.bool_, 'element')}    target_put(i, packed_word);\n}}\n"
    )
    buffers += windows.buffers("target", "read_write", "u32", target)
    return KernelText(body, buffers, params.size), params


def indices_of(
    context: DeviceContext, positions: DeviceArray, shape: tuple[int, ...], dtype: DType
) -> tuple[DeviceArray, ...]:
    """The index along each axis of positions in an array of a shape."""
    if len(shape) == 1 and dtype == np.dtype(np.int32):
        return (DeviceArray(positions.storage, positions.layout, dtype),)
    source = Windows.of(context, positions, "nonzero")
    groups, row = context.grid(positions.size)
    result = []
    for axis, length in enumerate(shape):
        out = context.empty(positions.shape, dtype)
        target = Windows.of(context, out, "nonzero")
        text = _unravelling(dtype, source.pattern, target.pattern)
        params = _AXIS.pack(row, positions.size, math.prod(shape[axis + 1 :]), length)
        context.run(text, [*source.bindings, *target.bindings], params, groups)
        result.append(out)
    return tuple(result)


_AXIS: Final = Parameters("row", "count", "step", "length")


@cache
def _unravelling(dtype: DType, source: Pattern, target: Pattern) -> KernelText:
    type = texts.memory_type(dtype)
    code = wgsl.code([ex.cast(ex.var("index", ex.U32), scalar_of(dtype))])
    body = (
        f"{_AXIS.text}{windows.reader('source', 'u32', source)}"
        f"{windows.writer('target', type, target)}"
        f"{texts.invocation()}    if (i >= params.count) {{ return; }}\n"
        "    let index = source_at(i) / params.step % params.length;\n"
        f"{code.statements}    target_put(i, {code.results[0]});\n}}\n"
    )
    buffers = windows.buffers("source", "read", "u32", source)
    buffers += windows.buffers("target", "read_write", type, target)
    return KernelText(body, buffers, _AXIS.size)


def collected(
    context: DeviceContext, array: DeviceArray, positions: DeviceArray, axes: int, out: DeviceArray
) -> None:
    """Copy the elements at positions in the leading axes of an array into a fresh array, which is not empty.

    Its shape is the number of positions, followed by the axes that are left.
    """
    seen, found, target = (Windows.of(context, x, "compress") for x in (array, positions, out))
    leading, inner = (
        Walk(array.shape[part], [array.strides[part]]) for part in (slice(axes), slice(axes, None))
    )
    variant = (array.itemsize, leading.rank, inner.rank)
    patterns = [x.pattern for x in (seen, found, target)]
    text, params = _collecting(*variant, *patterns)
    each = out.size // positions.size
    groups, row = context.grid(-(-out.size // texts.lanes(array.dtype)))
    numbers = (row, out.size, each, seen.start, *leading.packed(), *inner.packed())
    bindings = [*seen.bindings, *found.bindings, *target.bindings]
    context.run(text, bindings, params.pack(*numbers), groups)


@cache
def _collecting(
    itemsize: int,
    leading: int,
    inner: int,
    source: Pattern,
    found: Pattern,
    target: Pattern,
) -> tuple[KernelText, Parameters]:
    params = Parameters("row", "count", "each", "start", words=2 * (leading + inner))
    type = texts.moved_type(itemsize)
    word = texts.word(min(itemsize, 4))
    lines = texts.unpacked("e", word, f"source_at(at >> {texts.lanes(word) // 2}u)", "at")
    body = (
        f"{params.text}{windows.reader('source', type, source)}"
        f"{windows.reader('found', 'u32', found)}{windows.writer('target', type, target)}"
        f"fn outer(j: u32) -> u32 {{\n{Walk.text(leading, 1, 'j')}    return at0;\n}}\n"
        f"fn inner(j: u32) -> u32 {{\n{Walk.text(inner, 1, 'j', 2 * leading)}    return at0;\n}}\n"
        f"fn element(j: u32) -> {type} {{\n"
        "    let pick = j / params.each;\n"
        "    let at = params.start + outer(found_at(pick)) + inner(j - pick * params.each);\n"
        f"{''.join(f'    {line}{chr(10)}' for line in lines)}    return e;\n}}\n"
        f"{texts.invocation()}"
    )
    if itemsize < 4:
        body += (
            f"    let first = i * {texts.lanes(word)}u;\n    let count = params.count;\n"
            "    if (first >= count) { return; }\n"
            f"{texts.packed(word, 'element')}    target_put(i, packed_word);\n}}\n"
        )
    else:
        body += "    if (i >= params.count) { return; }\n    target_put(i, element(i));\n}\n"
    buffers = windows.buffers("source", "read", type, source)
    buffers += windows.buffers("found", "read", "u32", found)
    buffers += windows.buffers("target", "read_write", type, target)
    return KernelText(body, buffers, params.size), params
