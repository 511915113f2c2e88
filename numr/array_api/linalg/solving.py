"""Determinants, inverses, powers, rank and systems of equations."""

from __future__ import annotations

import operator
from typing import NamedTuple

from numr.array_api import _arguments as arg
from numr.array_api.linalg._matrices import (
    factor,
    factorable,
    factorable_dtype,
    factors,
    square,
)
from numr.array_api.linear_algebra_functions import matrix_transpose
from numr.dtypes import finfo_of
from numr.errors import ShapeError
from numr.ir import ops
from numr.ir.ops import Reduction
from numr.layout import broadcast_shapes
from numr.tensor import primitives as p
from numr.tensor.core import Tensor, elementwise

__all__ = ["det", "inv", "matrix_power", "matrix_rank", "pinv", "slogdet", "solve"]


class SlogdetResult(NamedTuple):
    """What :func:`slogdet` gives."""

    sign: Tensor
    logabsdet: Tensor


def det(x: Tensor, /) -> Tensor:
    """Determinants of square matrices.

    Parameters
    ----------
    x : Tensor
        Floating-point, of shape ``(..., M, M)``.

    Returns
    -------
    Tensor
        The determinants, of shape ``(...)`` and the dtype of ``x``; 1 for matrices without elements.

    Raises
    ------
    ShapeError
        If the matrices are not square.
    DTypeError
        For float16.

    See Also
    --------
    slogdet : For determinants that overflow or underflow.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.linalg.det(xp.asarray([[2.0, 1.0], [0.0, 3.0]]))
    Tensor(6., dtype=float64, device=cpu)
    """
    return factor("det", "det", square("det", x))


def slogdet(x: Tensor, /) -> SlogdetResult:
    """Sign and logarithm of the absolute value of determinants.

    Parameters
    ----------
    x : Tensor
        Floating-point, of shape ``(..., M, M)``.

    Returns
    -------
    sign : Tensor
        -1, 0 or 1, or a complex number of modulus 1 (or 0), of shape ``(...)`` and the dtype of ``x``.
    logabsdet : Tensor
        Of the same shape and the real dtype of the precision of ``x``; minus infinity where the determinant
        is 0.

    Raises
    ------
    ShapeError
        If the matrices are not square.
    DTypeError
        For float16.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> sign, logabsdet = xp.linalg.slogdet(xp.asarray([[0.0, 1.0], [1.0, 0.0]]))
    >>> sign, logabsdet
    (Tensor(-1., dtype=float64, device=cpu), Tensor(0., dtype=float64, device=cpu))
    """
    return SlogdetResult(*factors("slogdet", "slogdet", square("slogdet", x)))


def inv(x: Tensor, /) -> Tensor:
    """Inverses of square matrices.

    Parameters
    ----------
    x : Tensor
        Floating-point, of shape ``(..., M, M)``.

    Returns
    -------
    Tensor
        The inverses, of the shape of ``x``.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is singular.
    ShapeError
        If the matrices are not square.
    DTypeError
        For float16.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.linalg.inv(xp.asarray([[2.0, 0.0], [0.0, 4.0]]))
    Tensor([[0.5 , 0.  ],
            [0.  , 0.25]], dtype=float64, device=cpu)
    """
    return factor("inv", "inv", square("inv", x))


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """Integer powers of square matrices.

    Parameters
    ----------
    x : Tensor
        Floating-point, of shape ``(..., M, M)``.
    n : int
        The exponent; a negative one raises the inverse, 0 gives identity matrices.

    Returns
    -------
    Tensor
        The powers, of the shape of ``x``.

    Raises
    ------
    numpy.linalg.LinAlgError
        If ``n`` is negative and a matrix is singular.
    ShapeError
        If the matrices are not square.
    DTypeError
        For float16.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.linalg.matrix_power(xp.asarray([[1.0, 1.0], [0.0, 1.0]]), 5)
    Tensor([[1., 5.],
            [0., 1.]], dtype=float64, device=cpu)
    """
    x = square("matrix_power", x)
    try:
        exponent = operator.index(n)
    except TypeError:
        raise TypeError(f"matrix_power: the exponent is {n!r}; it must be an integer.") from None
    if exponent == 0:
        return _identities(x)
    if exponent < 0:
        x = factor("matrix_power", "inv", x)
        exponent = -exponent
    result = None
    while True:
        if exponent & 1:
            result = x if result is None else p.matmul(result, x)
        exponent >>= 1
        if not exponent:
            break
        x = p.matmul(x, x)
    assert result is not None, "a positive exponent has a highest bit"
    return p.copy(result) if n == 1 else result


