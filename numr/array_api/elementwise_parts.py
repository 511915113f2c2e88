"""Elementwise rounding, complex parts, classification and floating-point neighbours."""

from __future__ import annotations

from numr.ir import ops
from numr.tensor.core import Tensor, call2, unary

__all__ = [
    "ceil",
    "conj",
    "copysign",
    "floor",
    "imag",
    "isfinite",
    "isinf",
    "isnan",
    "nextafter",
    "real",
    "round",
    "signbit",
    "trunc",
]


def ceil(x: Tensor, /) -> Tensor:
    """Smallest integer-valued number that is not less than the element.

    Parameters
    ----------
    x : Tensor
        Real-valued dtype (booleans included), any shape.

    Returns
    -------
    Tensor
        The rounded value, same shape and dtype; integers and booleans are themselves.

    Raises
    ------
    TypeError
        If ``x`` is not a tensor.
    DTypeError
        If ``x`` is complex.

    Notes
    -----
    Zeros, infinities and NaN are themselves; elements between -1 and 0 give -0.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.ceil(xp.asarray([1.2, -1.2]))
    Tensor([ 2., -1.], dtype=float64, device=cpu)
    """
    return unary(ops.CEIL, x)


def conj(x: Tensor, /) -> Tensor:
    """Complex conjugate; real-valued elements are themselves.

    Parameters
    ----------
    x : Tensor
        Numeric dtype, any shape.

    Returns
    -------
    Tensor
        New tensor of the same shape and dtype.

    Raises
    ------
    TypeError
        If ``x`` is not a tensor.
    DTypeError
        If ``x`` is boolean.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.conj(xp.asarray([1 + 2j]))
    Tensor([1.-2.j], dtype=complex128, device=cpu)
    """
    return unary(ops.CONJ, x)


def copysign(x1: Tensor | float, x2: Tensor | float, /) -> Tensor:
    """Magnitude of ``x1`` with the sign of ``x2``.

    Parameters
    ----------
    x1, x2 : Tensor or real number
        Real-valued floating-point dtype; integers and booleans are taken as the device's
        default one.
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
        If the dtypes do not promote, or an operand is complex.
    ShapeError
        If the shapes do not broadcast.
    DeviceMismatch
        If the tensors are on different devices.

    Notes
    -----
    Signs of zeros and of NaN count on both sides.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.copysign(xp.asarray([1.0, -2.0]), -0.0)
    Tensor([-1., -2.], dtype=float64, device=cpu)
    """
    return call2(ops.COPYSIGN, x1, x2)


def floor(x: Tensor, /) -> Tensor:
    """Largest integer-valued number that is not greater than the element.

    Parameters
    ----------
    x : Tensor
        Real-valued dtype (booleans included), any shape.

    Returns
    -------
    Tensor
        The rounded value, same shape and dtype; integers and booleans are themselves.

    Raises
    ------
    TypeError
        If ``x`` is not a tensor.
    DTypeError
        If ``x`` is complex.

    Notes
    -----
    Zeros, infinities and NaN are themselves.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.floor(xp.asarray([1.7, -1.2]))
    Tensor([ 1., -2.], dtype=float64, device=cpu)
    """
    return unary(ops.FLOOR, x)


def imag(x: Tensor, /) -> Tensor:
    """Imaginary part; zeros for real-valued elements.

    Parameters
    ----------
    x : Tensor
        Numeric dtype, any shape.

    Returns
    -------
    Tensor
        New tensor of the same shape, of the dtype of the components.

    Raises
    ------
    TypeError
        If ``x`` is not a tensor.
    DTypeError
        If ``x`` is boolean.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.imag(xp.asarray([1 + 2j]))
    Tensor([2.], dtype=float64, device=cpu)
    """
    return unary(ops.IMAG, x)


def isfinite(x: Tensor, /) -> Tensor:
    """Whether the element is neither infinite nor NaN.

    Parameters
    ----------
    x : Tensor
        Any dtype, any shape.

    Returns
    -------
    Tensor
        Boolean tensor of the same shape.

    Raises
    ------
    TypeError
        If ``x`` is not a tensor.

    Notes
    -----
    Both components of a complex element count. Integers and booleans are finite.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.isfinite(xp.asarray([1.0, float("inf"), float("nan")]))
    Tensor([ True, False, False], dtype=bool, device=cpu)
    """
    return unary(ops.ISFINITE, x)


