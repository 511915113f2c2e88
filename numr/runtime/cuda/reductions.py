"""Reductions over any axes, by kernels that read memory in its order.

Where neighbours in memory are reduced into one result, a block of threads works on each result, or a few threads on a
short one; where they belong to different results, threads side by side do. Long reductions of few results are split,
and the last block to end joins the parts. Values are joined in an order that depends on shape, strides and alignment
alone, so that results are the same in each run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from numr import dtypes as dt
from numr.dtypes import DType
from numr.ir.ops import Reduction
from numr.layout.strides import merge_axes
from numr.runtime.cuda import texts
from numr.runtime.cuda.folding import BLOCK_JOIN, GROUP_JOIN, Fold, lines_join
from numr.runtime.cuda.texts import BLOCK, NARROW, VECTOR, power_of_two

if TYPE_CHECKING:
    from numr.runtime.cuda.compiler import Kernel
    from numr.runtime.cuda.context import DeviceContext

__all__ = [
    "TICKETS",
    "Plan",
    "Reading",
    "launch",
    "plan_for",
    "reduce_into",
    "reduced_dtype",
    "reduced_shape",
    "text_of",
    "vector_of",
]

#: Blocks that keep a device busy, of those that work on one result and of those on results side by side.
_BUSY: Final = 512
_BUSY_ACROSS: Final = 1024
#: Groups of blocks that share results, at most.
TICKETS: Final = _BUSY_ACROSS
#: Loads that one thread has under way.
_UNROLL: Final = 8
#: Loads that a thread takes of each result where they are few, and results that it works on.
_LOADS: Final = 2
_RESULTS: Final = 4
#: Vectors of a result that a warp reduces by itself.
_SHORT: Final = 512
#: Elements that a thread holds of a vector where each belongs to another result.
_SIDE_BY_SIDE: Final = 4
#: Elements of each result that a line of threads takes at least.
_PER_LINE: Final = 8


class Plan(NamedTuple):
    """How an array is walked through: ``kept`` axes give the results, ``reduced`` ones their elements."""

    #: The text: :func:`_columns`, or :func:`_few`, :func:`_warps` and :func:`_blocks` by how long a result takes.
    kind: str
    #: What else the text depends on: whether vectors are read, ranks of kept and reduced axes, and whether elements
    #: are counted in 64 bits.
    variant: tuple[bool, int, int, bool]
    outputs: int
    length: int
    grid: tuple[int, int]
    #: Threads that work on one result; with columns, threads side by side.
    lanes: int
    #: Elements of a result that one block reduces.
    chunk: int
    dims: bytes


@lru_cache(maxsize=4096)
def plan_for(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    axes: tuple[int, ...],
    itemsize: int,
    aligned: bool,
) -> Plan:
    """Plan the way through an array that has elements; strides are in bytes.

    The result depends on nothing else, and so does the order in which values are joined.
    """
    kept, kept_steps = _merged(shape, strides, tuple(i for i in range(len(shape)) if i not in axes))
    reduced, reduced_steps = _merged(shape, strides, axes)
    outputs, length = _product(kept), _product(reduced)
    nearest_kept = min((abs(s) for s in kept_steps if s), default=1 << 62)
    nearest_reduced = min((abs(s) for s in reduced_steps if s), default=1 << 62)
    columns = nearest_kept < nearest_reduced and outputs > 1
    vector = VECTOR // itemsize
    if columns:
        vector = min(vector, _SIDE_BY_SIDE)
    along, across = ((kept, kept_steps), (reduced, reduced_steps))[:: 1 if columns else -1]
    whole = (
        aligned
        and vector > 1
        and along[1][-1:] == [itemsize]
        and (along[0][-1] % vector == 0 or (not columns and len(along[0]) == 1))
        and all(step % (vector * itemsize) == 0 for step in (*along[1][:-1], *across[1]))
    )
    vector = vector if whole else 1
    ranks = texts.rank_for(len(kept)), texts.rank_for(len(reduced))
    kind = "columns"
    if columns:
        widest = max(32, BLOCK // power_of_two(-(-length // _PER_LINE)))
        lanes = min(power_of_two(-(-outputs // vector)), widest)
        blocks = -(-outputs // (lanes * vector))
        per_part = BLOCK // lanes * _PER_LINE
    else:
        vectors = -(-length // vector)
        lanes = BLOCK if vectors > _SHORT else min(power_of_two(-(-vectors // _LOADS)), 32)
        kind = "blocks" if lanes == BLOCK else "few" if vectors <= lanes * _LOADS else "warps"
        blocks = -(-outputs // (BLOCK // lanes * (_RESULTS if kind == "few" else 1)))
        per_part = BLOCK * vector * _UNROLL
    splits = 1
    if kind in ("columns", "blocks"):
        busy = _BUSY_ACROSS if columns else _BUSY
        splits = max(1, min(busy // blocks, -(-length // per_part)))
    chunk = -(-length // splits)
    if not columns:
        chunk = -(-chunk // (BLOCK * vector)) * BLOCK * vector
    splits = -(-length // chunk)
    dims = texts.pack_dims(ranks[0], kept, [kept_steps])
    dims += texts.pack_dims(ranks[1], reduced, [reduced_steps])
    wide = max(outputs, length) >= NARROW
    return Plan(kind, (whole, *ranks, wide), outputs, length, (blocks, splits), lanes, chunk, dims)


def _product(lengths: list[int]) -> int:
    product = 1
    for n in lengths:
        product *= n
    return product


def _merged(
    shape: tuple[int, ...], strides: tuple[int, ...], axes: tuple[int, ...]
) -> tuple[list[int], list[int]]:
    lengths, (steps,) = merge_axes(
        tuple(shape[axis] for axis in axes), [tuple(strides[axis] for axis in axes)]
    )
    return lengths, steps


class Reading(NamedTuple):
    """How kernels come by elements: from memory, unless something else is said.

    Parameters
    ----------
    parameters : str
        The kernel's first parameters.
    place : str
        The type that says where an element is: bytes are added to it.
    types, given : str
        Declarations, and a further field of ``numr_dims``.
    start : str
        Statements at the kernel's begin: they say which place is ``numr_first``, and what ``numr_row_at`` and
        ``numr_element_at`` of a place are, unless ``types`` do so.
    unroll : int
        How many vectors of a result a thread reads before it joins them. The order of joining is the same for all.
    """

    parameters: str
    place: str
    types: str
    given: str
    start: str
    unroll: int


@cache
def _from_memory(memory: str) -> Reading:
    """Elements of a type as they lie in memory."""
    types = (
        "__device__ __forceinline__ numr_row_type numr_row_at(const char* const at) {\n"
        "    return *(const numr_row_type*)at;\n}\n"
        f"__device__ __forceinline__ {memory} numr_element_at(const char* const at) {{\n"
        f"    return *(const {memory}*)at;\n}}\n"
    )
    start = "    const char* const numr_first = in;\n"
    return Reading("const char* in", "const char*", types, "", start, _UNROLL)


def reduced_dtype(kind: Reduction, source: DType, dtype: DType) -> DType:
    """The dtype of a reduction's results, ``dtype`` where that is a choice."""
    if kind in (Reduction.ANY, Reduction.ALL):
        return dt.bool_
    return source if kind in (Reduction.MAX, Reduction.MIN) else dtype


