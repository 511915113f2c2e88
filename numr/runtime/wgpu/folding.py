"""What reductions and scans share: how values are joined, as WGSL around expressions of the op table.

A *value* is what elements become before they are joined: a number, for maxima and minima an integer whose order is that
of the numbers, for positions that integer and a position. A *run* is what one invocation joins one after the other. Sums
of floating-point numbers keep what rounding takes off there, so that their error does not grow with the length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Final

import numpy as np

from numr import dtypes as dt
from numr.codegen import expr as ex
from numr.codegen import wgsl
from numr.codegen.calls import taken
from numr.codegen.elementwise import Complex, Operand, expression, operand, scalar_of
from numr.codegen.expr import F16, F32, U32, Expr, Scalar
from numr.codegen.libm.formats import format_of, is_nan, two_sum
from numr.dtypes import DType
from numr.ir.ops import Reduction
from numr.runtime.folds import JOINS, LOGICAL, BaseFold
from numr.runtime.wgpu import texts

__all__ = ["VALUE", "Fold", "fold_of"]

_ORDERED: Final = (Reduction.MAX, Reduction.MIN)
#: The WGSL type of values in memory.
VALUE: Final = "Value"


@dataclass(frozen=True)
class Fold(BaseFold):
    """A reduction of elements of one dtype, as WGSL; see :class:`numr.runtime.folds.BaseFold`."""

    @property
    def compute(self) -> DType:
        # Whether an element is true is told by its bits.
        return self.source if self.kind in LOGICAL else super().compute

    @cached_property
    def types(self) -> tuple[Scalar, ...]:
        """The types of a value's parts."""
        if self.kind in LOGICAL:
            return (U32,)
        scalar = scalar_of(self.compute)
        if self.kind not in _ORDERED:
            return (scalar, scalar) if self.compute.kind == "c" else (scalar,)
        # Of complex numbers there is neither: the table says so.
        expression(JOINS[self.kind], self.compute, *(operand(x, self.compute) for x in "ab"))
        if scalar.kind == "f":
            scalar = format_of(ex.var("x", F32 if scalar is F16 else scalar)).signed
        elif scalar.kind == "b":
            scalar = U32
        return (scalar, U32) if self.position else (scalar,)

    @property
    def run_types(self) -> tuple[Scalar, ...]:
        """The types of a run's parts."""
        return self.types * 2 if self._compensated else self.types

    @cached_property
    def stored(self) -> DType:
        """A dtype of as many bytes as a value has in memory."""
        widths = [type.bits // 8 for type in self.types]
        unit = max(widths)
        return np.dtype(f"V{-(-sum(widths) // unit) * unit}")

    def taken(self, name: str, position: str) -> str:
        """The value of the element that ``operand(name, source)`` names, and its position."""
        return f"take({', '.join(self._parts(name))}, {position})"

    def _parts(self, name: str) -> list[str]:
        return [f"{name}_re", f"{name}_im"] if self.source.kind == "c" else [name]

    @cached_property
    def text(self) -> tuple[str, frozenset[str]]:
        """WGSL of the types and functions below, and the types that occur.

        ``take`` makes a value of an element and its position, ``join`` joins two values, and ``finish`` gives what is
        stored as a result. ``begun`` starts a run, ``grown`` adds a value to it, and ``total`` gives its value.
        """
        count = len(self.types)
        a, b = (self._variables(name) for name in "ab")
        printer = _Printer()
        text = _struct(VALUE, "v", self.types)
        text += printer.function(
            f"take({self._parameters()}, at: u32)", VALUE, self._value(), {"position": "at"}
        )
        text += printer.function(
            "join(a: Value, b: Value)", VALUE, self._joined(a, b), _fields("a", count, "b", count)
        )
        finished = self._finished(self._variables("a"))
        text += printer.function(
            "finish(a: Value)",
            texts.memory_type(self.result),
            [finished] if isinstance(finished, Expr) else list(finished),
            _fields("a", count),
            lambda results: texts.stored(self.result, results),
        )
        if not self._compensated:
            text += (
                "alias Run = Value;\n"
                "fn begun(a: Value) -> Run { return a; }\n"
                "fn grown(a: Run, b: Value) -> Run { return join(a, b); }\n"
                "fn total(a: Run) -> Value { return a; }\n"
            )
            return text, frozenset(printer.types)
        lost = [ex.var(f"a{count + i}", type) for i, type in enumerate(self.types)]
        run = _fields("a", 2 * count)
        text += _struct("Run", "v", self.types * 2)
        zeros = [ex.const(0.0, type) for type in self.types]
        text += printer.function("begun(a: Value)", "Run", [*a, *zeros], _fields("a", count))
        sums = [two_sum(x, y) for x, y in zip(a, b, strict=True)]
        grown = [s.hi for s in sums] + [low + s.lo for low, s in zip(lost, sums, strict=True)]
        text += printer.function("grown(a: Run, b: Value)", "Run", grown, run | _fields("b", count))
        # Where nothing was lost, the sign of a zero is kept; where a sum is not finite, what was lost is NaN.
        totals = [
            ex.select(ex.absolute(low) > 0.0, x + low, x) for x, low in zip(a, lost, strict=True)
        ]
        text += printer.function("total(a: Run)", VALUE, totals, run)
        return text, frozenset(printer.types)

    @property
    def _compensated(self) -> bool:
        return self.kind is Reduction.SUM and self.compute.kind in "fc"

    def _variables(self, name: str) -> list[Expr]:
        return [ex.var(f"{name}{i}", type) for i, type in enumerate(self.types)]

    def _parameters(self) -> str:
        type = texts.scalar_type(self.source)
        return ", ".join(f"{part}: {type}" for part in self._parts("e"))

    def _operand(self, values: Sequence[Expr]) -> Operand:
        return Complex(values[0], values[1]) if self.compute.kind == "c" else values[0]

    def _value(self) -> list[Expr]:
        element = operand("e", self.source)
        if self.kind in LOGICAL:
            return [ex.cast(_is_true(element), U32)]
        value = taken(element, self.source, self.compute)
        if self.kind not in _ORDERED:
            return [value] if isinstance(value, Expr) else list(value)
        assert isinstance(value, Expr)
        key = self._key(value)
        return [key, ex.var("position", U32)] if self.position else [key]

    def _joined(self, a: list[Expr], b: list[Expr]) -> list[Expr]:
        if self.kind is Reduction.ANY:
            return [a[0] | b[0]]
        if self.kind is Reduction.ALL:
            return [a[0] & b[0]]
        if self.kind not in _ORDERED:
            joined = expression(JOINS[self.kind], self.compute, self._operand(a), self._operand(b))
            return [joined] if isinstance(joined, Expr) else list(joined)
        wins = a[0] < b[0] if self.kind is Reduction.MAX else b[0] < a[0]
        if self.position:
            wins = wins | (ex.eq(a[0], b[0]) & (b[1] < a[1]))
        return [ex.select(wins, y, x) for x, y in zip(a, b, strict=True)]

    def _finished(self, values: list[Expr]) -> Operand:
        if self.position:
            return taken(values[1], dt.uint32, self.result)
        if self.kind in LOGICAL:
            return taken(values[0], dt.uint32, self.result)
        if self.kind in _ORDERED:
            return taken(self._unkeyed(values[0]), self.compute, self.result)
        return taken(self._operand(values), self.compute, self.result)

    def _key(self, x: Expr) -> Expr:
        """The integer whose order is that of the numbers, where NaN comes first or last, whichever wins.

        Floating-point numbers are not compared as such: GPUs take small ones for zero and pass NaN over.
        """
        if x.type.kind == "b":
            return ex.cast(x, U32)
        if x.type.kind != "f":
            return x
        wide = ex.cast(x, F32) if x.type is F16 else x
        f = format_of(wide)
        bits = f.bits(wide)
        key = _ordered(bits)
        if self.position:
            # The zeros are equal there.
            magnitude = f.ubits(wide) & (f.sign_bit - 1)
            key = ex.select(ex.eq(magnitude, 0), ex.const(0, f.signed), key)
        nan = ex.const(f.inf_bits + 1, f.signed)
        return ex.select(is_nan(wide), nan if self.kind is Reduction.MAX else ~nan, key)

    def _unkeyed(self, key: Expr) -> Expr:
        scalar = scalar_of(self.compute)
        if scalar.kind == "b":
            return ex.ne(key, 0)
        if scalar.kind != "f":
            return key
        f = format_of(ex.var("x", F32 if scalar is F16 else scalar))
        bits = _ordered(key)
        nan = is_nan(f.from_bits(bits))
        value = f.from_bits(ex.select(nan, ex.bitcast(f.nan, f.signed), bits))
        return ex.cast(value, scalar)


#: ``Fold``, each of which exists once, so that what it derives is derived once.
fold_of = cache(Fold)


def _ordered(bits: Expr) -> Expr:
    """A float's bits as an integer of its order, and back: those of negative numbers grow the other way."""
    last = bits.type.bits - 1
    return bits ^ ((bits >> last) & ((1 << last) - 1))


def _is_true(element: Operand) -> Expr:
    """Whether an element is not zero, by its bits: GPUs take small numbers for zero."""
    if isinstance(element, Complex):
        return _is_true(element.re) | _is_true(element.im)
    if element.type.kind == "b":
        return element
    if element.type.kind != "f":
        return ex.ne(element, 0)
    wide = ex.cast(element, F32) if element.type is F16 else element
    f = format_of(wide)
    return ex.ne(f.ubits(wide) & (f.sign_bit - 1), 0)


def _struct(name: str, prefix: str, types: Sequence[Scalar]) -> str:
    fields = ", ".join(f"{prefix}{i}: {type.name}" for i, type in enumerate(types))
    return f"struct {name} {{ {fields} }}\n"


def _fields(*names_and_counts: str | int) -> dict[str, str]:
    """WGSL of variables that are fields of parameters: ``a0`` is ``a.v0``."""
    pairs = zip(names_and_counts[::2], names_and_counts[1::2], strict=True)
    return {f"{name}{i}": f"{name}.v{i}" for name, count in pairs for i in range(int(count))}


class _Printer:
    """Prints functions, and collects the types that occur in them."""

    def __init__(self) -> None:
        self.types: set[str] = set()

    def function(
        self,
        head: str,
        type: str,
        roots: Sequence[Expr],
        names: dict[str, str] | None = None,
        result: Callable[[Sequence[str]], str] | None = None,
    ) -> str:
        code = wgsl.code(roots, names)
        self.types |= code.types
        value = result(code.results) if result else f"{type}({', '.join(code.results)})"
        return f"fn {head} -> {type} {{\n{code.statements}    return {value};\n}}\n"
