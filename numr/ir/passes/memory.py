"""The memory plan: temporary buffers as parts of one arena, where those that are needed at different times overlap."""

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
    size : int
        Bytes in all.
    offsets : dict of Buffer to int
        The first byte of each buffer in it.
    """

    size: int = 0
    offsets: dict[Buffer, int] = field(default_factory=dict)


def plan_memory(program: Program, writes_in_place: Callable[[Node], bool]) -> Arena:
    """Place the temporary buffers of a program whose nodes all write into memory that they are given.

    Buffers are placed in the order in which they come into use, each at the lowest place that is free for as long as
    it is needed.

    Parameters
    ----------
    program : Program
        The program.
    writes_in_place : callable
        Whether a node writes where it is told; other nodes make arrays of their own, which are not placed.
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
    outputs = {ref.buffer for ref in program.outputs}
    placed: dict[Buffer, int] = {}
    size = 0
    for buffer in sorted(first, key=lambda buffer: (first[buffer], -buffer.nbytes)):
        if buffer.role is not Role.TEMPORARY or buffer in own or buffer in outputs:
            continue
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
    return Arena(size, placed)


def _rounded(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT
