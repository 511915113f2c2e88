"""einops' tests of backends, given numr's."""

from __future__ import annotations

from typing import Any

from einops import tests as einops_tests

from numr.interop.einops import NumrBackend
from tests.ecosystem.plugins import target

NumrBackend.namespace = target.namespace()


def _backends(symbolic: bool = False, layers: bool = False) -> list[Any]:
    return [] if symbolic or layers else [NumrBackend()]


einops_tests.collect_test_backends = _backends
