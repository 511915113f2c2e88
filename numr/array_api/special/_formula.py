"""Functions of elements that are written as formulas over the op table and run as one fused computation.

A formula is a Python function of :class:`Value` objects. It is followed once for each dtype; what it does becomes a
:class:`~numr.ir.fused.Computation`, of which a runtime makes one kernel. Inside a captured graph, the operations are
recorded one by one and the graph fuses them with their neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from numr import dtypes as dt
from numr.array_api import _arguments as arg
from numr.dtypes import DType
from numr.ir import ops
from numr.ir.fused import Computation, Source, Step
from numr.ir.ops import Op, Signature
from numr.layout import broadcast_shapes
from numr.runtime.client import RuntimeClient
from numr.tensor.core import Tensor, elementwise, wrap
from numr.tensor.dispatch import call

__all__ = ["Formula", "Value", "chebyshev", "select"]

Number = float | int


class Value:
    """A number of a formula: what a formula is given, a constant, or the result of an operation.

    Arithmetic and comparisons are those of the op table, in the formula's dtype.
    """

    __slots__ = ("_trace", "number")
    __hash__ = object.__hash__

    def __init__(self, trace: _Trace, number: int) -> None:
        self._trace = trace
        self.number = number

    @property
    def dtype(self) -> DType:
        """The dtype that the formula computes in."""
        return self._trace.dtype

    def constant(self, number: Number) -> Value:
        """A constant of the same formula."""
        return self._trace.constant(number)

    def apply(self, op: Op, *others: Value | Number) -> Value:
        """An operation on this value and others."""
        return self._trace.step(op, self, *others)

    def __add__(self, other: Value | Number) -> Value:
        return self.apply(ops.ADD, other)

    __radd__ = __add__

    def __mul__(self, other: Value | Number) -> Value:
        return self.apply(ops.MULTIPLY, other)

    __rmul__ = __mul__

    def __sub__(self, other: Value | Number) -> Value:
        return self.apply(ops.SUBTRACT, other)

    def __rsub__(self, other: Number) -> Value:
        return self._trace.constant(other).apply(ops.SUBTRACT, self)

    def __truediv__(self, other: Value | Number) -> Value:
        return self.apply(ops.DIVIDE, other)

    def __rtruediv__(self, other: Number) -> Value:
        return self._trace.constant(other).apply(ops.DIVIDE, self)

    def __neg__(self) -> Value:
        return self.apply(ops.NEGATIVE)

    def __abs__(self) -> Value:
        return self.apply(ops.ABS)

    def __lt__(self, other: Value | Number) -> Value:
        return self.apply(ops.LESS, other)

    def __le__(self, other: Value | Number) -> Value:
        return self.apply(ops.LESS_EQUAL, other)

    def __ge__(self, other: Value | Number) -> Value:
        return self.apply(ops.GREATER_EQUAL, other)

    def __gt__(self, other: Value | Number) -> Value:
        return self.apply(ops.GREATER, other)

    def __eq__(self, other: object) -> Value:  # type: ignore[override]
        return self.apply(ops.EQUAL, other)  # type: ignore[arg-type]

    def __and__(self, other: Value) -> Value:
        return self.apply(ops.LOGICAL_AND, other)

    def __or__(self, other: Value) -> Value:
        return self.apply(ops.LOGICAL_OR, other)

    def __invert__(self) -> Value:
        return self.apply(ops.LOGICAL_NOT)


class _Trace:
    """What a formula has done: its constants and its steps, each with a number of its own kind."""

    def __init__(self, dtype: DType, given: int) -> None:
        self.dtype = dtype
        self.given = given
        self.constants: dict[float, int] = {}
        self._steps: list[tuple[Op, Signature, tuple[int, ...]]] = []
        self._results: dict[int, DType] = {}

    # Values that are given and steps count from 0 up, in order of appearance; constants from -1 down. Computations want
    # the constants before the steps, but their number is known in the end alone.
    def constant(self, value: Number) -> Value:
        """A constant; the same one for the same number."""
        key = float(value)
        return Value(self, self.constants.setdefault(key, -1 - len(self.constants)))

    def step(self, op: Op, *operands: Value | Number) -> Value:
        """An operation."""
        values = [x if isinstance(x, Value) else self.constant(x) for x in operands]
        kinds = tuple(self._results.get(value.number, self.dtype) for value in values)
        signature = op.signature(kinds, _NO_DEFAULTS)
        number = self.given + len(self._steps)
        self._steps.append((op, signature, tuple(value.number for value in values)))
        self._results[number] = signature.result
        return Value(self, number)

    def computation(self, result: Value) -> tuple[Computation, tuple[float, ...]]:
        """The computation of a result, and the constants that it is to be given after its operands."""
        count = len(self.constants)

        def place(number: int) -> int:
            if number < 0:
                return self.given - 1 - number
            return number if number < self.given else number + count

        sources = [Source(self.dtype, is_array=True)] * self.given
        sources += [Source(self.dtype, is_array=False)] * count
        steps = tuple(
            Step(op, signature, tuple(map(place, arguments)))
            for op, signature, arguments in self._steps
        )
        computation = Computation(tuple(sources), steps, (place(result.number),))
        return computation, tuple(self.constants)


#: Constants and operands of a kernel at most: on CUDA each takes 16 of 4096 bytes.
_MOST_SOURCES: Final = 224
#: Operations on values of one floating-point dtype never ask for a default.
_NO_DEFAULTS: Final = dt.DefaultDTypes(dt.float64, dt.complex128, dt.int64, dt.int64)


def select(condition: Value, yes: Value | Number, no: Value | Number) -> Value:
    """One value where a condition holds, another where it does not."""
    return condition.apply(ops.SELECT, yes, no)


def chebyshev(u: Value, coefficients: Sequence[float]) -> Value:
    """A sum of Chebyshev polynomials of ``u``, with as many terms as the dtype tells from none, by Clenshaw's rule."""
    limit = float(np.finfo(u.dtype).eps) / 8 * max(map(abs, coefficients))
    count = max(i for i, c in enumerate(coefficients) if abs(c) > limit) + 1
    twice = u + u
    later: Value | Number = 0.0
    current: Value | Number = coefficients[count - 1]
    for c in coefficients[count - 2 : 0 : -1]:
        current, later = twice * current - later + c, current
    return u * current - later + coefficients[0]


