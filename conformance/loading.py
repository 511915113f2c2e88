"""A plugin of pytest that has a namespace load its libraries before the first test, in each process of the run.

Libraries such as cuBLAS and cuSOLVER take a second or two at their first call in a process. The suite gives a test 800
ms, and means by that what a function takes, not what a driver does once.
"""

from __future__ import annotations

import os
from importlib import import_module

__all__ = ["pytest_sessionstart"]

_FACTORISATIONS = ("cholesky", "det", "eigh", "inv", "qr", "slogdet", "svd")


def pytest_sessionstart() -> None:
    """Call each of the libraries once."""
    xp = import_module(os.environ["ARRAY_API_TESTS_MODULE"])
    kinds = ("real floating", "complex floating")
    for dtype in xp.__array_namespace_info__().dtypes(kind=kinds).values():
        x = xp.asarray([[2.0, 0.0], [0.0, 2.0]], dtype=dtype)
        xp.matmul(x, x)
        for name in _FACTORISATIONS:
            getattr(xp.linalg, name)(x)
        xp.linalg.solve(x, x)
        xp.fft.fft(xp.astype(x, xp.result_type(x.dtype, xp.complex64)))
        xp.sort(xp.real(x))
