"""Modules of numr.interop for libraries that are absent cannot be imported, and are left out of a run of doctests."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore = [
    f"numr/interop/{library}.py" for library in ("dask", "einops") if find_spec(library) is None
]
