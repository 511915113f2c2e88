"""SciPy's tests with an ``xp`` fixture, given numr's namespace instead of the libraries that SciPy knows."""

from __future__ import annotations

import os
from typing import Any

import pytest
import scipy._lib._array_api as scipy_xp

import numr
from numr.array_api.inspection import NamespaceInfo
from tests.ecosystem.plugins import comparisons, target

NAMESPACE = target.namespace()


def _conftest(config: pytest.Config) -> Any:
    for plugin in config.pluginmanager.get_plugins():
        path = (getattr(plugin, "__file__", "") or "").replace(os.sep, "/")
        if path.endswith("scipy/conftest.py"):
            return plugin
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize each test by numr's namespace; the fixture's own parameters then do not count."""
    conftest = _conftest(metafunc.config) if "xp" in metafunc.fixturenames else None
    if conftest is None:
        return
    # Known libraries obey the marks that keep NumPy's own tests from others, and those that keep tests of compiled
    # functions from memory that the host does not see.
    conftest.xp_known_backends.add(NAMESPACE.__name__)
    if not target.in_host_memory():
        conftest.xp_skip_cpu_only_backends.add(NAMESPACE.__name__)
    parameter = pytest.param(NAMESPACE, id=NAMESPACE.__name__, marks=pytest.mark.array_api_backends)
    metafunc.definition.add_marker(pytest.mark.parametrize("xp", [parameter], indirect=True))


class _Devices(list[Any]):
    """SciPy adds a list to what the standard says is a tuple: ``devices() + [None]``."""


_devices = NamespaceInfo.devices
NamespaceInfo.devices = lambda self: _Devices(_devices(self))  # type: ignore[method-assign,assignment,return-value]

if not target.in_host_memory():
    comparisons.allow()
    _to_numpy = scipy_xp._xp_copy_to_numpy
    scipy_xp._xp_copy_to_numpy = lambda x: (
        target.on_host(x) if isinstance(x, numr.Tensor) else _to_numpy(x)
    )
