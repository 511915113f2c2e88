"""Graphs that replay a program on given memory, and how a program comes to be one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numr.errors import CaptureError
from numr.ir.graph import Program, Ref
from numr.ir.passes import FusionLimits, common_subexpressions, dead_code, fuse, fuse_rows
from numr.runtime.client import RuntimeClient
from numr.runtime.graph import CapturedGraph, Graph
from numr.runtime.graphs.prepared import Replay, Result
from numr.runtime.graphs.recording import recording
from numr.runtime.graphs.taping import Taped

__all__ = ["Replay", "ReplayGraph", "capture_into", "optimized", "stage"]

Array = Any


def optimized(program: Program, client: RuntimeClient[Any]) -> Program:
    """The program after all passes, for a client."""
    program = common_subexpressions(dead_code(program))
    limits = FusionLimits(
        client.fusion_steps,
        client.fusion_arrays,
        client.fusion_weight,
        client.fusion_recomputes,
        client.fuses_rows,
        client.fusion_epilogues,
    )
    return fuse_rows(fuse(program, client.fuses, limits), client.fuses, limits)


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
            self.run()

    def run(self) -> None:
        """Run the program once; the caller holds the replay's lock."""
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


class _Staged:
    """A program on memory of its own, into which inputs are copied, and from which outputs are.

    Parameters
    ----------
    replay : Replay
        The program.
    """

    def __init__(self, replay: Replay) -> None:
        self._client = client = replay.client
        program = replay.program
        written = {ref.buffer for node in program.nodes for ref in node.results}
        self._inputs = [client.empty(ref.shape, ref.dtype) for ref in program.inputs]
        self._outputs = [client.empty(ref.shape, ref.dtype) for ref in program.outputs]
        self._updated = [i for i, ref in enumerate(program.inputs) if ref.buffer in written]
        self._bound = Bound(replay, self._inputs, self._outputs)

    def __call__(self, inputs: Sequence[Array]) -> list[Array]:
        client = self._client
        for own, given in zip(self._inputs, inputs, strict=True):
            client.assign(own, given)
        self._bound.run()
        for i in self._updated:
            client.assign(inputs[i], self._inputs[i])
        return [client.copy(own) for own in self._outputs]


def stage(replay: Replay) -> None:
    """Let a replay run on memory of its own, where that is right and the client has a quick graph for that."""
    program = replay.program
    entries = (*program.inputs, *program.outputs)
    nbytes = sum(ref.layout.size * ref.dtype.itemsize for ref in entries)
    if not replay.client.stages(len(program.nodes), len(entries), nbytes):
        return
    owners = {ref.buffer: ref for ref in program.inputs}
    refs = (ref for node in program.nodes for ref in (*node.reads, *node.results))
    if (
        len(owners) == len(program.inputs)
        and all(ref.layout.is_contiguous for ref in entries)
        and all(_is_within(ref, owners[ref.buffer]) for ref in refs if ref.buffer in owners)
        and all(
            _is_within(ref, owners[ref.buffer]) for ref in program.outputs if ref.buffer in owners
        )
    ):
        replay.staged = _Staged(replay)


def _is_within(ref: Ref, owner: Ref) -> bool:
    """Whether a reference touches nothing but what another one does, which is contiguous."""
    (low, high), (start, end) = ref.span(), owner.span()
    return start <= low and high <= end


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
        """Run the program on the memory of its inputs and outputs.

        Raises
        ------
        CaptureError
            If the thread captures another graph on the device.
        """
        self.refuse_while_captured()
        self._bound.launch()

    def refuse_while_captured(self) -> None:
        """Raise CaptureError if the thread captures a graph on the device, which could not hold the launch."""
        client = self.replay.client
        recorder = client.recorder
        if recorder is not None and recorder.here() is recorder:
            raise CaptureError(
                f"launch: another graph is being captured on {client.device}, and the launch of a graph does not become "
                "part of it. Call the function that this graph was captured from, or what numr.jit makes of it: its "
                "work becomes part of the outer graph."
            )

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
