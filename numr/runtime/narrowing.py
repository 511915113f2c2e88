"""What a dtype means on a device that does not have it: an error, or one of half the width."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence

from numr.config import config
from numr.dtypes import NARROW, DType
from numr.errors import PrecisionWarning, UnsupportedDType
from numr.runtime.device import Device

__all__ = ["stand_in"]


def stand_in(
    dtype: DType,
    dtypes: Sequence[DType],
    device: Device,
    feature: str,
    function: str,
    *,
    exact: bool,
) -> DType:
    """The dtype that is taken for one that a device has not; see ``RuntimeClient.require_dtype``.

    Parameters
    ----------
    dtype : dtype
        What is missing.
    dtypes : sequence of dtype
        What the device has.
    device : Device
        The device.
    feature : str
        What a device needs to have the dtype; empty where that is not known.
    function : str
        The name that errors begin with.
    exact : bool
        Whether nothing can stand for the dtype.

    Raises
    ------
    UnsupportedDType
        If none is taken.
    """
    needs = f", which needs {feature}" if feature else ""
    lack = f"the device {device} ({device.name}) has no {dtype}{needs}"
    remedy = "Ask for one of these with dtype=."
    narrow = NARROW.get(dtype)
    if narrow is not None and narrow in dtypes and not exact:
        if config.float64 == "downcast":
            warnings.warn(
                f"{function}: {lack}; {narrow} is taken instead, as numr.config.float64 says.",
                PrecisionWarning,
                stacklevel=_level_of_caller(),
            )
            return narrow
        remedy = f"Ask for {narrow}, or let numr.config.float64 = 'downcast' do so everywhere."
    raise UnsupportedDType(f"{function}: {lack}; it has {', '.join(map(str, dtypes))}. {remedy}")


def _level_of_caller() -> int:
    """The stack level, for the function that asks, of the first code that is not numr's."""
    level = 1
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("numr."):
        frame = frame.f_back
        level += 1
    return level
