"""The version of the standard."""

from __future__ import annotations

from typing import Final

__all__ = ["__array_api_version__"]

__array_api_version__: Final = "2025.12"
