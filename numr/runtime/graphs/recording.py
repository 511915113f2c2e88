"""``Recorder``: a client that runs what it is asked for and writes it down as a program.

While a function is captured, the device's client has a recorder, and the choke point sends it the calls of the thread
that captures. Each family runs on the real client, so that the function sees values of the right shape and dtype, and
leaves a node. All arrays that are met are kept until the recording ends: their memory stays where it is, so an
address stands for one buffer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from numr.dtypes import DType, Kind, Scalar, scalar_type_of
from numr.errors import CaptureError
from numr.ir.graph import (
    CONVERT,
    ELEMENTWISE,
    FULL,
    REDUCE,
    Buffer,
    Node,
    Operand,
    Program,
    Ref,
    Role,
)
from numr.ir.ops import Op, Reduction
from numr.layout import Layout
from numr.runtime.client import Loop, RuntimeClient

__all__ = ["Recorder", "Slot", "recording"]


class Slot(int):
    """In a node's attributes: the place of an argument that is an array, by its number among the operands."""

    def __repr__(self) -> str:
        return f"#{int(self)}"


class Recorder(RuntimeClient[Any]):
    """Runs families on a client and records them.

    Parameters
    ----------
    client : RuntimeClient
        The real client.
    inputs : sequence of native arrays
        The program's inputs.

    Attributes
    ----------
    program : Program
        What was recorded so far; its outputs are set by :meth:`finish`.
    memory : dict of Buffer to native array
        An array in the memory of each buffer.
    pristine : dict of Buffer to native array
        What constants were when they came to the device.
    """

    def __init__(self, client: RuntimeClient[Any], inputs: Sequence[Any]) -> None:
        super().__init__(client.device)
        self.real = client
        self.runtime = client.runtime  # type: ignore[misc]  # of this client alone
        self.host_memory = client.host_memory  # type: ignore[misc]
        self.dtypes = client.dtypes
        self.defaults = client.defaults
        self.program = Program()
        self.memory: dict[Buffer, Any] = {}
        self.pristine: dict[Buffer, Any] = {}
        self._thread = threading.get_ident()
        self._by_handle: dict[int, Buffer] = {}
        self._kept: list[Any] = []
        for array in inputs:
            self._enter(array, Role.INPUT)
        self.program.inputs = tuple(self.ref(array) for array in inputs)

    # ----------------------------------------------------------------- buffers
    def here(self) -> RuntimeClient[Any]:
        """Who serves the calling thread: the recorder in the one that captures, else the real client."""
        return self if threading.get_ident() == self._thread else self.real

    def _enter(self, array: Any, role: Role) -> Buffer:
        storage = self.real.storage(array)
        self._kept.append(array)
        known = self._by_handle.get(storage.handle) if array.size else None
        if known is not None:
            return known
        buffer = Buffer(len(self.memory), storage.size if array.size else 0, role)
        self.memory[buffer] = array
        if array.size:
            self._by_handle[storage.handle] = buffer
        return buffer

    def ref(self, array: Any) -> Ref:
        """Where an array's elements lie; memory that was not met before belongs to a captured tensor."""
        return Ref(self._enter(array, Role.EXTERNAL), self.real.layout(array), array.dtype)

    def _fresh(self, array: Any) -> Ref:
        """A result that the real client has just made."""
        before = len(self.memory)
        buffer = self._enter(array, Role.TEMPORARY)
        if buffer.number < before:
            raise CaptureError(
                f"capture: an operation on {self.device} gave memory that exists already; this is a fault in numr."
            )
        return Ref(buffer, self.real.layout(array), array.dtype)

    def finish(self, outputs: Sequence[Any]) -> Program:
        """Set the program's outputs and return it."""
        self.program.outputs = tuple(self.ref(array) for array in outputs)
        return self.program

    # ------------------------------------------------------------------- nodes
    def _add(
        self,
        family: str,
        operands: Sequence[Operand],
        results: Sequence[Ref],
        attributes: tuple[Any, ...] = (),
        *,
        fresh: bool = True,
    ) -> None:
        self.program.nodes.append(Node(family, tuple(operands), tuple(results), attributes, fresh))

    def _operand(self, value: Any) -> Operand:
        return value if scalar_type_of(value) is not None else self.ref(value)

    def _call(self, family: str, *arguments: Any) -> Any:
        """Run a family and record it as a call whose arrays are operands."""
        operands: list[Operand] = []
        attributes = tuple(_with_slots(x, operands, self.ref) for x in arguments)
        result = getattr(self.real, family)(*arguments)
        made = result if isinstance(result, tuple) else (result,)
        self._add(family, operands, [self._fresh(array) for array in made], attributes)
        return result

    def _refuse(self, what: str) -> NoReturn:
        raise CaptureError(
            f"{what} while a graph is captured on {self.device}: a graph replays the same work whatever the values "
            "are. Do it outside the captured function."
        )

    # ------------------------------------------------------------------ device
    @property
    def allocator(self) -> Any:
        return self.real.allocator

    def synchronize(self) -> None:
        self.real.synchronize()

    def compute_stream_handle(self) -> int | None:
        return self.real.compute_stream_handle()

    def on_host(self, name: str) -> None:
        self._refuse(f"{name} runs on the host")

    def require_dtype(self, dtype: DType, function: str, *, exact: bool = False) -> DType:
        return self.real.require_dtype(dtype, function, exact=exact)

    # --------------------------------------------------- storage and host data
    def storage(self, array: Any) -> Any:
        return self.real.storage(array)

    def layout(self, array: Any) -> Layout:
        return self.real.layout(array)

    def wrap(self, storage: Any, layout: Layout, dtype: DType) -> Any:
        return self.real.wrap(storage, layout, dtype)

    def is_writable(self, array: Any) -> bool:
        return self.real.is_writable(array)

    def from_host(self, array: np.ndarray[Any, Any], *, copy: bool) -> Any:
        # A copy, since the caller may write into the host's memory before the graph is launched again.
        return self._constant(self.real.from_host(array, copy=True))

    def take_host(self, array: np.ndarray[Any, Any]) -> Any:
        return self.from_host(array, copy=True)

    def from_other(self, other: RuntimeClient[Any], array: Any) -> Any:
        return self._constant(self.real.from_other(other, array))

    def from_dlpack(self, producer: Any, copy: bool | None) -> Any:
        result = self.real.from_dlpack(producer, copy)
        if copy:
            return self._constant(result)
        self._enter(result, Role.EXTERNAL)
        return result

    def _constant(self, array: Any) -> Any:
        buffer = self._enter(array, Role.CONSTANT)
        # The function may write into it; each launch begins with what it was.
        self.pristine[buffer] = self.real.copy(array)
        return array

    def to_host(self, array: Any) -> NoReturn:
        self._refuse(f"a tensor of shape {array.shape} and dtype {array.dtype} was read")

    def to_dlpack(self, array: Any, *_: Any) -> NoReturn:
        self._refuse(f"a tensor of shape {array.shape} and dtype {array.dtype} was exported")

    def dlpack_device(self) -> tuple[Any, int]:
        return self.real.dlpack_device()

    # ------------------------------------------------------------------- views
    def index(self, array: Any, key: Any) -> Any:
        return self.real.index(array, key)

    def slice(self, array: Any, parts: Sequence[Any]) -> Any:
        return self.real.slice(array, parts)

    def permute(self, array: Any, axes: tuple[int, ...]) -> Any:
        return self.real.permute(array, axes)

    def broadcast(self, array: Any, shape: tuple[int, ...]) -> Any:
        return self.real.broadcast(array, shape)

    def diagonal(self, array: Any, offset: int, axis1: int, axis2: int) -> Any:
        return self.real.diagonal(array, offset, axis1, axis2)

    def reshape(self, array: Any, shape: tuple[int, ...]) -> Any:
        return self.real.reshape(array, shape)

    def bitcast(self, array: Any, dtype: DType) -> Any:
        return self.real.bitcast(array, dtype)

    # ---------------------------------------------------------------- creation
    def empty(self, shape: tuple[int, ...], dtype: DType) -> Any:
        # Elements are arbitrary, so that any will do; but each launch gives the same.
        return self.full(shape, 0, dtype)

    def full(self, shape: tuple[int, ...], value: Scalar, dtype: DType) -> Any:
        result = self.real.full(shape, value, dtype)
        self._add(FULL, [value], [self._fresh(result)])
        return result

    def iota(self, size: int, start: Scalar, step: Scalar, dtype: DType) -> Any:
        return self._call("iota", size, start, step, dtype)

    # ------------------------------------------------------------- elementwise
    def elementwise_loop(self, op: Op, kinds: tuple[Kind, ...]) -> Loop:
        prepared = self.real.elementwise_loop(op, kinds)
        signature = op.signature(kinds, self.defaults)

        def loop(*operands: Any) -> Any:
            result = prepared(*operands)
            given = [self._operand(x) for x in operands]
            self._add(ELEMENTWISE, given, [self._fresh(result)], (op, signature))
            return result

        return loop

    def elementwise_into(
        self, op: Op, kinds: tuple[Kind, ...], operands: tuple[Any, ...], target: Any
    ) -> None:
        signature = op.signature(kinds, self.defaults)
        given = [self._operand(x) for x in operands]
        self.real.elementwise_into(op, kinds, operands, target)
        self._add(ELEMENTWISE, given, [self.ref(target)], (op, signature), fresh=False)

    def cast(self, array: Any, dtype: DType) -> Any:
        source = self.ref(array)
        result = self.real.cast(array, dtype)
        self._add(CONVERT, [source], [self._fresh(result)])
        return result

    # -------------------------------------------------------------------- copy
    def copy(self, array: Any) -> Any:
        source = self.ref(array)
        result = self.real.copy(array)
        self._add(CONVERT, [source], [self._fresh(result)])
        return result

    def assign(self, target: Any, source: Any) -> None:
        given = self.ref(source)
        self.real.assign(target, source)
        self._add(CONVERT, [given], [self.ref(target)], fresh=False)

    def concat(self, arrays: Sequence[Any], axis: int) -> Any:
        return self._call("concat", list(arrays), axis)

    # -------------------------------------------------------------- reductions
    def reduce(
        self, kind: Reduction, array: Any, axes: tuple[int, ...], keepdims: bool, dtype: DType
    ) -> Any:
        source = self.ref(array)
        result = self.real.reduce(kind, array, axes, keepdims, dtype)
        self._add(REDUCE, [source], [self._fresh(result)], (kind, axes, keepdims, dtype))
        return result

    def squared_distances(
        self, array: Any, center: Any, axes: tuple[int, ...], keepdims: bool
    ) -> Any:
        if self.real.composes_distances(array, axes):
            # The parts of the composed form are recorded, and can be fused.
            return super().squared_distances(array, center, axes, keepdims)
        return self._call("squared_distances", array, center, axes, keepdims)

    def argreduce(self, kind: Reduction, array: Any, axis: int, keepdims: bool) -> Any:
        return self._call("argreduce", kind, array, axis, keepdims)

    def scan(self, kind: Reduction, array: Any, axis: int, dtype: DType) -> Any:
        return self._call("scan", kind, array, axis, dtype)

    # ------------------------------------------------------- gather and scatter
    def gather(self, array: Any, indices: Sequence[Any]) -> Any:
        return self._call("gather", array, list(indices))

    def scatter(self, array: Any, indices: Sequence[Any], values: Any) -> None:
        operands: list[Operand] = []
        arguments = (array, list(indices), values)
        attributes = tuple(_with_slots(x, operands, self.ref) for x in arguments)
        self.real.scatter(array, indices, values)
        self._add("scatter", operands, [self.ref(array)], attributes, fresh=False)

    def nonzero(self, array: Any) -> NoReturn:
        self._refuse(
            "the places of elements that are not zero were asked for, whose number depends on values,"
        )

    def compress(self, array: Any, mask: Any) -> NoReturn:
        self._refuse("elements were selected by a mask, whose number depends on values,")

    # ----------------------------------------------------- sorting and searching
    def sort(self, array: Any, axis: int, descending: bool) -> Any:
        return self._call("sort", array, axis, descending)

    def argsort(self, array: Any, axis: int, descending: bool) -> Any:
        return self._call("argsort", array, axis, descending)

    def searchsorted(self, sorted_array: Any, values: Any, side: str) -> Any:
        return self._call("searchsorted", sorted_array, values, side)

    # ---------------------------------------------------------- linear algebra
    def matmul(self, left: Any, right: Any) -> Any:
        return self._call("matmul", left, right)

    def fft(self, array: Any, kind: str, length: int) -> Any:
        return self._call("fft", array, kind, length)

    def cholesky(self, array: Any) -> Any:
        return self._call("cholesky", array)

    def qr(self, array: Any, complete: bool) -> Any:
        return self._call("qr", array, complete)

    def eigh(self, array: Any) -> Any:
        return self._call("eigh", array)

    def eigvalsh(self, array: Any) -> Any:
        return self._call("eigvalsh", array)

    def eig(self, array: Any) -> Any:
        return self._call("eig", array)

    def eigvals(self, array: Any) -> Any:
        return self._call("eigvals", array)

    def svd(self, array: Any, full_matrices: bool) -> Any:
        return self._call("svd", array, full_matrices)

    def svdvals(self, array: Any) -> Any:
        return self._call("svdvals", array)

    def solve(self, left: Any, right: Any) -> Any:
        return self._call("solve", left, right)

    def inv(self, array: Any) -> Any:
        return self._call("inv", array)

    def slogdet(self, array: Any) -> Any:
        return self._call("slogdet", array)

    def det(self, array: Any) -> Any:
        return self._call("det", array)


