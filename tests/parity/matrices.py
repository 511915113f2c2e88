"""Matrices for the tests of linear algebra, and how the results are measured."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from mpmath import mp

from tests.parity import bounds
from tests.parity.support import Array, numbers

#: Square matrices, in stacks or not, down to none at all.
SQUARES = [(1, 1), (2, 2), (5, 5), (3, 4, 4), (2, 3, 3, 3), (0, 0), (2, 0, 0), (0, 3, 3), (24, 24)]
RECTANGLES = [
    (3, 5),
    (5, 3),
    (4, 4),
    (1, 4),
    (4, 1),
    (2, 3, 5),
    (0, 3),
    (3, 0),
    (0, 0),
    (2, 0, 3),
    (0, 3, 2),
]


def wide(x: Any) -> Array:
    """A tensor's or an array's elements in the widest precision of the host."""
    host = x if isinstance(x, np.ndarray) else x.to_numpy()
    return host.astype(np.clongdouble if host.dtype.kind == "c" else np.longdouble)


def adjoint(x: Array) -> Array:
    return np.conjugate(np.swapaxes(x, -1, -2))


def size(x: Array) -> Array:
    """Euclidean norms of matrices."""
    return np.sqrt(np.sum(np.abs(x) ** 2, axis=(-2, -1)))


def assert_small(
    function: str, dtype: np.dtype[Any], residual: Array, scale: Any, note: Any = ""
) -> None:
    """The norm of a residual is within the bound, relative to ``scale``."""
    length = max(residual.shape[-2:], default=1)
    error, bound = size(residual), bounds.allowed(function, dtype, length) * np.asarray(scale)
    assert (error <= bound).all(), f"{function} {note}: {np.max(error / bound):.3g} times the bound"


def assert_orthonormal(function: str, dtype: np.dtype[Any], columns: Array) -> None:
    n = columns.shape[-1]
    assert_small(function, dtype, adjoint(columns) @ columns - np.eye(n), math.sqrt(max(n, 1)))


def invertible(dtype: np.dtype[Any], shape: tuple[int, ...], seed: int = 0) -> Array:
    """Matrices of moderate condition."""
    return numbers(dtype, shape, seed) + np.asarray(4 * np.eye(shape[-1]), dtype)


def definite(dtype: np.dtype[Any], shape: tuple[int, ...], seed: int = 0) -> Array:
    """Hermitian positive definite matrices, exactly Hermitian."""
    x = numbers(dtype, shape, seed)
    product = x @ adjoint(x) + np.eye(shape[-1])
    return np.asarray((product + adjoint(product)) / 2, dtype)


def condition(x: Array) -> Array:
    if not x.size:
        return np.ones(x.shape[:-2])
    return np.linalg.cond(x.astype(np.complex128))


def exact_determinant(matrix: list[list[Any]]) -> Any:
    """By elimination with rational numbers; complex ones as pairs of them."""
    rows = [[Rational.of(v) for v in row] for row in matrix]
    result = Rational(Fraction(1))
    for i in range(len(rows)):
        pivot = next((r for r in range(i, len(rows)) if rows[r][i]), None)
        if pivot is None:
            return mp.mpf(0)
        if pivot != i:
            rows[i], rows[pivot] = rows[pivot], rows[i]
            result = result * Rational(Fraction(-1))
        result = result * rows[i][i]
        for r in range(i + 1, len(rows)):
            factor = rows[r][i] / rows[i][i]
            rows[r] = [v - factor * w for v, w in zip(rows[r], rows[i], strict=True)]
    return result.to_mp()


class Rational:
    """A complex number with rational components."""

    def __init__(self, real: Fraction, imag: Fraction = Fraction(0)) -> None:
        self.real, self.imag = real, imag

    @classmethod
    def of(cls, value: complex) -> Rational:
        return cls(Fraction(value.real), Fraction(value.imag))

    def __bool__(self) -> bool:
        return bool(self.real or self.imag)

    def __sub__(self, other: Rational) -> Rational:
        return Rational(self.real - other.real, self.imag - other.imag)

    def __mul__(self, other: Rational) -> Rational:
        return Rational(
            self.real * other.real - self.imag * other.imag,
            self.real * other.imag + self.imag * other.real,
        )

    def __truediv__(self, other: Rational) -> Rational:
        square = other.real**2 + other.imag**2
        product = self * Rational(other.real, -other.imag)
        return Rational(product.real / square, product.imag / square)

    def to_mp(self) -> Any:
        real, imag = (mp.mpf(p.numerator) / p.denominator for p in (self.real, self.imag))
        return mp.mpc(real, imag) if imag else real
