"""The array namespace of the host: the Python array API standard 2025.12 over NumPy.

Examples
--------
>>> import numr.cpu as xp
>>> xp.sum(xp.asarray([1.0, 2.0, 3.0]))
Tensor(6., dtype=float64, device=cpu)
"""

from numr.array_api import *
from numr.array_api import __array_api_version__
from numr.array_api.creation_functions import CreationFunctions
from numr.array_api.extras.spacing import SpacingFunctions
from numr.array_api.inspection import Inspection
from numr.cpu import fft, linalg
from numr.runtime.cpu.runtime import CpuRuntime

_creation = CreationFunctions(CpuRuntime)

arange = _creation.arange
asarray = _creation.asarray
empty = _creation.empty
eye = _creation.eye
from_dlpack = _creation.from_dlpack
full = _creation.full
linspace = _creation.linspace
logspace = SpacingFunctions(CpuRuntime).logspace
ones = _creation.ones
zeros = _creation.zeros

__array_namespace_info__ = Inspection(CpuRuntime).__array_namespace_info__
