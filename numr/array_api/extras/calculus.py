"""Derivatives, integrals and interpolation of sampled functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsIndex

from numr.array_api import _arguments as arg
from numr.array_api.elementwise_functions import isfinite, isinf, isnan, maximum, minimum
from numr.array_api.searching_functions import where
from numr.errors import ShapeError
from numr.ir.ops import Reduction
from numr.layout import normalize_axes, normalize_axis
from numr.tensor import primitives as p
from numr.tensor.core import Tensor

__all__ = ["gradient", "interp", "trapezoid"]


def gradient(
    f: Tensor,
    *varargs: float | Tensor,
    axis: int | Sequence[int] | None = None,
    edge_order: int = 1,
) -> Tensor | tuple[Tensor, ...]:
    """Derivatives of a sampled function, by central differences inside and one-sided ones at the ends.

    Parameters
    ----------
    f : Tensor
        The samples: floating-point; integers and booleans are taken as the device's default real dtype.
    *varargs : float or Tensor
        The samples' places: nothing for a distance of 1, one distance for all axes, or for each axis a
        distance or the coordinates (real-valued, of one axis). Distances are Python numbers or tensors without axes.
    axis : int or sequence of int, optional
        The axes to differentiate along. Default: all.
    edge_order : {1, 2}, default 1
        Order of accuracy of the differences at the ends.

    Returns
    -------
    Tensor or tuple of Tensor
        The derivatives, of the shape of ``f``: one tensor for one axis, else a tuple of one for each.

    Raises
    ------
    TypeError
        If there are not as many distances as axes.
    ValueError
        If ``edge_order`` is neither 1 nor 2.
    AxisError
        If an axis is out of range or named twice.
    ShapeError
        If an axis has not more than ``edge_order`` samples, or coordinates do not fit it.

    Notes
    -----
    Between samples at uneven distances the central difference is weighted, so that it is exact for parabolas.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.gradient(xp.asarray([1.0, 2.0, 4.0, 7.0]))
    Tensor([1. , 1.5, 2.5, 3. ], dtype=float64, device=cpu)
    """
    f = arg.floating("gradient", arg.tensor("gradient", f))
    if edge_order not in (1, 2):
        raise ValueError(f"gradient: edge_order is {edge_order!r}; it must be 1 or 2.")
    named = axis if axis is None or isinstance(axis, SupportsIndex) else tuple(axis)
    axes = normalize_axes(named, f.ndim, "gradient")
    spacings = varargs or (1.0,)
    if len(spacings) == 1 and not (isinstance(spacings[0], Tensor) and spacings[0].ndim):
        spacings = spacings * len(axes)
    if len(spacings) != len(axes):
        raise TypeError(
            f"gradient: got {len(spacings)} distances for {len(axes)} axes; give one for all or one for each."
        )
    results = tuple(
        _derivative(f, axis, spacing, edge_order)
        for axis, spacing in zip(axes, spacings, strict=True)
    )
    return results[0] if len(results) == 1 else results


def trapezoid(y: Tensor, x: Tensor | None = None, dx: float = 1.0, axis: int = -1) -> Tensor:
    """Integral of a sampled function by the trapezoidal rule.

    Parameters
    ----------
    y : Tensor
        The samples: floating-point; integers and booleans are taken as the device's default real dtype.
    x : Tensor, optional
        The samples' places, of one axis or of a shape that broadcasts against that of ``y``.
    dx : float, default 1.0
        Distance of the samples where ``x`` is not given.
    axis : int, default -1
        The axis to integrate along.

    Returns
    -------
    Tensor
        The integrals, of the shape of ``y`` without the axis.

    Raises
    ------
    AxisError
        If the axis is out of range.
    ShapeError
        If the places do not fit the samples.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.trapezoid(xp.asarray([1.0, 2.0, 3.0]))
    Tensor(4., dtype=float64, device=cpu)
    """
    y = arg.floating("trapezoid", arg.tensor("trapezoid", y))
    along = normalize_axis(axis, y.ndim, "trapezoid")
    width: Tensor | float = dx
    if x is not None:
        arg.tensors("trapezoid", y, x)
        if x.ndim == 1 and x.size != y.shape[along]:
            raise ShapeError(
                f"trapezoid: {x.size} places do not fit axis {along} of shape {y.shape}."
            )
        if x.ndim == 1:
            width = _on_axis(x[1:] - x[:-1], y.ndim, along)
        else:
            of_x = normalize_axis(axis, x.ndim, "trapezoid")
            width = _part(x, of_x, 1, None) - _part(x, of_x, None, -1)
    areas = width * (_part(y, along, 1, None) + _part(y, along, None, -1)) / 2
    return p.reduce(Reduction.SUM, areas, (along + areas.ndim - y.ndim,), False)


def interp(
    x: Tensor,
    xp: Tensor,
    fp: Tensor,
    left: complex | None = None,
    right: complex | None = None,
    period: float | None = None,
) -> Tensor:
    """Values of the piecewise linear function through given points.

    Parameters
    ----------
    x : Tensor
        Where to evaluate it: real-valued, any shape.
    xp : Tensor
        The points' coordinates: real-valued, of one axis, ascending unless there is a period.
    fp : Tensor
        The points' values: floating-point (or integers, taken as the default real dtype), of the shape of ``xp``.
    left, right : scalar, optional
        The values below the first and above the last point. Default: those of these points.
    period : float, optional
        The function repeats after this distance; ``left`` and ``right`` do not matter then.

    Returns
    -------
    Tensor
        The values, of the shape of ``x``; NaN where ``x`` is NaN.

    Raises
    ------
    ValueError
        If the period is 0.
    ShapeError
        If ``xp`` and ``fp`` do not have one axis of the same length, at least 1.
    DTypeError
        If ``x`` or ``xp`` is complex.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> points = xp.asarray([0.0, 1.0, 3.0])
    >>> xp.interp(xp.asarray([-1.0, 0.5, 2.0]), points, points * 10)
    Tensor([ 0.,  5., 20.], dtype=float64, device=cpu)
    """
    arg.tensors("interp", x, xp, fp)
    if xp.ndim != 1 or xp.shape != fp.shape or not xp.size:
        raise ShapeError(
            f"interp: the points have shapes {xp.shape} and {fp.shape}; both need one axis of the same length, "
            "at least 1."
        )
    at, places = (
        arg.floating("interp", value, "real-valued floating-point")
        for value in arg.promoted("interp", x, xp)
    )
    values = arg.floating("interp", fp)
    if period is not None:
        at, places, values = _periodic(at, places, values, period)
        left = right = None
    last = places.size - 1
    # The piece that a value lies on begins at the last point not above it; at the last point none does.
    after = p.searchsorted(places, at, "right")
    start = minimum(maximum(after - 1, 0), last)
    stop = minimum(start + 1, last)
    x0, x1 = p.gather(places, (start,)), p.gather(places, (stop,))
    f0, f1 = p.gather(values, (start,)), p.gather(values, (stop,))
    inside = minimum(maximum(at, places[0]), places[-1])
    result = _on_line(inside, x0, x1, f0, f1)
    result = where(at < places[0], values[0] if left is None else left, result)
    result = where(at > places[-1], values[-1] if right is None else right, result)
    return where(isnan(at), at, result)


def _on_line(at: Tensor, x0: Tensor, x1: Tensor, f0: Tensor, f1: Tensor) -> Tensor:
    """The line through two points; exact at the first one, and the value of both where they have the same."""
    width = where(x1 == x0, 1, x1 - x0)
    line = (f1 - f0) / width * (at - x0) + f0
    # An infinity at the beginning outweighs a number at the end, as it does the other way round.
    outweighing = isinf(f0) & isfinite(f1)
    return where((at == x0) | (f0 == f1) | outweighing, f0, line)


def _periodic(
    at: Tensor, places: Tensor, values: Tensor, period: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The points in one period, sorted, with the neighbours of its ends from the periods beside it."""
    length = abs(float(period))
    if not length:
        raise ValueError("interp: the period is 0; a function repeats after a distance.")
    at, places = at % length, places % length
    order = p.argsort(places, 0, descending=False)
    places, values = p.gather(places, (order,)), p.gather(values, (order,))
    return (
        at,
        p.concat([places[-1:] - length, places, places[:1] + length], 0),
        p.concat([values[-1:], values, values[:1]], 0),
    )


