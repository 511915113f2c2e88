"""How often values occur: ``bincount`` and ``histogram``."""

from __future__ import annotations

import math
import operator

from numr.array_api import _arguments as arg
from numr.array_api.elementwise_functions import maximum
from numr.array_api.searching_functions import where
from numr.errors import ShapeError
from numr.ir.ops import Reduction
from numr.tensor import primitives as p
from numr.tensor.core import Tensor

__all__ = ["bincount", "histogram"]


def bincount(x: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each of the numbers 0, 1, 2, ... occurs.

    Parameters
    ----------
    x : Tensor
        Integers that are not negative, or booleans, of one axis.
    weights : Tensor, optional
        What each element adds to its count, real-valued and of the shape of ``x``. Default: 1.
    minlength : int, default 0
        The result has at least so many counts.

    Returns
    -------
    Tensor
        Counts of the default integer dtype, or sums of the weights as floating-point, up to the largest
        element.

    Raises
    ------
    ValueError
        If an element or ``minlength`` is negative.
    ShapeError
        If ``x`` does not have one axis, or the weights another shape.
    DTypeError
        If ``x`` does not hold integers, or the weights are complex.

    Notes
    -----
    The length of the result depends on the data: the smallest and largest element are read from the device.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.bincount(xp.asarray([0, 2, 2]))
    Tensor([1, 0, 2], dtype=int64, device=cpu)
    """
    x = arg.in_domain("bincount", arg.tensor("bincount", x), "integer or boolean")
    length = operator.index(minlength)
    if length < 0:
        raise ValueError(f"bincount: minlength is {length}; it must not be negative.")
    if x.ndim != 1:
        raise ShapeError(f"bincount: got shape {x.shape}; one axis is needed. Use ravel() first.")
    client = x._client
    index = client.defaults.indexing
    numbers = p.cast(x, index)
    numbers, weights = _sorted("bincount", numbers, x, weights)
    if x.size:
        least = int(numbers[0])
        if least < 0:
            raise ValueError(f"bincount: x holds {least}; negative numbers are not counted.")
        length = max(length, int(numbers[-1]) + 1)
    bounds = p.searchsorted(numbers, p.iota(client, length + 1, index), "left")
    return _counts(bounds, weights)


def histogram(
    x: Tensor,
    bins: int | Tensor = 10,
    range: tuple[float, float] | None = None,
    *,
    density: bool = False,
    weights: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """How many elements lie in each of a row of bins.

    Parameters
    ----------
    x : Tensor
        Real-valued, any shape.
    bins : int or Tensor, default 10
        The number of bins of equal width, or their edges: ascending, real-valued, of one axis.
    range : pair of float, optional
        Lower and upper end of the bins where their number is given. Default: the smallest and largest
        element.
    density : bool, default False
        Whether to divide by the total and the bins' widths, so that the result integrates to 1.
    weights : Tensor, optional
        What each element adds to its bin, real-valued and of the shape of ``x``. Default: 1.

    Returns
    -------
    counts : Tensor
        Of the default integer dtype, or floating-point with ``density`` or ``weights``. A bin holds its lower
        edge but not its upper one; the last holds both. What lies outside, and NaN, is not counted.
    edges : Tensor
        One more than there are bins, floating-point or the tensor given.

    Raises
    ------
    ValueError
        If the number of bins is not positive, or the range not finite and ascending.
    ShapeError
        If edges do not have one axis and at least two elements, or the weights another shape than ``x``.
    DTypeError
        If a tensor is complex.

    Notes
    -----
    Nothing is read from the device, so NaN in ``x`` without a ``range`` is not refused: the edges are NaN.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> counts, edges = xp.histogram(xp.asarray([1.0, 2.0, 2.5, 4.0]), bins=3)
    >>> counts, edges
    (Tensor([1, 2, 1], dtype=int64, device=cpu), Tensor([1., 2., 3., 4.], dtype=float64, device=cpu))
    """
    x = arg.in_domain("histogram", arg.tensor("histogram", x), "real-valued")
    flat = p.reshape(x, (x.size,))
    if isinstance(bins, Tensor):
        arg.tensors("histogram", x, bins)
        edges = arg.in_domain("histogram", bins, "real-valued")
        if edges.ndim != 1 or edges.size < 2:
            raise ShapeError(
                f"histogram: the edges have shape {edges.shape}; one axis of at least two edges is needed."
            )
        values, borders = arg.promoted("histogram", flat, edges)
    else:
        values = arg.floating("histogram", flat)
        edges = borders = _even_edges(values, _bin_count(bins), range)
    values, weights = _sorted("histogram", values, x, weights)
    bounds = p.concat(
        [
            p.searchsorted(values, borders[:-1], "left"),
            p.searchsorted(values, borders[-1:], "right"),
        ],
        0,
    )
    counts = _counts(bounds, weights)
    if density:
        counts = arg.floating("histogram", counts)
        widths = arg.floating("histogram", edges[1:] - edges[:-1])
        total = p.reduce(Reduction.SUM, counts, (0,), True)
        counts = counts / widths / total
    return counts, edges


def _bin_count(bins: object) -> int:
    if isinstance(bins, str):
        raise TypeError(
            f"histogram: bins={bins!r}, but rules that choose bins from the data are not offered; give their "
            "number or edges."
        )
    count = operator.index(bins)  # type: ignore[arg-type]
    if count < 1:
        raise ValueError(f"histogram: the number of bins is {count}; it must be positive.")
    return count


def _even_edges(values: Tensor, bins: int, range: tuple[float, float] | None) -> Tensor:
    """Edges of bins of equal width between two ends, or the smallest and largest of the values."""
    client, dtype = values._client, values.dtype
    if range is None and values.size:
        low = p.reduce(Reduction.MIN, values, (0,), True)
        high = p.reduce(Reduction.MAX, values, (0,), True)
    else:
        first, last = (0.0, 1.0) if range is None else (float(end) for end in range)
        if not (math.isfinite(first) and math.isfinite(last) and first <= last):
            raise ValueError(
                f"histogram: range {range!r} must be two finite numbers, the lower one first."
            )
        low, high = p.full(client, (1,), first, dtype), p.full(client, (1,), last, dtype)
    # All elements equal: bins of some width around them.
    single = low == high
    low, high = where(single, low - 0.5, low), where(single, high + 0.5, high)
    return p.concat([p.iota(client, bins, dtype) * ((high - low) / bins) + low, high], 0)


def _sorted(
    function: str, values: Tensor, x: Tensor, weights: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """The values in ascending order, and the weights of the elements of ``x`` in that order."""
    if weights is None:
        return p.sort(values, 0, descending=False), None
    arg.tensors(function, x, weights)
    if weights.shape != x.shape:
        raise ShapeError(
            f"{function}: the weights have shape {weights.shape}, but x has {x.shape}; they must be equal."
        )
    weights = arg.floating(function, weights, "real-valued floating-point")
    order = p.argsort(values, 0, descending=False)
    return p.gather(values, (order,)), p.gather(p.reshape(weights, (x.size,)), (order,))


def _counts(bounds: Tensor, weights: Tensor | None) -> Tensor:
    """How many sorted elements lie between neighbouring bounds, or the sums of their weights."""
    if weights is not None:
        return _sums_between(weights, bounds)
    return p.cast(bounds[1:] - bounds[:-1], bounds._client.defaults.integral)


def _sums_between(values: Tensor, bounds: Tensor) -> Tensor:
    """Sums of the values between neighbouring bounds.

    Partial sums double in length step by step, each within its bounds only: a difference of running sums over all
    values would lose the digits of small sums beside large ones.
    """
    size = values.size
    if not size:
        return p.full(values._client, (bounds.size - 1,), 0, values.dtype)
    place = p.iota(values._client, size, bounds.dtype)
    group = p.searchsorted(bounds, place, "right")
    step = 1
    while step < size:
        sums = values[step:] + values[:-step]
        joined = where(group[step:] == group[:-step], sums, values[step:])
        values = p.concat([values[:step], joined], 0)
        step *= 2
    totals = p.gather(values, (maximum(bounds[1:] - 1, 0),))
    return where(bounds[1:] > bounds[:-1], totals, 0)
