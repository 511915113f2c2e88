"""``Replay``: a program made ready to run again and again on a client.

Each node becomes a step that writes into memory which is known beforehand where its family can: the program's own
inputs and outputs, captured tensors, constants and one arena for everything in between. Families that make arrays of
their own, such as ``matmul`` and ``sort``, leave theirs in an environment that lives for one run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

from numr import dtypes as dt
from numr.ir.graph import (
    CONVERT,
    ELEMENTWISE,
    FULL,
    FUSED,
    FUSED_REDUCE,
    REDUCE,
    Buffer,
    Node,
    Operand,
    Program,
    Ref,
    Role,
    kinds_of,
)
from numr.ir.passes import (
    FusionLimits,
    common_subexpressions,
    dead_code,
    fuse,
    plan_memory,
)
from numr.layout import Layout
from numr.runtime.client import RuntimeClient
from numr.runtime.graph import CapturedGraph, Graph
from numr.runtime.graphs.recording import Recorder, Slot, recording
from numr.runtime.storage import Storage

__all__ = ["Replay", "ReplayGraph", "capture_into", "optimized"]

Array = Any
#: What a step runs on: its operands, and the memory that its results are written to (None: an array of its own).
Run = Callable[[list[Any], list[Array | None]], Sequence[Array] | None]

_BYTES: Final = dt.uint8


def optimized(program: Program, client: RuntimeClient[Any]) -> Program:
    """The program after all passes, for a client."""
    program = common_subexpressions(dead_code(program))
    limits = FusionLimits(client.fusion_steps, client.fusion_arrays)
    return fuse(program, client.fuses, limits)


class Replay:
    """A program made ready for a client.

    Parameters
    ----------
    client : RuntimeClient
        The device.
    recorder : Recorder
        What recorded the program, with the memory of its buffers.
    program : Program
        The program, optimised or not.

    Attributes
    ----------
    program, client
        As given.
    nbytes : int
        Bytes of the arena.
    """

    def __init__(self, client: RuntimeClient[Any], recorder: Recorder, program: Program) -> None:
        self.client = client
        self.program = program
        self._lock = threading.Lock()
        self._arena_plan = plan_memory(program, writes_in_place)
        self.nbytes = self._arena_plan.size
        written = {ref.buffer for node in program.nodes for ref in node.results}
        #: Memory that is the same for all runs.
        self._storages: dict[Buffer, tuple[Storage, int]] = {}
        self._kept: list[Any] = []
        self._restored: list[tuple[Array, Array]] = []
        self._prepare_memory(recorder, written)
        self._steps = [self._step(node) for node in program.nodes]

    # ------------------------------------------------------------------ memory
    def _prepare_memory(self, recorder: Recorder, written: set[Buffer]) -> None:
        client = self.client
        arena = client.storage(self._bytes(self._arena_plan.size)) if self.nbytes else None
        for buffer in self.program.buffers:
            if buffer in self._arena_plan.offsets:
                assert arena is not None
                self._storages[buffer] = (arena, self._arena_plan.offsets[buffer])
            elif buffer.role is Role.EXTERNAL:
                self._hold(buffer, recorder.memory[buffer])
            elif buffer.role is Role.CONSTANT:
                memory, pristine = recorder.memory[buffer], recorder.pristine[buffer]
                self._hold(buffer, memory)
                # The function may have changed it while it was recorded.
                client.assign(memory, pristine)
                if buffer in written:
                    self._restored.append((memory, pristine))

    def _bytes(self, size: int) -> Array:
        array = self.client.empty((max(size, 1),), _BYTES)
        self._kept.append(array)
        return array

    def _hold(self, buffer: Buffer, array: Array) -> None:
        self._kept.append(array)
        self._storages[buffer] = (self.client.storage(array), 0)

    def _view(self, ref: Ref, storage: Storage, start: int) -> Array:
        layout = ref.layout
        if start:
            offset = layout.offset + start // ref.dtype.itemsize
            layout = Layout(layout.shape, layout.strides, offset)
        return self.client.wrap(storage, layout, ref.dtype)

    # ------------------------------------------------------------------- steps
    def _step(self, node: Node) -> _Step:
        in_place = writes_in_place(node)
        step = _Step(self._run_of(node), node, in_place)
        for position, operand in enumerate(node.operands):
            self._bind(step.operands, step.read_late, position, operand)
        for position, ref in enumerate(node.results):
            if in_place:
                self._bind(step.results, step.write_late, position, ref)
            elif ref.buffer in self._storages:
                step.copied.append((position, self._static(ref)))
        return step

    def _bind(
        self, bound: list[Any], late: list[tuple[int, Ref]], position: int, operand: Operand
    ) -> None:
        if not isinstance(operand, Ref):
            bound.append(operand)
        elif operand.buffer in self._storages:
            bound.append(self._static(operand))
        else:
            bound.append(None)
            late.append((position, operand))

    def _static(self, ref: Ref) -> Array:
        return self._view(ref, *self._storages[ref.buffer])

    def _run_of(self, node: Node) -> Run:
        make = _RUNS.get(node.family, _run_call)
        return make(self.client, node)

    # --------------------------------------------------------------------- run
    def run(self, inputs: Sequence[Array], outputs: Sequence[Array] | None = None) -> list[Array]:
        """Run the program once.

        Parameters
        ----------
        inputs : sequence of native arrays
            Of the recorded inputs' shapes, dtypes and layouts.
        outputs : sequence of native arrays, optional
            Where results go; by default into new arrays.

        Returns
        -------
        list of native arrays
            The outputs.
        """
        client = self.client
        program = self.program
        environment: dict[Buffer, Any] = {}
        for ref, array in zip(program.inputs, inputs, strict=True):
            environment[ref.buffer] = _Memory(client.storage(array), self._start(ref, array))
        if outputs is not None:
            for ref, array in zip(program.outputs, outputs, strict=True):
                if ref.buffer.role is Role.TEMPORARY and ref.buffer not in environment:
                    memory = self._memory_of(ref, array)
                    if memory is not None:
                        environment[ref.buffer] = memory
        with self._lock:
            for target, pristine in self._restored:
                client.assign(target, pristine)
            for step in self._steps:
                self._take(step, environment)
            results = [self._result(ref, environment) for ref in program.outputs]
            if outputs is not None:
                for result, array in zip(results, outputs, strict=True):
                    if not _same_place(client, result, array):
                        client.assign(array, result)
                return list(outputs)
            return self._own(results, environment)

    def _memory_of(self, ref: Ref, array: Array) -> _Memory | None:
        """The memory of an output's array, if the program can have the whole buffer of the output there."""
        layout = self.client.layout(array)
        storage = self.client.storage(array)
        start = self._start(ref, array)
        if (
            layout.strides != ref.layout.strides
            or layout.has_internal_overlap
            or not self.client.is_writable(array)
            or not 0 <= start <= storage.size - ref.buffer.nbytes
        ):
            return None
        return _Memory(storage, start)

    def _start(self, ref: Ref, array: Array) -> int:
        """Where the recorded buffer would begin in the memory of an array that takes the place of a reference."""
        layout = self.client.layout(array)
        return (layout.offset - ref.layout.offset) * ref.dtype.itemsize

    def _take(self, step: _Step, environment: dict[Buffer, Any]) -> None:
        operands = step.operands
        if step.read_late:
            operands = operands.copy()
            for position, ref in step.read_late:
                operands[position] = self._late(ref, environment)
        results = step.results
        if step.write_late:
            results = results.copy()
            for position, ref in step.write_late:
                results[position] = self._late(ref, environment)
        made = step.run(operands, results)
        if made is None:
            return
        for array, ref in zip(made, step.node.results, strict=True):
            target = environment.get(ref.buffer)
            if type(target) is _Memory:
                self.client.assign(self._late(ref, environment), array)
            else:
                environment[ref.buffer] = array
        for position, array in step.copied:
            self.client.assign(array, made[position])

    def _late(self, ref: Ref, environment: dict[Buffer, Any]) -> Array:
        found = environment.get(ref.buffer)
        if found is None:
            # An output that nobody has given memory for yet.
            found = _Memory(self.client.storage(self._fresh(ref.buffer)), 0)
            environment[ref.buffer] = found
        if type(found) is _Memory:
            return self._view(ref, found.storage, found.start)
        made: Array = found
        if self.client.layout(made) == ref.layout and made.dtype == ref.dtype:
            return made
        return self.client.wrap(self.client.storage(found), ref.layout, ref.dtype)

    def _fresh(self, buffer: Buffer) -> Array:
        return self.client.empty((max(buffer.nbytes, 1),), _BYTES)

    def _result(self, ref: Ref, environment: dict[Buffer, Any]) -> Array:
        if ref.buffer in self._storages:
            return self._static(ref)
        return self._late(ref, environment)

    def _own(self, results: list[Array], environment: dict[Buffer, Any]) -> list[Array]:
        """Results that share memory with nothing that lives on."""
        seen: set[Buffer] = set()
        owned = []
        for array, ref in zip(results, self.program.outputs, strict=True):
            shared = ref.buffer in self._storages or ref.buffer.role is not Role.TEMPORARY
            shared = shared or ref.buffer in seen or ref.layout.has_internal_overlap
            owned.append(self.client.copy(array) if shared else array)
            seen.add(ref.buffer)
        return owned


