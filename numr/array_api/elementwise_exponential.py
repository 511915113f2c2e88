"""Elementwise exponentials, logarithms, roots and ``hypot``."""

from __future__ import annotations

from numr.ir import ops
from numr.tensor.core import Tensor, call2, unary

__all__ = ["exp", "expm1", "hypot", "log", "log1p", "log2", "log10", "logaddexp", "sqrt"]


def exp(x: Tensor, /) -> Tensor:
    """Exponential, ``e ** x``.

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
    ``exp(-inf)`` is 0; complex ``-inf`` gives a zero whatever the imaginary part.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.exp(xp.asarray([0.0, 1.0, -float("inf")]))
    Tensor([1.        , 2.71828183, 0.        ], dtype=float64, device=cpu)
    """
    return unary(ops.EXP, x)


def expm1(x: Tensor, /) -> Tensor:
    """``exp(x) - 1``, accurate near zero.

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
    Keeps the sign of zero; ``-inf`` gives -1.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.expm1(xp.asarray([0.0, 1e-20]))
    Tensor([0.e+00, 1.e-20], dtype=float64, device=cpu)
    """
    return unary(ops.EXPM1, x)


def hypot(x1: Tensor | float, x2: Tensor | float, /) -> Tensor:
    """Length of the hypotenuse, ``sqrt(x1**2 + x2**2)``.

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
    Squares neither overflow nor underflow on the way. An infinite operand gives infinity,
    even beside NaN.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.hypot(xp.asarray([3.0, 5.0]), xp.asarray([4.0, 12.0]))
    Tensor([ 5., 13.], dtype=float64, device=cpu)
    """
    return call2(ops.HYPOT, x1, x2)


def log(x: Tensor, /) -> Tensor:
    """Natural logarithm.

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
    Real: zero gives ``-inf``, negative elements NaN. Complex: the imaginary part is in
    ``[-pi, pi]``, with the branch cut along the negative real axis, where the sign of the
    imaginary zero decides.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.log(xp.asarray([1.0, 10.0]))
    Tensor([0.        , 2.30258509], dtype=float64, device=cpu)
    >>> xp.log(xp.asarray([-1 + 0j]))
    Tensor([0.+3.14159265j], dtype=complex128, device=cpu)
    """
    return unary(ops.LOG, x)


def log10(x: Tensor, /) -> Tensor:
    """Logarithm to base 10.

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
    Special values and branch cut as for ``log``.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.log10(xp.asarray([1.0, 1000.0]))
    Tensor([0., 3.], dtype=float64, device=cpu)
    """
    return unary(ops.LOG10, x)


def log1p(x: Tensor, /) -> Tensor:
    """``log(1 + x)``, accurate near zero.

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
    Real: -1 gives ``-inf``, elements below NaN, and zero keeps its sign. The complex branch
    cut runs from -1 to the left.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.log1p(xp.asarray([0.0, 1e-20]))
    Tensor([0.e+00, 1.e-20], dtype=float64, device=cpu)
    """
    return unary(ops.LOG1P, x)


def log2(x: Tensor, /) -> Tensor:
    """Logarithm to base 2.

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
    Special values and branch cut as for ``log``.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.log2(xp.asarray([1.0, 8.0]))
    Tensor([0., 3.], dtype=float64, device=cpu)
    """
    return unary(ops.LOG2, x)


def logaddexp(x1: Tensor | float, x2: Tensor | float, /) -> Tensor:
    """``log(exp(x1) + exp(x2))`` without overflow.

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
    ``+inf`` beside anything but NaN gives ``+inf``; ``-inf`` beside ``x`` gives ``x``.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.logaddexp(xp.asarray([0.0, -float("inf")]), -float("inf"))
    Tensor([  0., -inf], dtype=float64, device=cpu)
    """
    return call2(ops.LOGADDEXP, x1, x2)


def sqrt(x: Tensor, /) -> Tensor:
    """Principal square root.

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
    Real: negative elements give NaN, and -0 itself. Complex: the root in the right
    half-plane, with the branch cut along the negative real axis, where the sign of the
    imaginary zero decides.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.sqrt(xp.asarray([4.0, 2.25]))
    Tensor([2. , 1.5], dtype=float64, device=cpu)
    >>> xp.sqrt(xp.asarray([-4 + 0j]))
    Tensor([0.+2.j], dtype=complex128, device=cpu)
    """
    return unary(ops.SQRT, x)
