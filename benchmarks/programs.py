"""Programs that are captured, jitted and compiled: one function each over an array namespace, the same for all libraries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from benchmarks import peers

__all__ = [
    "CHAIN",
    "FEW",
    "FURTHER",
    "LAUNCHED",
    "LAYER_NORM",
    "MEAN_AND_VARIANCE",
    "NORMS",
    "SHORT",
    "SOFTMAX",
    "SUM_OF_EXP",
    "Program",
    "operands",
]

#: Elements of short programs.
FEW: Final = 4096
#: What layer norm adds to a variance.
_EPSILON: Final = 1e-5
#: Pairs of operations.
_PAIRS: Final = 50

#: Makes the function of a program from a namespace.
Maker = Callable[[Any], Callable[..., Any]]


@dataclass(frozen=True, slots=True)
class Program:
    """A function of arrays, in the words of the array API standard and, where it has better ones, of a peer."""

    name: str
    of: Maker
    #: Names of its arguments, one letter each: ``a b c x`` are vectors, ``m`` is a matrix.
    arguments: str
    #: How many elements have to be read and written at least for one of an argument; 0 where memory is no matter.
    moved: float
    in_torch: Maker | None = None
    in_numexpr: str | None = None

    def for_library(self, library: peers.Library) -> Callable[..., Any]:
        """The function in a library's words."""
        maker = self.in_torch if library.name == "torch" and self.in_torch else self.of
        return maker(library.xp)

    @property
    def call(self) -> str:
        """The arguments of a call, as a statement has them."""
        return f"({', '.join(self.arguments)})"


def _chain(xp: Any) -> Callable[..., Any]:
    return lambda a, b, c: xp.exp(-((a - b) ** 2) / (2 * c)) * xp.sqrt(c) + xp.sin(a)


def _sum_of_exp(xp: Any) -> Callable[..., Any]:
    return lambda a: xp.sum(xp.exp(a))


def _softmax(xp: Any) -> Callable[..., Any]:
    def softmax(m: Any) -> Any:
        e = xp.exp(m - xp.max(m, axis=-1, keepdims=True))
        return e / xp.sum(e, axis=-1, keepdims=True)

    return softmax


def _layer_norm(xp: Any) -> Callable[..., Any]:
    def layer_norm(m: Any) -> Any:
        d = m - xp.mean(m, axis=-1, keepdims=True)
        return d / xp.sqrt(xp.mean(d * d, axis=-1, keepdims=True) + _EPSILON)

    return layer_norm


def _layer_norm_of_torch(torch: Any) -> Callable[..., Any]:
    norm = torch.nn.functional.layer_norm
    return lambda m: norm(m, m.shape[-1:], eps=_EPSILON)


def _mean_and_variance(xp: Any) -> Callable[..., Any]:
    return lambda m: (xp.mean(m, axis=-1), xp.var(m, axis=-1))


def _mean_and_variance_of_torch(torch: Any) -> Callable[..., Any]:
    return lambda m: torch.var_mean(m, dim=-1, correction=0)[::-1]


def _short(xp: Any) -> Callable[..., Any]:
    def short(x: Any) -> Any:
        for _ in range(_PAIRS):
            x = x * 1.01 + 0.5
        return xp.sin(x)

    return short


def _scans(add_up: str) -> Maker:
    def maker(xp: Any) -> Callable[..., Any]:
        scan = getattr(xp, add_up)

        def scans(x: Any) -> Any:
            for _ in range(_PAIRS):
                # PyTorch wants the axis to be named. The factor keeps numbers from growing without end.
                x = scan(x, axis=0) * (20 / FEW)
            return x

        return scans

    return maker


CHAIN: Final = Program(
    "chain", _chain, "abc", 4, in_numexpr="exp(-(a - b) ** 2 / (2 * c)) * sqrt(c) + sin(a)"
)
SUM_OF_EXP: Final = Program("sum of exp", _sum_of_exp, "a", 1, in_numexpr="sum(exp(a))")
SOFTMAX: Final = Program(
    "softmax", _softmax, "m", 2, lambda torch: lambda m: torch.softmax(m, dim=-1)
)
LAYER_NORM: Final = Program("layer norm", _layer_norm, "m", 2, _layer_norm_of_torch)
MEAN_AND_VARIANCE: Final = Program(
    "mean and variance", _mean_and_variance, "m", 1, _mean_and_variance_of_torch
)
#: Programs over the rows of a matrix.
NORMS: Final = (SOFTMAX, LAYER_NORM, MEAN_AND_VARIANCE)
#: Many operations on few elements, which become one kernel.
SHORT: Final = Program(f"{2 * _PAIRS + 1} operations", _short, "x", 0)
#: Many kernels on few elements, of which each waits for the last and none becomes part of another.
LAUNCHED: Final = Program(
    f"{2 * _PAIRS} kernels", _scans("cumulative_sum"), "x", 0, in_torch=_scans("cumsum")
)

#: Other programs of the length of ``CHAIN``, none of which has a kernel in common with it or another.
FURTHER: Final[tuple[Maker, ...]] = (
    lambda xp: lambda a, b, c: xp.exp(-((a + b) ** 2) / (3 * c)) * xp.sqrt(b) + xp.cos(a),
    lambda xp: lambda a, b, c: xp.tanh(-((a - b) ** 2) / (2 * c)) * xp.log(c) - xp.sin(b),
    lambda xp: lambda a, b, c: xp.log1p((a - b) ** 2 / (2 * c)) + xp.sqrt(c) * xp.cos(a + b),
)


def operands(
    library: peers.Library, vectors: int, rows: tuple[int, int], dtype: str
) -> Mapping[str, Any]:
    """Make the arguments of all programs, the same for each library, as arrays in memory of its own."""
    random = np.random.default_rng(0)

    def made(*shape: int) -> Any:
        # Positive, so that every function here is defined.
        values = random.random(shape, dtype=np.dtype(dtype).type)
        values += 0.5
        return library.convert(values)

    names = {name: made(vectors) for name in "abc"}
    return {**names, "m": made(*rows), "x": made(FEW)}
