"""The linear-algebra extension of the standard on WebGPU."""

from numr.array_api.linalg import *
