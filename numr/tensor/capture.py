"""``capture`` and ``jit``: array-API code recorded once and replayed."""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from numr.errors import CaptureError, DeviceMismatch, ShapeError
from numr.ir.graph import FUSED, FUSED_REDUCE, FUSED_ROWS, Program
from numr.runtime.client import RuntimeClient
from numr.runtime.graph import CapturedGraph
from numr.runtime.graphs.recording import recording
from numr.runtime.graphs.replay import Replay, ReplayGraph, optimized, stage
from numr.tensor.core import Tensor, wrap
from numr.tensor.dispatch import call

__all__ = ["CacheInfo", "TensorGraph", "capture", "jit"]


class TensorGraph(CapturedGraph[Tensor]):
    """What :func:`capture` returns: a graph with its tensors, which can be called like the function.

    Attributes
    ----------
    program : str
        The work as recorded and optimised, one node a line.
    """

    __slots__ = ("_replay", "_replayed", "_structure")

    def __init__(
        self,
        replay: Replay,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        structure: Any,
    ) -> None:
        graph = ReplayGraph(replay, [x._data for x in inputs], [x._data for x in outputs])
        super().__init__(graph, inputs, outputs, replay)
        self._replay = replay
        self._replayed = graph
        self._structure = structure

    @property
    def nodes(self) -> tuple[str, ...]:
        """What a launch does, one entry a kernel or call of a library."""
        return tuple(node.title for node in self._replay.program.nodes)

    @property
    def nbytes(self) -> int:
        """Bytes of the memory that the graph has for intermediate values."""
        return self._replay.nbytes

    def __call__(self, *inputs: Any) -> Any:
        """Copy new inputs in, launch, and return the results in memory of their own.

        Parameters
        ----------
        *inputs : Tensor
            As many as were captured, of their shapes and dtypes.

        Returns
        -------
        Any
            What the function returned, with new tensors.

        Raises
        ------
        TypeError
            If the number of inputs differs, or one is no tensor.
        ShapeError, DTypeError, DeviceMismatch
            If an input differs from the captured one.
        CaptureError
            If another graph is being captured.
        """
        self._replayed.refuse_while_captured()
        given = list(_leaves(inputs))
        _check(given, self.inputs)
        for target, source in zip(self.inputs, given, strict=True):
            if source is not target:
                call(target._client, "assign", target._data, source._data)
        self.launch()
        copies = [x._like(call(x._client, "copy", x._data)) for x in self.outputs]
        return _rebuilt(self._structure, copies)

    def __str__(self) -> str:
        return _described(self._replay.program)


def _described(program: Program) -> str:
    lines = [str(program)]
    families = (FUSED, FUSED_REDUCE, FUSED_ROWS)
    kernels = [node for node in program.nodes if node.family in families]
    lines.append(f"{len(program.nodes)} steps, {len(kernels)} of them fused kernels")
    return "\n".join(lines)


def capture(f: Callable[..., Any], *inputs: Any) -> TensorGraph:
    """Record what a function does with its inputs, to launch it again without Python.

    The function runs once. Every operation on the inputs' device is recorded, in-place updates included, and becomes
    part of a graph that computes the same again on the same memory. See ``docs/capture.md``.

    Parameters
    ----------
    f : callable
        Takes the inputs; returns a tensor, or nested tuples, lists and dicts of tensors and other objects.
    *inputs : Tensor
        Tensors of one device, or nested tuples, lists and dicts of them. The graph reads them where they are: write
        new values into them and launch again.

    Returns
    -------
    TensorGraph
        With ``launch()``, ``inputs``, ``outputs``, ``nodes``, ``nbytes``; it can be called with new inputs.

    Raises
    ------
    CaptureError
        If the function reads values on the host, needs shapes that depend on values, or if another capture is under
        way on the device. Device, allocator and tensors are as before then.
    TypeError
        If there is no tensor among the inputs.

    Examples
    --------
    >>> import numr
    >>> import numr.cpu as xp
    >>> x = xp.asarray([1.0, 2.0, 3.0])
    >>> graph = numr.capture(lambda x: xp.sum(x * x), x)
    >>> x[0] = 4.0
    >>> graph.launch()
    >>> graph.outputs[0]
    Tensor(29., dtype=float64, device=cpu)
    >>> graph(xp.asarray([1.0, 1.0, 1.0]))
    Tensor(3., dtype=float64, device=cpu)
    """
    tensors = list(_leaves(inputs))
    client = _client_of("capture", tensors)
    _require_static("capture", client)
    replay, results, structure = _captured(client, f, inputs, {}, tensors)
    outputs = [wrap(array, client) for array in results]
    return TensorGraph(replay, tensors, outputs, structure)


