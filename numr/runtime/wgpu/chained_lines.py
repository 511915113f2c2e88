"""Scans in one pass along long lines whose neighbours are neighbours in memory, where workgroups begin and go on in order.

A line is divided into tiles, one for each workgroup. A workgroup loads its tile and scans it, posts what the tile joins to
(:mod:`numr.runtime.wgpu.boards`), and waits for what is before it. Tiles are in regions: the last tile of a region posts
all that is before the next one. So a workgroup waits for the tiles of its region that are before its own, each of which an
invocation fetches, and for what is before the region; and only regions, of which there are few, wait one by one.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from numr.runtime.wgpu import boards, texts
from numr.runtime.wgpu.pipelines import KernelText
from numr.runtime.wgpu.scanning_texts import LAST, Variant, tile, tile_memory, tile_stores
from numr.runtime.wgpu.texts import Parameters, Walk

if TYPE_CHECKING:
    from numr.runtime.wgpu.folding import Fold
    from numr.runtime.wgpu.launch import DeviceContext
    from numr.runtime.wgpu.loading import Loads
    from numr.runtime.wgpu.programs import Recording
    from numr.runtime.wgpu.scanning import Scan
    from numr.runtime.wgpu.windows import Windows

__all__ = ["Tile", "chain_lines", "tile_for_chain"]

#: Invocations in a workgroup, of which the largest is taken that leaves enough workgroups. As many tiles are in a
#: region: an invocation fetches one, and the last what is before.
GROUPS: Final = (1024, 512, 256)
ENOUGH: Final = 512
#: Bytes of a value for each invocation, at most.
_GROUP_BYTES: Final = 4 << 10
#: Loads of an invocation, for values of 4 bytes.
UNITS: Final = 8
#: Bytes of a value at most: of wider ones a workgroup's memory holds too few.
_VALUE_BYTES: Final = 8

_FIELDS: Final = (
    *("total", "start", "outputs", "length", "tiles", "regions", "width", "step", "out_step"),
)


class Tile(NamedTuple):
    """Invocations in a workgroup, and loads of each."""

    group: int
    units: int

    @classmethod
    def of(cls, context: DeviceContext, fold: Fold, loads: int) -> Tile | None:
        """The tile for lines with some number of loads altogether; None where the device has no room for one."""
        itemsize = max(fold.stored.itemsize, 4)
        most = min(
            context.limits["max-compute-invocations-per-workgroup"], _GROUP_BYTES // itemsize
        )
        values = context.limits["max-compute-workgroup-storage-size"] // itemsize
        found = None
        for group in GROUPS:
            # Beside the tile, three values for each invocation and a run.
            units = min(UNITS * 4 // itemsize, (values - 3 * group - 16) * 32 // (33 * group))
            if group <= most and units > 0:
                found = cls(group, units)
                if loads >= group * units * ENOUGH:
                    break
        return found


def tile_for_chain(
    context: DeviceContext, fold: Fold, scan: Scan, seen: Windows, target: Windows
) -> Tile | None:
    """How long lines, of more than one piece each, are scanned in one pass; None where they cannot be."""
    if context.in_order and fold.stored.itemsize <= _VALUE_BYTES and seen.is_one and target.is_one:
        return Tile.of(context, fold, scan.outputs * scan.length)
    return None


def chain_lines(
    work: Recording,
    fold: Fold,
    scan: Scan,
    loads: Loads,
    seen: Windows,
    target: Windows,
    shape: Tile,
) -> None:
    """Scan lines in one pass."""
    context = work.context
    group, units = shape
    variant = Variant(loads, True, scan.kept.rank, target.pattern, None, group, units)
    tiles = -(-scan.length // (units * group))
    regions = -(-tiles // group)
    words = boards.words_of(fold) * tiles + boards.run_words_of(fold) * regions
    board = boards.board_of(work, scan.outputs * words)
    text, params = text_of(variant)
    total = scan.outputs * tiles
    numbers = (
        *(total, scan.start, scan.outputs, scan.length, tiles, regions, group),
        *(*scan.steps, *scan.kept.packed()),
    )
    grid, _ = context.grid(total, 1)
    work.run(text, (seen, target, board), params.pack(*numbers), grid)


@cache
def text_of(variant: Variant) -> tuple[KernelText, Parameters]:
    """The kernel of a variant."""
    loads, fold = variant.loads, variant.loads.fold
    params = Parameters(*_FIELDS, words=3 * variant.rank)
    written, types = fold.text
    buffers, reader = loads.source()
    targets, writer = variant.destination()
    buffers += targets
    post = f"if (t == {variant.group - 1}u) {{ post_value(1u + number, params.total, {LAST}); }}"
    body = (
        f"{params.text}{texts.prelude(types)}{written}{reader}{writer}{boards.functions(fold)}"
        f"{tile_memory(variant)}var<workgroup> posted: array<Value, {variant.group}>;\n"
        "var<workgroup> regions_before: Run;\n"
        f"@compute @workgroup_size({variant.group})\n"
        "fn main(@builtin(local_invocation_index) t: u32) {\n"
        f"{boards.HEAD}{_place(variant)}{tile(variant, post)}{_before(variant)}{tile_stores(variant)}}}\n"
    )
    return KernelText(body, (*buffers, boards.BOARD), params.size), params


def _place(variant: Variant) -> str:
    """Which tile of which line the workgroup has."""
    return (
        "    let lane = t;\n    let part = 0u;\n"
        "    let o = number / params.tiles;\n"
        "    let place = number - o * params.tiles;\n"
        f"{Walk.text(variant.rank, 2, 'o')}"
        "    let base = params.start + at0;\n    let to = at1;\n"
        f"    let tile = place * {variant.units * variant.group}u;\n"
        "    let end = params.length;\n"
    )


def _before(variant: Variant) -> str:
    """Statements that find what is before the tile: ``carry`` where it is ``known``."""
    words = boards.words_of(variant.loads.fold)
    region, last = variant.group, variant.group - 1
    return f"""\
    let region = place / {region}u;
    let count = place % {region}u;
    let regions = params.outputs * params.regions;
    let region_place = 1u + {words}u * params.total + o * params.regions + region;
    if (t < count) {{ posted[t] = value_at(1u + number - count + t, params.total); }}
    if (t == {last}u && region > 0u) {{ regions_before = run_at(region_place, regions); }}
    workgroupBarrier();
    for (var width = 1u; width < count; width <<= 2u) {{
        if (t % (4u * width) == 0u && t + width < count) {{
            var x = join(posted[t], posted[t + width]);
            if (t + 2u * width < count) {{ x = join(x, posted[t + 2u * width]); }}
            if (t + 3u * width < count) {{ x = join(x, posted[t + 3u * width]); }}
            posted[t] = x;
        }}
        workgroupBarrier();
    }}
    var known = region > 0u;
    var carry: Run;
    if (known) {{ carry = regions_before; }}
    if (t == 0u && count == {last}u && region + 1u < params.regions) {{
        let x = join(posted[0], held[at({variant.units * variant.group - 1}u)]);
        var next = begun(x);
        if (known) {{ next = grown(carry, x); }}
        post_run(region_place + 1u, regions, next);
    }}
    if (count > 0u) {{
        if (known) {{ carry = grown(carry, posted[0]); }} else {{ carry = begun(posted[0]); }}
        known = true;
    }}
"""
