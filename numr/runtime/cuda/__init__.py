"""The CUDA runtime: numr's own kernels, and CuPy for its arrays and NVIDIA's libraries.

``driver`` finds CuPy and the driver, ``context`` is one device in use: ``memory`` its allocator, ``staging`` its host
copies, ``compiler`` its kernels. ``elementwise``, ``reductions``, ``scans``, ``indexing``, ``selecting`` and
``searching`` are the kernels' texts and drivers, around expressions of ``numr.codegen``; ``fused`` and ``fused_reductions`` are those of captured
functions, and ``graphs`` makes CUDA graphs of them. Importing this package loads neither CuPy nor the driver.

What CuPy does otherwise than the standard, and what takes its place here:

- Zeros lose their sign in ``fill``, several functions are wrong at zeros, infinities and in the complex plane, ``%``
  by an infinity is NaN, and subnormal numbers are flushed, since its kernels are compiled for that. No elementwise
  function, fill, cast or copy is CuPy's (``elementwise``).
- Of several NaN ``argmax`` may find any, and sums and scans over leading axes reach a fraction of the memory's speed:
  ``reductions``, ``scans``.
- Indices out of range wrap around silently, and of several writes to one element any may win: ``indexing``. Masks go
  through running sums of 64 bits: ``selecting``.
- float32 and float64 are sorted by their bits, NaN with a minus sign first: ``formulas.ascending_key``.
- ``det`` goes through logarithms, ``solve`` broadcasts no stacks, and singular matrices are not reported: ``linalg``.
- cuFFT takes no empty stack: ``CudaClient.fft``.
- DLPack's read-only flag is neither set nor read: ``exchange``.

CuPy is used for views, for sorting, and for cuBLAS, cuSOLVER and cuFFT. Its allocations inside
numr's calls come from numr's allocator; its own settings stay as they are.
"""

from __future__ import annotations

from numr.runtime.cuda.client import CudaClient
from numr.runtime.cuda.memory import CudaAllocator
from numr.runtime.cuda.runtime import CudaDevice, CudaRuntime
from numr.runtime.cuda.streams import stream

# The client's module needs the runtime, so the runtime learns of its client here.
CudaRuntime.Client = CudaClient

__all__ = ["CudaAllocator", "CudaClient", "CudaDevice", "CudaRuntime", "stream"]
