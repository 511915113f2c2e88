"""Exceptions that numr raises.

Every exception is a :class:`NumrError` and, where Python or NumPy users expect a built-in class, that
class too, so that ``except MemoryError`` or ``except TypeError`` in code that never heard of numr works.
Messages name the function, the values received, the rule that they break and the way out; the values
that a program may want to act on are attributes as well.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

__all__ = [
    "AllocatorBusy",
    "AllocatorFrozen",
    "AxisError",
    "BackendLimitation",
    "CaptureError",
    "CopyError",
    "DTypeError",
    "DeviceLostError",
    "DeviceMismatch",
    "HostCopyError",
    "IndexingError",
    "InvalidHandle",
    "LinAlgError",
    "NumrError",
    "OutOfMemoryError",
    "PrecisionWarning",
    "ReadOnlyError",
    "RuntimeUnavailable",
    "ShapeError",
    "UnsupportedDType",
]


class NumrError(Exception):
    """Base class of all exceptions that numr raises by itself."""

    #: Attributes that are the arguments of the class; empty where its only argument is the message.
    _fields: ClassVar[tuple[str, ...]] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        fields = tuple(getattr(self, name) for name in self._fields)
        return type(self), fields or self.args


class OutOfMemoryError(NumrError, MemoryError):
    """An allocation does not fit, even after cached memory was given back.

    Parameters
    ----------
    asked : int
        Bytes that the failed allocation asked for.
    active, reserved : int
        Bytes in use, and bytes held by the allocator (in use or cached), when it failed.
    limit : int or None
        The allocator's limit in bytes, None where there is none.
    device : str
        The device whose memory ran out.
    """

    _fields = ("asked", "active", "reserved", "limit", "device")

    def __init__(
        self, asked: int, active: int, reserved: int, limit: int | None, device: str
    ) -> None:
        bound = "no limit is set" if limit is None else f"the limit is {limit} bytes"
        super().__init__(
            f"allocate: {asked} bytes do not fit on {device}: {active} bytes are in use, "
            f"{reserved} are reserved, {bound}. Free tensors, work in smaller pieces"
            + (" or raise the limit with allocator.set_limit()." if limit is not None else ".")
        )
        self.asked = asked
        self.active = active
        self.reserved = reserved
        self.limit = limit
        self.device = device


class AllocatorFrozen(NumrError, RuntimeError):
    """Memory was asked of an allocator that is frozen."""

    _fields = ("asked", "device")

    def __init__(self, asked: int, device: str) -> None:
        super().__init__(
            f"allocate: {asked} bytes were asked of the allocator of {device}, which is frozen. "
            "Call allocator.unfreeze() first, or write into tensors that exist already."
        )
        self.asked = asked
        self.device = device


class AllocatorBusy(NumrError, RuntimeError):
    """An allocator was to be reset while memory that it handed out is still in use."""

    _fields = ("active_allocations", "active_bytes", "device")

    def __init__(self, active_allocations: int, active_bytes: int, device: str) -> None:
        super().__init__(
            f"reset: the allocator of {device} has {active_allocations} live allocations "
            f"({active_bytes} bytes). Drop every tensor that uses them first; trim() gives back "
            "cached memory without that."
        )
        self.active_allocations = active_allocations
        self.active_bytes = active_bytes
        self.device = device


class BackendLimitation(NumrError, NotImplementedError):
    """A runtime cannot do what was asked, by its nature or by a limit of its device.

    Parameters
    ----------
    backend : str
        Name of the runtime.
    operation : str
        What was asked.
    reason : str
        Why it cannot be done, and what to do instead.
    """

    _fields = ("backend", "operation", "reason")

    def __init__(self, backend: str, operation: str, reason: str) -> None:
        super().__init__(f"{operation}: not possible on the {backend} runtime: {reason}")
        self.backend = backend
        self.operation = operation
        self.reason = reason


class RuntimeUnavailable(NumrError, ImportError):
    """A runtime cannot be used on this machine.

    Parameters
    ----------
    runtime : str
        Name of the runtime.
    reason : str
        What is missing.
    remedy : str
        The command that adds it.
    """

    _fields = ("runtime", "reason", "remedy")

    def __init__(self, runtime: str, reason: str, remedy: str) -> None:
        super().__init__(f"the runtime {runtime!r} is not available: {reason}. {remedy}")
        self.runtime = runtime
        self.reason = reason
        self.remedy = remedy


class DeviceMismatch(NumrError, ValueError):
    """Operands live on different devices, or a device does not exist."""


class DTypeError(NumrError, TypeError):
    """An operand's dtype is not one that the function takes, or dtypes do not promote."""


class UnsupportedDType(DTypeError):
    """A device cannot hold or compute with a dtype."""


class ShapeError(NumrError, ValueError):
    """Shapes do not fit each other or the function."""


# IndexError and ValueError both, as numpy.exceptions.AxisError is.
class AxisError(NumrError, ValueError, IndexError):
    """An axis is out of range or repeated."""


class IndexingError(NumrError, IndexError):
    """An index key is out of range or malformed."""


class CopyError(NumrError, ValueError):
    """``copy=False`` was asked where only a copy can give the result."""


class ReadOnlyError(NumrError, ValueError):
    """A write was tried on memory that is read-only."""


class HostCopyError(NumrError, TypeError):
    """Data would have been copied from a device to the host without being asked for."""


class LinAlgError(NumrError, np.linalg.LinAlgError):
    """A matrix has no factorisation or solution of the kind asked for."""


class InvalidHandle(NumrError, ValueError):
    """A memory handle is unknown, already deallocated, or smaller than the range asked for."""


class CaptureError(NumrError, RuntimeError):
    """A call cannot be recorded into a graph."""


class DeviceLostError(NumrError, RuntimeError):
    """The device stopped working; tensors on it are gone."""


class PrecisionWarning(UserWarning):
    """A dtype of 32 bits stands for one of 64 that the device has not, see ``numr.config.float64``."""
