"""Cumulative functions of the standard, and the dtype that all sums and products are computed in."""

from __future__ import annotations

from numr import dtypes as dt
from numr.array_api._arguments import Tensor, requested_dtype, tensor
from numr.dtypes import DType
from numr.errors import DTypeError, ShapeError
from numr.ir.ops import Reduction
from numr.layout import normalize_axis
from numr.tensor import primitives as p

__all__ = ["cumulative_prod", "cumulative_sum"]


def cumulative_prod(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: DType | None = None,
    include_initial: bool = False,
) -> Tensor:
    """Products of all elements up to each one along an axis.

    Parameters
    ----------
    x : Tensor
        A numeric or boolean dtype; at least one axis.
    axis : int, optional
        The axis; may be left out where ``x`` has only one.
    dtype : dtype, optional
        The numeric dtype to compute in; the default is that of :func:`prod`.
    include_initial : bool, optional
        Whether the results start with the product of no elements, 1.

    Returns
    -------
    Tensor
        A new tensor of ``x``'s shape, one longer along the axis with ``include_initial``.

    Raises
    ------
    AxisError
        If the axis is out of range.
    DTypeError
        If ``dtype`` is not numeric, or real for a complex ``x``.
    ShapeError
        If no axis is given and ``x`` does not have exactly one.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> x = xp.asarray([2, 3, 4])
    >>> xp.cumulative_prod(x).tolist(), xp.cumulative_prod(x, include_initial=True).tolist()
    ([2, 6, 24], [1, 2, 6, 24])
    """
    return _accumulate("cumulative_prod", Reduction.PROD, x, axis, dtype, include_initial)


def cumulative_sum(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: DType | None = None,
    include_initial: bool = False,
) -> Tensor:
    """Sums of all elements up to each one along an axis.

    Parameters
    ----------
    x : Tensor
        A numeric or boolean dtype; at least one axis.
    axis : int, optional
        The axis; may be left out where ``x`` has only one.
    dtype : dtype, optional
        The numeric dtype to compute in; the default is that of :func:`sum`.
    include_initial : bool, optional
        Whether the results start with the sum of no elements, 0.

    Returns
    -------
    Tensor
        A new tensor of ``x``'s shape, one longer along the axis with ``include_initial``.

    Raises
    ------
    AxisError
        If the axis is out of range.
    DTypeError
        If ``dtype`` is not numeric, or real for a complex ``x``.
    ShapeError
        If no axis is given and ``x`` does not have exactly one.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.cumulative_sum(xp.asarray([[1, 2], [3, 4]]), axis=1).tolist()
    [[1, 3], [3, 7]]
    """
    return _accumulate("cumulative_sum", Reduction.SUM, x, axis, dtype, include_initial)


def _accumulate(
    function: str,
    kind: Reduction,
    x: Tensor,
    axis: int | None,
    dtype: DType | None,
    include_initial: bool,
) -> Tensor:
    x = tensor(function, x)
    if axis is None:
        if x.ndim != 1:
            raise ShapeError(
                f"{function}: x has shape {x.shape}; the axis may only be left out for one axis. "
                "Say which with axis=, or flatten first: reshape(x, (-1,))."
            )
        axis = 0
    axis = normalize_axis(axis, x.ndim, function)
    compute = accumulation_dtype(function, x, dtype)
    result = p.scan(kind, x, axis, compute)
    if not include_initial:
        return result
    initial = p.full(
        x._client, (*x.shape[:axis], 1, *x.shape[axis + 1 :]), int(kind is Reduction.PROD), compute
    )
    return p.concat((initial, result), axis)


def accumulation_dtype(function: str, x: Tensor, dtype: DType | None) -> DType:
    """The dtype that a sum or product of ``x`` is computed in, from its ``dtype=`` argument."""
    client = x._client
    if dtype is None:
        default = client.defaults.integral
        if x.dtype.kind in "fc" or (x.dtype.kind in "iu" and x.dtype.itemsize >= default.itemsize):
            return x.dtype
        return dt.as_dtype(f"u{default}", function) if x.dtype.kind == "u" else default
    asked = requested_dtype(function, dtype, client)
    if asked.kind == "b":
        raise DTypeError(
            f"{function}: dtype is bool; only numeric dtypes are allowed. Use any() or all() for "
            "logical questions, count_nonzero() to count."
        )
    if x.dtype.kind == "c" and asked.kind != "c":
        raise DTypeError(
            f"{function}: x has dtype {x.dtype} and cannot be computed in {asked}, which holds one "
            "component only. Take real(x), imag(x) or abs(x) first."
        )
    return asked
