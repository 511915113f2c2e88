"""Kernels of fused computations, run by the host's compiler, against their operations by themselves: equal bit for bit."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import numpy as np
import pytest

from numr import dtypes as dt
from numr.codegen import cuda
from numr.ir import ops
from numr.ir.fused import Computation, Source, Step
from numr.ir.ops import Signature
from numr.runtime.cuda import texts
from numr.runtime.cuda.fused import texts_of
from numr.runtime.cuda.geometry import geometry
from tests.unit.cuda_on_host import COMPILER, compiled

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")

Array = np.ndarray[Any, Any]

_SHIM = """
#define __align__(n) alignas(n)
#define __umulhi(a, b) (unsigned)(((unsigned long long)(a) * (b)) >> 32)
"""

F32, F64, I32, BOOL = dt.float32, dt.float64, dt.int32, dt.bool_

#: ``x * s + y`` as float32, ``x > y``, and the sum as float64.
MIXED = Computation(
    (Source(F32, True), Source(I32, True), Source(F32, False)),
    (
        Step(ops.MULTIPLY, Signature(F32, F32), (0, 2)),
        Step(ops.ADD, Signature(F32, F32), (3, 1)),
        Step(ops.GREATER, Signature(F32, BOOL), (0, 1)),
        Step(None, Signature(F32, F64), (4,)),
    ),
    (4, 5, 6),
)
#: Complex numbers, and a real number made of them.
COMPLEX = Computation(
    (Source(dt.complex64, True), Source(dt.complex64, False)),
    (
        Step(ops.MULTIPLY, Signature(dt.complex64, dt.complex64), (0, 1)),
        Step(ops.REAL, Signature(dt.complex64, F32), (2,)),
    ),
    (2, 3),
)


def launch(computation: Computation, operands: list[Any], results: list[Array]) -> str:
    """Run the kernel that a device would run, thread after thread; its variant."""
    shape = results[-1].shape
    printer = texts_of(computation)
    arrays = [x for x in operands if isinstance(x, np.ndarray)]
    views = [np.broadcast_to(x, shape) for x in arrays]
    aligned = all(x.ctypes.data % 16 == 0 for x in (*arrays, *results))
    plan = geometry(
        shape,
        tuple(x.strides for x in (*views, *results)),
        tuple(x.itemsize for x in (*views, *results)),
        printer.vector,
        printer.unroll,
        aligned,
    )
    kind, *parameters = plan.variant
    assert kind == "rows"
    text = printer.rows(*parameters)
    # The instructions for float16 are the host's own.
    text = text.replace(cuda.PRELUDE, _SHIM)
    has_dims = bool(parameters[2]) or "s" in str(parameters[1])
    given: list[str] = []
    for i, x in enumerate(operands):
        memory = texts.memory_type(computation.sources[i].dtype)
        given.append(
            f"*({memory}*)slots[{i}]" if not isinstance(x, np.ndarray) else f"({memory}*)slots[{i}]"
        )
    for k, x in enumerate(results, len(operands)):
        given.append(f"({texts.memory_type(x.dtype)}*)slots[{k}]")
    given += [f"{number}ll" for number in plan.numbers]
    if has_dims:
        given.append("*(numr_dims*)dims")
    across, down = plan.block
    text += (
        'extern "C" void run(void** slots, void* dims) {\n'
        f"    blockDim.x = {across}; blockDim.y = {down}; gridDim.x = {plan.grid};\n"
        f"    for (unsigned b = 0; b < {plan.grid}u; ++b)\n"
        f"    for (unsigned y = 0; y < {down}u; ++y)\n"
        f"    for (unsigned x = 0; x < {across}u; ++x) {{\n"
        "        blockIdx.x = b; threadIdx.x = x; threadIdx.y = y;\n"
        f"        numr_kernel({', '.join(given)});\n    }}\n}}\n"
    )
    library = compiled(text)
    held: list[Any] = []
    slots = (ctypes.c_void_p * (len(operands) + len(results)))()
    for i, x in enumerate([*operands, *results]):
        if not isinstance(x, np.ndarray):
            x = np.asarray(x, computation.sources[i].dtype)
        held.append(x)
        slots[i] = x.ctypes.data
    library.run(slots, ctypes.create_string_buffer(plan.dims, max(len(plan.dims), 8)))
    return "".join(map(str, plan.variant))


def numbers(*shape: int, dtype: Any = F32, seed: int = 0) -> Array:
    values = np.random.default_rng(seed).normal(scale=100, size=shape)
    return values.astype(dtype)


def mixed(x: Array, y: Array, s: float) -> list[Array]:
    """What ``MIXED`` means, by NumPy."""
    total = x * np.float32(s) + y.astype(F32)
    return [total, x > y.astype(F32), total.astype(F64)]


def check_mixed(x: Array, y: Array, results: list[Array]) -> str:
    variant = launch(MIXED, [x, y, 1.7], results)
    for got, expected in zip(results, mixed(x, y, 1.7), strict=True):
        assert np.array_equal(got, np.broadcast_to(expected, got.shape))
    return variant


def new(*shape: int, start: int = 0) -> list[Array]:
    """Results for ``MIXED``, which start some elements into their memory."""
    size = int(np.prod(shape))
    return [np.zeros(size + start, t)[start:].reshape(shape) for t in (F32, BOOL, F64)]


@pytest.mark.parametrize("size", [1, 7, 256, 1024, 5000])
def test_several_results_in_vectors(size):
    variant = check_mixed(numbers(size), numbers(size, dtype=I32, seed=1), new(size))
    assert variant == "rowsTrueccccc0False"


def test_unaligned_memory():
    x, y = numbers(1001)[1:], numbers(1001, dtype=I32, seed=1)[1:]
    assert check_mixed(x, y, new(1000, start=1)) == "rowsFalseccccc0False"


def test_broadcast_and_strided_operands():
    x, y = numbers(30, 1), numbers(40, dtype=I32, seed=1)
    assert "0" in check_mixed(x, y, new(30, 40))
    check_mixed(numbers(30, 80)[:, ::2], numbers(30, 40, dtype=I32)[::-1], new(30, 40))
    check_mixed(numbers(30, 40)[::-1, ::-1], numbers(1, 1, dtype=I32), new(30, 40))
    check_mixed(numbers(3, 1, 5, 1), numbers(4, 1, 6, dtype=I32), new(3, 4, 5, 6))


def test_results_in_views():
    results = [x[::2, 1::3] for x in new(20, 31)]
    check_mixed(numbers(10, 10), numbers(10, 10, dtype=I32), results)


def test_a_result_may_be_an_operand():
    x, y = numbers(500), numbers(500, dtype=I32, seed=1)
    expected = mixed(x, y, 1.7)
    results = new(500)
    results[0][...] = x
    launch(MIXED, [results[0], y, 1.7], results)
    for got, exact in zip(results, expected, strict=True):
        assert np.array_equal(got, exact)


def test_complex_numbers_and_scalars():
    x = (numbers(300) + 1j * numbers(300, seed=1)).astype(np.complex64)
    results = [np.zeros(300, np.complex64), np.zeros(300, F32)]
    launch(COMPLEX, [x, 2 - 3j], results)
    s = np.complex64(2 - 3j)
    real = x.real * s.real - x.imag * s.imag
    imag = x.real * s.imag + x.imag * s.real
    assert np.array_equal(results[0].real, real)
    assert np.array_equal(results[0].imag, imag)
    assert np.array_equal(results[1], real)


def test_long_computations_hold_fewer_elements():
    x = Source(F64, True)
    both = Signature(F64, F64)
    short = texts_of(Computation((x,), (Step(ops.SQUARE, both, (0,)),), (1,)))
    steps = tuple(Step(ops.SIN, both, (i,)) for i in range(41))
    long = texts_of(Computation((x,), steps, (41,)))
    assert long.vector * long.unroll < short.vector * short.unroll
    assert struct.calcsize("d") * short.vector == texts.VECTOR
