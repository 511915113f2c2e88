"""Checks and calls that the functions on matrices share."""

from __future__ import annotations

from typing import Any

import numpy as np

from numr.array_api import _arguments as arg
from numr.dtypes import float16
from numr.errors import DTypeError, LinAlgError, ShapeError
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


def factor(function: str, family: str, *operands: Tensor) -> Tensor:
    """The one result of a linear-algebra family, for a function of the standard."""
    result: Tensor = _factorise(function, family, operands)
    return result


def factors(function: str, family: str, *operands: Tensor | bool) -> tuple[Tensor, ...]:
    """The results of a linear-algebra family, for a function of the standard."""
    results: tuple[Tensor, ...] = _factorise(function, family, operands)
    return results


def _factorise(function: str, family: str, operands: tuple[Tensor | bool, ...]) -> Any:
    try:
        return p.factorise(family, *operands)
    except np.linalg.LinAlgError as error:
        matrices = [x for x in operands if isinstance(x, Tensor)]
        shapes = " and ".join(str(x.shape) for x in matrices)
        raise LinAlgError(
            f"{function}: shape {shapes}, dtype {matrices[0].dtype}: {str(error).rstrip('.')}. "
            + _WAYS_OUT.get(function, "Look for NaN and infinities with isfinite().")
        ) from None


_WAYS_OUT = {
    "cholesky": "Add to the diagonal, or use eigh() for matrices that are not positive definite.",
    "inv": "Use pinv(), or add to the diagonal.",
    "matrix_power": "A singular matrix has no negative powers; add to the diagonal.",
    "solve": "Use pinv(x1) @ x2 for the least-squares solution, or add to the diagonal of x1.",
}

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
