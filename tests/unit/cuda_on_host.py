"""CUDA C++ compiled by the host's compiler, to run the text of kernels where there is no GPU."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import re
import shutil
import subprocess
import tempfile
import types
from pathlib import Path
from struct import Struct
from typing import Any

import numpy as np

from numr.codegen import cuda

COMPILER = shutil.which("g++") or shutil.which("clang++")

#: What CUDA has and C++ has not.
SHIM = r"""
#include <cmath>
#include <cstring>
#define __device__
#define __global__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __restrict__
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
struct numr_dim3 { unsigned int x, y, z; };
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
"""

#: A block of threads, each with a stack of its own: one runs until it waits for others, and then the next.
THREADS = r"""
#include <cstdlib>
#include <ucontext.h>
enum { NUMR_READY, NUMR_AT_BLOCK, NUMR_AT_WARP, NUMR_DONE, NUMR_STACK = 1 << 16 };
struct numr_thread { ucontext_t context; numr_dim3 index; int state; };
static numr_thread numr_threads[1024];
static numr_thread* numr_current;
static ucontext_t numr_scheduler;
static char* numr_stacks;
static void (*numr_body)();
static numr_dim3 blockIdx, blockDim, gridDim;
#define threadIdx (numr_current->index)
static void numr_wait(int state) {
    numr_thread* own = numr_current;
    own->state = state;
    swapcontext(&own->context, &numr_scheduler);
}
static void __syncthreads() { numr_wait(NUMR_AT_BLOCK); }
static void __syncwarp() { numr_wait(NUMR_AT_WARP); }
static void __threadfence() {}
static void numr_main() { numr_body(); numr_wait(NUMR_DONE); }
static unsigned numr_number() { return threadIdx.y * blockDim.x + threadIdx.x; }
static unsigned long long numr_shown[1024];
template <typename T> static T numr_exchange(T value, int lane, bool own) {
    unsigned long long bits = 0, got;
    std::memcpy(&bits, &value, sizeof(T));
    numr_shown[numr_number()] = bits;
    numr_wait(NUMR_AT_WARP);
    got = own ? bits : numr_shown[(numr_number() & ~31u) + lane];
    numr_wait(NUMR_AT_WARP);
    std::memcpy(&value, &got, sizeof(T));
    return value;
}
template <typename T> static T __shfl_down_sync(unsigned, T value, unsigned by, int width) {
    const int lane = numr_number() & 31;
    return numr_exchange(value, lane + by & 31, (lane & width - 1) + (int)by >= width);
}
template <typename T> static T __shfl_up_sync(unsigned, T value, unsigned by, int width) {
    const int lane = numr_number() & 31;
    return numr_exchange(value, lane - by & 31, (lane & width - 1) < (int)by);
}
template <typename T> static T __shfl_sync(unsigned, T value, int from, int width) {
    const int lane = numr_number() & 31;
    return numr_exchange(value, (lane & ~(width - 1)) + (from & width - 1), false);
}
static unsigned __ballot_sync(unsigned, bool vote) {
    unsigned votes = 0;
    numr_shown[numr_number()] = vote;
    numr_wait(NUMR_AT_WARP);
    for (int lane = 0; lane < 32; ++lane)
        votes |= (unsigned)numr_shown[(numr_number() & ~31u) + lane] << lane;
    numr_wait(NUMR_AT_WARP);
    return votes;
}
static int __popc(unsigned bits) { return __builtin_popcount(bits); }
static unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
template <typename T> static T atomicMax(T* at, T v) { T old = *at; if (v > old) *at = v; return old; }
template <typename T> static T atomicAdd(T* at, T v) { T old = *at; *at += v; return old; }
static int min(int a, int b) { return a < b ? a : b; }
static bool numr_run_block() {
    const unsigned count = blockDim.x * blockDim.y;
    if (!numr_stacks) numr_stacks = (char*)std::malloc((size_t)NUMR_STACK * 1024);
    for (unsigned i = 0; i < count; ++i) {
        numr_thread& t = numr_threads[i];
        t.index = {i % blockDim.x, i / blockDim.x, 0};
        t.state = NUMR_READY;
        getcontext(&t.context);
        t.context.uc_stack.ss_sp = numr_stacks + (size_t)NUMR_STACK * i;
        t.context.uc_stack.ss_size = NUMR_STACK;
        t.context.uc_link = nullptr;
        makecontext(&t.context, numr_main, 0);
    }
    for (unsigned done = 0; done < count;) {
        bool moved = false, block = true;
        for (unsigned i = 0; i < count; ++i) {
            if (numr_threads[i].state != NUMR_READY) continue;
            moved = true;
            numr_current = numr_threads + i;
            swapcontext(&numr_scheduler, &numr_current->context);
            done += numr_current->state == NUMR_DONE;
        }
        for (unsigned start = 0; start < count; start += 32) {
            bool warp = true;
            for (unsigned i = start; i < start + 32 && i < count; ++i) {
                const int state = numr_threads[i].state;
                warp = warp && (state == NUMR_AT_WARP || state == NUMR_DONE);
                block = block && (state == NUMR_AT_BLOCK || state == NUMR_DONE);
            }
            for (unsigned i = start; warp && i < start + 32 && i < count; ++i)
                if (numr_threads[i].state == NUMR_AT_WARP) numr_threads[i].state = NUMR_READY, moved = true;
        }
        for (unsigned i = 0; block && i < count; ++i)
            if (numr_threads[i].state == NUMR_AT_BLOCK) numr_threads[i].state = NUMR_READY, moved = true;
        if (!moved) return false;
    }
    return true;
}
"""

_CACHE = Path(tempfile.gettempdir()) / "numr-cuda-on-host"
_KERNEL = re.compile(
    r'extern "C" __global__ void __launch_bounds__\([^)]*\) (\w+)\((.*?)\) \{', re.DOTALL
)


def compiled(source: str, optimise: str = "-O1") -> ctypes.CDLL:
    """The library of a C++ source, which is kept for later runs of the tests."""
    assert COMPILER is not None
    flags = [optimise, "-std=c++17", "-ffp-contract=off", "-fno-strict-aliasing", "-w", "-fPIC"]
    flags.append("-shared")
    text = SHIM + source
    name = hashlib.sha256(repr((text, flags)).encode()).hexdigest()[:32]
    _CACHE.mkdir(exist_ok=True)
    library = _CACHE / f"{name}.so"
    if not library.exists():
        with tempfile.TemporaryDirectory(dir=_CACHE) as folder:
            file = Path(folder) / "kernel.cpp"
            file.write_text(text)
            built = Path(folder) / "kernel.so"
            command = [COMPILER, *flags, str(file), "-o", str(built)]
            subprocess.run(command, check=True, capture_output=True, text=True)
            built.replace(library)
    return ctypes.CDLL(str(library))


class HostKernel:
    """A kernel of a text, whose blocks run one after the other."""

    def __init__(self, source: str, layout: str) -> None:
        text = source.replace(cuda.PRELUDE, "")
        text = re.sub(r"extern __shared__ (.*)\[\];", r"static \1[1 << 18];", text)
        ((name, parameters),) = _KERNEL.findall(text)
        kinds = [re.sub(r"\s*\w+$", "", part.strip()) for part in parameters.split(",")]
        arguments = ", ".join(
            f"*({kind if '*' in kind else kind.replace('const ', '')}*)numr_given[{i}]"
            for i, kind in enumerate(kinds)
        )
        library = compiled(
            f"{THREADS}namespace {{\n{text}}}\nstatic void** numr_given;\n"
            f"static void numr_call() {{ {name}({arguments}); }}\n"
            'extern "C" int numr_run(void** given, unsigned grid_x, unsigned grid_y, unsigned block_x, '
            "unsigned block_y) {\n"
            "    numr_given = given; numr_body = numr_call;\n"
            "    gridDim = {grid_x, grid_y, 1}; blockDim = {block_x, block_y, 1};\n"
            "    for (unsigned y = 0; y < grid_y; ++y) for (unsigned x = 0; x < grid_x; ++x) {\n"
            "        blockIdx = {x, y, 0};\n        if (!numr_run_block()) return 0;\n    }\n    return 1;\n}\n"
        )
        self._run = library.numr_run
        self._struct = Struct(f"<{layout}")
        self.count = len(kinds)
        self.has_tail = layout.endswith("s")

    def __call__(self, grid: tuple[int, int], block: tuple[int, int], values: Any) -> None:
        data = ctypes.create_string_buffer(self._struct.pack(*values))
        start = ctypes.addressof(data)
        slots = (ctypes.c_void_p * self.count)(*range(start, start + 16 * self.count, 16))
        assert self._run(slots, *grid, *block), "all threads wait"


class HostArray:
    """An array in host memory with what kernels' drivers ask of CuPy's arrays."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array
        self.shape, self.strides, self.dtype = array.shape, array.strides, array.dtype
        self.size, self.ndim, self.itemsize = array.size, array.ndim, array.itemsize
        self.data = types.SimpleNamespace(ptr=array.ctypes.data)
        self._c_contiguous = array.flags.c_contiguous
        self._f_contiguous = array.flags.f_contiguous

    @property
    def T(self) -> HostArray:
        return HostArray(self.array.T)


