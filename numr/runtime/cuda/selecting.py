"""Selection by a mask: the elements, or the positions, where it is true.

How many there are is known to the device alone, so that each call waits for it once. A first kernel counts what each
warp's part of each tile of the mask selects, and its last block turns the tiles' counts into places in the result; a
second one moves elements.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from numr.layout.strides import merge_axes
from numr.runtime.cuda import texts
from numr.runtime.cuda.texts import BLOCK, NARROW, VECTOR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numr.runtime.cuda.context import DeviceContext

__all__ = ["Selection"]

#: Vectors of a mask that a thread counts, and so elements in a tile.
_VECTORS: Final = 4
_TILE: Final = BLOCK * VECTOR * _VECTORS
_WARPS: Final = BLOCK // 32
_PART: Final = _TILE // _WARPS
#: Elements that one thread has under way.
_UNROLL: Final = 8
#: One selected element in so many is worth reading all: that many words lie in what memory hands out at a time.
_DENSE: Final = 8


class Selection:
    """What a mask selects.

    Parameters
    ----------
    context : DeviceContext
        The device.
    mask : array
        Boolean, with elements, C-contiguous, and starting at a multiple of 16 bytes.

    Attributes
    ----------
    count : int
        How many elements.
    """

    def __init__(self, context: DeviceContext, mask: Any) -> None:
        self.context = context
        self.mask = mask
        self.tiles = -(-mask.size // _TILE)
        # Of each tile its place, and of each warp's part the place in its tile.
        self._places = context.allocator.pointer((8 + 4 * _WARPS) * self.tiles)
        kernel = context.kernel(_count_text(), 6, 0)
        with context.report() as report:
            arguments = mask.data.ptr, self._places.ptr, context.tickets, report.ptr
            context.launch(kernel, self.tiles, 1, BLOCK, 1, *arguments, mask.size, self.tiles)
            context.synchronize()
            self.count = int(report.values[0])

    def elements(self, array: Any, out: Any) -> None:
        """Write the elements of an array of the mask's shape into a contiguous one that has ``count``."""
        if not self.count:
            return
        lengths, steps = merge_axes(array.shape, [array.strides])
        rank = texts.rank_for(len(lengths))
        dims = texts.pack_dims(rank, lengths, steps)
        # Unless few are selected, all elements are read, so that reading them need not wait for the mask.
        dense = self.count * _DENSE >= array.size
        text = _move_text(array.dtype.itemsize, rank, dense, array.size >= NARROW)
        kernel = self.context.kernel(text, 6, len(dims))
        self._launch(kernel, array.data.ptr, out.data.ptr, dims)

    def positions(self, outs: Sequence[Any]) -> None:
        """Write the positions along each axis of the mask, in C order."""
        if not self.count:
            return
        shape = self.mask.shape
        rank = len(shape)
        # Each axis gets its own result, so the lengths are all that is walked by.
        dims = texts.pack_dims(rank, shape, [[out.data.ptr for out in outs]])
        text = _positions_text(rank, self.mask.size >= NARROW)
        kernel = self.context.kernel(text, 6, len(dims))
        self._launch(kernel, 0, 0, dims)

    def _launch(self, kernel: Any, source: int, target: int, dims: bytes) -> None:
        mask = self.mask
        arguments = mask.data.ptr, self._places.ptr, source, target, mask.size, self.tiles, dims
        self.context.launch(kernel, self.tiles, 1, BLOCK, 1, *arguments)


#: The elements of a mask that are true, as bits, for 16 at an address of which ``size`` say how far the mask goes; and
#: what the threads of a block have before each of them.
_COUNTS: Final = """
struct __align__(16) numr_mask { unsigned int w[4]; };
__device__ __forceinline__ unsigned int numr_bits_of(const unsigned char* mask, const long long at, const long long size) {
    unsigned int bits = 0;
    if (at + 16 <= size) {
        const numr_mask raw = *(const numr_mask*)(mask + at);
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
            // The highest bit of each byte that is not zero; the product moves the four side by side.
            const unsigned int set = (((raw.w[k] & 0x7f7f7f7fu) + 0x7f7f7f7fu) | raw.w[k]) & 0x80808080u;
            bits |= ((set >> 7) * 0x10204080u >> 28) << 4 * k;
        }
    } else {
        for (int k = 0; at + k < size; ++k) bits |= (unsigned int)(mask[at + k] != 0) << k;
    }
    return bits;
}
__device__ __forceinline__ long long numr_before(const long long own, long long* shared, long long* total) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    long long sum = own;
    for (int d = 1; d < 32; d <<= 1) {
        const long long other = __shfl_up_sync(0xffffffffu, sum, d, 32);
        if (lane >= d) sum += other;
    }
    if (lane == 31) shared[warp] = sum;
    __syncthreads();
    long long before = 0, all = 0;
    for (int w = 0; w < WARPS; ++w) {
        if (w == warp) before = all;
        all += shared[w];
    }
    __syncthreads();
    *total = all;
    return before + sum - own;
}
""".replace("WARPS", str(_WARPS))


#: Reads a warp's part of a mask, each lane every 32nd vector.
_BITS: Final = (
    f"    unsigned int bits[{_VECTORS}];\n"
    "    #pragma unroll\n"
    f"    for (int v = 0; v < {_VECTORS}; ++v) "
    f"bits[v] = numr_bits_of(mask, start + (v * 32 + lane) * {VECTOR}, size);\n"
)