class ReplayGraph(Graph):
    """The graph of a replay, on given memory.

    Parameters
    ----------
    replay : Replay
        What is run.
    inputs, outputs : sequence of native arrays
        What it reads and writes.
    """

    __slots__ = ("_inputs", "_outputs", "replay")

    def __init__(self, replay: Replay, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        super().__init__()
        self.replay = replay
        self._inputs = list(inputs)
        self._outputs = list(outputs)

    def launch(self) -> None:
        """Run the program on the memory of its inputs and outputs."""
        self.replay.run(self._inputs, self._outputs)

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


class _Memory:
    """Memory that a buffer has for one run: a storage, and the byte at which the buffer starts in it."""

    __slots__ = ("start", "storage")

    def __init__(self, storage: Storage, start: int) -> None:
        self.storage = storage
        self.start = start


class _Step:
    """A node made ready: what is known of its arrays beforehand, and what is bound late."""

    __slots__ = ("copied", "node", "operands", "read_late", "results", "run", "write_late")

    def __init__(self, run: Run, node: Node, in_place: bool) -> None:
        self.run = run
        self.node = node
        self.operands: list[Any] = []
        self.results: list[Any] = []
        self.read_late: list[tuple[int, Ref]] = []
        self.write_late: list[tuple[int, Ref]] = []
        self.copied: list[tuple[int, Array]] = []


def writes_in_place(node: Node) -> bool:
    """Whether a node writes into memory that it is given, and makes no array of its own."""
    return node.family in (FUSED, ELEMENTWISE, CONVERT, FULL, "scatter")


def _same_place(client: RuntimeClient[Any], one: Array, other: Array) -> bool:
    return one is other or (
        client.storage(one).handle == client.storage(other).handle
        and client.layout(one) == client.layout(other)
    )


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


def _run_scatter(client: RuntimeClient[Any], node: Node) -> Run:
    _, indices, values = node.attributes

    def run(operands: list[Any], results: list[Array | None]) -> None:
        client.scatter(results[0], [operands[i] for i in indices], operands[values])

    return run


def _run_call(client: RuntimeClient[Any], node: Node) -> Run:
    family = getattr(client, node.family)
    attributes = node.attributes

    def run(operands: list[Any], results: list[Array | None]) -> Sequence[Array]:
        made = family(*(_filled(x, operands) for x in attributes))
        return made if isinstance(made, tuple) else (made,)

    return run


def _filled(argument: Any, operands: list[Any]) -> Any:
    """An argument with arrays in the place of slots."""
    if isinstance(argument, Slot):
        return operands[argument]
    if isinstance(argument, tuple) and argument and isinstance(argument[0], Slot):
        return [operands[slot] for slot in argument]
    return argument


_RUNS: Final[dict[str, Callable[[RuntimeClient[Any], Node], Run]]] = {
    FUSED: _run_fused,
    ELEMENTWISE: _run_elementwise,
    CONVERT: _run_convert,
    FULL: _run_full,
    REDUCE: _run_reduce,
    FUSED_REDUCE: _run_fused_reduce,
    "scatter": _run_scatter,
}
