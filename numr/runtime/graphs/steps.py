"""Steps of a replay: nodes made ready, with the calls of families that they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from numr.ir.graph import (
    CONVERT,
    ELEMENTWISE,
    FULL,
    FUSED,
    FUSED_REDUCE,
    FUSED_ROWS,
    REDUCE,
    Node,
    Ref,
    kinds_of,
)
from numr.runtime.client import RuntimeClient
from numr.runtime.graphs.recording import Slot

__all__ = ["Step", "run_of", "writes_in_place"]

Array = Any
#: What a step runs on: its operands, and the memory that its results are written to (None: an array of its own).
Run = Callable[[list[Any], list[Array | None]], Sequence[Array] | None]


class Step:
    """A node made ready: what is known of its arrays beforehand, and what is bound for each run.

    Parameters
    ----------
    run : callable
        What it does.

    Attributes
    ----------
    operands, results : list
        The arrays and scalars; None for those that are bound for each run.
    read_late, write_late : list of (int, int)
        Positions among these, with the numbers of the places that are bound there.
    copied : list of (int, array)
        Results that are arrays of their own, by position, and where they are copied to.
    made : list of (int, Ref)
        Results that are arrays of their own and stay so.
    ending : list of int
        Places that no later step reads.
    lasting : bool
        Whether it makes an output.
    strides : dict of int to tuple
        By position, the strides of results that lie as they did when the program was recorded.
    """

    __slots__ = (
        "copied",
        "ending",
        "lasting",
        "made",
        "operands",
        "read_late",
        "results",
        "run",
        "strides",
        "write_late",
    )

    def __init__(self, run: Run) -> None:
        self.run = run
        self.operands: list[Any] = []
        self.results: list[Any] = []
        self.read_late: list[tuple[int, int]] = []
        self.write_late: list[tuple[int, int]] = []
        self.copied: list[tuple[int, Array]] = []
        self.made: list[tuple[int, Ref]] = []
        self.ending: list[int] = []
        self.lasting = False
        self.strides: dict[int, tuple[int, ...]] = {}

    def bound(self, arrays: list[Array], known: list[bool]) -> Step:
        """The step with the arrays that are known in their places."""
        step = Step(self.run)
        step.operands, step.results = self.operands.copy(), self.results.copy()
        step.copied, step.made = self.copied, self.made
        step.ending, step.lasting = self.ending, self.lasting
        for late, bound, still in (
            (self.read_late, step.operands, step.read_late),
            (self.write_late, step.results, step.write_late),
        ):
            for position, number in late:
                bound[position] = arrays[number]
                if not known[number]:
                    still.append((position, number))
        return step

    def given(self, arrays: list[Array]) -> tuple[list[Any], list[Any]]:
        """The operands and results of a run."""
        operands, results = self.operands, self.results
        if self.read_late:
            operands = operands.copy()
            for position, number in self.read_late:
                operands[position] = arrays[number]
        if self.write_late:
            results = results.copy()
            for position, number in self.write_late:
                results[position] = arrays[number]
        return operands, results


def writes_in_place(node: Node) -> bool:
    """Whether a node writes into memory that it is given, and makes no array of its own."""
    return node.family in (FUSED, FUSED_ROWS, ELEMENTWISE, CONVERT, FULL, "scatter")


def run_of(client: RuntimeClient[Any], node: Node) -> Run:
    """The call that a node is."""
    return _RUNS.get(node.family, _run_call)(client, node)


# --------------------------------------------------------------------- families
def _run_fused(client: RuntimeClient[Any], node: Node) -> Run:
    return client.fused(node.attributes[0])


def _run_elementwise(client: RuntimeClient[Any], node: Node) -> Run:
    op = node.op
    kinds = kinds_of(node.operands)

    def run(operands: list[Any], results: list[Array | None]) -> None:
        client.elementwise_into(op, kinds, tuple(operands), results[0])

    return run


def _run_convert(client: RuntimeClient[Any], node: Node) -> Run:
    return lambda operands, results: client.assign(results[0], operands[0])


def _run_full(client: RuntimeClient[Any], node: Node) -> Run:
    (value,) = node.operands
    assert not isinstance(value, Ref)
    single = client.full((), value, node.results[0].dtype)
    return lambda operands, results: client.assign(results[0], single)


def _run_reduce(client: RuntimeClient[Any], node: Node) -> Run:
    kind, axes, keepdims, dtype = node.attributes
    return lambda operands, results: (client.reduce(kind, operands[0], axes, keepdims, dtype),)


def _run_fused_reduce(client: RuntimeClient[Any], node: Node) -> Run:
    computation, kind, axes, keepdims, dtype, shape = node.attributes

    def run(operands: list[Any], results: list[Array | None]) -> Sequence[Array]:
        return (client.reduce_fused(computation, operands, shape, kind, axes, keepdims, dtype),)

    return run


def _run_fused_rows(client: RuntimeClient[Any], node: Node) -> Run:
    return client.fused_rows(*node.attributes)


def _run_scatter(client: RuntimeClient[Any], node: Node) -> Run:
    _, indices, values = node.attributes

    def run(operands: list[Any], results: list[Array | None]) -> None:
        client.scatter(results[0], [operands[i] for i in indices], operands[values])

    return run


def _run_call(client: RuntimeClient[Any], node: Node) -> Run:
    family = getattr(client, node.family)
    template = list(node.attributes)
    single = [(place, x) for place, x in enumerate(template) if isinstance(x, Slot)]
    several = [
        (place, x)
        for place, x in enumerate(template)
        if isinstance(x, tuple) and x and isinstance(x[0], Slot)
    ]

    def run(operands: list[Any], results: list[Array | None]) -> Sequence[Array]:
        arguments = template.copy()
        for place, slot in single:
            arguments[place] = operands[slot]
        for place, slots in several:
            arguments[place] = [operands[slot] for slot in slots]
        made = family(*arguments)
        return made if isinstance(made, tuple) else (made,)

    return run


_RUNS: Final[dict[str, Callable[[RuntimeClient[Any], Node], Run]]] = {
    FUSED: _run_fused,
    ELEMENTWISE: _run_elementwise,
    CONVERT: _run_convert,
    FULL: _run_full,
    REDUCE: _run_reduce,
    FUSED_REDUCE: _run_fused_reduce,
    FUSED_ROWS: _run_fused_rows,
    "scatter": _run_scatter,
}
