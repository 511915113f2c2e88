"""CUDA graphs of programs: what a program queues, taken down from a stream once and launched as a whole.

A program on given memory is done step by step when it is launched for the first time, which loads all kernels. The second
launch takes it down: steps are queued on a stream that only captures, and what was captured becomes a CUDA graph. Steps
in which the host has a part, since it reads what the device found or since CuPy's libraries refuse to be captured, stay
calls between such graphs.
"""

from __future__ import annotations

import contextlib
import copy
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from numr.errors import OutOfMemoryError
from numr.runtime.caching import size_class
from numr.runtime.client import RuntimeClient
from numr.runtime.cuda import driver
from numr.runtime.cuda.memory import GRANULARITY
from numr.runtime.graph import Graph
from numr.runtime.graphs.steps import run_of

if TYPE_CHECKING:
    from numr.ir.graph import Node
    from numr.runtime.cuda.client import CudaClient
    from numr.runtime.cuda.context import DeviceContext
    from numr.runtime.cuda.memory import CudaAllocator
    from numr.runtime.device import Device
    from numr.runtime.graphs.prepared import Replay, Result
    from numr.runtime.graphs.replay import Bound
    from numr.runtime.graphs.steps import Step

__all__ = ["Capturing", "CudaGraph", "Graphs"]

Array = Any

#: Steps that a jitted program has at least for each input and output that is copied, and in all.
_STEPS: Final = 2, 4
#: Bytes of inputs and outputs that are copied, at most.
_STAGED: Final = 4 << 20
#: How often taking down may fail before it is given up.
_FAILURES: Final = 2
#: Families in which the host has a part, or whose work uses memory that is not the graph's: plans of cuFFT have theirs.
_ON_HOST: Final = frozenset(
    {
        "fft",
        "gather",
        "scatter",
        "matmul",
        "cholesky",
        "qr",
        "eigh",
        "eigvalsh",
        "eig",
        "eigvals",
        "svd",
        "svdvals",
        "solve",
        "inv",
        "slogdet",
        "det",
    }
)

_OBJECT = np.dtype(object)


class _Lent:
    """Memory of an array of a graph, which serves other arrays of the graph when it dies."""

    __slots__ = ("free", "memory")

    def __init__(self, memory: Any, free: list[Any]) -> None:
        self.memory = memory
        self.free = free

    def __del__(self) -> None:
        self.free.append(self.memory)


class GraphMemory:
    """Memory that the work of one graph uses, and nobody else as long as the graph exists.

    Stands in for the allocator while the graph is taken down.

    Parameters
    ----------
    allocator : CudaAllocator
        What it is taken from.
    number : int
        Of the device.
    """

    def __init__(self, allocator: CudaAllocator, number: int) -> None:
        self._allocator = allocator
        self._number = number
        self._free: dict[int, list[Any]] = {}
        memory = driver.library().cuda.memory
        self._unowned: Any = memory.UnownedMemory
        self._pointer: Any = memory.MemoryPointer
        #: :meth:`pointer`, as one object, so that it can be compared by identity.
        self.hook: Callable[[int], Any] | None = self.pointer

    def pointer(self, size: int) -> Any:
        """Memory for a CuPy array, as CuPy's allocators give it."""
        if not size:
            return self._allocator.pointer(0)
        free = self._free.setdefault(size_class(size, GRANULARITY), [])
        memory = free.pop() if free else self._allocator.pointer(size_class(size, GRANULARITY))
        owner: np.ndarray[Any, Any] = np.ndarray((), _OBJECT)
        owner[()] = _Lent(memory, free)
        return self._pointer(self._unowned(memory.ptr, size, owner, self._number), 0)


