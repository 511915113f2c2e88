"""Groups of elementwise nodes that become one computation, while they are being put together."""

from __future__ import annotations

from dataclasses import dataclass, field

from numr import dtypes as dt
from numr.dtypes import DType, Scalar
from numr.ir.fused import Computation, Source, Step
from numr.ir.graph import CONVERT, FULL, FUSED, Buffer, Node, Operand, Ref
from numr.ir.ops import SELECT, Op, Signature

__all__ = ["Group", "Value", "scalar_source"]


@dataclass(eq=False)
class Value:
    """A value of a group: a source, or the result of a step.

    Attributes
    ----------
    dtype : dtype
        Of the element.
    operand : Ref or scalar or None
        What a source reads.
    op, signature, arguments
        What a step computes, see :class:`numr.ir.fused.Step`.
    """

    dtype: DType
    operand: Operand | None = None
    op: Op | None = None
    signature: Signature | None = None
    arguments: tuple[Value, ...] = ()

    @property
    def is_source(self) -> bool:
        """Whether it is given, not computed."""
        return self.signature is None


@dataclass(eq=False)
class Group:
    """Elementwise work over one shape.

    Attributes
    ----------
    shape : tuple of int
        The shape of all results.
    values : list of Value
        In an order in which they can be computed.
    stores : dict of Ref to Value
        What is written where.
    fresh : set of Ref
        Those of the stores whose buffers begin with them.
    absorbed : dict of Buffer to int
        How many readers of a stored buffer became part of the group.
    """

    shape: tuple[int, ...]
    values: list[Value] = field(default_factory=list)
    stores: dict[Ref, Value] = field(default_factory=dict)
    fresh: set[Ref] = field(default_factory=set)
    absorbed: dict[Buffer, int] = field(default_factory=dict)
    _sources: dict[object, Value] = field(default_factory=dict)

    # ------------------------------------------------------------------- facts
    @property
    def reads(self) -> list[Ref]:
        """What is read from memory."""
        return [v.operand for v in self.values if isinstance(v.operand, Ref)]

    @property
    def writes(self) -> list[Ref]:
        """What is written to memory."""
        return list(self.stores)

    @property
    def steps(self) -> int:
        """How many steps there are."""
        return sum(not value.is_source for value in self.values)

    def arrays(self, readers: dict[Buffer, int]) -> int:
        """How many arrays are read and written, but for results that only this group reads."""
        stores = sum(
            ref not in self.fresh or readers.get(ref.buffer, 0) != self.absorbed.get(ref.buffer, 0)
            for ref in self.stores
        )
        return len(set(self.reads)) + stores

    def stored(self, ref: Ref) -> Value | None:
        """The value that a reference reads, if this group stores it there and just so."""
        return self.stores.get(ref)

    # ---------------------------------------------------------------- building
    def copy(self) -> Group:
        """A group of the same values, to add to."""
        return Group(
            self.shape,
            self.values.copy(),
            self.stores.copy(),
            self.fresh.copy(),
            self.absorbed.copy(),
            self._sources.copy(),
        )

    def source(self, operand: Operand, dtype: DType) -> Value:
        """A source; the same one for the same operand."""
        key: object = operand if isinstance(operand, Ref) else (type(operand), repr(operand), dtype)
        found = self._sources.get(key)
        if found is None:
            found = self._sources[key] = Value(dtype, operand)
            self.values.append(found)
        return found

    def step(self, op: Op | None, signature: Signature, arguments: tuple[Value, ...]) -> Value:
        """A new step."""
        value = Value(signature.result, None, op, signature, arguments)
        self.values.append(value)
        return value

    def store(self, ref: Ref, value: Value, *, fresh: bool) -> None:
        """Write a value; a later store to the same place takes the place of an earlier one."""
        self.stores.pop(ref, None)
        self.stores[ref] = value
        if fresh:
            self.fresh.add(ref)

    def take(self, other: Group) -> None:
        """Take over another group's values and stores, which come after this one's."""
        for buffer, count in other.absorbed.items():
            self.absorbed[buffer] = self.absorbed.get(buffer, 0) + count
        mapped: dict[Value, Value] = {}
        for value in other.values:
            if value.is_source:
                operand = value.operand
                known = self.stored(operand) if isinstance(operand, Ref) else None
                assert operand is not None
                if known is None:
                    known = self.source(operand, value.dtype)
                elif isinstance(operand, Ref):
                    self.absorbed[operand.buffer] = self.absorbed.get(operand.buffer, 0) + 1
                mapped[value] = known
            else:
                assert value.signature is not None
                arguments = tuple(mapped[argument] for argument in value.arguments)
                mapped[value] = self.step(value.op, value.signature, arguments)
        for ref, value in other.stores.items():
            self.store(ref, mapped[value], fresh=ref in other.fresh)

    # ----------------------------------------------------------------- results
    def needed(self, results: list[Value]) -> list[Value]:
        """The values that some results need, in order."""
        wanted = set(results)
        for value in reversed(self.values):
            if value in wanted:
                wanted.update(value.arguments)
        return [value for value in self.values if value in wanted]

    def computation(self, results: list[Value]) -> tuple[Computation, tuple[Operand, ...]]:
        """The computation of some results, and its operands."""
        values = self.needed(results)
        sources = [value for value in values if value.is_source]
        steps = [value for value in values if not value.is_source]
        numbers = {value: number for number, value in enumerate([*sources, *steps])}
        computation = Computation(
            tuple(Source(v.dtype, isinstance(v.operand, Ref)) for v in sources),
            tuple(
                Step(v.op, v.signature, tuple(numbers[a] for a in v.arguments))
                for v in steps
                if v.signature is not None
            ),
            tuple(numbers[result] for result in results),
        )
        return computation, tuple(v.operand for v in sources if v.operand is not None)

    def node(self) -> Node:
        """The group as one node."""
        computation, operands = self.computation(list(self.stores.values()))
        fresh = all(ref in self.fresh for ref in self.stores)
        return Node(FUSED, operands, tuple(self.stores), (computation,), fresh, _title(computation))


