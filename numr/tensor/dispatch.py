"""The choke point: every operation on a device passes through here, on native arrays.

Above this module, tensors; below it, one client's primitive families. Elementwise operations go through loops that
the client prepared for the operands' dtypes, everything else through :func:`call`.
"""

from __future__ import annotations

from typing import Any

from numr.dtypes import Kind
from numr.errors import IndexingError, ReadOnlyError
from numr.ir.ops import Op
from numr.runtime.client import Loop, RuntimeClient


def loop_for(client: RuntimeClient[Any], op: Op, kinds: tuple[Kind, ...]) -> Loop:
    """The prepared loop of an operation for operands of the given dtypes and scalar types."""
    key = (op, *kinds)
    loop = client.loops.get(key)
    if loop is None:
        loop = client.loops[key] = client.elementwise_loop(op, kinds)
    return loop


def call(client: RuntimeClient[Any], family: str, *arguments: Any) -> Any:
    """Run one primitive family of a client on native arrays."""
    return getattr(client, family)(*arguments)


def call_at(function: str, client: RuntimeClient[Any], family: str, *arguments: Any) -> Any:
    """:func:`call` for families that take indices; what is wrong with an index is said in ``function``'s name."""
    try:
        return getattr(client, family)(*arguments)
    except IndexingError as error:
        raise IndexingError(f"{function}: {error}") from None


def require_writable(function: str, client: RuntimeClient[Any], array: Any) -> None:
    """Raise ReadOnlyError if the array's memory may not be written."""
    if not client.is_writable(array):
        raise ReadOnlyError(
            f"{function}: the tensor of shape {array.shape} lies over read-only memory. "
            "Copy it first: asarray(x, copy=True)."
        )