class HostContext:
    """What kernels' drivers use of ``DeviceContext``, in host memory."""

    processors = 2
    shared_limit = 1 << 16

    def __init__(self) -> None:
        self._kernels: dict[str, HostKernel] = {}
        self._kept: list[Any] = []
        self.launches = 0
        self.allocator = types.SimpleNamespace(pointer=self._pointer)
        self.compiler = types.SimpleNamespace(
            kernel=self.kernel, laid_out=lambda text, layout: HostKernel(text, layout)
        )
        self.tickets = self._pointer(1 << 16).ptr
        self.set_bytes(self.tickets, 0, 1 << 16)

    def _pointer(self, size: int) -> Any:
        memory = aligned(size)
        memory[:] = 0xA5
        self._kept.append(memory)
        return types.SimpleNamespace(ptr=memory.ctypes.data, memory=memory)

    def kernel(self, source: str, arguments: int, tail: int = 0, shared: int = 0) -> HostKernel:
        assert shared <= self.shared_limit
        if source not in self._kernels:
            layout = "q8x" * arguments + (f"{tail}s" if tail else "")
            self._kernels[source] = HostKernel(source, layout)
        return self._kernels[source]

    def launch(self, kernel: HostKernel, *numbers: Any) -> None:
        grid_x, grid_y, block_x, block_y, *values = numbers
        self.launches += 1
        kernel((grid_x, grid_y), (block_x, block_y), values)

    def array(self, shape: Any, dtype: Any, pointer: Any, strides: Any = None) -> HostArray:
        return HostArray(np.ndarray(shape, dtype, pointer.memory.data, 0, strides))

    def empty(self, shape: Any, dtype: Any) -> HostArray:
        return self.array(shape, dtype, self._pointer(int(np.prod(shape)) * dtype.itemsize))

    def current(self) -> Any:
        return contextlib.nullcontext()

    def synchronize(self) -> None:
        """Kernels have run when a launch returns."""

    def set_bytes(self, ptr: int, value: int, size: int) -> None:
        ctypes.memset(ptr, value, size)

    @contextlib.contextmanager
    def report(self) -> Any:
        values = np.zeros(4, np.int64)
        yield types.SimpleNamespace(values=values, ptr=values.ctypes.data)


def aligned(size: int) -> np.ndarray[Any, Any]:
    """Bytes that start at a multiple of 512, as the driver's memory does."""
    raw = np.empty(size + 512, np.uint8)
    start = -raw.ctypes.data % 512
    return raw[start : start + size]


def on_host(array: np.ndarray[Any, Any], offset: int = 0) -> HostArray:
    """A copy in aligned memory, or some elements beyond a multiple of the alignment."""
    memory = aligned((array.size + offset) * array.itemsize)
    copy = memory[offset * array.itemsize :].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return HostArray(copy)
