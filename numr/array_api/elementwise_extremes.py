"""Elementwise extremes: ``maximum``, ``minimum`` and ``clip``."""

from __future__ import annotations

from math import inf

from numr.array_api._arguments import in_domain, tensor, tensors
from numr.dtypes import DType, Kind, finfo_of, iinfo_of, promote_kinds, scalar_type_of
from numr.errors import DTypeError
from numr.ir import ops
from numr.layout import broadcast_shapes
from numr.tensor.core import Tensor, call2, elementwise, not_a_tensor
from numr.tensor.primitives import copy

__all__ = [
    "clip",
    "maximum",
    "minimum",
]


def clip(
    x: Tensor, /, min: Tensor | float | None = None, max: Tensor | float | None = None
) -> Tensor:
    """Elements moved into the range from ``min`` to ``max``.

    Parameters
    ----------
    x : Tensor
        Real-valued dtype (booleans included), any shape.
    min, max : Tensor or scalar, optional
        Bounds; None leaves a side open. Tensors broadcast with ``x``.

    Returns
    -------
    Tensor
        ``minimum(maximum(x, min), max)``, a new tensor of ``x``'s dtype and the broadcast shape.

    Raises
    ------
    TypeError
        If ``x`` is not a tensor, or a bound is neither a tensor nor a scalar.
    DTypeError
        If ``x`` is complex, or a bound would change its dtype: the bounds promote with ``x``, and
        the result keeps ``x``'s dtype.
    ShapeError
        If the shapes do not broadcast.
    DeviceMismatch
        If the tensors are on different devices.

    Notes
    -----
    NaN in ``x`` or in a bound gives NaN. A Python number outside the dtype's range stands for the
    end of the range, so ``clip(x, -1, 300)`` leaves uint8 as it is. Where ``min`` is greater than
    ``max`` the result is ``max``, as in NumPy.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.clip(xp.asarray([-2, 0, 7]), 0, 5)
    Tensor([0, 0, 5], dtype=int64, device=cpu)
    >>> xp.clip(xp.asarray([1.0, 2.0]), min=xp.asarray([[1.5], [3.0]]))
    Tensor([[1.5, 2. ],
            [3. , 3. ]], dtype=float64, device=cpu)
    """
    x = in_domain("clip", tensor("clip", x), "real-valued")
    lower = None if min is None else _bound("min", min, x)
    upper = None if max is None else _bound("max", max, x)
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        operands = tensors("clip", x, *(bound for bound in (min, max) if isinstance(bound, Tensor)))
        broadcast_shapes(*(operand.shape for operand in operands), function="clip")
    if lower is None:
        return copy(x) if upper is None else call2(ops.MINIMUM, x, upper)
    if upper is None:
        return call2(ops.MAXIMUM, x, lower)
    return elementwise(ops.CLIP, x, lower, upper)


def _bound(name: str, bound: Tensor | float, x: Tensor) -> Tensor | float:
    """A bound of ``clip``, checked against ``x``; a scalar brought into its dtype's range."""
    scalar = scalar_type_of(bound)
    if isinstance(bound, Tensor):
        kind: Kind = bound.dtype
    elif scalar is None:
        raise not_a_tensor("clip", bound)
    else:
        kind = scalar
    own = x.dtype
    try:
        dtype = promote_kinds((own, kind), x._client.defaults)
    except DTypeError as error:
        raise DTypeError(f"clip: {error}") from None
    if dtype != own:
        raise DTypeError(
            f"clip: x has dtype {own} and {name} is {_spell(kind)}; they promote to {dtype}, but a "
            "bound must leave the dtype of x. Cast x or the bound with astype() first."
        )
    return bound if scalar is None else _into_range(scalar(bound), dtype)


def _spell(kind: Kind) -> str:
    return f"a Python {kind.__name__}" if isinstance(kind, type) else f"a tensor of {kind}"


def _into_range(value: float, dtype: DType) -> float:
    if dtype.kind in "iu":
        limits = iinfo_of(dtype)
        return limits.min if value < limits.min else limits.max if value > limits.max else value
    if dtype.kind == "f":
        # Beyond the largest finite number lies only infinity; an int may not even convert to a float.
        largest = finfo_of(dtype).max
        return -inf if value < -largest else inf if value > largest else float(value)
    return value


def maximum(x1: Tensor | float, x2: Tensor | float, /) -> Tensor:
    """The larger of two elements.

    Parameters
    ----------
    x1, x2 : Tensor or real number
        Real-valued dtype (booleans included).
        At least one is a tensor; shapes broadcast.

    Returns
    -------
    Tensor
        The result, of the promoted dtype.

    Raises
    ------
    TypeError
        If an operand is neither a tensor nor a scalar, or neither is a tensor.
    DTypeError
        If the dtypes do not promote, or an operand is complex.
    ShapeError
        If the shapes do not broadcast.
    DeviceMismatch
        If the tensors are on different devices.

    Notes
    -----
    NaN in either operand gives NaN.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.maximum(xp.asarray([1, 5, 3]), xp.asarray([4, 2, 3]))
    Tensor([4, 5, 3], dtype=int64, device=cpu)
    """
    return call2(ops.MAXIMUM, x1, x2)


def minimum(x1: Tensor | float, x2: Tensor | float, /) -> Tensor:
    """The smaller of two elements.

    Parameters
    ----------
    x1, x2 : Tensor or real number
        Real-valued dtype (booleans included).
        At least one is a tensor; shapes broadcast.

    Returns
    -------
    Tensor
        The result, of the promoted dtype.

    Raises
    ------
    TypeError
        If an operand is neither a tensor nor a scalar, or neither is a tensor.
    DTypeError
        If the dtypes do not promote, or an operand is complex.
    ShapeError
        If the shapes do not broadcast.
    DeviceMismatch
        If the tensors are on different devices.

    Notes
    -----
    NaN in either operand gives NaN.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.minimum(xp.asarray([1, 5, 3]), xp.asarray([4, 2, 3]))
    Tensor([1, 2, 3], dtype=int64, device=cpu)
    """
    return call2(ops.MINIMUM, x1, x2)
