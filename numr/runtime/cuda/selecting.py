"""Selection by a mask: the elements, or the positions, where it is true.

How many there are is known to the device alone, so that each call waits for it once. A first kernel counts what each
warp's part of each tile of the mask selects, and a second one turns the tiles' counts into places in the result. In a
third one a warp notes the positions that its part selects, and then moves elements side by side.
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
#: Threads that turn the counts of tiles into places.
_PLACING: Final = 1024
#: Elements that one thread has under way, and blocks that fit on a multiprocessor at least.
_UNROLL: Final = 8
_RESIDENT: Final = 6


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
        count = context.kernel(_count_text(), 4, 0)
        place = context.kernel(_place_text(), 3, 0)
        places = self._places.ptr
        with context.report() as report:
            arguments = mask.data.ptr, places, mask.size, self.tiles
            context.launch(count, self.tiles, 1, BLOCK, 1, *arguments)
            context.launch(place, 1, 1, _PLACING, 1, places, report.ptr, self.tiles)
            context.synchronize()
            self.count = int(report.values[0])

    def elements(self, array: Any, out: Any) -> None:
        """Write the elements of an array of the mask's shape into a contiguous one that has ``count``."""
        if not self.count:
            return
        lengths, steps = merge_axes(array.shape, [array.strides])
        rank = texts.rank_for(len(lengths))
        dims = texts.pack_dims(rank, lengths, steps)
        text = _move_text(array.dtype.itemsize, rank, array.size >= NARROW)
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
template <typename T, int WARPS> __device__ __forceinline__ T numr_before(const T own, T* shared, T* total) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    T sum = own;
    #pragma unroll
    for (int d = 1; d < 32; d <<= 1) {
        const T other = __shfl_up_sync(0xffffffffu, sum, d, 32);
        if (lane >= d) sum += other;
    }
    if (lane == 31) shared[warp] = sum;
    __syncthreads();
    T before = 0, all = 0;
    #pragma unroll
    for (int w = 0; w < WARPS; ++w) {
        if (w == warp) before = all;
        all += shared[w];
    }
    *total = all;
    return before + sum - own;
}
"""


#: Reads a warp's part of a mask, each lane every 32nd vector.
_BITS: Final = (
    f"    unsigned int bits[{_VECTORS}];\n"
    "    #pragma unroll\n"
    f"    for (int v = 0; v < {_VECTORS}; ++v) "
    f"bits[v] = numr_bits_of(mask, start + (v * 32 + lane) * {VECTOR}, size);\n"
)


@cache
def _count_text() -> str:
    """A block counts what its tile selects, and before each warp's part."""
    return (
        f"{texts.head()}{_COUNTS}"
        + texts.signature(
            "const unsigned char* mask, long long* places, const long long size, const long long tiles",
            resident=_RESIDENT,
        )
        + f"    __shared__ int shared[{_WARPS}];\n"
        "    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;\n"
        f"    const long long start = blockIdx.x * {_TILE}ll + warp * {_PART};\n"
        f"{_BITS}"
        "    int own = 0, total;\n"
        "    #pragma unroll\n"
        f"    for (int v = 0; v < {_VECTORS}; ++v) own += __popc(bits[v]);\n"
        f"    const int before = numr_before<int, {_WARPS}>(own, shared, &total);\n"
        f"    if (lane == 0) ((int*)(places + tiles))[blockIdx.x * {_WARPS} + warp] = before;\n"
        "    if (threadIdx.x == 0) places[blockIdx.x] = total;\n"
        "}\n"
    )


