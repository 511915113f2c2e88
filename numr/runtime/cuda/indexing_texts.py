"""The texts of gathering and scattering."""

from __future__ import annotations

from functools import cache
from typing import Final

from numr.runtime.cuda import texts
from numr.runtime.cuda.texts import BLOCK, VECTOR

__all__ = [
    "LARGE",
    "PICKS",
    "RESIDENT",
    "UNROLL",
    "across",
    "check",
    "from_rows",
    "mark",
    "move",
]

#: Elements that one thread moves.
UNROLL: Final = 4
#: Threads of a block that goes along rows.
LARGE: Final = 1024
#: Picks that each of them has in what the block shares, and blocks on a multiprocessor.
PICKS: Final = 10
RESIDENT: Final = 2


def _find(rank: int) -> str:
    """The function that finds the place of one pick: its bytes into the array, and its number among the places.

    It gives -1 and leaves a report where an index is out of range.
    """
    return (
        f"struct numr_index {{ const long long* at[{rank}]; long long n[{rank}]; "
        f"long long step[{rank}]; }};\n"
        "__device__ __forceinline__ long long numr_find(const numr_index& index, const int count, "
        "const long long pick, long long* offset, volatile long long* report) {\n"
        "    long long place = 0, bytes = 0;\n"
        "    bool good = true;\n"
        f"    #pragma unroll\n    for (int k = 0; k < {rank}; ++k) {{\n"
        "        if (k < count) {\n"
        "            const long long given = index.at[k][pick];\n"
        "            const long long i = given < 0 ? given + index.n[k] : given;\n"
        "            if (i < 0 || i >= index.n[k]) {\n"
        "                if (report) { report[1] = given; report[2] = k; report[0] = 1; }\n"
        "                good = false;\n"
        "            }\n"
        "            place = place * index.n[k] + i;\n"
        "            bytes += i * index.step[k];\n"
        "        }\n    }\n"
        "    *offset = bytes;\n"
        "    return good ? place : -1;\n}\n"
    )


@cache
def move(
    width: int,
    index_rank: int,
    inner_rank: int,
    single: bool,
    scatters: bool,
    wide: bool,
    wide_inner: bool,
) -> str:
    """Threads side by side move what is behind one pick, or where that is a single word, picks side by side.

    All reads of a thread come before its first write, so that they are under way together.
    """
    memory = texts.memory_type(texts.word(width))
    entry = "long long" if wide else "int"
    array, other = ("char*", f"const {memory}*") if scatters else ("const char*", f"{memory}*")
    picked = f"*({'' if scatters else 'const '}{memory}*)(array + offset{{0}} + numr_inner(tail.dims, {{1}}))"
    found = "place{0} >= 0"
    if scatters:
        found += f" && (({entry}*)table)[place{{0}}] == ({entry}){{1}}"
    find = "numr_find(tail.index, (int)count, {1}, &offset{0}, report)"
    begin = f"    {memory} word[{UNROLL}];\n"
    unroll = f"    #pragma unroll\n    for (int u = 0; u < {UNROLL}; ++u) {{\n"
    if single:
        begin += (
            f"    const long long start = blockIdx.x * {BLOCK * UNROLL}ll + threadIdx.x;\n"
            f"    long long offset[{UNROLL}], place[{UNROLL}];\n"
            f"{unroll}        const long long pick = start + u * {BLOCK};\n"
            f"        place[u] = -1;\n        if (pick < picks) place[u] = {find.format('[u]', 'pick')};\n    }}\n"
        )
        at = f"        const long long pick = start + u * {BLOCK}, i = pick;\n"
        test = found.format("[u]", "pick")
        element = picked.format("[u]", "0")
    else:
        begin += (
            "    const unsigned int band = blockIdx.x / (unsigned int)chunks;\n"
            "    const long long chunk = blockIdx.x - band * (unsigned int)chunks;\n"
            "    const long long pick = (long long)band * blockDim.y + threadIdx.y;\n"
            "    if (pick >= picks) return;\n"
            f"    long long offset;\n    const long long place = {find.format('', 'pick')};\n"
            f"    if (!({found.format('', 'pick')})) return;\n"
        )
        at = (
            f"        const long long j = (chunk * {UNROLL} + u) * blockDim.x + threadIdx.x, "
            "i = pick * inner + j;\n"
        )
        test = "j < inner"
        element = picked.format("", "j")
    source, target = ("other[i]", element) if scatters else (element, "other[i]")
    return (
        _start(index_rank, inner_rank, wide_inner)
        + texts.signature(
            f"{array} array, {other} other, const void* table, volatile long long* report, "
            "const long long picks, const long long count, const long long inner, const long long chunks, "
            "const numr_tail tail"
        )
        + f"{begin}{unroll}{at}        if ({test}) word[u] = {source};\n    }}\n"
        f"{unroll}{at}        if ({test}) {target} = word[u];\n    }}\n}}\n"
    )


