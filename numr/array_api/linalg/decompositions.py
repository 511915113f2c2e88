"""Factorisations of matrices and their values: Cholesky, eigenvalues, QR, singular values."""

from __future__ import annotations

from typing import Literal, NamedTuple

from numr.array_api.linalg._matrices import factor, factorable, factors, square
from numr.array_api.linear_algebra_functions import matrix_transpose
from numr.tensor.core import Tensor

__all__ = ["cholesky", "eig", "eigh", "eigvals", "eigvalsh", "qr", "svd", "svdvals"]


class EigResult(NamedTuple):
    """What :func:`eig` gives."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class EighResult(NamedTuple):
    """What :func:`eigh` gives."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """What :func:`qr` gives."""

    Q: Tensor
    R: Tensor


class SVDResult(NamedTuple):
    """What :func:`svd` gives."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """Cholesky factors of Hermitian (symmetric) positive definite matrices.

    Parameters
    ----------
    x : Tensor
        Floating-point, of shape ``(..., M, M)``. Only the triangle of the kind that is asked for is read.
    upper : bool, default False
        Whether to give the upper factor ``U`` with ``x = U^H U`` instead of the lower ``L`` with
        ``x = L L^H``.

    Returns
    -------
    Tensor
        The factors, of the shape of ``x``; the other triangle is zero.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is not positive definite.
    ShapeError
        If the matrices are not square.
    DTypeError
        For float16.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.linalg.cholesky(xp.asarray([[4.0, 2.0], [2.0, 5.0]]))
    Tensor([[2., 0.],
            [1., 2.]], dtype=float64, device=cpu)
    """
    x = square("cholesky", x)
    if upper:
        # The transpose of a Hermitian matrix is its conjugate; transposing its lower factor conjugates once more.
        return matrix_transpose(factor("cholesky", "cholesky", matrix_transpose(x)))
    return factor("cholesky", "cholesky", x)


def eig(x: Tensor, /) -> EigResult:
    """Eigenvalues and eigenvectors of square matrices.

    Parameters
    ----------
    x : Tensor
        Floating-point, of shape ``(..., M, M)``.

    Returns
    -------
    eigenvalues : Tensor
        Of shape ``(..., M)``, in no particular order and in the complex dtype of the precision of ``x``.
    eigenvectors : Tensor
        Of shape ``(..., M, M)`` and the same dtype: column ``i`` belongs to eigenvalue ``i`` and has length 1.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the eigenvalues are not found, as for matrices with NaN.
    ShapeError
        If the matrices are not square.
    DTypeError
        For float16.

    See Also
    --------
    eigh : Quicker and more exact for Hermitian and symmetric matrices.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> values, vectors = xp.linalg.eig(xp.asarray([[0.0, -1.0], [1.0, 0.0]]))
    >>> xp.sort(xp.imag(values))
    Tensor([-1.,  1.], dtype=float64, device=cpu)
    """
    return EigResult(*factors("eig", "eig", square("eig", x)))


def eigvals(x: Tensor, /) -> Tensor:
    """Eigenvalues of square matrices.

    Parameters
    ----------
    x : Tensor
        Floating-point, of shape ``(..., M, M)``.

    Returns
    -------
    Tensor
        The eigenvalues, of shape ``(..., M)``, in no particular order and in the complex dtype of the
        precision of ``x``.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the eigenvalues are not found, as for matrices with NaN.
    ShapeError
        If the matrices are not square.
    DTypeError
        For float16.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.linalg.eigvals(xp.asarray([[2.0, 1.0], [0.0, 3.0]]))
    Tensor([2.+0.j, 3.+0.j], dtype=complex128, device=cpu)
    """
    return factor("eigvals", "eigvals", square("eigvals", x))


def eigh(x: Tensor, /) -> EighResult:
    """Eigenvalues and eigenvectors of Hermitian (symmetric) matrices.

    Parameters
    ----------
    x : Tensor
        Floating-point, of shape ``(..., M, M)``. Only the lower triangle is read.

    Returns
    -------
    eigenvalues : Tensor
        Of shape ``(..., M)``, ascending, in the real dtype of the precision of ``x``.
    eigenvectors : Tensor
        Of shape ``(..., M, M)`` and the dtype of ``x``: column ``i`` belongs to eigenvalue ``i``; the columns are
        orthonormal.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the eigenvalues are not found.
    ShapeError
        If the matrices are not square.
    DTypeError
        For float16.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.linalg.eigh(xp.asarray([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    Tensor([1., 2.], dtype=float64, device=cpu)
    """
    return EighResult(*factors("eigh", "eigh", square("eigh", x)))


def eigvalsh(x: Tensor, /) -> Tensor:
    """Eigenvalues of Hermitian (symmetric) matrices.

    Parameters
    ----------
    x : Tensor
        Floating-point, of shape ``(..., M, M)``. Only the lower triangle is read.

    Returns
    -------
    Tensor
        The eigenvalues, of shape ``(..., M)``, ascending, in the real dtype of the precision of ``x``.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the eigenvalues are not found.
    ShapeError
        If the matrices are not square.
    DTypeError
        For float16.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.linalg.eigvalsh(xp.asarray([[2.0, 0.0], [0.0, 1.0]]))
    Tensor([1., 2.], dtype=float64, device=cpu)
    """
    return factor("eigvalsh", "eigvalsh", square("eigvalsh", x))


def qr(x: Tensor, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """QR factorisation ``x = Q @ R``.

    Parameters
    ----------
    x : Tensor
        Floating-point, of shape ``(..., M, N)``.
    mode : {"reduced", "complete"}, default "reduced"
        Whether ``Q`` has the first ``K = min(M, N)`` columns or all ``M``.

    Returns
    -------
    Q : Tensor
        Orthonormal columns, of shape ``(..., M, K)`` or ``(..., M, M)``.
    R : Tensor
        Upper triangular, of shape ``(..., K, N)`` or ``(..., M, N)``; its diagonal is real and may be negative.

    Raises
    ------
    ValueError
        If ``mode`` is neither.
    ShapeError
        If ``x`` has fewer than two axes.
    DTypeError
        For float16.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> q, r = xp.linalg.qr(xp.asarray([[3.0], [4.0]]))
    >>> abs(r)
    Tensor([[5.]], dtype=float64, device=cpu)
    """
    x = factorable("qr", x)
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr: mode {mode!r} is unknown; it must be 'reduced' or 'complete'.")
    return QRResult(*factors("qr", "qr", x, mode == "complete"))


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    """Singular value decomposition ``x = (U * S[..., None, :]) @ Vh``, with reduced factors.

    Parameters
    ----------
    x : Tensor
        Floating-point, of shape ``(..., M, N)``; let ``K = min(M, N)``.
    full_matrices : bool, default True
        Whether ``U`` and ``Vh`` are square, or have ``K`` columns and ``K`` rows.

    Returns
    -------
    U : Tensor
        Orthonormal columns, of shape ``(..., M, M)`` or ``(..., M, K)``.
    S : Tensor
        Singular values, descending, of shape ``(..., K)``, in the real dtype of the precision of ``x``.
    Vh : Tensor
        Orthonormal rows, of shape ``(..., N, N)`` or ``(..., K, N)``.

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
    >>> xp.linalg.svd(xp.asarray([[0.0, 2.0], [1.0, 0.0]])).S
    Tensor([2., 1.], dtype=float64, device=cpu)
    """
    return SVDResult(*factors("svd", "svd", factorable("svd", x), bool(full_matrices)))


def svdvals(x: Tensor, /) -> Tensor:
    """Singular values of matrices.

    Parameters
    ----------
    x : Tensor
        Floating-point, of shape ``(..., M, N)``.

    Returns
    -------
    Tensor
        The singular values, descending, of shape ``(..., min(M, N))``, in the real dtype of the precision
        of ``x``.

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
    >>> xp.linalg.svdvals(xp.asarray([[0.0, 2.0], [1.0, 0.0]]))
    Tensor([2., 1.], dtype=float64, device=cpu)
    """
    return factor("svdvals", "svdvals", factorable("svdvals", x))
