"""``Device``: the name of one compute unit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from numr.errors import DeviceMismatch

__all__ = ["Device"]


@dataclass(frozen=True, slots=True, repr=False)
class Device:
    """One compute unit of a runtime: a value that names it, without holding it.

    A device is hashable and compares equal to devices of the same class with the same ``id``, and to
    nothing else: not to its string. It holds no connection, memory or library object, so it may be
    pickled, sent to other processes and kept for as long as one likes.

    Subclasses set the class attributes; a runtime gets its devices from ``Runtime.devices()``.

    Parameters
    ----------
    id : int
        Number of the device in its runtime, from 0.

    Attributes
    ----------
    runtime : str
        Name of the runtime that the device belongs to.
    single : bool
        Whether the runtime has exactly one device on every machine, whose string is then the plain
        name of the runtime.

    Raises
    ------
    DeviceMismatch
        If ``id`` is not a number from 0.
    """

    id: int = 0

    runtime: ClassVar[str] = ""
    single: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if type(self.id) is not int or self.id < 0:
            raise DeviceMismatch(
                f"{type(self).__name__}: a device's id is an int from 0, not {self.id!r}."
            )

    @property
    def name(self) -> str:
        """The device as people call it, such as the product's name."""
        return f"{self.runtime} device {self.id}"

    def is_same(self, other: object) -> bool:
        """Whether ``other`` is this device."""
        return self == other

    def __str__(self) -> str:
        """Stable text that ``Runtime.device`` reads back: ``"cuda:1"``, or ``"cpu"``."""
        return self.runtime if self.single and self.id == 0 else f"{self.runtime}:{self.id}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id})"
