"""The Fourier-transform extension of the standard on the host."""

from numr.array_api.fft import *
from numr.array_api.fft import FFTCreation
from numr.runtime.cpu.runtime import CpuRuntime

_creation = FFTCreation(CpuRuntime)

fftfreq = _creation.fftfreq
rfftfreq = _creation.rfftfreq
