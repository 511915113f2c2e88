"""The Fourier-transform extension of the standard on WebGPU."""

from numr.array_api.fft import *
from numr.array_api.fft import FFTCreation
from numr.runtime.wgpu import WgpuRuntime

_creation = FFTCreation(WgpuRuntime)

fftfreq = _creation.fftfreq
rfftfreq = _creation.rfftfreq
