"""What is under test, as the runner says by environment variables."""

from __future__ import annotations

import importlib
import os
from types import ModuleType
from typing import Any, Final

import numr

#: Environment variables that the runner sets: the namespace, and the dtypes to test where a suite takes them.
NAMESPACE: Final = "NUMR_ECOSYSTEM_NAMESPACE"
DTYPES: Final = "NUMR_ECOSYSTEM_DTYPES"


def namespace() -> ModuleType:
    """The namespace under test."""
    return importlib.import_module(os.environ[NAMESPACE])


def dtypes() -> list[str]:
    """The floating-point dtypes under test."""
    return os.environ[DTYPES].split(",")


def in_host_memory() -> bool:
    """Whether NumPy may look at the tensors, so that a library's compiled functions work on them."""
    return namespace().empty(0).__dlpack_device__()[0] == 1


def on_host(value: Any) -> Any:
    """A tensor as an array of NumPy, anything else as it is."""
    return value.to_numpy() if isinstance(value, numr.Tensor) else value
