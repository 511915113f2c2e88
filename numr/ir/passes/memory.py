"""The memory plan: temporary buffers in few blocks of memory, where those that are needed at different times overlap."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from numr.ir.graph import Buffer, Node, Program, Role

__all__ = ["ALIGNMENT", "Arena", "plan_memory"]

#: Every buffer starts at a multiple of this many bytes.
ALIGNMENT = 256


@dataclass(frozen=True)
class Arena:
    """Where temporary buffers lie.

    Attributes
    ----------
    blocks : tuple of int
        Bytes in each block.
    places : dict of Buffer to (int, int)
        The block of each buffer, and its first byte there.
    """

    blocks: tuple[int, ...] = ()
    places: dict[Buffer, tuple[int, int]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Bytes in all."""
        return sum(self.blocks)


def plan_memory(
    program: Program, writes_in_place: Callable[[Node], bool], *, apart: bool = False
) -> Arena:
    """Place the temporary buffers of a program whose nodes all write into memory that they are given.

    Buffers are placed in the order in which they come into use: in one block, each at the lowest place that is free for
    as long as it is needed; or apart, each at the start of a block that is free, so that what lies behind a buffer is
    nobody's.

    Parameters
    ----------
    program : Program
        The program.
    writes_in_place : callable
        Whether a node writes where it is told; other nodes make arrays of their own, which are not placed.
    apart : bool
        Whether all buffers that are needed at one time have blocks of their own.
    """
    first: dict[Buffer, int] = {}
    last: dict[Buffer, int] = {}
    own: set[Buffer] = set()
    for index, node in enumerate(program.nodes):
        for ref in (*node.results, *node.reads):
            first.setdefault(ref.buffer, index)
            last[ref.buffer] = index
        if not writes_in_place(node):
            own.update(ref.buffer for ref in node.results)
    own.update(ref.buffer for ref in program.outputs)
    order = [
        buffer
        for buffer in sorted(first, key=lambda buffer: (first[buffer], -buffer.nbytes))
        if buffer.role is Role.TEMPORARY and buffer not in own
    ]
    return (_apart if apart else _together)(order, first, last)


def _together(order: list[Buffer], first: dict[Buffer, int], last: dict[Buffer, int]) -> Arena:
    placed: dict[Buffer, int] = {}
    size = 0
    for buffer in order:
        taken = sorted(
            (placed[other], placed[other] + _rounded(other.nbytes))
            for other in placed
            if first[other] <= last[buffer] and first[buffer] <= last[other]
        )
        offset = 0
        needed = _rounded(buffer.nbytes)
        for start, end in taken:
            if offset + needed <= start:
                break
            offset = max(offset, end)
        placed[buffer] = offset
        size = max(size, offset + needed)
    return Arena((size,) if size else (), {buffer: (0, at) for buffer, at in placed.items()})


def _apart(order: list[Buffer], first: dict[Buffer, int], last: dict[Buffer, int]) -> Arena:
    places: dict[Buffer, tuple[int, int]] = {}
    sizes: list[int] = []
    busy: list[int] = []  # by block, the last node that needs it
    for buffer in order:
        needed = _rounded(buffer.nbytes)
        free = [block for block, until in enumerate(busy) if until < first[buffer]]
        # The smallest that is large enough; else the largest, which has to grow.
        found = min(free, key=lambda b: (sizes[b] < needed, abs(sizes[b] - needed)), default=None)
        if found is None:
            found = len(sizes)
            sizes.append(0)
            busy.append(0)
        sizes[found] = max(sizes[found], needed)
        busy[found] = last[buffer]
        places[buffer] = (found, 0)
    return Arena(tuple(sizes), places)


def _rounded(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT
