"""Fusion of rows: reductions along the same axes, and elementwise work around them, become one node.

It follows the fusion of elementwise nodes. Nodes are taken in order: a reduction joins those that give what it reads, and
an elementwise node joins the reductions whose results it reads, as far as nothing in between forbids it. What only
nodes of one group read is not stored.
"""

from __future__ import annotations

from dataclasses import replace

from numr.ir.fused import Computation, Source, Step
from numr.ir.graph import FUSED, Buffer, Node, Operand, Program, Ref
from numr.ir.ops import Reduction
from numr.ir.passes.fuse import Fuses, FusionLimits
from numr.ir.passes.groups import broadcast, parts_of
from numr.ir.passes.order import Item, conflict, reads, writes
from numr.ir.passes.row_groups import RowGroup, RowValue
from numr.ir.passes.simplify import dead_code, stable_buffers

__all__ = ["fuse_rows"]


def fuse_rows(program: Program, fuses: Fuses, limits: FusionLimits) -> Program:
    """Fuse reductions of a program with one another and with elementwise nodes.

    Parameters
    ----------
    program : Program
        A program, best after :func:`numr.ir.passes.fuse`.
    fuses : callable
        What the runtime takes into computations.
    limits : FusionLimits
        How large they may become, and what the runtime does with rows.
    """
    nodes = _RowFusion(program, fuses, limits).run()
    return dead_code(replace(program, nodes=nodes))


class _RowFusion:
    def __init__(self, program: Program, fuses: Fuses, limits: FusionLimits) -> None:
        self.program = program
        self.fuses = fuses
        self.limits = limits
        self.stable = stable_buffers(program)
        self.outputs = {ref.buffer for ref in program.outputs}
        self.items: list[Node | RowGroup] = []
        self.written: set[Buffer] = set()
        self.readers: dict[Buffer, list[Node]] = {}
        for node in program.nodes:
            for ref in node.reads:
                self.readers.setdefault(ref.buffer, []).append(node)

    def run(self) -> list[Node]:
        for node in self.program.nodes:
            item: Node | RowGroup = node
            group = RowGroup.of_reduction(node)
            if group is not None and self._is_allowed(group):
                item = group
            self.items.append(item)
            if isinstance(item, RowGroup) or node.is_elementwise or node.family == FUSED:
                for producer in self._producers(item):
                    item = self._joined(producer, item)
            self.written.update(ref.buffer for ref in node.results)
        return self._nodes()

    # ------------------------------------------------------------------ joining
    def _producers(self, item: Node | RowGroup) -> list[Node | RowGroup]:
        """The items that have written what an item reads, the last one first."""
        found: dict[int, Node | RowGroup] = {}
        end = self.items.index(item)
        for ref in reads(item):
            for position in range(end - 1, -1, -1) if ref.buffer in self.written else ():
                if any(ref.overlaps(write) for write in writes(self.items[position])):
                    found[position] = self.items[position]
                    break
        return [found[position] for position in sorted(found, reverse=True)]

    def _joined(self, earlier: Node | RowGroup, later: Node | RowGroup) -> Node | RowGroup:
        """Two items as one where that is legal and allowed; else the later one as it is."""
        one, other = self._groups(earlier, later)
        if one is None or other is None or earlier not in self.items:
            return later
        if (one.shape, one.axes) != (other.shape, other.axes):
            return later
        first, second = self.items.index(earlier), self.items.index(later)
        between: list[Item] = [*self.items[first + 1 : second]]
        up = not any(conflict(item, later) for item in between)
        down = not any(conflict(earlier, item) for item in between)
        if not (up or down):
            return later
        merged = one.joined(other)
        if merged is None or not self._is_allowed(merged):
            return later
        self.items[second if down else first] = merged
        del self.items[first if down else second]
        return merged

    def _groups(
        self, earlier: Node | RowGroup, later: Node | RowGroup
    ) -> tuple[RowGroup | None, RowGroup | None]:
        """Two items as groups, of which one is a group already."""
        if isinstance(earlier, RowGroup):
            return earlier, later if isinstance(later, RowGroup) else self._group(later, earlier)
        return (self._group(earlier, later), later) if isinstance(later, RowGroup) else (None, None)

    def _group(self, node: Node, like: RowGroup) -> RowGroup | None:
        """An elementwise node as a group on the rows of another one."""
        if node.family == FUSED:
            return like.of_elementwise(node, node.attributes[0], node.operands)
        if not node.is_elementwise or 0 in node.results[0].shape:
            return None
        step = parts_of(node)
        if step is None or not self.fuses(step[0], step[1].compute):
            return None
        op, signature, given = step
        sources = tuple(Source(dtype, isinstance(operand, Ref)) for operand, dtype in given)
        computation = Computation(
            sources, (Step(op, signature, tuple(range(len(sources)))),), (len(sources),)
        )
        shape = node.results[0].shape
        operands: tuple[Operand, ...] = tuple(
            broadcast(operand, shape) if isinstance(operand, Ref) else operand
            for operand, _ in given
        )
        return like.of_elementwise(node, computation, operands)

    def _is_allowed(self, group: RowGroup) -> bool:
        """Whether the runtime does a group as one, and it is not too large."""
        weights = [
            self.limits.weight(value.op, value.signature.compute)
            for value in group.values
            if value.signature is not None and not isinstance(value.op, Reduction)
        ]
        arrays = len(group.reads) + len(group.stores)
        if sum(weights) > self.limits.steps or arrays > self.limits.arrays:
            return False
        reduced = group.reduced
        if len(reduced) == 1:
            needed = [v for ref, v in group.stores.items() if self._is_needed(ref, group)]
            if len(needed) <= 1 and all(map(_follows_reduction, needed)):
                return True
        # What is reduced as it is has to lie as it would if it were computed.
        if any(isinstance(v.operand, Ref) and not v.operand.layout.is_contiguous for v in reduced):
            return False
        dtypes = tuple(value.dtype for value in reduced)
        return group.is_simple and self.limits.rows(group.shape, group.axes, dtypes)

    def _is_needed(self, ref: Ref, group: RowGroup) -> bool:
        """Whether somebody else reads what a group stores."""
        if ref not in group.fresh or ref.buffer not in self.stable or ref.buffer in self.outputs:
            return True
        return any(node not in group.origins for node in self.readers.get(ref.buffer, ()))

    # ------------------------------------------------------------------- result
    def _nodes(self) -> list[Node]:
        """The items as nodes."""
        return [
            node
            for item in self.items
            for node in ([item] if isinstance(item, Node) else self._made(item))
        ]

    def _made(self, group: RowGroup) -> list[Node]:
        """A group as a node that stores what others read, or as the nodes that it was if that is as good."""
        for ref in list(group.stores):
            if not self._is_needed(ref, group):
                del group.stores[ref]
        if not group.stores:
            return []
        group.keep_needed()
        alone = len(group.reduced) < 2 and group.gives_rows_alone
        if len(group.origins) == 1 or not group.reduced or (alone and not self.limits.epilogues):
            return group.origins
        return [group.node()]


def _follows_reduction(value: RowValue) -> bool:
    """Whether a value is made of what reductions give and of scalars alone."""
    if value.is_source:
        return not isinstance(value.operand, Ref)
    return value.is_reduction or all(map(_follows_reduction, value.arguments))
