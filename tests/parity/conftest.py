"""Fixtures of the parity tests."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest
from mpmath import mp

import numr

#: Bits of the exact references: sums of a few hundred products of float64 numbers of like size need no more.
PRECISION = 400


@pytest.fixture(params=numr.available())
def xp(request: pytest.FixtureRequest) -> ModuleType:
    """The namespace of each runtime present."""
    return numr.namespace(request.param)


@pytest.fixture(autouse=True)
def _no_warnings() -> Iterator[None]:
    # Overflow and invalid operations are among what is tested.
    with np.errstate(all="ignore"):
        yield


@pytest.fixture
def precise() -> Iterator[None]:
    """mpmath with enough bits for exact references."""
    with mp.workprec(PRECISION):
        yield
