"""Whether tensors are equal, exactly or nearly."""

from __future__ import annotations

from numr import dtypes as dt
from numr.array_api import _arguments as arg
from numr.array_api.elementwise_functions import abs, isfinite, isnan
from numr.array_api.searching_functions import where
from numr.ir.ops import Reduction
from numr.tensor import primitives as p
from numr.tensor.core import Tensor

__all__ = ["allclose", "array_equal", "isclose"]


def isclose(
    x1: Tensor | complex,
    x2: Tensor | complex,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> Tensor:
    """Whether elements are nearly equal: ``abs(x1 - x2) <= atol + rtol * abs(x2)``.

    Parameters
    ----------
    x1, x2 : Tensor, bool, int, float or complex
        Numeric or boolean; at least one is a tensor, shapes broadcast.
    rtol, atol : float
        Relative and absolute tolerance; the relative one is a fraction of ``x2``.
    equal_nan : bool, default False
        Whether NaN is close to NaN.

    Returns
    -------
    Tensor
        Boolean, of the broadcast shape. Infinities are close only to themselves.

    Raises
    ------
    DTypeError
        If the dtypes do not promote.
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.isclose(xp.asarray([1.0, 1.1]), 1.0 + 1e-9)
    Tensor([ True, False], dtype=bool, device=cpu)
    """
    return _isclose("isclose", x1, x2, rtol, atol, equal_nan)


def allclose(
    x1: Tensor | complex,
    x2: Tensor | complex,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> Tensor:
    """Whether all elements are nearly equal, as :func:`isclose` has it.

    Parameters
    ----------
    x1, x2 : Tensor, bool, int, float or complex
        Numeric or boolean; at least one is a tensor, shapes broadcast.
    rtol, atol : float
        Relative and absolute tolerance; the relative one is a fraction of ``x2``.
    equal_nan : bool, default False
        Whether NaN is close to NaN.

    Returns
    -------
    Tensor
        Boolean, without axes. It stays on its device until it is used as a Python bool.

    Raises
    ------
    DTypeError
        If the dtypes do not promote.
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> bool(xp.allclose(xp.asarray([1.0, 2.0]), xp.asarray([1.0, 2.0 + 1e-9])))
    True
    """
    return _all(_isclose("allclose", x1, x2, rtol, atol, equal_nan))


def array_equal(x1: Tensor, x2: Tensor, equal_nan: bool = False) -> Tensor:
    """Whether two tensors have the same shape and equal elements.

    Parameters
    ----------
    x1, x2 : Tensor
        Any dtypes that promote.
    equal_nan : bool, default False
        Whether NaN equals NaN.

    Returns
    -------
    Tensor
        Boolean, without axes. It stays on its device until it is used as a Python bool.

    Raises
    ------
    DTypeError
        If the dtypes do not promote.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> x = xp.asarray([1, 2])
    >>> bool(xp.array_equal(x, x)), bool(xp.array_equal(x, x[:1]))
    (True, False)
    """
    arg.tensors("array_equal", x1, x2)
    if x1.shape != x2.shape:
        return p.full(x1._client, (), False, dt.bool_)
    equal = x1 == x2
    return _all(_or_both_nan(equal, x1, x2) if equal_nan else equal)


def _isclose(
    function: str,
    x1: Tensor | complex,
    x2: Tensor | complex,
    rtol: float,
    atol: float,
    equal_nan: bool,
) -> Tensor:
    a, b = (arg.floating(function, x) for x in arg.promoted(function, x1, x2))
    finite = isfinite(a) & isfinite(b)
    # Infinities and NaN are compared exactly, and kept out of a subtraction that is not defined for them.
    distance = abs(where(finite, a, 0) - where(finite, b, 0))
    close = where(finite, distance <= abs(b) * float(rtol) + float(atol), a == b)
    return _or_both_nan(close, a, b) if equal_nan else close


def _or_both_nan(equal: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return equal | (isnan(a) & isnan(b))


def _all(x: Tensor) -> Tensor:
    return p.reduce(Reduction.ALL, x, tuple(range(x.ndim)), False)
