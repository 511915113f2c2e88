"""Elementwise trigonometric and hyperbolic functions and their inverses, in radians."""

from __future__ import annotations

from numr.ir import ops
from numr.tensor.core import Tensor, call2, unary

__all__ = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cos",
    "cosh",
    "sin",
    "sinh",
    "tan",
    "tanh",
]


def acos(x: Tensor, /) -> Tensor:
    """Inverse cosine.

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
    Real: in ``[0, pi]``, NaN outside ``[-1, 1]``. Complex: branch cuts on the real axis
    beyond -1 and 1.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.acos(xp.asarray([1.0, 0.0]))
    Tensor([0.        , 1.57079633], dtype=float64, device=cpu)
    """
    return unary(ops.ACOS, x)


def acosh(x: Tensor, /) -> Tensor:
    """Inverse hyperbolic cosine.

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
    Real: not negative, NaN below 1. Complex: branch cut on the real axis below 1; the real
    part is not negative.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.acosh(xp.asarray([1.0, float("inf")]))
    Tensor([ 0., inf], dtype=float64, device=cpu)
    """
    return unary(ops.ACOSH, x)


def asin(x: Tensor, /) -> Tensor:
    """Inverse sine.

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
    Real: in ``[-pi/2, pi/2]``, NaN outside ``[-1, 1]``; zero keeps its sign. Complex: branch
    cuts on the real axis beyond -1 and 1.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.asin(xp.asarray([0.0, 1.0]))
    Tensor([0.        , 1.57079633], dtype=float64, device=cpu)
    """
    return unary(ops.ASIN, x)


def asinh(x: Tensor, /) -> Tensor:
    """Inverse hyperbolic sine.

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
    Zero and infinities keep their sign. Complex: branch cuts on the imaginary axis beyond -1j
    and 1j.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.asinh(xp.asarray([0.0, float("inf")]))
    Tensor([ 0., inf], dtype=float64, device=cpu)
    """
    return unary(ops.ASINH, x)


def atan(x: Tensor, /) -> Tensor:
    """Inverse tangent.

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
    Real: in ``[-pi/2, pi/2]``, which the infinities reach; zero keeps its sign. Complex:
    branch cuts on the imaginary axis beyond -1j and 1j.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.atan(xp.asarray([0.0, 1.0]))
    Tensor([0.        , 0.78539816], dtype=float64, device=cpu)
    """
    return unary(ops.ATAN, x)


def atan2(x1: Tensor | float, x2: Tensor | float, /) -> Tensor:
    """Angle of the point with ordinate ``x1`` and abscissa ``x2``, in ``[-pi, pi]``.

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
    Signed zeros and infinities select the quadrant: ``atan2(-0.0, -1.0)`` is -pi,
    ``atan2(inf, inf)`` is pi/4.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.atan2(xp.asarray([0.0, 1.0, -0.0]), xp.asarray([1.0, 0.0, -1.0]))
    Tensor([ 0.        ,  1.57079633, -3.14159265], dtype=float64, device=cpu)
    """
    return call2(ops.ATAN2, x1, x2)


def atanh(x: Tensor, /) -> Tensor:
    """Inverse hyperbolic tangent.

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
    Real: -1 and 1 give infinities, NaN outside ``[-1, 1]``; zero keeps its sign. Complex:
    branch cuts on the real axis beyond -1 and 1.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.atanh(xp.asarray([0.0, 0.5]))
    Tensor([0.        , 0.54930614], dtype=float64, device=cpu)
    """
    return unary(ops.ATANH, x)


def cos(x: Tensor, /) -> Tensor:
    """Cosine.

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
    Real infinities give NaN.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.cos(xp.asarray([0.0, 3.141592653589793]))
    Tensor([ 1., -1.], dtype=float64, device=cpu)
    """
    return unary(ops.COS, x)


def cosh(x: Tensor, /) -> Tensor:
    """Hyperbolic cosine.

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
    Real infinities give ``+inf``.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.cosh(xp.asarray([0.0, -float("inf")]))
    Tensor([ 1., inf], dtype=float64, device=cpu)
    """
    return unary(ops.COSH, x)


def sin(x: Tensor, /) -> Tensor:
    """Sine.

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
    Zero keeps its sign; real infinities give NaN.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.sin(xp.asarray([0.0, 1.5707963267948966]))
    Tensor([0., 1.], dtype=float64, device=cpu)
    """
    return unary(ops.SIN, x)


def sinh(x: Tensor, /) -> Tensor:
    """Hyperbolic sine.

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
    Zero and real infinities are their own results.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.sinh(xp.asarray([0.0, -float("inf")]))
    Tensor([  0., -inf], dtype=float64, device=cpu)
    """
    return unary(ops.SINH, x)


def tan(x: Tensor, /) -> Tensor:
    """Tangent.

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
    Zero keeps its sign; real infinities give NaN. No element is exactly at a pole.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.tan(xp.asarray([0.0, -0.0]))
    Tensor([ 0., -0.], dtype=float64, device=cpu)
    """
    return unary(ops.TAN, x)


def tanh(x: Tensor, /) -> Tensor:
    """Hyperbolic tangent.

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
    Zero keeps its sign; real infinities give -1 and 1.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.tanh(xp.asarray([0.0, float("inf")]))
    Tensor([0., 1.], dtype=float64, device=cpu)
    """
    return unary(ops.TANH, x)