@cache
def across(width: int, inner_rank: int, wide_inner: bool) -> str:
    """A block reads picks of one row, and writes them side by side."""
    memory = texts.memory_type(texts.word(width))
    unroll = f"        #pragma unroll\n        for (int u = 0; u < {UNROLL}; ++u) {{\n"
    step = LARGE * UNROLL
    return (
        _start(1, inner_rank, wide_inner)
        + texts.signature(
            f"const char* array, {memory}* out, volatile long long* report, const long long picks, "
            "const long long chunks, const numr_tail tail",
            threads=LARGE,
        )
        + "    const long long row = blockIdx.x / chunks, chunk = blockIdx.x - row * chunks;\n"
        "    const char* const from = array + numr_inner(tail.dims, row);\n"
        f"    {memory}* const to = out + row * picks;\n"
        f"    for (long long start = chunk * {step}; start < picks; start += chunks * {step}) {{\n"
        f"        {memory} word[{UNROLL}];\n"
        f"{unroll}            const long long pick = start + u * {LARGE} + threadIdx.x;\n"
        "            long long offset;\n"
        "            if (pick < picks && numr_find(tail.index, 1, pick, &offset, report) >= 0)\n"
        f"                word[u] = *(const {memory}*)(from + offset);\n        }}\n"
        f"{unroll}            const long long pick = start + u * {LARGE} + threadIdx.x;\n"
        "            if (pick < picks) to[pick] = word[u];\n        }\n    }\n}\n"
    )


