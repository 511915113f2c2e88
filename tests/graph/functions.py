"""A call of each function of the standard, to be captured."""

from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

__all__ = ["CALLS", "operands"]

#: A call of each function with the namespace, a vector, a positive definite matrix, integers and booleans.
Call = Callable[..., Any]

_ONE_FLOAT: Final = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceil",
    "cos",
    "cosh",
    "exp",
    "expm1",
    "floor",
    "imag",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "log10",
    "log1p",
    "log2",
    "negative",
    "positive",
    "real",
    "reciprocal",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
    "conj",
]
_TWO_FLOATS: Final = [
    "add",
    "atan2",
    "copysign",
    "divide",
    "equal",
    "floor_divide",
    "greater",
    "greater_equal",
    "hypot",
    "less",
    "less_equal",
    "logaddexp",
    "maximum",
    "minimum",
    "multiply",
    "nextafter",
    "not_equal",
    "pow",
    "remainder",
    "subtract",
]
_TWO_INTEGERS: Final = [
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "bitwise_left_shift",
    "bitwise_right_shift",
]
_TWO_FLAGS: Final = ["logical_and", "logical_or", "logical_xor"]
_REDUCTIONS: Final = ["max", "min", "sum", "prod", "mean", "std", "var"]


def _of_one(name: str) -> Call:
    return lambda xp, x, m, i, b: getattr(xp, name)(x)


def _of_two(name: str) -> Call:
    return lambda xp, x, m, i, b: getattr(xp, name)(x, x + 0.5)


def _of_integers(name: str) -> Call:
    return lambda xp, x, m, i, b: getattr(xp, name)(i, i)


def _of_flags(name: str) -> Call:
    return lambda xp, x, m, i, b: getattr(xp, name)(b, xp.logical_not(b))


def _over_rows(name: str) -> Call:
    return lambda xp, x, m, i, b: (getattr(xp, name)(m, axis=0), getattr(xp, name)(m))


def _linalg(name: str) -> Call:
    return lambda xp, x, m, i, b: getattr(xp.linalg, name)(m)


def _fft(name: str) -> Call:
    return lambda xp, x, m, i, b: getattr(xp.fft, name)(xp.astype(x, xp.complex64))


