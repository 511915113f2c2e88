"""The texts of scans: tiles along a line, and tiles over lines side by side."""

from __future__ import annotations

from functools import cache
from typing import Final

from numr.runtime.cuda import texts
from numr.runtime.cuda.folding import BLOCK_JOIN, GROUP_JOIN, Fold, lines_join
from numr.runtime.cuda.texts import BLOCK, VECTOR

__all__ = ["HELD", "RESIDENT", "across", "columns", "items_of", "rows"]

#: Bytes of accumulators that a thread holds, and blocks that fit on a multiprocessor at least, by the kind of kernel.
#: Linked columns hold the next tile as well.
HELD: Final = {"short": 64, "rows": 128, "linked rows": 128, "columns": 128, "linked columns": 128}
RESIDENT: Final = {"short": 1, "rows": 4, "linked rows": 4, "columns": 3, "linked columns": 2}
#: Elements of a line that one thread holds at most.
_MOST: Final = 32


def across(itemsize: int) -> int:
    """Lines side by side that one thread scans."""
    return min(VECTOR // itemsize, 4)


def items_of(kind: str, held: int, vector: int) -> int:
    """Elements of a line that one thread holds."""
    return min(HELD[kind] // held // (vector if kind.endswith("columns") else 1), _MOST)


#: What blocks leave for each other: accumulators in words of 32 bits, each with a mark in the same word of 64 bits,
#: so that whoever sees the mark sees the value. Words of several accumulators are waited for together.
_LINKS: Final = """
#if __CUDA_ARCH__ >= 700
#define NUMR_PAUSE __nanosleep(100)  // so that those who wait leave memory to those who work
#else
#define NUMR_PAUSE
#endif
enum { NUMR_PIECES = (sizeof(numr_acc) + 3) / 4 };
__device__ __forceinline__ void numr_leave(volatile unsigned long long* words, const long long slot, const numr_acc acc) {
    unsigned int bits[NUMR_PIECES] = {};
    memcpy(bits, &acc, sizeof(numr_acc));
    #pragma unroll
    for (int p = 0; p < NUMR_PIECES; ++p)
        words[slot * NUMR_PIECES + p] = (unsigned long long)bits[p] << 32 | 1;
}
template <int N> __device__ __forceinline__ void numr_await(
    const volatile unsigned long long* words, const long long slot, numr_acc* found) {
    unsigned long long given[N * NUMR_PIECES];
    while (true) {
        bool ready = true;
        #pragma unroll
        for (int p = 0; p < N * NUMR_PIECES; ++p) given[p] = words[slot * NUMR_PIECES + p];
        #pragma unroll
        for (int p = 0; p < N * NUMR_PIECES; ++p) ready = ready && (given[p] & 1);
        if (ready) break;
        NUMR_PAUSE;
    }
    #pragma unroll
    for (int v = 0; v < N; ++v) {
        unsigned int bits[NUMR_PIECES];
        #pragma unroll
        for (int p = 0; p < NUMR_PIECES; ++p) bits[p] = (unsigned int)(given[v * NUMR_PIECES + p] >> 32);
        memcpy(found + v, bits, sizeof(numr_acc));
    }
}
"""
#: The number of a block's first tile; the first thread asks early for the one after the next.
_FIRST_TILE: Final = """\
    __shared__ long long number;
    long long following = 0;
    if (threadIdx.x == 0) {
        number = (long long)atomicAdd(words, 1ull);
        following = (long long)atomicAdd(words, 1ull);
    }
    __syncthreads();
    long long id = number;
    __syncthreads();
"""
_ASK: Final = """\
        if (threadIdx.x == 0) {
            number = following;
            following = (long long)atomicAdd(words, 1ull);
        }
"""
#: Where totals of tiles are left, and what the last tile of a group leaves: of rows the group's total, of columns what
#: has come up to its end.
_PLACES: Final = """\
        unsigned long long* const sums = words + 1;
        unsigned long long* const ends = sums + slots * tiles * NUMR_PIECES;
        const long long g = tile / group;
        const int k = (int)(tile - g * group);
        const bool ends_group = k == group - 1 && tile + 1 < tiles;
"""


def _start(fold: Fold, vector: int, whole: bool, linked: bool) -> str:
    row = "numr_vec" if whole else "numr_row"
    memory, result = texts.memory_type(fold.source), texts.memory_type(fold.result)
    return (
        f"{texts.head()}{fold.declarations()}"
        f"typedef {memory} numr_in;\ntypedef {result} numr_out;\n"
        f"typedef {row}<numr_in, {vector}> numr_source;\ntypedef {row}<numr_out, {vector}> numr_target;\n"
        f"{_LINKS if linked else ''}"
    )


def _signature(kind: str, numbers: str) -> str:
    given = ", ".join(f"const long long {name}" for name in numbers.split())
    return texts.signature(
        f"const numr_in* in, numr_out* out, unsigned long long* words, {given}",
        resident=RESIDENT[kind],
    )


@cache
def rows(fold: Fold, kind: str, whole: bool) -> str:
    """A block, or where lines are short some lanes of a warp, scans tiles of a line."""
    short, linked = kind == "short", kind == "linked rows"
    vector = VECTOR // max(fold.source.itemsize, fold.result.itemsize) if whole else 1
    items = items_of(kind, fold.held, vector)
    steps = items // vector
    rest = f"        else for (int v = 0; v < {vector}; ++v) if (at + v < room) {{}};\n"
    read_rest, write_rest = (
        (rest.format("raw[s].v[v] = from[at + v]"), rest.format("to[at + v] = made.v[v]"))
        if vector > 1
        else ("", "")
    )
    every = f"#pragma unroll\n    for (int s = 0; s < {steps}; ++s) "
    at = f"        const int at = (s * lanes + lane) * {vector};\n"
    text = (
        f"{_start(fold, vector, whole, linked)}{'' if short else GROUP_JOIN + BLOCK_JOIN}"
        "__device__ __forceinline__ void numr_fetch(numr_source* raw, const numr_in* from, const long long left, "
        "const int lanes, const int lane) {\n"
        f"    const int room = left < {BLOCK * items} ? (int)left : {BLOCK * items};\n"
        f"    {every}{{\n{at}        raw[s] = numr_source();\n"
        f"        if (at + {vector} <= room) raw[s] = *(const numr_source*)(from + at);\n{read_rest}    }}\n}}\n"
        f"{_signature(kind, 'length slots tiles group side')}"
        f"    numr_source raw[{steps}];\n"
    )
    if short:
        text += (
            "    const int lanes = (int)side, lane = threadIdx.x & (lanes - 1), ahead_of_warp = 0;\n"
            f"    const long long given = (blockIdx.x * {BLOCK}ll + threadIdx.x) / lanes;\n"
            f"    const long long line = given < slots ? given : slots - 1, size = lanes * {items};\n"
        )
    else:
        text += (
            f"    __shared__ numr_acc totals[{BLOCK // 32}];\n"
            "    const int lanes = 32, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;\n"
            f"    const int ahead_of_warp = warp * {32 * items};\n"
            f"    const long long size = {BLOCK * items};\n"
        )

    def fetch(line: str, tile: str) -> str:
        start = f"{tile} * size + ahead_of_warp"
        return (
            f"numr_fetch(raw, in + {line} * length + {start}, length - ({start}), lanes, lane);\n"
        )

    loop = f"    for (long long tile = 0; tile < tiles; ++tile) {{\n        {fetch('line', 'tile')}"
    if linked:
        text += (
            f"    __shared__ numr_acc shared[{BLOCK // 32}], prior;\n    __shared__ long long number;\n"
            "    if (threadIdx.x == 0) number = (long long)atomicAdd(words, 1ull);\n"
            "    __syncthreads();\n"
            "    const long long line = number / tiles, tile = number - line * tiles;\n"
            f"    {{\n        {fetch('line', 'tile')}"
        )
    else:
        text += f"{'' if short else '    const long long line = blockIdx.x;' + chr(10)}    numr_acc before = numr_acc();\n{loop}"
    if linked:
        # Others wait for the total, so it is found by itself, before the scan.
        text += (
            f"    numr_acc all = numr_take(raw[0].v[0], 0);\n    {every}{{\n"
            "        #pragma unroll\n"
            f"        for (int v = 0; v < {vector}; ++v) if (s + v > 0) all = numr_next(all, numr_take(raw[s].v[v], 0));\n"
            "    }\n    all = numr_group(all, lane, 32, 32);\n"
            f"{_TOTALS.replace('OWN', 'all')}{_PLACES}"
            "    if (threadIdx.x == 0 && !ends_group) numr_leave(sums, line * tiles + tile, total);\n"
        )
    text += (
        f"    numr_acc held[{items}], left[{steps}], run = numr_acc();\n"
        f"    {every}{{\n"
        f"        numr_acc* const mine = held + s * {vector};\n"
        "        mine[0] = numr_take(raw[s].v[0], 0);\n"
        "        #pragma unroll\n"
        f"        for (int v = 1; v < {vector}; ++v) mine[v] = numr_next(mine[v - 1], numr_take(raw[s].v[v], 0));\n"
        f"        numr_acc sum = mine[{vector - 1}];\n"
        f"{'' if short else '        #pragma unroll' + chr(10)}"
        "        for (int d = 1; d < lanes; d <<= 1) {\n"
        "            const numr_acc other = numr_up(sum, d, lanes);\n"
        "            if (lane >= d) sum = numr_next(other, sum);\n        }\n"
        "        left[s] = numr_up(sum, 1, lanes);\n"
        "        const numr_acc all = numr_from(sum, lanes - 1, lanes);\n"
        "        if (s > 0) left[s] = lane > 0 ? numr_next(run, left[s]) : run;\n"
        "        run = s > 0 ? numr_next(run, all) : all;\n    }\n"
    )
    if short:
        text += (
            "    const bool is_preceded = tile > 0;\n"
            "    const numr_acc outside = before;\n"
            "    before = is_preceded ? numr_next(before, run) : run;\n"
            "    if (given != line) continue;\n"
        )
    else:
        text += (
            _LINKED_ROWS.replace("BLOCK", str(BLOCK)) if linked else _TOTALS.replace("OWN", "run")
        )
        text += (
            "    const bool is_preceded = warp > 0 || tile > 0;\n"
            "    if (tile > 0) outside = warp > 0 ? numr_next(before, outside) : before;\n"
        )
        if not linked:
            text += (
                "    before = tile > 0 ? numr_next(before, total) : total;\n    __syncthreads();\n"
            )
    return text + (
        "    const long long start = tile * size + ahead_of_warp;\n"
        "    numr_out* const to = out + line * length + start;\n"
        "    const int room = length - start < size ? (int)(length - start) : (int)size;\n"
        f"    {every}{{\n{at}"
        "        numr_acc ahead = left[s];\n"
        "        if (is_preceded) ahead = s > 0 || lane > 0 ? numr_next(outside, ahead) : outside;\n"
        "        numr_target made;\n"
        "        #pragma unroll\n"
        f"        for (int v = 0; v < {vector}; ++v) {{\n"
        f"            const numr_acc mine = held[s * {vector} + v];\n"
        "            const numr_acc acc = is_preceded || s > 0 || lane > 0 ? numr_next(ahead, mine) : mine;\n"
        f"{fold.finish('made.v[v]', 'acc', '            ')}        }}\n"
        f"        if (at + {vector} <= room) *(numr_target*)(to + at) = made;\n{write_rest}    }}\n"
        "    }\n}\n"
    )


#: Statements by which the threads of a block join what its warps have: all of them, and those before each warp.
_TOTALS: Final = """\
    if (lane == 0) totals[warp] = OWN;
    __syncthreads();
    numr_acc outside = numr_acc(), total = totals[0];
    #pragma unroll
    for (int w = 1; w < WARPS; ++w) {
        if (w == warp) outside = total;
        total = numr_next(total, totals[w]);
    }
""".replace("WARPS", str(BLOCK // 32))
#: Statements by which a block learns what came before its tile: its threads wait for the tiles of the group, and then
#: for the groups before.
_LINKED_ROWS: Final = """\
        const long long groups = (tiles + group - 1) / group;
        numr_acc before = numr_acc(), found = numr_acc();
        if (k > 0) {
            if (threadIdx.x < k) numr_await<1>(sums, line * tiles + tile - k + threadIdx.x, &before);
            before = numr_block(before, k, shared);
        }
        if (threadIdx.x == 0 && ends_group)
            numr_leave(ends, line * groups + g, k > 0 ? numr_next(before, total) : total);
        if (g > 0) {
            for (long long j = threadIdx.x; j < g; j += BLOCK) {
                numr_acc other;
                numr_await<1>(ends, line * groups + j, &other);
                found = j < BLOCK ? other : numr_next(found, other);
            }
            __syncthreads();
            found = numr_block(found, g < BLOCK ? (int)g : BLOCK, shared);
        }
        if (threadIdx.x == 0) prior = g == 0 ? before : k > 0 ? numr_next(found, before) : found;
        __syncthreads();
        before = prior;
"""


@cache
def columns(fold: Fold, kind: str, whole: bool) -> str:
    """A block scans tiles of lines side by side: lines of threads hold pieces that follow each other."""
    linked = kind == "linked columns"
    vector = across(max(fold.source.itemsize, fold.result.itemsize)) if whole else 1
    items = items_of(kind, fold.held, vector)
    each = f"#pragma unroll\n        for (int v = 0; v < {vector}; ++v) "
    every = f"#pragma unroll\n        for (int i = 0; i < {items}; ++i) "
    text = (
        f"{_start(fold, vector, whole, linked)}{lines_join(vector) if linked else ''}"
        # Where the elements of a thread lie, and how many there are.
        "struct numr_piece { long long slot, place; int room; };\n"
        "__device__ __forceinline__ numr_piece numr_find(const long long tile, const long long band, "
        "const long long length, const long long inner, const long long strips, const int lanes) {\n"
        "    const int lane = threadIdx.x & (lanes - 1), line = threadIdx.x / lanes;\n"
        f"    const long long start = (tile * ({BLOCK} / lanes) + line) * {items}, stack = band / strips;\n"
        f"    const long long column = ((band - stack * strips) * lanes + lane) * {vector};\n"
        "    numr_piece piece;\n"
        "    piece.slot = column < inner ? stack * inner + column : -1;\n"
        "    piece.place = (stack * length + start) * inner + column;\n"
        f"    piece.room = column >= inner || start >= length ? 0 : length - start < {items} ? "
        f"(int)(length - start) : {items};\n    return piece;\n}}\n"
        "__device__ __forceinline__ void numr_fetch(numr_source* raw, const numr_in* in, const numr_piece piece, "
        "const long long inner) {\n"
        f"        {every}{{\n            raw[i] = numr_source();\n"
        "            if (i < piece.room) raw[i] = *(const numr_source*)(in + piece.place + i * inner);\n"
        "        }\n}\n"
        f"{_signature(kind, 'length inner outer strips tiles group side')}"
        f"    __shared__ numr_acc shared[{BLOCK * vector}];\n"
        "    const int lanes = (int)side, lane = threadIdx.x & (lanes - 1), line = threadIdx.x / lanes;\n"
        f"    const int lines = {BLOCK} / lanes;\n"
        f"    numr_source raw[{items}];\n"
        f"    numr_acc before[{vector}] = {{}};\n"
    )
    find = "numr_find(tile, band, length, inner, strips, lanes)"
    if linked:
        text += (
            f"{_FIRST_TILE}    const long long bands = outer * strips, slots = outer * inner;\n"
            "    long long tile = id / bands, band = id - tile * bands;\n"
            f"    numr_piece piece = {find};\n    numr_fetch(raw, in, piece, inner);\n"
            f"    while (tile < tiles) {{\n{_ASK}"
        )
    else:
        text += (
            "    const long long band = blockIdx.x;\n"
            "    for (long long tile = 0; tile < tiles; ++tile) {\n"
            f"        const numr_piece piece = {find};\n        numr_fetch(raw, in, piece, inner);\n"
        )
    text += (
        f"        numr_acc held[{items}][{vector}];\n"
        f"        {every}{{\n        {each}{{\n"
        "            const numr_acc taken = numr_take(raw[i].v[v], 0);\n"
        "            held[i][v] = i > 0 ? numr_next(held[i > 0 ? i - 1 : 0][v], taken) : taken;\n        }\n        }\n"
        f"        numr_acc ahead[{vector}], total[{vector}];\n"
        f"        {each}shared[v * {BLOCK} + threadIdx.x] = held[{items - 1}][v];\n"
        "        for (int d = 1; d < lines; d <<= 1) {\n"
        "        __syncthreads();\n"
        f"        {each}ahead[v] = shared[v * {BLOCK} + threadIdx.x - (line >= d ? d * lanes : 0)];\n"
        "        __syncthreads();\n"
        f"        if (line >= d) {{\n        {each}"
        f"shared[v * {BLOCK} + threadIdx.x] = numr_next(ahead[v], shared[v * {BLOCK} + threadIdx.x]);\n        }}\n"
        "        }\n"
        "        __syncthreads();\n"
        f"        {each}{{\n"
        f"            ahead[v] = shared[v * {BLOCK} + threadIdx.x - (line > 0 ? lanes : 0)];\n"
        f"            total[v] = shared[v * {BLOCK} + (lines - 1) * lanes + lane];\n        }}\n"
    )
    if linked:
        text += (
            "        const long long next = number, next_tile = next / bands, next_band = next - next_tile * bands;\n"
            f"        __syncthreads();\n{_PLACES}"
        )
        following = find.replace("tile, band", "next_tile, next_band")
        linking = _LINKED_COLUMNS.replace("FOLLOWING", following).replace("EACH", each)
        text += linking.replace("VECTOR", str(vector)).replace("BLOCK", str(BLOCK))
    else:
        text += "        __syncthreads();\n"
    return text + (
        f"        {each}{{\n"
        "            if (tile > 0) ahead[v] = line > 0 ? numr_next(before[v], ahead[v]) : before[v];\n"
        f"{'' if linked else '            before[v] = tile > 0 ? numr_next(before[v], total[v]) : total[v];' + chr(10)}"
        "        }\n"
        f"        {every}{{\n            numr_target made;\n        {each}{{\n"
        "                const numr_acc acc = tile > 0 || line > 0 ? numr_next(ahead[v], held[i][v]) : held[i][v];\n"
        f"{fold.finish('made.v[v]', 'acc', '                ')}            }}\n"
        "            if (i < piece.room) *(numr_target*)(out + piece.place + i * inner) = made;\n        }\n"
        f"{'        piece = next_piece; tile = next_tile; band = next_band;' + chr(10) if linked else ''}    }}\n}}\n"
    )


#: Statements by which a block leaves its tile's totals and learns what came before: lines of threads wait for the tiles
#: of the group by turns, and the first line for the end of the group before.
_LINKED_COLUMNS: Final = """\
        const bool is_inside = piece.slot >= 0;
        if (is_inside && line == lines - 1 && !ends_group) {
        EACHnumr_leave(sums, tile * slots + piece.slot + v, total[v]);
        }
        const numr_piece next_piece = FOLLOWING;
        if (next_tile < tiles) numr_fetch(raw, in, next_piece, inner);
        numr_acc found[VECTOR];
        if (k > 0) {
            if (is_inside) for (int s = line; s < k; s += lines) {
                numr_await<VECTOR>(sums, (tile - k + s) * slots + piece.slot, found);
        EACHbefore[v] = s > line ? numr_next(before[v], found[v]) : found[v];
            }
            numr_lines(before, line, lanes, k < lines ? k : lines, shared);
            __syncthreads();
        }
        if (is_inside && line == 0) {
            if (g > 0) {
                numr_await<VECTOR>(ends, (g - 1) * slots + piece.slot, found);
        EACHbefore[v] = k > 0 ? numr_next(found[v], before[v]) : found[v];
            }
        EACH{
            if (ends_group) {
                const numr_acc end = tile > 0 ? numr_next(before[v], total[v]) : total[v];
                numr_leave(ends, g * slots + piece.slot + v, end);
            }
            shared[v * BLOCK + threadIdx.x] = before[v];
        }
        }
        __syncthreads();
        EACHbefore[v] = shared[v * BLOCK + lane];
        __syncthreads();
"""
