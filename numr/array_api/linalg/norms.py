"""Norms of vectors and matrices."""

from __future__ import annotations

import math
from typing import Literal

from numr.array_api import _arguments as arg
from numr.array_api.linalg._matrices import factor, factorable_dtype, matrices
from numr.dtypes import real_of, scalar_type_of
from numr.errors import ShapeError
from numr.ir import ops
from numr.ir.ops import Reduction
from numr.tensor import primitives as p
from numr.tensor.core import Tensor, elementwise

__all__ = ["matrix_norm", "vector_norm"]


def matrix_norm(
    x: Tensor,
    /,
    *,
    keepdims: bool = False,
    ord: float | Literal["fro", "nuc"] | None = "fro",
) -> Tensor:
    """Norms of matrices.

    Parameters
    ----------
    x : Tensor
        Floating-point, of shape ``(..., M, N)``.
    keepdims : bool, default False
        Whether the last two axes stay, with length 1.
    ord : {"fro", "nuc", 1, -1, 2, -2, inf, -inf}, default "fro"
        ``"fro"`` (or None): root of the sum of squares; ``"nuc"``: sum of the singular values; 2 and -2:
        largest and smallest singular value; 1 and -1: largest and smallest column sum of absolute values;
        ``inf`` and ``-inf``: the same of rows.

    Returns
    -------
    Tensor
        The norms, of shape ``(...)`` (or ``(..., 1, 1)``), in the real dtype of the precision of ``x``. Norms of
        matrices without elements are 0.

    Raises
    ------
    ValueError
        If ``ord`` is none of these.
    numpy.linalg.LinAlgError
        If singular values are needed and not found, as for matrices with NaN.
    ShapeError
        If ``x`` has fewer than two axes, or the smallest of no values is asked for.
    DTypeError
        For float16 where singular values are needed.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> x = xp.asarray([[3.0, 0.0], [4.0, 0.0]])
    >>> xp.linalg.matrix_norm(x), xp.linalg.matrix_norm(x, ord=1)
    (Tensor(5., dtype=float64, device=cpu), Tensor(7., dtype=float64, device=cpu))
    """
    x = arg.floating("matrix_norm", matrices("matrix_norm", x))
    rows, columns = x.ndim - 2, x.ndim - 1
    if ord is None or ord == "fro":
        return _euclidean(x, (rows, columns), keepdims)
    if ord in ("nuc", 2, -2):
        values = factor("matrix_norm", "svdvals", factorable_dtype("matrix_norm", x))
        if ord == "nuc":
            norm = p.reduce(Reduction.SUM, values, (rows,), False)
        else:
            norm = _extreme("matrix_norm", values, (rows,), False, largest=ord == 2)
        return norm[..., None, None] if keepdims else norm
    if ord in (1, -1, math.inf, -math.inf):
        summed, other = (rows, columns) if abs(ord) == 1 else (columns, rows)
        sums = p.reduce(Reduction.SUM, elementwise(ops.ABS, x), (summed,), True)
        norm = _extreme("matrix_norm", sums, (other,), True, largest=ord > 0)
        return norm if keepdims else norm[..., 0, 0]
    raise ValueError(
        f"matrix_norm: ord {ord!r} is unknown; it must be 'fro', 'nuc', 1, -1, 2, -2, inf or -inf. The other "
        "orders are norms of vectors: vector_norm(x, axis=(-2, -1), ord=ord)."
    )


def vector_norm(
    x: Tensor,
    /,
    *,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
    ord: float = 2,
) -> Tensor:
    """Norms of vectors.

    Parameters
    ----------
    x : Tensor
        Floating-point.
    axis : int or tuple of int, optional
        The axes that make up a vector. Default: all.
    keepdims : bool, default False
        Whether these axes stay, with length 1.
    ord : int or float, default 2
        The order ``p`` of ``sum(abs(x)**p)**(1/p)``; ``inf`` and ``-inf`` give the largest and smallest
        absolute value, 0 the number of elements that are not zero.

    Returns
    -------
    Tensor
        The norms, in the real dtype of the precision of ``x``. Norms of positive order of no elements are 0.

    Raises
    ------
    TypeError
        If ``ord`` is not a real number.
    AxisError
        If an axis is out of range or named twice.
    ShapeError
        If the smallest of no elements is asked for.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.linalg.vector_norm(xp.asarray([[3.0, 4.0], [0.0, 1.0]]), axis=1)
    Tensor([5., 1.], dtype=float64, device=cpu)
    """
    x = arg.floating("vector_norm", arg.tensor("vector_norm", x))
    axes = arg.reduced_axes("vector_norm", x, axis)
    if scalar_type_of(ord) not in (int, float):
        raise TypeError(
            f"vector_norm: ord {ord!r} is not a real number; use matrix_norm for 'fro' and 'nuc'."
        )
    if ord == 2:
        return _euclidean(x, axes, keepdims)
    if ord == 0:
        nonzero = elementwise(ops.NOT_EQUAL, x, 0)
        return p.reduce(Reduction.SUM, nonzero, axes, keepdims, real_of(x.dtype))
    size = elementwise(ops.ABS, x)
    if math.isinf(ord):
        return _extreme("vector_norm", size, axes, keepdims, largest=ord > 0)
    if ord == 1:
        return p.reduce(Reduction.SUM, size, axes, keepdims)
    powers = elementwise(ops.POW, size, float(ord))
    return elementwise(ops.POW, p.reduce(Reduction.SUM, powers, axes, keepdims), 1 / ord)


def _euclidean(x: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    if x.dtype.kind == "c":
        real, imag = elementwise(ops.REAL, x), elementwise(ops.IMAG, x)
        squares = elementwise(
            ops.ADD, elementwise(ops.MULTIPLY, real, real), elementwise(ops.MULTIPLY, imag, imag)
        )
    else:
        squares = elementwise(ops.MULTIPLY, x, x)
    return elementwise(ops.SQRT, p.reduce(Reduction.SUM, squares, axes, keepdims))


def _extreme(
    function: str, sizes: Tensor, axes: tuple[int, ...], keepdims: bool, *, largest: bool
) -> Tensor:
    """Largest or smallest of values that are not negative; the largest of none is 0."""
    if any(sizes.shape[axis] == 0 for axis in axes):
        if not largest:
            raise ShapeError(
                f"{function}: the smallest of no values is not defined: the axes that the norm reduces have "
                "length 0. Norms of positive order are 0 there."
            )
        return p.reduce(Reduction.SUM, sizes, axes, keepdims)
    return p.reduce(Reduction.MAX if largest else Reduction.MIN, sizes, axes, keepdims)