#: By name: functions of the standard that take tensors, with a call of each.
CALLS: Final[dict[str, Call]] = {
    **{name: _of_one(name) for name in _ONE_FLOAT},
    **{name: _of_two(name) for name in _TWO_FLOATS},
    **{name: _of_integers(name) for name in _TWO_INTEGERS},
    **{name: _of_flags(name) for name in _TWO_FLAGS},
    **{name: _over_rows(name) for name in _REDUCTIONS},
    "all": lambda xp, x, m, i, b: xp.all(b),
    "any": lambda xp, x, m, i, b: xp.any(b, axis=0),
    "arange": lambda xp, x, m, i, b: xp.arange(8, dtype=x.dtype) + x,
    "argmax": lambda xp, x, m, i, b: xp.argmax(m, axis=1),
    "argmin": lambda xp, x, m, i, b: xp.argmin(x),
    "argsort": lambda xp, x, m, i, b: xp.argsort(m, axis=0, descending=True),
    "asarray": lambda xp, x, m, i, b: xp.asarray(x, copy=True),
    "astype": lambda xp, x, m, i, b: xp.astype(x, xp.int32),
    "bitwise_invert": lambda xp, x, m, i, b: xp.bitwise_invert(i),
    "broadcast_arrays": lambda xp, x, m, i, b: xp.broadcast_arrays(x, x[:, None]),
    "broadcast_to": lambda xp, x, m, i, b: xp.broadcast_to(x, (3, 8)),
    "clip": lambda xp, x, m, i, b: xp.clip(x, 0.5, 1.0),
    "concat": lambda xp, x, m, i, b: xp.concat([x, x * 2]),
    "count_nonzero": lambda xp, x, m, i, b: xp.count_nonzero(x),
    "cumulative_prod": lambda xp, x, m, i, b: xp.cumulative_prod(x),
    "cumulative_sum": lambda xp, x, m, i, b: xp.cumulative_sum(m, axis=0, include_initial=True),
    "diff": lambda xp, x, m, i, b: xp.diff(x),
    "empty_like": lambda xp, x, m, i, b: xp.empty_like(x).shape[0] + x,
    "expand_dims": lambda xp, x, m, i, b: xp.expand_dims(x, axis=0),
    "eye": lambda xp, x, m, i, b: xp.eye(8, dtype=x.dtype) * x,
    "flip": lambda xp, x, m, i, b: xp.flip(m),
    "full": lambda xp, x, m, i, b: xp.full((8,), 2.0, dtype=x.dtype) + x,
    "full_like": lambda xp, x, m, i, b: xp.full_like(x, 3.0),
    "isin": lambda xp, x, m, i, b: xp.isin(i, i[:2]),
    "linspace": lambda xp, x, m, i, b: xp.linspace(0, 1, 8, dtype=x.dtype) + x,
    "logical_not": lambda xp, x, m, i, b: xp.logical_not(b),
    "matmul": lambda xp, x, m, i, b: xp.matmul(m, m),
    "matrix_transpose": lambda xp, x, m, i, b: xp.matrix_transpose(m),
    "meshgrid": lambda xp, x, m, i, b: xp.meshgrid(x, x[:3]),
    "moveaxis": lambda xp, x, m, i, b: xp.moveaxis(m, 0, 1),
    "nonzero": lambda xp, x, m, i, b: xp.nonzero(x),
    "ones": lambda xp, x, m, i, b: xp.ones(8, dtype=x.dtype) * x,
    "ones_like": lambda xp, x, m, i, b: xp.ones_like(x),
    "permute_dims": lambda xp, x, m, i, b: xp.permute_dims(m, (1, 0)),
    "repeat": lambda xp, x, m, i, b: xp.repeat(x, 2),
    "reshape": lambda xp, x, m, i, b: xp.reshape(m, (2, 8)),
    "roll": lambda xp, x, m, i, b: xp.roll(x, 3),
    "searchsorted": lambda xp, x, m, i, b: xp.searchsorted(xp.sort(x), x),
    "sort": lambda xp, x, m, i, b: xp.sort(m),
    "squeeze": lambda xp, x, m, i, b: xp.squeeze(x[None, :], axis=0),
    "stack": lambda xp, x, m, i, b: xp.stack([x, x]),
    "take": lambda xp, x, m, i, b: xp.take(x, i),
    "take_along_axis": lambda xp, x, m, i, b: xp.take_along_axis(x, i),
    "tensordot": lambda xp, x, m, i, b: xp.tensordot(m, m, axes=1),
    "tile": lambda xp, x, m, i, b: xp.tile(x, (2,)),
    "tril": lambda xp, x, m, i, b: xp.tril(m),
    "triu": lambda xp, x, m, i, b: xp.triu(m),
    "unique_all": lambda xp, x, m, i, b: xp.unique_all(i),
    "unique_counts": lambda xp, x, m, i, b: xp.unique_counts(i),
    "unique_inverse": lambda xp, x, m, i, b: xp.unique_inverse(i),
    "unique_values": lambda xp, x, m, i, b: xp.unique_values(i),
    "unstack": lambda xp, x, m, i, b: xp.unstack(m),
    "vecdot": lambda xp, x, m, i, b: xp.vecdot(m, m),
    "where": lambda xp, x, m, i, b: xp.where(b, x, -x),
    "zeros": lambda xp, x, m, i, b: xp.zeros(8, dtype=x.dtype) + x,
    "zeros_like": lambda xp, x, m, i, b: xp.zeros_like(x),
    "x[mask]": lambda xp, x, m, i, b: x[b],
    "x[mask] = number": lambda xp, x, m, i, b: _with_masked(xp, x, b),
    "x[indices]": lambda xp, x, m, i, b: x[i],
    "x[indices] = values": lambda xp, x, m, i, b: _with_scattered(xp, x, i),
    **{
        f"linalg.{name}": _linalg(name)
        for name in [
            "cholesky",
            "det",
            "diagonal",
            "eig",
            "eigh",
            "eigvals",
            "eigvalsh",
            "inv",
            "matrix_norm",
            "matrix_rank",
            "pinv",
            "qr",
            "slogdet",
            "svd",
            "svdvals",
            "trace",
        ]
    },
    "linalg.cross": lambda xp, x, m, i, b: xp.linalg.cross(x[:3], x[3:6]),
    "linalg.matrix_power": lambda xp, x, m, i, b: xp.linalg.matrix_power(m, 3),
    "linalg.outer": lambda xp, x, m, i, b: xp.linalg.outer(x, x),
    "linalg.solve": lambda xp, x, m, i, b: xp.linalg.solve(m, x[:4]),
    "linalg.vector_norm": lambda xp, x, m, i, b: xp.linalg.vector_norm(x),
    **{
        f"fft.{name}": _fft(name)
        for name in [
            "fft",
            "ifft",
            "fftn",
            "ifftn",
            "irfft",
            "irfftn",
            "hfft",
            "fftshift",
            "ifftshift",
        ]
    },
    "fft.rfft": lambda xp, x, m, i, b: xp.fft.rfft(x),
    "fft.rfftn": lambda xp, x, m, i, b: xp.fft.rfftn(m),
    "fft.ihfft": lambda xp, x, m, i, b: xp.fft.ihfft(x),
}


def _with_masked(xp: ModuleType, x: Any, b: Any) -> Any:
    copied = xp.asarray(x, copy=True)
    copied[b] = 0.0
    return copied


def _with_scattered(xp: ModuleType, x: Any, i: Any) -> Any:
    copied = xp.asarray(x, copy=True)
    copied[i] = x * 2
    return copied


def operands(xp: ModuleType, seed: int = 0) -> tuple[Any, ...]:
    """A vector of 8 numbers from 0.1 to 0.9, a positive definite matrix of 4 rows, integers and booleans."""
    import numpy as np

    rng = np.random.default_rng(seed)
    root = rng.uniform(0, 1, (4, 4))
    return (
        xp.asarray(rng.uniform(0.1, 0.9, 8).astype(np.float32)),
        xp.asarray((root @ root.T + 4 * np.eye(4)).astype(np.float32)),
        xp.asarray(rng.integers(0, 8, 8).astype(np.int32)),
        xp.asarray(rng.uniform(0, 1, 8) < 0.5),
    )


#: Functions of which the CPU has two libraries, NumPy's for single calls and numr's own in kernels.
TRANSCENDENTAL: Final = frozenset(
    [
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atan2",
        "atanh",
        "cos",
        "cosh",
        "exp",
        "expm1",
        "hypot",
        "log",
        "log10",
        "log1p",
        "log2",
        "logaddexp",
        "pow",
        "sin",
        "sinh",
        "tan",
        "tanh",
    ]
)
