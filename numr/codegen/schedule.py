"""The order in which a kernel computes expressions: statements, branches and what each branch has to itself.

A printer for one language derives from :class:`Schedule` and says what a node, a statement and a branch look like;
for languages with variables and blocks in braces :class:`BracedSchedule` says most of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import ClassVar, Final

from numr.codegen.expr import Expr, topological

__all__ = ["BracedSchedule", "Schedule"]

#: Operations whose operands may change places.
_COMMUTING: Final = frozenset({"add", "mul", "and", "or", "xor", "eq", "ne"})

#: Longest text that is written in place instead of being given a name.
INLINE_LENGTH: Final = 60


class Schedule(ABC):
    """Text of nodes, and the order in which they are computed.

    Parameters
    ----------
    roots : sequence of Expr
        What to compute.
    prefix : str
        What the names of intermediate results start with.

    Attributes
    ----------
    short : int
        Up to so many operations that only rare arms need, there is no branch: all is computed, and chosen from.
    """

    short: ClassVar[int] = 0

    def __init__(self, roots: Sequence[Expr], prefix: str) -> None:
        self.order = list(topological(roots))
        self.prefix = prefix
        self.lines: list[str] = []
        self.text: dict[Expr, str] = {}
        self._named = 0
        self._uses = Counter(arg for node in self.order for arg in node.args)
        self._uses.update(roots)
        self._users: dict[Expr, list[Expr]] = {}
        for node in self.order:
            for arg in node.args:
                self._users.setdefault(arg, []).append(node)
        self._groups = self._group()
        #: For each branch, by its members, the nodes that only its rare arms need, in order: what is written must not
        #: depend on where objects lie in memory.
        self._private = {
            group: self._only_in(group, set(roots)) for group in set(self._groups.values())
        }
        for group in [group for group, own in self._private.items() if len(own) <= self.short]:
            del self._private[group]
            for member in group:
                del self._groups[member]

    @abstractmethod
    def statement(self, node: Expr, indent: str) -> None:
        """Write what computes a node, whose operands' texts are in ``self.text``, and add its own."""

    @abstractmethod
    def branch(self, group: tuple[Expr, ...], indent: str) -> None:
        """Write the branch that computes nodes of one condition, and add their texts.

        The texts of the condition and of the common operands are there; those of the rare ones are not, as far as
        nothing else needs them.
        """

    def emit(self, roots: Iterable[Expr], indent: str) -> None:
        """Write the statements that compute ``roots``; their texts are in ``self.text`` then."""
        for node in self._missing(roots):
            self._write(node, indent)

    def emit_by_height(
        self, roots: Iterable[Expr], indent: str, latency: Callable[[Expr], int]
    ) -> None:
        """:meth:`emit`, with what is furthest from the end first, by how long operations take.

        Independent chains of operations then run side by side, where depth first one would follow the other, beyond
        the reach of a processor that looks ahead for work.
        """
        order = self._missing(roots)
        # The nodes of a branch are computed together, in the place of the first.
        place = {member: node for node in order for member in self._groups.get(node, (node,))}
        height = dict.fromkeys(order, 0)
        for node in reversed(order):
            end = height[node] + latency(node)
            for member in self._groups.get(node, (node,)):
                for arg in self._needs(member):
                    above = place.get(arg)
                    if above is not None:
                        height[above] = max(height[above], end)
        # Sorting keeps the order of nodes of one height, in which operands come first.
        for node in sorted(order, key=lambda node: -height[node]):
            self._write(node, indent)

    def is_same(self, one: Expr, other: Expr) -> bool:
        """Whether two nodes compute the same by the same operations, but for the order of operands that commute."""
        return one is other or self._value_numbers[one] == self._value_numbers[other]

    @cached_property
    def _value_numbers(self) -> dict[Expr, int]:
        numbers: dict[Expr, int] = {}
        known: dict[tuple[object, ...], int] = {}
        for node in self.order:
            args = [numbers[arg] for arg in node.args]
            if node.op in _COMMUTING:
                args.sort()
            key = (node.op, node.type.name, node.value, *args)
            numbers[node] = known.setdefault(key, len(known))
        return numbers

    def _missing(self, roots: Iterable[Expr]) -> list[Expr]:
        """What has to be computed for ``roots`` yet, operands first; of each branch one node."""
        order: list[Expr] = []
        seen: set[Expr] = set()
        stack = [(root, False) for root in reversed(list(roots))]
        while stack:
            node, ready = stack.pop()
            if ready:
                order.append(node)
            elif node not in seen and node not in self.text:
                members = self._groups.get(node, (node,))
                seen.update(members)
                stack.append((node, True))
                needs = [arg for member in members for arg in self._needs(member)]
                stack.extend((arg, False) for arg in reversed(needs))
        return order

    def _write(self, node: Expr, indent: str) -> None:
        if node in self._groups:
            self.branch(self._groups[node], indent)
        else:
            self.statement(node, indent)

    def _name(self) -> str:
        self._named += 1
        return f"{self.prefix}{self._named - 1}"

    def _group(self) -> dict[Expr, tuple[Expr, ...]]:
        """Branches that share a condition and do not need each other become one."""
        by_condition: dict[Expr, list[Expr]] = {}
        for node in self.order:
            if node.op == "rarely":
                by_condition.setdefault(node.args[0], []).append(node)
        groups: dict[Expr, tuple[Expr, ...]] = {}
        for members in by_condition.values():
            needed = set(topological([arg for member in members for arg in member.args]))
            independent = not needed.intersection(members)
            for member in members:
                groups[member] = tuple(members) if independent else (member,)
        return groups

    def _only_in(self, group: tuple[Expr, ...], roots: set[Expr]) -> dict[Expr, None]:
        found: set[Expr] = set()
        arms = {member.args[1] for member in group}
        for node in reversed(self.order):
            if node.op in ("var", "const") or node in roots:
                continue
            users = self._users.get(node, [])
            if all(
                user in found
                or (user in group and node in arms and node not in (user.args[0], user.args[2]))
                for user in users
            ) and (node in arms or any(user in found for user in users)):
                found.add(node)
        return dict.fromkeys(node for node in self.order if node in found)

    def _needs(self, node: Expr) -> list[Expr]:
        group = self._groups.get(node)
        if group is None:
            return list(node.args)
        private = self._private[group]
        needs = []
        for member in group:
            needs += [member.args[0], member.args[2]]
            if member.args[1] not in private:
                needs.append(member.args[1])
        for inner in private:
            needs += [arg for arg in inner.args if arg not in private]
        return needs


