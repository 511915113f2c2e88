"""Running sums, products, maxima and minima along an axis.

Where many lines lie side by side in memory, a thread runs along each. Else a block of threads scans a piece of a line,
and further kernels add to each piece what came before it.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from numr.runtime.cuda import texts
from numr.runtime.cuda.folding import ACCUMULATOR_BYTES, Fold
from numr.runtime.cuda.reductions import Plan
from numr.runtime.cuda.texts import BLOCK

if TYPE_CHECKING:
    from numr.runtime.cuda.context import DeviceContext

__all__ = ["scan_into"]

#: Elements of a line that one block scans.
_PIECE: Final = 1 << 14
#: Lines side by side from which one thread runs along each.
_MANY: Final = 1024


def scan_into(context: DeviceContext, fold: Fold, array: Any, axis: int, out: Any) -> None:
    """Scan an array along an axis into a C-contiguous one of its shape."""
    if not out.size:
        return
    source, target = Plan(array, (axis,)), Plan(out, (axis,))
    shape = array.shape
    kept = [i for i in range(array.ndim) if i != axis]
    lengths = [shape[i] for i in kept]
    steps = [array.strides[i] for i in kept]
    out_steps = [out.strides[i] for i in kept]
    walk = texts.Walk(tuple(lengths), [tuple(steps), tuple(out_steps)], source.outputs)
    side_by_side = source.by_threads and source.outputs >= _MANY
    pieces = 1 if side_by_side else -(-source.length // _PIECE)
    chunk = source.length if side_by_side else min(source.length, _PIECE)
    line = array.strides[axis], out.strides[axis]
    text = _text(fold, side_by_side, walk.rank)
    with context.current():
        scan, carry, add = context.compiler.functions(text, "numr_kernel", "numr_carry", "numr_add")
        partial = context.allocator.pointer(
            ACCUMULATOR_BYTES * source.outputs * pieces if pieces > 1 else 0
        )
        dims = walk.packed()
        arguments = [array.data.ptr, out.data.ptr, partial.ptr, target.outputs, source.length]
        arguments += [chunk, *line, dims]
        blocks = -(-source.outputs // BLOCK) if side_by_side else source.outputs
        scan((blocks, pieces), (BLOCK,), arguments, 0, context.stream)
        if pieces > 1:
            arguments = [partial.ptr, source.outputs, pieces]
            carry((-(-source.outputs // BLOCK),), (BLOCK,), arguments, 0, context.stream)
            arguments = [out.data.ptr, partial.ptr, source.outputs, source.length, chunk]
            arguments += [line[1], dims]
            add((source.outputs, pieces - 1), (BLOCK,), arguments, 0, context.stream)


@cache
def _text(fold: Fold, side_by_side: bool, rank: int) -> str:
    memory, result = texts.memory_type(fold.source), texts.memory_type(fold.result)
    element = f"*(const {memory}*)(in + at0 + j * in_step)"
    target = f"*({result}*)(out + at1 + j * out_step)"
    if side_by_side:
        body = (
            f"    const long long o = (long long)blockIdx.x * {BLOCK} + threadIdx.x;\n"
            "    if (o >= outputs) return;\n"
            f"{texts.walk(rank, 2, 'o', True)}"
            "    numr_acc acc = numr_none();\n"
            "    for (long long j = 0; j < length; ++j) {\n"
            f"        acc = numr_join(acc, numr_take({element}, j));\n"
            f"{fold.finish(target, 'acc', '        ')}    }}\n"
        )
    else:
        body = (
            f"    __shared__ numr_acc shared[{BLOCK}];\n"
            "    const long long o = blockIdx.x;\n"
            f"{texts.walk(rank, 2, 'o', True)}"
            "    const long long start = (long long)blockIdx.y * chunk;\n"
            "    const long long end = start + chunk < length ? start + chunk : length;\n"
            "    numr_acc before = numr_none();\n"
            f"    for (long long tile = start; tile < end; tile += {BLOCK}) {{\n"
            "        const long long j = tile + threadIdx.x;\n"
            "        numr_acc acc = numr_none();\n"
            f"        if (j < end) acc = numr_take({element}, j);\n"
            "        shared[threadIdx.x] = acc;\n        __syncthreads();\n"
            f"        for (int step = 1; step < {BLOCK}; step <<= 1) {{\n"
            "            acc = shared[threadIdx.x];\n"
            "            if (threadIdx.x >= step) acc = numr_join(shared[threadIdx.x - step], acc);\n"
            "            __syncthreads();\n            shared[threadIdx.x] = acc;\n"
            "            __syncthreads();\n        }\n"
            "        acc = numr_join(before, acc);\n"
            f"        before = numr_join(before, shared[{BLOCK - 1}]);\n"
            "        if (j < end) {\n"
            f"{fold.finish(target, 'acc', '            ')}        }}\n"
            "        __syncthreads();\n    }\n"
            "    if (gridDim.y > 1 && threadIdx.x == 0) "
            "partial[(long long)blockIdx.y * outputs + o] = before;\n"
        )
    return (
        f"{texts.head()}{texts.dims_type(rank, 2)}{fold.declarations()}"
        f"{fold.taker('numr_again', fold.result)}"
        f'extern "C" __global__ void __launch_bounds__({BLOCK}) numr_kernel('
        "const char* in, char* out, numr_acc* partial, const long long outputs, "
        "const long long length, const long long chunk, const long long in_step, "
        f"const long long out_step, const numr_dims dims) {{\n{body}}}\n"
        f'extern "C" __global__ void __launch_bounds__({BLOCK}) numr_carry('
        "numr_acc* partial, const long long outputs, const long long pieces) {\n"
        f"    const long long o = (long long)blockIdx.x * {BLOCK} + threadIdx.x;\n"
        "    if (o >= outputs) return;\n"
        "    numr_acc acc = partial[o];\n"
        "    for (long long s = 1; s < pieces; ++s) {\n"
        "        acc = numr_join(acc, partial[s * outputs + o]);\n"
        "        partial[s * outputs + o] = acc;\n    }\n}\n"
        f'extern "C" __global__ void __launch_bounds__({BLOCK}) numr_add('
        "char* out, const numr_acc* partial, const long long outputs, const long long length, "
        "const long long chunk, const long long out_step, const numr_dims dims) {\n"
        "    const long long o = blockIdx.x;\n"
        f"{texts.walk(rank, 2, 'o', True)}"
        "    const numr_acc before = partial[(long long)blockIdx.y * outputs + o];\n"
        "    const long long start = ((long long)blockIdx.y + 1) * chunk;\n"
        "    const long long end = start + chunk < length ? start + chunk : length;\n"
        f"    for (long long j = start + threadIdx.x; j < end; j += {BLOCK}) {{\n"
        f"        const numr_acc acc = numr_join(before, numr_again({target}, j));\n"
        f"{fold.finish(target, 'acc', '        ')}    }}\n}}\n"
    )
