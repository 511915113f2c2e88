"""What kernels are given: arrays, how they are walked, and where everything is in the words of parameters."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from numr.codegen.elementwise import scalar_of
from numr.codegen.llvm import element
from numr.dtypes import DType

__all__ = ["Array", "Parameters", "Walk", "memory_type"]


class Walk(Enum):
    """How an array is walked along a row."""

    #: One element lies after the other.
    UNIT = "u"
    #: It is the same element all the way.
    ZERO = "z"
    #: Elements are at some distance.
    STRIDED = "s"


@dataclass(frozen=True)
class Parameters:
    """The places of what a kernel is given, in words.

    First come the addresses of the arrays, then their distances along a row in bytes, the scalars, whether
    results go past the caches, and the number of outer axes; then for each axis its length and the arrays' strides.

    Parameters
    ----------
    arrays : int
        How many arrays there are, results included.
    scalars : int
        How many scalars.
    """

    arrays: int
    scalars: int

    @property
    def steps(self) -> int:
        """Where distances start."""
        return self.arrays

    @property
    def values(self) -> int:
        """Where scalars start."""
        return 2 * self.arrays

    @property
    def streamed(self) -> int:
        """Where it says whether results go past the caches."""
        return self.values + self.scalars

    @property
    def outer(self) -> int:
        """Where the number of outer axes is."""
        return self.streamed + 1

    @property
    def axes(self) -> int:
        """Where the axes start."""
        return self.outer + 1


def memory_type(dtype: DType) -> str:
    """The LLVM type of elements as they lie in memory."""
    if dtype.kind == "f":
        return element(scalar_of(dtype))
    return f"i{8 * dtype.itemsize}"


@dataclass(frozen=True)
class Array:
    """An operand or a result in a text."""

    number: int
    dtype: DType
    walk: Walk
    is_result: bool

    @property
    def memory(self) -> str:
        """The LLVM type of its elements in memory."""
        return memory_type(self.dtype)

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize
