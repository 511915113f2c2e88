"""Elementwise comparisons."""

from __future__ import annotations

from numr.ir import ops
from numr.tensor.core import Tensor, call2

__all__ = [
    "equal",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "not_equal",
]


def equal(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """Whether two elements are equal, ``x1 == x2``.

    Parameters
    ----------
    x1, x2 : Tensor or number
        Any dtype.
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
        If the dtypes do not promote.
    ShapeError
        If the shapes do not broadcast.
    DeviceMismatch
        If the tensors are on different devices.

    Notes
    -----
    NaN equals nothing; the two zeros are equal. Complex elements are equal when both
    components are.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.equal(xp.asarray([1.0, 2.0]), 2)
    Tensor([False,  True], dtype=bool, device=cpu)
    """
    return call2(ops.EQUAL, x1, x2)


def greater(x1: Tensor | float, x2: Tensor | float, /) -> Tensor:
    """Whether ``x1 > x2``.

    Parameters
    ----------
    x1, x2 : Tensor or real number
        Real-valued dtype (booleans included).
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
        If the dtypes do not promote, or an operand is complex.
    ShapeError
        If the shapes do not broadcast.
    DeviceMismatch
        If the tensors are on different devices.

    Notes
    -----
    False beside NaN. Complex numbers have no order.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.greater(xp.asarray([1, 2, 3]), 2)
    Tensor([False, False,  True], dtype=bool, device=cpu)
    """
    return call2(ops.GREATER, x1, x2)


def greater_equal(x1: Tensor | float, x2: Tensor | float, /) -> Tensor:
    """Whether ``x1 >= x2``.

    Parameters
    ----------
    x1, x2 : Tensor or real number
        Real-valued dtype (booleans included).
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
        If the dtypes do not promote, or an operand is complex.
    ShapeError
        If the shapes do not broadcast.
    DeviceMismatch
        If the tensors are on different devices.

    Notes
    -----
    False beside NaN. Complex numbers have no order.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.greater_equal(xp.asarray([1, 2, 3]), 2)
    Tensor([False,  True,  True], dtype=bool, device=cpu)
    """
    return call2(ops.GREATER_EQUAL, x1, x2)


def less(x1: Tensor | float, x2: Tensor | float, /) -> Tensor:
    """Whether ``x1 < x2``.

    Parameters
    ----------
    x1, x2 : Tensor or real number
        Real-valued dtype (booleans included).
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
        If the dtypes do not promote, or an operand is complex.
    ShapeError
        If the shapes do not broadcast.
    DeviceMismatch
        If the tensors are on different devices.

    Notes
    -----
    False beside NaN. Complex numbers have no order.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.less(xp.asarray([1, 2, 3]), 2)
    Tensor([ True, False, False], dtype=bool, device=cpu)
    """
    return call2(ops.LESS, x1, x2)


def less_equal(x1: Tensor | float, x2: Tensor | float, /) -> Tensor:
    """Whether ``x1 <= x2``.

    Parameters
    ----------
    x1, x2 : Tensor or real number
        Real-valued dtype (booleans included).
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
        If the dtypes do not promote, or an operand is complex.
    ShapeError
        If the shapes do not broadcast.
    DeviceMismatch
        If the tensors are on different devices.

    Notes
    -----
    False beside NaN. Complex numbers have no order.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.less_equal(xp.asarray([1, 2, 3]), 2)
    Tensor([ True,  True, False], dtype=bool, device=cpu)
    """
    return call2(ops.LESS_EQUAL, x1, x2)


def not_equal(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """Whether two elements differ, ``x1 != x2``.

    Parameters
    ----------
    x1, x2 : Tensor or number
        Any dtype.
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
        If the dtypes do not promote.
    ShapeError
        If the shapes do not broadcast.
    DeviceMismatch
        If the tensors are on different devices.

    Notes
    -----
    NaN differs from everything, itself included.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.not_equal(xp.asarray([1.0, 2.0]), 2)
    Tensor([ True, False], dtype=bool, device=cpu)
    """
    return call2(ops.NOT_EQUAL, x1, x2)
