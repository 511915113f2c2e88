"""What may change places: nodes and groups of nodes by the memory that they read and write."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from numr.ir.graph import Node, Ref

__all__ = ["Item", "conflict", "reads", "writes"]


class _Group(Protocol):
    """Several nodes that run as one."""

    @property
    def reads(self) -> Iterable[Ref]:
        """What is read from memory."""

    @property
    def writes(self) -> Iterable[Ref]:
        """What is written to memory."""


Item = Node | _Group


def reads(item: Item) -> list[Ref]:
    """What an item reads."""
    return list(item.reads)


def writes(item: Item) -> list[Ref]:
    """What an item writes."""
    return list(item.results if isinstance(item, Node) else item.writes)


def conflict(first: Item, second: Item) -> bool:
    """Whether two items cannot change places."""
    first_writes, second_writes = writes(first), writes(second)
    return any(
        write.overlaps(ref) for write in first_writes for ref in (*reads(second), *second_writes)
    ) or any(write.overlaps(ref) for write in second_writes for ref in reads(first))
