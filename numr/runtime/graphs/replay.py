"""Graphs that replay a program on given memory, and how a program comes to be one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numr.ir.graph import Program
from numr.ir.passes import FusionLimits, common_subexpressions, dead_code, fuse
from numr.runtime.client import RuntimeClient
from numr.runtime.graph import CapturedGraph, Graph
from numr.runtime.graphs.prepared import Replay, Result
from numr.runtime.graphs.recording import recording
from numr.runtime.graphs.taping import Taped

__all__ = ["Replay", "ReplayGraph", "capture_into", "optimized"]

Array = Any


def optimized(program: Program, client: RuntimeClient[Any]) -> Program:
    """The program after all passes, for a client."""
    program = common_subexpressions(dead_code(program))
    limits = FusionLimits(
        client.fusion_steps,
        client.fusion_arrays,
        client.fusion_weight,
        client.fusion_recomputes,
    )
    return fuse(program, client.fuses, limits)


class Bound:
    """A replay on given memory.

    Parameters
    ----------
    replay : Replay
        What is run.
    inputs : sequence of native arrays
        What it reads.
    outputs : sequence of native arrays
        Where results go.

    Attributes
    ----------
    replay
        As given.
    arrays : list
        The arrays of all places; None for those that steps make.
    steps : list of Step
        What is done, in order, with these in their places.
    copies : list of (Result, array)
        Results that are copied to where they belong.
    """

    def __init__(self, replay: Replay, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        self.replay = replay
        self.arrays = arrays = replay.arrays_of(inputs, outputs)
        self._taped: Taped | None = None
        known = [array is not None for array in arrays]
        self.steps = [step.bound(arrays, known) for step in replay.steps]
        self.copies: list[tuple[Result, Array]] = []
        client = replay.client
        for result, target in zip(replay.results, outputs, strict=True):
            array = result.array if result.number is None else arrays[result.number]
            if array is None or not _same_place(client, array, target):
                self.copies.append((result, target))
        self._graph = client.graph_of(self)

    def launch(self) -> None:
        """Run the program once."""
        with self.replay.lock:
            if self._graph is not None:
                self._graph.launch()
                return
            if self._taped is not None:
                if self._taped.is_valid():
                    self._taped.run({})
                    return
                self._taped = None
            taped = Taped.new(self.replay.client) if self.steps or self.copies else None
            if taped is None:
                self._do(None)
                return
            with taped.first_run():
                self._do(taped)
                taped.finish()
            self._taped = taped

    def _do(self, taped: Taped | None) -> None:
        replay = self.replay
        arrays = self.arrays.copy()
        replay.do(self.steps, arrays, taped)
        assign = replay.client.assign if taped is None else taped.assign
        for result, target in self.copies:
            assign(target, result.array if result.number is None else arrays[result.number])


class ReplayGraph(Graph):
    """The graph of a replay, on given memory.

    Parameters
    ----------
    replay : Replay
        What is run.
    inputs, outputs : sequence of native arrays
        What it reads and writes.
    """

    __slots__ = ("_bound", "replay")

    def __init__(self, replay: Replay, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        super().__init__()
        self.replay = replay
        self._bound = Bound(replay, inputs, outputs)

    def launch(self) -> None:
        """Run the program on the memory of its inputs and outputs."""
        self._bound.launch()

    def is_replay_capable(self) -> bool:
        """Return True."""
        return True


def capture_into(
    client: RuntimeClient[Any],
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    f: Callable[[RuntimeClient[Any]], object],
) -> CapturedGraph[Any]:
    """What ``Runtime.capture_graph_into`` does on the runtimes of numr."""
    read, written = ([getattr(x, "_data", x) for x in each] for each in (inputs, outputs))
    with recording(client, read) as recorder:
        f(recorder)
        # The outputs exist already: what is written into them is seen outside, as in any captured tensor.
        program = recorder.finish(())
    replay = Replay(client, recorder, optimized(program, client))
    return CapturedGraph(ReplayGraph(replay, read, ()), inputs, outputs, (replay, written))


def _same_place(client: RuntimeClient[Any], one: Array, other: Array) -> bool:
    return one is other or (
        client.storage(one).handle == client.storage(other).handle
        and client.layout(one) == client.layout(other)
    )
