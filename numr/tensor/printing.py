"""How tensors print: only the elements that are shown leave the device."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

import numpy as np

from numr.layout.keys import KeepPart, SlicePart
from numr.tensor.dispatch import call, read, refuse_while_captured
from numr.tensor.parts import TensorPart

if TYPE_CHECKING:
    from numr.runtime.client import RuntimeClient


class PrintingMixin(TensorPart):
    """``repr``, ``str``, ``format`` and what notebooks and xarray show."""

    __slots__ = ()

    def __repr__(self) -> str:
        prefix = "Tensor("
        suffix = f", dtype={self._data.dtype}, device={self._client.device})"
        if not self._data.size:
            return f"{prefix}[], shape={self._data.shape}{suffix}"
        body = _format(self._client, self._data, prefix, suffix)
        return f"{prefix}{body}{suffix}"

    def __str__(self) -> str:
        if self._data.ndim == 0:
            return str(read("str", self._client, self._data)[()])
        return _format(self._client, self._data, "", "")

    def __format__(self, spec: str) -> str:
        if self._data.ndim == 0:
            return format(read("format", self._client, self._data).item(), spec)
        if spec:
            raise TypeError(
                f"format: {spec!r} does not apply to a tensor of shape {self._data.shape}; only a tensor "
                "without axes takes a format."
            )
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"

    def _repr_inline_(self, max_width: int) -> str:
        """One line for xarray."""
        line = f"numr.Tensor {self._data.dtype} on {self._client.device}"
        return line if len(line) <= max_width else "numr.Tensor"


def _format(client: RuntimeClient[Any], array: Any, prefix: str, suffix: str) -> str:
    refuse_while_captured("print", client, array)
    options = np.get_printoptions()
    edge = options["edgeitems"]
    separator = ", " if prefix else " "
    if array.size <= options["threshold"]:
        host = read("print", client, array)
        return np.array2string(host, separator=separator, prefix=prefix, suffix=suffix)
    # NumPy prints `edge` items at both ends of an axis that has more than twice as many. An array cut down to one
    # item more than these prints the same, so no other element needs to leave the device.
    corners = array
    for axis, length in enumerate(array.shape):
        if length > 2 * edge + 1:
            first = call(client, "slice", corners, (KeepPart(axis), SlicePart(0, 1, edge + 1)))
            last = call(
                client, "slice", corners, (KeepPart(axis), SlicePart(length - edge, 1, edge))
            )
            corners = call(client, "concat", [first, last], axis)
    host = read("print", client, corners)
    return np.array2string(host, separator=separator, prefix=prefix, suffix=suffix, threshold=0)
