"""``einsum``: sums of products, written in Einstein's notation."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import NamedTuple

from numr.array_api import _arguments as arg
from numr.errors import ShapeError
from numr.ir import ops
from numr.ir.ops import Reduction
from numr.tensor import primitives as p
from numr.tensor.core import Tensor, elementwise

__all__ = ["einsum"]


def einsum(subscripts: str, /, *operands: Tensor) -> Tensor:
    """Sum of products over labelled axes.

    Parameters
    ----------
    subscripts : str
        One letter for each axis, operands apart by commas; after ``->`` the letters of the result. Letters that
        do not reach the result are summed over. Without ``->`` the result has the letters that occur once, in
        alphabetical order. ``...`` stands for further axes, which broadcast and come first without ``->``.
    *operands : Tensor
        Numeric, one for each group of letters. Lengths of one letter are equal or 1.

    Returns
    -------
    Tensor
        The sums, in the dtype that the operands promote to. A single operand whose axes are only rearranged
        gives a view.

    Raises
    ------
    ValueError
        If the subscripts are malformed or do not fit the number of operands.
    ShapeError
        If they do not fit the operands' shapes.
    DTypeError
        If the dtypes do not promote to a numeric one.

    Notes
    -----
    Operands are multiplied two at a time, each time the pair whose product is smallest, as products of matrices.

    Examples
    --------
    >>> import numr.cpu as xp
    >>> a = xp.asarray([[1, 2], [3, 4]])
    >>> xp.einsum("ij,jk->ik", a, a)
    Tensor([[ 7, 10],
            [15, 22]], dtype=int64, device=cpu)
    >>> xp.einsum("ii", a)
    Tensor(5, dtype=int64, device=cpu)
    """
    if not isinstance(subscripts, str):
        raise TypeError(
            f"einsum: the first argument is {type(subscripts).__name__}; it must be a string such as "
            "'ij,jk->ik'."
        )
    if not operands:
        raise ValueError(f"einsum: got {subscripts!r} without operands; at least one is needed.")
    numeric = arg.promoted("einsum", *arg.tensors("einsum", *operands))
    arg.in_domain("einsum", numeric[0], "numeric")
    inputs, output = _labels(subscripts, [x.ndim for x in numeric])
    terms = [_diagonal(subscripts, x, labels) for x, labels in zip(numeric, inputs, strict=True)]
    lengths = _lengths(subscripts, terms)
    terms = [_without_stretched(term, lengths) for term in terms]
    while len(terms) > 1:
        i, j = _smallest_pair(terms, output, lengths)
        right, left = terms.pop(j), terms.pop(i)
        terms.append(_product(left, right, _needed(terms, output), lengths))
    result = _summed(terms[0], set(output))
    return p.permute(result.x, tuple(result.labels.index(label) for label in output))


class _Term(NamedTuple):
    """A tensor and the label of each of its axes; axes under ``...`` are labelled from the last one on."""

    x: Tensor
    labels: tuple[str, ...]


def _labels(subscripts: str, ndims: list[int]) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """The labels of each operand's axes, and of the result's."""
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    groups = left.split(",")
    if len(groups) != len(ndims):
        raise ValueError(
            f"einsum: {subscripts!r} has {len(groups)} groups of letters for {len(ndims)} operands; each operand "
            "needs one."
        )
    inputs = [_expanded(subscripts, group, ndim) for group, ndim in zip(groups, ndims, strict=True)]
    counts = Counter(itertools.chain(*inputs))
    dots = tuple(
        sorted((label for label in counts if len(label) > 1), key=_from_back, reverse=True)
    )
    if not arrow:
        once = (label for label, count in counts.items() if count == 1 and len(label) == 1)
        return inputs, dots + tuple(sorted(once))
    output = _expanded(subscripts, right, len(right.replace("...", "")) + len(dots))
    unknown = [label for label in output if label not in counts]
    if unknown or len(set(output)) != len(output):
        raise ValueError(
            f"einsum: the result {right!r} of {subscripts!r} must name letters of the operands, each once."
        )
    return inputs, output


def _expanded(subscripts: str, group: str, ndim: int) -> tuple[str, ...]:
    """One group of letters as labels of ``ndim`` axes."""
    before, dots, after = group.partition("...")
    letters = before + after
    if letters and not (letters.isascii() and letters.isalpha()):
        raise ValueError(
            f"einsum: {group!r} in {subscripts!r} is malformed; it may hold letters and one '...'."
        )
    hidden = ndim - len(letters)
    if hidden < 0 or (hidden and not dots):
        raise ShapeError(
            f"einsum: {group!r} in {subscripts!r} has {len(letters)} letters for {ndim} axes; each axis needs "
            "one, or '...' for the rest."
        )
    return (*before, *(f"...{i}" for i in reversed(range(hidden))), *after)


def _from_back(label: str) -> int:
    return int(label.removeprefix("..."))


def _diagonal(subscripts: str, x: Tensor, labels: tuple[str, ...]) -> _Term:
    """The term of an operand, with the diagonal taken over axes of the same label."""
    while len(set(labels)) != len(labels):
        label = next(label for label in labels if labels.count(label) > 1)
        first = labels.index(label)
        second = labels.index(label, first + 1)
        if x.shape[first] != x.shape[second]:
            raise ShapeError(
                f"einsum: {label!r} in {subscripts!r} names axes of lengths {x.shape[first]} and "
                f"{x.shape[second]} of one operand; they must be equal."
            )
        x = p.diagonal(x, 0, first, second)
        rest = (label for axis, label in enumerate(labels) if axis not in (first, second))
        labels = (*rest, label)
    return _Term(x, labels)


def _lengths(subscripts: str, terms: list[_Term]) -> dict[str, int]:
    """The length that the axes of each label broadcast to."""
    lengths: dict[str, int] = {}
    for term in terms:
        for label, length in zip(term.labels, term.x.shape, strict=True):
            known = lengths.get(label, 1)
            if 1 not in (known, length) and known != length:
                raise ShapeError(
                    f"einsum: {label!r} in {subscripts!r} names axes of lengths {known} and {length}; they must "
                    "be equal or 1."
                )
            lengths[label] = length if known == 1 else known
    return lengths


def _without_stretched(term: _Term, lengths: dict[str, int]) -> _Term:
    """The term without axes of length 1 that broadcast to another: a product does not need them."""
    stretched = [lengths[label] != n for label, n in zip(term.labels, term.x.shape, strict=True)]
    if not any(stretched):
        return term
    key = tuple(0 if drop else slice(None) for drop in stretched)
    labels = (label for label, drop in zip(term.labels, stretched, strict=True) if not drop)
    return _Term(term.x[key], tuple(labels))


def _needed(terms: list[_Term], output: tuple[str, ...]) -> set[str]:
    """The labels that the result or a term still asks for."""
    return set(output).union(*(term.labels for term in terms))


def _smallest_pair(
    terms: list[_Term], output: tuple[str, ...], lengths: dict[str, int]
) -> tuple[int, int]:
    """The pair of terms whose product has the fewest elements, and of these the one with the least work."""

    def cost(pair: tuple[int, int]) -> tuple[int, int]:
        rest = [term for i, term in enumerate(terms) if i not in pair]
        labels = {*terms[pair[0]].labels, *terms[pair[1]].labels}
        kept = labels & _needed(rest, output)
        return (
            math.prod(lengths[label] for label in kept),
            math.prod(lengths[label] for label in labels),
        )

    return min(itertools.combinations(range(len(terms)), 2), key=cost)


def _summed(term: _Term, keep: set[str]) -> _Term:
    """The term summed over all labels but some."""
    axes = tuple(axis for axis, label in enumerate(term.labels) if label not in keep)
    if not axes:
        return term
    x = p.reduce(Reduction.SUM, term.x, axes, False)
    return _Term(x, tuple(label for label in term.labels if label in keep))


def _product(left: _Term, right: _Term, needed: set[str], lengths: dict[str, int]) -> _Term:
    """The product of two terms, summed over the labels that nothing else needs."""
    left = _summed(left, needed.union(right.labels))
    right = _summed(right, needed.union(left.labels))
    shared = [label for label in left.labels if label in right.labels]
    batch = [label for label in shared if label in needed]
    inner = [label for label in shared if label not in needed]
    rows = [label for label in left.labels if label not in shared]
    columns = [label for label in right.labels if label not in shared]

    def arranged(term: _Term, labels: list[str], *groups: list[str]) -> Tensor:
        order = tuple(term.labels.index(label) for label in labels)
        shape = [lengths[label] for label in batch]
        shape += [math.prod(lengths[label] for label in group) for group in groups]
        return p.reshape(p.permute(term.x, order), tuple(shape))

    labels = (*batch, *rows, *columns)
    if inner:
        x = p.matmul(
            arranged(left, batch + rows + inner, rows, inner),
            arranged(right, batch + inner + columns, inner, columns),
        )
    else:
        # Nothing is summed: multiply() is exact where a product of matrices adds to zero.
        x = elementwise(
            ops.MULTIPLY,
            arranged(left, batch + rows, rows, []),
            arranged(right, batch + columns, [], columns),
        )
    return _Term(p.reshape(x, tuple(lengths[label] for label in labels)), labels)
