"""The elementwise families: operations of the op table, and conversions."""

from __future__ import annotations

from typing import Any

from numr.codegen.elementwise import Operand
from numr.dtypes import DType, Kind
from numr.ir.ops import Op
from numr.runtime.client import Loop
from numr.runtime.device import Device
from numr.runtime.integer_comparisons import comparing
from numr.runtime.storage import DeviceArray
from numr.runtime.wgpu import texts
from numr.runtime.wgpu.elementwise import Elementwise, of_operation
from numr.runtime.wgpu.families import Families

__all__ = ["Operations"]


class Operations(Families):
    """The elementwise families."""

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._operations: dict[tuple[Any, ...], Elementwise] = {}
        self._conversions: dict[tuple[DType, DType], Elementwise] = {}

    def elementwise_loop(self, op: Op, kinds: tuple[Kind, ...]) -> Loop:
        signature = self.signature(op, kinds)
        loop = comparing(op, kinds, signature.compute, self.operation(op, kinds), self.full)
        if signature == op.signature(kinds, self.defaults):
            return loop

        def narrowed(*operands: Any) -> DeviceArray:
            self.signature(op, kinds)  # whether it may be narrowed can change with every call
            result: DeviceArray = loop(*operands)
            return result

        return narrowed

    def elementwise_into(
        self, op: Op, kinds: tuple[Kind, ...], operands: tuple[Any, ...], target: DeviceArray
    ) -> None:
        operation = self.operation(op, kinds)
        loop = comparing(op, kinds, self.signature(op, kinds).compute, operation, self.full)
        if loop is not operation or not operation.fill(operands, target):
            self.assign(target, loop(*operands))

    def operation(self, op: Op, kinds: tuple[Kind, ...]) -> Elementwise:
        """The kernels of an operation for operands of given dtypes and scalar types."""
        key = (op, *kinds)
        found = self._operations.get(key)
        if found is None:
            signature = self.signature(op, kinds)
            found = self._operations[key] = of_operation(self.context, op, kinds, signature)
        return found

    def cast(self, array: DeviceArray, dtype: DType) -> DeviceArray:
        return self.conversion(array.dtype, self.require_dtype(dtype, "astype"))(array)

    def conversion(self, source: DType, target: DType) -> Elementwise:
        """The kernels that convert elements from one dtype to another."""
        found = self._conversions.get((source, target))
        if found is None:

            def formula(x: Operand) -> Operand:
                return texts.taken(x, source, target)

            found = self._conversions[source, target] = Elementwise(
                self.context, "astype", [(source, True)], target, formula
            )
        return found
