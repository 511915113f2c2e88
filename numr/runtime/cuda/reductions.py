"""Reductions over any axes, by kernels that read memory in its order.

Where neighbours in memory are reduced into one result, a block of threads works on each result; where they belong to
different results, one thread does. Long reductions of few results are split, and their parts joined by a second kernel.
The order in which values are joined depends on shape and strides alone, so that results are the same in each run.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from numr.layout.strides import merge_axes
from numr.runtime.cuda import texts
from numr.runtime.cuda.folding import ACCUMULATOR_BYTES, Fold
from numr.runtime.cuda.texts import BLOCK

if TYPE_CHECKING:
    from numr.runtime.cuda.context import DeviceContext

__all__ = ["Plan", "reduce_into"]

#: Blocks that keep a device busy.
_BUSY: Final = 2048
#: Loads that one thread has under way.
_UNROLL: Final = 4
#: Partial results that may exist at a time.
_PARTIALS: Final = 1 << 21
#: A block of 32 threads is enough for reductions up to this length.
_SHORT: Final = 512
#: Up to this length one thread reduces neighbours in memory quicker than a block.
_TINY: Final = 32


class Plan:
    """How an array is walked through: ``kept`` axes give the results, ``reduced`` ones their elements."""

    def __init__(self, array: Any, axes: tuple[int, ...]) -> None:
        shape, strides = array.shape, array.strides
        kept = [axis for axis in range(array.ndim) if axis not in axes]
        self.outputs = self.length = 1
        for axis in range(array.ndim):
            if axis in axes:
                self.length *= shape[axis]
            else:
                self.outputs *= shape[axis]
        if not self.outputs or not self.length:
            self.kept: tuple[list[int], list[int]] = ([], [])
            self.reduced: tuple[list[int], list[int]] = ([], [])
            return
        self.kept = _merged(shape, strides, kept)
        self.reduced = _merged(shape, strides, axes)

    @property
    def by_threads(self) -> bool:
        """Whether one thread computes a result by itself, since neighbours in memory belong to different results."""
        if self.length <= _TINY:
            return self.outputs >= BLOCK
        nearest_kept = min((abs(s) for s in self.kept[1] if s), default=1 << 62)
        nearest_reduced = min((abs(s) for s in self.reduced[1] if s), default=1 << 62)
        return nearest_kept < nearest_reduced and self.outputs >= 32


def _merged(
    shape: tuple[int, ...], strides: tuple[int, ...], axes: Any
) -> tuple[list[int], list[int]]:
    lengths, (steps,) = merge_axes(
        tuple(shape[axis] for axis in axes), [tuple(strides[axis] for axis in axes)]
    )
    return lengths, steps


def _padded(rank: int, lengths: list[int], steps: list[int]) -> Any:
    missing = rank - len(lengths)
    return texts.pack([1] * missing + lengths + [0] * missing + steps)


def _rank(lengths: list[int]) -> int:
    return next(rank for rank in (1, 2, 3, 4, 64) if len(lengths) <= rank)


def reduce_into(
    context: DeviceContext, fold: Fold, array: Any, axes: tuple[int, ...], out: Any
) -> None:
    """Reduce an array over axes into a C-contiguous one that has as many elements as there are results."""
    plan = Plan(array, axes)
    if not plan.outputs:
        return
    threads = plan.by_threads
    width = 32 if not threads and plan.length <= _SHORT else BLOCK
    blocks = -(-plan.outputs // BLOCK) if threads else plan.outputs
    per_part = 64 if threads else width * 16
    splits = min(
        -(-_BUSY // blocks),
        -(-plan.length // per_part),
        max(1, _PARTIALS // plan.outputs),
        1024,
    )
    splits = max(1, splits)
    chunk = -(-plan.length // splits)
    ranks = _rank(plan.kept[0]), _rank(plan.reduced[0])
    source = _text(fold, threads, width, *ranks, plan.length >= 1 << 31)
    with context.current():
        kernel, finish = context.compiler.functions(source, "numr_kernel", "numr_finish")
        partial = context.allocator.pointer(
            ACCUMULATOR_BYTES * plan.outputs * splits if splits > 1 else 0
        )
        arguments = [array.data.ptr, out.data.ptr, partial.ptr, plan.outputs, plan.length, chunk]
        arguments += [_padded(ranks[0], *plan.kept), _padded(ranks[1], *plan.reduced)]
        kernel((blocks, splits), (width,), arguments, 0, context.stream)
        if splits > 1:
            arguments = [partial.ptr, out.data.ptr, plan.outputs, splits]
            finish((-(-plan.outputs // BLOCK),), (BLOCK,), arguments, 0, context.stream)


@cache
def _text(
    fold: Fold, threads: bool, width: int, kept_rank: int, reduced_rank: int, wide: bool
) -> str:
    memory, result = texts.memory_type(fold.source), texts.memory_type(fold.result)
    parameters = (
        f"const char* in, {result}* out, numr_acc* partial, const long long outputs, "
        "const long long length, const long long chunk, const numr_kept kept, const numr_reduced reduced"
    )
    step = 1 if threads else width
    first = "start" if threads else "start + threadIdx.x"
    loads = "".join(
        f"        const {memory} e{u} = numr_read(in + base, reduced, j + {u * step});\n"
        for u in range(_UNROLL)
    )
    joins = "".join(
        f"        acc = numr_merge(acc, numr_take(e{u}, j + {u * step}));\n" for u in range(_UNROLL)
    )
    place = f"(long long)blockIdx.x * {BLOCK} + threadIdx.x" if threads else "(long long)blockIdx.x"
    write = (
        f"if (gridDim.y == 1) {{ {fold.empty()}\n{fold.finish('out[o]', 'acc', '        ')}"
        "    } else partial[(long long)blockIdx.y * outputs + o] = acc;\n"
    )
    if threads:
        ending = f"    {write}"
    else:
        ending = (
            f"    __shared__ numr_acc shared[{width}];\n"
            "    shared[threadIdx.x] = acc;\n    __syncthreads();\n"
            f"    for (int half = {width // 2}; half > 0; half >>= 1) {{\n"
            "        if (threadIdx.x < half) shared[threadIdx.x] = "
            "numr_join(shared[threadIdx.x], shared[threadIdx.x + half]);\n"
            "        __syncthreads();\n    }\n"
            "    if (threadIdx.x != 0) return;\n"
            "    acc = shared[0];\n"
            f"    {write}"
        )
    return (
        f"{texts.head()}{texts.dims_type(kept_rank, 1, 'numr_kept')}"
        f"{texts.dims_type(reduced_rank, 1, 'numr_reduced')}{fold.declarations()}"
        f"__device__ __forceinline__ {memory} numr_read("
        "const char* base, const numr_reduced& dims, const long long j) {\n"
        f"{texts.walk(reduced_rank, 1, 'j', wide)}"
        f"    return *(const {memory}*)(base + at0);\n}}\n"
        "__device__ __forceinline__ long long numr_base(const numr_kept& dims, const long long o) {\n"
        f"{texts.walk(kept_rank, 1, 'o', True)}"
        "    return at0;\n}\n"
        f'extern "C" __global__ void __launch_bounds__({width}) numr_kernel({parameters}) {{\n'
        f"    const long long o = {place};\n"
        + ("    if (o >= outputs) return;\n" if threads else "")
        + "    const long long base = numr_base(kept, o);\n"
        "    const long long start = (long long)blockIdx.y * chunk;\n"
        "    const long long end = start + chunk < length ? start + chunk : length;\n"
        "    numr_acc acc = numr_none();\n"
        f"    long long j = {first};\n"
        f"    if (j < end) {{\n        acc = numr_take(numr_read(in + base, reduced, j), j);\n        j += {step};\n    }}\n"
        f"    for (; j + {(_UNROLL - 1) * step} < end; j += {_UNROLL * step}) {{\n{loads}{joins}    }}\n"
        f"    for (; j < end; j += {step}) {{\n"
        "        acc = numr_merge(acc, numr_take(numr_read(in + base, reduced, j), j));\n    }\n"
        f"{ending}}}\n"
        f'extern "C" __global__ void __launch_bounds__({BLOCK}) numr_finish('
        f"const numr_acc* partial, {result}* out, const long long outputs, const long long splits) {{\n"
        f"    const long long o = (long long)blockIdx.x * {BLOCK} + threadIdx.x;\n"
        "    if (o >= outputs) return;\n"
        "    numr_acc acc = partial[o];\n"
        "    for (long long s = 1; s < splits; ++s) acc = numr_join(acc, partial[s * outputs + o]);\n"
        f"{fold.finish('out[o]', 'acc')}}}\n"
    )
