"""Scaling matrices by powers of two, and ordering their columns and values.

Sums of squares overflow and underflow where the numbers themselves are far from it. So factorisations that need them
scale each matrix by its largest component, exactly, and scale the values back in the end.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np

from numr import dtypes as dt
from numr.dtypes import DType
from numr.runtime.storage import DeviceArray
from numr.runtime.wgpu import texts
from numr.runtime.wgpu.linalg.arithmetic import STATUS
from numr.runtime.wgpu.linalg.matrices import (
    ELEMENT,
    STEPS,
    Block,
    Kernel,
    Work,
    element_kernel,
    fold,
    place,
    steps,
    team_kernel,
)
from numr.runtime.wgpu.pipelines import StorageBuffer

__all__ = ["PEAKS", "SHIFT", "U32", "moved_columns", "peaks_of", "ranks_of", "scale", "squares_of"]

U32: Final = np.dtype("u4")

#: The largest biased exponent of each matrix, for kernels that scale, and WGSL of the power of two that does it.
PEAKS: Final = texts.source("peaks", U32)
SHIFT: Final = """\
fn shift(peak: u32) -> i32 {
    if (peak == NONFINITE) { return 0; }
    return SCALE + BIAS - i32(max(peak, 1u));
}
"""

#: Elements of which one invocation finds the largest.
_EACH: Final = 16


def peaks_of(work: Work, array: DeviceArray, *, lower: bool = False) -> DeviceArray:
    """The largest biased exponent in each matrix, or its lower triangle; the status tells if one is not finite."""
    rows, columns = array.shape[-2:]
    peaks = work.filled(np.zeros(work.count, U32))
    parts = -(-rows * columns // _EACH)
    values = (rows * columns, columns, parts, lower)
    work.each(_peaks(work.dtype), (array, peaks, work.status), parts, values)
    return peaks


@cache
def _peaks(dtype: DType) -> Kernel:
    body = """\
    let matrix = i / params.parts;
    var peak = 0u;
    for (var k = i % params.parts; k < params.size; k += params.parts) {
        let row = k / params.columns;
        if (params.lower == 0u || k - row * params.columns <= row) {
            peak = max(peak, largest_exponent(a[matrix * params.size + k]));
        }
    }
    atomicMax(&peaks[matrix], peak);
    if (peak == NONFINITE) { atomicMax(&status[NOT_FINITE], 1u); }
"""
    buffers = (
        texts.source("a", dtype),
        StorageBuffer("peaks", "read_write", "array<atomic<u32>>"),
        STATUS,
    )
    return element_kernel(dtype, ("size", "columns", "parts", "lower"), buffers, body)


def scale(
    work: Work,
    target: Block,
    source: Block,
    rows: int,
    columns: int,
    peaks: DeviceArray,
    *,
    back: bool = False,
) -> None:
    """Copy matrices scaled, or from scaled ones ``back``; both may be the same."""
    values = (rows, columns, back, source.conjugate, *source.steps, *target.steps)
    arrays = (source.array, target.array, peaks)
    work.each(_scale(work.dtype), arrays, rows * columns, values)


@cache
def _scale(dtype: DType) -> Kernel:
    body = f"""\
{ELEMENT}    let k = shift(peaks[matrix]);
    var value = scaled_element(x[{place("x")}], select(k, -k, params.back != 0u));
    if (params.conjugate != 0u) {{ value = conj(value); }}
    y[{place("y")}] = value;
"""
    names = ("rows", "columns", "back", "conjugate", *steps("x"), *steps("y"))
    buffers = (texts.target("x", dtype), texts.target("y", dtype), PEAKS)
    return element_kernel(dtype, names, buffers, body, SHIFT)


def squares_of(work: Work, matrix: Block, rows: int, columns: int) -> DeviceArray:
    """Squared norms of the columns of scaled matrices."""
    result = work.empty(columns, dtype=work.real)
    team = work.team(rows, columns)
    while rows > STEPS // 2 * team.down and team.across > 1:
        team = team._replace(across=team.across // 2)
    chunks = -(-columns // team.across)
    values = (chunks, rows, columns, *matrix.steps)
    kernel = _squares(work.dtype, team.width)
    work.teams(kernel, team, (matrix.array, result), values, chunks)
    return result


@cache
def _squares(dtype: DType, width: int) -> Kernel:
    body = """\
    let matrix = member / params.chunks;
    let column = (member % params.chunks) * params.across + lane_column;
    let mine = column < params.columns;
    var squares = ZERO;
    if (mine) {
        let at = params.a_start + matrix * params.a_matrix + column * params.a_column;
        for (var i = lane_row; i < params.rows; i += down) { squares += square(a[at + i * params.a_row]); }
    }
    squares = total(squares, params.across);
    if (live && mine && lane_row == 0u) { result[matrix * params.columns + column] = squares; }
"""
    real = dt.real_of(dtype)
    names = ("chunks", "rows", "columns", *steps("a"))
    buffers = (texts.source("a", dtype), texts.target("result", real))
    return team_kernel(dtype, width, names, buffers, fold("total", "R", width), body)


def ranks_of(
    work: Work, values: DeviceArray, *, descending: bool
) -> tuple[DeviceArray, DeviceArray]:
    """The place of each value in the order of its stack, and the first value in that order."""
    length = values.shape[-1]
    ranks = work.empty(length, dtype=U32)
    first = work.empty(dtype=work.real)
    work.each(_ranks(work.real), (values, ranks, first), length, (length, descending))
    return ranks, first


@cache
def _ranks(real: DType) -> Kernel:
    body = """\
    let at = i / params.length * params.length;
    let own = values[i];
    var rank = 0u;
    for (var k = at; k < at + params.length; k++) {
        let other = values[k];
        let before = select((other < own), (other > own), params.descending != 0u);
        rank += u32(before || (other == own && k < i));
    }
    ranks[i] = rank;
    if (rank == 0u) { first[i / params.length] = own; }
"""
    buffers = (
        texts.source("values", real),
        texts.target("ranks", U32),
        texts.target("first", real),
    )
    return element_kernel(real, ("length", "descending"), buffers, body)


def moved_columns(
    work: Work, target: Block, source: Block, rows: int, columns: int, ranks: DeviceArray, kept: int
) -> None:
    """Copy columns to the places that their ranks say, those whose rank is below ``kept``."""
    values = (rows, columns, kept, *source.steps, *target.steps)
    arrays = (source.array, target.array, ranks)
    work.each(_moved_columns(work.dtype), arrays, rows * columns, values)


@cache
def _moved_columns(dtype: DType) -> Kernel:
    body = f"""\
{ELEMENT}    let rank = ranks[matrix * params.columns + column];
    if (rank < params.kept) {{ y[{place("y", column="rank")}] = x[{place("x")}]; }}
"""
    names = ("rows", "columns", "kept", *steps("x"), *steps("y"))
    buffers = (texts.source("x", dtype), texts.target("y", dtype), texts.source("ranks", U32))
    return element_kernel(dtype, names, buffers, body)
