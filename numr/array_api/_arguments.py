"""Checks of arguments that the functions of the standard share."""

from __future__ import annotations

from typing import Any

from numr import dtypes as dt
from numr.dtypes import DType
from numr.errors import DTypeError
from numr.layout import normalize_axes
from numr.runtime.client import RuntimeClient
from numr.tensor import primitives as p
from numr.tensor.core import Tensor, elementwise, mixed_devices, not_a_tensor, wrap


def tensor(function: str, x: object) -> Tensor:
    """``x`` if it is a tensor; TypeError naming what it is and how to make one otherwise."""
    if not isinstance(x, Tensor):
        raise not_a_tensor(function, x)
    return x


def tensors(function: str, *xs: object) -> tuple[Tensor, ...]:
    """``xs`` if all are tensors on one device."""
    checked = tuple(tensor(function, x) for x in xs)
    if any(x._client is not checked[0]._client for x in checked):
        raise mixed_devices(function, checked)
    return checked


def promoted(function: str, *xs: Any) -> tuple[Tensor, ...]:
    """Tensors and Python scalars as tensors of their common dtype, on the device that the tensors share.

    Shapes stay; a scalar becomes a tensor without axes. At least one argument must be a tensor.
    """
    first = xs[0]
    if all(
        x.__class__ is Tensor and x._client is first._client and x.dtype == first.dtype for x in xs
    ):
        return xs
    given = tensors(function, *(x for x in xs if dt.scalar_type_of(x) is None))
    if not given:
        raise TypeError(f"{function}: got only Python scalars; at least one must be a tensor.")
    client = given[0]._client
    kinds = tuple(x.dtype if isinstance(x, Tensor) else dt.scalar_type_of(x) or type(x) for x in xs)
    try:
        dtype = dt.promote_kinds(kinds, client.defaults)
    except DTypeError as error:
        raise DTypeError(f"{function}: {error}") from None
    dtype = client.require_dtype(dtype, function)
    return tuple(
        p.cast(x, dtype) if isinstance(x, Tensor) else p.full(client, (), x, dtype) for x in xs
    )


def in_domain(function: str, x: Tensor, domain: str) -> Tensor:
    """``x`` if its dtype is in the domain, a key of ``numr.dtypes.CATEGORIES``."""
    if x.dtype.kind not in dt.CATEGORIES[domain]:
        raise DTypeError(
            f"{function}: got dtype {x.dtype}, which is {dt.category_of(x.dtype)}; only {domain} "
            "dtypes are allowed. Convert it with astype() first."
        )
    return x


def floating(function: str, x: Tensor, domain: str = "floating-point") -> Tensor:
    """``x`` as floating-point: integers and booleans become the device's default real dtype."""
    if x.dtype.kind in "biu":
        return p.cast(x, x._client.defaults.real)
    return in_domain(function, x, domain)


def reduced_axes(function: str, x: Tensor, axis: int | tuple[int, ...] | None) -> tuple[int, ...]:
    """The axes that a reduction runs over, normalised; all of them for None."""
    return normalize_axes(axis, x.ndim, function)


def requested_dtype(function: str, dtype: Any, client: RuntimeClient[Any]) -> DType:
    """A ``dtype=`` argument as a dtype that the device has."""
    return client.require_dtype(dt.as_dtype(dtype, function), function)


def zero_like(x: Tensor) -> Tensor:
    """A tensor without axes that holds zero in ``x``'s dtype."""
    return p.full(x._client, (), 0, x.dtype)


__all__ = [
    "Tensor",
    "elementwise",
    "floating",
    "in_domain",
    "promoted",
    "reduced_axes",
    "requested_dtype",
    "tensor",
    "tensors",
    "wrap",
    "zero_like",
]