@cache
def _count_text() -> str:
    return (
        f"{texts.head()}{_COUNTS}"
        + texts.signature(
            "const unsigned char* mask, long long* places, unsigned int* tickets, volatile long long* report, "
            "const long long size, const long long tiles"
        )
        + f"    __shared__ long long shared[{_WARPS}];\n"
        "    __shared__ bool last;\n"
        "    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;\n"
        f"    const long long start = blockIdx.x * {_TILE}ll + warp * {_PART};\n"
        f"{_BITS}"
        "    int own = 0;\n"
        "    #pragma unroll\n"
        f"    for (int v = 0; v < {_VECTORS}; ++v) own += __popc(bits[v]);\n"
        "    long long total;\n"
        "    const long long before = numr_before(own, shared, &total);\n"
        f"    if (lane == 0) ((int*)(places + tiles))[blockIdx.x * {_WARPS} + warp] = (int)before;\n"
        "    if (threadIdx.x == 0) {\n"
        "        places[blockIdx.x] = total;\n"
        "        __threadfence();\n"
        "        last = atomicAdd(tickets, 1u) == tiles - 1;\n"
        "    }\n"
        "    __syncthreads();\n"
        "    if (!last) return;\n"
        "    __threadfence();\n"
        # The last block turns counts into places, each thread a run of them.
        f"    const long long run = (tiles + {BLOCK - 1}) / {BLOCK}, first = threadIdx.x * run;\n"
        "    const long long end = first + run < tiles ? first + run : tiles;\n"
        "    long long sum = 0;\n"
        "    #pragma unroll 8\n"
        "    for (long long k = first; k < end; ++k) sum += places[k];\n"
        "    long long place = numr_before(sum, shared, &total);\n"
        "    #pragma unroll 8\n"
        "    for (long long k = first; k < end; ++k) {\n"
        "        const long long count = places[k];\n"
        "        places[k] = place;\n"
        "        place += count;\n"
        "    }\n"
        "    if (threadIdx.x == 0) { report[0] = total; tickets[0] = 0; }\n"
        "}\n"
    )


def _selecting(parameters: str, read: str, then: str) -> str:
    """A kernel in which each warp goes through its part of a tile.

    ``read`` comes first for each element ``i`` of the mask, and ``then`` for each selected one and its ``place``.
    """
    unroll = f"        #pragma unroll\n        for (int u = 0; u < {_UNROLL}; ++u) {{\n"
    # A vector has the bits of 16 elements: two lanes hold those of 32 neighbours.
    rounds = 32 * VECTOR // (32 * _UNROLL)
    return (
        texts.signature(
            f"const unsigned char* mask, const long long* places, {parameters}, const long long size, "
            "const long long tiles, const numr_dims dims"
        )
        + "    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;\n"
        f"    const long long start = blockIdx.x * {_TILE}ll + warp * {_PART};\n"
        f"    long long before = places[blockIdx.x] + ((const int*)(places + tiles))[blockIdx.x * {_WARPS} + warp];\n"
        f"{_BITS}"
        "    #pragma unroll\n"
        f"    for (int v = 0; v < {_VECTORS}; ++v)\n"
        f"    for (int round = 0; round < {rounds}; ++round) {{\n"
        f"        const long long group = start + (v * {rounds} + round) * {32 * _UNROLL};\n"
        "        if (group >= size) break;\n"
        f"        bool chosen[{_UNROLL}];\n"
        f"        long long at[{_UNROLL}];\n"
        f"{unroll}"
        "            const long long i = group + u * 32 + lane;\n"
        f"            const int holder = (round * {_UNROLL} + u) * 2 + (lane >> 4);\n"
        "            chosen[u] = __shfl_sync(0xffffffffu, bits[v], holder, 32) >> (lane & 15) & 1;\n"
        f"{read}        }}\n"
        f"{unroll}"
        "            const unsigned int votes = __ballot_sync(0xffffffffu, chosen[u]);\n"
        "            at[u] = before + __popc(votes & ((1u << lane) - 1));\n"
        "            before += __popc(votes);\n        }\n"
        f"{unroll}"
        "            const long long i = group + u * 32 + lane, place = at[u];\n"
        f"            if (chosen[u]) {{\n{then}            }}\n        }}\n"
        "    }\n}\n"
    )


@cache
def _move_text(width: int, rank: int, dense: bool, wide: bool) -> str:
    memory = texts.memory_type(texts.word(width))
    kernel = _selecting(
        f"const char* in, {memory}* out",
        f"            if ({'i < size' if dense else 'chosen[u]'}) "
        f"word[u] = *(const {memory}*)(in + numr_offset(dims, i));\n",
        "                out[place] = word[u];\n",
    ).replace("        bool chosen", f"        {memory} word[{_UNROLL}];\n        bool chosen", 1)
    return (
        f"{texts.head()}{_COUNTS}{texts.dims_type(rank, 1)}"
        "__device__ __forceinline__ long long numr_offset(const numr_dims& dims, const long long i) {\n"
        f"{texts.walk(rank, 1, 'i', wide)}    return at0;\n}}\n{kernel}"
    )


@cache
def _positions_text(rank: int, wide: bool) -> str:
    type = "unsigned long long" if wide else "unsigned int"
    lines = [f"{type} rest = ({type})i;"]
    for axis in range(rank - 1, 0, -1):
        lines.append(f"{{ const {type} next = {texts.quotient('rest', axis, wide)};")
        lines.append(
            f"  ((long long*)dims.step[{axis}])[place] = rest - next * ({type})dims.n[{axis}]; rest = next; }}"
        )
    lines.append("((long long*)dims.step[0])[place] = rest;")
    then = "".join(f"                {line}\n" for line in lines)
    kernel = _selecting("const char* in, char* out", "", then)
    return f"{texts.head()}{_COUNTS}{texts.dims_type(rank, 1)}{kernel}"
