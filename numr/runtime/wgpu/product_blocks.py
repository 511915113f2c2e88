"""Matrix products by invocations on their own: each has a block of the result in registers.

Nothing is shared in a workgroup, which suits software adapters, and small matrices on all.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from numr.runtime.wgpu import texts
from numr.runtime.wgpu.pipelines import KernelText
from numr.runtime.wgpu.product_arithmetic import Arithmetic
from numr.runtime.wgpu.product_frame import Product, decode, launch, parameters

if TYPE_CHECKING:
    from numr.runtime.wgpu.launch import DeviceContext

__all__ = ["LINE", "SMALL", "Block", "large", "multiply"]

_WORKGROUP: Final = 64


class Block(NamedTuple):
    """Rows and columns of the block of an invocation; the columns are a multiple of 4."""

    rows: int
    columns: int


SMALL, LINE = Block(4, 4), Block(1, 4)


def large(numbers: Arithmetic) -> Block:
    """The block that is quickest where the result is large; larger ones take too long to compile."""
    return Block(16, 8) if len(numbers.parts) == 1 else Block(8, 8)


def multiply(
    context: DeviceContext, product: Product, numbers: Arithmetic, block: Block, slices: int
) -> None:
    """Compute a product by blocks of a size, with the inner axis in slices."""
    whole = product.rows % block.rows == 0 and product.columns % block.columns == 0
    launch(
        context,
        product,
        lambda rank, _: _text(numbers, block, whole, rank),
        (-(-product.rows // block.rows), -(-product.columns // block.columns)),
        slices,
        _WORKGROUP,
    )


@cache
def _text(numbers: Arithmetic, block: Block, whole: bool, rank: int) -> KernelText:
    """The kernel of a block size; of a ``whole`` one all blocks lie inside of the result."""
    rows, columns, quads = range(block.rows), range(block.columns), range(block.columns // 4)
    parts = numbers.parts
    before = [
        f"let row = block_row * {block.rows}u;",
        f"let column = block_column * {block.columns}u;",
    ]
    step = ["let along = k * params.left_inner;", "let down = k * params.right_inner;"]
    after = []
    for c in columns:
        place = f"column + {c}u" if whole else f"min(column + {c}u, params.columns - 1u)"
        before.append(f"let column{c} = right_at + ({place}) * params.right_column;")
        step += numbers.load(f"b{c}", "right", f"(column{c} + down)")
    for q in quads:
        step += numbers.quad(f"quad{q}", [f"b{4 * q + j}" for j in range(4)])
    for r in rows:
        place = f"row + {r}u" if whole else f"min(row + {r}u, params.rows - 1u)"
        before.append(f"let row{r} = left_at + ({place}) * params.left_row;")
        step += numbers.load(f"a{r}", "left", f"(row{r} + along)")
        after.append(f"if (row + {r}u < params.rows) {{" if not whole else "{")
        after.append(f"let line = target_at + (row + {r}u) * params.target_row;")
        for q in quads:
            total = f"sum{r}_{q}"
            before += [f"var {total}{part} = {numbers.vector}();" for part in parts]
            step += numbers.add_product(
                total,
                [f"a{r}{part}" for part in parts],
                [f"quad{q}{part}" for part in parts],
                numbers.vector,
            )
        for c in columns:
            store = numbers.store(
                f"line + (column + {c}u) * params.target_column", f"sum{r}_{c // 4}", c % 4
            )
            after.append(store if whole else f"if (column + {c}u < params.columns) {{ {store} }}")
        after.append("}")
    lines = [
        "let number = i;",
        "if (number >= params.count) { return; }",
        decode(rank),
        *before,
        "for (var k = first; k < end; k++) {",
        *step,
        "}",
        *after,
        "}",
    ]
    params = parameters(rank)
    body = params.text + texts.invocation(_WORKGROUP) + "\n".join(lines)
    return KernelText(body, numbers.buffers(), params.size)