def _derivative(f: Tensor, axis: int, spacing: float | Tensor, edge_order: int) -> Tensor:
    n = f.shape[axis]
    if n <= edge_order:
        raise ShapeError(
            f"gradient: axis {axis} of shape {f.shape} has {n} samples; differences with edge_order={edge_order} "
            f"need {edge_order + 1}."
        )
    uneven = isinstance(spacing, Tensor) and spacing.ndim > 0
    widths: Any = _widths(f, axis, spacing) if uneven else spacing

    def sample(start: int, stop: int | None) -> Tensor:
        return _part(f, axis, start, stop)

    def width(start: int, stop: int | None) -> Any:
        return _part(widths, axis, start, stop) if uneven else widths

    if uneven:
        h0, h1 = width(0, -1), width(1, None)
        behind, ahead = sample(1, -1) - sample(0, -2), sample(2, None) - sample(1, -1)
        inside = behind * (h1 / (h0 * (h0 + h1))) + ahead * (h0 / (h1 * (h0 + h1)))
    else:
        inside = (sample(2, None) - sample(0, -2)) / (2 * widths)
    if edge_order == 1:
        first = (sample(1, 2) - sample(0, 1)) / width(0, 1)
        last = (sample(-1, None) - sample(-2, -1)) / width(-1, None)
    else:
        first = _at_end(sample(0, 1), sample(1, 2), sample(2, 3), width(0, 1), width(1, 2))
        # The same from the other end, against the direction of the axis.
        last = -_at_end(
            sample(-1, None), sample(-2, -1), sample(-3, -2), width(-1, None), width(-2, -1)
        )
    return p.concat([first, inside, last], axis)


def _widths(f: Tensor, axis: int, places: Any) -> Tensor:
    """Distances between coordinates along an axis, shaped to broadcast against ``f``."""
    arg.tensors("gradient", f, places)
    if places.shape != (f.shape[axis],):
        raise ShapeError(
            f"gradient: coordinates of shape {places.shape} do not fit axis {axis} of shape {f.shape}; "
            f"({f.shape[axis]},) is needed."
        )
    places = arg.floating("gradient", places, "real-valued floating-point")
    return _on_axis(places[1:] - places[:-1], f.ndim, axis)


def _at_end(f0: Tensor, f1: Tensor, f2: Tensor, h1: Any, h2: Any) -> Tensor:
    """The derivative, at the first of three samples, of the parabola through them."""
    total = h1 + h2
    result: Tensor = (f1 - f0) * ((h1 + total) / (h1 * total)) - (f2 - f1) * (h1 / (h2 * total))
    return result


def _part(x: Tensor, axis: int, start: int | None, stop: int | None) -> Tensor:
    return x[(*(slice(None),) * axis, slice(start, stop))]


def _on_axis(x: Tensor, ndim: int, axis: int) -> Tensor:
    """One axis as the axis of a tensor of ``ndim`` axes."""
    return p.reshape(x, (1,) * axis + (x.size,) + (1,) * (ndim - axis - 1))
