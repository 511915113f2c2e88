"""Every function of the standard under capture: what has a static shape replays to the bit, the rest says why not."""

from __future__ import annotations

import pytest

import numr
from numr.errors import CaptureError
from tests.graph.conftest import close, same
from tests.graph.functions import CALLS, TRANSCENDENTAL, operands

#: Functions whose results' shapes depend on values.
DATA_DEPENDENT = {
    "nonzero",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "x[mask]",
}
#: Functions that a runtime has on the host alone.
ON_HOST = {"wgpu": {"linalg.eig", "linalg.eigvals"}}


def leaves(value):
    if isinstance(value, numr.Tensor):
        return [value]
    return [x for member in value for x in leaves(member)]


@pytest.mark.parametrize("name", CALLS)
def test_function(xp, name):
    f = lambda *args: CALLS[name](xp, *args)
    given = operands(xp)
    if name in DATA_DEPENDENT:
        with pytest.raises(CaptureError, match="depend"):
            numr.capture(f, *given)
        return
    if name in ON_HOST.get(given[0].device.runtime, ()):
        with pytest.raises(CaptureError, match="runs on the host"):
            numr.capture(f, *given)
        f(*given)  # and outside all is well
        return
    equal = close if name in TRANSCENDENTAL else same
    graph = numr.capture(f, *given)
    jitted = numr.jit(f)
    for seed in (1, 2, 3):  # a tape is made by the second run, and replayed by the third
        fresh = operands(xp, seed)
        expected = leaves(f(*fresh))
        for results in (graph(*fresh), jitted(*fresh)):
            got = leaves(results)
            assert len(got) == len(expected)
            for x, y in zip(got, expected, strict=True):
                assert equal(x, y), (name, x, y)


def test_all_functions_that_take_tensors_are_here():
    import numr.cpu as xp
    from numr import array_api

    without = {
        "from_dlpack",
        "broadcast_shapes",
        "can_cast",
        "finfo",
        "iinfo",
        "isdtype",
        "result_type",
        "empty",
        "e",
        "inf",
        "nan",
        "newaxis",
        "pi",
        "fft",
        "linalg",
    }
    standard = {name for name in _standard_names() if hasattr(xp, name)} - without
    assert standard <= set(CALLS), sorted(standard - set(CALLS))
    for module in ("linalg", "fft"):
        names = {f"{module}.{name}" for name in getattr(array_api, module).__all__}
        aliases = {
            f"linalg.{name}" for name in ("matmul", "matrix_transpose", "tensordot", "vecdot")
        }
        frequencies = {"fft.fftfreq", "fft.rfftfreq", "fft.FFTCreation"}
        assert names - aliases - frequencies <= set(CALLS), sorted(names - set(CALLS))


def _standard_names():
    from numr.array_api import (
        cumulative_functions,
        data_type_functions,
        elementwise_functions,
        indexing_functions,
        linear_algebra_functions,
        manipulation_functions,
        rearranging_functions,
        searching_functions,
        set_functions,
        sorting_functions,
        statistical_functions,
        utility_functions,
    )

    modules = (
        cumulative_functions,
        data_type_functions,
        elementwise_functions,
        indexing_functions,
        linear_algebra_functions,
        manipulation_functions,
        rearranging_functions,
        searching_functions,
        set_functions,
        sorting_functions,
        statistical_functions,
        utility_functions,
    )
    return {name for module in modules for name in module.__all__}
