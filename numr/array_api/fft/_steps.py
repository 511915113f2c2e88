"""The steps that all Fourier transforms share: argument checks, cut and pad, transform, scale."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Literal, SupportsIndex, TypeAlias

from numr.array_api import _arguments as arg
from numr.dtypes import complex_of, float16, float32
from numr.errors import DTypeError, ShapeError
from numr.ir import ops
from numr.layout import normalize_axes
from numr.tensor import primitives as p
from numr.tensor.core import Tensor, elementwise

Norm: TypeAlias = Literal["backward", "ortho", "forward"]

#: The norm under which a transform in the other direction is scaled as this one is.
OPPOSITE: dict[str, Norm] = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def complex_input(function: str, x: Tensor) -> Tensor:
    """``x`` in the complex dtype of its precision."""
    x = arg.floating(function, arg.tensor(function, x))
    return p.cast(x, complex_of(x.dtype))


def real_input(function: str, x: Tensor) -> Tensor:
    """``x`` in a real dtype that has a complex one of its precision."""
    x = arg.floating(function, arg.tensor(function, x))
    if x.dtype.kind == "c":
        raise DTypeError(
            f"{function}: got dtype {x.dtype}; the input must be real-valued. Use the transform of complex "
            f"input, {_COMPLEX_INPUT[function]}(), or take real() first."
        )
    return p.cast(x, float32) if x.dtype == float16 else x


_COMPLEX_INPUT = {"rfft": "fft", "rfftn": "fftn", "ihfft": "ifft"}


def check_norm(function: str, norm: str) -> Norm:
    """``norm`` if it is one of the three."""
    if norm not in OPPOSITE:
        raise ValueError(
            f"{function}: norm {norm!r} is unknown; it must be 'backward', 'ortho' or 'forward'."
        )
    return norm  # type: ignore[return-value]


def check_length(function: str, n: SupportsIndex, x: Tensor, axis: int) -> int:
    """The number ``n`` of points along an axis, at least one."""
    length = operator.index(n)
    if length < 1:
        raise ShapeError(
            f"{function}: a transform over {length} points along axis {axis} of shape {x.shape} is not "
            "defined. Ask for at least one point with n= or s=."
        )
    return length


def transformed_axes(
    function: str, x: Tensor, s: Sequence[int] | None, axes: Sequence[int] | None
) -> tuple[tuple[int, ...], tuple[int | None, ...]]:
    """The axes of an n-dimensional transform, and the length asked for along each (None for its own)."""
    if s is not None:
        s = tuple(operator.index(n) for n in s)
        if axes is None:
            axes = range(-len(s), 0)
    axes = normalize_axes(None if axes is None else tuple(axes), x.ndim, function)
    if s is None:
        return axes, (None,) * len(axes)
    if len(s) != len(axes):
        raise ShapeError(
            f"{function}: s {s} has {len(s)} lengths for {len(axes)} axes; each axis needs one (-1 for its "
            "own length)."
        )
    return axes, tuple(None if n == -1 else n for n in s)


def along(function: str, x: Tensor, kind: str, axis: int, length: int) -> Tensor:
    """One unnormalised transform over ``length`` points along an axis, cut or padded to fit."""
    check_length(function, length, x, axis)
    x = fit(x, axis, length // 2 + 1 if kind == "hermitian" else length)
    last = x.ndim - 1
    if axis == last:
        return p.fft(x, kind, length)
    return _swap_last(p.fft(_swap_last(x, axis), kind, length), axis)


def fit(x: Tensor, axis: int, length: int) -> Tensor:
    """``x`` cut or padded with zeros at the end of an axis to be ``length`` long."""
    present = x.shape[axis]
    if length == present:
        return x
    if length < present:
        return x[(*(slice(None),) * axis, slice(length))]
    shape = (*x.shape[:axis], length - present, *x.shape[axis + 1 :])
    return p.concat([x, p.full(x._client, shape, 0, x.dtype)], axis)


def scaled(x: Tensor, norm: Norm, points: int, *, inverse: bool) -> Tensor:
    """A transform over ``points`` points, normalised."""
    if norm == "ortho":
        return elementwise(ops.MULTIPLY, x, 1 / math.sqrt(points))
    if (norm == "backward") == inverse:
        return elementwise(ops.MULTIPLY, x, 1 / points)
    return x


def conjugate(x: Tensor) -> Tensor:
    """The complex conjugate."""
    return elementwise(ops.CONJ, x)


def _swap_last(x: Tensor, axis: int) -> Tensor:
    order = list(range(x.ndim))
    order[axis], order[-1] = order[-1], order[axis]
    return p.permute(x, tuple(order))
