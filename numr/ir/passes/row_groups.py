"""Groups of nodes that become one computation of rows, while they are being put together."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from numr.dtypes import DType
from numr.ir.fused import Computation
from numr.ir.graph import FUSED_REDUCE, FUSED_ROWS, REDUCE, Node, Operand, Ref
from numr.ir.ops import Op, Reduction, Signature
from numr.ir.rows import RowComputation, RowSource, RowStep, kept_shape
from numr.layout import Layout

__all__ = ["RowGroup", "RowValue"]


@dataclass(eq=False)
class RowValue:
    """A value of a group: a source, or the result of a step.

    Attributes
    ----------
    dtype : dtype
        Of the element.
    per_row : bool
        Whether it is one for a whole row.
    operand : Ref or scalar or None
        What a source reads.
    op, signature, arguments
        What a step computes, see :class:`numr.ir.rows.RowStep`.
    """

    dtype: DType
    per_row: bool
    operand: Operand | None = None
    op: Op | Reduction | None = None
    signature: Signature | None = None
    arguments: tuple[RowValue, ...] = ()

    @property
    def is_source(self) -> bool:
        """Whether it is given, not computed."""
        return self.signature is None

    @property
    def is_reduction(self) -> bool:
        """Whether a reduction gives it."""
        return isinstance(self.op, Reduction)


@dataclass(eq=False)
class RowGroup:
    """Work on the rows of a shape: what is reduced to one result is a row.

    Attributes
    ----------
    shape : tuple of int
        The shape of all elements.
    axes : tuple of int
        The axes along which rows lie.
    values : list of RowValue
        In an order in which they can be computed, each once.
    stores : dict of Ref to RowValue
        What is written where. Elements have the group's shape, values of rows this shape with axes of length 1.
    fresh : set of Ref
        Those of the stores whose buffers begin with them.
    origins : list of Node
        The nodes that it is made of, in an order in which they can run.
    """

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    values: list[RowValue] = field(default_factory=list)
    stores: dict[Ref, RowValue] = field(default_factory=dict)
    fresh: set[Ref] = field(default_factory=set)
    origins: list[Node] = field(default_factory=list)
    _known: dict[object, RowValue] = field(default_factory=dict)

    # ------------------------------------------------------------------- making
    @classmethod
    def of_reduction(cls, node: Node) -> RowGroup | None:
        """A reduction as a group; None if it is none, or its rows have fewer than two elements."""
        if node.family == REDUCE:
            kind, axes, _, dtype = node.attributes
            (read,) = node.reads
            group = cls(read.shape, axes)
        elif node.family == FUSED_REDUCE:
            computation, kind, axes, _, dtype, shape = node.attributes
            group = cls(shape, axes)
        else:
            return None
        if 0 in group.shape or group.length < 2:
            return None
        if node.family == REDUCE:
            argument = group._read(read)
        else:
            found = group._computed(computation, node.operands)
            argument = found[0] if found else None
        if argument is None or argument.per_row:
            return None
        (result,) = node.results
        value = group._step(kind, Signature(dtype, result.dtype), (argument,))
        if not group._store(result, value, fresh=node.fresh):
            return None
        group.origins.append(node)
        return group

    def of_elementwise(
        self, node: Node, computation: Computation, operands: tuple[Operand, ...]
    ) -> RowGroup | None:
        """An elementwise node as a group on the same rows; None if it is no work on them."""
        group = RowGroup(self.shape, self.axes)
        if node.results[0].shape not in (self.shape, *self._row_shapes):
            return None
        values = group._computed(computation, operands)
        if values is None:
            return None
        for ref, value in zip(node.results, values, strict=True):
            if not group._store(ref, value, fresh=node.fresh):
                return None
        group.origins.append(node)
        return group

    def joined(self, later: RowGroup) -> RowGroup | None:
        """The group and another one on the same rows, which comes after it, as one; None if that is not the same."""
        group = replace(
            self,
            values=self.values.copy(),
            stores=self.stores.copy(),
            fresh=self.fresh.copy(),
            origins=self.origins + later.origins,
            _known=self._known.copy(),
        )
        mapped: dict[RowValue, RowValue] = {}
        for value in later.values:
            if value.signature is not None:
                arguments = tuple(mapped[argument] for argument in value.arguments)
                mapped[value] = group._step(value.op, value.signature, arguments)
                continue
            assert value.operand is not None
            known: RowValue | None
            if isinstance(value.operand, Ref):
                known = group._read(value.operand)
            else:
                known = group._source(value.operand, value.dtype, per_row=True)
            if known is None or known.per_row != value.per_row:
                return None
            mapped[value] = known
        for ref, value in later.stores.items():
            if not group._store(ref, mapped[value], fresh=ref in later.fresh):
                return None
        return group

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
    def length(self) -> int:
        """Elements of a row."""
        length = 1
        for axis in self.axes:
            length *= self.shape[axis]
        return length

    @property
    def reduced(self) -> list[RowValue]:
        """What is reduced, once for each reduction."""
        return [value.arguments[0] for value in self.values if value.is_reduction]

    @property
    def gives_rows_alone(self) -> bool:
        """Whether nothing is stored for each element."""
        return all(value.per_row for value in self.stores.values())

    @property
    def is_simple(self) -> bool:
        """Whether each array that is read lies in C order, as elements or rows do, or is one row or element for all."""
        return all(
            ref.layout.is_contiguous or not any(ref.layout.strides) or self._is_one_row(ref.layout)
            for ref in self.reads
        )

    def _is_one_row(self, layout: Layout) -> bool:
        """Whether a layout is that of one row, which is in C order and the same for all."""
        if any(step for axis, step in enumerate(layout.strides) if axis not in self.axes):
            return False
        lengths, steps = (
            tuple(x[axis] for axis in self.axes) for x in (layout.shape, layout.strides)
        )
        return Layout(lengths, steps).is_contiguous

    # ---------------------------------------------------------------- building
    @property
    def _row_shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The shapes that values of rows may have: with axes of length 1, and without these axes."""
        kept = kept_shape(self.shape, self.axes)
        return kept, tuple(n for axis, n in enumerate(kept) if axis not in self.axes)

    def _placed(self, ref: Ref) -> Ref | None:
        """A reference in the one form that those to the same elements have, for elements or for rows; None if neither."""
        layout = ref.layout
        kept, without = self._row_shapes
        if ref.shape == self.shape:
            strides = [0 if n == 1 else s for n, s in zip(ref.shape, layout.strides, strict=True)]
            if any(strides[axis] for axis in self.axes):
                return replace(ref, layout=Layout(ref.shape, tuple(strides), layout.offset))
        elif ref.shape == kept:
            strides = list(layout.strides)
        elif ref.shape == without:
            given = iter(layout.strides)
            strides = [0 if axis in self.axes else next(given) for axis in range(len(kept))]
        elif layout.size == 1:
            strides = [0] * len(kept)
        else:
            return None
        strides = [0 if n == 1 else s for n, s in zip(kept, strides, strict=True)]
        return replace(ref, layout=Layout(kept, tuple(strides), layout.offset))

    def _read(self, ref: Ref) -> RowValue | None:
        """The value that a reference reads; None if it is neither in step with the rows nor what the group stores."""
        placed = self._placed(ref)
        if placed is None:
            return None
        found = self.stores.get(placed)
        if found is None:
            if any(placed.overlaps(store) for store in self.stores):
                return None
            found = self._source(placed, ref.dtype, per_row=placed.shape != self.shape)
        return found

    def _source(self, operand: Operand, dtype: DType, *, per_row: bool) -> RowValue:
        # As numbers, True, 1 and 1.0 are equal, and so are both zeros.
        key = operand if isinstance(operand, Ref) else (type(operand), repr(operand), dtype)
        return self._once(key, RowValue(dtype, per_row, operand))

    def _step(
        self, op: Op | Reduction | None, signature: Signature, arguments: tuple[RowValue, ...]
    ) -> RowValue:
        per_row = isinstance(op, Reduction) or all(x.per_row for x in arguments)
        value = RowValue(signature.result, per_row, None, op, signature, arguments)
        return self._once((op, signature, tuple(map(id, arguments))), value)

    def _once(self, key: object, value: RowValue) -> RowValue:
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = value
            self.values.append(value)
        return found

    def _computed(
        self, computation: Computation, operands: tuple[Operand, ...]
    ) -> list[RowValue] | None:
        """The results of an elementwise computation; None if an operand is not in step with the rows."""
        values: list[RowValue] = []
        for source, operand in zip(computation.sources, operands, strict=True):
            value = (
                self._read(operand)
                if isinstance(operand, Ref)
                else self._source(operand, source.dtype, per_row=True)
            )
            if value is None:
                return None
            values.append(value)
        for step in computation.steps:
            arguments = tuple(values[argument] for argument in step.arguments)
            values.append(self._step(step.op, step.signature, arguments))
        return [values[result] for result in computation.results]

    def _store(self, ref: Ref, value: RowValue, *, fresh: bool) -> bool:
        """Write a value; whether that can be done: to memory in order, which nothing else has to do with."""
        placed = self._placed(ref)
        if (
            placed is None
            or (placed.shape != self.shape) != value.per_row
            or not placed.layout.is_contiguous
            or value in self.stores.values()
            or any(placed.overlaps(other) for other in (*self.reads, *self.stores))
        ):
            return False
        self.stores[placed] = value
        if fresh:
            self.fresh.add(placed)
        return True

    # ----------------------------------------------------------------- results
    def keep_needed(self) -> None:
        """Forget values that no store needs."""
        wanted = set(self.stores.values())
        for value in reversed(self.values):
            if value in wanted:
                wanted.update(value.arguments)
        self.values = [value for value in self.values if value in wanted]

    def node(self) -> Node:
        """The group as one node."""
        sources = [value for value in self.values if value.is_source]
        steps = [value for value in self.values if not value.is_source]
        numbers = {value: number for number, value in enumerate([*sources, *steps])}
        computation = RowComputation(
            tuple(RowSource(v.dtype, isinstance(v.operand, Ref), v.per_row) for v in sources),
            tuple(
                RowStep(v.op, v.signature, tuple(numbers[a] for a in v.arguments))
                for v in steps
                if v.signature is not None
            ),
            tuple(numbers[value] for value in self.stores.values()),
        )
        operands = tuple(v.operand for v in sources if v.operand is not None)
        return Node(
            FUSED_ROWS,
            operands,
            tuple(self.stores),
            (computation, self.shape, self.axes),
            self.fresh.issuperset(self.stores),
            computation.title,
        )
