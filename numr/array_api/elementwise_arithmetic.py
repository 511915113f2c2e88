"""Elementwise arithmetic: sums, products, quotients, powers and signs."""

from __future__ import annotations

from numr.ir import ops
from numr.tensor.core import Tensor, call2, is_square, unary

__all__ = [
    "abs",
    "add",
    "divide",
    "floor_divide",
    "multiply",
    "negative",
    "positive",
    "pow",
    "reciprocal",
    "remainder",
    "sign",
    "square",
    "subtract",
]


def abs(x: Tensor, /) -> Tensor:
    """Absolute value, for complex elements the modulus.

    Parameters
    ----------
    x : Tensor
        Numeric dtype, any shape.

    Returns
    -------
    Tensor
        Same shape; real-valued, for complex ``x`` of the dtype of its components.

    Raises
    ------
    TypeError
        If ``x`` is not a tensor.
    DTypeError
        If ``x`` is boolean.

    Notes
    -----
    The modulus does not overflow or underflow on the way, and is infinite when either
    component is, even beside NaN. The least signed integer is its own absolute value.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.abs(xp.asarray([-1.5, -0.0, 2.0]))
    Tensor([1.5, 0. , 2. ], dtype=float64, device=cpu)
    >>> xp.abs(xp.asarray([3 - 4j]))
    Tensor([5.], dtype=float64, device=cpu)
    """
    return unary(ops.ABS, x)


