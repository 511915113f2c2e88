"""Fused computations as expressions."""

from __future__ import annotations

from collections.abc import Sequence

from numr import dtypes as dt
from numr.codegen.calls import Express, taken
from numr.codegen.elementwise import Operand, expression
from numr.ir.fused import Computation
from numr.ir.ops import SELECT

__all__ = ["expressions"]


def expressions(
    computation: Computation, operands: Sequence[Operand], express: Express = expression
) -> list[Operand]:
    """The expressions of a computation's results, from those of its sources.

    They are the expressions that the operations have by themselves, as ``express`` gives them, put into one another.

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
            values.append(taken(arguments[0], compute, result))
        else:
            values.append(express(step.op, compute, *arguments))
    return [values[value] for value in computation.results]
