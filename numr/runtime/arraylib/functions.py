"""The op table's operations as functions of a NumPy-like library.

Most rows are one ufunc. What the library does differently from the standard is repaired in :mod:`real_repairs` and
:mod:`complex_repairs`, by operation and kind of the compute dtype; each repair says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from numr.dtypes import DType
from numr.ir import ops
from numr.ir.ops import Op
from numr.runtime.arraylib import complex_repairs, real_repairs

Function = Callable[..., Any]
#: Makes the function of an operation from the library and the compute dtype. The function takes arrays of that dtype,
#: or Python scalars where the operand is one, and gives a new array (or a scalar of the library for no axes).
Repair = Callable[[Any, DType], Function]

#: Names of the library's ufuncs where they differ from the standard's.
UFUNC_NAMES: Final[dict[Op, str]] = {
    ops.ABS: "absolute",
    ops.ACOS: "arccos",
    ops.ACOSH: "arccosh",
    ops.ASIN: "arcsin",
    ops.ASINH: "arcsinh",
    ops.ATAN: "arctan",
    ops.ATAN2: "arctan2",
    ops.ATANH: "arctanh",
    ops.BITWISE_INVERT: "invert",
    ops.BITWISE_LEFT_SHIFT: "left_shift",
    ops.BITWISE_RIGHT_SHIFT: "right_shift",
    ops.POW: "power",
    ops.ROUND: "rint",
    ops.SELECT: "where",
}

REPAIRS: Final[dict[tuple[Op, str], Repair]] = {
    **{
        (op, kind): real_repairs.itself
        for op in (ops.CEIL, ops.FLOOR, ops.ROUND, ops.TRUNC, ops.REAL)
        for kind in "biu"
    },
    (ops.REAL, "f"): real_repairs.itself,
    (ops.IMAG, "i"): real_repairs.zeros,
    (ops.IMAG, "u"): real_repairs.zeros,
    (ops.IMAG, "f"): real_repairs.zeros,
    (ops.POW, "i"): real_repairs.pow_signed,
    (ops.POW, "f"): real_repairs.pow_float,
    (ops.FLOOR_DIVIDE, "f"): real_repairs.floor_divide,
    (ops.NEXTAFTER, "f"): real_repairs.nextafter,
    (ops.REAL, "c"): complex_repairs.real,
    (ops.IMAG, "c"): complex_repairs.imag,
    (ops.DIVIDE, "c"): complex_repairs.divide,
    (ops.RECIPROCAL, "c"): complex_repairs.reciprocal,
    (ops.POW, "c"): complex_repairs.pow_complex,
    (ops.SIGN, "c"): complex_repairs.sign,
    (ops.EXPM1, "c"): complex_repairs.expm1,
    (ops.LOG1P, "c"): complex_repairs.log1p,
    (ops.TAN, "c"): complex_repairs.tan,
    (ops.TANH, "c"): complex_repairs.tanh,
}


def elementwise_function(xp: Any, op: Op, compute: DType) -> Function:
    """The function that computes ``op`` on operands of dtype ``compute`` in the library ``xp``."""
    repair = REPAIRS.get((op, compute.kind))
    if repair is not None:
        return repair(xp, compute)
    function: Function = getattr(xp, UFUNC_NAMES.get(op, op.name))
    return function