def _with_slots(argument: Any, operands: list[Operand], ref: Callable[[Any], Ref]) -> Any:
    """An argument of a family with its arrays made operands, and slots in their place."""
    if isinstance(argument, list):
        return tuple(_with_slots(x, operands, ref) for x in argument)
    if not hasattr(argument, "dtype") or scalar_type_of(argument) is not None:
        return argument
    operands.append(ref(argument))
    return Slot(len(operands) - 1)


class _NoLoops(dict[tuple[Any, ...], Loop]):
    """Stands in for a client's loops while it is recorded, so that all threads come to the choke point."""

    def __init__(self, loops: dict[tuple[Any, ...], Loop]) -> None:
        self._loops = loops

    def get(self, key: Any, default: Any = None) -> Any:
        return None

    def __setitem__(self, key: Any, loop: Loop) -> None:
        """Keep nothing."""

    def clear(self) -> None:
        self._loops.clear()


@contextmanager
def recording(client: RuntimeClient[Any], inputs: Sequence[Any]) -> Iterator[Recorder]:
    """Record what the calling thread does on a client.

    Raises
    ------
    CaptureError
        If the client is being recorded already.
    """
    with _starting:
        if client.recorder is not None:
            raise CaptureError(
                f"capture: a graph is being captured on {client.device} already; captures do not nest and run one at "
                "a time. Call the inner function directly: its work becomes part of the outer graph."
            )
        recorder = Recorder(client, inputs)
        loops = client.loops
        client.loops = _NoLoops(loops)
        client.recorder = recorder
    try:
        yield recorder
    finally:
        client.recorder = None
        client.loops = loops


_starting = threading.Lock()
