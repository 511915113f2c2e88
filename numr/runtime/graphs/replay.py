"""``Replay``: a program made ready to run again and again on a client.

Each node becomes a step that writes into memory which is known beforehand where its family can: the program's own
inputs and outputs, captured tensors, constants and one arena for everything in between. Families that make arrays of
their own, such as ``matmul`` and ``sort``, leave theirs in an environment that lives for one run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

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
    limits = FusionLimits(client.fusion_steps, client.fusion_arrays, client.fusion_weight)
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
        #: References that are bound anew for each run, by number.
        self._places: list[_Place] = []
        self._numbers: dict[Ref, int] = {}
        self._by_buffer: dict[Buffer, list[int]] = {}
        made = {
            ref.buffer
            for node in program.nodes
            if not writes_in_place(node)
            for ref in node.results
        }
        self._made = made - set(self._storages)
        self._steps = [self._step(node) for node in program.nodes]
        self._results = [self._result(ref) for ref in program.outputs]

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
        step = _Step(_RUNS.get(node.family, _run_call)(self.client, node))
        for position, operand in enumerate(node.operands):
            self._bind(step.operands, step.read_late, position, operand)
        for position, ref in enumerate(node.results):
            if in_place:
                self._bind(step.results, step.write_late, position, ref)
            elif ref.buffer in self._storages:
                step.copied.append((position, self._view(ref, *self._storages[ref.buffer])))
            else:
                self._number(ref)
                step.made.append((position, ref))
        return step

    def _bind(
        self, bound: list[Any], late: list[tuple[int, int]], position: int, operand: Operand
    ) -> None:
        if not isinstance(operand, Ref):
            bound.append(operand)
        elif operand.buffer in self._storages:
            bound.append(self._view(operand, *self._storages[operand.buffer]))
        else:
            bound.append(None)
            late.append((position, self._number(operand)))

    def _number(self, ref: Ref) -> int:
        """The number of a reference that is bound for each run."""
        number = self._numbers.get(ref)
        if number is None:
            number = self._numbers[ref] = len(self._places)
            siblings = self._by_buffer.setdefault(ref.buffer, [])
            given = None
            for position, entry in enumerate(self.program.inputs):
                if entry.buffer is ref.buffer and (given is None or entry == ref):
                    given = position
            self._places.append(_Place(ref, given, siblings[0] if siblings else None))
            siblings.append(number)
        return number

    def _result(self, ref: Ref) -> _Result:
        """How an output is handed out: where it is, and whether that is memory of its own."""
        shared = (
            ref.buffer in self._storages
            or ref.buffer.role is not Role.TEMPORARY
            or ref.layout.has_internal_overlap
            or any(ref.buffer is other.buffer for other in self._earlier_outputs(ref))
        )
        if ref.buffer in self._storages:
            return _Result(None, self._view(ref, *self._storages[ref.buffer]), shared)
        return _Result(self._number(ref), None, shared)

    def _earlier_outputs(self, ref: Ref) -> Sequence[Ref]:
        for position, other in enumerate(self.program.outputs):
            if other is ref:
                return self.program.outputs[:position]
        return ()

    # --------------------------------------------------------------------- run
    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Run the program once, on inputs of the recorded shapes, dtypes and strides; the outputs are new arrays."""
        with self._lock:
            arrays = self._arrays(inputs, {})
            self._restore()
            for step in self._steps:
                self._take(step, arrays)
            copy = self.client.copy
            results = []
            for result in self._results:
                array = result.array if result.number is None else arrays[result.number]
                results.append(copy(array) if result.shared else array)
            return results

    def _restore(self) -> None:
        for target, pristine in self._restored:
            self.client.assign(target, pristine)

    def _arrays(
        self, inputs: Sequence[Array], given: dict[Buffer, tuple[Storage, int]]
    ) -> list[Array]:
        """The arrays of all places that are known before a run; memory that is not given is new."""
        client = self.client
        arrays: list[Array] = []
        starts: dict[Buffer, tuple[Storage, int]] = {}
        for place in self._places:
            ref = place.ref
            memory = given.get(ref.buffer)
            if memory is not None:
                arrays.append(self._view(ref, *memory))
            elif place.given is not None:
                array = inputs[place.given]
                entry = self.program.inputs[place.given]
                if entry is ref or entry == ref:
                    arrays.append(array)
                    continue
                if ref.buffer not in starts:
                    starts[ref.buffer] = (client.storage(array), self._start(entry, array))
                arrays.append(self._view(ref, *starts[ref.buffer]))
            elif ref.buffer in self._made:
                arrays.append(None)
            elif place.first is None and ref.is_whole:
                arrays.append(client.empty(ref.shape, ref.dtype))
            else:
                first = None if place.first is None else arrays[place.first]
                if first is None:
                    first = client.empty((max(ref.buffer.nbytes, 1),), _BYTES)
                arrays.append(client.wrap(client.storage(first), ref.layout, ref.dtype))
        return arrays

    def _start(self, ref: Ref, array: Array) -> int:
        """Where the recorded buffer would begin in the memory of an array that takes the place of a reference."""
        layout = self.client.layout(array)
        return (layout.offset - ref.layout.offset) * ref.dtype.itemsize

    def _take(self, step: _Step, arrays: list[Array]) -> None:
        operands = step.operands
        if step.read_late:
            operands = operands.copy()
            for position, number in step.read_late:
                operands[position] = arrays[number]
        results = step.results
        if step.write_late:
            results = results.copy()
            for position, number in step.write_late:
                results[position] = arrays[number]
        made = step.run(operands, results)
        if made is not None:
            self._keep(step, made, arrays)

    def _keep(self, step: _Step, made: Sequence[Array], arrays: list[Array]) -> None:
        """Put the arrays that a step has made where later steps look for them."""
        client = self.client
        for position, array in step.copied:
            client.assign(array, made[position])
        for position, ref in step.made:
            array = made[position]
            alike = client.layout(array) == ref.layout
            for number in self._by_buffer[ref.buffer]:
                other = self._places[number].ref
                if alike and other == ref:
                    arrays[number] = array
                else:
                    arrays[number] = client.wrap(client.storage(array), other.layout, other.dtype)

    # -------------------------------------------------------------------- bind
    def bind(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> Bound:
        """The program on given memory, ready to be launched."""
        given: dict[Buffer, tuple[Storage, int]] = {}
        for ref, array in zip(self.program.outputs, outputs, strict=True):
            buffer = ref.buffer
            if buffer.role is Role.TEMPORARY and buffer not in self._made and buffer not in given:
                memory = self._memory_of(ref, array)
                if memory is not None:
                    given[buffer] = memory
        return Bound(self, self._arrays(inputs, given), outputs)

    def _memory_of(self, ref: Ref, array: Array) -> tuple[Storage, int] | None:
        """The memory of an output's array, if the program can have the whole buffer of the output there."""
        client = self.client
        layout = client.layout(array)
        storage = client.storage(array)
        start = self._start(ref, array)
        if (
            layout.strides != ref.layout.strides
            or layout.has_internal_overlap
            or not client.is_writable(array)
            or not 0 <= start <= storage.size - ref.buffer.nbytes
        ):
            return None
        return storage, start


class Bound:
    """A replay on given memory.

    Parameters
    ----------
    replay : Replay
        What is run.
    arrays : list of native arrays
        The arrays of its places, None for those that steps make.
    outputs : sequence of native arrays
        Where results go.
    """

    def __init__(self, replay: Replay, arrays: list[Array], outputs: Sequence[Array]) -> None:
        self._replay = replay
        self._arrays = arrays
        known = [array is not None for array in arrays]
        self._steps = [step.bound(arrays, known) for step in replay._steps]
        self._copies: list[tuple[_Result, Array]] = []
        client = replay.client
        for result, target in zip(replay._results, outputs, strict=True):
            array = result.array if result.number is None else arrays[result.number]
            if array is None or not _same_place(client, array, target):
                self._copies.append((result, target))

    def launch(self) -> None:
        """Run the program once."""
        replay = self._replay
        client = replay.client
        with replay._lock:
            arrays = self._arrays.copy()
            if replay._restored:
                replay._restore()
            for step in self._steps:
                replay._take(step, arrays)
            for result, target in self._copies:
                array = result.array if result.number is None else arrays[result.number]
                client.assign(target, array)


class _Place(NamedTuple):
    """A reference that is bound for each run.

    Attributes
    ----------
    ref : Ref
        The reference.
    given : int or None
        The input in whose memory it lies.
    first : int or None
        The first place of the same buffer, if it is not that.
    """

    ref: Ref
    given: int | None
    first: int | None


class _Result(NamedTuple):
    """An output: the number of its place, or its array, and whether others share its memory."""

    number: int | None
    array: Array
    shared: bool


class _Step:
    """A node made ready: what is known of its arrays beforehand, and what is bound for each run."""

    __slots__ = ("copied", "made", "operands", "read_late", "results", "run", "write_late")

    def __init__(self, run: Run) -> None:
        self.run = run
        self.operands: list[Any] = []
        self.results: list[Any] = []
        self.read_late: list[tuple[int, int]] = []
        self.write_late: list[tuple[int, int]] = []
        self.copied: list[tuple[int, Array]] = []
        self.made: list[tuple[int, Ref]] = []

    def bound(self, arrays: list[Array], known: list[bool]) -> _Step:
        """The step with the arrays that are known in their places."""
        step = _Step(self.run)
        step.operands, step.results = self.operands.copy(), self.results.copy()
        step.copied, step.made = self.copied, self.made
        for late, bound, still in (
            (self.read_late, step.operands, step.read_late),
            (self.write_late, step.results, step.write_late),
        ):
            for position, number in late:
                bound[position] = arrays[number]
                if not known[number]:
                    still.append((position, number))
        return step


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
        self._bound = replay.bind(inputs, outputs)

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
