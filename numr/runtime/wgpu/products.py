"""``Products``: matrix products on a WebGPU device, by the kernels that suit the device and the shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from numr.layout import Layout, broadcast_shapes
from numr.runtime.storage import DeviceArray
from numr.runtime.wgpu import product_blocks, product_tiles, product_vectors
from numr.runtime.wgpu.families import Families
from numr.runtime.wgpu.product_arithmetic import Arithmetic, arithmetic
from numr.runtime.wgpu.product_blocks import LINE, SMALL, Block
from numr.runtime.wgpu.product_frame import Product
from numr.runtime.wgpu.product_tiles import Tile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numr.runtime.wgpu.launch import DeviceContext

__all__ = ["Products"]

#: Steps along the inner axis that one invocation of a software adapter takes: drivers stop it at 65535.
_MOST_STEPS: Final = 30000
#: Invocations that keep a software adapter busy, and the shortest slices of the inner axis they are given.
_CPU_INVOCATIONS: Final = 64
_CPU_SLICE: Final = 512
#: Columns that keep the lanes of a software adapter busy.
_CPU_COLUMNS: Final = 32
#: Multiplications from which blocks that need not look for the matrix's end are worth two more dispatches.
_LARGE: Final = 1 << 20
#: Workgroups that keep a GPU busy, and the shortest slices of the inner axis they are given.
_GPU_WORKGROUPS: Final = 256
_GPU_SLICE: Final = 256
#: Rows, columns and inner elements up to which a matrix is too small for workgroups.
_FEW: Final = 16
#: Elements that lie apart are gathered first if each is read this often.
_SCATTERED_USES: Final = 64


class Products(Families):
    """Matrix products."""

    def matmul(self, left: DeviceArray, right: DeviceArray) -> DeviceArray:
        dtype = left.dtype
        lead = broadcast_shapes(left.shape[:-2], right.shape[:-2], function="matmul")
        rows, inner, columns = *left.shape[-2:], right.shape[-1]
        shape = (*lead, rows, columns)
        if 0 in shape:
            return self.empty(shape, dtype)
        if not inner:
            return self.full(shape, 0, dtype)
        numbers = arithmetic(dtype)
        context = self.context
        if not context.is_cpu:
            left = self._gathered(left, columns)
            right = self._gathered(right, rows)
        result = context.empty(shape, numbers.total)
        product = Product(
            self.broadcast(left, (*lead, rows, inner)),
            self.broadcast(right, (*lead, inner, columns)),
            result,
        )
        for part in _bindable(context, product):
            if context.is_cpu:
                _on_cpu(context, part, numbers)
            else:
                _on_gpu(context, part, numbers)
        if numbers.total.itemsize == dtype.itemsize:
            return self.wrap(result.storage, result.layout, dtype)
        return self.cast(result, dtype)

    def _gathered(self, array: DeviceArray, uses: int) -> DeviceArray:
        """The array, or a copy where the elements of a matrix lie apart and each is read several times."""
        if uses <= _SCATTERED_USES or not all(abs(stride) > 1 for stride in array.strides[-2:]):
            return array
        # Axes with steps of zero are copied once.
        shape = tuple(
            length if stride else 1
            for length, stride in zip(array.shape, array.strides, strict=True)
        )
        once = Layout(shape, array.strides, array.offset)
        return self.broadcast(self.copy(DeviceArray(array.storage, once, array.dtype)), array.shape)


def _bindable(context: DeviceContext, product: Product) -> Iterator[Product]:
    """The parts of a product, in order, whose matrices each fit into a binding.

    A matrix that does not fit is halved along the axis that takes most memory. Halves of the inner axis are added one
    after the other.
    """
    for array, inner in ((product.target, 0), (product.left, -1), (product.right, -2)):
        if context.fits(array):
            continue
        extents = [
            (length - 1) * abs(stride)
            for length, stride in zip(array.shape, array.strides, strict=True)
        ]
        axis = extents.index(max(extents)) - len(extents)
        length = array.shape[axis]
        for start, stop in ((0, length // 2), (length // 2, length)):
            if axis == inner:
                part = product.inner_part(start, stop)
            else:
                part = product.part(axis, start, stop)
            yield from _bindable(context, part)
        return
    yield product


def _on_cpu(context: DeviceContext, product: Product, numbers: Arithmetic) -> None:
    """Compute a product on a software adapter, where neighbouring invocations go along the columns."""
    rows, columns = product.rows, product.columns
    if columns < min(rows, _CPU_COLUMNS):
        product = product.transposed()
        rows, columns = columns, rows
    large = product_blocks.large(numbers)
    if rows * columns * product.inner * product.batch < _LARGE or rows < large.rows:
        _in_steps(context, product, numbers, LINE if rows == 1 else SMALL)
        return
    # Blocks that need not look where the matrix ends are compiled and run quicker.
    whole_rows = rows - rows % large.rows
    whole_columns = columns - columns % large.columns
    inside = product.part(-2, 0, whole_rows)
    _in_steps(context, inside.part(-1, 0, whole_columns), numbers, large)
    if whole_columns < columns:
        _in_steps(context, inside.part(-1, whole_columns, columns), numbers, SMALL)
    if whole_rows < rows:
        _in_steps(context, product.part(-2, whole_rows, rows), numbers, SMALL)


def _in_steps(context: DeviceContext, product: Product, numbers: Arithmetic, block: Block) -> None:
    """Compute a product by blocks, in as many dispatches as the length of the inner axis asks for."""
    invocations = -(-product.rows // block.rows) * -(-product.columns // block.columns)
    slices = _slices(product.inner, invocations * product.batch, _CPU_INVOCATIONS, _CPU_SLICE)
    for start in range(0, product.inner, slices * _MOST_STEPS):
        stop = min(start + slices * _MOST_STEPS, product.inner)
        part = product.inner_part(start, stop) if stop - start < product.inner else product
        product_blocks.multiply(context, part, numbers, block, slices)


def _on_gpu(context: DeviceContext, product: Product, numbers: Arithmetic) -> None:
    """Compute a product on a GPU."""
    if product.columns > product.rows and product.rows <= _FEW:
        product = product.transposed()
    rows, columns, inner = product.rows, product.columns, product.inner
    if max(rows, columns, inner) <= _FEW:
        product_blocks.multiply(context, product, numbers, SMALL, 1)
    elif columns <= product_vectors.MOST_COLUMNS:
        groups = product_vectors.workgroups(product) * product.batch
        slices = _slices(inner, groups, _GPU_WORKGROUPS, product_vectors.shortest(product))
        product_vectors.multiply(context, product, numbers, slices)
    else:
        tile, slices = _tile_for(product, numbers)
        product_tiles.multiply(context, product, numbers, tile, slices)


def _slices(inner: int, blocks: int, wanted: int, shortest: int) -> int:
    """Slices of the inner axis that make as many blocks of work as are wanted, unless that makes them too short."""
    return max(1, min(wanted // blocks, inner // shortest))


def _tile_for(product: Product, numbers: Arithmetic) -> tuple[Tile, int]:
    """The tile, and the number of slices, by which a GPU is expected to be quickest."""

    def time(tile: Tile) -> float:
        slices = slices_of(tile)
        groups = max(groups_of(tile) * slices, _GPU_WORKGROUPS)
        # Beginning and end of a tile take as long as some steps, and so does adding slices up.
        steps = product.inner / slices + (32 if slices == 1 else 96)
        return groups * tile.height * tile.width * tile.cost * steps

    def groups_of(tile: Tile) -> int:
        blocks = -(-product.rows // tile.height) * -(-product.columns // tile.width)
        return blocks * product.batch

    def slices_of(tile: Tile) -> int:
        return _slices(product.inner, groups_of(tile), _GPU_WORKGROUPS, _GPU_SLICE)

    best = min(product_tiles.tiles(numbers), key=time)
    return best, slices_of(best)
