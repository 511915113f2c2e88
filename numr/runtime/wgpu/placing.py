"""Writing elements into views: kernels that move them as words and touch nothing beside them.

Elements of 8 and 16 bits share words with others, which may not be part of the view. A word of which only some
bytes are written is changed by atomic operations; all others are stored whole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from numr.layout import Layout
from numr.layout.strides import merge_axes
from numr.runtime.storage import DeviceArray
from numr.runtime.wgpu import texts
from numr.runtime.wgpu.pipelines import KernelText, StorageBuffer
from numr.runtime.wgpu.texts import Parameters, Walk

if TYPE_CHECKING:
    from numr.runtime.wgpu.launch import DeviceContext, Plan
    from numr.runtime.wgpu.records import Binding

__all__ = ["place"]

#: Plans that are kept.
_KEPT: Final = 1024


def place(context: DeviceContext, target: DeviceArray, source: DeviceArray) -> None:
    """Write the elements of an array into another.

    Where an element of the target is named more than once, the last in C order is written.

    Parameters
    ----------
    context : DeviceContext
        The device.
    target, source : DeviceArray
        Arrays of one shape and itemsize that share no memory.
    """
    if not target.size:
        return
    same = target.storage.handle == source.storage.handle
    key = (target.layout, source.layout, target.itemsize, same)
    plan = context.placements.get(key)
    if plan is not None and plan.opened is context.table.opened:
        context.run_again(plan, (target, source), plan.params)
        return
    target, source = _last(target, source)
    large = next((array for array in (target, source) if not context.fits(array)), None)
    if large is not None:
        extents = [abs(step) * (n - 1) for n, step in zip(large.shape, large.strides, strict=True)]
        axis = extents.index(max(extents))
        length = large.shape[axis]
        for start, stop in ((0, length // 2), (length // 2, length)):
            place(context, _cut(target, axis, start, stop), _cut(source, axis, start, stop))
        return
    bounds = context.bind(target, "assign"), context.bind(source, "assign")
    runs = _runs(target, source, (bounds[0].start, bounds[1].start))
    bindings = [bound.binding for bound in bounds]
    run = _run_packed if runs.width < 4 else _run_words
    if len(context.placements) >= _KEPT:
        context.placements.clear()
    context.placements[key] = run(context, runs, bindings, same)


class _Runs(NamedTuple):
    """The elements of two arrays, in units of ``width`` bytes: merged axes, steps along them and starts."""

    width: int
    lengths: list[int]
    steps: list[list[int]]
    starts: list[int]


def _runs(target: DeviceArray, source: DeviceArray, starts: Sequence[int]) -> _Runs:
    """The elements in the widest units that they can be moved in."""
    lengths, steps = merge_axes(target.shape, [target.strides, source.strides])
    if not lengths:
        lengths, steps = [1], [[1], [1]]
    size = target.itemsize
    for width in (16, 8, 4, 2):
        factor = width // size
        if factor < 2:
            break
        if (
            lengths[-1] % factor == 0
            and all(own[-1] == 1 for own in steps)
            and all(step % factor == 0 for own in steps for step in own[:-1])
            and all(start % factor == 0 for start in starts)
        ):
            lengths[-1] //= factor
            steps = [[*(step // factor for step in own[:-1]), 1] for own in steps]
            return _Runs(width, lengths, steps, [start // factor for start in starts])
    return _Runs(size, lengths, steps, list(starts))


def _run_words(
    context: DeviceContext, runs: _Runs, bindings: Sequence[Binding], aliased: bool
) -> Plan:
    walk = Walk(tuple(runs.lengths), [tuple(own) for own in runs.steps])
    text, params = _words_text(runs.width, walk.rank, aliased)
    count = math.prod(runs.lengths)
    groups, row = context.grid(count)
    numbers = (count, row, *runs.starts, *walk.packed())
    return context.run_first(text, bindings, params.pack(*numbers), groups)


@cache
def _words_text(width: int, rank: int, aliased: bool) -> tuple[KernelText, Parameters]:
    params = Parameters("count", "row", "target_start", "source_start", words=3 * rank)
    type = f"array<{texts.moved_type(width)}>"
    text = (
        f"{params.text}{texts.invocation()}"
        "    if (i >= params.count) { return; }\n"
        f"{Walk.text(rank, 2, 'i')}"
        "    target_words[params.target_start + at0] = source_words[params.source_start + at1];\n"
        "}\n"
    )
    buffers = (
        StorageBuffer("target_words", "read_write", type),
        StorageBuffer("source_words", "read_write" if aliased else "read", type),
    )
    return KernelText(text, buffers, params.size), params


def _run_packed(
    context: DeviceContext, runs: _Runs, bindings: Sequence[Binding], aliased: bool
) -> Plan:
    """Move elements that share words: one invocation for each word that a run of neighbours in the target touches."""
    lengths, (target_steps, source_steps) = runs.lengths, runs.steps
    length, source_step = 1, 1
    if target_steps[-1] == 1:
        length, source_step = lengths[-1], source_steps[-1]
        lengths, target_steps, source_steps = lengths[:-1], target_steps[:-1], source_steps[:-1]
    walk = Walk(tuple(lengths), [tuple(target_steps), tuple(source_steps)])
    text, params = _packed_text(runs.width, walk.rank, aliased)
    lanes = 4 // runs.width
    per_run = (length + lanes - 2) // lanes + 1
    count = math.prod(lengths) * per_run
    groups, row = context.grid(count)
    numbers = (count, row, length, per_run, source_step, *runs.starts)
    return context.run_first(text, bindings, params.pack(*numbers, *walk.packed()), groups)


@cache
def _packed_text(width: int, rank: int, aliased: bool) -> tuple[KernelText, Parameters]:
    fields = ("count", "row", "length", "per_run", "source_step", "target_start", "source_start")
    params = Parameters(*fields, words=3 * rank)
    lanes, bits = 4 // width, 8 * width
    ones = (1 << bits) - 1
    text = f"""{params.text}{texts.invocation()}    if (i >= params.count) {{ return; }}
    let run = i / params.per_run;
{Walk.text(rank, 2, "run")}    let start = params.target_start + at0;
    let word = start / {lanes}u + (i - run * params.per_run);
    var value = 0u;
    var mask = 0u;
    for (var lane = 0u; lane < {lanes}u; lane++) {{
        // Lanes before the start become numbers beyond any length.
        let element = word * {lanes}u + lane - start;
        if (element < params.length) {{
            let place = params.source_start + at1 + element * params.source_step;
            let found = extractBits(source_words[place / {lanes}u], {bits}u * (place % {lanes}u), {bits}u);
            value |= found << ({bits}u * lane);
            mask |= {ones}u << ({bits}u * lane);
        }}
    }}
    if (mask == 0xffffffffu) {{
        atomicStore(&target_words[word], value);
    }} else if (mask != 0u) {{
        atomicAnd(&target_words[word], ~mask);
        atomicOr(&target_words[word], value);
    }}
}}
"""
    buffers = (
        StorageBuffer("target_words", "read_write", "array<atomic<u32>>"),
        StorageBuffer("source_words", "read_write" if aliased else "read"),
    )
    return KernelText(text, buffers, params.size), params


def _last(target: DeviceArray, source: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
    """The arrays without the elements that are written over, along repeated axes of the target."""
    for axis, (length, step) in enumerate(zip(target.shape, target.strides, strict=True)):
        if step == 0 and length > 1:
            target = _cut(target, axis, length - 1, length)
            source = _cut(source, axis, length - 1, length)
    return target, source


def _cut(array: DeviceArray, axis: int, start: int, stop: int) -> DeviceArray:
    """The view of a range along an axis."""
    layout = array.layout
    shape = (*layout.shape[:axis], stop - start, *layout.shape[axis + 1 :])
    offset = layout.offset + start * layout.strides[axis]
    return DeviceArray(array.storage, Layout(shape, layout.strides, offset), array.dtype)
