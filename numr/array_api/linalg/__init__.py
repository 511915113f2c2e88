"""The standard's ``linalg`` extension."""

from __future__ import annotations

from numr.array_api.linalg.decompositions import (
    cholesky,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    qr,
    svd,
    svdvals,
)
from numr.array_api.linalg.norms import matrix_norm, vector_norm
from numr.array_api.linalg.products import cross, diagonal, outer, trace
from numr.array_api.linalg.solving import (
    det,
    inv,
    matrix_power,
    matrix_rank,
    pinv,
    slogdet,
    solve,
)
from numr.array_api.linear_algebra_functions import matmul, matrix_transpose, tensordot, vecdot

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]
