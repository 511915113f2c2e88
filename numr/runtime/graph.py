"""``Graph`` and ``CapturedGraph``: recorded work that can be launched again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Generic, TypeVar

__all__ = ["CapturedGraph", "Graph", "NoOpGraph"]

T = TypeVar("T")


class Graph(ABC):
    """Work that was recorded once and can be launched any number of times.

    Contract
    --------
    - :meth:`launch` does the recorded work again, on the same memory, in order with other work that
      was dispatched on the device.
    - :meth:`destroy` runs before any memory that the graph was told to keep alive is released: such
      memory is referenced by the graph itself, and a graph's finalizer runs before its references go.
      This holds in garbage cycles too, because of how memory is released: see
      :mod:`numr.runtime.storage`.
    """

    __slots__ = ("__weakref__", "_kept")

    def __init__(self) -> None:
        self._kept: tuple[object, ...] = ()

    @abstractmethod
    def launch(self) -> None:
        """Do the recorded work once more.

        Raises
        ------
        DeviceLostError
            If the device stopped working.
        """

    @abstractmethod
    def is_replay_capable(self) -> bool:
        """Whether :meth:`launch` does the work; False only for graphs that record nothing."""

    def keep_alive(self, *objects: object) -> None:
        """Keep objects, such as the memory that the graph points into, for as long as the graph exists."""
        self._kept += objects

    def destroy(self) -> None:  # noqa: B027  (optional: most graphs hold only Python objects)
        """Release what the graph holds in its runtime; called once, when the last reference goes.

        Runtimes whose graphs own native objects override it. The kept memory is still valid.
        """

    def __del__(self) -> None:
        self.destroy()


class NoOpGraph(Graph):
    """The graph of a runtime that cannot replay work: :meth:`launch` does nothing.

    A caller that may meet one asks :meth:`is_replay_capable` and runs its work eagerly instead. The
    runtimes of numr never return it from ``capture_graph_into``: what they cannot capture raises
    ``BackendLimitation``.

    Examples
    --------
    >>> NoOpGraph().is_replay_capable()
    False
    """

    __slots__ = ()

    def launch(self) -> None:
        """Do nothing."""

    def is_replay_capable(self) -> bool:
        """Return False."""
        return False


class CapturedGraph(Generic[T]):
    """A graph with the tensors that it reads and writes.

    The graph points into the memory of ``inputs``, ``outputs`` and ``arena``. They are handed to the
    graph to keep, so holding ``captured.graph`` alone keeps them valid too, and the graph is
    destroyed before any of them.

    Parameters
    ----------
    graph : Graph
        The recorded work.
    inputs, outputs : iterable
        Tensors that the graph reads and writes. New input is copied into the inputs before
        :meth:`launch`; results are read from the outputs after it.
    arena : object, optional
        Whatever owns the memory of the graph's intermediate values.
    """

    __slots__ = ("__weakref__", "_graph", "_inputs", "_outputs")

    def __init__(
        self, graph: Graph, inputs: Iterable[T], outputs: Iterable[T], arena: object = None
    ) -> None:
        self._inputs = tuple(inputs)
        self._outputs = tuple(outputs)
        self._graph = graph
        graph.keep_alive(self._inputs, self._outputs, arena)

    @property
    def graph(self) -> Graph:
        """The recorded work."""
        return self._graph

    @property
    def inputs(self) -> tuple[T, ...]:
        """Tensors that the graph reads."""
        return self._inputs

    @property
    def outputs(self) -> tuple[T, ...]:
        """Tensors that the graph writes."""
        return self._outputs

    def launch(self) -> None:
        """Recompute the outputs from the inputs, in place."""
        self._graph.launch()

    def __repr__(self) -> str:
        return (
            f"CapturedGraph({self._graph!r}, {len(self._inputs)} inputs, "
            f"{len(self._outputs)} outputs)"
        )
