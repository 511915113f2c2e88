"""Fused computations as expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from numr import dtypes as dt
from numr.codegen import expr as ex
from numr.codegen.calls import Express, taken
from numr.codegen.elementwise import Complex, Operand, expression
from numr.codegen.expr import F16, F32, U32, U64, Expr
from numr.ir.fused import Computation
from numr.ir.ops import SELECT

__all__ = ["expressions"]


_ZERO: Final = ex.const(0, U32)


def expressions(
    computation: Computation,
    operands: Sequence[Operand],
    express: Express = expression,
    zero: Expr = _ZERO,
) -> list[Operand]:
    """The expressions of a computation's results, from those of its sources.

    They are the expressions that the operations have by themselves, as ``express`` gives them, put into one another. A
    result that is a constant, such as the imaginary part of a real number, is hidden from the next operation, which
    by itself would have it from memory: ``zero`` is a 0 of type u32 that compilers do not know, if they have to be
    kept from simplifying.

    Examples
    --------
    >>> from numr.codegen.elementwise import operand
    >>> from numr.ir import ops
    >>> from numr.ir.fused import Source, Step
    >>> from numr.ir.ops import Signature
    >>> both = Signature(dt.float32, dt.float32)
    >>> square = Computation((Source(dt.float32, True),), (Step(ops.SQUARE, both, (0,)),), (1,))
    >>> expressions(square, [operand("x", dt.float32)])
    [<mul of f32, f32: f32>]
    """
    values = list(operands)
    for step in computation.steps:
        compute, result = step.signature
        arguments = [
            taken(
                values[value],
                computation.dtype(value),
                dt.bool_ if step.op is SELECT and position == 0 else compute,
            )
            for position, value in enumerate(step.arguments)
        ]
        if step.op is None:
            value = taken(arguments[0], compute, result)
        else:
            value = express(step.op, compute, *arguments)
        parts = [_hidden(part, zero) for part in (value if isinstance(value, Complex) else [value])]
        values.append(Complex(*parts) if isinstance(value, Complex) else parts[0])
    return [values[value] for value in computation.results]


def _hidden(part: Expr, zero: Expr) -> Expr:
    """A constant by way of its bits; everything else as it is."""
    if part.op != "const":
        return part
    bits = part.value
    assert isinstance(bits, int)
    if part.type.kind == "b":
        return ex.eq(zero, 0) if bits else ex.ne(zero, 0)
    if part.type is F16:
        return ex.cast(_hidden(ex.const(ex.constant_value(part), F32), zero), F16)
    word = zero ^ bits if part.type.bits == 32 else ex.cast(zero, U64) ^ bits
    return ex.bitcast(word, part.type)
