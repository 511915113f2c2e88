"""Products of a matrix with few columns: every element of the matrix is read once, so reading is what they cost.

The invocations of a workgroup are lanes along the inner axis times rows. Each lane adds up what it reads; then
the lanes of a row are added in a tree of fixed shape.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from numr.runtime.wgpu.pipelines import KernelText
from numr.runtime.wgpu.product_arithmetic import Arithmetic
from numr.runtime.wgpu.product_frame import Product, decode, launch, parameters

if TYPE_CHECKING:
    from numr.runtime.wgpu.launch import DeviceContext

__all__ = ["MOST_COLUMNS", "multiply", "shortest", "workgroups"]

#: Columns of the product; with more, a tile in shared memory is better.
MOST_COLUMNS: Final = 4
_WORKGROUP: Final = 256
#: Elements of the matrix that a lane has under way at once.
_ABREAST: Final = 4


def workgroups(product: Product) -> int:
    """Workgroups for one matrix, if the inner axis is not cut."""
    return -(-product.rows // (_WORKGROUP // _lanes(product)))


def shortest(product: Product) -> int:
    """The shortest slice of the inner axis that is worth its own workgroups."""
    return _lanes(product) * 4 * _ABREAST


def _is_along(product: Product) -> bool:
    """Whether neighbours along the inner axis are closer together in memory than those along the rows."""
    row, inner = product.left.strides[-2:]
    return abs(inner) < abs(row) or product.rows == 1


def _lanes(product: Product) -> int:
    """Lanes along the inner axis."""
    if product.inner <= _ABREAST * 4:
        return 1
    if product.rows == 1:
        return _WORKGROUP
    if _is_along(product):
        return 8 if product.inner <= 128 else 32
    return 8 if product.rows > 8 else 32


def multiply(context: DeviceContext, product: Product, numbers: Arithmetic, slices: int) -> None:
    """Compute a product of up to ``MOST_COLUMNS`` columns, with the inner axis in slices."""
    lanes, along = _lanes(product), _is_along(product)
    columns = 1 if product.columns == 1 else MOST_COLUMNS
    launch(
        context,
        product,
        lambda rank, _: _text(numbers, lanes, along, columns, rank),
        (workgroups(product), 1),
        slices,
    )


@cache
def _text(numbers: Arithmetic, lanes: int, along: bool, columns: int, rank: int) -> KernelText:
    rows = _WORKGROUP // lanes
    parts = numbers.parts
    sums = [f"sum{c}{part}" for c in range(columns) for part in parts]
    places = (f"t % {lanes}u", f"t / {lanes}u") if along else (f"t / {rows}u", f"t % {rows}u")
    code = [
        "let number = group.x + group.y * params.row;",
        "if (number >= params.count) { return; }",
        decode(rank),
        f"let lane = {places[0]};",
        f"let own_row = {places[1]};",
        f"let row = block_row * {rows}u + own_row;",
        "let from_row = left_at + min(row, params.rows - 1u) * params.left_row;",
        *(
            f"let from{c} = right_at + min({c}u, params.columns - 1u) * params.right_column;"
            for c in range(columns)
        ),
        *(f"var {name} = {numbers.scalar}();" for name in sums),
        "var k = first + lane;",
        f"for (; k + {(_ABREAST - 1) * lanes}u < end; k += {_ABREAST * lanes}u) {{",
        *_addition(numbers, columns, [f"(k + {i * lanes}u)" for i in range(_ABREAST)]),
        "}",
        f"for (; k < end; k += {lanes}u) {{",
        *_addition(numbers, columns, ["k"]),
        "}",
    ]
    step = 1 if along else rows
    distance = lanes // 2
    if distance:
        code += [f"shared_{name}[t] = {name};" for name in sums]
    while distance:
        code += ["workgroupBarrier();", f"if (lane < {distance}u) {{"]
        code += [f"{name} += shared_{name}[t + {distance * step}u];" for name in sums]
        # The last sums are read by nobody else.
        code += [f"shared_{name}[t] = {name};" for name in sums] if distance > 1 else []
        code += ["}"]
        distance //= 2
    code += [
        "if (lane == 0u && row < params.rows) {",
        "let line = target_at + row * params.target_row;",
    ]
    for c in range(columns):
        store = numbers.store(f"line + {c}u * params.target_column", f"sum{c}")
        code.append(f"if ({c}u < params.columns) {{ {store} }}")
    code += ["}", "}"]
    shared = "".join(
        f"var<workgroup> shared_{name}: array<{numbers.scalar}, {_WORKGROUP}>;\n"
        for name in sums
        if lanes > 1
    )
    params = parameters(rank)
    body = (
        f"{params.text}{shared}@compute @workgroup_size({_WORKGROUP})\n"
        "fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {\n"
    ) + "\n".join(code)
    return KernelText(body, numbers.buffers(), params.size)


def _addition(numbers: Arithmetic, columns: int, places: list[str]) -> list[str]:
    """Statements that add the products at some places of the inner axis, all of which are read first."""
    lines: list[str] = []
    for i, place in enumerate(places):
        lines += numbers.load(f"a{i}", "left", f"(from_row + {place} * params.left_inner)")
        for c in range(columns):
            lines += numbers.load(f"b{i}_{c}", "right", f"(from{c} + {place} * params.right_inner)")
    for i in range(len(places)):
        for c in range(columns):
            left = [f"a{i}{part}" for part in numbers.parts]
            right = [f"b{i}_{c}{part}" for part in numbers.parts]
            lines += numbers.add_product(f"sum{c}", left, right)
    return lines