def add(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """Sum ``x1 + x2``.

    Parameters
    ----------
    x1, x2 : Tensor or number
        Numeric dtype.
        At least one is a tensor; shapes broadcast.

    Returns
    -------
    Tensor
        The result, of the promoted dtype.

    Raises
    ------
    TypeError
        If an operand is neither a tensor nor a scalar, or neither is a tensor.
    DTypeError
        If the dtypes do not promote.
    ShapeError
        If the shapes do not broadcast.
    DeviceMismatch
        If the tensors are on different devices.

    Notes
    -----
    Integer sums wrap around. Beyond the standard, the sum of booleans is True where one of them is.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.add(xp.asarray([1.0, 2.0]), 0.5)
    Tensor([1.5, 2.5], dtype=float64, device=cpu)
    """
    return call2(ops.ADD, x1, x2)


def divide(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """Quotient ``x1 / x2``.

    Parameters
    ----------
    x1, x2 : Tensor or number
        Floating-point dtype; integers and booleans are taken as the device's default
        floating-point dtype.
        At least one is a tensor; shapes broadcast.

    Returns
    -------
    Tensor
        The quotients, floating-point: integers divide to the default floating-point dtype.

    Raises
    ------
    TypeError
        If an operand is neither a tensor nor a scalar, or neither is a tensor.
    DTypeError
        If the dtypes do not promote.
    ShapeError
        If the shapes do not broadcast.
    DeviceMismatch
        If the tensors are on different devices.

    Notes
    -----
    Real division by zero gives the infinity of the quotient's sign, and NaN for zero by zero.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.divide(xp.asarray([1, 2, 3]), 2)
    Tensor([0.5, 1. , 1.5], dtype=float64, device=cpu)
    """
    return call2(ops.DIVIDE, x1, x2)


def floor_divide(x1: Tensor | float, x2: Tensor | float, /) -> Tensor:
    """Quotient rounded down, ``x1 // x2``.

    Parameters
    ----------
    x1, x2 : Tensor or real number
        Integer or real-valued floating-point dtype.
        At least one is a tensor; shapes broadcast.

    Returns
    -------
    Tensor
        The result, of the promoted dtype.

    Raises
    ------
    TypeError
        If an operand is neither a tensor nor a scalar, or neither is a tensor.
    DTypeError
        If the dtypes do not promote, or an operand is boolean or complex.
    ShapeError
        If the shapes do not broadcast.
    DeviceMismatch
        If the tensors are on different devices.

    Notes
    -----
    Floating-point infinities follow division, as the standard has it: ``inf // 2`` is ``inf``
    and ``1.0 // -inf`` is ``-0.0`` (Python and NumPy give NaN and -1.0). An integer divided
    by zero gives 0.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.floor_divide(xp.asarray([7, -7]), 2)
    Tensor([ 3, -4], dtype=int64, device=cpu)
    >>> xp.floor_divide(xp.asarray([7.5, float("inf")]), 2)
    Tensor([ 3., inf], dtype=float64, device=cpu)
    """
    return call2(ops.FLOOR_DIVIDE, x1, x2)


def multiply(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """Product ``x1 * x2``.

    Parameters
    ----------
    x1, x2 : Tensor or number
        Numeric dtype.
        At least one is a tensor; shapes broadcast.

    Returns
    -------
    Tensor
        The result, of the promoted dtype.

    Raises
    ------
    TypeError
        If an operand is neither a tensor nor a scalar, or neither is a tensor.
    DTypeError
        If the dtypes do not promote.
    ShapeError
        If the shapes do not broadcast.
    DeviceMismatch
        If the tensors are on different devices.

    Notes
    -----
    Integer products wrap around. Complex products follow the textbook formula, so an infinite
    component can give NaN. Beyond the standard, the product of booleans is True where both are.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.multiply(xp.asarray([1.0, 2.0]), 3)
    Tensor([3., 6.], dtype=float64, device=cpu)
    """
    return call2(ops.MULTIPLY, x1, x2)


def negative(x: Tensor, /) -> Tensor:
    """Number with the opposite sign, ``-x``.

    Parameters
    ----------
    x : Tensor
        Numeric dtype, any shape.

    Returns
    -------
    Tensor
        Same shape and dtype.

    Raises
    ------
    TypeError
        If ``x`` is not a tensor.
    DTypeError
        If ``x`` is boolean.

    Notes
    -----
    Unsigned integers wrap around; the least signed integer is its own negative.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.negative(xp.asarray([1.0, -2.0, 0.0]))
    Tensor([-1.,  2., -0.], dtype=float64, device=cpu)
    """
    return unary(ops.NEGATIVE, x)


def positive(x: Tensor, /) -> Tensor:
    """The number itself, ``+x``, in a new tensor.

    Parameters
    ----------
    x : Tensor
        Numeric dtype, any shape.

    Returns
    -------
    Tensor
        Same shape and dtype.

    Raises
    ------
    TypeError
        If ``x`` is not a tensor.
    DTypeError
        If ``x`` is boolean.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.positive(xp.asarray([1, -2]))
    Tensor([ 1, -2], dtype=int64, device=cpu)
    """
    return unary(ops.POSITIVE, x)


def pow(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """Power ``x1 ** x2``.

    Parameters
    ----------
    x1, x2 : Tensor or number
        Numeric dtype.
        At least one is a tensor; shapes broadcast.

    Returns
    -------
    Tensor
        The result, of the promoted dtype.

    Raises
    ------
    TypeError
        If an operand is neither a tensor nor a scalar, or neither is a tensor.
    DTypeError
        If the dtypes do not promote, or an operand is boolean.
    ShapeError
        If the shapes do not broadcast.
    DeviceMismatch
        If the tensors are on different devices.

    Notes
    -----
    Real: ``x ** 0`` and ``1 ** y`` are 1 even for NaN; a negative base with an exponent that
    is not whole gives NaN. Integer powers wrap around; with a negative exponent they are
    rounded towards zero, so 0 unless the base is 1 or -1. Complex powers are ``exp(x2 *
    log(x1))`` with the branch cut of ``log``.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.pow(xp.asarray([1.0, 2.0, 3.0]), 2)
    Tensor([1., 4., 9.], dtype=float64, device=cpu)
    """
    if is_square(x1, x2):
        return unary(ops.SQUARE, x1)
    return call2(ops.POW, x1, x2)


def reciprocal(x: Tensor, /) -> Tensor:
    """Reciprocal ``1 / x``.

    Parameters
    ----------
    x : Tensor
        Floating-point dtype; integers and booleans are taken as the device's default
        floating-point dtype. Any shape.

    Returns
    -------
    Tensor
        Same shape and dtype (the default floating-point dtype for integers).

    Raises
    ------
    TypeError
        If ``x`` is not a tensor.

    Notes
    -----
    Real zeros give infinities of their sign.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.reciprocal(xp.asarray([2.0, -0.5]))
    Tensor([ 0.5, -2. ], dtype=float64, device=cpu)
    """
    return unary(ops.RECIPROCAL, x)


def remainder(x1: Tensor | float, x2: Tensor | float, /) -> Tensor:
    """Remainder of ``floor_divide``, with the sign of the divisor, ``x1 % x2``.

    Parameters
    ----------
    x1, x2 : Tensor or real number
        Integer or real-valued floating-point dtype.
        At least one is a tensor; shapes broadcast.

    Returns
    -------
    Tensor
        The result, of the promoted dtype.

    Raises
    ------
    TypeError
        If an operand is neither a tensor nor a scalar, or neither is a tensor.
    DTypeError
        If the dtypes do not promote, or an operand is boolean or complex.
    ShapeError
        If the shapes do not broadcast.
    DeviceMismatch
        If the tensors are on different devices.

    Notes
    -----
    As Python's ``%``: a zero remainder has the sign of the divisor, and ``1.0 % -inf`` is
    ``-inf``. A floating-point remainder by zero is NaN, an integer one 0.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.remainder(xp.asarray([7, -7]), 3)
    Tensor([1, 2], dtype=int64, device=cpu)
    """
    return call2(ops.REMAINDER, x1, x2)


def sign(x: Tensor, /) -> Tensor:
    """Sign: -1, 0 or 1, and ``x / abs(x)`` for complex elements.

    Parameters
    ----------
    x : Tensor
        Numeric dtype, any shape.

    Returns
    -------
    Tensor
        Same shape and dtype.

    Raises
    ------
    TypeError
        If ``x`` is not a tensor.
    DTypeError
        If ``x`` is boolean.

    Notes
    -----
    NaN gives NaN; a NaN component of a complex element makes both components NaN.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.sign(xp.asarray([-2.5, 0.0, 7.0]))
    Tensor([-1.,  0.,  1.], dtype=float64, device=cpu)
    >>> xp.sign(xp.asarray([3 + 4j]))
    Tensor([0.6+0.8j], dtype=complex128, device=cpu)
    """
    return unary(ops.SIGN, x)


def square(x: Tensor, /) -> Tensor:
    """Square ``x * x``.

    Parameters
    ----------
    x : Tensor
        Numeric dtype, any shape.

    Returns
    -------
    Tensor
        Same shape and dtype.

    Raises
    ------
    TypeError
        If ``x`` is not a tensor.
    DTypeError
        If ``x`` is boolean.

    Notes
    -----
    Integer squares wrap around.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.square(xp.asarray([1.0, -3.0]))
    Tensor([1., 9.], dtype=float64, device=cpu)
    """
    return unary(ops.SQUARE, x)


def subtract(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """Difference ``x1 - x2``.

    Parameters
    ----------
    x1, x2 : Tensor or number
        Numeric dtype.
        At least one is a tensor; shapes broadcast.

    Returns
    -------
    Tensor
        The result, of the promoted dtype.

    Raises
    ------
    TypeError
        If an operand is neither a tensor nor a scalar, or neither is a tensor.
    DTypeError
        If the dtypes do not promote, or an operand is boolean.
    ShapeError
        If the shapes do not broadcast.
    DeviceMismatch
        If the tensors are on different devices.

    Notes
    -----
    Integer differences wrap around.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.subtract(xp.asarray([1.0, 2.0]), 0.5)
    Tensor([0.5, 1.5], dtype=float64, device=cpu)
    """
    return call2(ops.SUBTRACT, x1, x2)
