"""Computations of rows, composed of fused computations and reductions: what runtimes do that have no more for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from numr.ir.ops import Reduction
from numr.ir.rows import RowComputation, kept_shape

if TYPE_CHECKING:
    from numr.runtime.client import FusedLoop, RuntimeClient

__all__ = ["composed_rows"]

Array = Any


def composed_rows(
    client: RuntimeClient[Any],
    computation: RowComputation,
    shape: tuple[int, ...],
    axes: tuple[int, ...],
) -> FusedLoop:
    """Prepare a computation of rows; see :meth:`numr.runtime.client.RuntimeClient.fused_rows`."""
    kept = kept_shape(shape, axes)

    def loop(operands: Sequence[Any], results: Sequence[Array]) -> None:
        values = dict(enumerate(operands))
        targets = dict(zip(computation.results, results, strict=True))

        def compute(numbers: Sequence[int]) -> None:
            """Elementwise work of one shape, into its results, or arrays of rows that are made."""
            part, sources = computation.part(numbers, values.keys())
            into = [
                targets[n] if n in targets else client.empty(kept, computation.dtype(n))
                for n in numbers
            ]
            client.fused(part)([values[n] for n in sources], into)
            values.update(
                (n, x) for n, x in zip(numbers, into, strict=True) if computation.per_row[n]
            )

        for sweep in computation.sweeps:
            if sweep.rows:
                compute(sweep.rows)
            for number in sweep.reductions:
                values[number] = _reduced(client, computation, number, values, shape, axes)
                if number in targets:
                    client.assign(targets[number], values[number])
            if sweep.stores:
                compute(sweep.stores)

    return loop


def _reduced(
    client: RuntimeClient[Any],
    computation: RowComputation,
    number: int,
    values: dict[int, Any],
    shape: tuple[int, ...],
    axes: tuple[int, ...],
) -> Array:
    """A reduction of what is computed of values that are there."""
    step = computation.step(number)
    assert step is not None
    assert isinstance(step.op, Reduction)
    (argument,) = step.arguments
    dtype = step.signature.compute
    if argument in values:
        return client.reduce(step.op, values[argument], axes, True, dtype)
    part, sources = computation.part((argument,), values.keys())
    operands = [values[n] for n in sources]
    return client.reduce_fused(part, operands, shape, step.op, axes, True, dtype)