def matrix_rank(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """Rank of matrices: how many singular values are not negligible.

    Parameters
    ----------
    x : Tensor
        Floating-point, of shape ``(..., M, N)``.
    rtol : float or Tensor, optional
        Singular values up to this fraction of the matrix's largest count as zero. A real-valued tensor
        broadcasts against ``(...)``. Default: ``max(M, N)`` times the machine epsilon of the dtype of ``x``.

    Returns
    -------
    Tensor
        The ranks, of shape ``(...)`` and the default integer dtype.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the singular values are not found, as for matrices with NaN.
    ShapeError
        If ``x`` has fewer than two axes.
    DTypeError
        For float16.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.linalg.matrix_rank(xp.asarray([[1.0, 2.0], [2.0, 4.0]]))
    Tensor(1, dtype=int64, device=cpu)
    """
    x = factorable("matrix_rank", x)
    large = _significant("matrix_rank", x, factor("matrix_rank", "svdvals", x), rtol)
    return p.reduce(Reduction.SUM, large, (large.ndim - 1,), False, x._client.defaults.integral)


def pinv(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """Moore-Penrose pseudo-inverses of matrices.

    Parameters
    ----------
    x : Tensor
        Floating-point, of shape ``(..., M, N)``.
    rtol : float or Tensor, optional
        Singular values up to this fraction of the matrix's largest count as zero. A real-valued tensor
        broadcasts against ``(...)``. Default: ``max(M, N)`` times the machine epsilon of the dtype of ``x``.

    Returns
    -------
    Tensor
        The pseudo-inverses, of shape ``(..., N, M)``.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the singular values are not found, as for matrices with NaN.
    ShapeError
        If ``x`` has fewer than two axes.
    DTypeError
        For float16.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.linalg.pinv(xp.asarray([[2.0, 0.0], [0.0, 0.0], [0.0, 4.0]]))
    Tensor([[0.5 , 0.  , 0.  ],
            [0.  , 0.  , 0.25]], dtype=float64, device=cpu)
    """
    x = factorable("pinv", x)
    u, s, vh = factors("pinv", "svd", x, False)
    large = _significant("pinv", x, s, rtol)
    # Negligible values are replaced before the division, so that nothing is divided by zero.
    inverse = elementwise(ops.DIVIDE, 1, elementwise(ops.SELECT, large, s, 1))
    inverse = elementwise(ops.SELECT, large, inverse, 0)
    scaled = elementwise(ops.MULTIPLY, _adjoint(vh), inverse[..., None, :])
    return p.matmul(scaled, _adjoint(u))


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Solution of ``x1 @ x = x2`` for square matrices.

    Parameters
    ----------
    x1 : Tensor
        Floating-point, of shape ``(..., M, M)``.
    x2 : Tensor
        Floating-point: one vector of shape ``(M,)``, or matrices of shape ``(..., M, K)`` whose columns are
        right-hand sides. Only a tensor with exactly one axis is a vector.

    Returns
    -------
    Tensor
        The solutions, of shape ``(..., M)`` for a vector and ``(..., M, K)`` for matrices, in the
        floating-point dtype that the arguments promote to.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is singular.
    ShapeError
        If the matrices are not square, or the shapes do not fit.
    DTypeError
        For float16.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> a = xp.asarray([[2.0, 0.0], [0.0, 4.0]])
    >>> xp.linalg.solve(a, xp.asarray([1.0, 1.0]))
    Tensor([0.5 , 0.25], dtype=float64, device=cpu)
    """
    left, right = arg.promoted("solve", *arg.tensors("solve", x1, x2))
    left, right = square("solve", left), factorable_dtype("solve", right)
    vector = right.ndim == 1
    length = left.shape[-1]
    if not right.ndim or right.shape[-1 if vector else -2] != length:
        raise ShapeError(
            f"solve: shapes {left.shape} and {right.shape} do not fit: the right-hand sides must have shape "
            f"({length},) or (..., {length}, K)."
            + (
                " Only one axis makes a vector; write a stack of vectors as x2[..., None]."
                if right.ndim > 1 and right.shape[-1] == length
                else ""
            )
        )
    if vector:
        return factor("solve", "solve", left, right[:, None])[..., 0]
    broadcast_shapes(left.shape[:-2], right.shape[:-2], function="solve")
    return factor("solve", "solve", left, right)


def _significant(function: str, x: Tensor, s: Tensor, rtol: float | Tensor | None) -> Tensor:
    """Which of the singular values ``s`` of ``x`` are larger than the tolerance."""
    if rtol is None:
        rtol = max(x.shape[-2:]) * finfo_of(x.dtype).eps
    elif isinstance(rtol, Tensor):
        arg.in_domain(function, rtol, "real-valued floating-point")
        rtol = rtol[..., None]
    # Descending, so the first is the largest; of an empty matrix there is none, and nothing to compare.
    return elementwise(ops.GREATER, s, elementwise(ops.MULTIPLY, s[..., :1], rtol))


def _adjoint(x: Tensor) -> Tensor:
    if x.dtype.kind == "c":
        x = elementwise(ops.CONJ, x)
    return matrix_transpose(x)


def _identities(x: Tensor) -> Tensor:
    index = p.iota(x._client, x.shape[-1], x._client.defaults.indexing)
    one = elementwise(ops.EQUAL, index[:, None], index)
    return p.copy(p.broadcast(p.cast(one, x.dtype), x.shape))
