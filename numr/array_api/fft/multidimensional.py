"""Fourier transforms along several axes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from numr.array_api.fft._steps import (
    Norm,
    along,
    check_norm,
    complex_input,
    real_input,
    scaled,
    transformed_axes,
)
from numr.errors import AxisError
from numr.tensor import primitives as p
from numr.tensor.core import Tensor

__all__ = ["fftn", "ifftn", "irfftn", "rfftn"]


def fftn(
    x: Tensor,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Tensor:
    """Discrete Fourier transform over several axes.

    Parameters
    ----------
    x : Tensor
        Complex floating-point.
    s : sequence of int, optional
        Number of points along each of ``axes``: the axis is cut or padded with zeros at its end, -1 keeps it.
        Default: the axes' lengths.
    axes : sequence of int, optional
        The axes to transform, each once. Default: all.
    norm : {"backward", "ortho", "forward"}, default "backward"
        Scale by 1, ``1/sqrt(n)`` or ``1/n``, where ``n`` is the product of ``s``.

    Returns
    -------
    Tensor
        A new tensor of the dtype of ``x``, with lengths ``s`` along the axes.

    Raises
    ------
    ValueError
        If ``norm`` is unknown.
    AxisError
        If an axis is out of range or named twice.
    ShapeError
        If there is not at least one point along each axis, or ``s`` and ``axes`` differ in length.

    Notes
    -----
    As extras, real input is converted to the complex dtype of its precision, and ``s`` without ``axes``
    speaks of the last axes.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.fft.fftn(xp.asarray([[1 + 0j, 0], [0, 0]]))
    Tensor([[1.+0.j, 1.+0.j],
            [1.+0.j, 1.+0.j]], dtype=complex128, device=cpu)
    """
    return _complex("fftn", x, "forward", s, axes, norm)


def ifftn(
    x: Tensor,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Tensor:
    """Inverse discrete Fourier transform over several axes.

    Parameters
    ----------
    x : Tensor
        Complex floating-point.
    s : sequence of int, optional
        Number of points along each of ``axes``: the axis is cut or padded with zeros at its end, -1 keeps it.
        Default: the axes' lengths.
    axes : sequence of int, optional
        The axes to transform, each once. Default: all.
    norm : {"backward", "ortho", "forward"}, default "backward"
        Scale by ``1/n``, ``1/sqrt(n)`` or 1, where ``n`` is the product of ``s``.

    Returns
    -------
    Tensor
        A new tensor of the dtype of ``x``, with lengths ``s`` along the axes.

    Raises
    ------
    ValueError
        If ``norm`` is unknown.
    AxisError
        If an axis is out of range or named twice.
    ShapeError
        If there is not at least one point along each axis, or ``s`` and ``axes`` differ in length.

    Notes
    -----
    As extras, real input is converted to the complex dtype of its precision, and ``s`` without ``axes``
    speaks of the last axes.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.fft.ifftn(xp.asarray([[4 + 0j, 0], [0, 0]]))
    Tensor([[1.+0.j, 1.+0.j],
            [1.+0.j, 1.+0.j]], dtype=complex128, device=cpu)
    """
    return _complex("ifftn", x, "backward", s, axes, norm)


def rfftn(
    x: Tensor,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Tensor:
    """Discrete Fourier transform of real input over several axes.

    Parameters
    ----------
    x : Tensor
        Real-valued floating-point.
    s : sequence of int, optional
        Number of points along each of ``axes``: the axis is cut or padded with zeros at its end, -1 keeps it.
        Default: the axes' lengths.
    axes : sequence of int, optional
        The axes to transform, each once; along the last of them only the frequencies that are not negative
        are given. Default: all.
    norm : {"backward", "ortho", "forward"}, default "backward"
        Scale by 1, ``1/sqrt(n)`` or ``1/n``, where ``n`` is the product of ``s``.

    Returns
    -------
    Tensor
        A new tensor of the complex dtype of the precision of ``x``, with lengths ``s`` along the axes and
        ``s[-1] // 2 + 1`` along the last of them.

    Raises
    ------
    ValueError
        If ``norm`` is unknown.
    AxisError
        If an axis is out of range or named twice, or there is none.
    ShapeError
        If there is not at least one point along each axis, or ``s`` and ``axes`` differ in length.
    DTypeError
        If ``x`` is complex.

    Notes
    -----
    As an extra, ``s`` without ``axes`` speaks of the last axes.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.fft.rfftn(xp.ones((2, 4)))
    Tensor([[8.+0.j, 0.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j, 0.+0.j]], dtype=complex128, device=cpu)
    """
    x = real_input("rfftn", x)
    check_norm("rfftn", norm)
    axes, lengths = _some_axes("rfftn", x, s, axes)
    points = [x.shape[axis] if n is None else n for axis, n in zip(axes, lengths, strict=True)]
    x = along("rfftn", x, "real", axes[-1], points[-1])
    for axis, n in zip(axes[:-1], points[:-1], strict=True):
        x = along("rfftn", x, "forward", axis, n)
    return scaled(x, norm, math.prod(points), inverse=False)


def irfftn(
    x: Tensor,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Tensor:
    """Inverse of :func:`rfftn`.

    Parameters
    ----------
    x : Tensor
        Complex floating-point.
    s : sequence of int, optional
        Lengths of the result along each of ``axes``: the axis is cut or padded with zeros at its end (the last
        one to ``s[-1] // 2 + 1``), -1 keeps it. Default: the axes' lengths, and ``2 * (m - 1)`` for the last one
        of length ``m``; an odd number must be given.
    axes : sequence of int, optional
        The axes to transform, each once; the last of them holds only frequencies that are not negative.
        Default: all.
    norm : {"backward", "ortho", "forward"}, default "backward"
        Scale by ``1/n``, ``1/sqrt(n)`` or 1, where ``n`` is the product of ``s``.

    Returns
    -------
    Tensor
        A new tensor of the real dtype of the precision of ``x``, with lengths ``s`` along the axes.

    Raises
    ------
    ValueError
        If ``norm`` is unknown.
    AxisError
        If an axis is out of range or named twice, or there is none.
    ShapeError
        If there is not at least one point along each axis, or ``s`` and ``axes`` differ in length.

    Notes
    -----
    As extras, real input is converted to the complex dtype of its precision, and ``s`` without ``axes``
    speaks of the last axes.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.fft.irfftn(xp.asarray([[8 + 0j, 0, 0], [0, 0, 0]]))
    Tensor([[1., 1., 1., 1.],
            [1., 1., 1., 1.]], dtype=float64, device=cpu)
    """
    x = complex_input("irfftn", x)
    check_norm("irfftn", norm)
    axes, lengths = _some_axes("irfftn", x, s, axes)
    points = [x.shape[axis] if n is None else n for axis, n in zip(axes, lengths, strict=True)]
    if lengths[-1] is None:
        points[-1] = 2 * (x.shape[axes[-1]] - 1)
    for axis, n in zip(axes[:-1], points[:-1], strict=True):
        x = along("irfftn", x, "backward", axis, n)
    x = along("irfftn", x, "hermitian", axes[-1], points[-1])
    return scaled(x, norm, math.prod(points), inverse=True)


def _complex(
    function: str,
    x: Tensor,
    kind: str,
    s: Sequence[int] | None,
    axes: Sequence[int] | None,
    norm: Norm,
) -> Tensor:
    given = x
    x = complex_input(function, x)
    check_norm(function, norm)
    axes, lengths = transformed_axes(function, x, s, axes)
    points = 1
    for axis, n in zip(axes, lengths, strict=True):
        n = x.shape[axis] if n is None else n
        x = along(function, x, kind, axis, n)
        points *= n
    if x is given:
        x = p.copy(x)
    return scaled(x, norm, points, inverse=kind == "backward")


def _some_axes(
    function: str, x: Tensor, s: Sequence[int] | None, axes: Sequence[int] | None
) -> tuple[tuple[int, ...], tuple[int | None, ...]]:
    named, lengths = transformed_axes(function, x, s, axes)
    if not named:
        raise AxisError(
            f"{function}: no axis of shape {x.shape} is named to transform; at least one is needed, as the last "
            "one holds half of the frequencies."
        )
    return named, lengths