def isinf(x: Tensor, /) -> Tensor:
    """Whether the element is infinite.

    Parameters
    ----------
    x : Tensor
        Any dtype, any shape.

    Returns
    -------
    Tensor
        Boolean tensor of the same shape.

    Raises
    ------
    TypeError
        If ``x`` is not a tensor.

    Notes
    -----
    A complex element is when either component is, even beside NaN.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.isinf(xp.asarray([1.0, float("inf"), float("nan")]))
    Tensor([False,  True, False], dtype=bool, device=cpu)
    """
    return unary(ops.ISINF, x)


def isnan(x: Tensor, /) -> Tensor:
    """Whether the element is NaN.

    Parameters
    ----------
    x : Tensor
        Any dtype, any shape.

    Returns
    -------
    Tensor
        Boolean tensor of the same shape.

    Raises
    ------
    TypeError
        If ``x`` is not a tensor.

    Notes
    -----
    A complex element is when either component is.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.isnan(xp.asarray([1.0, float("inf"), float("nan")]))
    Tensor([False, False,  True], dtype=bool, device=cpu)
    """
    return unary(ops.ISNAN, x)


def nextafter(x1: Tensor | float, x2: Tensor | float, /) -> Tensor:
    """The floating-point number next to ``x1`` in the direction of ``x2``.

    Parameters
    ----------
    x1, x2 : Tensor or real number
        Real-valued floating-point dtype; integers and booleans are taken as the device's
        default one.
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
        If the dtypes do not promote, or an operand is complex.
    ShapeError
        If the shapes do not broadcast.
    DeviceMismatch
        If the tensors are on different devices.

    Notes
    -----
    Equal operands give ``x2``, so the sign of a zero is that of ``x2``; NaN in either gives
    NaN.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.nextafter(xp.asarray([0.0, 1.0]), 2.0)
    Tensor([5.e-324, 1.e+000], dtype=float64, device=cpu)
    """
    return call2(ops.NEXTAFTER, x1, x2)


def real(x: Tensor, /) -> Tensor:
    """Real part; real-valued elements are themselves.

    Parameters
    ----------
    x : Tensor
        Numeric dtype, any shape.

    Returns
    -------
    Tensor
        New tensor of the same shape, of the dtype of the components.

    Raises
    ------
    TypeError
        If ``x`` is not a tensor.
    DTypeError
        If ``x`` is boolean.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.real(xp.asarray([1 + 2j]))
    Tensor([1.], dtype=float64, device=cpu)
    """
    return unary(ops.REAL, x)


def round(x: Tensor, /) -> Tensor:
    """Nearest integer-valued number, the even one of two equally near.

    Parameters
    ----------
    x : Tensor
        Numeric dtype, any shape.

    Returns
    -------
    Tensor
        The rounded value, same shape and dtype; integers are themselves.

    Raises
    ------
    TypeError
        If ``x`` is not a tensor.
    DTypeError
        If ``x`` is boolean.

    Notes
    -----
    The components of complex elements are rounded each by itself. Zeros, infinities and NaN
    are themselves.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.round(xp.asarray([0.5, 1.5, -2.5]))
    Tensor([ 0.,  2., -2.], dtype=float64, device=cpu)
    """
    return unary(ops.ROUND, x)


def signbit(x: Tensor, /) -> Tensor:
    """Whether the sign bit is set.

    Parameters
    ----------
    x : Tensor
        Real-valued floating-point dtype; integers and booleans are taken as the device's
        default one. Any shape.

    Returns
    -------
    Tensor
        Boolean tensor of the same shape.

    Raises
    ------
    TypeError
        If ``x`` is not a tensor.
    DTypeError
        If ``x`` is complex.

    Notes
    -----
    True for -0 and for NaN with a set sign bit.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.signbit(xp.asarray([-1.0, -0.0, 0.0]))
    Tensor([ True,  True, False], dtype=bool, device=cpu)
    """
    return unary(ops.SIGNBIT, x)


def trunc(x: Tensor, /) -> Tensor:
    """Nearest integer-valued number towards zero.

    Parameters
    ----------
    x : Tensor
        Real-valued dtype (booleans included), any shape.

    Returns
    -------
    Tensor
        The rounded value, same shape and dtype; integers and booleans are themselves.

    Raises
    ------
    TypeError
        If ``x`` is not a tensor.
    DTypeError
        If ``x`` is complex.

    Notes
    -----
    Zeros, infinities and NaN are themselves.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.trunc(xp.asarray([1.7, -1.7]))
    Tensor([ 1., -1.], dtype=float64, device=cpu)
    """
    return unary(ops.TRUNC, x)