class Formula:
    """A function of tensors of a real floating-point dtype; integers and booleans become the default one.

    Parameters
    ----------
    name : str
        The function's name, for errors.
    build : callable
        The formula: values in, a value out.
    """

    def __init__(self, name: str, build: Callable[..., Value]) -> None:
        self._name = name
        self._build = build
        self._traced: dict[tuple[DType, int], tuple[Computation, tuple[float, ...]]] = {}

    def __call__(self, *operands: Any) -> Tensor:
        """The function of tensors on one device, and numbers beside them, which broadcast together."""
        tensors = [
            arg.floating(self._name, x, "real-valued floating-point")
            for x in arg.promoted(self._name, *operands)
        ]
        client, dtype = tensors[0]._client, tensors[0].dtype
        if dtype == dt.float16:
            wide = self(*(wrap(call(client, "cast", x._data, dt.float32), client) for x in tensors))
            return wrap(call(client, "cast", wide._data, dtype), client)
        computation, constants = self._for(dtype, len(tensors))
        if client.recorder is not None and client.recorder.here() is client.recorder:
            return _one_by_one(computation, [*tensors, *constants])
        shape = broadcast_shapes(*(x.shape for x in tensors), function=self._name)
        result = call(client, "empty", shape, dtype)
        loop = _loop(client, computation)
        # Of the branches of a choice all are computed; NumPy would warn of what nobody takes.
        with np.errstate(all="ignore"):
            loop([*(x._data for x in tensors), *constants], [result])
        return wrap(result, client)

    def _for(self, dtype: DType, arity: int) -> tuple[Computation, tuple[float, ...]]:
        found = self._traced.get((dtype, arity))
        if found is None:
            trace = _Trace(dtype, arity)
            result = self._build(*(Value(trace, i) for i in range(arity)))
            found = self._traced[dtype, arity] = trace.computation(result)
        return found


def _loop(client: RuntimeClient[Any], computation: Computation) -> Any:
    """The kernel of a computation, or its operations one by one where the runtime has none or it would be too long."""
    short = len(computation.sources) <= _MOST_SOURCES
    if short and all(client.fuses(step.op, step.signature.compute) for step in computation.steps):
        return client.fused(computation)
    return RuntimeClient.fused(client, computation)


def _one_by_one(computation: Computation, values: list[Any]) -> Tensor:
    for step in computation.steps:
        assert step.op is not None, "a formula converts nothing"
        values.append(elementwise(step.op, *(values[number] for number in step.arguments)))
    (result,) = computation.results
    tensor: Tensor = values[result]
    return tensor
