"""Insertion points in a sorted array, by bisection."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from numr.codegen import cuda
from numr.codegen import expr as ex
from numr.codegen.elementwise import operand
from numr.codegen.expr import Expr
from numr.codegen.libm.formats import is_nan
from numr.dtypes import DType
from numr.runtime.cuda import texts
from numr.runtime.cuda.texts import BLOCK

if TYPE_CHECKING:
    from numr.runtime.cuda.context import DeviceContext

__all__ = ["search_into"]


def search_into(context: DeviceContext, ordered: Any, values: Any, right: bool, out: Any) -> None:
    """Write where values, C-contiguous, belong in a sorted one-dimensional array of the same dtype."""
    size = values.size
    if not size:
        return
    kernel = context.kernel(_text(ordered.dtype, right), 6, 0)
    arguments = ordered.data.ptr, values.data.ptr, out.data.ptr, ordered.size, size
    context.launch(kernel, -(-size // BLOCK), 1, BLOCK, 1, *arguments, ordered.strides[0])


def _less(a: Expr, b: Expr) -> Expr:
    """The order that sorting gives: NaN last."""
    if a.type.kind == "b":
        return ~a & b
    if a.type.kind != "f":
        return a < b
    return ex.select(is_nan(a), ex.const(False, ex.BOOL), is_nan(b) | (a < b))


@cache
def _text(dtype: DType, right: bool) -> str:
    memory = texts.memory_type(dtype)
    element, value = operand("e", dtype), operand("v", dtype)
    if isinstance(element, Expr):
        assert isinstance(value, Expr)
        before = ~_less(value, element) if right else _less(element, value)
    else:
        assert not isinstance(value, Expr)
        first, second = (value, element) if right else (element, value)
        less = _less(first.re, second.re) | (
            ~_less(second.re, first.re) & _less(first.im, second.im)
        )
        before = ~less if right else less
    code = cuda.code([before], indent="        ")
    loads = [
        "".join(f"{indent}{line}\n" for line in texts.load(name, dtype, text))
        for name, text, indent in (
            ("v", "values[i]", "    "),
            ("e", f"(*(const {memory}*)(ordered + middle * step))", "        "),
        )
    ]
    return (
        f"{texts.head()}"
        + texts.signature(
            f"const char* ordered, const {memory}* values, long long* out, const long long length, "
            "const long long size, const long long step"
        )
        + f"    const long long i = (long long)blockIdx.x * {BLOCK} + threadIdx.x;\n"
        "    if (i >= size) return;\n"
        f"{loads[0]}"
        "    long long low = 0, high = length;\n"
        "    while (low < high) {\n"
        "        const long long middle = low + (high - low) / 2;\n"
        f"{loads[1]}{code.statements}"
        f"        if ({code.results[0]}) low = middle + 1; else high = middle;\n"
        "    }\n"
        "    out[i] = low;\n"
        "}\n"
    )
