"""The standard's ``fft`` extension.

``fftfreq`` and ``rfftfreq`` need a runtime: they are the methods of :class:`FFTCreation`.
"""

from __future__ import annotations

from numr.array_api.fft.frequencies import FFTCreation, fftshift, ifftshift
from numr.array_api.fft.multidimensional import fftn, ifftn, irfftn, rfftn
from numr.array_api.fft.one_dimensional import fft, hfft, ifft, ihfft, irfft, rfft

__all__ = [
    "FFTCreation",
    "fft",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftn",
]
