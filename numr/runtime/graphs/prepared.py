"""``Replay``: a program made ready to run again and again on a client.

Each node becomes a step that writes into memory which is known beforehand where its family can: the program's own
inputs and outputs, captured tensors, constants and one arena for everything in between. Families that make arrays of
their own, such as ``matmul`` and ``sort``, leave theirs in an environment that lives for one run.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from numr import dtypes as dt
from numr.ir.graph import Buffer, Node, Operand, Program, Ref, Role
from numr.ir.passes import plan_memory
from numr.layout import Layout
from numr.runtime.client import RuntimeClient
from numr.runtime.graphs.recording import Recorder
from numr.runtime.graphs.steps import Step, run_of, writes_in_place
from numr.runtime.graphs.taping import Taped
from numr.runtime.storage import Storage

__all__ = ["Replay", "Result"]

Array = Any

_BYTES: Final = dt.uint8
#: Tapes that a replay keeps, one for each way in which its inputs start in their memory.
_TAPES: Final = 4


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
    steps : list of Step
        What is done, in order.
    results : list of Result
        How the outputs are handed out.
    restored : list of (array, array)
        What a run begins with: constants that the program writes into, and what they were.
    staged : callable or None
        Runs the program on memory of its own, and copies inputs and outputs; see ``replay.stage``.
    lock : threading.Lock
        Held during a run: the arena is one for all.
    """

    def __init__(self, client: RuntimeClient[Any], recorder: Recorder, program: Program) -> None:
        self.client = client
        self.program = program
        self.lock = threading.Lock()
        self._arena_plan = plan_memory(program, writes_in_place, apart=client.separate_memory)
        self.nbytes = self._arena_plan.size
        written = {ref.buffer for node in program.nodes for ref in node.results}
        #: Memory that is the same for all runs.
        self._storages: dict[Buffer, tuple[Storage, int]] = {}
        self._kept: list[Any] = []
        self.restored: list[tuple[Array, Array]] = []
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
        self.steps = [self._step(node) for node in program.nodes]
        self.results = [self._result(ref) for ref in program.outputs]
        self._mark_ends()
        self.staged: Callable[[Sequence[Array]], list[Array]] | None = None
        self._tapes_runs = type(client).tape is not RuntimeClient.tape
        self._tapes: OrderedDict[Any, _TapedRun] = OrderedDict()
        self._last_key: Any = None

    # ------------------------------------------------------------------ memory
    def _prepare_memory(self, recorder: Recorder, written: set[Buffer]) -> None:
        client = self.client
        blocks = [client.storage(self._bytes(size)) for size in self._arena_plan.blocks]
        for buffer in self.program.buffers:
            if buffer in self._arena_plan.places:
                block, start = self._arena_plan.places[buffer]
                storage = blocks[block]
                if client.separate_memory:
                    storage = Storage.start_of(storage, buffer.nbytes)
                self._storages[buffer] = (storage, start)
            elif buffer.role is Role.EXTERNAL:
                self._hold(buffer, recorder.memory[buffer])
            elif buffer.role is Role.CONSTANT:
                memory, pristine = recorder.memory[buffer], recorder.pristine[buffer]
                self._hold(buffer, memory)
                # The function may have changed it while it was recorded.
                client.assign(memory, pristine)
                if buffer in written:
                    self.restored.append((memory, pristine))

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
    def _step(self, node: Node) -> Step:
        in_place = writes_in_place(node)
        step = Step(run_of(self.client, node))
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

    def _result(self, ref: Ref) -> Result:
        """How an output is handed out: where it is, and whether that is memory of its own."""
        shared = (
            ref.buffer in self._storages
            or ref.buffer.role is not Role.TEMPORARY
            or ref.layout.has_internal_overlap
            or any(ref.buffer is other.buffer for other in self._earlier_outputs(ref))
        )
        if ref.buffer in self._storages:
            return Result(None, self._view(ref, *self._storages[ref.buffer]), shared)
        return Result(self._number(ref), None, shared)

    def _mark_ends(self) -> None:
        """Tell the steps which arrays that steps have made nobody needs after them, and which make outputs."""
        kept = {ref.buffer for ref in self.program.outputs}
        last: dict[Buffer, Step] = {}
        for step in self.steps:
            for _, ref in step.made:
                last[ref.buffer] = step
                step.lasting |= ref.buffer in kept
            for _, number in (*step.read_late, *step.write_late):
                last[self._places[number].ref.buffer] = step
        for buffer, step in last.items():
            if buffer in self._made and buffer not in kept:
                step.ending += self._by_buffer[buffer]

    def _earlier_outputs(self, ref: Ref) -> Sequence[Ref]:
        for position, other in enumerate(self.program.outputs):
            if other is ref:
                return self.program.outputs[:position]
        return ()

    # --------------------------------------------------------------------- run
    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Run the program once, on inputs of the recorded shapes, dtypes and strides; the outputs are new arrays."""
        with self.lock:
            if self.staged is not None:
                return self.staged(inputs)
            if not self._tapes_runs:
                return self._run(self._arrays(inputs, {}), None)
            key = self._key_of(inputs)
            known = self._tapes.get(key)
            if known is not None and known.is_valid():
                results = known.run(inputs)
                if results is not None:
                    return results
                return self._run(self._arrays(inputs, {}), None)
            # Not for inputs that start elsewhere each time.
            wanted = known is not None or len(self._tapes) < _TAPES or key == self._last_key
            self._last_key = key
            taped = Taped.new(self.client) if wanted else None
            if taped is None:
                return self._run(self._arrays(inputs, {}), None)
            with taped.first_run():
                results = self._run(self._arrays(inputs, {}), taped)
                run = _TapedRun(self.client, taped, inputs, results)
                taped.finish(run.moving)
            self._tapes[key] = run
            if len(self._tapes) > _TAPES:
                self._tapes.popitem(last=False)
            return results

    def _key_of(self, inputs: Sequence[Array]) -> Any:
        """What a tape depends on, besides what is recorded of the inputs."""
        client = self.client
        return tuple([(client.layout(x).offset, client.storage(x).size) for x in inputs])

    def _run(self, arrays: list[Array], taped: Taped | None) -> list[Array]:
        self.do(self.steps, arrays, taped)
        copy = self.client.copy if taped is None else taped.copy
        results = []
        for result in self.results:
            array = result.array if result.number is None else arrays[result.number]
            results.append(copy(array) if result.shared else array)
        return results

    def do(self, steps: Sequence[Step], arrays: list[Array], taped: Taped | None) -> None:
        """Do all steps of the program, for the first time if that is taped."""
        assign = self.client.assign if taped is None else taped.assign
        for target, pristine in self.restored:
            assign(target, pristine)
        for step in steps:
            operands, results = step.given(arrays)
            if taped is None:
                made = step.run(operands, results)
                if made is not None:
                    self.keep(step, made, arrays)
            else:
                keep = partial(self.keep, step, arrays=arrays)
                taped.take(step, operands, results, keep)
            for number in step.ending:
                arrays[number] = None

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

    def keep(
        self,
        step: Step,
        made: Sequence[Array],
        arrays: list[Array],
        through: RuntimeClient[Any] | None = None,
    ) -> list[tuple[int, Array]]:
        """Put the arrays that a step has made where later steps look for them.

        Parameters
        ----------
        step : Step
            The step.
        made : sequence of native arrays
            What it has made.
        arrays : list
            The arrays of all places, which are changed.
        through : RuntimeClient, optional
            Who copies, where that is not the replay's client.

        Returns
        -------
        list of (int, array)
            Positions of results, and the arrays in which they are found then.
        """
        client = self.client
        for position, array in step.copied:
            (through or client).assign(array, made[position])
        for position, ref in step.made:
            array = made[position]
            # A new array lies the same way in each run; its strides tell whether it does.
            alike = step.strides.get(position) == array.strides
            if not alike and client.layout(array) == ref.layout:
                step.strides[position] = array.strides
                alike = True
            for number in self._by_buffer[ref.buffer]:
                other = self._places[number].ref
                if alike and (other is ref or other == ref):
                    arrays[number] = array
                else:
                    arrays[number] = client.wrap(client.storage(array), other.layout, other.dtype)
        return [*step.copied, *((position, made[position]) for position, _ in step.made)]

    # -------------------------------------------------------------------- bind
    def arrays_of(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> list[Array]:
        """The arrays of all places, where the program works on given memory; None for those that steps make."""
        given: dict[Buffer, tuple[Storage, int]] = {}
        for ref, array in zip(self.program.outputs, outputs, strict=True):
            buffer = ref.buffer
            if buffer.role is Role.TEMPORARY and buffer not in self._made and buffer not in given:
                memory = self._memory_of(ref, array)
                if memory is not None:
                    given[buffer] = memory
        return self._arrays(inputs, given)

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


class _TapedRun:
    """A run on inputs that are new each time, and into new outputs, taken down.

    Parameters
    ----------
    client : RuntimeClient
        The device.
    taped : Taped
        The first run.
    inputs, results : sequence of native arrays
        Its inputs and outputs.

    Attributes
    ----------
    moving : set of int
        Handles of the memory of these.
    """

    def __init__(
        self,
        client: RuntimeClient[Any],
        taped: Taped,
        inputs: Sequence[Array],
        results: Sequence[Array],
    ) -> None:
        self._client = client
        self._taped = taped
        self._inputs = [client.storage(array).handle for array in inputs]
        storages = [client.storage(array) for array in results]
        self._results = [
            (storage.handle, storage.size, client.layout(array), array.dtype)
            for storage, array in zip(storages, results, strict=True)
        ]
        self.moving = {*self._inputs, *(storage.handle for storage in storages)}

    def is_valid(self) -> bool:
        """Whether it can be run."""
        return self._taped.is_valid()

    def run(self, inputs: Sequence[Array]) -> list[Array] | None:
        """Run it on other inputs that lie as those of the first run; None if one is a captured tensor."""
        client = self._client
        storages = [client.storage(array) for array in inputs]
        if not self._taped.takes(storages):
            return None
        memory = dict(zip(self._inputs, storages, strict=True))
        results = []
        for handle, size, layout, dtype in self._results:
            storage = memory[handle] = client.storage(client.empty((size,), _BYTES))
            results.append(client.wrap(storage, layout, dtype))
        self._taped.run(memory)
        return results


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


class Result(NamedTuple):
    """An output: the number of its place, or its array, and whether others share its memory."""

    number: int | None
    array: Array
    shared: bool
