"""The array namespace of WebGPU: the Python array API standard 2025.12 on any Vulkan, Metal or Direct3D 12 adapter.

Its functions need the package wgpu and an adapter; ``numr.unavailable()`` says what is missing.
"""

from numr.array_api import *
from numr.array_api import __array_api_version__
from numr.array_api.creation_functions import CreationFunctions
from numr.array_api.extras.spacing import SpacingFunctions
from numr.array_api.inspection import Inspection
from numr.runtime.wgpu import WgpuRuntime
from numr.wgpu import fft, linalg, special

_creation = CreationFunctions(WgpuRuntime)

arange = _creation.arange
asarray = _creation.asarray
empty = _creation.empty
eye = _creation.eye
from_dlpack = _creation.from_dlpack
full = _creation.full
linspace = _creation.linspace
logspace = SpacingFunctions(WgpuRuntime).logspace
ones = _creation.ones
zeros = _creation.zeros

__array_namespace_info__ = Inspection(WgpuRuntime).__array_namespace_info__