def _captured(
    client: RuntimeClient[Any],
    f: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    tensors: Sequence[Tensor],
) -> tuple[Replay, list[Any], Any]:
    """Record a call; returns the replay, the results of this first run in memory of their own, and their structure."""
    arrays = [x._data for x in tensors]
    with recording(client, arrays) as recorder:
        result = f(*args, **kwargs)
        found: list[Tensor] = []
        structure = _structure_of(result, found)
        for x in found:
            if x._client is not client:
                raise CaptureError(
                    f"capture: a result is on {x.device}, but the graph is captured on {client.device}. Move it after "
                    "the captured function."
                )
        program = recorder.finish([x._data for x in found])
    # Before anything else touches the memory of this first run.
    temporaries = {ref.buffer for node in program.nodes if node.fresh for ref in node.results}
    results: list[Any] = []
    seen: set[Any] = set()
    for x, ref in zip(found, program.outputs, strict=True):
        own = ref.buffer in temporaries and ref.buffer not in seen
        own = own and client.is_writable(x._data) and not ref.layout.has_internal_overlap
        results.append(x._data if own else client.copy(x._data))
        seen.add(ref.buffer)
    replay = Replay(client, recorder, optimized(program, client))
    return replay, results, structure


def _require_static(function: str, client: RuntimeClient[Any]) -> None:
    if not client.runtime.supports_graph_capture():
        # Raises BackendLimitation, as it does for everyone who asks the runtime.
        client.runtime.capture_graph_into(client, (), (), lambda _: None)
    if client.recorder is not None and client.recorder.here() is client.recorder:
        raise CaptureError(
            f"{function}: a graph is being captured on {client.device} already, and captures do not nest. Call the "
            "function itself: its work becomes part of the outer graph."
        )


# ------------------------------------------------------------------- structures
class _Leaf(NamedTuple):
    """The place of a tensor in a structure."""

    number: int


