"""Checks and calls that the functions on matrices share."""

from __future__ import annotations

from numr.array_api import _arguments as arg
from numr.dtypes import float16
from numr.errors import DTypeError, ShapeError
from numr.tensor import primitives as p
from numr.tensor.core import Tensor


def matrices(function: str, x: Tensor) -> Tensor:
    """``x`` if it is a matrix or a stack of them."""
    if arg.tensor(function, x).ndim < 2:
        raise ShapeError(
            f"{function}: got shape {x.shape}; a matrix (..., M, N) has at least two axes. Insert one with "
            "expand_dims() first."
        )
    return x


def factorable(function: str, x: Tensor) -> Tensor:
    """Matrices in a dtype that the factorisations compute in."""
    return factorable_dtype(function, matrices(function, x))


def square(function: str, x: Tensor) -> Tensor:
    """Square matrices in a dtype that the factorisations compute in."""
    x = factorable(function, x)
    if x.shape[-1] != x.shape[-2]:
        raise ShapeError(
            f"{function}: got shape {x.shape}; the last two axes must be of equal length, as only square "
            f"matrices have {_SQUARE_RESULTS.get(function, 'this result')}."
        )
    return x


def factorable_dtype(function: str, x: Tensor) -> Tensor:
    """``x`` as floating-point, unless that is float16."""
    x = arg.floating(function, x)
    if x.dtype == float16:
        raise DTypeError(
            f"{function}: got dtype float16; matrices are factorised in float32, float64, complex64 or "
            "complex128. Convert them with astype(x, float32) first."
        )
    return x


def factor(family: str, *operands: Tensor) -> Tensor:
    """The one result of a linear-algebra family."""
    result: Tensor = p.factorise(family, *operands)
    return result


def factors(family: str, *operands: Tensor | bool) -> tuple[Tensor, ...]:
    """The results of a linear-algebra family."""
    results: tuple[Tensor, ...] = p.factorise(family, *operands)
    return results


_SQUARE_RESULTS = {
    "cholesky": "Cholesky factors",
    "det": "a determinant",
    "eig": "eigenvalues; svd() takes any matrix",
    "eigh": "eigenvalues; svd() takes any matrix",
    "eigvals": "eigenvalues; svdvals() takes any matrix",
    "eigvalsh": "eigenvalues; svdvals() takes any matrix",
    "inv": "an inverse; pinv() takes any matrix",
    "matrix_power": "powers",
    "slogdet": "a determinant",
    "solve": "a unique solution; pinv(x1) @ x2 gives the least-squares solution",
}
