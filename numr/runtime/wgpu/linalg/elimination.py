"""Elimination with partial pivoting: factors, solutions and determinants.

Panels of columns are factorised by teams, one workgroup for each matrix; the rest by products and triangular systems.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np

from numr import dtypes as dt
from numr.codegen import wgsl
from numr.codegen.elementwise import expression, operand
from numr.codegen.expr import Expr
from numr.dtypes import DType
from numr.ir import ops
from numr.runtime.storage import DeviceArray
from numr.runtime.wgpu import texts
from numr.runtime.wgpu.linalg.arithmetic import STATUS
from numr.runtime.wgpu.linalg.blocks import PANEL, solve_triangular
from numr.runtime.wgpu.linalg.matrices import (
    STEPS,
    Block,
    Kernel,
    Work,
    element_kernel,
    fold,
    team_kernel,
)
from numr.runtime.wgpu.linalg.products import multiply

__all__ = ["determinants", "eliminate", "solve"]

_U32: Final = np.dtype("u4")


def eliminate(work: Work, array: DeviceArray) -> DeviceArray:
    """Replace square matrices by the triangular factors of their permuted rows.

    The first word of the status says whether one is singular.

    Returns
    -------
    DeviceArray
        For each step the row that was exchanged with that of the step's number.
    """
    order = array.shape[-1]
    pivots = work.empty(order, dtype=_U32)
    matrix = Block.of(array)
    size = _panel(work, order)
    for start in range(0, order, size):
        columns = min(size, order - start)
        end = start + columns
        rows = order - start
        team = work.team(rows, columns)
        block = matrix.at(start, start)
        values = (rows, columns, start, order, block.start, order, matrix.matrix)
        work.teams(_factors(work.dtype, team.width), team, (array, pivots, work.status), values)
        _exchange(work, pivots, matrix, (start, end), start)
        rest = order - end
        right = matrix.at(start, end)
        _exchange(work, pivots, matrix.at(0, end), (start, end), rest)
        solve_triangular(work, block, right, columns, rest, upper=False, unit=True)
        below = matrix.at(end, start)
        corner = matrix.at(end, end)
        multiply(work, corner, below, right, (rest, rest, columns), subtract=True)
    return pivots


def _panel(work: Work, order: int) -> int:
    """How many columns are eliminated in one dispatch."""
    if order <= PANEL:
        return order
    for size in (32, 16, 8):
        team = work.team(order, size)
        steps = 2 * order // team.size + (order // team.down + 1) * -(-size // team.across)
        if size * (steps + 16) <= STEPS:
            return size
    return 4


def solve(work: Work, factors: Block, pivots: DeviceArray, right: DeviceArray) -> None:
    """Replace right-hand sides by solutions, by what :func:`eliminate` gave.

    ``factors`` may be one matrix for the whole stack, with a step of zero to the next.
    """
    order, columns = right.shape[-2:]
    result = Block.of(right)
    _exchange(work, pivots, result, (0, order), columns, shared=not factors.matrix)
    starts = range(0, order, PANEL)
    for start in starts:
        size = min(PANEL, order - start)
        end = start + size
        known = result.at(start, 0)
        solve_triangular(
            work, factors.at(start, start), known, size, columns, upper=False, unit=True
        )
        below = factors.at(end, start)
        shape = (order - end, columns, size)
        multiply(work, result.at(end, 0), below, known, shape, subtract=True)
    for start in reversed(starts):
        size = min(PANEL, order - start)
        known = result.at(start, 0)
        solve_triangular(
            work, factors.at(start, start), known, size, columns, upper=True, unit=False
        )
        multiply(work, result, factors.at(0, start), known, (start, columns, size), subtract=True)


@cache
def _factors(dtype: DType, width: int) -> Kernel:
    functions = (
        "struct Found { key: Bits, row: u32 }\n"
        "fn better(x: Found, y: Found) -> bool {\n"
        "    return y.key > x.key || (y.key == x.key && y.row < x.row);\n"
        "}\n"
        "fn choose(x: Found, y: Found) -> Found {\n"
        "    if (better(x, y)) { return y; }\n"
        "    return x;\n"
        "}\n"
    ) + fold("search", "Found", width, "choose(x, y)")
    body = """\
    let at = params.start + member * params.matrix;
    for (var k = 0u; k < params.columns; k++) {
        // The largest element of the column, of equal ones the first; NaN is larger than all.
        var found = Found();
        found.row = k;
        for (var i = k + lane; i < params.rows; i += params.team) {
            found = choose(found, Found(magnitude_bits(size(a[at + i * params.line + k])), i));
        }
        found = search(found, 1u);
        let line = at + k * params.line;
        if (live && lane == 0u) {
            pivots[member * params.order + params.first + k] = params.first + found.row;
            if (found.key == Bits()) { atomicMax(&status[FAILED], 1u); }
        }
        if (found.row != k) {
            for (var j = lane; j < params.columns; j += params.team) {
                let other = at + found.row * params.line + j;
                let moved = a[other];
                if (live) {
                    a[other] = a[line + j];
                    a[line + j] = moved;
                }
            }
        }
        storageBarrier();
        let pivot = a[line + k];
        for (var i = k + 1u + lane; i < params.rows; i += params.team) {
            let place = at + i * params.line + k;
            // Below a pivot that is zero there are only zeros.
            if (live && found.key != Bits()) { a[place] = quotient(a[place], pivot); }
        }
        storageBarrier();
        for (var i = k + 1u + lane_row; i < params.rows; i += down) {
            let place = at + i * params.line;
            let factor = a[place + k];
            for (var j = k + 1u + lane_column; j < params.columns; j += params.across) {
                if (live) { a[place + j] = minus(a[place + j], factor, a[line + j]); }
            }
        }
        storageBarrier();
    }
