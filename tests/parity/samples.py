"""Operands for the parity tests: the same in every run."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from numr import dtypes as dt

Array = np.ndarray[Any, Any]

#: Random operands for one operation and dtype, beside the edges.
COUNT = 120


def reals(dtype: np.dtype[Any], seed: int, count: int = COUNT) -> Array:
    """Finite, nonzero floats: a third over all exponents, subnormals included, the rest of moderate size or near one."""
    rng = np.random.default_rng(seed)
    bits = 8 * dtype.itemsize
    wide = rng.integers(0, 1 << bits, 2 * count, np.dtype(f"u{dtype.itemsize}")).view(dtype)
    wide = wide[np.isfinite(wide)][: count // 3]
    moderate = rng.uniform(-10, 10, count // 3).astype(dtype)
    near_one = (1 + rng.normal(0, 0.1, count - 2 * (count // 3))).astype(dtype)
    near_one *= rng.choice(np.asarray([-1, 1], dtype), near_one.size)
    values = np.concatenate([edges(dtype), wide, moderate, near_one])
    return values[values != 0]


def edges(dtype: np.dtype[Any]) -> Array:
    """Numbers at the ends of a float dtype's ranges and around one."""
    info = np.finfo(dtype)
    one = dtype.type(1)
    positive = [
        info.smallest_subnormal,
        info.smallest_normal - info.smallest_subnormal,
        info.smallest_normal,
        info.eps,
        one / 2,
        one - info.epsneg,
        one,
        one + info.eps,
        dtype.type(np.pi / 2),
        dtype.type(2),
        dtype.type(np.pi),
        one / info.eps,
        info.max / 2,
        info.max,
    ]
    return np.asarray([*positive, *(-x for x in positive)], dtype)


def complexes(dtype: np.dtype[Any], seed: int, count: int = COUNT) -> Array:
    """Finite complex numbers with nonzero components: of like and of very different sizes, near 1, -1, 1j and -1j."""
    real = dt.real_of(dtype)
    rng = np.random.default_rng(seed)
    wide = reals(real, seed, 2 * count)
    rng.shuffle(wide)
    part = count // 4
    components = [wide[: 2 * part].reshape(-1, 2)]
    components.append(rng.uniform(-10, 10, (part, 2)))
    components.append(10.0 ** rng.uniform(-20, 20, (part, 1)) * rng.normal(size=(part, 2)))
    # Near the points where the logarithm and the inverse functions cancel or branch.
    centre = rng.choice(np.asarray([(1, 0), (-1, 0), (0, 1), (0, -1)]), count - 3 * part)
    components.append(
        centre + 10.0 ** rng.uniform(-9, -1, (len(centre), 1)) * rng.normal(size=(len(centre), 2))
    )
    ends = edges(real)
    pairs = np.asarray(list(itertools.product(ends[::3], ends[1::4])))
    components.append(pairs)
    joined = np.concatenate([np.asarray(c, np.float64).astype(real) for c in components])
    return joined[(joined != 0).all(axis=1)].view(dtype)[:, 0]


def integers(dtype: np.dtype[Any], seed: int, count: int = COUNT) -> Array:
    """Integers of all sizes, the ends of the range and small numbers."""
    info = np.iinfo(dtype)
    rng = np.random.default_rng(seed)
    wide = rng.integers(info.min, info.max, count // 2, dtype, endpoint=True)
    # One size for each number of bits.
    wide >>= rng.integers(0, info.bits, wide.size).astype(dtype)
    small = rng.integers(max(info.min, -9), 10, count - wide.size).astype(dtype)
    ends = np.asarray([info.min, info.min + 1, 0, 1, 2, info.max - 1, info.max], dtype)
    return np.concatenate([ends, wide, small])


def booleans() -> Array:
    return np.asarray([False, True, True, False])


def operands(dtype: np.dtype[Any], arity: int, seed: int) -> tuple[Array, ...]:
    """Operands of one dtype and length; several meet in all combinations of a few elements too."""
    if dtype.kind == "b":
        return tuple(
            np.asarray(x) for x in zip(*itertools.product([False, True], repeat=arity), strict=True)
        )
    draw = {"f": reals, "c": complexes}.get(dtype.kind, integers)
    first = draw(dtype, seed)
    if arity == 1:
        return (first,)
    columns = [first]
    for i in range(1, arity):
        columns.append(draw(dtype, seed + i))
        np.random.default_rng(seed + i - 1).shuffle(columns[-1])
    size = min(map(len, columns))
    few = first[: 2 * (8 if arity == 2 else 4) : 2]
    grid = np.asarray(list(itertools.product(few, repeat=arity)), dtype)
    return tuple(np.concatenate([column[:size], grid[:, i]]) for i, column in enumerate(columns))
