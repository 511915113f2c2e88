"""What a device takes: a dispatch that it would refuse is refused before it is recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numr.errors import BackendLimitation
from numr.runtime.wgpu.records import Dispatch

if TYPE_CHECKING:
    from numr.runtime.wgpu.devices import Adapter

__all__ = ["Checks", "check_range", "grid"]


class Checks:
    """The limits of an adapter.

    Parameters
    ----------
    adapter : Adapter
        The adapter.
    """

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter
        self._limits = adapter.limits
        self._max_groups = self._limits["max-compute-workgroups-per-dimension"]
        self._alignment = self._limits["min-storage-buffer-offset-alignment"]
        self._max_binding = self._limits["max-storage-buffer-binding-size"]

    def traffic_of(self, record: Dispatch) -> int:
        """Check a dispatch; returns how many bytes it binds."""
        kernel, bindings = record.kernel, record.bindings
        writes = kernel.writes
        if len(bindings) != len(writes) or len(record.params) != kernel.text.params_size:
            raise ValueError(
                f"dispatch: {len(bindings)} buffers and {len(record.params)} bytes of parameters were "
                f"given to a kernel that takes {len(writes)} and {kernel.text.params_size}."
            )
        for count in record.groups:
            if not 0 <= count <= self._max_groups:
                raise self._limitation("max-compute-workgroups-per-dimension", count, "workgroups")
        traffic = 0
        access: dict[Any, bool] = {}
        for (buffer, offset, size), writing in zip(bindings, writes, strict=True):
            if offset % self._alignment or size % 4 or size <= 0:
                raise ValueError(
                    f"dispatch: a binding of {size} bytes at {offset} needs an offset that is a multiple "
                    f"of {self._alignment} and a size that is one of 4, above 0."
                )
            if not 0 <= offset <= buffer.size - size:
                check_range("dispatch", buffer, offset, size)
            if size > self._max_binding:
                raise self._limitation(
                    "max-storage-buffer-binding-size", size, "bytes in a binding"
                )
            if access.setdefault(buffer, writing) != writing:
                raise ValueError(
                    "dispatch: a kernel that writes a buffer cannot bind it read-only as well; give both "
                    "bindings the access read_write."
                )
            traffic += size
        return traffic

    def _limitation(self, limit: str, value: int, what: str) -> BackendLimitation:
        return BackendLimitation(
            "wgpu",
            "dispatch",
            f"{value} {what} are needed, but {self._adapter} has the limit {limit} of "
            f"{self._limits[limit]}. Work in smaller pieces.",
        )


def grid(
    count: int, workgroup_size: int, max_groups: int = 65535
) -> tuple[tuple[int, int, int], int]:
    """Workgroups for a number of invocations, in two dimensions where one is too short.

    Parameters
    ----------
    count : int
        Invocations needed.
    workgroup_size : int
        Invocations in a workgroup.
    max_groups : int
        The limit max-compute-workgroups-per-dimension.

    Returns
    -------
    tuple of tuple of int and int
        Workgroups, and the number of invocations in a row of them. An invocation's index is
        ``global_invocation_id.x + global_invocation_id.y * row``, and may be ``count`` or above.

    Examples
    --------
    >>> grid(1000, 256)
    ((4, 1, 1), 1024)
    >>> grid(256 * 70000, 256)
    ((35000, 2, 1), 8960000)
    """
    groups = -(-count // workgroup_size)
    rows = -(-groups // max_groups)
    # Rows of equal length, so that few workgroups have nothing to do.
    width = -(-groups // rows) if rows else 0
    return (width, rows, 1), width * workgroup_size


def check_range(function: str, buffer: Any, offset: int, size: int) -> None:
    """Raise ValueError, in a function's name, unless a buffer has some bytes."""
    if offset < 0 or size < 0 or offset + size > buffer.size:
        raise ValueError(
            f"{function}: the bytes {offset} to {offset + size} are not in a buffer of {buffer.size}."
        )
