"""Spaced values beyond the standard's ``arange`` and ``linspace``."""

from __future__ import annotations

from typing import Any

from numr.array_api._arguments import requested_dtype
from numr.array_api._binding import RuntimeFunctions
from numr.array_api._values import real_number
from numr.array_api.creation_functions import CreationFunctions
from numr.ir import ops
from numr.runtime.device import Device
from numr.tensor import primitives as p
from numr.tensor.core import Tensor, elementwise

__all__ = ["SpacingFunctions"]


class SpacingFunctions(RuntimeFunctions):
    """The functions of this module for one namespace; see :class:`CreationFunctions` for their arguments."""

    def logspace(
        self,
        start: float,
        stop: float,
        /,
        num: int = 50,
        *,
        endpoint: bool = True,
        base: float = 10.0,
        dtype: Any = None,
        device: Device | str | None = None,
    ) -> Tensor:
        """``num`` powers of a base, from ``base**start`` to ``base**stop``, with evenly spaced exponents.

        Parameters
        ----------
        start, stop : int or float
            The first and the last exponent.
        num : int
            How many values.
        endpoint : bool
            Whether ``base**stop`` is the last value.
        base : int or float
            The base, not negative.

        Raises
        ------
        ValueError
            If ``num`` or ``base`` is negative.

        Notes
        -----
        The powers are computed in the device's default real dtype and then converted.

        Examples
        --------
        >>> import numr.cpu as xp
        >>> xp.logspace(0, 3, 4)
        Tensor([   1.,   10.,  100., 1000.], dtype=float64, device=cpu)
        """
        client = self._client(device)
        number = real_number("logspace", base)
        if number < 0:
            raise ValueError(f"logspace: the base is {base}; it must not be negative.")
        if num < 0:
            raise ValueError(f"logspace: num is {num}; it must not be negative.")
        creation = CreationFunctions(self._runtime)
        exponents = creation.linspace(start, stop, num, endpoint=endpoint, device=device)
        powers = elementwise(ops.POW, number, exponents)
        return (
            powers if dtype is None else p.cast(powers, requested_dtype("logspace", dtype, client))
        )