class BracedSchedule(Schedule):
    """A schedule in a language of expressions, variables and blocks in braces."""

    @abstractmethod
    def print(self, node: Expr) -> str:
        """The text of a node, whose operands' texts are in ``self.text``."""

    @abstractmethod
    def declare(self, node: Expr, name: str, text: str, *, mutable: bool) -> str:
        """The statement that gives a value a name."""

    @abstractmethod
    def open_branch(self, condition: str) -> str:
        """The line that a branch starts with; it ends with a brace."""

    def statement(self, node: Expr, indent: str) -> None:
        """A declaration, unless the text is short and occurs once."""
        text = self.print(node)
        simple = node.op in ("var", "const")
        if not simple and (self._uses[node] > 1 or len(text) > INLINE_LENGTH):
            name = self._name()
            self.lines.append(indent + self.declare(node, name, text, mutable=False))
            text = name
        self.text[node] = text

    def branch(self, group: tuple[Expr, ...], indent: str) -> None:
        """Variables with the common values, which the branch changes."""
        names = [self._name() for _ in group]
        for name, member in zip(names, group, strict=True):
            common = self.text[member.args[2]]
            self.lines.append(indent + self.declare(member, name, common, mutable=True))
        self.lines.append(indent + self.open_branch(self.text[group[0].args[0]]))
        self.emit([member.args[1] for member in group], indent + "    ")
        for name, member in zip(names, group, strict=True):
            self.lines.append(f"{indent}    {name} = {self.text[member.args[1]]};")
        self.lines.append(f"{indent}}}")
        for name, member in zip(names, group, strict=True):
            self.text[member] = name
