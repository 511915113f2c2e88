"""Set functions of the standard.

All of them sort, so that equal elements become neighbours. Elements are equal where ``equal`` says so: each NaN is
an element of its own, and the two zeros are one.
"""

from __future__ import annotations

from typing import NamedTuple

from numr import dtypes as dt
from numr.array_api._arguments import Tensor, elementwise, promoted, tensor
from numr.ir import ops
from numr.ir.ops import Reduction
from numr.tensor import primitives as p

__all__ = ["isin", "unique_all", "unique_counts", "unique_inverse", "unique_values"]


class UniqueAll(NamedTuple):
    """What :func:`unique_all` returns."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """What :func:`unique_counts` returns."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """What :func:`unique_inverse` returns."""

    values: Tensor
    inverse_indices: Tensor


def isin(x1: Tensor | int, x2: Tensor | int, /, *, invert: bool = False) -> Tensor:
    """Whether each element of one tensor occurs in another.

    Parameters
    ----------
    x1 : Tensor or int
        The elements to look for.
    x2 : Tensor or int
        The elements to look among. At least one of the two is a tensor.
    invert : bool, optional
        Whether the question is put the other way round: does the element *not* occur.

    Returns
    -------
    Tensor
        The answers, as ``bool``, of ``x1``'s shape. NaN occurs nowhere.

    Raises
    ------
    TypeError
        If neither argument is a tensor.
    DTypeError
        If the dtypes do not promote.
    DeviceMismatch
        If the tensors are on different devices.

    Notes
    -----
    Beyond the standard, all dtypes and Python scalars of all kinds are accepted.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> x = xp.asarray([[1, 2], [3, 4]])
    >>> xp.isin(x, xp.asarray([4, 1, 7])).tolist()
    [[True, False], [False, True]]
    >>> xp.isin(x, 2, invert=True).tolist()
    [[True, False], [True, True]]
    """
    if isinstance(x1, Tensor) and isinstance(x2, Tensor):
        result = _isin(*promoted("isin", x1, x2))
    else:
        for x in (x1, x2):
            if dt.scalar_type_of(x) is None:
                tensor("isin", x)
        if not isinstance(x2, Tensor):
            tensor("isin", x1)  # one of them must be
        # Compared with a scalar, which need not fit the tensor's dtype: 300 is in no tensor of uint8.
        result = elementwise(ops.EQUAL, x1, x2)
        if not isinstance(x1, Tensor):
            result = p.reduce(Reduction.ANY, result, tuple(range(result.ndim)), keepdims=False)
    return elementwise(ops.LOGICAL_NOT, result) if invert else result


def _isin(x1: Tensor, x2: Tensor) -> Tensor:
    if not x2.size:
        return p.full(x1._client, x1.shape, False, dt.bool_)
    known = p.reshape(x2, (x2.size,))
    if x1.dtype.kind == "c":
        return _isin_by_group(x1, known)
    known = p.sort(known, 0, descending=False)
    position = p.searchsorted(known, x1, "left")
    # A value above all others gets the position behind the last.
    position = elementwise(ops.MINIMUM, position, x2.size - 1)
    return elementwise(ops.EQUAL, p.gather(known, (position,)), x1)


def _isin_by_group(x1: Tensor, known: Tensor) -> Tensor:
    # Complex numbers have no order to search by, but they can be grouped.
    asked = p.reshape(x1, (x1.size,))
    groups = _Groups(p.concat((known, asked), 0)).of_elements()
    present = p.full(x1._client, (groups.size,), False, dt.bool_)
    yes = p.full(x1._client, (), True, dt.bool_)
    p.scatter(present, (groups[: known.size],), yes)
    return p.reshape(p.gather(present, (groups[known.size :],)), x1.shape)


def unique_all(x: Tensor, /) -> UniqueAll:
    """The distinct elements, where each occurs first, which one each element is, and how often each occurs.

    Parameters
    ----------
    x : Tensor
        Any dtype and shape; taken as if it had one axis.

    Returns
    -------
    values : Tensor
        The distinct elements, ascending, NaN last; complex numbers by their real, then imaginary parts.
    indices : Tensor
        Position of the first occurrence of each in the flattened ``x``.
    inverse_indices : Tensor
        Position in ``values`` of each element, of ``x``'s shape.
    counts : Tensor
        How often each occurs.

    Notes
    -----
    The shapes depend on the values, so the call waits for the device. Each NaN is distinct, and so is each
    complex number with a NaN component; the two zeros are equal, and the one that occurs first is returned.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> result = xp.unique_all(xp.asarray([3, 1, 3]))
    >>> result.values.tolist(), result.indices.tolist()
    ([1, 3], [1, 0])
    >>> result.inverse_indices.tolist(), result.counts.tolist()
    ([1, 0, 1], [1, 2])
    """
    groups = _Groups(_flat("unique_all", x))
    (starts,) = p.nonzero(groups.is_first)
    return UniqueAll(
        values=p.gather(groups.sorted, (starts,)),
        indices=p.gather(groups.order, (starts,)),
        inverse_indices=p.reshape(groups.of_elements(), x.shape),
        counts=_counts(starts, x.size),
    )


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The distinct elements, and how often each occurs.

    Parameters
    ----------
    x : Tensor
        Any dtype and shape; taken as if it had one axis.

    Returns
    -------
    values : Tensor
        The distinct elements, ascending, NaN last; complex numbers by their real, then imaginary parts.
    counts : Tensor
        How often each occurs.

    Notes
    -----
    See :func:`unique_all`.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> values, counts = xp.unique_counts(xp.asarray([3, 1, 3]))
    >>> values.tolist(), counts.tolist()
    ([1, 3], [1, 2])
    """
    ordered = _sorted(_flat("unique_counts", x))
    (starts,) = p.nonzero(_is_first(ordered))
    return UniqueCounts(p.gather(ordered, (starts,)), _counts(starts, x.size))


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The distinct elements, and which one each element is.

    Parameters
    ----------
    x : Tensor
        Any dtype and shape; taken as if it had one axis.

    Returns
    -------
    values : Tensor
        The distinct elements, ascending, NaN last; complex numbers by their real, then imaginary parts.
    inverse_indices : Tensor
        Position in ``values`` of each element, of ``x``'s shape.

    Notes
    -----
    See :func:`unique_all`.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> values, inverse_indices = xp.unique_inverse(xp.asarray([3, 1, 3]))
    >>> values.tolist(), inverse_indices.tolist()
    ([1, 3], [1, 0, 1])
    """
    groups = _Groups(_flat("unique_inverse", x))
    return UniqueInverse(
        p.compress(groups.sorted, groups.is_first), p.reshape(groups.of_elements(), x.shape)
    )


def unique_values(x: Tensor, /) -> Tensor:
    """The distinct elements.

    Parameters
    ----------
    x : Tensor
        Any dtype and shape; taken as if it had one axis.

    Returns
    -------
    Tensor
        The distinct elements, ascending, NaN last; complex numbers by their real, then imaginary parts.

    Notes
    -----
    See :func:`unique_all`.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> xp.unique_values(xp.asarray([3, 1, 3])).tolist()
    [1, 3]
    """
    ordered = _sorted(_flat("unique_values", x))
    return p.compress(ordered, _is_first(ordered))


class _Groups:
    """The elements of a one-dimensional tensor, grouped by equality.

    Attributes
    ----------
    order : Tensor
        Positions that sort the elements; equal ones keep their order.
    sorted : Tensor
        The elements in that order.
    is_first : Tensor
        Whether each sorted element is the first of its group.
    """

    def __init__(self, x: Tensor) -> None:
        self.order = _sorting_order(x)
        self.sorted = p.gather(x, (self.order,))
        self.is_first = _is_first(self.sorted)

    def of_elements(self) -> Tensor:
        """The number of each element's group, for the elements in their own order."""
        numbers = p.scan(Reduction.SUM, self.is_first, 0, self.order.dtype)
        result = p.empty(self.order._client, self.order.shape, self.order.dtype)
        p.scatter(result, (self.order,), elementwise(ops.SUBTRACT, numbers, 1))
        return result


def _flat(function: str, x: Tensor) -> Tensor:
    return p.reshape(tensor(function, x), (x.size,))


def _sorted(x: Tensor) -> Tensor:
    if x.dtype.kind == "c":
        return p.gather(x, (_sorting_order(x),))
    return p.sort(x, 0, descending=False)


def _sorting_order(x: Tensor) -> Tensor:
    """Positions that bring equal elements together, stably."""
    if x.dtype.kind != "c":
        return p.argsort(x, 0, descending=False)
    # By the imaginary parts first: sorting stably by the real parts then keeps that order within equal ones.
    by_imaginary = p.argsort(elementwise(ops.IMAG, x), 0, descending=False)
    real = p.gather(elementwise(ops.REAL, x), (by_imaginary,))
    return p.gather(by_imaginary, (p.argsort(real, 0, descending=False),))


def _is_first(ordered: Tensor) -> Tensor:
    """Whether each element differs from the one before it; NaN differs from everything."""
    first = p.full(ordered._client, (min(ordered.size, 1),), True, dt.bool_)
    return p.concat((first, elementwise(ops.NOT_EQUAL, ordered[1:], ordered[:-1])), 0)


def _counts(starts: Tensor, size: int) -> Tensor:
    """Lengths of the groups that start at the given positions of ``size`` sorted elements."""
    end = p.full(starts._client, (min(starts.size, 1),), size, starts.dtype)
    return elementwise(ops.SUBTRACT, p.concat((starts[1:], end), 0), starts)
