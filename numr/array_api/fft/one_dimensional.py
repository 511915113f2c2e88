"""Fourier transforms along one axis."""

from __future__ import annotations

from numr.array_api.fft._steps import (
    OPPOSITE,
    Norm,
    along,
    check_norm,
    complex_input,
    conjugate,
    real_input,
    scaled,
)
from numr.layout import normalize_axis
from numr.tensor.core import Tensor

__all__ = ["fft", "hfft", "ifft", "ihfft", "irfft", "rfft"]


def fft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Discrete Fourier transform.

    Parameters
    ----------
    x : Tensor
        Complex floating-point, any shape with an axis.
    n : int, optional
        Number of points: the axis is cut or padded with zeros at its end. Default: its length.
    axis : int, default -1
        The axis to transform.
    norm : {"backward", "ortho", "forward"}, default "backward"
        Scale by 1, ``1/sqrt(n)`` or ``1/n``.

    Returns
    -------
    Tensor
        A new tensor of the dtype of ``x``, with ``n`` frequencies along the axis.

    Raises
    ------
    ValueError
        If ``norm`` is unknown.
    AxisError
        If the axis is out of range.
    ShapeError
        If there is not at least one point.

    Notes
    -----
    As an extra, real input is accepted and converted to the complex dtype of its precision.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.fft.fft(xp.asarray([1 + 0j, 2, 3, 4]))
    Tensor([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j], dtype=complex128, device=cpu)
    """
    return _transform("fft", complex_input("fft", x), "forward", n, axis, norm)


def ifft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Inverse discrete Fourier transform.

    Parameters
    ----------
    x : Tensor
        Complex floating-point, any shape with an axis.
    n : int, optional
        Number of points: the axis is cut or padded with zeros at its end. Default: its length.
    axis : int, default -1
        The axis to transform.
    norm : {"backward", "ortho", "forward"}, default "backward"
        Scale by ``1/n``, ``1/sqrt(n)`` or 1.

    Returns
    -------
    Tensor
        A new tensor of the dtype of ``x``, with ``n`` elements along the axis.

    Raises
    ------
    ValueError
        If ``norm`` is unknown.
    AxisError
        If the axis is out of range.
    ShapeError
        If there is not at least one point.

    Notes
    -----
    As an extra, real input is accepted and converted to the complex dtype of its precision.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.fft.ifft(xp.asarray([4 + 0j, 0, 0, 0]))
    Tensor([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j], dtype=complex128, device=cpu)
    """
    return _transform("ifft", complex_input("ifft", x), "backward", n, axis, norm)


def rfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Discrete Fourier transform of real input: its frequencies that are not negative.

    Parameters
    ----------
    x : Tensor
        Real-valued floating-point, any shape with an axis.
    n : int, optional
        Number of points: the axis is cut or padded with zeros at its end. Default: its length.
    axis : int, default -1
        The axis to transform.
    norm : {"backward", "ortho", "forward"}, default "backward"
        Scale by 1, ``1/sqrt(n)`` or ``1/n``.

    Returns
    -------
    Tensor
        A new tensor of the complex dtype of the precision of ``x``, with ``n // 2 + 1`` frequencies along the
        axis.

    Raises
    ------
    ValueError
        If ``norm`` is unknown.
    AxisError
        If the axis is out of range.
    ShapeError
        If there is not at least one point.
    DTypeError
        If ``x`` is complex.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.fft.rfft(xp.asarray([1.0, 2.0, 3.0, 4.0]))
    Tensor([10.+0.j, -2.+2.j, -2.+0.j], dtype=complex128, device=cpu)
    """
    return _transform("rfft", real_input("rfft", x), "real", n, axis, norm)


def irfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Inverse of :func:`rfft`.

    Parameters
    ----------
    x : Tensor
        Complex floating-point: the frequencies that are not negative, any shape with an axis.
    n : int, optional
        Number of real elements in the result: the axis is cut or padded with zeros to ``n // 2 + 1``
        frequencies. Default: ``2 * (m - 1)`` for an axis of length ``m``; an odd number must be given.
    axis : int, default -1
        The axis to transform.
    norm : {"backward", "ortho", "forward"}, default "backward"
        Scale by ``1/n``, ``1/sqrt(n)`` or 1.

    Returns
    -------
    Tensor
        A new tensor of the real dtype of the precision of ``x``, with ``n`` elements along the axis.

    Raises
    ------
    ValueError
        If ``norm`` is unknown.
    AxisError
        If the axis is out of range.
    ShapeError
        If there is not at least one point.

    Notes
    -----
    As an extra, real input is accepted and converted to the complex dtype of its precision.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.fft.irfft(xp.asarray([10 + 0j, -2 + 2j, -2]))
    Tensor([1., 2., 3., 4.], dtype=float64, device=cpu)
    """
    return _transform("irfft", complex_input("irfft", x), "hermitian", n, axis, norm)


def hfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Discrete Fourier transform of a signal with Hermitian symmetry, whose spectrum is real.

    Parameters
    ----------
    x : Tensor
        Complex floating-point: the first half of the signal, any shape with an axis.
    n : int, optional
        Number of frequencies in the result: the axis is cut or padded with zeros to ``n // 2 + 1`` elements.
        Default: ``2 * (m - 1)`` for an axis of length ``m``; an odd number must be given.
    axis : int, default -1
        The axis to transform.
    norm : {"backward", "ortho", "forward"}, default "backward"
        Scale by 1, ``1/sqrt(n)`` or ``1/n``.

    Returns
    -------
    Tensor
        A new tensor of the real dtype of the precision of ``x``, with ``n`` frequencies along the axis.

    Raises
    ------
    ValueError
        If ``norm`` is unknown.
    AxisError
        If the axis is out of range.
    ShapeError
        If there is not at least one point.

    Notes
    -----
    As an extra, real input is accepted and converted to the complex dtype of its precision.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.fft.hfft(xp.asarray([1 + 0j, 2, 3]))
    Tensor([ 8., -2.,  0., -2.], dtype=float64, device=cpu)
    """
    x = conjugate(complex_input("hfft", x))
    return _transform("hfft", x, "hermitian", n, axis, OPPOSITE[check_norm("hfft", norm)])


def ihfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """Inverse of :func:`hfft`.

    Parameters
    ----------
    x : Tensor
        Real-valued floating-point: a real spectrum, any shape with an axis.
    n : int, optional
        Number of points: the axis is cut or padded with zeros at its end. Default: its length.
    axis : int, default -1
        The axis to transform.
    norm : {"backward", "ortho", "forward"}, default "backward"
        Scale by ``1/n``, ``1/sqrt(n)`` or 1.

    Returns
    -------
    Tensor
        A new tensor of the complex dtype of the precision of ``x``, with the first ``n // 2 + 1`` elements of
        the signal along the axis.

    Raises
    ------
    ValueError
        If ``norm`` is unknown.
    AxisError
        If the axis is out of range.
    ShapeError
        If there is not at least one point.
    DTypeError
        If ``x`` is complex.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.real(xp.fft.ihfft(xp.asarray([8.0, -2.0, 0.0, -2.0])))
    Tensor([1., 2., 3.], dtype=float64, device=cpu)
    """
    x = real_input("ihfft", x)
    norm = OPPOSITE[check_norm("ihfft", norm)]
    return conjugate(_transform("ihfft", x, "real", n, axis, norm))


def _transform(function: str, x: Tensor, kind: str, n: int | None, axis: int, norm: Norm) -> Tensor:
    axis = normalize_axis(axis, x.ndim, function)
    check_norm(function, norm)
    if n is None:
        n = 2 * (x.shape[axis] - 1) if kind == "hermitian" else x.shape[axis]
    inverse = kind in ("backward", "hermitian")
    return scaled(along(function, x, kind, axis, n), norm, n, inverse=inverse)
