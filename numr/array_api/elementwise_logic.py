"""Elementwise logical and bitwise functions."""

from __future__ import annotations

from numr.ir import ops
from numr.tensor.core import Tensor, call2, unary

__all__ = [
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
]


def bitwise_and(x1: Tensor | int, x2: Tensor | int, /) -> Tensor:
    """Bitwise AND, ``x1 & x2``.

    Parameters
    ----------
    x1, x2 : Tensor or int
        Integer or boolean dtype.
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
        If the dtypes do not promote, or an operand is floating-point.
    ShapeError
        If the shapes do not broadcast.
    DeviceMismatch
        If the tensors are on different devices.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.bitwise_and(xp.asarray([12, 10]), 6)
    Tensor([4, 2], dtype=int64, device=cpu)
    """
    return call2(ops.BITWISE_AND, x1, x2)


def bitwise_invert(x: Tensor, /) -> Tensor:
    """Complement of the bits, ``~x``; for booleans the negation.

    Parameters
    ----------
    x : Tensor
        Integer or boolean dtype, any shape.

    Returns
    -------
    Tensor
        Same shape and dtype.

    Raises
    ------
    TypeError
        If ``x`` is not a tensor.
    DTypeError
        If ``x`` is floating-point.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.bitwise_invert(xp.asarray([0, 5]))
    Tensor([-1, -6], dtype=int64, device=cpu)
    """
    return unary(ops.BITWISE_INVERT, x)


def bitwise_left_shift(x1: Tensor | int, x2: Tensor | int, /) -> Tensor:
    """Bits moved to the left, ``x1 << x2``.

    Parameters
    ----------
    x1, x2 : Tensor or int
        Integer dtype.
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
        If the dtypes do not promote, or an operand is boolean or floating-point.
    ShapeError
        If the shapes do not broadcast.
    DeviceMismatch
        If the tensors are on different devices.

    Notes
    -----
    A shift by the width of the dtype or more gives 0; a negative count does too.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.bitwise_left_shift(xp.asarray([1, 5]), 2)
    Tensor([ 4, 20], dtype=int64, device=cpu)
    """
    return call2(ops.BITWISE_LEFT_SHIFT, x1, x2)


def bitwise_or(x1: Tensor | int, x2: Tensor | int, /) -> Tensor:
    """Bitwise OR, ``x1 | x2``.

    Parameters
    ----------
    x1, x2 : Tensor or int
        Integer or boolean dtype.
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
        If the dtypes do not promote, or an operand is floating-point.
    ShapeError
        If the shapes do not broadcast.
    DeviceMismatch
        If the tensors are on different devices.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.bitwise_or(xp.asarray([12, 10]), 6)
    Tensor([14, 14], dtype=int64, device=cpu)
    """
    return call2(ops.BITWISE_OR, x1, x2)


def bitwise_right_shift(x1: Tensor | int, x2: Tensor | int, /) -> Tensor:
    """Bits moved to the right, ``x1 >> x2``, with the sign copied in.

    Parameters
    ----------
    x1, x2 : Tensor or int
        Integer dtype.
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
        If the dtypes do not promote, or an operand is boolean or floating-point.
    ShapeError
        If the shapes do not broadcast.
    DeviceMismatch
        If the tensors are on different devices.

    Notes
    -----
    A shift by the width of the dtype or more gives 0, and -1 for negative ``x1``; a negative
    count does too.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.bitwise_right_shift(xp.asarray([20, -20]), 2)
    Tensor([ 5, -5], dtype=int64, device=cpu)
    """
    return call2(ops.BITWISE_RIGHT_SHIFT, x1, x2)


def bitwise_xor(x1: Tensor | int, x2: Tensor | int, /) -> Tensor:
    """Bitwise exclusive OR, ``x1 ^ x2``.

    Parameters
    ----------
    x1, x2 : Tensor or int
        Integer or boolean dtype.
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
        If the dtypes do not promote, or an operand is floating-point.
    ShapeError
        If the shapes do not broadcast.
    DeviceMismatch
        If the tensors are on different devices.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.bitwise_xor(xp.asarray([12, 10]), 6)
    Tensor([10, 12], dtype=int64, device=cpu)
    """
    return call2(ops.BITWISE_XOR, x1, x2)


def logical_and(x1: Tensor | bool, x2: Tensor | bool, /) -> Tensor:
    """Logical AND.

    Parameters
    ----------
    x1, x2 : Tensor or bool
        Boolean dtype.
        At least one is a tensor; shapes broadcast.

    Returns
    -------
    Tensor
        Boolean tensor of the broadcast shape.

    Raises
    ------
    TypeError
        If an operand is neither a tensor nor a scalar, or neither is a tensor.
    DTypeError
        If an operand is not boolean.
    ShapeError
        If the shapes do not broadcast.
    DeviceMismatch
        If the tensors are on different devices.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.logical_and(xp.asarray([True, False]), True)
    Tensor([ True, False], dtype=bool, device=cpu)
    """
    return call2(ops.LOGICAL_AND, x1, x2)


def logical_not(x: Tensor, /) -> Tensor:
    """Logical NOT.

    Parameters
    ----------
    x : Tensor
        Boolean dtype, any shape.

    Returns
    -------
    Tensor
        Boolean tensor of the same shape.

    Raises
    ------
    TypeError
        If ``x`` is not a tensor.
    DTypeError
        If ``x`` is not boolean.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.logical_not(xp.asarray([True, False]))
    Tensor([False,  True], dtype=bool, device=cpu)
    """
    return unary(ops.LOGICAL_NOT, x)


def logical_or(x1: Tensor | bool, x2: Tensor | bool, /) -> Tensor:
    """Logical OR.

    Parameters
    ----------
    x1, x2 : Tensor or bool
        Boolean dtype.
        At least one is a tensor; shapes broadcast.

    Returns
    -------
    Tensor
        Boolean tensor of the broadcast shape.

    Raises
    ------
    TypeError
        If an operand is neither a tensor nor a scalar, or neither is a tensor.
    DTypeError
        If an operand is not boolean.
    ShapeError
        If the shapes do not broadcast.
    DeviceMismatch
        If the tensors are on different devices.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.logical_or(xp.asarray([True, False]), False)
    Tensor([ True, False], dtype=bool, device=cpu)
    """
    return call2(ops.LOGICAL_OR, x1, x2)


def logical_xor(x1: Tensor | bool, x2: Tensor | bool, /) -> Tensor:
    """Logical exclusive OR.

    Parameters
    ----------
    x1, x2 : Tensor or bool
        Boolean dtype.
        At least one is a tensor; shapes broadcast.

    Returns
    -------
    Tensor
        Boolean tensor of the broadcast shape.

    Raises
    ------
    TypeError
        If an operand is neither a tensor nor a scalar, or neither is a tensor.
    DTypeError
        If an operand is not boolean.
    ShapeError
        If the shapes do not broadcast.
    DeviceMismatch
        If the tensors are on different devices.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.logical_xor(xp.asarray([True, False]), True)
    Tensor([False,  True], dtype=bool, device=cpu)
    """
    return call2(ops.LOGICAL_XOR, x1, x2)
