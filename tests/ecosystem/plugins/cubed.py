"""cubed's tests, with the namespace under test as what computes on chunks."""

from __future__ import annotations

import os
from typing import Any

import numr
from tests.ecosystem.plugins import target

# Read when cubed is imported, here and in its workers.
os.environ["CUBED_BACKEND_ARRAY_API_MODULE"] = os.environ[target.NAMESPACE]
if not target.in_host_memory():
    # By which a chunk goes from a device to Zarr.
    os.environ["NUMR_ALLOW_HOST_COPIES"] = "1"
    numr.config.allow_host_copies = True

from cubed.runtime import create

_create_executor = create.create_executor


def _without_clusters(name: str, executor_options: dict[str, Any] | None = None) -> Any:
    """Make an executor; cubed's tests leave out those that cannot be imported.

    Clusters of dask and ray take seconds to start for each test; tests/ecosystem/test_cubed_executors.py has them.
    """
    if name in ("dask", "ray"):
        raise ImportError(f"{name} is left out")
    return _create_executor(name, executor_options)


create.create_executor = _without_clusters
