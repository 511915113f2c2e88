"""The array namespace of NVIDIA's GPUs: the Python array API standard 2025.12 over CUDA.

Its functions need CuPy, a driver and a GPU; ``numr.unavailable()`` says what is missing.
"""

from numr.array_api import *
from numr.array_api import __array_api_version__
from numr.array_api.creation_functions import CreationFunctions
from numr.array_api.extras.spacing import SpacingFunctions
from numr.array_api.inspection import Inspection
from numr.cuda import fft, linalg, special
from numr.runtime.cuda.runtime import CudaRuntime
from numr.runtime.cuda.streams import stream

_creation = CreationFunctions(CudaRuntime)

arange = _creation.arange
asarray = _creation.asarray
empty = _creation.empty
eye = _creation.eye
from_dlpack = _creation.from_dlpack
full = _creation.full
linspace = _creation.linspace
logspace = SpacingFunctions(CudaRuntime).logspace
ones = _creation.ones
zeros = _creation.zeros

__array_namespace_info__ = Inspection(CudaRuntime).__array_namespace_info__