def reduced_shape(shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    """The shape of a reduction's results."""
    if keepdims:
        return tuple([1 if axis in axes else n for axis, n in enumerate(shape)])
    if len(axes) == len(shape):
        return ()
    return tuple([n for axis, n in enumerate(shape) if axis not in axes])


def reduce_into(
    context: DeviceContext, fold: Fold, array: Any, axes: tuple[int, ...], out: Any
) -> None:
    """Reduce an array that has elements over axes, into a C-contiguous one with as many elements as results."""
    ptr = array.data.ptr
    plan = plan_for(array.shape, array.strides, axes, array.dtype.itemsize, not ptr & 15)
    key = (plan.kind, *plan.variant)
    kernel = fold.kernels.get(key)
    if kernel is None:
        with context.current():
            kernel = context.compiler.kernel(_plain_text(fold, *key), 8, len(plan.dims))
        fold.kernels[key] = kernel
    launch(context, kernel, fold, plan, (ptr,), out, plan.dims)


@cache
def _plain_text(fold: Fold, kind: str, *variant: object) -> str:
    return _TEXTS[kind](fold, _from_memory(texts.memory_type(fold.source)), *variant)


def text_of(fold: Fold, plan: Plan, reading: Reading) -> str:
    """The text of the kernel for a plan."""
    return _TEXTS[plan.kind](fold, reading, *plan.variant)


def vector_of(fold: Fold, plan: Plan) -> int:
    """How many elements ``numr_row_type`` has."""
    return _vector(fold, plan.kind == "columns", plan.variant[0])


def launch(
    context: DeviceContext,
    kernel: Kernel,
    fold: Fold,
    plan: Plan,
    given: Sequence[Any],
    out: Any,
    dims: bytes,
) -> None:
    """Run a kernel on what it reads, with ``dims`` as its last argument."""
    blocks, splits = plan.grid
    size = fold.held * plan.outputs * splits if splits > 1 else 0
    partial = context.allocator.pointer(size)
    context.launch(
        kernel,
        blocks,
        splits,
        BLOCK,
        1,
        *given,
        out.data.ptr,
        partial.ptr,
        context.tickets if size else 0,
        plan.outputs,
        plan.length,
        plan.chunk,
        plan.lanes,
        dims,
    )


def _vector(fold: Fold, columns: bool, whole: bool) -> int:
    vector = VECTOR // fold.source.itemsize if whole else 1
    return min(vector, _SIDE_BY_SIDE) if columns else vector


def _start(
    fold: Fold,
    reading: Reading,
    columns: bool,
    whole: bool,
    kept_rank: int,
    reduced_rank: int,
    wide: bool,
) -> tuple[str, int]:
    """What both kinds of kernels begin with, and how many elements a thread reads at once."""
    memory = texts.memory_type(fold.source)
    vector = _vector(fold, columns, whole)
    row = f"{'numr_vec' if whole else 'numr_row'}<{memory}, {vector}>"
    text = (
        f"{texts.head()}{texts.dims_type(kept_rank, 1, name='numr_kept')}"
        f"{texts.dims_type(reduced_rank, 1, name='numr_reduced')}"
        f"typedef {row} numr_row_type;\ntypedef {reading.place} numr_place;\n{reading.types}"
        f"struct numr_dims {{ numr_kept kept; numr_reduced reduced; {reading.given}}};\n"
        f"{fold.declarations()}"
        "__device__ __forceinline__ long long numr_offset(const numr_dims& dims, const long long j) {\n"
        f"{texts.walk(reduced_rank, 1, 'j', wide, dims='dims.reduced')}    return at0;\n}}\n"
        "__device__ __forceinline__ long long numr_base(const numr_dims& dims, const long long o) {\n"
        f"{texts.walk(kept_rank, 1, 'o', wide, dims='dims.kept')}    return at0;\n}}\n"
    )
    return text, vector


_PARAMETERS: Final = (
    "{given}, {result}* out, numr_acc* partial, unsigned int* tickets, const long long outputs, "
    "const long long length, const long long chunk, const long long lanes, const numr_dims dims"
)

#: Statements after which only the last of the blocks that share results goes on. ``KEEP`` are statements by which it
#: leaves its part behind.
_LAST: Final = """\
        __shared__ bool last;
        KEEP
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) last = atomicAdd(tickets + blockIdx.x, 1u) == gridDim.y - 1;
        __syncthreads();
        if (!last) return;
        __threadfence();
        if (threadIdx.x == 0) tickets[blockIdx.x] = 0;
        const int parts = (int)gridDim.y;
"""


def _few(
    fold: Fold, reading: Reading, whole: bool, kept_rank: int, reduced_rank: int, wide: bool
) -> str:
    """Each of ``lanes`` threads takes few vectors of a result, and some results."""
    start, vector = _start(fold, reading, False, whole, kept_rank, reduced_rank, wide)
    result = texts.memory_type(fold.stored)
    results = (
        f"    #pragma unroll\n    for (int p = 0; p < {_RESULTS}; ++p) {{\n"
        "        const long long o = first + p * groups;\n"
    )
    loads = (
        f"        #pragma unroll\n        for (int c = 0; c < {_LOADS}; ++c) {{\n"
        f"            const int j = (c * width + t) * {vector};\n"
    )
    rest = (
        f"            else for (int e = 0; e < {vector}; ++e) if (j + e < room)\n"
        f"                raw[p][c].v[e] = numr_element_at(from + numr_offset(dims, j + e));\n"
    )
    return (
        f"{start}{GROUP_JOIN}"
        + texts.signature(_PARAMETERS.format(given=reading.parameters, result=result))
        + reading.start
        + f"    const int width = (int)lanes, t = threadIdx.x & (width - 1), groups = {BLOCK} / width;\n"
        f"    const long long first = blockIdx.x * (long long)(groups * {_RESULTS}) + threadIdx.x / width;\n"
        f"    const int valid = min(width, (int)((length + {vector - 1}) / {vector}));\n"
        f"    numr_row_type raw[{_RESULTS}][{_LOADS}];\n"
        f"{results}        const int room = o < outputs ? (int)length : 0;\n"
        "        const numr_place from = numr_first + numr_base(dims, o < outputs ? o : 0);\n"
        f"{loads}            raw[p][c] = numr_row_type();\n"
        f"            if (j + {vector} <= room) raw[p][c] = numr_row_at(from + numr_offset(dims, j));\n"
        f"{rest if vector > 1 else ''}        }}\n    }}\n"
        f"{results}        numr_acc acc = numr_take(raw[p][0].v[0], t * {vector});\n"
        f"{loads}            #pragma unroll\n"
        f"            for (int e = 0; e < {vector}; ++e)\n"
        "                if (c + e > 0 && j + e < length) acc = numr_next(acc, numr_take(raw[p][c].v[e], j + e));\n"
        "        }\n"
        "        acc = numr_group(acc, t, valid, width);\n"
        "        if (t == 0 && o < outputs) {\n"
        f"{fold.finish('out[o]', 'acc', '            ')}        }}\n    }}\n}}\n"
    )


def _warps(
    fold: Fold, reading: Reading, whole: bool, kept_rank: int, reduced_rank: int, wide: bool
) -> str:
    """A warp reduces a result."""
    return _rows(fold, reading, True, whole, kept_rank, reduced_rank, wide)


def _blocks(
    fold: Fold, reading: Reading, whole: bool, kept_rank: int, reduced_rank: int, wide: bool
) -> str:
    """A block reduces a result or its part."""
    return _rows(fold, reading, False, whole, kept_rank, reduced_rank, wide)


def _rows(
    fold: Fold,
    reading: Reading,
    short: bool,
    whole: bool,
    kept_rank: int,
    reduced_rank: int,
    wide: bool,
) -> str:
    """A block of threads reduces one result or its part; ``short`` says that ``lanes`` of a warp do."""
    start, vector = _start(fold, reading, False, whole, kept_rank, reduced_rank, wide)
    result = texts.memory_type(fold.stored)
    element = "numr_take(numr_element_at(from + numr_offset(dims, e)), e)"
    read = "numr_row_at(from + numr_offset(dims, j{}))"
    merges = (
        "            #pragma unroll\n"
        f"            for (int e = 0; e < {vector}; ++e) "
        "acc = numr_next(acc, numr_take({raw}.v[e], j + {shift}e));\n"
    )
    if short:
        place = (
            "    const int width = (int)lanes, t = threadIdx.x & (width - 1);\n"
            "    const long long o = (blockIdx.x * (long long)blockDim.x + threadIdx.x) / width;\n"
            "    const long long start = 0, end = o < outputs ? length : 0;\n"
            "    const numr_place from = numr_first + numr_base(dims, o < outputs ? o : 0);\n"
        )
        end = (
            "    acc = numr_group(acc, t, valid, width);\n    if (t != 0 || o >= outputs) return;\n"
        )
    else:
        keep = "if (threadIdx.x == 0) partial[o * gridDim.y + blockIdx.y] = acc;"
        place = (
            f"    __shared__ numr_acc shared[{BLOCK // 32}];\n"
            f"    const int width = {BLOCK}, t = threadIdx.x;\n"
            "    const long long o = blockIdx.x, start = blockIdx.y * chunk;\n"
            "    const long long end = start + chunk < length ? start + chunk : length;\n"
            "    const numr_place from = numr_first + numr_base(dims, o);\n"
        )
        end = (
            "    acc = numr_block(acc, valid, shared);\n"
            f"    if (gridDim.y > 1) {{\n{_LAST.replace('KEEP', keep)}"
            "        const numr_acc* const mine = partial + o * parts;\n"
            "        if (t < parts) acc = mine[t];\n"
            f"        for (int s = t + {BLOCK}; s < parts; s += {BLOCK}) acc = numr_join(acc, mine[s]);\n"
            f"        acc = numr_block(acc, parts < {BLOCK} ? parts : {BLOCK}, shared);\n    }}\n"
            "    if (t != 0) return;\n"
        )
    return (
        f"{start}{GROUP_JOIN}{'' if short else BLOCK_JOIN}"
        + texts.signature(_PARAMETERS.format(given=reading.parameters, result=result))
        + reading.start
        + place
        + f"    const long long step = (long long)width * {vector};\n"
        f"    const long long vectors = (end - start + {vector - 1}) / {vector};\n"
        "    const int valid = vectors < width ? (int)vectors : width;\n"
        "    numr_acc acc = numr_acc();\n"
        f"    long long j = start + t * {vector};\n"
        f"    if (j + {vector} <= end) {{\n"
        f"        const numr_row_type raw = {read.format('')};\n"
        "        acc = numr_take(raw.v[0], j);\n"
        "        #pragma unroll\n"
        f"        for (int e = 1; e < {vector}; ++e) acc = numr_next(acc, numr_take(raw.v[e], j + e));\n"
        "        j += step;\n"
        f"        for (; j + {reading.unroll - 1} * step + {vector} <= end; j += {reading.unroll} * step) {{\n"
        f"            numr_row_type raw[{reading.unroll}];\n"
        "            #pragma unroll\n"
        f"            for (int u = 0; u < {reading.unroll}; ++u) raw[u] = {read.format(' + u * step')};\n"
        "            #pragma unroll\n"
        f"            for (int u = 0; u < {reading.unroll}; ++u)\n"
        f"{merges.format(raw='raw[u]', shift='u * step + ')}"
        "        }\n"
        f"        for (; j + {vector} <= end; j += step) {{\n"
        f"            const numr_row_type raw = {read.format('')};\n"
        f"{merges.format(raw='raw', shift='')}"
        "        }\n"
        "    } else if (j < end) {\n"
        f"        long long e = j;\n        acc = {element};\n"
        f"        for (++e; e < end; ++e) acc = numr_next(acc, {element});\n        j = end;\n"
        "    }\n"
        f"    for (long long e = j; e < end; ++e) acc = numr_next(acc, {element});\n"
        + end
        + f"{fold.finish('out[o]', 'acc')}}}\n"
    )


def _columns(
    fold: Fold, reading: Reading, whole: bool, kept_rank: int, reduced_rank: int, wide: bool
) -> str:
    """Threads side by side reduce results side by side, and lines of such threads take the elements by turns."""
    start, vector = _start(fold, reading, True, whole, kept_rank, reduced_rank, wide)
    result = texts.memory_type(fold.stored)
    each = f"#pragma unroll\n{{}}for (int v = 0; v < {vector}; ++v) "
    read = "numr_row_at(from + numr_offset(dims, j{}))"
    take = f"{each.format('            ')}acc[v] = {{}};\n"
    keep = (
        "if (line == 0 && o < outputs) {\n            "
        f"{each.format('            ')}partial[blockIdx.y * outputs + o + v] = acc[v]; }}"
    )
    return (
        start
        + lines_join(vector)
        + texts.signature(
            _PARAMETERS.format(given=reading.parameters, result=result).replace(
                "long lanes", "long side"
            )
        )
        + reading.start
        + f"    __shared__ numr_acc shared[{BLOCK * vector}];\n"
        f"    const int lanes = (int)side, line = threadIdx.x / lanes, lines = {BLOCK} / lanes;\n"
        f"    const long long o = (blockIdx.x * (long long)lanes + threadIdx.x % lanes) * {vector};\n"
        "    const long long start = blockIdx.y * chunk;\n"
        "    const long long end = start + chunk < length ? start + chunk : length;\n"
        "    const int valid = end - start < lines ? (int)(end - start) : lines;\n"
        f"    numr_acc acc[{vector}] = {{}};\n"
        "    long long j = start + line;\n"
        "    if (o < outputs && j < end) {\n"
        "        const numr_place from = numr_first + numr_base(dims, o);\n"
        f"        {{\n            const numr_row_type raw = {read.format('')};\n"
        f"            {take.format('numr_take(raw.v[v], j)')}        }}\n"
        "        j += lines;\n"
        f"        for (; j + {reading.unroll - 1} * lines < end; j += {reading.unroll} * lines) {{\n"
        f"            numr_row_type raw[{reading.unroll}];\n"
        "            #pragma unroll\n"
        f"            for (int u = 0; u < {reading.unroll}; ++u) raw[u] = {read.format(' + u * lines')};\n"
        "            #pragma unroll\n"
        f"            for (int u = 0; u < {reading.unroll}; ++u)\n"
        f"            {take.format('numr_next(acc[v], numr_take(raw[u].v[v], j + u * lines))')}"
        "        }\n"
        "        for (; j < end; j += lines) {\n"
        f"            const numr_row_type raw = {read.format('')};\n"
        f"            {take.format('numr_next(acc[v], numr_take(raw.v[v], j))')}"
        "        }\n    }\n"
        "    numr_lines(acc, line, lanes, valid, shared);\n"
        f"    if (gridDim.y > 1) {{\n{_LAST.replace('KEEP', keep)}"
        "        const numr_acc* const mine = partial + o;\n"
        "        if (o < outputs) {\n"
        f"            if (line < parts) {{\n            {take.format('mine[line * outputs + v]')}            }}\n"
        "            for (int s = line + lines; s < parts; s += lines) {\n"
        f"            {take.format('numr_join(acc[v], mine[s * outputs + v])')}            }}\n        }}\n"
        "        numr_lines(acc, line, lanes, parts < lines ? parts : lines, shared);\n    }\n"
        "    if (line != 0 || o >= outputs) return;\n"
        f"    {each.format('    ')}{{\n{fold.finish('out[o + v]', 'acc[v]', '        ')}    }}\n}}\n"
    )


_TEXTS: Final[dict[str, Callable[..., str]]] = {
    "columns": _columns,
    "few": _few,
    "warps": _warps,
    "blocks": _blocks,
}
