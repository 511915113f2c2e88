"""The special functions beside exact values, on every runtime."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

import numr
from numr import errors
from numr.array_api import special

DTYPES = ("float32", "float64")


@pytest.fixture(params=numr.available())
def xp(request: pytest.FixtureRequest) -> ModuleType:
    return numr.namespace(request.param)


def log_gamma(x: Any) -> Any:
    return mp.log(abs(mp.gamma(x)))


def normal_quantile(p: Any) -> Any:
    """By bisection and Newton's steps on the logarithm, which is monotonic."""
    if p > 0.5:
        return -normal_quantile(1 - p)
    low, high = mpf(-40), mpf(0)
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (low, middle) if mp.ncdf(middle) > p else (middle, high)
    x = (low + high) / 2
    for _ in range(8):
        below = mp.ncdf(x)
        x -= (mp.log(below) - mp.log(p)) * below / mp.npdf(x)
    return x


def spread(low: float, high: float, count: int = 60) -> list[float]:
    return np.linspace(low, high, count).tolist()


def both_signs(*values: float) -> list[float]:
    return [sign * value for value in values for sign in (1, -1)]


LARGE = both_signs(0.0, 1e-30, 1e-5, 0.3, 0.5, 0.9999, 1.0, 1.5, 2.5, 5.0, 8.0, 9.0)
PROBABILITIES = [1e-30, 1e-10, 1e-4, 0.01, *spread(0.02, 0.98), 0.999, 0.9999]

#: Exact function, arguments, and the error that is allowed, in units of the dtype's epsilon beside the value.
CASES: dict[str, tuple[Callable[[Any], Any], list[float], float]] = {
    "erf": (mp.erf, LARGE + spread(-4, 4), 4),
    "erfc": (mp.erfc, LARGE + spread(-4, 8.5), 16),
    "erfcx": (lambda x: mp.exp(x * x) * mp.erfc(x), [*spread(-4, 30), 1e3, 1e10], 32),
    "erfinv": (
        lambda y: mp.sign(y) * mp.erfinv(abs(y)),
        [*spread(-0.999, 0.999), 1e-20, 0.99999],
        16,
    ),
    "erfcinv": (
        lambda q: -normal_quantile(q / 2) / mp.sqrt(2),
        [1e-30, 1e-10, 0.01, *spread(0.05, 1.95), 1.9999],
        32,
    ),
    "ndtr": (mp.ncdf, LARGE + spread(-11, 6), 96),
    "ndtri": (normal_quantile, PROBABILITIES, 32),
    "log_ndtr": (lambda x: mp.log(mp.ncdf(x)), [*spread(-30, 5), -1e3, -1e4], 32),
    "gammaln": (log_gamma, [1e-20, 0.01, *spread(0.1, 40, 120), 1e3, 1e10, -0.5, -3.3, -7.25], 32),
    "psi": (mp.digamma, [1e-10, *spread(0.05, 40, 90), 1e6, -0.5, -2.25, -7.3], 64),
    "i0": (lambda x: mp.besseli(0, x), both_signs(0.0, *spread(0.01, 30), 80.0), 64),
    "i1": (lambda x: mp.besseli(1, x), both_signs(0.0, 1e-20, *spread(0.01, 30), 80.0), 64),
    "i0e": (
        lambda x: mp.exp(-abs(x)) * mp.besseli(0, x),
        both_signs(0.0, *spread(0.01, 30), 1e4),
        16,
    ),
    "i1e": (
        lambda x: mp.exp(-abs(x)) * mp.besseli(1, x),
        both_signs(0.0, *spread(0.01, 30), 1e4),
        16,
    ),
    "expit": (lambda x: 1 / (1 + mp.exp(-x)), [*spread(-80, 80), 0.0], 8),
    "log_expit": (lambda x: -mp.log1p(mp.exp(-x)), [*spread(-80, 80), 0.0, 1e-8], 8),
    "logit": (lambda p: mp.log(p / (1 - p)), [1e-30, *spread(0.001, 0.999), 0.5], 16),
    "entr": (lambda x: -x * mp.log(x) if x else mpf(0), [0.0, *spread(0.01, 3), 1e10], 16),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CASES)
