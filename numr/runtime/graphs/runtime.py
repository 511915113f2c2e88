"""``GraphRuntime``: what runtimes that record and replay work have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from numr.runtime.base import Runtime
from numr.runtime.graph import CapturedGraph
from numr.runtime.graphs.replay import capture_into

if TYPE_CHECKING:
    from numr.runtime.client import RuntimeClient

__all__ = ["GraphRuntime"]


class GraphRuntime(Runtime):
    """A runtime whose clients are recorded and whose programs are replayed."""

    @classmethod
    def supports_graph_capture(cls) -> bool:
        """Return True."""
        return True

    @classmethod
    def capture_graph_into(
        cls,
        client: RuntimeClient[Any],
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        f: Callable[[RuntimeClient[Any]], object],
    ) -> CapturedGraph[Any]:
        """Record the work that ``f`` does; see ``Runtime.capture_graph_into``."""
        return capture_into(client, inputs, outputs, f)