class Capturing:
    """A client whose work is captured instead of done.

    Parameters
    ----------
    client : CudaClient
        The real client, whose kernels it shares.

    Attributes
    ----------
    client : CudaClient
        The client that captures. Its arrays are the same kind of arrays.
    lock : threading.Lock
        Held by who takes down a graph.
    """

    def __init__(self, client: CudaClient) -> None:
        real = client.context
        assert real.tickets  # shared from here on
        self.lock = threading.Lock()
        self._allocator = real.allocator
        self._context: DeviceContext = copy.copy(real)
        self._context.movers = {}
        self.client = type(client)(client.device)
        self.client.context = self._context
        self.client._fused = client._fused
        self.client._fused_reductions = client._fused_reductions
        self.client._fused_rows = client._fused_rows
        self._stream: Any = None

    def open(self) -> GraphMemory:
        """Give the client memory for a new graph."""
        memory = GraphMemory(self._allocator, self._context.number)
        self._context.allocator = memory  # type: ignore[assignment]
        return memory

    def close(self) -> None:
        """Take the memory away, so that it lives as long as the graph."""
        memory: Any = self._context.allocator
        self._context.allocator = self._allocator
        memory.hook = None  # which refers to the memory itself

    def begin(self) -> None:
        """Capture what the client queues from here on."""
        with self._context.current():
            if self._stream is None:
                # The default stream waits for other streams, and must not for one that captures.
                self._stream = driver.library().cuda.Stream(non_blocking=True)
                self._context._queue_on(self._stream)
            self._stream.begin_capture()

    def end(self) -> Any:
        """What was captured since :meth:`begin`, as a graph of CuPy's."""
        with self._context.current():
            return self._stream.end_capture()

    def abort(self) -> None:
        """End a capture that failed."""
        runtime = driver.library().cuda.runtime
        # The error says again that the capture is invalid; the stream captures no more.
        with self._context.current(), contextlib.suppress(runtime.CUDARuntimeError):
            self._stream.end_capture()
        self._stream = None


#: A part of a graph: does its work again.
_Part = Callable[[], None]


class CudaGraph(Graph):
    """A program on given memory, launched as CUDA graphs.

    Parameters
    ----------
    client : CudaClient
        The device.
    bound : Bound
        The program on its memory.

    Attributes
    ----------
    captured : int or None
        How many CUDA graphs a launch consists of; None before they were taken down.
    """

    __slots__ = (
        "_arrays",
        "_client",
        "_copies",
        "_failures",
        "_memory",
        "_nodes",
        "_parts",
        "_replay",
        "_runs",
        "_steps",
        "captured",
    )

    def __init__(self, client: CudaClient, bound: Bound) -> None:
        super().__init__()
        self._client = client
        self._replay: Replay = bound.replay
        self._nodes: Sequence[Node] = bound.replay.program.nodes
        self._steps: Sequence[Step] = bound.steps
        self._arrays = bound.arrays
        self._copies: Sequence[tuple[Result, Array]] = bound.copies
        self._parts: list[_Part] | None = None
        self._memory: GraphMemory | None = None
        self._failures = 0
        self._runs = 0
        self.captured: int | None = None

    def is_replay_capable(self) -> bool:
        """Return True."""
        return True

    def launch(self) -> None:
        """Run the program once."""
        parts = self._parts
        if parts is not None:
            for part in parts:
                part()
            return
        self._runs += 1
        if self._runs > 1 and self._failures < _FAILURES:
            capturing = self._client.capturing()
            if capturing.lock.acquire(blocking=False):
                try:
                    self._take_down(capturing)
                finally:
                    capturing.lock.release()
                return
        self._finish(self._arrays.copy(), -1)

    def destroy(self) -> None:
        """Give the memory back, after the graphs that use it are gone."""
        self._parts = None
        self._memory = None

    # ------------------------------------------------------------ step by step
    def _finish(self, arrays: list[Array], start: int) -> None:
        """Do the program step by step, from a step on; -1 stands for what comes before the first."""
        replay, client = self._replay, self._client
        if start < 0:
            for target, pristine in replay.restored:
                client.assign(target, pristine)
        for step in self._steps[max(start, 0) :]:
            made = step.run(*step.given(arrays))
            if made is not None:
                replay.keep(step, made, arrays)
            for number in step.ending:
                arrays[number] = None
        for result, target in self._copies:
            client.assign(target, self._found(result, arrays))

    def _found(self, result: Result, arrays: list[Array]) -> Array:
        return result.array if result.number is None else arrays[result.number]

    # -------------------------------------------------------------- taking down
    def _take_down(self, capturing: Capturing) -> None:
        """Run the program once, by capturing it and launching what was captured."""
        taker = _Taker(self._client, capturing)
        arrays = self._arrays.copy()
        # What the arrays were, and the step that comes next, when the last part was done.
        done, start = arrays.copy(), -1
        memory = capturing.open()
        try:
            try:
                for position in range(-1, len(self._steps) + 1):
                    if not self._is_on_host(position):
                        self._capture(taker, position, arrays)
                        continue
                    taker.cut()
                    done, start = arrays.copy(), position
                    self._call(taker, position, arrays)
                    done, start = arrays.copy(), position + 1
                taker.cut()
            finally:
                taker.abort()
                capturing.close()
        except (RuntimeError, OutOfMemoryError) as error:
            self._failures += 1
            if self._failures == _FAILURES:
                warnings.warn(
                    f"a graph on {self._client.device} is launched step by step, since CUDA could not capture it: "
                    f"{error}",
                    RuntimeWarning,
                    stacklevel=2,
                )
            del arrays
            self._finish(done, start)
            return
        self._memory = memory
        self.captured = taker.captured
        self._parts = taker.parts

    def _is_on_host(self, position: int) -> bool:
        return 0 <= position < len(self._steps) and self._nodes[position].family in _ON_HOST

    def _capture(self, taker: _Taker, position: int, arrays: list[Array]) -> None:
        """Capture a step: -1 stands for what comes before the first, and their number for what comes after all."""
        if position < 0:
            for target, pristine in self._replay.restored:
                taker.open().assign(target, pristine)
            return
        if position == len(self._steps):
            for result, target in self._copies:
                taker.open().assign(target, self._found(result, arrays))
            return
        client = taker.open()
        step = self._steps[position]
        made = run_of(client, self._nodes[position])(*step.given(arrays))
        if made is not None:
            self._replay.keep(step, made, arrays, client)
        for number in step.ending:
            arrays[number] = None

    def _call(self, taker: _Taker, position: int, arrays: list[Array]) -> None:
        """Do a step, and note it as a call."""
        step = self._steps[position]
        operands, results = step.given(arrays)
        made = step.run(operands, results)
        placed: Sequence[tuple[int, Array]] = ()
        if made is not None:
            placed = self._replay.keep(step, made, arrays)
        taker.parts.append(_call_of(self._client, step, operands, results, placed))
        for number in step.ending:
            arrays[number] = None


