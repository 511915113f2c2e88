"""Fused computations: one kernel for the operations of a graph that follow each other element by element."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from numr import dtypes as dt
from numr.codegen.elementwise import Operand, operand
from numr.codegen.expr import Expr, topological
from numr.codegen.fused import expressions
from numr.dtypes import DType
from numr.ir.fused import Computation
from numr.ir.ops import SELECT, Op
from numr.runtime.device import Device
from numr.runtime.storage import DeviceArray
from numr.runtime.wgpu.elementwise import express
from numr.runtime.wgpu.families import Families
from numr.runtime.wgpu.formulas import ZERO
from numr.runtime.wgpu.pointwise import Pointwise

__all__ = ["Fusion"]

#: Computations whose kernels are kept.
_KEPT: Final = 1024
#: Operations of WGSL that a step may have on average.
_STEP: Final = 16
#: Arrays of a kernel at most, whatever the device allows.
_MOST_ARRAYS: Final = 32


class Fused:
    """The kernels of a computation.

    Parameters
    ----------
    client : Families
        The device.
    computation : Computation
        What is computed.
    """

    def __init__(self, client: Families, computation: Computation) -> None:
        def formulas(*operands: Operand) -> list[Operand]:
            return expressions(computation, operands, express, ZERO)

        self._client = client
        self._kernels = Pointwise(
            client.context, "graph", computation.sources, computation.result_dtypes, formulas
        )

    def __call__(self, operands: Sequence[Any], results: Sequence[DeviceArray]) -> None:
        """Compute the results and write them into arrays of one shape, whatever their layouts are."""
        if self._kernels.write(operands, results):
            return
        client, takes = self._client, self._kernels.takes
        made = [
            out if takes(operands, out) else client.empty(out.shape, out.dtype) for out in results
        ]
        written = self._kernels.write(operands, made)
        assert written
        for target, array in zip(results, made, strict=True):
            if target is not array:
                client.assign(target, array)


@cache
def _weight(op: Op | None, compute: DType) -> int:
    """The length of an operation's text, in operations of WGSL that an average step may have."""
    if op is None:
        return 1
    dtypes = [dt.bool_ if op is SELECT and i == 0 else compute for i in range(op.arity)]
    value = express(op, compute, *(operand(f"x{i}", dtype) for i, dtype in enumerate(dtypes)))
    roots = [value] if isinstance(value, Expr) else list(value)
    return max(1, sum(1 for _ in topological(roots)) // _STEP)


class Fusion(Families):
    """The families of fused computations."""

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        buffers = self.context.limits["max-storage-buffers-per-shader-stage"]
        self.fusion_arrays = min(buffers, _MOST_ARRAYS)
        self.fusion_recomputes = not self.context.is_cpu
        self._fused: OrderedDict[Computation, Fused] = OrderedDict()

    def fuses(self, op: Op | None, compute: DType) -> bool:
        # An operation by itself is made of the same expressions.
        if compute not in self.dtypes:
            return False
        return op is None or compute.kind in dt.CATEGORIES[op.domain]

    def fusion_weight(self, op: Op | None, compute: DType) -> int:
        return _weight(op, compute)

    def fused(self, computation: Computation) -> Fused:
        found = self._fused.get(computation)
        if found is None:
            found = self._fused[computation] = Fused(self, computation)
            if len(self._fused) > _KEPT:
                self._fused.popitem(last=False)
        return found
