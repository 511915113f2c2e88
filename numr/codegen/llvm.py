"""Expressions as LLVM IR on vectors: each node is computed for several elements at once.

LLVM keeps IEEE arithmetic as it is written as long as no instruction has a fast-math flag, and none has. What it leaves
undefined is kept out: integer quotients by zero and overflowing ones, shift counts beyond the width, conversions of
numbers that the integer type does not hold. Numbers of f16 are held by their bits and computed in f32, so that no
target needs arithmetic of its own for them. Only intrinsics are called that become instructions on every processor with
vectors, so that compiled text depends on no library.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from numr.codegen.expr import Expr
from numr.codegen.llvm_instructions import Instructions, element, vector

__all__ = ["METADATA", "Code", "Printer", "code", "element", "vector"]

#: What the text of branches refers to; belongs to the end of a module.
METADATA: Final = '!0 = !{!"branch_weights", i32 1, i32 4000}\n'

#: About how many cycles operations on floats take; on integers it is one.
_LATENCIES: Final = {"add": 4, "sub": 4, "mul": 4, "div": 15, "sqrt": 20, "rarely": 5}


class Code(NamedTuple):
    """The text that computes expressions.

    Parameters
    ----------
    statements : str
        Instructions, one a line; where there are branches they begin and end in different blocks.
    results : tuple of str
        Values of the results.
    block : str
        Label of the block that the text ends in.
    declarations : tuple of str
        Lines that declare the intrinsics that are called.
    """

    statements: str
    results: tuple[str, ...]
    block: str
    declarations: tuple[str, ...]


def code(
    roots: Sequence[Expr],
    variables: Mapping[str, str],
    lanes: int,
    block: str = "entry",
    prefix: str = "t",
) -> Code:
    """Print expressions; what they share is computed once.

    Parameters
    ----------
    roots : sequence of Expr
        What to compute.
    variables : mapping of str to str
        The values of the variables, such as ``"%x"``.
    lanes : int
        How many elements a value has.
    block : str
        Label of the block that the text is put into.
    prefix : str
        What the names of intermediate results and blocks start with.

    Examples
    --------
    >>> from numr.codegen.expr import F32, var
    >>> print(code([var("x", F32) + 0.5], {"x": "%x"}, lanes=4).statements, end="")
      %t0 = fadd <4 x float> %x, splat (float 0x3FE0000000000000)
    """
    printer = Printer(roots, lanes, block, prefix)
    printer.variables.update(variables)
    printer.compute(roots)
    return Code(
        printer.taken(),
        tuple(printer.text[root] for root in roots),
        printer.block,
        printer.declarations,
    )


class Printer(Instructions):
    """Instructions of nodes, for kernels that compute some of them in other places than others.

    Parameters
    ----------
    roots : sequence of Expr
        What to compute.
    lanes : int
        How many elements a value has.
    block : str
        Label of the block that instructions are put into.
    prefix : str
        What the names of intermediate results and blocks start with.

    Attributes
    ----------
    variables : dict of str to str
        Values of the variables, to be set before they are needed.
    block : str
        Label of the block that the next instruction goes to.
    """

    def __init__(
        self, roots: Sequence[Expr], lanes: int, block: str = "entry", prefix: str = "t"
    ) -> None:
        super().__init__(roots, lanes, prefix)
        self.block = block

    def taken(self) -> str:
        """The instructions since the last call."""
        text = "".join(f"{line}\n" for line in self.lines)
        self.lines.clear()
        return text

    def compute(self, nodes: Iterable[Expr]) -> None:
        """Write the instructions that compute nodes; their values are in ``self.text`` then."""
        self.emit_by_height(nodes, "  ", _latency)

    def only_with(self, known: Iterable[Expr]) -> list[Expr]:
        """The nodes that depend on none but the given variables, the outermost of them, to be computed early.

        Left out are variables and constants themselves, and what only the rare arm of a branch needs.
        """
        known = set(known)
        found: set[Expr] = set()
        rare = {node for private in self._private.values() for node in private}
        for node in self.order:
            if node.op == "const" or node in known or (node.args and found.issuperset(node.args)):
                found.add(node)
        outermost = []
        for node in self.order:
            if node in found and node.args and node not in rare and node not in self.text:
                users = self._users.get(node, ())
                if not users or any(user not in found or user in rare for user in users):
                    outermost.append(node)
        return outermost

    def branch(self, group: tuple[Expr, ...], indent: str) -> None:
        """A branch on whether the condition holds for any element; its values then are chosen for each."""
        condition = self.text[group[0].args[0]]
        holds = self._call("vector.reduce.or", f"v{self.lanes}i1", "i1", [("i1", condition)])
        before = self.block
        rare, after = self._name(), self._name()
        self.lines.append(f"  br i1 {holds}, label %{rare}, label %{after}, !prof !0")
        self._start(rare)
        self.emit([member.args[1] for member in group], indent)
        chosen = [
            self._select(condition, member, self.text[member.args[1]], self.text[member.args[2]])
            for member in group
        ]
        self.lines.append(f"  br label %{after}")
        end = self.block
        self._start(after)
        for member, value in zip(group, chosen, strict=True):
            common = self.text[member.args[2]]
            self.text[member] = self._put(
                f"phi {self._type(member.type)} [ {common}, %{before} ], [ {value}, %{end} ]"
            )

    def _start(self, block: str) -> None:
        self.lines.append(f"{block}:")
        self.block = block


def _latency(node: Expr) -> int:
    if node.op in ("var", "const", "bitcast"):
        return 0
    return _LATENCIES.get(node.op, 1) if node.type.kind == "f" else 1