@cache
def _place_text() -> str:
    """One block turns the counts of tiles into places, each thread a run of them."""
    return (
        f"{texts.head()}{_COUNTS}"
        + texts.signature(
            "long long* places, volatile long long* report, const long long tiles", threads=_PLACING
        )
        + f"    __shared__ long long shared[{_PLACING // 32}];\n"
        f"    const long long run = (tiles + {_PLACING - 1}) / {_PLACING}, first = threadIdx.x * run;\n"
        "    const long long end = first + run < tiles ? first + run : tiles;\n"
        "    long long sum = 0, total;\n"
        "    #pragma unroll 8\n"
        "    for (long long k = first; k < end; ++k) sum += places[k];\n"
        f"    long long place = numr_before<long long, {_PLACING // 32}>(sum, shared, &total);\n"
        "    #pragma unroll 8\n"
        "    for (long long k = first; k < end; ++k) {\n"
        "        const long long count = places[k];\n"
        "        places[k] = place;\n"
        "        place += count;\n"
        "    }\n"
        "    if (threadIdx.x == 0) report[0] = total;\n"
        "}\n"
    )


def _selecting(parameters: str, declared: str, read: str, then: str) -> str:
    """A kernel in which each warp notes what its part of a tile selects, and then goes through that side by side.

    ``declared`` is what a thread has under way; ``read`` comes first for each selected element ``i``, and ``then`` when
    all are under way, with its ``place``.
    """
    unroll = f"        #pragma unroll\n        for (int u = 0; u < {_UNROLL}; ++u)"
    chosen = f"{unroll} if (at[u] >= 0) {{\n            const long long i = start + at[u];\n"
    return (
        texts.signature(
            f"const unsigned char* mask, const long long* places, {parameters}, const long long size, "
            "const long long tiles, const numr_dims dims",
            resident=_RESIDENT,
        )
        + f"    __shared__ unsigned short noted[{_WARPS}][{_PART}];\n"
        "    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;\n"
        f"    const long long start = blockIdx.x * {_TILE}ll + warp * {_PART};\n"
        f"{_BITS}"
        f"    const long long first = places[blockIdx.x] + ((const int*)(places + tiles))[blockIdx.x * {_WARPS} + warp];\n"
        "    unsigned short* const mine = noted[warp];\n"
        "    int count = 0;\n"
        "    #pragma unroll\n"
        f"    for (int v = 0; v < {_VECTORS}; ++v) {{\n"
        "        const int own = __popc(bits[v]);\n"
        "        int sum = own;\n"
        "        #pragma unroll\n"
        "        for (int d = 1; d < 32; d <<= 1) {\n"
        "            const int other = __shfl_up_sync(0xffffffffu, sum, d, 32);\n"
        "            if (lane >= d) sum += other;\n        }\n"
        "        int at = count + sum - own;\n"
        "        #pragma unroll\n"
        f"        for (int b = 0; b < {VECTOR}; ++b)\n"
        f"            if (bits[v] >> b & 1) mine[at++] = (unsigned short)((v * 32 + lane) * {VECTOR} + b);\n"
        "        count += __shfl_sync(0xffffffffu, sum, 31, 32);\n"
        "    }\n"
        "    __syncwarp();\n"
        f"    for (int group = 0; group < count; group += {32 * _UNROLL}) {{\n"
        f"        int at[{_UNROLL}];\n{declared}"
        f"{unroll} at[u] = group + u * 32 + lane < count ? mine[group + u * 32 + lane] : -1;\n"
        f"{f'{chosen}{read}        }}{chr(10)}' if read else ''}"
        f"{chosen}            const long long place = first + group + u * 32 + lane;\n{then}        }}\n"
        "    }\n}\n"
    )


@cache
def _move_text(width: int, rank: int, wide: bool) -> str:
    memory = texts.memory_type(texts.word(width))
    kernel = _selecting(
        f"const char* in, {memory}* out",
        f"        {memory} word[{_UNROLL}];\n",
        f"            word[u] = *(const {memory}*)(in + numr_offset(dims, i));\n",
        "            out[place] = word[u];\n",
    )
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
    then = "".join(f"            {line}\n" for line in lines)
    kernel = _selecting("const char* in, char* out", "", "", then)
    return f"{texts.head()}{_COUNTS}{texts.dims_type(rank, 1)}{kernel}"
