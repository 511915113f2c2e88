"""The op table as expressions: what each operation computes in each dtype.

Complex numbers are pairs of components (:class:`~numr.codegen.complexes.Complex`), integers of 8 and 16 bits are held
in 32 bits within their range, and float16 is computed in f32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from numr import dtypes as dt
from numr.codegen import complex_inverses, complexes
from numr.codegen import expr as ex
from numr.codegen.complex_power import power
from numr.codegen.complexes import Complex, choose, over_i, times_i
from numr.codegen.expr import BOOL, F16, F32, F64, I32, I64, U32, U64, Expr, Scalar
from numr.codegen.floats import FLOAT, nextafter_half
from numr.codegen.integers import BOOLEAN, INTEGER, wrapped
from numr.codegen.libm.formats import format_of, is_finite, is_inf, is_nan
from numr.dtypes import DType
from numr.errors import DTypeError
from numr.ir import ops
from numr.ir.ops import Op

__all__ = ["Complex", "Operand", "convert", "expression", "operand", "scalar_of"]

#: An element: a scalar expression, or a pair of them for a complex dtype.
Operand: TypeAlias = "Expr | Complex"

_SCALARS: Final[dict[DType, Scalar]] = {
    dt.bool_: BOOL,
    **dict.fromkeys((dt.int8, dt.int16, dt.int32), I32),
    **dict.fromkeys((dt.uint8, dt.uint16, dt.uint32), U32),
    dt.int64: I64,
    dt.uint64: U64,
    dt.float16: F16,
    dt.float32: F32,
    dt.float64: F64,
    dt.complex64: F32,
    dt.complex128: F64,
}


def scalar_of(dtype: DType) -> Scalar:
    """The type that elements of a dtype, or their components, have in expressions."""
    return _SCALARS[dtype]


def operand(name: str, dtype: DType) -> Operand:
    """A variable for an element: components of a complex one are called ``name_re`` and ``name_im``."""
    scalar = scalar_of(dtype)
    if dtype.kind == "c":
        return Complex(ex.var(f"{name}_re", scalar), ex.var(f"{name}_im", scalar))
    return ex.var(name, scalar)


def expression(op: Op, compute: DType, *operands: Operand) -> Operand:
    """What an operation gives for one element.

    Parameters
    ----------
    op : Op
        A row of the op table.
    compute : dtype
        The dtype that the operation computes in, as ``op.signature`` says.
    *operands : Expr or Complex
        Elements of that dtype (the condition of ``where`` is boolean).

    Returns
    -------
    Expr or Complex
        An element of the result's dtype.

    Raises
    ------
    DTypeError
        If the operation is not defined for the dtype.
    TypeError
        If an operand is not of the dtype's type, or their number is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from numr.codegen.reference import evaluate
    >>> x = operand("x", dt.int8)
    >>> evaluate([expression(ops.NEGATIVE, dt.int8, x)], {"x": np.int32([1, -128])})
    [array([  -1, -128], dtype=int32)]
    """
    if compute.kind not in dt.CATEGORIES[op.domain]:
        raise DTypeError(
            f"{op.name}: {compute} is {dt.category_of(compute)}; only {op.domain} dtypes are allowed."
        )
    _check(op, compute, operands)
    if compute.kind == "c":
        result: Operand = _COMPLEX[op.name](*operands)
        return result
    if compute.kind == "b":
        return BOOLEAN[op.name](*operands, compute)
    if compute.kind in "iu":
        return INTEGER[op.name](*operands, compute)
    if compute != dt.float16:
        return FLOAT[op.name](*operands)
    wide = [ex.cast(x, F32) if x.type is F16 else x for x in operands if isinstance(x, Expr)]
    row = nextafter_half if op is ops.NEXTAFTER else FLOAT[op.name]
    value = row(*wide)
    return value if value.type is BOOL else ex.cast(value, F16)


def _check(op: Op, compute: DType, operands: tuple[Operand, ...]) -> None:
    if len(operands) != op.arity:
        raise TypeError(f"{op.name}: got {len(operands)} operands, takes {op.arity}")
    scalar = scalar_of(compute)
    for position, value in enumerate(operands):
        if op is ops.SELECT and position == 0:
            fits = isinstance(value, Expr) and value.type is BOOL
        elif isinstance(value, Complex):
            fits = compute.kind == "c" and value.re.type is scalar and value.im.type is scalar
        else:
            fits = compute.kind != "c" and value.type is scalar
        if not fits:
            raise TypeError(f"{op.name}: operand {position} is {value!r}, no element of {compute}")


def convert(x: Operand, source: DType, target: DType) -> Operand:
    """An element in another dtype.

    Integers wrap. Floats are rounded towards zero to integers and end at the ends of their range, NaN becomes 0; to
    other floats they are rounded once, to nearest. To a boolean everything but zero is true. Real numbers become
    complex ones without imaginary part.

    Raises
    ------
    DTypeError
        From a complex dtype to a real or integer one.
    """
    if isinstance(x, Complex):
        if target.kind == "c":
            scalar = scalar_of(target)
            return Complex(ex.cast(x.re, scalar), ex.cast(x.im, scalar))
        if target.kind == "b":
            return ~(ex.eq(x.re, 0.0) & ex.eq(x.im, 0.0))
        raise DTypeError(f"astype: {source} to {target}: take real(), imag() or abs() first.")
    if target.kind == "c":
        real = convert(x, source, dt.real_of(target))
        assert isinstance(real, Expr)
        return Complex(real, ex.const(0.0, real.type))
    scalar = scalar_of(target)
    if target.kind == "b":
        return x if source.kind == "b" else ~ex.eq(ex.cast(x, F32) if x.type is F16 else x, 0)
    if source.kind == "f":
        if target.kind in "iu":
            return _float_to_integer(ex.cast(x, F32) if x.type is F16 else x, target)
        if source == dt.float64 and target == dt.float16:
            x = _rounded_to_odd(x)
        return ex.cast(x, scalar)
    value = ex.cast(x, scalar)
    return value if target.kind == "f" or source.kind == "b" else wrapped(value, target)


def _float_to_integer(x: Expr, target: DType) -> Expr:
    f, info, scalar = format_of(x), dt.iinfo_of(target), scalar_of(target)
    # The first power of two beyond the range, which is a float; the conversion is open from there on.
    end = float(info.max + 1)
    start = float(info.min)
    above, below = x >= end, x <= start
    inside = ex.select(above | below | is_nan(x), f.number(0.0), x)
    value = ex.cast(inside, scalar)
    value = ex.select(above, ex.const(info.max, scalar), value)
    value = ex.select(below, ex.const(info.min, scalar), value)
    return ex.select(is_nan(x), ex.const(0, scalar), value)


def _rounded_to_odd(x: Expr) -> Expr:
    """An f64 as f32, inexact results with an odd last digit: a second rounding then is that of the number itself."""
    nearest = ex.cast(x, F32)
    back = ex.cast(nearest, F64)
    bits = ex.bitcast(nearest, U32)
    too_large = ex.absolute(back) > ex.absolute(x)
    toward_zero = ex.select(too_large, bits - 1, bits)
    odd = ex.bitcast(toward_zero | 1, F32)
    return ex.select(ex.eq(back, x) | is_nan(x), nearest, odd)


def _parts(function: Callable[[Expr], Expr]) -> Callable[[Complex], Complex]:
    return lambda z: Complex(function(z.re), function(z.im))


def _scaled(function: Callable[[Complex], Complex], factor: float) -> Callable[[Complex], Complex]:
    def scaled(z: Complex) -> Complex:
        value = function(z)
        return Complex(value.re * factor, value.im * factor)

    return scaled


_COMPLEX: Final[dict[str, Callable[..., Any]]] = {
    "abs": complexes.absolute,
    "acos": complex_inverses.acos,
    "acosh": complex_inverses.acosh,
    "add": lambda x, y: Complex(x.re + y.re, x.im + y.im),
    "asin": complex_inverses.asin,
    "asinh": complex_inverses.asinh,
    "atan": complex_inverses.atan,
    "atanh": complex_inverses.atanh,
    "conj": lambda z: Complex(z.re, -z.im),
    "cos": lambda z: complexes.cosh(times_i(z)),
    "cosh": complexes.cosh,
    "divide": complexes.divide,
    "equal": lambda x, y: ex.eq(x.re, y.re) & ex.eq(x.im, y.im),
    "exp": complexes.exp,
    "expm1": complexes.expm1,
    "imag": lambda z: z.im,
    "isfinite": lambda z: is_finite(z.re) & is_finite(z.im),
    "isinf": lambda z: is_inf(z.re) | is_inf(z.im),
    "isnan": lambda z: is_nan(z.re) | is_nan(z.im),
    "log": complexes.log,
    "log10": _scaled(complexes.log, 0.4342944819032518),
    "log1p": complexes.log1p,
    "log2": _scaled(complexes.log, 1.4426950408889634),
    "multiply": complexes.multiply,
    "negative": lambda z: -z,
    "not_equal": lambda x, y: ~(ex.eq(x.re, y.re) & ex.eq(x.im, y.im)),
    "positive": lambda z: z,
    "pow": power,
    "real": lambda z: z.re,
    "reciprocal": complexes.reciprocal,
    "round": _parts(ex.rint),
    "sign": complexes.sign,
    "sin": lambda z: over_i(complexes.sinh(times_i(z))),
    "sinh": complexes.sinh,
    "sqrt": complexes.sqrt,
    "square": lambda z: complexes.multiply(z, z),
    "subtract": lambda x, y: Complex(x.re - y.re, x.im - y.im),
    "tan": lambda z: over_i(complexes.tanh(times_i(z))),
    "tanh": complexes.tanh,
    "where": choose,
}
