"""einops on tensors: importing this module registers numr's backend with einops.

Examples
--------
>>> import numr.cpu as xp
>>> import numr.interop.einops
>>> from einops import rearrange
>>> rearrange(xp.zeros((2, 3, 4)), "a b c -> c (a b)").shape
(4, 6)
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
from einops._backends import AbstractBackend

import numr
from numr.tensor.core import Tensor

__all__ = ["NumrBackend"]


class NumrBackend(AbstractBackend):
    """What einops asks of a library of arrays; einops finds the class among its base's subclasses.

    Every operation stays on the device of its tensors.
    """

    framework_name = "numr"

    #: The namespace of tensors that are made from nothing, which einops does in its tests alone.
    namespace: ModuleType = numr.namespace("cpu")

    def is_appropriate_type(self, tensor: object) -> bool:
        """Whether einops may give the array to this backend."""
        return isinstance(tensor, Tensor)

    def from_numpy(self, x: np.ndarray[Any, Any]) -> Tensor:
        """A tensor of a NumPy array's elements."""
        result: Tensor = self.namespace.asarray(x)
        return result

    def to_numpy(self, x: Tensor) -> np.ndarray[Any, Any]:
        """The elements on the host: ``einops.asnumpy`` asks for them by name."""
        return x.to_numpy()

    def arange(self, start: int, stop: int) -> Tensor:
        """Whole numbers from ``start`` to ``stop``."""
        result: Tensor = self.namespace.arange(start, stop)
        return result

    def stack_on_zeroth_dimension(self, tensors: list[Tensor]) -> Tensor:
        """A list of tensors as one, along a new first axis."""
        result: Tensor = tensors[0].__array_namespace__().stack(tensors)
        return result

    def tile(self, x: Tensor, repeats: tuple[int, ...]) -> Tensor:
        """The tensor repeated along its axes."""
        result: Tensor = x.__array_namespace__().tile(x, repeats)
        return result

    def concat(self, tensors: list[Tensor], axis: int) -> Tensor:
        """Tensors joined along an axis."""
        result: Tensor = tensors[0].__array_namespace__().concat(tensors, axis=axis)
        return result

    def is_float_type(self, x: Tensor) -> bool:
        """Whether the elements are floating-point numbers."""
        return x.dtype.kind == "f"

    def add_axis(self, x: Tensor, new_position: int) -> Tensor:
        """The tensor with a new axis of length one."""
        result: Tensor = x.__array_namespace__().expand_dims(x, axis=new_position)
        return result

    def einsum(self, pattern: str, *x: Tensor) -> Tensor:
        """Products summed over axes."""
        result: Tensor = x[0].__array_namespace__().einsum(pattern, *x)
        return result
