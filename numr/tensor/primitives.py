"""The primitive families on tensors: what the functions of the standard are composed from.

Each function here unwraps its tensors, runs one family at the choke point and wraps the result. Arguments are
already checked: axes are normalised, dtypes promoted, shapes compatible.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numr.dtypes import DType, Scalar
from numr.ir.ops import Reduction
from numr.runtime.client import RuntimeClient
from numr.tensor.core import Tensor, wrap
from numr.tensor.dispatch import call, call_at

# ------------------------------------------------------------------- creation


def empty(client: RuntimeClient[Any], shape: tuple[int, ...], dtype: DType) -> Tensor:
    """A new tensor with arbitrary elements."""
    return wrap(call(client, "empty", shape, dtype), client)


def full(client: RuntimeClient[Any], shape: tuple[int, ...], value: Scalar, dtype: DType) -> Tensor:
    """A new tensor filled with a scalar."""
    return wrap(call(client, "full", shape, value, dtype), client)


def iota(
    client: RuntimeClient[Any], size: int, dtype: DType, start: Scalar = 0, step: Scalar = 1
) -> Tensor:
    """The one-dimensional tensor ``start + i * step``."""
    return wrap(call(client, "iota", size, start, step, dtype), client)


# ---------------------------------------------------------------------- views


def permute(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The view with its axes in another order."""
    return wrap(call(x._client, "permute", x._data, axes), x._client)


def broadcast(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The view broadcast to a shape that ``x`` broadcasts to."""
    return wrap(call(x._client, "broadcast", x._data, shape), x._client)


def diagonal(x: Tensor, offset: int, axis1: int, axis2: int) -> Tensor:
    """The view of a diagonal, as the last axis."""
    return wrap(call(x._client, "diagonal", x._data, offset, axis1, axis2), x._client)


def reshape_view(x: Tensor, shape: tuple[int, ...]) -> Tensor | None:
    """The view in another shape, None where only a copy has it."""
    data = call(x._client, "reshape", x._data, shape)
    return None if data is None else wrap(data, x._client)


def reshape(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The tensor in another shape: a view where there is one, else a copy."""
    view = reshape_view(x, shape)
    if view is None:
        view = reshape_view(copy(x), shape)
        assert view is not None, "a contiguous tensor has a view in every shape of its size"
    return view


# --------------------------------------------------------------- copy and cast


def cast(x: Tensor, dtype: DType) -> Tensor:
    """``x`` itself when it has the dtype, else a new tensor converted to it."""
    return x if x.dtype == dtype else wrap(call(x._client, "cast", x._data, dtype), x._client)


def copy(x: Tensor) -> Tensor:
    """A new C-contiguous tensor with the same elements."""
    return wrap(call(x._client, "copy", x._data), x._client)


def assign(target: Tensor, source: Tensor) -> None:
    """Write ``source``, broadcast and cast, into ``target``."""
    call(target._client, "assign", target._data, source._data)


def concat(tensors: Sequence[Tensor], axis: int) -> Tensor:
    """Tensors of one dtype joined along an axis."""
    client = tensors[0]._client
    return wrap(call(client, "concat", [x._data for x in tensors], axis), client)


# ------------------------------------------------------------------ reductions


def reduce(
    kind: Reduction, x: Tensor, axes: tuple[int, ...], keepdims: bool, dtype: DType | None = None
) -> Tensor:
    """Reduce over axes, computing in ``dtype`` (``x``'s own where None)."""
    return wrap(
        call(x._client, "reduce", kind, x._data, axes, keepdims, dtype or x.dtype), x._client
    )


def squared_distances(x: Tensor, center: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    """Sum over axes of the squared absolute values of ``x - center``, which broadcasts to ``x``'s shape."""
    client = x._client
    return wrap(call(client, "squared_distances", x._data, center._data, axes, keepdims), client)


def argreduce(kind: Reduction, x: Tensor, axis: int, keepdims: bool) -> Tensor:
    """Index of the first maximum or minimum along an axis."""
    return wrap(call(x._client, "argreduce", kind, x._data, axis, keepdims), x._client)


def scan(kind: Reduction, x: Tensor, axis: int, dtype: DType | None = None) -> Tensor:
    """Running reduction along an axis."""
    return wrap(call(x._client, "scan", kind, x._data, axis, dtype or x.dtype), x._client)


# ----------------------------------------------------------- gather and scatter


def gather(x: Tensor, indices: Sequence[Tensor], function: str = "gather") -> Tensor:
    """Elements at integer tensors of one common shape, one for each leading axis.

    ``function`` is the name in which an index out of range is reported.
    """
    data = [i._data for i in indices]
    return wrap(call_at(function, x._client, "gather", x._data, data), x._client)


def scatter(x: Tensor, indices: Sequence[Tensor], values: Tensor) -> None:
    """Write values where :func:`gather` would read."""
    call(x._client, "scatter", x._data, [i._data for i in indices], values._data)


def nonzero(x: Tensor) -> tuple[Tensor, ...]:
    """Index tensors of the elements that are not zero."""
    return tuple(wrap(data, x._client) for data in call(x._client, "nonzero", x._data))


def compress(x: Tensor, mask: Tensor) -> Tensor:
    """Elements where a mask over the leading axes is true."""
    return wrap(call(x._client, "compress", x._data, mask._data), x._client)


# -------------------------------------------------------- sorting and searching


def sort(x: Tensor, axis: int, descending: bool) -> Tensor:
    """Sorted along an axis, NaN last."""
    return wrap(call(x._client, "sort", x._data, axis, descending), x._client)


def argsort(x: Tensor, axis: int, descending: bool) -> Tensor:
    """Stable sorting indices along an axis, NaN last."""
    return wrap(call(x._client, "argsort", x._data, axis, descending), x._client)


def searchsorted(sorted_x: Tensor, values: Tensor, side: str) -> Tensor:
    """Insertion points of values in a sorted one-dimensional tensor of the same dtype."""
    client = sorted_x._client
    return wrap(call(client, "searchsorted", sorted_x._data, values._data, side), client)


# -------------------------------------------------------------- linear algebra


def matmul(left: Tensor, right: Tensor) -> Tensor:
    """Matrix product of the last two axes, batched over the others; both of one dtype."""
    return wrap(call(left._client, "matmul", left._data, right._data), left._client)


def fft(x: Tensor, kind: str, length: int) -> Tensor:
    """Unnormalised transform along the last axis, see ``RuntimeClient.fft`` for the kinds."""
    return wrap(call(x._client, "fft", x._data, kind, length), x._client)


def factorise(family: str, *operands: Any) -> Any:
    """A linear-algebra family: one of cholesky qr eigh eig svd svdvals solve inv slogdet det.

    Tensors among the operands are unwrapped; the result is a tensor, or a tuple of them.
    """
    client = operands[0]._client
    arguments = [x._data if isinstance(x, Tensor) else x for x in operands]
    result = call(client, family, *arguments)
    if isinstance(result, tuple):
        return tuple(wrap(data, client) for data in result)
    return wrap(result, client)
