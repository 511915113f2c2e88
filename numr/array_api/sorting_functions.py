"""Sorting functions of the standard."""

from __future__ import annotations

from numr.array_api._arguments import Tensor, in_domain, tensor
from numr.layout import normalize_axis
from numr.tensor import primitives as p

__all__ = ["argsort", "sort"]


def argsort(
    x: Tensor,
    /,
    *,
    axis: int = -1,
    descending: bool = False,
    stable: bool = True,
) -> Tensor:
    """Positions that sort a tensor along an axis.

    Parameters
    ----------
    x : Tensor
        A real-valued dtype; at least one axis.
    axis : int, optional
        The axis to sort along; by default the last.
    descending : bool, optional
        Whether the largest value comes first.
    stable : bool, optional
        Accepted for the standard's sake: equal values keep their order in any case.

    Returns
    -------
    Tensor
        A new tensor of positions along the axis, of ``x``'s shape and the index dtype.

    Raises
    ------
    AxisError
        If the axis is out of range.
    DTypeError
        If ``x`` is complex.

    Notes
    -----
    NaN comes last in both directions; the two zeros are equal.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> x = xp.asarray([2, 3, 1, 3])
    >>> xp.argsort(x).tolist(), xp.argsort(x, descending=True).tolist()
    ([2, 0, 1, 3], [1, 3, 0, 2])
    """
    x = in_domain("argsort", tensor("argsort", x), "real-valued")
    return p.argsort(x, normalize_axis(axis, x.ndim, "argsort"), bool(descending))


def sort(
    x: Tensor,
    /,
    *,
    axis: int = -1,
    descending: bool = False,
    stable: bool = True,
) -> Tensor:
    """A tensor sorted along an axis.

    Parameters
    ----------
    x : Tensor
        A real-valued dtype; at least one axis.
    axis : int, optional
        The axis to sort along; by default the last.
    descending : bool, optional
        Whether the largest value comes first.
    stable : bool, optional
        Accepted for the standard's sake: equal values keep their order in any case.

    Returns
    -------
    Tensor
        A new tensor of ``x``'s dtype and shape.

    Raises
    ------
    AxisError
        If the axis is out of range.
    DTypeError
        If ``x`` is complex.

    Notes
    -----
    NaN comes last in both directions; the two zeros are equal.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.sort(xp.asarray([[2, 3, 1], [5, 4, 6]])).tolist()
    [[1, 2, 3], [4, 5, 6]]
    """
    x = in_domain("sort", tensor("sort", x), "real-valued")
    return p.sort(x, normalize_axis(axis, x.ndim, "sort"), bool(descending))