def test_values(xp: ModuleType, name: str, dtype: str) -> None:
    if dtype not in xp.__array_namespace_info__().dtypes():
        pytest.skip(f"the device has no {dtype}")
    function, values, bound = CASES[name]
    host = np.asarray(values, dtype=dtype)
    got = getattr(special, name)(xp.asarray(host))
    assert got.dtype == dtype
    assert got.shape == host.shape
    assert got.device == xp.__array_namespace_info__().default_device()
    info = np.finfo(dtype)
    wrong = []
    with mp.workdps(60):
        for x, value in zip(host.tolist(), got.to_numpy().tolist(), strict=True):
            exact = function(mpf(x))
            # Of numbers below one the error is measured beside one where a zero of the function is near.
            scale = max(
                abs(exact),
                mpf(1) if name == "psi" else mpf(float(info.tiny)) / mpf(float(info.eps)),
            )
            error = abs(mpf(value) - exact) / scale / mpf(float(info.eps))
            if not error <= bound:
                wrong.append((float(error), x, value, float(exact)))
    assert not wrong, f"{len(wrong)} of {len(values)}: {max(wrong)}"


INF, NAN = math.inf, math.nan
#: Arguments with special values, as the limits have them.
SPECIAL: dict[str, list[tuple[tuple[float, ...], float]]] = {
    "erf": [((INF,), 1.0), ((-INF,), -1.0), ((NAN,), NAN), ((-0.0,), -0.0)],
    "erfc": [((INF,), 0.0), ((-INF,), 2.0), ((NAN,), NAN), ((40.0,), 0.0)],
    "erfcx": [((INF,), 0.0), ((-INF,), INF), ((NAN,), NAN)],
    "erfinv": [((1.0,), INF), ((-1.0,), -INF), ((1.5,), NAN), ((NAN,), NAN), ((-0.0,), -0.0)],
    "erfcinv": [((0.0,), INF), ((2.0,), -INF), ((2.5,), NAN), ((-0.5,), NAN), ((1.0,), 0.0)],
    "ndtr": [((INF,), 1.0), ((-INF,), 0.0), ((NAN,), NAN)],
    "ndtri": [((0.0,), -INF), ((1.0,), INF), ((-0.1,), NAN), ((1.1,), NAN), ((0.5,), 0.0)],
    "log_ndtr": [((INF,), 0.0), ((-INF,), -INF), ((NAN,), NAN)],
    "gammaln": [
        *[((x,), INF) for x in (0.0, -1.0, -7.0, INF, -INF)],
        *[((x,), 0.0) for x in (1.0, 2.0)],
        ((NAN,), NAN),
    ],
    "psi": [((0.0,), -INF), ((-0.0,), INF), ((-3.0,), NAN), ((-INF,), NAN), ((INF,), INF)],
    "i0": [((INF,), INF), ((-INF,), INF), ((NAN,), NAN)],
    "i1": [((INF,), INF), ((-INF,), -INF), ((NAN,), NAN), ((-0.0,), -0.0)],
    "i0e": [((INF,), 0.0), ((NAN,), NAN)],
    "i1e": [((INF,), 0.0), ((NAN,), NAN)],
    "expit": [((INF,), 1.0), ((-INF,), 0.0), ((NAN,), NAN)],
    "log_expit": [((INF,), 0.0), ((-INF,), -INF), ((NAN,), NAN)],
    "logit": [((0.0,), -INF), ((1.0,), INF), ((1.5,), NAN), ((NAN,), NAN), ((0.5,), 0.0)],
    "entr": [((-1.0,), -INF), ((NAN,), NAN), ((INF,), -INF)],
    "xlogy": [((0.0, 0.0), 0.0), ((0.0, NAN), NAN), ((2.0, 0.0), -INF), ((0.0, INF), 0.0)],
    "xlog1py": [((0.0, -1.0), 0.0), ((0.0, NAN), NAN), ((2.0, -1.0), -INF)],
    "gammainc": [
        *[((a, x), 0.0) for a, x in ((1.0, 0.0), (INF, 5.0))],
        *[((a, x), 1.0) for a, x in ((1.0, INF), (0.0, 2.0))],
        *[
            ((a, x), NAN)
            for a, x in ((0.0, 0.0), (-1.0, 1.0), (1.0, -1.0), (INF, INF), (NAN, 1.0), (1.0, NAN))
        ],
    ],
    "gammaincc": [
        *[((a, x), 1.0) for a, x in ((1.0, 0.0), (INF, 5.0))],
        *[((a, x), 0.0) for a, x in ((1.0, INF), (0.0, 2.0))],
        *[
            ((a, x), NAN)
            for a, x in ((0.0, 0.0), (-1.0, 1.0), (1.0, -1.0), (INF, INF), (NAN, 1.0), (1.0, NAN))
        ],
    ],
    "chdtr": [((1.0, 0.0), 0.0), ((3.0, INF), 1.0), ((3.0, -1.0), NAN), ((-1.0, 1.0), NAN)],
    "chdtrc": [((1.0, 0.0), 1.0), ((3.0, INF), 0.0), ((3.0, -1.0), NAN), ((-1.0, 1.0), NAN)],
    "rel_entr": [
        *[((0.0, y), 0.0) for y in (0.0, 2.0, INF)],
        *[((x, y), INF) for x, y in ((-1.0, 1.0), (1.0, 0.0), (0.0, -1.0))],
        ((NAN, 1.0), NAN),
    ],
    "kl_div": [((0.0, 2.0), 2.0), ((0.0, 0.0), 0.0), ((-1.0, 1.0), INF), ((1.0, NAN), NAN)],
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(xp: ModuleType, name: str) -> None:
    rows = SPECIAL[name]
    operands = [
        xp.asarray(np.asarray(column, dtype=np.float32))
        for column in zip(*(row for row, _ in rows), strict=True)
    ]
    got = getattr(special, name)(*operands).to_numpy()
    np.testing.assert_array_equal(got, np.asarray([value for _, value in rows], dtype=np.float32))
    zeros = [value == 0 and math.copysign(1, value) < 0 for _, value in rows]
    assert [bool(np.signbit(x)) for x, zero in zip(got, zeros, strict=True) if zero] == [
        True
    ] * sum(zeros)


def gamma_operands(dtype: str) -> np.ndarray[Any, Any]:
    """Pairs in all regions: near the diagonal, far from it, large and small, and where regions meet."""
    rng = np.random.default_rng(11)
    a = 10 ** rng.uniform(-3, 3.5, 60)
    parts = [
        np.stack([a, a * rng.uniform(0.3, 2.5, 60)]),
        np.stack([a, abs(a + np.sqrt(a) * rng.normal(0, 2, 60))]),
        np.stack([a, 10 ** rng.uniform(-3, 3, 60)]),
        np.asarray(
            [
                [20.0, 20.0, 19.99, 19.99, 20.0, 0.5, 1e-3],
                [10.0, 32.0, 20.99, 20.98, 20.0, 1.1, 1.1],
            ]
        ),
    ]
    return np.concatenate(parts, axis=1).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_incomplete_gamma_functions(xp: ModuleType, name: str, dtype: str) -> None:
    if dtype not in xp.__array_namespace_info__().dtypes():
        pytest.skip(f"the device has no {dtype}")
    operands = gamma_operands(dtype)
    got = getattr(special, name)(*(xp.asarray(x) for x in operands)).to_numpy()
    eps, tiny = (float(getattr(np.finfo(dtype), what)) for what in ("eps", "tiny"))
    compared, wrong = 0, []
    with mp.workdps(40):
        for (a, x), value in zip(operands.T.tolist(), got.tolist(), strict=True):
            ends = (0, x) if name == "gammainc" else (x, mp.inf)
            exact = mp.gammainc(a, *ends, regularized=True)
            if exact < tiny / eps:
                assert value < 4 * tiny / eps
                continue
            # The value changes by its logarithm when the last digits of the arguments do.
            bound = 64 + 16 * abs(mp.log(exact)) + 4 * mp.sqrt(a)
            compared += 1
            error = abs(value - exact) / exact / eps
            if not error <= bound:
                wrong.append((float(error), float(bound), a, x, value, float(exact)))
    assert compared > 100
    assert not wrong, f"{len(wrong)} of {compared}: {max(wrong)}"
    halves = [xp.asarray(x) for x in operands[:, :40]]
    twice = {"gammainc": special.chdtr, "gammaincc": special.chdtrc}[name](*(x * 2 for x in halves))
    np.testing.assert_array_equal(twice.to_numpy(), got[:40])


def test_functions_of_two_operands(xp: ModuleType) -> None:
    rng = np.random.default_rng(5)
    x, y = rng.uniform(0.1, 5, (2, 40, 3)).astype(np.float32)
    wide = x.astype(np.float64), y.astype(np.float64)
    expected = {
        "xlogy": wide[0] * np.log(wide[1]),
        "xlog1py": wide[0] * np.log1p(wide[1]),
        "rel_entr": wide[0] * np.log(wide[0] / wide[1]),
        "kl_div": wide[0] * np.log(wide[0] / wide[1]) - wide[0] + wide[1],
    }
    for name, values in expected.items():
        got = getattr(special, name)(xp.asarray(x), xp.asarray(y)).to_numpy()
        np.testing.assert_allclose(got, values, rtol=1e-5, atol=2e-6)
    row = special.xlogy(xp.asarray(x), xp.asarray(y[:1]))
    np.testing.assert_allclose(row.to_numpy(), x * np.log(y[:1]), rtol=1e-5)
    number = special.xlogy(2.0, xp.asarray(y))
    assert number.dtype == np.float32
    np.testing.assert_allclose(number.to_numpy(), 2 * np.log(y), rtol=1e-5)


def test_layouts_dtypes_and_captured_graphs(xp: ModuleType) -> None:
    host = np.linspace(-2, 2, 24, dtype=np.float32).reshape(4, 6)
    x = xp.asarray(host)
    whole = special.erf(x).to_numpy()
    np.testing.assert_array_equal(special.erf(x[::-2, 1::2]).to_numpy(), whole[::-2, 1::2])
    np.testing.assert_array_equal(special.erf(x.mT).to_numpy(), whole.T)
    assert special.erf(xp.zeros((0, 3), dtype=xp.float32)).shape == (0, 3)
    assert special.erf(xp.asarray(1, dtype=xp.int8)).dtype == special.erf(xp.asarray(True)).dtype
    assert (
        special.erf(xp.asarray(1)).dtype
        == xp.__array_namespace_info__().default_dtypes()["real floating"]
    )
    if np.dtype("float16") in x._client.dtypes:
        half = special.erf(xp.astype(x, xp.float16))
        assert half.dtype == np.float16
        np.testing.assert_allclose(half.to_numpy(), whole, atol=2e-3)
    jitted = numr.jit(lambda x: special.erf(x) + 1)
    np.testing.assert_allclose(jitted(x).to_numpy(), whole + 1, rtol=1e-6)
    with pytest.raises(errors.DTypeError, match="erf"):
        special.erf(xp.asarray([1j], dtype=xp.complex64))
    with pytest.raises(TypeError, match="erf"):
        special.erf([1.0])
