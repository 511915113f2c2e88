"""``pad``: tensors made longer at the ends of their axes."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from numr import dtypes as dt
from numr.array_api import _arguments as arg
from numr.array_api.elementwise_functions import maximum, minimum
from numr.array_api.indexing_functions import take
from numr.dtypes import Scalar
from numr.errors import DTypeError, ShapeError
from numr.layout import normalize_axis
from numr.tensor import primitives as p
from numr.tensor.core import Tensor

__all__ = ["pad"]

MODES = ("constant", "edge", "reflect", "symmetric", "wrap")


def pad(
    x: Tensor,
    pad_width: Any,
    mode: Literal["constant", "edge", "reflect", "symmetric", "wrap"] = "constant",
    *,
    constant_values: Any = 0,
) -> Tensor:
    """Make a tensor longer at both ends of its axes.

    Parameters
    ----------
    x : Tensor
        Any dtype.
    pad_width : int, pair of int, sequence of pairs, or dict
        How many elements to add before and after each axis: one number or pair for all axes, a pair for
        each axis, or a dict from axes to numbers or pairs.
    mode : {"constant", "edge", "reflect", "symmetric", "wrap"}, default "constant"
        What to add: a constant; the first and last element; the mirror image without or with the outermost
        element; or the other end of the axis.
    constant_values : scalar, pair of scalars, or sequence of pairs, default 0
        The constants, given as ``pad_width`` is. Where axes meet in a corner, the last axis decides.

    Returns
    -------
    Tensor
        A new tensor of the dtype of ``x``.

    Raises
    ------
    ValueError
        If ``mode`` is unknown or a width negative.
    ShapeError
        If widths or constants do not fit the number of axes, or an axis without elements is to be continued.
    DTypeError
        If a constant is not of a kind that the dtype holds.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.pad(xp.asarray([1, 2, 3]), (1, 2))
    Tensor([0, 1, 2, 3, 0, 0], dtype=int64, device=cpu)
    >>> xp.pad(xp.asarray([1, 2, 3]), 2, mode="reflect")
    Tensor([3, 2, 1, 2, 3, 2, 1], dtype=int64, device=cpu)
    """
    arg.tensor("pad", x)
    if mode not in MODES:
        raise ValueError(f"pad: mode {mode!r} is unknown; it must be one of {', '.join(MODES)}.")
    widths = _widths(x, pad_width)
    if mode == "constant":
        values = _pairs("constant_values", constant_values, x.ndim)
        return _with_constants(x, widths, values)
    result = x
    for axis, (before, after) in enumerate(widths):
        if before or after:
            result = take(result, _positions(x, axis, before, after, mode), axis=axis)
    return p.copy(x) if result is x else result


def _with_constants(
    x: Tensor, widths: list[tuple[int, int]], values: list[tuple[Scalar, Scalar]]
) -> Tensor:
    shape = tuple(n + sum(width) for n, width in zip(x.shape, widths, strict=True))
    inside = [slice(before, before + n) for n, (before, _) in zip(x.shape, widths, strict=True)]
    result = p.empty(x._client, shape, x.dtype)
    p.assign(result[tuple(inside)], x)
    for axis, (start, stop) in enumerate((part.start, part.stop) for part in inside):
        # Axes before this one are filled to their ends, axes behind it are not yet.
        for end, value in zip((slice(start), slice(stop, None)), values[axis], strict=True):
            region = result[(*(slice(None),) * axis, end, *inside[axis + 1 :])]
            p.assign(region, p.full(x._client, (), _constant(value, x), x.dtype))
    return result


def _constant(value: Any, x: Tensor) -> Scalar:
    kind = dt.scalar_type_of(value)
    if kind is None:
        raise TypeError(
            f"pad: constant_values holds {type(value).__name__}; a Python scalar is needed."
        )
    if x.dtype.kind == "b" and value in (0, 1):
        return bool(value)
    if dt.promote_scalar(x.dtype, kind, x._client.defaults) != x.dtype:
        raise DTypeError(
            f"pad: the constant {value!r} does not fit dtype {x.dtype}. Convert the tensor with astype() first."
        )
    scalar: Scalar = kind(value)
    return scalar


def _positions(x: Tensor, axis: int, before: int, after: int, mode: str) -> Tensor:
    """Where each element along a padded axis comes from."""
    n = x.shape[axis]
    if not n:
        raise ShapeError(
            f"pad: axis {axis} of shape {x.shape} has no elements to continue by mode={mode!r}; use "
            "mode='constant'."
        )
    index = p.iota(x._client, before + n + after, x._client.defaults.indexing, start=-before)
    if mode == "edge":
        return minimum(maximum(index, 0), n - 1)
    if mode == "wrap":
        return index % n
    # The mirrored axis has a period; in its second half it runs backwards.
    last = 2 * n - 1 if mode == "symmetric" else 2 * n - 2
    period = last + 1 if mode == "symmetric" else max(last, 1)
    index = index % period
    return minimum(index, last - index)


def _widths(x: Tensor, pad_width: Any) -> list[tuple[int, int]]:
    if isinstance(pad_width, Mapping):
        widths = [(0, 0)] * x.ndim
        for axis, width in pad_width.items():
            widths[normalize_axis(axis, x.ndim, "pad")] = _pairs("pad_width", width, 1)[0]
    else:
        widths = _pairs("pad_width", pad_width, x.ndim)
    widths = [(operator.index(before), operator.index(after)) for before, after in widths]
    if any(width < 0 for pair in widths for width in pair):
        raise ValueError(
            f"pad: pad_width {pad_width!r} has a negative width. To make axes shorter, index them with slices."
        )
    return widths


def _pairs(name: str, given: Any, ndim: int) -> list[tuple[Any, Any]]:
    """One pair for each axis, from a number, a pair, or a sequence of either."""
    if not _is_sequence(given):
        return [(given, given)] * ndim
    entries = list(given)
    if all(not _is_sequence(entry) for entry in entries) and len(entries) in (1, 2):
        return [(entries[0], entries[-1])] * ndim
    pairs = [tuple(entry) if _is_sequence(entry) else (entry,) for entry in entries]
    if len(pairs) == 1:
        pairs = pairs * ndim
    if len(pairs) != ndim or any(len(pair) not in (1, 2) for pair in pairs):
        raise ShapeError(
            f"pad: {name} {given!r} does not fit {ndim} axes; give one number, one pair (before, after), or one "
            "pair for each axis."
        )
    return [(pair[0], pair[-1]) for pair in pairs]


def _is_sequence(value: object) -> bool:
    # NumPy users give arrays of widths, too.
    return isinstance(value, Sequence) or getattr(value, "ndim", 0) > 0
