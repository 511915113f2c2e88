"""``__array_namespace_info__``: what a namespace's devices can do."""

from __future__ import annotations

from typing import Any

from numr import dtypes as dt
from numr.array_api._binding import RuntimeFunctions
from numr.dtypes import DType
from numr.errors import DeviceMismatch
from numr.runtime.client import RuntimeClient
from numr.runtime.device import Device
from numr.runtime.registry import client_of

__all__ = ["Inspection", "NamespaceInfo"]


class NamespaceInfo(RuntimeFunctions):
    """The inspection functions of the standard for one namespace."""

    def _client(self, device: Device | str | None) -> RuntimeClient[Any]:
        # Which dtypes a device has does not depend on who asks. Libraries that keep arrays of their own on the
        # host ask every namespace about "cpu".
        try:
            return super()._client(device)
        except DeviceMismatch:
            if device is None:
                raise
            return client_of(device)

    def capabilities(self) -> dict[str, Any]:
        """What the namespace supports, by the standard's keys.

        Examples
        --------
        >>> import numr.cpu as xp
        >>> xp.__array_namespace_info__().capabilities()["data-dependent shapes"]
        True
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        """The device that is used where none is named.

        Examples
        --------
        >>> import numr.cpu as xp
        >>> str(xp.__array_namespace_info__().default_device())
        'cpu'
        """
        return self._runtime.default_device()

    def devices(self) -> tuple[Device, ...]:
        """All devices of the namespace.

        Examples
        --------
        >>> import numr.cpu as xp
        >>> [str(device) for device in xp.__array_namespace_info__().devices()]
        ['cpu']
        """
        return self._runtime.devices()

    def default_dtypes(self, *, device: Device | str | None = None) -> dict[str, DType]:
        """The dtypes that a device gives where none is asked for, by the standard's keys.

        Parameters
        ----------
        device : Device or str, optional
            A device, of any runtime; the namespace's default device where None.

        Examples
        --------
        >>> import numr.cpu as xp
        >>> xp.__array_namespace_info__().default_dtypes()["real floating"]
        dtype('float64')
        """
        defaults = self._client(device).defaults
        return {
            "real floating": defaults.real,
            "complex floating": defaults.complex,
            "integral": defaults.integral,
            "indexing": defaults.indexing,
        }

    def dtypes(
        self, *, device: Device | str | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, DType]:
        """The standard's dtypes that a device computes with, by name.

        Parameters
        ----------
        device : Device or str, optional
            A device, of any runtime; the namespace's default device where None.
        kind : str or tuple of str, optional
            Only those of a kind, such as ``"real floating"``.

        Raises
        ------
        ValueError
            If a kind is none of the standard's.

        Examples
        --------
        >>> import numr.cpu as xp
        >>> list(xp.__array_namespace_info__().dtypes(kind="real floating"))
        ['float32', 'float64']
        """
        own = self._client(device).dtypes
        return {
            str(dtype): dtype
            for dtype in dt.STANDARD_DTYPES
            if dtype in own and (kind is None or dt.isdtype(dtype, kind))
        }


class Inspection(RuntimeFunctions):
    """The entry point to :class:`NamespaceInfo`."""

    def __array_namespace_info__(self) -> NamespaceInfo:
        """The inspection functions of the namespace.

        Examples
        --------
        >>> import numr.cpu as xp
        >>> sorted(xp.__array_namespace_info__().default_dtypes())
        ['complex floating', 'indexing', 'integral', 'real floating']
        """
        return NamespaceInfo(self._runtime)
