"""The constants of the standard, as Python numbers."""

from __future__ import annotations

import math
from typing import Final

__all__ = ["e", "inf", "nan", "newaxis", "pi"]

#: Euler's number.
e: Final = math.e
#: Positive infinity.
inf: Final = math.inf
#: Not a number.
nan: Final = math.nan
#: None, which inserts an axis of length one in an index.
newaxis: Final = None
#: The ratio of a circle's circumference to its diameter.
pi: Final = math.pi
