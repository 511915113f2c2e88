"""What every function refuses: arguments that are no tensors, tensors of several devices, axes that are out of range."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from numr.array_api import (
    following_functions,
    indexing_functions,
    linear_algebra_functions,
    manipulation_functions,
    searching_functions,
    set_functions,
    sorting_functions,
    statistical_functions,
    utility_functions,
)
from numr.errors import AxisError, DeviceMismatch
from tests.parity.support import raises

Call = Callable[[ModuleType, Any], Any]

#: Each function that takes a tensor first, called with what stands for it.
FIRST: dict[str, Call] = {
    "all": lambda xp, x: xp.all(x),
    "any": lambda xp, x: xp.any(x),
    "argmax": lambda xp, x: xp.argmax(x),
    "argmin": lambda xp, x: xp.argmin(x),
    "argsort": lambda xp, x: xp.argsort(x),
    "astype": lambda xp, x: xp.astype(x, xp.float32),
    "broadcast_arrays": lambda xp, x: xp.broadcast_arrays(x),
    "broadcast_to": lambda xp, x: xp.broadcast_to(x, (3, 2, 2)),
    "concat": lambda xp, x: xp.concat([x, x]),
    "count_nonzero": lambda xp, x: xp.count_nonzero(x),
    "cumulative_prod": lambda xp, x: xp.cumulative_prod(x),
    "cumulative_sum": lambda xp, x: xp.cumulative_sum(x),
    "diff": lambda xp, x: xp.diff(x),
    "empty_like": lambda xp, x: xp.empty_like(x),
    "expand_dims": lambda xp, x: xp.expand_dims(x, axis=0),
    "flip": lambda xp, x: xp.flip(x),
    "full_like": lambda xp, x: xp.full_like(x, 1),
    "matmul": lambda xp, x: xp.matmul(x, x),
    "matrix_transpose": lambda xp, x: xp.matrix_transpose(x),
    "max": lambda xp, x: xp.max(x),
    "mean": lambda xp, x: xp.mean(x),
    "meshgrid": lambda xp, x: xp.meshgrid(x, x),
    "min": lambda xp, x: xp.min(x),
    "moveaxis": lambda xp, x: xp.moveaxis(x, 0, 0),
    "nonzero": lambda xp, x: xp.nonzero(x),
    "ones_like": lambda xp, x: xp.ones_like(x),
    "permute_dims": lambda xp, x: xp.permute_dims(x, (0,)),
    "prod": lambda xp, x: xp.prod(x),
    "repeat": lambda xp, x: xp.repeat(x, 2),
    "reshape": lambda xp, x: xp.reshape(x, (-1,)),
    "roll": lambda xp, x: xp.roll(x, 1),
    "searchsorted": lambda xp, x: xp.searchsorted(x, xp.ones(1)),
    "sort": lambda xp, x: xp.sort(x),
    "squeeze": lambda xp, x: xp.squeeze(x, 0),
    "stack": lambda xp, x: xp.stack([x, x]),
    "std": lambda xp, x: xp.std(x),
    "sum": lambda xp, x: xp.sum(x),
    "take": lambda xp, x: xp.take(x, xp.asarray([0])),
    "take_along_axis": lambda xp, x: xp.take_along_axis(x, xp.asarray([0])),
    "tensordot": lambda xp, x: xp.tensordot(x, x, axes=1),
    "tile": lambda xp, x: xp.tile(x, (2,)),
    "tril": lambda xp, x: xp.tril(x),
    "triu": lambda xp, x: xp.triu(x),
    "unique_all": lambda xp, x: xp.unique_all(x),
    "unique_counts": lambda xp, x: xp.unique_counts(x),
    "unique_inverse": lambda xp, x: xp.unique_inverse(x),
    "unique_values": lambda xp, x: xp.unique_values(x),
    "unstack": lambda xp, x: xp.unstack(x),
    "var": lambda xp, x: xp.var(x),
    "vecdot": lambda xp, x: xp.vecdot(x, x),
    "where": lambda xp, x: xp.where(x, 1, 2),
    "zeros_like": lambda xp, x: xp.zeros_like(x),
}
LINALG = [
    *("cholesky", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matrix_norm"),
    *("matrix_rank", "matrix_transpose", "pinv", "qr", "slogdet", "svd", "svdvals", "trace"),
    "vector_norm",
]
PAIRS = ["cross", "matmul", "outer", "solve", "tensordot", "vecdot"]
FFT = [
    *("fft", "ifft", "fftn", "ifftn", "rfft", "irfft", "rfftn", "irfftn", "hfft", "ihfft"),
    *("fftshift", "ifftshift"),
]
CASES: dict[str, Call] = {
    **FIRST,
    **{f"linalg.{name}": lambda xp, x, n=name: getattr(xp.linalg, n)(x) for name in LINALG},
    **{f"linalg.{name}": lambda xp, x, n=name: getattr(xp.linalg, n)(x, x) for name in PAIRS},
    "linalg.matrix_power": lambda xp, x: xp.linalg.matrix_power(x, 2),
    **{f"fft.{name}": lambda xp, x, n=name: getattr(xp.fft, n)(x) for name in FFT},
}


def test_every_function_is_here(xp: ModuleType) -> None:
    modules = [
        *(following_functions, indexing_functions, linear_algebra_functions),
        *(manipulation_functions, searching_functions, set_functions, sorting_functions),
        *(statistical_functions, utility_functions),
    ]
    named = {name for module in modules for name in module.__all__}
    # isin takes a scalar first; broadcast_shapes takes no tensor.
    assert named - set(FIRST) == {"broadcast_shapes", "isin"}
    assert (
        set(xp.linalg.__all__ if hasattr(xp.linalg, "__all__") else LINALG + PAIRS)
        - {
            *LINALG,
            *PAIRS,
            "matrix_power",
        }
        == set()
    )


@pytest.mark.parametrize(
    "foreign", [[1.0, 2.0], np.ones(2), None, "ab"], ids=["list", "numpy", "None", "str"]
)
@pytest.mark.parametrize("name", CASES)
def test_arguments_must_be_tensors(xp: ModuleType, name: str, foreign: Any) -> None:
    with raises(TypeError, name.rpartition(".")[2], type(foreign).__name__):
        CASES[name](xp, foreign)


#: Functions with an axis, called with one.
WITH_AXIS = [
    *("all", "any", "argmax", "argmin", "argsort", "concat", "count_nonzero", "cumulative_prod"),
    *("cumulative_sum", "diff", "flip", "max", "mean", "min", "prod", "sort", "std", "sum"),
    *("unstack", "var"),
]
SEVERAL = ["all", "any", "count_nonzero", "flip", "max", "mean", "min", "prod", "std", "sum", "var"]


@pytest.mark.parametrize("name", WITH_AXIS)
def test_axis(xp: ModuleType, name: str) -> None:
    function = getattr(xp, name)
    x = xp.ones((2, 3), dtype=xp.float32)
    argument = [x] if name == "concat" else x
    for axis in (2, -3, 100):
        with raises(AxisError, name, f"axis {axis} .*2 dimensions"):
            function(argument, axis=axis)
    for axis in (1.0, "0", True):
        with raises(TypeError, name):
            function(argument, axis=axis)
    point = x[0, 0]
    for axis in (0, -1):
        with raises(AxisError, name, f"axis {axis}"):
            function([point] if name == "concat" else point, axis=axis)
    if name in SEVERAL:
        for axes in ((0, 0), (1, -1)):
            with raises(AxisError, name, "twice"):
                function(x, axis=axes)
        with raises(AxisError, name, "axis 2"):
            function(x, axis=(0, 2))
        # What counts as an axis elsewhere does here too.
        got = function(x, axis=np.int64(1))
        np.testing.assert_array_equal(got.to_numpy(), function(x, axis=1).to_numpy())


class OtherClient:
    """A client of another device that has the attributes of the first one's."""

    def __init__(self, client: Any) -> None:
        self._wrapped = client
        self.device = "elsewhere:0"

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wrapped, name)


