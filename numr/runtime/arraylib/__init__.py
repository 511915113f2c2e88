"""The client body that NumPy and CuPy share: their namespaces differ in a few named places only."""

from numr.runtime.arraylib.client import ArrayLibClient

__all__ = ["ArrayLibClient"]
