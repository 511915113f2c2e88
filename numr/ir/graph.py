"""Programs: what a captured function does, as nodes on parts of buffers.

A :class:`Program` is a list of nodes in the order in which they ran. A node is one call of a primitive family; it
reads and writes :class:`Ref` objects, which say where in a buffer the elements lie. Views are no nodes: they are
layouts of references. An in-place update is a node that writes into a buffer that existed before it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from numr.dtypes import DType, Kind, Scalar
from numr.errors import NumrError
from numr.ir.ops import Op, Signature
from numr.layout import Layout

__all__ = [
    "CONVERT",
    "ELEMENTWISE",
    "FULL",
    "FUSED",
    "FUSED_REDUCE",
    "FUSED_ROWS",
    "REDUCE",
    "Buffer",
    "Node",
    "Program",
    "ProgramError",
    "Ref",
    "Role",
    "verify",
]

#: Families whose nodes passes look into; all others are calls that they leave alone.
ELEMENTWISE: Final = "elementwise"
CONVERT: Final = "convert"
FULL: Final = "full"
REDUCE: Final = "reduce"
FUSED: Final = "fused"
FUSED_REDUCE: Final = "fused_reduce"
FUSED_ROWS: Final = "fused_rows"


class ProgramError(NumrError, AssertionError):
    """A program breaks a rule: a fault in numr, not in the captured function."""


class Role(Enum):
    """What a buffer is to a program."""

    INPUT = "input"
    OUTPUT = "output"
    #: Memory that existed before the program, and is not an input: a captured tensor.
    EXTERNAL = "external"
    #: Host data that was brought to the device while the program was recorded.
    CONSTANT = "constant"
    TEMPORARY = "temporary"

    __hash__ = object.__hash__


@dataclass(eq=False)
class Buffer:
    """A block of memory.

    Attributes
    ----------
    number : int
        Its number in the program.
    nbytes : int
        Its size.
    role : Role
        What it is.
    """

    number: int
    nbytes: int
    role: Role

    @property
    def lives_on(self) -> bool:
        """Whether what is written into it is seen outside the program, or by its next launch."""
        return self.role in (Role.INPUT, Role.OUTPUT, Role.EXTERNAL)

    def __str__(self) -> str:
        prefix = {
            Role.INPUT: "in",
            Role.OUTPUT: "out",
            Role.EXTERNAL: "ext",
            Role.CONSTANT: "const",
            Role.TEMPORARY: "t",
        }[self.role]
        return f"{prefix}{self.number}"


@dataclass(frozen=True)
class Ref:
    """Elements in a buffer.

    Attributes
    ----------
    buffer : Buffer
        Where.
    layout : Layout
        Which elements, counted in elements of ``dtype`` from the buffer's start.
    dtype : dtype
        Their dtype.
    """

    buffer: Buffer
    layout: Layout
    dtype: DType

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""
        return self.layout.shape

    @property
    def is_whole(self) -> bool:
        """Whether it is all of its buffer, in C order."""
        layout = self.layout
        return (
            layout.offset == 0
            and layout.is_contiguous
            and layout.size * self.dtype.itemsize == self.buffer.nbytes
        )

    def span(self) -> tuple[int, int]:
        """The bytes that it may touch, as (first, end)."""
        low, high = self.layout.span()
        size = self.dtype.itemsize
        return low * size, high * size

    def overlaps(self, other: Ref) -> bool:
        """Whether it may share memory with another reference."""
        if self.buffer is not other.buffer:
            return False
        (low, high), (other_low, other_high) = self.span(), other.span()
        return max(low, other_low) < min(high, other_high)

    def __hash__(self) -> int:
        # Passes look references up again and again, and a layout's hash takes a while.
        try:
            found: int = self.__dict__["_hash"]
        except KeyError:
            found = self.__dict__["_hash"] = hash((self.buffer, self.layout, self.dtype))
        return found

    def __str__(self) -> str:
        text = f"{self.buffer}: {self.dtype}{list(self.shape)}"
        if not (self.layout.is_contiguous and self.layout.offset == 0):
            text += f" strides {list(self.layout.strides)} offset {self.layout.offset}"
        return text


Operand = Ref | Scalar


@dataclass(eq=False)
class Node:
    """One call.

    Attributes
    ----------
    family : str
        The primitive family.
    operands : tuple of Ref or scalar
        What it reads, in the order of the family's arguments.
    results : tuple of Ref
        What it writes.
    attributes : tuple
        Its other arguments: for ``elementwise`` the operation and its signature, for ``reduce`` the reduction, the
        axes, ``keepdims`` and the dtype; for ``fused`` the computation; for ``fused_rows`` that of the rows, their
        shape and the axes along which they are reduced.
    fresh : bool
        Whether the results are buffers of their own that did not exist before.
    name : str
        What the user called, for messages and printing.
    """

    family: str
    operands: tuple[Operand, ...]
    results: tuple[Ref, ...]
    attributes: tuple[Any, ...] = ()
    fresh: bool = True
    name: str = ""

    @property
    def reads(self) -> Iterator[Ref]:
        """The operands that lie in memory."""
        return (x for x in self.operands if isinstance(x, Ref))

    @property
    def op(self) -> Op:
        """The operation of an elementwise node."""
        op: Op = self.attributes[0]
        return op

    @property
    def signature(self) -> Signature:
        """The signature of an elementwise node."""
        signature: Signature = self.attributes[1]
        return signature

    @property
    def title(self) -> str:
        """What it does, in a word."""
        return self.op.name if self.family == ELEMENTWISE else self.name or self.family

    @property
    def is_elementwise(self) -> bool:
        """Whether each element of the result depends on one element of each operand."""
        return self.family in (ELEMENTWISE, CONVERT, FULL)

    def __str__(self) -> str:
        operands = ", ".join(str(x) for x in self.operands)
        results = ", ".join(str(x) for x in self.results)
        shown = [x for x in self.attributes if not isinstance(x, Op | Signature)]
        extra = f" {{{', '.join(map(str, shown))}}}" if shown else ""
        text = f"{results} {'=' if self.fresh else '<-'} {self.title}({operands})"
        return text + (extra if "\n" not in extra else "\n" + _indented(extra))


def _indented(text: str) -> str:
    return "\n".join(f"        {line}" for line in text.strip(" {}").splitlines())


@dataclass(eq=False)
class Program:
    """What a captured function does.

    Attributes
    ----------
    nodes : list of Node
        In the order in which they run.
    inputs, outputs : tuple of Ref
        What is given and what results; several may lie in one buffer.
    """

    nodes: list[Node] = field(default_factory=list)
    inputs: tuple[Ref, ...] = ()
    outputs: tuple[Ref, ...] = ()

    @property
    def buffers(self) -> list[Buffer]:
        """All buffers that occur, in the order of their numbers."""
        found = {ref.buffer for ref in (*self.inputs, *self.outputs)}
        for node in self.nodes:
            found.update(ref.buffer for ref in (*node.reads, *node.results))
        return sorted(found, key=lambda buffer: buffer.number)

    def __str__(self) -> str:
        lines = [f"inputs:  {', '.join(str(ref) for ref in self.inputs) or 'none'}"]
        lines += [f"    {node}" for node in self.nodes]
        lines.append(f"outputs: {', '.join(str(ref) for ref in self.outputs) or 'none'}")
        return "\n".join(lines)


def verify(program: Program) -> None:
    """Check the rules that every pass must keep.

    Raises
    ------
    ProgramError
        If a reference leaves its buffer, a node reads memory that nothing wrote, writes a constant, writes one
        element twice, or says to be fresh where it is not.
    """
    written: dict[Buffer, list[Ref]] = {}
    numbers: dict[int, Buffer] = {}

    def check(ref: Ref, where: str) -> None:
        first = numbers.setdefault(ref.buffer.number, ref.buffer)
        if first is not ref.buffer:
            raise ProgramError(f"{where}: two buffers have the number {ref.buffer.number}")
        low, high = ref.span()
        if math.prod(ref.shape) and not 0 <= low < high <= ref.buffer.nbytes:
            raise ProgramError(
                f"{where}: bytes {low} to {high} of {ref.buffer}, which has {ref.buffer.nbytes}"
            )

    def is_written(ref: Ref) -> bool:
        if ref.buffer.role in (Role.INPUT, Role.EXTERNAL, Role.CONSTANT):
            return True
        return not math.prod(ref.shape) or ref.buffer in written

    for ref in program.inputs:
        check(ref, "input")
    for node in program.nodes:
        for ref in node.reads:
            check(ref, str(node))
            if not is_written(ref):
                raise ProgramError(f"{node}: {ref} is read before anything was written there")
        for ref in node.results:
            check(ref, str(node))
            if ref.buffer.role is Role.CONSTANT:
                raise ProgramError(f"{node}: writes a constant")
            if ref.layout.has_internal_overlap:
                raise ProgramError(f"{node}: writes elements of {ref} more than once")
            before = written.setdefault(ref.buffer, [])
            if node.fresh and (before or ref.buffer.role not in (Role.TEMPORARY, Role.OUTPUT)):
                raise ProgramError(f"{node}: {ref} is not fresh")
            before.append(ref)
    for ref in program.outputs:
        check(ref, "output")
        if not is_written(ref):
            raise ProgramError(f"output {ref}: nothing was written there")


def kinds_of(operands: Iterable[Operand]) -> tuple[Kind, ...]:
    """The dtypes of references, and the types of scalars."""
    return tuple(x.dtype if isinstance(x, Ref) else type(x) for x in operands)
