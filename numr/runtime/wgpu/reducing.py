"""How the work of reductions is divided.

On a GPU, neighbours in memory are read by neighbouring invocations: where they belong to one result, a part of a
workgroup joins them in its memory, where they belong to different results, each invocation works on its own. Software
adapters run every invocation from its start to its end, so that each has a long piece of a line there. What is left of
long lines, a value for each piece, is reduced in its turn. How lines are divided depends on the array's shape and
strides alone, so that results are the same in each run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from numr.layout import Layout
from numr.runtime.wgpu import texts
from numr.runtime.wgpu.epilogues import Epilogue
from numr.runtime.wgpu.lines import Lines
from numr.runtime.wgpu.loading import Elements
from numr.runtime.wgpu.reducing_texts import Variant, text_of
from numr.runtime.wgpu.texts import WORKGROUP
from numr.runtime.wgpu.windows import Windows

if TYPE_CHECKING:
    from numr.runtime.storage import DeviceArray
    from numr.runtime.wgpu.folding import Fold
    from numr.runtime.wgpu.launch import DeviceContext
    from numr.runtime.wgpu.programs import Recording

__all__ = [
    "BUSY_GROUPS",
    "BUSY_INVOCATIONS",
    "BUSY_SOFTWARE",
    "MOST_LOADS",
    "SHORT_PIECE",
    "SOFTWARE_GROUP",
    "After",
    "Division",
    "partial",
    "reduce_elements",
    "reduce_into",
]

#: Workgroups and invocations that keep a GPU busy.
BUSY_GROUPS: Final = 2048
BUSY_INVOCATIONS: Final = 1 << 18
#: Invocations that keep a software adapter busy, and the shortest pieces that are worth another dispatch.
BUSY_SOFTWARE: Final = 256
SHORT_PIECE: Final = 64
#: Invocations in a workgroup of a software adapter, which gives each thread whole workgroups.
SOFTWARE_GROUP: Final = 32
#: Loads of one invocation at most: software adapters stop an invocation after 65535 turns of its loops.
MOST_LOADS: Final = 30000
#: Loads that each invocation of a workgroup has at least when a line is divided, and those of one by itself.
_LONG_TOGETHER: Final = 16
_LONG_ALONE: Final = 32
#: Loads of each invocation that are wanted when several work on a line that is not divided.
_WANTED: Final = 8
#: Up to as many results, the values of one lie together.
_FEW_RESULTS: Final = 32


class After(NamedTuple):
    """What becomes of results: an epilogue, and the words of its scalars."""

    epilogue: Epilogue
    words: tuple[int, ...]


class Division(NamedTuple):
    """How lines are divided between invocations.

    Attributes
    ----------
    together : bool
        Whether invocations of a workgroup work on a line together.
    width : int
        How many of them do, a power of two.
    parts : int
        Pieces of each line.
    first, span, step : int
        Piece ``s`` begins with load ``s * first``, spans ``span`` loads, and has each ``step``-th of these.
    """

    together: bool
    width: int
    parts: int
    first: int
    span: int
    step: int = 1

    @classmethod
    def pieces(cls, length: int, piece: int, width: int = 0) -> Division:
        """Consecutive pieces, of ``piece`` loads but for the last; ``width`` invocations work on each, or one."""
        return cls(width > 0, width, -(-length // piece), piece, piece)

    @classmethod
    def of(cls, context: DeviceContext, lines: Lines) -> Division:
        """The division that suits the device."""
        length, outputs = lines.length, lines.outputs
        if context.is_cpu:
            parts = 1
            if length > 8 * SHORT_PIECE:
                parts = min(-(-BUSY_SOFTWARE // outputs), -(-length // SHORT_PIECE))
            parts = max(parts, -(-length // MOST_LOADS))
            return cls.pieces(length, -(-length // parts))
        if lines.by_columns or length <= _WANTED:
            parts = min(-(-BUSY_INVOCATIONS // outputs), -(-length // _LONG_ALONE))
            return cls(False, 0, parts, 1, length, parts)
        width = 1
        while width < WORKGROUP and width * _WANTED < length:
            width *= 2
        groups = -(-outputs * width // WORKGROUP)
        parts = max(1, min(BUSY_GROUPS // groups, length // (WORKGROUP * _LONG_TOGETHER)))
        return cls.pieces(length, -(-length // parts), width)


def reduce_into(
    work: Recording,
    fold: Fold,
    array: DeviceArray,
    axes: tuple[int, ...],
    out: DeviceArray,
) -> None:
    """Reduce an array that is not empty over axes, into a fresh array of as many elements as there are results."""
    reduce_elements(work, fold, Elements.of(work.context, array, fold.kind.value), axes, out)


def reduce_elements(
    work: Recording,
    fold: Fold,
    elements: Elements,
    axes: tuple[int, ...],
    out: DeviceArray,
    after: After | None = None,
) -> None:
    """What :func:`reduce_into` does, of elements that are in an array or computed as they are met.

    Where ``after`` says what becomes of the results, that is written instead.
    """
    context, array, seen = work.context, elements.array, elements.seen
    fits = out.nbytes <= context.max_binding
    lines = Lines.of(array, axes, seen, ordered=fold.position, may_be_apart=fits)
    division = Division.of(context, lines)
    direct = division.parts == 1
    lanes = texts.lanes(out.dtype)
    if lanes > 1 and not lines.apart:
        # One invocation writes a word, so it reduces all lines that have a result there.
        direct &= not division.together and lanes * lines.length <= MOST_LOADS
    if direct:
        _run(work, fold, elements, lines, division, out, after)
    else:
        values = partial(work, fold, elements, lines, division)
        pieces = Elements.of(context, values, fold.kind.value)
        reduce_elements(work, fold, pieces, (1,), out, after)


def partial(
    work: Recording,
    fold: Fold,
    elements: Elements,
    lines: Lines,
    division: Division,
) -> DeviceArray:
    """The values of all pieces, of shape (results, pieces)."""
    shape = lines.results, division.parts
    values = work.empty(shape, fold.stored)
    if lines.results > _FEW_RESULTS and not division.together:
        values.layout = Layout(shape, (1, lines.results))
    _run(work, fold, elements, lines, division, values)
    return values


def _run(
    work: Recording,
    fold: Fold,
    elements: Elements,
    lines: Lines,
    division: Division,
    out: DeviceArray,
    after: After | None = None,
) -> None:
    context = work.context
    target = Windows.of(context, out, fold.kind.value)
    to_values = out.dtype == fold.stored
    loads = elements.loads(fold, wide=lines.wide, apart=lines.apart)
    variant = Variant(
        loads,
        to_values,
        division.together,
        (lines.kept.rank, lines.reduced.rank),
        target.pattern,
        SOFTWARE_GROUP if context.is_cpu and not division.together else WORKGROUP,
        loads.at_once(software=context.is_cpu),
        None if after is None else after.epilogue,
    )
    if division.together:
        total = -(-lines.outputs // (WORKGROUP // division.width)) * division.parts
        groups, row = context.grid(total, 1)
    else:
        total = lines.outputs * division.parts
        if not to_values and not lines.apart:
            total = -(-total // texts.lanes(out.dtype))
        groups, row = context.grid(total, variant.group)
    text, params = text_of(variant)
    numbers = (
        *(row, total, lines.start, lines.outputs, lines.length, lines.elements),
        *(division.parts, division.first, division.span, division.step, division.width),
        *(out.strides if to_values else (1, 0)),
        *(lines.kept.packed() + lines.reduced.packed()),
        *elements.numbers,
        *(() if after is None else after.words),
    )
    work.run(text, (*elements.bound, target), params.pack(*numbers), groups)