def test_mixed_devices(xp: ModuleType) -> None:
    x, y = xp.ones((2, 2), dtype=xp.float32), xp.ones((2, 2), dtype=xp.float32)
    index = xp.zeros((2, 2), dtype=xp.int32)
    for z in (y, index):
        object.__setattr__(z, "_client", OtherClient(z._client))
    line, other_line, other_index = x[0], y[0], index[0]
    calls: dict[str, Callable[[], Any]] = {
        "broadcast_arrays": lambda: xp.broadcast_arrays(x, y),
        "concat": lambda: xp.concat([x, y]),
        "stack": lambda: xp.stack([x, y]),
        "meshgrid": lambda: xp.meshgrid(line, other_line),
        "matmul": lambda: xp.matmul(x, y),
        "tensordot": lambda: xp.tensordot(x, y),
        "vecdot": lambda: xp.vecdot(x, y),
        "where": lambda: xp.where(x > 0, x, y),
        "searchsorted": lambda: xp.searchsorted(line, y),
        "take": lambda: xp.take(line, other_index),
        "take_along_axis": lambda: xp.take_along_axis(x, index),
        "repeat": lambda: xp.repeat(x, other_index, axis=0),
        "isin": lambda: xp.isin(x, y),
        "diff": lambda: xp.diff(x, append=y),
        "result_type": lambda: xp.result_type(x, y),
        "cross": lambda: xp.linalg.cross(x, y),
        "outer": lambda: xp.linalg.outer(line, other_line),
        "solve": lambda: xp.linalg.solve(x, y),
    }
    for name, call in calls.items():
        with raises(DeviceMismatch, name, "elsewhere:0"):
            call()


@pytest.mark.parametrize("name", CASES)
def test_arguments_are_not_changed(xp: ModuleType, name: str) -> None:
    matrix = xp.asarray([[2.0, 1.0], [1.0, 3.0]], dtype=xp.float32)
    candidates = [matrix, matrix[0] + 0, matrix[0, :1] + 0, matrix > 1]
    candidates.append(xp.ones(3, dtype=xp.float32))
    before = [x.to_numpy().copy() for x in candidates]
    accepted = 0
    for x in candidates:
        try:
            CASES[name](xp, x)
        except (TypeError, ValueError):
            continue
        accepted += 1
    assert accepted, "none of the arguments fits the function"
    for x, kept in zip(candidates, before, strict=True):
        np.testing.assert_array_equal(x.to_numpy(), kept)


@pytest.mark.parametrize("name", sorted(set(FIRST) - {"broadcast_arrays", "meshgrid"}))
def test_first_parameters_are_positional(xp: ModuleType, name: str) -> None:
    parameters = list(inspect.signature(getattr(xp, name)).parameters.values())
    # The standard leaves the first parameters without names, moveaxis' among them.
    assert parameters[0].kind is inspect.Parameter.POSITIONAL_ONLY
