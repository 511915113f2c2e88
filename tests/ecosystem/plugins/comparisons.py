"""Lets ``numpy.testing`` compare tensors of a device: of all that a suite does, only its comparisons may copy."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.ecosystem.plugins.target import on_host

_NAMES = (
    *("assert_allclose", "assert_array_equal", "assert_array_less", "assert_equal"),
    *("assert_almost_equal", "assert_array_almost_equal", "assert_array_almost_equal_nulp"),
)


def allow() -> None:
    """Wrap the functions of ``numpy.testing``, for modules that are imported afterwards."""
    for name in _NAMES:
        setattr(np.testing, name, _of_tensors(getattr(np.testing, name)))


def _of_tensors(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(
            *map(on_host, args), **{key: on_host(value) for key, value in kwargs.items()}
        )

    return wrapper
