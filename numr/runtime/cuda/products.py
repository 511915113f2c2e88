"""Products of matrices of integers, which NVIDIA's libraries have not.

A block works on a square of the result: it reads a few columns of the left matrix and as many rows of the right one
into memory that its threads share, and each thread holds some rows and columns of the square. Sums are modulo the
dtype's size, so that their order does not matter.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from numr.dtypes import DType
from numr.layout import broadcast_shapes
from numr.layout.strides import merge_axes
from numr.runtime.cuda import texts
from numr.runtime.cuda.elementwise import broadcast_strides
from numr.runtime.cuda.texts import BLOCK, NARROW

if TYPE_CHECKING:
    from numr.runtime.cuda.context import DeviceContext

__all__ = ["product"]

#: Rows and columns of a block's square, those of each thread, and terms that are read at a time.
_SIDE: Final = 64
_OWN: Final = 4
_TERMS: Final = 16
#: Terms of which the code stands in the text: compiling it should not take long.
_UNROLL: Final = 4
#: Terms that a block takes at least, and blocks that keep a device busy.
_CHUNK: Final = 512
_BUSY: Final = 512


def product(context: DeviceContext, left: Any, right: Any) -> Any:
    """The products of two stacks of matrices that broadcast and have elements, in parts: what it gives has to be summed.

    The parts are the first axis of the new array.
    """
    stack = broadcast_shapes(left.shape[:-2], right.shape[:-2], function="matmul")
    rows, terms = left.shape[-2:]
    columns = right.shape[-1]
    outer = [broadcast_strides(x, (*stack, *x.shape[-2:]))[:-2] for x in (left, right)]
    lengths, steps = merge_axes(stack, outer)
    count = 1
    for n in lengths:
        count *= n
    rank = texts.rank_for(len(lengths))
    dims = texts.pack_dims(rank, lengths, steps, (*left.strides[-2:], *right.strides[-2:]))
    # Threads side by side read what lies side by side.
    turned = [abs(x.strides[-2]) < abs(x.strides[-1]) for x in (left, right)]
    kernel = context.kernel(_text(left.dtype, rank, *turned, count >= NARROW), 7, len(dims))
    grid = count * -(-columns // _SIDE) * -(-rows // _SIDE)
    chunk = max(_CHUNK, -(-terms * grid // _BUSY))
    parts = -(-terms // chunk)
    out = context.empty((parts, *stack, rows, columns), left.dtype)
    numbers = rows, terms, columns, chunk
    pointers = left.data.ptr, right.data.ptr, out.data.ptr
    context.launch(kernel, grid, parts, BLOCK, 1, *pointers, *numbers, dims)
    return out


@cache
def _text(dtype: DType, rank: int, left_turned: bool, right_turned: bool, wide: bool) -> str:
    memory = texts.memory_type(dtype)
    total = "unsigned long long" if dtype.itemsize == 8 else "unsigned int"
    loads = _SIDE * _TERMS // BLOCK
    lanes = _SIDE // _OWN
    each = f"            #pragma unroll\n            for (int {{0}} = 0; {{0}} < {_OWN}; ++{{0}})"

    def read(name: str, along_terms: bool, start: str, end: str, place: str) -> str:
        """Read terms of the lines of a square."""
        line, term = f"k / {_TERMS}", f"k % {_TERMS}"
        if not along_terms:
            line, term = f"k % {_SIDE}", f"k / {_SIDE}"
        return (
            f"        #pragma unroll\n        for (int u = 0; u < {loads}; ++u) {{\n"
            f"            const int k = u * {BLOCK} + threadIdx.x, line = {line}, term = {term};\n"
            f"            const long long i = {start} + line, j = first + term;\n"
            f"            {name}[term][line] = i < {end} && j < last ? ({total})*(const {memory}*)({name}_at + {place}) : 0;\n"
            "        }\n"
        )

    return (
        f"{texts.head()}{texts.dims_type(rank, 2, 4)}"
        + texts.signature(
            f"const char* left, const char* right, {memory}* out, const long long rows, const long long terms, "
            "const long long columns, const long long chunk, const numr_dims dims"
        )
        + f"    __shared__ {total} a[{_TERMS}][{_SIDE + 1}], b[{_TERMS}][{_SIDE + 1}];\n"
        f"    const int lane = threadIdx.x % {lanes}, level = threadIdx.x / {lanes};\n"
        f"    const long long across = (columns + {_SIDE - 1}) / {_SIDE}, down = (rows + {_SIDE - 1}) / {_SIDE};\n"
        "    const long long band = blockIdx.x / across, o = band / down;\n"
        f"    const long long column_start = (blockIdx.x - band * across) * {_SIDE}, "
        f"row_start = (band - o * down) * {_SIDE};\n"
        f"{texts.walk(rank, 2, 'o', wide)}"
        "    const char* const a_at = left + at0;\n    const char* const b_at = right + at1;\n"
        f"    {total} sums[{_OWN}][{_OWN}] = {{}};\n"
        "    const long long from = blockIdx.y * chunk, last = from + chunk < terms ? from + chunk : terms;\n"
        f"    for (long long first = from; first < last; first += {_TERMS}) {{\n"
        f"{read('a', not left_turned, 'row_start', 'rows', 'i * dims.inner[0] + j * dims.inner[1]')}"
        f"{read('b', right_turned, 'column_start', 'columns', 'j * dims.inner[2] + i * dims.inner[3]')}"
        "        __syncthreads();\n"
        f"        #pragma unroll {_UNROLL}\n        for (int term = 0; term < {_TERMS}; ++term) {{\n"
        f"            {total} x[{_OWN}], y[{_OWN}];\n"
        f"{each.format('p')} x[p] = a[term][level + p * {lanes}];\n"
        f"{each.format('q')} y[q] = b[term][lane + q * {lanes}];\n"
        f"{each.format('p')}\n{each.format('q')} sums[p][q] += x[p] * y[q];\n"
        "        }\n        __syncthreads();\n    }\n"
        f"    {memory}* const to = out + (blockIdx.y * (gridDim.x / (across * down)) + o) * rows * columns;\n"
        f"{each.format('p')} {{\n{each.format('q')} {{\n"
        f"            const long long i = row_start + level + p * {lanes}, j = column_start + lane + q * {lanes};\n"
        f"            if (i < rows && j < columns) to[i * columns + j] = ({memory})sums[p][q];\n"
        "            }\n            }\n}\n"
    )
