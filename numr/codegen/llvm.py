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

#: Stands for a function's name in its text.
_NAMELESS: Final = "numr.nameless"

#: What the text of branches refers to; belongs to the end of a module.
METADATA: Final = '!0 = !{!"branch_weights", i32 1, i32 4000}\n'

#: A rare arm of so many operations is a function of its own. It computes one vector of the processor at a time, which
#: halves the time that compiling it takes, and two branches that compute the same share it.
_LONG: Final = 64

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
        What is called: definitions of functions, whose attributes are group 0, and lines that declare intrinsics.
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
    vectors: int = 1,
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
    vectors : int
        How many vectors of the processor a value is, see :class:`Printer`.

    Examples
    --------
    >>> from numr.codegen.expr import F32, var
    >>> print(code([var("x", F32) + 0.5], {"x": "%x"}, lanes=4).statements, end="")
      %t0 = fadd <4 x float> %x, splat (float 0x3FE0000000000000)
    """
    printer = Printer(roots, lanes, block, prefix, vectors)
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
    vectors : int
        How many vectors of the processor a value is. Where it is one, all is in one function.

    Attributes
    ----------
    variables : dict of str to str
        Values of the variables, to be set before they are needed.
    block : str
        Label of the block that the next instruction goes to.
    """

    def __init__(
        self,
        roots: Sequence[Expr],
        lanes: int,
        block: str = "entry",
        prefix: str = "t",
        vectors: int = 1,
    ) -> None:
        super().__init__(roots, lanes, prefix)
        self.block = block
        self._vectors = vectors
        #: Bodies of functions, and their names.
        self._functions: dict[str, str] = {}

    @property
    def declarations(self) -> tuple[str, ...]:
        """What has been called: definitions of functions, with attributes of group 0, and lines that declare intrinsics."""
        functions = (body.replace(_NAMELESS, name, 1) for body, name in self._functions.items())
        return (*functions, *super().declarations)

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
        if self._vectors > 1 and len(self._private[group]) >= _LONG:
            self._emit_call(group)
        else:
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

    def _emit_call(self, group: tuple[Expr, ...]) -> None:
        """Call a function that computes the rare arms of a branch, for each vector of the processor."""
        private = self._private[group]
        arms = [a for a in dict.fromkeys(member.args[1] for member in group) if a in private]
        inputs = dict.fromkeys(
            arg for node in private for arg in node.args if arg not in private and arg.op != "const"
        )
        lanes = self.lanes // self._vectors
        inner = Printer(arms, lanes)
        inner.text.update({node: f"%a{i}" for i, node in enumerate(inputs)})
        inner.emit(arms, "  ")
        types = [vector(arm.type, lanes) for arm in arms]
        returned = f"{{ {', '.join(types)} }}"
        given = [vector(node.type, lanes) for node in inputs]
        parameters = ", ".join(f"{type} %a{i}" for i, type in enumerate(given))
        lines = [f"define internal {returned} @{_NAMELESS}({parameters}) #0 {{", "entry:"]
        lines.append(inner.taken().rstrip("\n"))
        value = "poison"
        for i, (arm, type) in enumerate(zip(arms, types, strict=True)):
            lines.append(f"  %r{i} = insertvalue {returned} {value}, {type} {inner.text[arm]}, {i}")
            value = f"%r{i}"
        lines += [f"  ret {returned} {value}", "}"]
        name = self._functions.setdefault("\n".join(lines), f"rare{len(self._functions)}")
        self._declarations.update(inner._declarations)
        parts: list[list[str]] = [[] for _ in arms]
        for part in range(self._vectors):
            places = range(part * lanes, (part + 1) * lanes)
            arguments = ", ".join(
                f"{type} {self._shuffled(self.text[node], 'poison', node, self.lanes, places)}"
                for node, type in zip(inputs, given, strict=True)
            )
            result = self._put(f"call {returned} @{name}({arguments})")
            for i, found in enumerate(parts):
                found.append(self._put(f"extractvalue {returned} {result}, {i}"))
        for arm, found in zip(arms, parts, strict=True):
            while len(found) > 1:
                width = self.lanes // len(found)
                found = [
                    self._shuffled(one, other, arm, width, range(2 * width))
                    for one, other in zip(found[::2], found[1::2], strict=True)
                ]
            self.text[arm] = found[0]

    def _shuffled(self, one: str, other: str, node: Expr, lanes: int, places: Iterable[int]) -> str:
        """Elements of two values of a node's type, which have so many lanes."""
        type = vector(node.type, lanes)
        chosen = ", ".join(f"i32 {place}" for place in places)
        count = chosen.count("i32")
        return self._put(f"shufflevector {type} {one}, {type} {other}, <{count} x i32> <{chosen}>")

    def _start(self, block: str) -> None:
        self.lines.append(f"{block}:")
        self.block = block


def _latency(node: Expr) -> int:
    if node.op in ("var", "const", "bitcast"):
        return 0
    return _LATENCIES.get(node.op, 1) if node.type.kind == "f" else 1
