"""Conversion of tensors to Python scalars, sequences and iterators."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from numr.ir.ops import Reduction
from numr.tensor.dispatch import call, read
from numr.tensor.parts import TensorPart

if TYPE_CHECKING:
    from numr.tensor.core import Tensor


class ConversionMixin(TensorPart):
    """What Python's own conversions ask of a tensor; each moves one element to the host."""

    __slots__ = ()

    def _item(self, function: str) -> Any:
        if self.size != 1 or self.ndim:
            raise TypeError(
                f"{function}: the tensor has shape {self.shape}; only a tensor without axes converts to a "
                "Python scalar. Index one element first, or reduce with any(), all() or sum()."
            )
        return read(function, self._client, self._data).item()

    def item(self) -> Any:
        """The only element, as a Python scalar."""
        if self.size != 1:
            raise TypeError(
                f"item: the tensor has shape {self.shape}, {self.size} elements; exactly one is needed."
            )
        return read("item", self._client, self._data).item()

    def tolist(self) -> Any:
        """The elements as nested lists of Python scalars."""
        return read("tolist", self._client, self._data).tolist()

    def __bool__(self) -> bool:
        # Beyond the standard, whatever the number of axes: a condition of one element has one meaning.
        if self.size != 1:
            raise TypeError(
                f"bool: the tensor has shape {self.shape}, {self.size} elements; only one element is true or false. "
                "Reduce with any(), all() or sum()."
            )
        return bool(read("bool", self._client, self._data).item())

    def __int__(self) -> int:
        value = self._item("int")
        if isinstance(value, complex):
            raise TypeError("int: the tensor is complex; take real() or abs() first.")
        return int(value)

    def __float__(self) -> float:
        value = self._item("float")
        if isinstance(value, complex):
            raise TypeError("float: the tensor is complex; take real() or abs() first.")
        return float(value)

    def __complex__(self) -> complex:
        return complex(self._item("complex"))

    def __index__(self) -> int:
        if self.dtype.kind not in "iu":
            raise TypeError(
                f"index: the tensor has dtype {self.dtype}; only integer tensors serve as an index."
            )
        return int(self._item("index"))

    def __round__(self, ndigits: int | None = None) -> Any:
        return round(self._item("round"), ndigits)

    def __trunc__(self) -> int:
        whole: int = math.trunc(self._item("trunc"))
        return whole

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len: the tensor has no axes, so it has no length.")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self.ndim:
            raise TypeError("iter: the tensor has no axes, so it cannot be iterated over.")
        return (self[i] for i in range(self.shape[0]))

    def __contains__(self, value: object) -> bool:
        equal: Any = self == value
        if isinstance(equal, bool):  # a foreign value, which Python compared by identity
            return equal
        axes = tuple(range(equal.ndim))
        found = call(equal._client, "reduce", Reduction.ANY, equal._data, axes, False, equal.dtype)
        return bool(read("contains", equal._client, found))