def _title(computation: Computation) -> str:
    return "+".join(step.op.name if step.op else "astype" for step in computation.steps)


def scalar_source(value: Scalar, dtype: DType) -> Scalar | None:
    """A scalar as an operand of a computation in a dtype; None if it is not one of the dtype's values."""
    if dtype.kind == "b":
        return bool(value)
    if dtype.kind in "iu":
        info = dt.iinfo_of(dtype)
        if isinstance(value, complex) or value != int(value) or not info.min <= value <= info.max:
            return None
        return int(value)
    if dtype.kind == "f":
        return None if isinstance(value, complex) else float(value)
    return complex(value)


def parts_of(node: Node) -> tuple[Op | None, Signature, tuple[tuple[Operand, DType], ...]] | None:
    """The step that an elementwise node is, and its operands with the dtypes that scalars are taken as.

    None for a node that no computation does, such as a comparison with an integer beyond the dtype.
    """
    result = node.results[0]
    if node.family == FULL:
        (value,) = node.operands
        assert not isinstance(value, Ref)
        scalar = scalar_source(value, result.dtype)
        if scalar is None:
            return None
        return None, Signature(result.dtype, result.dtype), ((scalar, result.dtype),)
    if node.family == CONVERT:
        (source,) = node.operands
        assert isinstance(source, Ref)
        return None, Signature(source.dtype, result.dtype), ((source, source.dtype),)
    op, signature = node.op, node.signature
    operands: list[tuple[Operand, DType]] = []
    for position, operand in enumerate(node.operands):
        if isinstance(operand, Ref):
            operands.append((operand, operand.dtype))
            continue
        dtype = dt.bool_ if op is SELECT and position == 0 else signature.compute
        scalar = scalar_source(operand, dtype)
        if scalar is None:
            return None
        operands.append((scalar, dtype))
    if signature.result != result.dtype:
        return None
    return op, signature, tuple(operands)


def broadcast(ref: Ref, shape: tuple[int, ...]) -> Ref:
    """A reference broadcast to a shape."""
    if ref.shape == shape:
        return ref
    return Ref(ref.buffer, ref.layout.broadcast_to(shape), ref.dtype)
