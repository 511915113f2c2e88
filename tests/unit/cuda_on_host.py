"""CUDA C++ compiled by the host's compiler, to run the text of kernels where there is no GPU."""

from __future__ import annotations

import ctypes
import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

COMPILER = shutil.which("g++") or shutil.which("clang++")

#: What CUDA has and C++ has not. Kernels run one thread after the other; those that synchronise run under OpenMP.
SHIM = r"""
#include <cmath>
#include <cstring>
#define __device__
#define __global__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __restrict__
struct numr_dim3 { unsigned int x, y, z; };
static thread_local numr_dim3 threadIdx, blockIdx;
static numr_dim3 blockDim, gridDim;
#ifdef NUMR_THREADS
#define __shared__ static
static inline void __syncthreads() {
#pragma omp barrier
}
#endif
template <typename T, typename S> static inline T numr_bits(S value) {
    T result; std::memcpy(&result, &value, sizeof(T)); return result;
}
static inline int __float_as_int(float v) { return numr_bits<int>(v); }
static inline unsigned int __float_as_uint(float v) { return numr_bits<unsigned int>(v); }
static inline float __int_as_float(int v) { return numr_bits<float>(v); }
static inline float __uint_as_float(unsigned int v) { return numr_bits<float>(v); }
static inline long long __double_as_longlong(double v) { return numr_bits<long long>(v); }
static inline double __longlong_as_double(long long v) { return numr_bits<double>(v); }
static inline float numr_from_half(unsigned short v) { return (float)numr_bits<_Float16>(v); }
static inline unsigned short numr_to_half(float v) { return numr_bits<unsigned short>((_Float16)v); }
static inline float numr_half(float v) { return numr_from_half(numr_to_half(v)); }
template <typename T> static inline T atomicMax(T *at, T v) {
    T old = *at; if (v > old) *at = v; return old;
}
template <typename T> static inline T atomicOr(T *at, T v) { T old = *at; *at |= v; return old; }
"""

_CACHE = Path(tempfile.gettempdir()) / "numr-cuda-on-host"


def compiled(source: str, optimise: str = "-O1") -> ctypes.CDLL:
    """The library of a C++ source, which is kept for later runs of the tests."""
    assert COMPILER is not None
    threads = "__syncthreads" in source
    flags = [optimise, "-std=c++17", "-ffp-contract=off", "-w", "-fPIC", "-shared"]
    if threads:
        flags += ["-fopenmp", "-DNUMR_THREADS"]
    text = SHIM + source
    name = hashlib.sha256(repr((text, flags)).encode()).hexdigest()[:32]
    _CACHE.mkdir(exist_ok=True)
    library = _CACHE / f"{name}.so"
    if not library.exists():
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "kernel.cpp"
            file.write_text(text)
            built = Path(folder) / "kernel.so"
            command = [COMPILER, *flags, str(file), "-o", str(built)]
            subprocess.run(command, check=True, capture_output=True, text=True)
            built.replace(library) if built.stat().st_dev == library.parent.stat().st_dev else (
                shutil.copy(built, library)
            )
    return ctypes.CDLL(str(library))
