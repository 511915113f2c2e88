"""Arrays made from nothing: one value everywhere, and ranges of numbers."""

from __future__ import annotations

import math
from typing import Any, Final

from numr import dtypes as dt
from numr.codegen import expr as ex
from numr.codegen.elementwise import Complex, Operand
from numr.codegen.expr import F32, F64, U32, U64, Expr
from numr.codegen.libm.formats import Pair, fast_two_sum, is_finite, times, two_sum
from numr.dtypes import DType, Scalar
from numr.runtime.device import Device
from numr.runtime.storage import DeviceArray
from numr.runtime.wgpu import texts
from numr.runtime.wgpu.elementwise import Elementwise
from numr.runtime.wgpu.families import Families
from numr.runtime.wgpu.launch import DeviceContext

__all__ = ["Creation"]

_INDEX: Final = ex.var("i", U32)
#: Exponents of two factors whose product is applied last: beyond, every number over- or underflows.
_LARGEST_SCALE: Final = 250


class Creation(Families):
    """The creation families."""

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._fills: dict[DType, Elementwise] = {}
        self._iotas: dict[DType, Elementwise] = {}

    def full(self, shape: tuple[int, ...], value: Scalar, dtype: DType) -> DeviceArray:
        dtype = self.require_dtype(dtype, "full")
        fill = self._fills.get(dtype)
        if fill is None:
            fill = self._fills[dtype] = Elementwise(
                self.context, "full", [(dtype, False)], dtype, lambda x: x
            )
        result = self.context.empty(shape, dtype)
        fill.fill((value,), result)
        return result

    def iota(self, size: int, start: Scalar, step: Scalar, dtype: DType) -> DeviceArray:
        dtype = self.require_dtype(dtype, "arange")
        iota = self._iotas.get(dtype)
        has_doubles = dt.float64 in self.dtypes
        if iota is None:
            make = _integers if dtype.kind in "iu" else _doubles if has_doubles else _pairs
            iota = self._iotas[dtype] = make(self.context, dtype)
        numbers: Any = (start, step)
        if dtype.kind in "iu":
            # Modulo the word, as the arithmetic of the device is.
            numbers = [int(x) % (1 << 8 * max(dtype.itemsize, 4)) for x in numbers]
        elif not has_doubles:
            numbers = _scaled(size, complex(start), complex(step), dtype.kind == "c")
        result = self.context.empty((size,), dtype)
        iota.fill(numbers, result)
        return result


def _integers(context: DeviceContext, dtype: DType) -> Elementwise:
    """``start + i * step`` modulo the size of a word, and then cut off."""
    word = dt.uint64 if dtype.itemsize == 8 else dt.uint32

    def formula(start: Expr, step: Expr) -> Operand:
        return texts.taken(
            start + ex.cast(_INDEX, U64 if dtype.itemsize == 8 else U32) * step, word, dtype
        )

    return Elementwise(context, "arange", [(word, False)] * 2, dtype, formula)


def _doubles(context: DeviceContext, dtype: DType) -> Elementwise:
    """``start + i * step`` in float64, and then rounded."""
    compute = dt.complex128 if dtype.kind == "c" else dt.float64

    def formula(start: Operand, step: Operand) -> Operand:
        index = ex.cast(_INDEX, F64)
        if isinstance(start, Complex):
            assert isinstance(step, Complex)
            value: Operand = Complex(start.re + index * step.re, start.im + index * step.im)
        else:
            assert isinstance(step, Expr)
            value = start + index * step
        return texts.taken(value, compute, dtype)

    return Elementwise(context, "arange", [(compute, False)] * 2, dtype, formula)


def _pairs(context: DeviceContext, dtype: DType) -> Elementwise:
    """``start + i * step`` in pairs of float32, for devices without float64, and then rounded.

    Start and step have been divided by a power of two such that nothing over- or underflows on the way.
    """

    def component(start: Pair, step: Pair, scales: tuple[Expr, Expr]) -> Expr:
        high = ex.cast(_INDEX & 0xFFFF0000, F32)
        index = fast_two_sum(high, ex.cast(_INDEX & 0xFFFF, F32))
        product = times(index, step)
        upper, lower = two_sum(start.hi, product.hi), two_sum(start.lo, product.lo)
        total = fast_two_sum(upper.hi, upper.lo + lower.hi)
        exact = fast_two_sum(total.hi, total.lo + lower.lo).hi
        plain = start.hi + index.hi * step.hi
        return ex.select(is_finite(exact), exact, plain) * scales[0] * scales[1]

    def formula(*words: Expr) -> Operand:
        scales = words[-2], words[-1]
        pairs = [Pair(*words[k : k + 2]) for k in range(0, len(words) - 2, 2)]
        if dtype.kind == "c":
            return Complex(*(component(pairs[k], pairs[k + 2], scales) for k in range(2)))
        return texts.taken(component(pairs[0], pairs[1], scales), dt.float32, dtype)

    count = 10 if dtype.kind == "c" else 6
    return Elementwise(context, "arange", [(dt.float32, False)] * count, dtype, formula)


def _scaled(size: int, start: complex, step: complex, is_complex: bool) -> list[float]:
    """The scalars of :func:`_pairs`: parts of start and step as pairs, and two factors."""
    parts = (
        [start.real, start.imag, step.real, step.imag] if is_complex else [start.real, step.real]
    )
    sizes = [abs(part) for part in parts]
    half = len(parts) // 2
    largest = max(*sizes[:half], *(max(size - 1, 1) * part for part in sizes[half:]), 0.0)
    exponent = math.frexp(largest)[1] if math.isfinite(largest) else 0
    numbers: list[float] = []
    for part in parts:
        scaled = math.ldexp(part, -exponent)
        high = dt.float32.type(scaled)
        numbers += [float(high), scaled - float(high) if math.isfinite(scaled) else 0.0]
    exponent = max(-_LARGEST_SCALE, min(exponent, _LARGEST_SCALE))
    return [*numbers, 2.0 ** (exponent // 2), 2.0 ** (exponent - exponent // 2)]
