"""Sums of products of each dtype in kernels: how elements are read, multiplied and added."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from numr.dtypes import DType
from numr.runtime.wgpu import texts
from numr.runtime.wgpu.pipelines import StorageBuffer

__all__ = ["Arithmetic", "arithmetic"]


class Arithmetic(NamedTuple):
    """How a kernel computes with elements of a dtype.

    Integers are computed without sign, as their low bits are the same; narrow ones, booleans and float16 in 32
    bits.

    Attributes
    ----------
    element : dtype
        Of the elements as they are read.
    total : dtype
        Of the sums as they are written, which :meth:`numr.runtime.client.RuntimeClient.cast` takes to the dtype of
        the result.
    scalar : str
        WGSL type of the sums or, of complex ones, their parts.
    parts : tuple of str
        What the names of the parts of a number end with.
    """

    element: DType
    total: DType
    scalar: str
    parts: tuple[str, ...]

    @property
    def vector(self) -> str:
        """WGSL type of four sums, or of the same part of four."""
        return f"vec4<{self.scalar}>"

    def load(self, name: str, buffer: str, index: str) -> list[str]:
        """Declarations of the parts of an element, ``name`` with the ends of ``parts``."""
        if self.element == np.float16:
            # Not in f16, which a device need not have.
            word = f"{buffer}[{index} >> 1u] >> (16u * ({index} & 1u))"
            return [f"let {name} = unpack2x16float({word}).x;"]
        return texts.load(name, self.element, buffer, index)

    def buffers(self) -> tuple[StorageBuffer, ...]:
        """What a kernel binds: the factors and the result."""
        return (
            texts.source("left", self.element),
            texts.source("right", self.element),
            texts.target("result", self.total),
        )

    def store(self, place: str, name: str, lane: int | None = None) -> str:
        """The statement that writes the sum ``name``, or one lane of the vectors of that name, to the result."""
        component = "" if lane is None else f".{'xyzw'[lane]}"
        value = texts.stored(self.total, [f"{name}{part}{component}" for part in self.parts])
        return f"result[{place}] = {value};"

    def quad(self, name: str, elements: list[str]) -> list[str]:
        """Declarations of vectors ``name`` of four elements, each part in one."""
        return [
            f"let {name}{part} = {self.vector}({', '.join(element + part for element in elements)});"
            for part in self.parts
        ]

    def add_product(
        self, total: str, left: list[str], right: list[str], vector: str | None = None
    ) -> list[str]:
        """Statements that add a product to the variables ``total``.

        Parameters
        ----------
        total : str
            Name of the variables, without the ends of ``parts``.
        left, right : list of str
            The parts of the factors; ``left`` may be scalars where ``right`` are vectors.
        vector : str, optional
            The type of the sums. Default: ``scalar``.
        """
        vector = vector or self.scalar

        def add(part: str, first: str, second: str) -> str:
            if self.scalar == "f32":
                # One instruction on every GPU, which not every compiler makes of two.
                return f"{total}{part} = fma({vector}({first}), {second}, {total}{part});"
            return f"{total}{part} += {first} * {second};"

        if len(self.parts) == 1:
            return [add(self.parts[0], left[0], right[0])]
        re, im = self.parts
        negative = f"(-{left[1]})"
        return [
            add(re, left[0], right[0]),
            add(im, left[0], right[1]),
            add(re, negative, right[1]),
            add(im, left[1], right[0]),
        ]


@cache
def arithmetic(dtype: DType) -> Arithmetic:
    """How products of a dtype are computed."""
    wide = dtype.itemsize // (2 if dtype.kind == "c" else 1) == 8
    if dtype.kind == "c":
        return Arithmetic(dtype, dtype, "f64" if wide else "f32", ("_re", "_im"))
    if dtype.kind == "f":
        return Arithmetic(dtype, np.dtype("f8" if wide else "f4"), "f64" if wide else "f32", ("",))
    # A boolean is one byte, 0 or 1, and its product is true where the sum is not 0.
    element = texts.word(dtype.itemsize)
    return Arithmetic(element, np.dtype("u8" if wide else "u4"), "u64" if wide else "u32", ("",))
