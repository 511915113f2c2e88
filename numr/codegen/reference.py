"""Evaluation of expressions over NumPy: the meaning of every node, for tests and for constants."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np

from numr.codegen.expr import Expr, Scalar, by_fma, topological

__all__ = ["DTYPES", "evaluate"]

Array = np.ndarray[Any, Any]

#: The NumPy dtype of each scalar type.
DTYPES: Final[dict[str, np.dtype[Any]]] = {
    "f16": np.dtype("float16"),
    "f32": np.dtype("float32"),
    "f64": np.dtype("float64"),
    "i32": np.dtype("int32"),
    "u32": np.dtype("uint32"),
    "i64": np.dtype("int64"),
    "u64": np.dtype("uint64"),
    "bool": np.dtype("bool"),
}


def evaluate(roots: Sequence[Expr], values: Mapping[str, Any], *, fma: bool = False) -> list[Array]:
    """The values of expressions.

    Parameters
    ----------
    roots : sequence of Expr
        What to evaluate; nodes that they share are evaluated once.
    values : mapping of str to array_like
        An array for each variable, of the dtype that belongs to the variable's type. They broadcast.
    fma : bool, optional
        As devices with :func:`~numr.codegen.expr.fma` compute them.

    Returns
    -------
    list of ndarray
        One array for each root.

    Raises
    ------
    TypeError
        If an array's dtype is not its variable's.

    Examples
    --------
    >>> from numr.codegen.expr import F32, var
    >>> x = var("x", F32)
    >>> evaluate([x * x + 1.0], {"x": np.float32([1, 2])})
    [array([2., 5.], dtype=float32)]
    """
    roots = by_fma(roots) if fma else roots
    order = list(topological(roots))
    uses = Counter(arg for node in order for arg in node.args)
    uses.update(roots)
    results: dict[Expr, Any] = {}
    with np.errstate(all="ignore"):
        for node in order:
            results[node] = _value(node, [results[arg] for arg in node.args], values)
            for arg in node.args:
                uses[arg] -= 1
                if not uses[arg]:
                    results.pop(arg, None)
    return [np.asarray(results[root]) for root in roots]


def _value(node: Expr, args: list[Any], values: Mapping[str, Any]) -> Any:
    dtype = DTYPES[node.type.name]
    if node.op == "const":
        assert isinstance(node.value, int)
        if dtype.kind == "b":
            return np.bool_(node.value)
        return np.asarray([node.value], f"u{dtype.itemsize}").view(dtype)[0]
    if node.op == "var":
        array = np.asarray(values[str(node.value)])
        if array.dtype != dtype:
            raise TypeError(f"the variable {node.value} is {node.type}, its array {array.dtype}")
        return array
    if node.op == "bitcast":
        return np.asarray(args[0]).view(dtype)
    if node.op == "cast":
        return _cast(args[0], node.type)
    return np.asarray(_OPERATIONS[node.op](*args)).astype(dtype, copy=False)


def _cast(value: Any, type: Scalar) -> Any:
    return np.asarray(value).astype(DTYPES[type.name])


def _shift(function: Callable[..., Any]) -> Callable[..., Any]:
    def shift(value: Any, count: Any) -> Any:
        dtype = np.asarray(value).dtype
        count = np.asarray(count).astype(dtype) & dtype.type(8 * dtype.itemsize - 1)
        return function(value, count)

    return shift


def _divided(function: Callable[..., Any]) -> Callable[..., Any]:
    # NumPy's truncating pair: fmod, and the quotient of what is left without it. Both are 0 for a zero divisor.
    def divided(first: Any, second: Any) -> Any:
        return np.where(second == 0, np.zeros_like(first), function(first, second))

    return divided


def _quotient(first: Any, second: Any) -> Any:
    return (first - np.fmod(first, second)) // second


def _division(first: Any, second: Any) -> Any:
    return np.true_divide(first, second)


def _invert(value: Any) -> Any:
    return np.invert(value)


def _fma(first: Any, second: Any, term: Any) -> Any:
    dtype = np.asarray(first).dtype
    if dtype == np.float32:
        # The product is exact. Where the sum is not, its last bit is made odd, so that it rounds as the exact sum does.
        product = first.astype(np.float64) * second
        total, rest = _two_sum(product, np.asarray(term, np.float64))
        return _to_odd(total, rest).astype(np.float32)
    product = first * second
    plain = product + term
    upper, lower = _two_product(first, second, product)
    low, lowest = _two_sum(term, lower)
    high, rest = _two_sum(upper, low)
    result = high + _to_odd(*_two_sum(lowest, rest))
    # Beyond these sizes the parts may be out of range.
    sizes = np.abs(np.broadcast_arrays(first, second, product, term))
    moderate = ((sizes > 2.0**-400) & (sizes < 2.0**400)).all(axis=0)
    finite = np.isfinite(first) & np.isfinite(second)
    plain = np.where(finite & np.isinf(term), term, plain)
    result = np.where(moderate, result, plain)
    rare = ~moderate & finite & np.isfinite(term) & (first != 0) & (second != 0)
    for place in np.argwhere(rare):
        at = tuple(place)
        values = (
            Fraction(float(np.broadcast_to(x, plain.shape)[at])) for x in (first, second, term)
        )
        exact = next(values) * next(values) + next(values)
        if exact:
            result[at] = _nearest(exact)
    return result


def _nearest(exact: Fraction) -> float:
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _two_sum(first: Any, second: Any) -> tuple[Any, Any]:
    total = first + second
    other = total - first
    return total, (first - (total - other)) + (second - other)


def _two_product(first: Any, second: Any, product: Any) -> tuple[Any, Any]:
    def halves(x: Any) -> tuple[Any, Any]:
        shifted = x * 134217729.0
        upper = shifted - (shifted - x)
        return upper, x - upper

    (a, b), (c, d) = halves(first), halves(second)
    return product, ((a * c - product) + a * d + b * c) + b * d


def _to_odd(total: Any, rest: Any) -> Any:
    """A sum and what rounding left of it, rounded such that the last bit is odd unless it is exact."""
    bits = np.asarray(total).view(np.int64)
    inexact = np.isfinite(total) & (rest != 0) & (bits & 1 == 0)
    away = (rest > 0) == (total > 0)
    return np.where(inexact, bits + np.where(away, 1, -1), bits).view(np.float64)


_OPERATIONS: Final[dict[str, Callable[..., Any]]] = {
    "abs": np.abs,
    "add": np.add,
    "and": np.bitwise_and,
    "ceil": np.ceil,
    "div": _division,
    "eq": np.equal,
    "floor": np.floor,
    "fma": _fma,
    "ge": np.greater_equal,
    "gt": np.greater,
    "le": np.less_equal,
    "lt": np.less,
    "mul": np.multiply,
    "ne": np.not_equal,
    "neg": np.negative,
    "not": _invert,
    "or": np.bitwise_or,
    "quot": _divided(_quotient),
    "rarely": np.where,
    "rem": _divided(np.fmod),
    "rint": np.rint,
    "select": np.where,
    "shl": _shift(np.left_shift),
    "shr": _shift(np.right_shift),
    "sqrt": np.sqrt,
    "sub": np.subtract,
    "trunc": np.trunc,
    "xor": np.bitwise_xor,
}
