"""Fusion: elementwise nodes become computations, through casts, broadcasts and views, and into reductions.

Nodes are taken in order. An elementwise node joins the groups that its operands come from, where nothing in between
forbids it; an operand that is a view of what another group computes is computed again in place, where only this node
reads it. A reduction takes its operand's group in, if nobody else needs the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from numr.dtypes import DType
from numr.ir import ops
from numr.ir.graph import FULL, FUSED_REDUCE, REDUCE, Buffer, Node, Operand, Program, Ref
from numr.ir.ops import Op
from numr.ir.passes.groups import Group, Value, broadcast, parts_of
from numr.ir.passes.order import conflict, reads, writes
from numr.ir.passes.simplify import count_readers, dead_code, stable_buffers
from numr.layout.composition import compose

__all__ = ["CHEAP", "Fuses", "FusionLimits", "fuse"]

#: Says whether a runtime fuses an operation (None: a conversion) that computes in a dtype.
Fuses = Callable[[Op | None, DType], bool]
#: Says as how many steps an operation that computes in a dtype counts.
Weight = Callable[[Op | None, DType], int]
#: Says whether a runtime does several reductions of a shape along some axes, of elements of some dtypes, as one.
Rows = Callable[[tuple[int, ...], tuple[int, ...], tuple[DType, ...]], bool]


@dataclass(frozen=True)
class FusionLimits:
    """How large a computation may become.

    Attributes
    ----------
    steps : int
        Operations in it.
    arrays : int
        Arrays that it reads and writes.
    weight : callable
        As how many steps an operation counts; as one by default.
    recomputes : bool
        Whether a reduction may compute by itself what other elementwise work needs as well, so that it is stored
        for neither: right where memory is slower than arithmetic.
    rows : callable
        Which reductions are done together, and with elementwise work; none by default.
    epilogues : bool
        Whether it is worth while to compute something of a reduction's results where it ends.
    """

    steps: int = 128
    arrays: int = 16
    weight: Weight = lambda op, dtype: 1
    recomputes: bool = False
    rows: Rows = lambda shape, axes, dtypes: False
    epilogues: bool = False


#: Operations that cost so little that computing them again is cheaper than storing and loading the result.
CHEAP: Final = frozenset(
    {
        *(ops.ABS, ops.ADD, ops.SUBTRACT, ops.MULTIPLY, ops.NEGATIVE, ops.POSITIVE, ops.SQUARE),
        *(ops.MAXIMUM, ops.MINIMUM, ops.CLIP, ops.SELECT, ops.CONJ, ops.REAL, ops.IMAG),
        *(ops.EQUAL, ops.NOT_EQUAL, ops.LESS, ops.LESS_EQUAL, ops.GREATER, ops.GREATER_EQUAL),
        *(ops.LOGICAL_AND, ops.LOGICAL_OR, ops.LOGICAL_XOR, ops.LOGICAL_NOT),
        *(ops.BITWISE_AND, ops.BITWISE_OR, ops.BITWISE_XOR, ops.BITWISE_INVERT),
    }
)

_Item = Node | Group


def fuse(program: Program, fuses: Fuses, limits: FusionLimits) -> Program:
    """Fuse the elementwise nodes of a program.

    Parameters
    ----------
    program : Program
        Without nodes of the families ``fused`` and ``fused_reduce``.
    fuses : callable
        What the runtime takes into computations.
    limits : FusionLimits
        How large they may become.
    """
    nodes = _Fusion(program, fuses, limits).run()
    return dead_code(replace(program, nodes=nodes))


class _Fusion:
    def __init__(self, program: Program, fuses: Fuses, limits: FusionLimits) -> None:
        self.program = program
        self.fuses = fuses
        self.limits = limits
        self.items: list[_Item] = []
        self.stable = stable_buffers(program)
        self.readers = count_readers(program.nodes, program.outputs)
        self.outputs = {ref.buffer for ref in program.outputs}
        #: Scalars that whole buffers are filled with.
        self.filled: dict[Buffer, Operand] = {}
        #: The group that stores the elements of a buffer that does not change.
        self.producer: dict[Buffer, tuple[Group, Ref]] = {}
        self.origin: dict[Group, Node] = {}

    def run(self) -> list[Node]:
        for node in self.program.nodes:
            if not (self._elementwise(node) or self._reduction(node)):
                self.items.append(node)
        return self._nodes()

    # ------------------------------------------------------------- elementwise
    def _elementwise(self, node: Node) -> bool:
        """Make an elementwise node part of a group."""
        if not node.is_elementwise or 0 in node.results[0].shape:
            return False
        step = parts_of(node)
        if step is None or not self.fuses(step[0], step[1].compute):
            return False
        target = node.results[0]
        if node.family == FULL and target.buffer in self.stable:
            self.filled[target.buffer] = step[2][0][0]
        group = Group(target.shape)
        arguments = []
        joined: list[Group] = []
        for operand, dtype in step[2]:
            value, producer = self._operand(group, operand, dtype, target)
            arguments.append(value)
            if producer is not None and producer not in joined:
                joined.append(producer)
        if any(target.overlaps(ref) and ref != target for ref in group.reads):
            # What is read must be read before anything is written.
            return False
        group.store(target, group.step(step[0], step[1], tuple(arguments)), fresh=node.fresh)
        self.items.append(group)
        self.origin[group] = node
        for producer in sorted(joined, key=self.items.index, reverse=True):
            group = self._joined(producer, group)
        self._note(group)
        return True

    def _operand(
        self, group: Group, operand: Operand, dtype: DType, target: Ref
    ) -> tuple[Value, Group | None]:
        """A node's operand as a value of its group, and the group that computes it, if it could be joined."""
        if not isinstance(operand, Ref):
            return group.source(operand, dtype), None
        filled = self.filled.get(operand.buffer)
        if filled is not None and self.producer_dtype(operand.buffer) == operand.dtype:
            return group.source(filled, dtype), None
        found = self.producer.get(operand.buffer)
        if found is not None and (operand != found[1] or found[0].shape != group.shape):
            inlined = self._inlined(group, operand, found[0], found[1], target)
            if inlined is not None:
                return inlined, None
        ref = broadcast(operand, group.shape)
        same = found is not None and operand == found[1] and found[0].shape == group.shape
        if found is None:
            found = self._writer(operand, group.shape)
            same = found is not None
        return group.source(ref, dtype), found[0] if same and found is not None else None

    def producer_dtype(self, buffer: Buffer) -> DType | None:
        """The dtype that a stable buffer was written in."""
        found = self.producer.get(buffer)
        return found[1].dtype if found else None

    def _writer(self, ref: Ref, shape: tuple[int, ...]) -> tuple[Group, Ref] | None:
        """The last group, if it writes into memory that changes just what a reference reads."""
        for item in reversed(self.items):
            if isinstance(item, Group):
                if item.shape == shape and item.stored(ref) is not None:
                    return item, ref
                if any(ref.overlaps(other) for other in item.writes):
                    return None
            elif any(ref.overlaps(other) for other in item.results):
                return None
        return None

    def _inlined(
        self, group: Group, view: Ref, producer: Group, whole: Ref, target: Ref
    ) -> Value | None:
        """Compute again, at the places of a view, what another group computes; None where that is no gain."""
        if view.dtype != whole.dtype or not (
            whole.layout.is_contiguous and not whole.layout.offset
        ):
            return None
        values = producer.needed([producer.stores[whole]])
        grows = view.layout.has_internal_overlap or view.shape != group.shape
        alone = self.readers.get(view.buffer, 0) == 1 and view.buffer not in self.outputs
        cheap = all(value.is_source or value.op is None or value.op in CHEAP for value in values)
        if not (alone and (cheap or not grows)) or self._is_long(values, group.values):
            return None
        since = self.items[self.items.index(producer) + 1 :]
        made: dict[Value, Value] = {}
        moved: dict[Value, Ref] = {}
        for value in values:
            if isinstance(value.operand, Ref):
                layout = compose(view.layout, value.operand.layout)
                if layout is None:
                    return None
                ref = broadcast(Ref(value.operand.buffer, layout, value.dtype), group.shape)
                if any(ref.overlaps(w) for item in (producer, *since) for w in writes(item)):
                    return None
                if ref.overlaps(target) and ref != target:
                    return None
                moved[value] = ref
        for value in values:
            if value.is_source:
                assert value.operand is not None
                made[value] = group.source(moved.get(value, value.operand), value.dtype)
            else:
                assert value.signature is not None
                arguments = tuple(made[argument] for argument in value.arguments)
                made[value] = group.step(value.op, value.signature, arguments)
        return made[producer.stores[whole]]

    def _joined(self, earlier: Group, later: Group) -> Group:
        """Two groups as one where that is legal and small enough; else the later one as it is."""
        if earlier is later or earlier not in self.items:
            return later
        if (
            earlier.shape != later.shape
            or self._is_long(earlier.values, later.values)
            or not self._compatible(earlier, later)
        ):
            return later
        first, second = self.items.index(earlier), self.items.index(later)
        between = self.items[first + 1 : second]
        up = not any(conflict(item, later) for item in between)
        down = not any(conflict(earlier, item) for item in between)
        if not (up or down):
            return later
        merged = earlier.copy()
        merged.take(later)
        if merged.arrays(self.readers) > self.limits.arrays:
            return later
        self.items[second if down else first] = merged
        del self.items[first if down else second]
        for buffer, (group, ref) in list(self.producer.items()):
            if group in (earlier, later):
                self.producer[buffer] = (merged, ref)
        return merged

    def _is_long(self, *parts: Sequence[Value]) -> bool:
        """Whether some values are too much for one computation."""
        weights = (
            self.limits.weight(value.op, value.signature.compute)
            for values in parts
            for value in values
            if value.signature is not None
        )
        return sum(weights) > self.limits.steps

    def _compatible(self, earlier: Group, later: Group) -> bool:
        """Whether one loop over the elements does what two loops did, one after the other."""
        for read in later.reads:
            for write in earlier.writes:
                if read.overlaps(write) and earlier.stored(read) is None:
                    return False
        return not any(
            write != other and write.overlaps(other)
            for write in later.writes
            for other in (*earlier.reads, *earlier.writes)
        )

    def _note(self, group: Group) -> None:
        for ref in group.stores:
            if ref in group.fresh and ref.buffer in self.stable:
                self.producer[ref.buffer] = (group, ref)

    # -------------------------------------------------------------- reductions
    def _reduction(self, node: Node) -> bool:
        """Make a reduction compute its operand by itself, if that need not be stored for others."""
        if node.family != REDUCE:
            return False
        (operand,) = node.operands
        assert isinstance(operand, Ref)
        found = self.producer.get(operand.buffer)
        if found is None or found[1] != operand or operand.buffer in self.outputs:
            return False
        group, whole = found
        # The order in which a runtime adds may depend on how the elements lie in memory.
        if not whole.layout.is_contiguous or not self._computes_alone(operand.buffer):
            return False
        since = self.items[self.items.index(group) :]
        computation, operands = group.computation([group.stores[whole]])
        refs = [x for x in operands if isinstance(x, Ref)]
        if any(ref.overlaps(write) for ref in refs for item in since for write in writes(item)):
            return False
        self.readers[operand.buffer] -= 1
        attributes = (computation, *node.attributes, whole.shape)
        self.items.append(
            Node(
                FUSED_REDUCE,
                operands,
                node.results,
                attributes,
                node.fresh,
                node.attributes[0].value,
            )
        )
        return True

    def _computes_alone(self, buffer: Buffer) -> bool:
        """Whether a reduction should compute the elements of a buffer by itself."""
        if self.readers.get(buffer, 0) == 1:
            return True
        return self.limits.recomputes and all(
            node.is_elementwise or node.family == REDUCE
            for node in self.program.nodes
            if any(ref.buffer is buffer for ref in node.reads)
        )

    # ------------------------------------------------------------------- result
    def _nodes(self) -> list[Node]:
        """The items as nodes: groups store what somebody reads, and a group of one step is its node again."""
        # Elements of a buffer that does not change are read after they were stored.
        read = set(self.outputs)
        for position in range(len(self.items) - 1, -1, -1):
            item = self.items[position]
            if isinstance(item, Group):
                for ref in list(item.stores):
                    if ref in item.fresh and ref.buffer in self.stable and ref.buffer not in read:
                        del item.stores[ref]
                if not item.stores:
                    del self.items[position]
                    continue
                item.values = item.needed(list(item.stores.values()))
            read.update(ref.buffer for ref in reads(item))
        return [self._node(item) for item in self.items]

    def _node(self, item: _Item) -> Node:
        if isinstance(item, Node):
            return item
        origin = self.origin.get(item)
        if origin is None or item.steps != 1:
            return item.node()
        # Alone as it was, unless it takes scalars from memory that nobody fills any more.
        read = {ref.buffer for ref in item.reads}
        return origin if all(ref.buffer in read for ref in origin.reads) else item.node()
