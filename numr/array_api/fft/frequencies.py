"""The frequencies that transforms give, and moving the zero frequency to the centre."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from numr.array_api import _arguments as arg
from numr.array_api._binding import RuntimeFunctions
from numr.dtypes import DType, category_of
from numr.errors import DTypeError
from numr.ir import ops
from numr.layout import normalize_axes
from numr.runtime.client import RuntimeClient
from numr.runtime.device import Device
from numr.tensor import primitives as p
from numr.tensor.core import Tensor, elementwise

__all__ = ["FFTCreation", "fftshift", "ifftshift"]


class FFTCreation(RuntimeFunctions):
    """The functions of the ``fft`` extension that make tensors from nothing, for one namespace."""

    def fftfreq(
        self,
        n: int,
        /,
        *,
        d: float = 1.0,
        dtype: Any = None,
        device: Device | str | None = None,
    ) -> Tensor:
        """Frequencies of the elements that :func:`fft` gives.

        Parameters
        ----------
        n : int
            Number of points, at least one.
        d : float, default 1.0
            Distance of neighbouring points.
        dtype : dtype, optional
            Real-valued floating-point. Default: the device's default.
        device : Device or str, optional
            Where to put the result. Default: the runtime's default device.

        Returns
        -------
        Tensor
            ``[0, 1, ..., -2, -1] / (d * n)``, of shape ``(n,)``; for even ``n`` the middle one is negative.

        Raises
        ------
        ValueError
            If ``n`` is not positive, or ``d`` is 0.
        DTypeError
            If ``dtype`` is not real-valued floating-point.

        Examples
        --------
        >>> import numr.cpu as xp
        >>> xp.fft.fftfreq(4, d=0.5)
        Tensor([ 0. ,  0.5, -1. , -0.5], dtype=float64, device=cpu)
        """
        client = self._client(device)
        n, target = _checked("fftfreq", n, d, dtype, client)
        cycles = p.concat(
            [
                p.iota(client, (n + 1) // 2, target),
                p.iota(client, n // 2, target, start=-(n // 2)),
            ],
            0,
        )
        return elementwise(ops.DIVIDE, cycles, n * d)

    def rfftfreq(
        self,
        n: int,
        /,
        *,
        d: float = 1.0,
        dtype: Any = None,
        device: Device | str | None = None,
    ) -> Tensor:
        """Frequencies of the elements that :func:`rfft` gives.

        Parameters
        ----------
        n : int
            Number of points, at least one.
        d : float, default 1.0
            Distance of neighbouring points.
        dtype : dtype, optional
            Real-valued floating-point. Default: the device's default.
        device : Device or str, optional
            Where to put the result. Default: the runtime's default device.

        Returns
        -------
        Tensor
            ``[0, 1, ..., n // 2] / (d * n)``, of shape ``(n // 2 + 1,)``.

        Raises
        ------
        ValueError
            If ``n`` is not positive, or ``d`` is 0.
        DTypeError
            If ``dtype`` is not real-valued floating-point.

        Examples
        --------
        >>> import numr.cpu as xp
        >>> xp.fft.rfftfreq(4, d=0.5)
        Tensor([0. , 0.5, 1. ], dtype=float64, device=cpu)
        """
        client = self._client(device)
        n, target = _checked("rfftfreq", n, d, dtype, client)
        return elementwise(ops.DIVIDE, p.iota(client, n // 2 + 1, target), n * d)


def fftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """Move the zero frequency from the front of axes to their centre.

    Parameters
    ----------
    x : Tensor
        Any dtype.
    axes : int or sequence of int, optional
        The axes to shift, each once. Default: all.

    Returns
    -------
    Tensor
        A new tensor of the shape and dtype of ``x``.

    Raises
    ------
    AxisError
        If an axis is out of range or named twice.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.fft.fftshift(xp.asarray([0, 1, 2, -2, -1]))
    Tensor([-2, -1,  0,  1,  2], dtype=int64, device=cpu)
    """
    return _shifted("fftshift", x, axes, first_half_up=1)


def ifftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """Undo :func:`fftshift`, from which it differs for axes of odd length.

    Parameters
    ----------
    x : Tensor
        Any dtype.
    axes : int or sequence of int, optional
        The axes to shift, each once. Default: all.

    Returns
    -------
    Tensor
        A new tensor of the shape and dtype of ``x``.

    Raises
    ------
    AxisError
        If an axis is out of range or named twice.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.fft.ifftshift(xp.asarray([-2, -1, 0, 1, 2]))
    Tensor([ 0,  1,  2, -2, -1], dtype=int64, device=cpu)
    """
    return _shifted("ifftshift", x, axes, first_half_up=0)


def _shifted(
    function: str, x: Tensor, axes: int | Sequence[int] | None, *, first_half_up: int
) -> Tensor:
    """Swap the halves of axes; of an odd length, the first half is the longer one if ``first_half_up``."""
    arg.tensor(function, x)
    given = x
    if axes is not None and not hasattr(axes, "__index__"):
        axes = tuple(axes)
    for axis in normalize_axes(axes, x.ndim, function):
        length = x.shape[axis]
        middle = (length + first_half_up) // 2
        if 0 < middle < length:
            before = (slice(None),) * axis
            x = p.concat([x[(*before, slice(middle, None))], x[(*before, slice(middle))]], axis)
    return p.copy(x) if x is given else x


def _checked(
    function: str, n: int, d: float, dtype: Any, client: RuntimeClient[Any]
) -> tuple[int, DType]:
    n = operator.index(n)
    if n < 1:
        raise ValueError(f"{function}: n is {n}; a transform has at least one point.")
    if d == 0:
        raise ValueError(f"{function}: d is 0; neighbouring points must be apart.")
    if dtype is None:
        return n, client.defaults.real
    target = arg.requested_dtype(function, dtype, client)
    if target.kind != "f":
        raise DTypeError(
            f"{function}: got dtype {target}, which is {category_of(target)}; frequencies are real-valued "
            "floating-point."
        )
    return n, target
