"""The Fourier-transform extension of the standard on CUDA."""

from numr.array_api.fft import *
from numr.array_api.fft import FFTCreation
from numr.runtime.cuda.runtime import CudaRuntime

_creation = FFTCreation(CudaRuntime)

fftfreq = _creation.fftfreq
rfftfreq = _creation.rfftfreq