def _leaves(value: Any) -> Iterable[Tensor]:
    """The tensors in nested containers, in order."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for member in value:
            yield from _leaves(member)
    elif isinstance(value, dict):
        for member in value.values():
            yield from _leaves(member)


def _structure_of(value: Any, found: list[Tensor]) -> Any:
    """Nested containers with leaves in the place of tensors, which are put into ``found``."""
    if isinstance(value, Tensor):
        found.append(value)
        return _Leaf(len(found) - 1)
    if isinstance(value, dict):
        return {key: _structure_of(member, found) for key, member in value.items()}
    if isinstance(value, list):
        return [_structure_of(member, found) for member in value]
    if isinstance(value, tuple):
        members = [_structure_of(member, found) for member in value]
        return type(value)(*members) if hasattr(value, "_fields") else tuple(members)
    return value


def _rebuilt(structure: Any, tensors: Sequence[Tensor]) -> Any:
    if isinstance(structure, _Leaf):
        return tensors[structure.number]
    if isinstance(structure, dict):
        return {key: _rebuilt(member, tensors) for key, member in structure.items()}
    if isinstance(structure, list):
        return [_rebuilt(member, tensors) for member in structure]
    if isinstance(structure, tuple):
        members = [_rebuilt(member, tensors) for member in structure]
        return type(structure)(*members) if hasattr(structure, "_fields") else tuple(members)
    return structure


def _client_of(function: str, tensors: Sequence[Tensor]) -> RuntimeClient[Any]:
    if not tensors:
        raise TypeError(f"{function}: there is no tensor among the inputs; at least one is needed.")
    client = tensors[0]._client
    for x in tensors:
        if x._client is not client:
            raise DeviceMismatch(
                f"{function}: the inputs are on {tensors[0].device} and {x.device}; a graph has one device. Move them "
                "to one with to_device() first."
            )
    return client


def _check(given: Sequence[Tensor], captured: Sequence[Tensor]) -> None:
    if len(given) != len(captured):
        raise TypeError(f"graph: got {len(given)} tensors, and {len(captured)} were captured.")
    for position, (new, old) in enumerate(zip(given, captured, strict=True)):
        if new._client is not old._client:
            raise DeviceMismatch(
                f"graph: input {position} is on {new.device}, the captured one on {old.device}. Move it first."
            )
        if new.shape != old.shape or new.dtype != old.dtype:
            raise ShapeError(
                f"graph: input {position} has shape {new.shape} and dtype {new.dtype}, the captured one "
                f"{old.shape} and {old.dtype}. Capture again, or use numr.jit, which captures for each."
            )


# -------------------------------------------------------------------------- jit
class CacheInfo(NamedTuple):
    """Counters of a jitted function.

    Attributes
    ----------
    hits, misses : int
        Calls that found their graph, and calls that captured one.
    maxsize, currsize : int
        How many graphs are kept at most, and now.
    """

    hits: int
    misses: int
    maxsize: int
    currsize: int


def jit(
    f: Callable[..., Any] | None = None,
    *,
    static_argnames: str | Iterable[str] = (),
    maxsize: int = 64,
) -> Any:
    """Make a function that captures itself, once for each signature of its arguments, and replays.

    A signature is made of shapes, dtypes, strides and devices of all tensors in the arguments, of how arguments are
    nested, and of the values of all other arguments, which must be hashable. Each call returns new tensors.

    Parameters
    ----------
    f : callable, optional
        The function; without it, ``jit(...)`` is a decorator.
    static_argnames : str or iterable of str, optional
        Names of keyword arguments that are part of the signature as they are, even if they contain tensors.
    maxsize : int, optional
        How many graphs are kept; the one that was not used for longest goes.

    Returns
    -------
    callable
        With ``cache_info()`` and ``cache_clear()``.

    Raises
    ------
    CaptureError
        By a call, as :func:`capture` does.
    TypeError
        By a call, if an argument that is no tensor cannot be hashed.

    Examples
    --------
    >>> import numr
    >>> import numr.cpu as xp
    >>> @numr.jit
    ... def scaled(x, factor):
    ...     return xp.exp(x) * factor
    >>> scaled(xp.zeros(2), 3)
    Tensor([3., 3.], dtype=float64, device=cpu)
    >>> scaled.cache_info()
    CacheInfo(hits=0, misses=1, maxsize=64, currsize=1)
    """
    if f is None:
        return functools.partial(jit, static_argnames=static_argnames, maxsize=maxsize)
    names = {static_argnames} if isinstance(static_argnames, str) else set(static_argnames)
    jitted = _Jitted(f, frozenset(names), maxsize)
    functools.update_wrapper(jitted, f)
    return jitted


class _Jitted:
    """A function with its graphs."""

    def __init__(self, f: Callable[..., Any], static: frozenset[str], maxsize: int) -> None:
        if maxsize < 1:
            raise ValueError(f"jit: maxsize={maxsize}, but at least one graph has to be kept.")
        self._f = f
        self._static = static
        self._maxsize = maxsize
        self._graphs: OrderedDict[Any, tuple[Replay, Any]] = OrderedDict()
        self._lock = threading.Lock()
        self._hits = 0
        self._misses = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function by way of its graph."""
        tensors: list[Tensor] = []
        signature = (
            _signature(args, tensors),
            tuple(
                (name, kwargs[name] if name in self._static else _signature(kwargs[name], tensors))
                for name in sorted(kwargs)
            ),
        )
        client = _client_of("jit", tensors)
        if client.recorder is not None and client.recorder.here() is client.recorder:
            return self._f(*args, **kwargs)  # part of the graph that is being captured
        arrays = [x._data for x in tensors]
        key = (client, signature, _aliases(client, arrays))
        try:
            with self._lock:
                found = self._graphs.get(key)
                if found is not None:
                    self._graphs.move_to_end(key)
                    self._hits += 1
        except TypeError as error:
            raise TypeError(
                f"jit: an argument that is no tensor is part of the signature and cannot be hashed ({error}). Pass "
                "tuples instead of lists of numbers, or bind it with functools.partial."
            ) from None
        if found is None:
            return self._capture(key, client, args, kwargs, tensors)
        replay, structure = found
        results = [wrap(array, client) for array in replay.run(arrays)]
        return _rebuilt(structure, results)

    def _capture(
        self,
        key: Any,
        client: RuntimeClient[Any],
        args: Sequence[Any],
        kwargs: dict[str, Any],
        tensors: Sequence[Tensor],
    ) -> Any:
        _require_static("jit", client)
        replay, results, structure = _captured(client, self._f, args, kwargs, tensors)
        stage(replay)
        with self._lock:
            self._misses += 1
            self._graphs[key] = (replay, structure)
            while len(self._graphs) > self._maxsize:
                self._graphs.popitem(last=False)
        return _rebuilt(structure, [wrap(array, client) for array in results])

    def cache_info(self) -> CacheInfo:
        """Counters of hits and misses, and how many graphs are kept."""
        with self._lock:
            return CacheInfo(self._hits, self._misses, self._maxsize, len(self._graphs))

    def cache_clear(self) -> None:
        """Drop all graphs with their memory."""
        with self._lock:
            self._graphs.clear()
            self._hits = self._misses = 0


def _signature(value: Any, tensors: list[Tensor]) -> Any:
    """A hashable description of an argument; its tensors are put into ``tensors``."""
    cls = value.__class__
    if cls is Tensor:
        tensors.append(value)
        data = value._data
        return (Tensor, data.shape, data.strides, data.dtype)
    if isinstance(value, list | tuple):
        return (cls, tuple(_signature(member, tensors) for member in value))
    if isinstance(value, dict):
        return (cls, tuple((key, _signature(member, tensors)) for key, member in value.items()))
    # 1, 1.0 and True are equal, and so are both zeros.
    return (cls, repr(value) if cls in (float, complex) else value)


def _aliases(client: RuntimeClient[Any], arrays: Sequence[Any]) -> tuple[tuple[int, int], ...]:
    """Which arguments lie in one memory, and how far apart: a graph that was recorded so holds only for that."""
    if len(arrays) < 2:
        return ()
    handles = [client.storage(array).handle for array in arrays]
    if len(set(handles)) == len(handles):
        return ()
    first: dict[int, tuple[int, int]] = {}
    pattern = []
    for number, (handle, array) in enumerate(zip(handles, arrays, strict=True)):
        offset = client.layout(array).offset * array.dtype.itemsize
        owner, base = first.setdefault(handle, (number, offset))
        pattern.append((owner, offset - base))
    return tuple(pattern)
