"""``numr.cuda.special`` beside SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numr
from numr import errors

PRESENT = "cuda" in numr.available()
needs_cuda = pytest.mark.skipif(not PRESENT, reason="needs a CUDA device")
scipy_special = pytest.importorskip("scipy.special")


@pytest.mark.cuda
@needs_cuda
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("erf", ([-1.5, 0.0, 2.0],)),
        ("gammaln", ([0.5, 3.0, 20.0],)),
        ("gammainc", ([0.5, 3.0, 9.0], [0.25, 3.0, 12.0])),
        ("betainc", ([0.5, 3.0, 9.0], [0.25, 3.0, 12.0], [0.1, 0.5, 0.75])),
        ("chdtrc", ([0.5, 3.0, 9.0, 2.0], [0.25, 3.0, 12.0, -1.0])),
        ("i0e", ([-1.5, 0.0, 20.0],)),
        ("xlogy", ([0.0, 3.0, 9.0], [0.0, 3.0, 12.0])),
    ],
)
def test_functions_agree_with_scipy(name: str, arguments: tuple[Any, ...], dtype: str) -> None:
    import numr.cuda as xp

    host = [np.asarray(argument, dtype=dtype) for argument in arguments]
    got = getattr(xp.special, name)(*map(xp.asarray, host))
    expected = getattr(scipy_special, name)(*host)
    assert isinstance(got, numr.Tensor)
    assert got.dtype == expected.dtype
    assert str(got.device).startswith("cuda")
    np.testing.assert_allclose(got.to_numpy(), expected, rtol=64 * np.finfo(dtype).eps)


@pytest.mark.cuda
@needs_cuda
def test_scipy_finds_them_when_asked_to() -> None:
    import numr.cuda as xp

    x = xp.asarray([0.5, 1.5])
    assert xp.special.erf is xp.special.erf
    whole = xp.special.i1e(xp.asarray([1, 2]))
    np.testing.assert_allclose(whole.to_numpy(), scipy_special.i1e([1, 2]), rtol=1e-14)
    assert not hasattr(xp.special, "no_such_function")
    with pytest.raises(TypeError, match="erf"):
        xp.special.erf(1.0)
    with pytest.raises(TypeError, match="to_device"):
        xp.special.erf(numr.cpu.asarray([1.0]))
    with pytest.raises(errors.DeviceMismatch):
        xp.special.gammainc(x, numr.cpu.asarray([1.0]))


@pytest.mark.skipif(PRESENT, reason="needs a machine without CUDA")
def test_without_cuda_there_is_no_function_and_the_reason_is_said() -> None:
    from numr.cuda import special

    assert not hasattr(special, "erf")
    with pytest.raises(AttributeError, match=r"no attribute 'erf': .+"):
        _ = special.erf