@cache
def from_rows(width: int, inner_rank: int, whole: bool, wide_inner: bool) -> str:
    """Blocks go along stretches of rows, which they read as a whole; a thread has its picks in registers.

    While the threads pick from one stretch, the next one is on its way into the memory that they share.
    """
    memory = texts.memory_type(texts.word(width))
    words = VECTOR // width
    row = f"numr_vec<{memory}, {words}>"
    every = f"    #pragma unroll\n    for (int p = 0; p < {PICKS}; ++p)"
    fetch = "numr_fetch(held + {} * stride, array + numr_inner(tail.dims, {}), numr_room({}, words, all_words));\n"
    vectors = (
        f"    const int vectors = count / {words};\n"
        f"    for (int k = threadIdx.x; k < vectors; k += {LARGE}) "
        f"numr_copy_later(({row}*)to + k, (const {row}*)from + k);\n"
        if whole
        else "    const int vectors = 0;\n"
    )
    return (
        _start(1, inner_rank, wide_inner)
        + texts.COPY_LATER
        + "__device__ __forceinline__ int numr_room(const long long line, const long long each, const long long all) {\n"
        "    return (int)(all - line * each < each ? all - line * each : each);\n}\n"
        f"__device__ __forceinline__ void numr_fetch({memory}* to, const char* from, const int count) {{\n"
        f"{vectors}"
        f"    for (int k = vectors * {words} + threadIdx.x; k < count; k += {LARGE}) to[k] = ((const {memory}*)from)[k];\n"
        "    numr_commit();\n}\n"
        + texts.signature(
            f"const char* array, {memory}* out, volatile long long* report, const long long lines, const long long chunks, "
            "const long long words, const long long picks, const long long own_picks, const long long all_words, "
            "const long long all_picks, const numr_tail tail",
            threads=LARGE,
            resident=RESIDENT,
        )
        + f"    extern __shared__ __align__({VECTOR}) unsigned char numr_shared[];\n"
        f"    {memory}* const held = ({memory}*)numr_shared;\n"
        f"    const int stride = (int)(words + {words - 1}) / {words} * {words}, n = (int)tail.index.n[0];\n"
        "    long long line = blockIdx.x / chunks;\n"
        "    const long long chunk = blockIdx.x - line * chunks, step = gridDim.x / chunks;\n"
        f"    const int first = (int)chunk * {LARGE * PICKS} + threadIdx.x;\n"
        f"    {fetch.format('0', 'line', 'line')}"
        f"    int places[{PICKS}];\n"
        f"{every} {{\n"
        f"        const int pick = first + p * {LARGE};\n"
        "        places[p] = -1;\n"
        "        if (pick < picks) {\n"
        "            const int row = pick / (int)own_picks;\n"
        "            long long offset;\n"
        "            const long long place = numr_find(tail.index, 1, pick - row * (int)own_picks, &offset, report);\n"
        "            if (place >= 0) places[p] = row * n + (int)place;\n        }\n    }\n"
        "    for (int side = 0; line < lines; line += step, side ^= 1) {\n"
        "        const long long next = line + step;\n"
        f"        if (next < lines) {fetch.format('(side ^ 1)', 'next', 'next')}"
        "        else numr_commit();\n"
        "        numr_wait<1>();\n"
        "        __syncthreads();\n"
        f"        {memory}* const to = out + line * picks + first;\n"
        f"        const {memory}* const from = held + side * stride;\n"
        "        const int room = numr_room(line, picks, all_picks) - first;\n"
        f"    {every} if (places[p] >= 0 && p * {LARGE} < room) to[p * {LARGE}] = from[places[p]];\n"
        "        __syncthreads();\n"
        "    }\n}\n"
    )


def _start(index_rank: int, inner_rank: int, wide_inner: bool) -> str:
    """What kernels that move elements begin with."""
    return (
        f"{texts.head()}{_find(index_rank)}{texts.dims_type(inner_rank, 1)}"
        "struct numr_tail { numr_index index; numr_dims dims; };\n"
        "__device__ __forceinline__ long long numr_inner(const numr_dims& dims, const long long j) {\n"
        f"{texts.walk(inner_rank, 1, 'j', wide_inner)}    return at0;\n}}\n"
    )


@cache
def check(index_rank: int) -> str:
    """Threads look for indices out of range and leave one of them."""
    return (
        f"{texts.head()}{_find(index_rank)}"
        + texts.signature(
            "volatile long long* report, const long long picks, const long long count, const numr_index index"
        )
        + f"    const long long pick = (long long)blockIdx.x * {BLOCK} + threadIdx.x;\n"
        "    long long offset;\n"
        "    if (pick < picks) numr_find(index, (int)count, pick, &offset, report);\n"
        "}\n"
    )


@cache
def mark(index_rank: int, wide: bool) -> str:
    """Threads note for each place the last pick of it."""
    entry = "long long" if wide else "int"
    return (
        f"{texts.head()}{_find(index_rank)}"
        + texts.signature(
            f"{entry}* table, volatile long long* report, const long long picks, const long long count, "
            "const numr_index index"
        )
        + f"    const long long pick = (long long)blockIdx.x * {BLOCK} + threadIdx.x;\n"
        "    if (pick >= picks) return;\n"
        "    long long offset;\n"
        "    const long long place = numr_find(index, (int)count, pick, &offset, report);\n"
        f"    if (place >= 0) atomicMax(&table[place], ({entry})pick);\n"
        "}\n"
    )