def _call_of(
    client: CudaClient,
    step: Step,
    operands: list[Any],
    results: list[Array],
    placed: Sequence[tuple[int, Array]],
) -> _Part:
    """A step that runs again. What it makes is copied to where it was at first: later graphs look for it there."""
    run = step.run

    def call() -> None:
        made = run(operands, results)
        if made is not None:
            for position, target in placed:
                client.assign(target, made[position])

    return call


class _Taker:
    """Puts the parts of a graph together."""

    def __init__(self, client: CudaClient, capturing: Capturing) -> None:
        self._context = client.context
        self._capturing = capturing
        self._is_open = False
        self.parts: list[_Part] = []
        self.captured = 0

    def open(self) -> CudaClient:
        """The client whose work is captured from here on."""
        if not self._is_open:
            self._capturing.begin()
            self._is_open = True
        return self._capturing.client

    def cut(self) -> None:
        """End capturing, and launch what was captured."""
        if not self._is_open:
            return
        graph = self._capturing.end()
        self._is_open = False
        context = self._context

        def launch() -> None:
            with context.current():
                graph.launch(context.stream)

        launch()
        self.captured += 1
        self.parts.append(launch)

    def abort(self) -> None:
        """End a capture that is under way."""
        if self._is_open:
            self._is_open = False
            self._capturing.abort()


class Graphs(RuntimeClient[Any]):
    """A client whose captured programs become CUDA graphs."""

    context: DeviceContext

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._capturing: Capturing | None = None
        self._capturing_lock = threading.Lock()

    def capturing(self) -> Capturing:
        """The client's double that captures what it is asked to do."""
        with self._capturing_lock:
            if self._capturing is None:
                self._capturing = Capturing(self)  # type: ignore[arg-type]
            return self._capturing

    def graph_of(self, bound: Bound) -> CudaGraph | None:
        if not bound.steps and not bound.copies:
            return None
        return CudaGraph(self, bound)  # type: ignore[arg-type]

    def stages(self, steps: int, arrays: int, nbytes: int) -> bool:
        # A copy takes the host as long as a step does, and the device hardly any time.
        each, all_of_them = _STEPS
        return steps >= all_of_them + each * arrays and nbytes <= _STAGED