"""
    names = ("rows", "columns", "first", "order", "start", "line", "matrix")
    buffers = (texts.target("a", dtype), texts.target("pivots", _U32), STATUS)
    return team_kernel(dtype, width, names, buffers, functions, body)


def _exchange(
    work: Work,
    pivots: DeviceArray,
    target: Block,
    steps: tuple[int, int],
    columns: int,
    *,
    shared: bool = False,
) -> None:
    """Exchange rows, of so many columns, as in steps of the elimination; ``shared`` pivots are those of all matrices."""
    if not columns:
        return
    order = pivots.shape[-1]
    each = 0 if shared else order
    for start in range(*steps, STEPS):
        stop = min(start + STEPS, steps[1])
        values = (columns, each, start, stop, target.start, target.row, target.matrix)
        work.each(_exchanges(work.dtype), (target.array, pivots), columns, values)


@cache
def _exchanges(dtype: DType) -> Kernel:
    body = """\
    let matrix = i / params.columns;
    let at = params.start + matrix * params.matrix + i % params.columns;
    for (var k = params.first; k < params.end; k++) {
        let row = pivots[matrix * params.each + k];
        if (row != k) {
            let one = at + k * params.line;
            let other = at + row * params.line;
            let moved = a[other];
            a[other] = a[one];
            a[one] = moved;
        }
    }
"""
    names = ("columns", "each", "first", "end", "start", "line", "matrix")
    buffers = (texts.target("a", dtype), texts.source("pivots", _U32))
    return element_kernel(dtype, names, buffers, body)


# ------------------------------------------------------------------------ determinants
def determinants(
    work: Work, factors: DeviceArray, pivots: DeviceArray, results: tuple[DeviceArray, ...]
) -> None:
    """Determinants of eliminated matrices, or with two results their signs and logarithms."""
    order = factors.shape[-1]
    kernel = _determinant(work.dtype, len(results) == 2)
    # The product so far goes on in another dispatch where there are too many factors for one.
    product = work.empty(dtype=work.dtype)
    power = work.empty(dtype=np.dtype("i4"))
    for start in range(0, order, STEPS):
        stop = min(start + STEPS, order)
        arrays = (factors, pivots, product, power, *results)
        work.each(kernel, arrays, 1, (order, start, stop))


@cache
def _determinant(dtype: DType, logarithmic: bool) -> Kernel:
    real = dt.real_of(dtype)
    body = """\
    var product = number(ONE);
    var exponents = 0;
    if (params.first > 0u) {
        product = products[i];
        exponents = powers[i];
    }
    for (var k = params.first; k < params.end; k++) {
        let line = i * params.order + k;
        let factor = a[line * params.order + k];
        let of_factor = toward_one(factor);
        product = mul(product, scaled_element(factor, of_factor));
        if (pivots[line] != k) { product = -product; }
        let of_product = toward_one(product);
        product = scaled_element(product, of_product);
        exponents -= of_factor + of_product;
    }
    products[i] = product;
    powers[i] = exponents;
    if (params.end < params.order) { return; }
"""
    functions = """\
fn toward_one(x: E) -> i32 {
    // Nothing for what is not finite, and two steps for what is too small to be normal.
    let e = largest_exponent(x);
    if (e == NONFINITE) { return 0; }
    return select(BIAS - i32(e), 64, e == 0u);
}
"""
    buffers = [
        texts.source("a", dtype),
        texts.source("pivots", _U32),
        texts.target("products", dtype),
        texts.target("powers", np.dtype("i4")),
    ]
    if not logarithmic:
        body += """\
    // Beyond these the result is zero or infinite.
    let k = clamp(exponents, -4 * BIAS, 4 * BIAS);
    result[i] = scaled_element(scaled_element(product, k / 2), k - k / 2);
    // Zero without the sign that exchanged rows gave it.
    if (magnitude_bits(size(product)) == Bits()) { result[i] = E(); }
"""
        buffers.append(texts.target("result", dtype))
        return element_kernel(dtype, ("order", "first", "end"), buffers, body, functions)
    # The logarithm of a number next to one, and that of a power of two in two parts, of which the first is exact.
    logarithm = expression(ops.LOG, real, operand("near_one", real))
    assert isinstance(logarithm, Expr), "the logarithm of a real number is one"
    code = wgsl.code([logarithm])
    high, low = _LOG2[real.itemsize]
    # Rounded correctly: the sign of a real number is one.
    root, ratio = "sqrt(square(product))", "{0} / near_one"
    if real == np.float32:
        root, ratio = "rooted(square(product))", "divided({0}, near_one)"
    parts = ["product"] if dtype.kind == "f" else ["product.x", "product.y"]
    modulus = "abs(product)" if dtype.kind == "f" else root
    sign = f"E({', '.join(map(ratio.format, parts))})"
    body += f"""\
    let near_one = {modulus};
    let is_zero = magnitude_bits(near_one) == Bits();
    if (is_zero) {{ signs[i] = E(); }} else {{ signs[i] = {sign}; }}
{code.statements}    let whole = R(exponents);
    logarithms[i] = ({code.results[0]} + whole * {low}) + whole * {high};
"""
    buffers += [texts.target("signs", dtype), texts.target("logarithms", real)]
    return element_kernel(dtype, ("order", "first", "end"), buffers, body, functions)


#: The natural logarithm of 2 in two parts; products of the first with small integers are exact.
_LOG2: Final = {
    4: ("0x1.62e4p-1f", "0x1.7f7d1cp-20f"),
    8: ("0x1.62e42fefa38p-1lf", "0x1.ef35793c7673p-45lf"),
}
