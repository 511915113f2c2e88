"""What the parity tests take for right on devices without subnormal numbers, and on none else."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import numr
from numr import dtypes as dt
from tests.parity import flushing

LEAST = 2.0**-149
BELOW = 2.0**-126 - LEAST


@pytest.mark.parametrize("dtype", [dt.float16, dt.float32, dt.float64, dt.complex64], ids=str)
def test_the_host_has_subnormal_numbers(dtype: np.dtype[Any]) -> None:
    assert not flushing.flushes(numr.namespace("cpu"), dtype)


@pytest.mark.parametrize(
    ("op", "got", "row"),
    [
        ("add", 0.0, (LEAST, LEAST)),
        ("add", 2 * LEAST, (LEAST, LEAST)),
        ("add", 1.5, (LEAST, 1.5)),
        ("multiply", 0.0, (1e-20, 1e-20)),
        ("divide", math.nan, (LEAST, LEAST)),
        ("divide", 1.0, (LEAST, LEAST)),
        ("divide", -math.inf, (-1.0, LEAST)),
        ("log", -math.inf, (LEAST,)),
        ("sqrt", 0.0, (LEAST,)),
        ("maximum", -LEAST, (-LEAST, LEAST)),
        ("nextafter", -LEAST, (BELOW, -1.0)),
    ],
)
def test_zeros_for_subnormal_numbers_are_right(op: str, got: float, row: tuple[float, ...]) -> None:
    assert flushing.is_right(op, got, row, dt.float32, dt.float32)


@pytest.mark.parametrize(
    ("op", "got", "row"),
    [
        ("add", 3 * LEAST, (LEAST, LEAST)),
        ("add", 0.0, (LEAST, 1e-37)),
        ("multiply", 0.0, (1e-18, 1e-18)),
        ("divide", 2.0, (LEAST, LEAST)),
        ("divide", math.inf, (-1.0, LEAST)),
        ("log", -80.0, (LEAST,)),
        ("sqrt", 1e-20, (1.0,)),
        ("exp", 0.0, (-80.0,)),
        ("maximum", 2 * LEAST, (-LEAST, LEAST)),
    ],
)
def test_nothing_else_is_right(op: str, got: float, row: tuple[float, ...]) -> None:
    assert not flushing.is_right(op, got, row, dt.float32, dt.float32)


def test_components_and_comparisons() -> None:
    def is_right(op: str, got: Any, *row: Any, result: np.dtype[Any] = dt.complex64) -> bool:
        return flushing.is_right(op, got, row, dt.complex64, result)

    assert is_right("negative", complex(-LEAST, -0.0), complex(LEAST, LEAST))
    assert is_right("negative", complex(-0.0, -1.5), complex(LEAST, 1.5))
    assert not is_right("negative", complex(0.0, 0.0), complex(LEAST, 1.5))
    assert is_right("log", complex(-math.inf, 0.0), complex(LEAST, LEAST))
    assert not is_right("log", complex(math.inf, 0.0), complex(LEAST, LEAST))
    assert is_right("abs", 0.0, complex(LEAST, BELOW), result=dt.float32)
    assert flushing.is_right("less", False, (LEAST, BELOW), dt.float32, dt.bool_)
    assert not flushing.is_right("less", False, (LEAST, 1.0), dt.float32, dt.bool_)


def test_arrays() -> None:
    x = np.asarray([LEAST, -LEAST, 1.0, -2.0, 2.0**-126], np.float32)
    zeros = flushing.without_subnormals(x)
    np.testing.assert_array_equal(zeros, np.float32([0, -0.0, 1, -2, 2.0**-126]))
    assert np.signbit(zeros).tolist() == [False, True, False, True, False]
    z = np.asarray([complex(LEAST, 1.0)], np.complex64)
    assert flushing.without_subnormals(z).tolist() == [1j]
    got = np.float32([0, 5, 1, -2, 0])
    assert flushing.chosen(got, x, zeros).tolist() == [0, *x[1:].tolist()]


def test_a_device_that_is_wrong_is_no_device_without_subnormal_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Wrong(np.ndarray[Any, Any]):
        def to_numpy(self) -> Any:
            return np.asarray(self)

        def __mul__(self, other: Any) -> Any:
            return (np.asarray(self) * 3).view(Wrong)

    info = SimpleNamespace(default_device=lambda: None)
    namespace = SimpleNamespace(__array_namespace_info__=lambda: info)
    monkeypatch.setattr(numr, "from_numpy", lambda x, device: x.view(Wrong))
    with pytest.raises(AssertionError):
        flushing.flushes.__wrapped__(namespace, dt.float32)
