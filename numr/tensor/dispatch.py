"""The choke point: every operation on a device passes through here, on native arrays.

Above this module, tensors; below it, one client's primitive families. Elementwise operations go through loops that
the client prepared for the operands' dtypes, everything else through :func:`call`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numr.dtypes import Kind
from numr.errors import CaptureError, IndexingError, ReadOnlyError
from numr.ir.ops import Op, meant
from numr.runtime.client import Loop, RuntimeClient


def loop_for(client: RuntimeClient[Any], op: Op, kinds: tuple[Kind, ...]) -> Loop:
    """The prepared loop of an operation for operands of the given dtypes and scalar types."""
    recorder = client.recorder
    if recorder is not None:
        return recorder.here().elementwise_loop(meant(op, kinds), kinds)
    key = (op, *kinds)
    loop = client.loops.get(key)
    if loop is None:
        loop = client.loops[key] = client.elementwise_loop(meant(op, kinds), kinds)
    return loop


def call(client: RuntimeClient[Any], family: str, *arguments: Any, **options: Any) -> Any:
    """Run one primitive family of a client on native arrays."""
    if client.recorder is not None:
        client = client.recorder.here()
    return getattr(client, family)(*arguments, **options)


def call_at(function: str, client: RuntimeClient[Any], family: str, *arguments: Any) -> Any:
    """:func:`call` for families that take indices; what is wrong with an index is said in ``function``'s name."""
    try:
        return call(client, family, *arguments)
    except IndexingError as error:
        raise IndexingError(f"{function}: {error}") from None


def read(function: str, client: RuntimeClient[Any], array: Any) -> np.ndarray[Any, Any]:
    """The elements of an array on the host, on behalf of ``function``.

    Raises
    ------
    CaptureError
        If the thread captures a graph on the device.
    """
    refuse_while_captured(function, client, array)
    return client.to_host(array)


def refuse_while_captured(function: str, client: RuntimeClient[Any], array: Any) -> None:
    """Raise CaptureError if the thread captures a graph on the device, where no value may leave it."""
    recorder = client.recorder
    if recorder is not None and recorder.here() is recorder:
        raise CaptureError(
            f"{function}: the tensor of shape {array.shape} and dtype {array.dtype} would be read on the host while "
            f"a graph is captured on {client.device}. A graph replays the same work whatever the values are: read "
            "values outside the captured function, and choose between them with where()."
        )


def require_writable(function: str, client: RuntimeClient[Any], array: Any) -> None:
    """Raise ReadOnlyError if the array's memory may not be written."""
    if not client.is_writable(array):
        raise ReadOnlyError(
            f"{function}: the tensor of shape {array.shape} lies over read-only memory. "
            "Copy it first: asarray(x, copy=True)."
        )
