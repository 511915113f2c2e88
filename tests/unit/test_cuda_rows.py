"""Kernels of computations of rows, run by the host's compiler, against one operation after the other: equal bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from numr import dtypes as dt
from numr.ir.rows import RowComputation
from numr.runtime.composed_rows import composed_rows
from numr.runtime.cuda.folding import Fold
from numr.runtime.cuda.fused import Fused
from numr.runtime.cuda.fused_rows import FusedRows, does_rows
from numr.runtime.cuda.reductions import reduce_into, reduced_dtype, reduced_shape
from tests import row_programs
from tests.row_programs import PROGRAMS, numbers, operands_of, shapes_of
from tests.unit.cuda_on_host import COMPILER, HostArray, HostContext, on_host

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")

Array = np.ndarray[Any, Any]

F16, F32, F64 = dt.float16, dt.float32, dt.float64


class OneByOne:
    """What composed computations of rows ask of a client, by the kernels of single operations and reductions."""

    def __init__(self, context: HostContext) -> None:
        self.context = context

    def empty(self, shape: tuple[int, ...], dtype: Any) -> HostArray:
        return on_host(np.zeros(shape, dtype))

    def fused(self, computation: Any) -> Any:
        return lambda operands, results: Fused(computation)(self.context, operands, results)

    def reduce(self, kind: Any, array: Any, axes: Any, keepdims: bool, dtype: Any) -> HostArray:
        fold = Fold(kind, array.dtype, reduced_dtype(kind, array.dtype, dtype))
        out = self.empty(reduced_shape(array.shape, axes, keepdims), fold.result)
        reduce_into(self.context, fold, array, axes, out)
        return out

    def reduce_fused(
        self, computation: Any, operands: Any, shape: Any, kind: Any, axes: Any, *rest: Any
    ) -> HostArray:
        array = self.empty(shape, computation.result_dtypes[0])
        self.fused(computation)(operands, [array])
        return self.reduce(kind, array, axes, *rest)

    def assign(self, target: HostArray, source: HostArray) -> None:
        target.array[...] = source.array.reshape(target.shape)


@pytest.fixture(scope="module")
def context():
    return HostContext()


def given_to(
    computation: RowComputation, shape: tuple[int, ...], axes: tuple[int, ...], start: int = 0
) -> list[Any]:
    """Operands, some elements into their memory."""
    return [
        on_host(x, start) if isinstance(x, np.ndarray) else x
        for x in operands_of(computation, shape, axes)
    ]


def check(
    context: HostContext,
    computation: RowComputation,
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    operands: Sequence[Any] | None = None,
) -> FusedRows:
    """Compare a computation's kernel with its operations."""
    given = given_to(computation, shape, axes) if operands is None else operands
    kernels = FusedRows(computation)
    pairs = list(zip(shapes_of(computation, shape, axes), computation.results, strict=True))
    got, expected = (
        [on_host(np.zeros(own, computation.dtype(v))) for own, v in pairs] for _ in "ge"
    )
    assert kernels.into(context, given, got, shape, axes)
    composed_rows(OneByOne(context), computation, shape, axes)(given, expected)  # type: ignore[arg-type]
    for x, y in zip(got, expected, strict=True):
        assert np.array_equal(x.array, y.array, equal_nan=y.array.dtype.kind == "f")
        assert y.array.any()
    return kernels


#: Shapes and axes: rows that few threads share, or a warp, or a block, with whole vectors and without.
PLACES = {
    "few": ((37, 24), (1,)),
    "few, odd": ((37, 23), (1,)),
    "warps": ((5, 700), (1,)),
    "warps, odd": ((11, 501), (1,)),
    "blocks": ((3, 4096), (1,)),
    "two axes": ((3, 2, 6, 12), (2, 3)),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_rows(context, name, place):
    check(context, PROGRAMS[name](), *PLACES[place])


@pytest.mark.parametrize("name", ["softmax", "layer_norm"])
def test_rows_that_are_not_held(context, monkeypatch, name):
    monkeypatch.setattr("numr.runtime.cuda.fused_rows._HELD", 1)
    for place in ("warps", "blocks", "two axes"):
        kernels = check(context, PROGRAMS[name](), *PLACES[place])
        ((_, _, _, holds, _, _),) = kernels._kernels
        assert not holds


@pytest.mark.parametrize("dtype", [F16, F64])
@pytest.mark.parametrize("name", ["softmax", "layer_norm", "variance"])
def test_other_dtypes(context, name, dtype):
    check(context, PROGRAMS[name](dtype), (5, 96), (1,))


@pytest.mark.parametrize("dtype", [dt.int8, dt.uint16, dt.int32, dt.int64])
def test_integers(context, dtype):
    check(context, row_programs.distance(dtype), (5, 96), (1,))
    check(context, row_programs.distance(dtype), (5, 41), (1,))


@pytest.mark.parametrize("dtype", [dt.complex64, dt.complex128])
def test_complex_numbers(context, dtype):
    for name in ("variance", "mean", "norm"):
        check(context, PROGRAMS[name](dtype), (5, 96), (1,))
    check(context, row_programs.variance(dtype), (3, 701), (1,))


@pytest.mark.parametrize("name", ["mean", "norm"])
@pytest.mark.parametrize(
    "shape_and_axes", [((90, 48), (0,)), ((70, 400), (0, 1)), ((6, 40, 20), (1,))]
)
def test_one_reduction_over_any_axes(context, name, shape_and_axes):
    check(context, PROGRAMS[name](), *shape_and_axes)


def test_nan_and_zeros(context):
    x = numbers(12, 40)
    x[3, 7], x[4, :], x[5, 0] = np.nan, 0, np.inf
    check(context, row_programs.softmax(), (12, 40), (1,), [on_host(x)])


def test_operands_somewhere_in_memory(context):
    """What is reduced as it is has to be aligned, since its own reduction depends on that; all else need not be."""
    computation = row_programs.softmax()
    shape, axes = (5, 64), (1,)
    results = [on_host(np.zeros(shape, F32)), on_host(np.zeros((5, 1), F32))]
    given = given_to(computation, shape, axes, start=1)
    assert not FusedRows(computation).into(context, given, results, shape, axes)
    computation = row_programs.layer_norm()
    given = given_to(computation, shape, axes, start=1)
    given[0] = on_host(given[0].array)
    check(context, computation, shape, axes, given)


def test_one_operand_for_all_rows(context):
    computation = row_programs.variance()
    given = given_to(computation, (5, 64), (1,))
    one = on_host(numbers(1, 1))
    for given[2] in (one, HostArray(np.broadcast_to(one.array, (5, 1)))):
        check(context, computation, (5, 64), (1,), given)


def test_which_rows_there_are_kernels_for():
    assert does_rows((100, 50), (1,), (F32, F32))
    assert not does_rows((100, 50), (0,), (F32,))
    assert not does_rows((100, 50), (1,), (F32, F64))
    # Blocks that share a row meet in memory.
    assert not does_rows((1, 10_000_000), (0, 1), (F32,))
