"""``Transforms``: Fourier transforms on a WebGPU device."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from numr.dtypes import DType, complex_of, real_of
from numr.runtime.storage import DeviceArray
from numr.runtime.wgpu import transform_texts as kernels
from numr.runtime.wgpu.families import Families
from numr.runtime.wgpu.pieces import narrowed
from numr.runtime.wgpu.texts import Walk
from numr.runtime.wgpu.transform_plans import (
    Pass,
    Resources,
    convolution_length,
    is_smooth,
    passes,
)
from numr.runtime.wgpu.transform_tables import Tables, chirp, convolution_factors, turns

if TYPE_CHECKING:
    from numr.runtime.device import Device
    from numr.runtime.wgpu.launch import DeviceContext

__all__ = ["Transforms"]

#: Factors of longer transforms are products of a fine and a coarse one, so that the tables stay short.
_SHIFT: Final = 12
#: From this many earlier results on, neighbouring lines write next to each other.
_BESIDE: Final = 8


class _Source(NamedTuple):
    """Where elements are read: of ``given`` of them, the rest being zero, and what is done with them on the way."""

    array: DeviceArray
    given: int
    input: kernels.Input = "complex"
    swaps: int = 0
    factors: DeviceArray | None = None


class _Target(NamedTuple):
    """Where as many elements as the last axis has are written, and what is done with them on the way."""

    array: DeviceArray
    output: kernels.Output = "complex"
    swaps: int = 0
    factors: DeviceArray | None = None


class _Turns(NamedTuple):
    """A table of factors, and where they start: of each size of passes, fine and coarse ones of the length."""

    table: DeviceArray
    places: dict[int, int]
    fine: int
    coarse: int


class Transforms(Families):
    """Fourier transforms."""

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._tables = Tables(self.context, lambda array: self.from_host(array, copy=True))

    def fft(self, array: DeviceArray, kind: str, length: int) -> DeviceArray:
        lead = array.shape[:-1]
        dtype = complex_of(array.dtype)
        points = length if kind == "hermitian" else array.shape[-1]
        if kind == "hermitian":
            result = self.context.empty((*lead, points), real_of(dtype))
        else:
            kept = points // 2 + 1 if kind == "real" else points
            result = self.context.empty((*lead, kept), dtype)
        if result.size:
            for source, target in _bindable(self.context, array, result, points, dtype):
                self._transform(source, target, kind, points)
        return result

    def _transform(self, array: DeviceArray, result: DeviceArray, kind: str, points: int) -> None:
        """Compute transforms whose arrays fit into bindings."""
        backward = kind in ("backward", "hermitian")
        source = _Source(
            array,
            points,
            "real" if kind == "real" else "hermitian" if kind == "hermitian" else "complex",
            kernels.SWAP_LOADED if backward else 0,
        )
        target = _Target(
            result,
            "real" if kind == "hermitian" else "complex",
            kernels.SWAP_STORED if backward else 0,
        )
        if is_smooth(points):
            self._smooth(points, source, target)
            return
        # j * k is (j**2 + k**2 - (j - k)**2) / 2, so that the transform is a convolution between two products.
        dtype = complex_of(array.dtype)
        size = convolution_length(points)
        factors = self._table(("chirp", points), dtype, lambda: chirp(points))
        product = self._table(
            ("convolution", points), dtype, lambda: convolution_factors(points, size)
        )
        work = self.context.empty((*array.shape[:-1], size), dtype)
        self._smooth(size, source._replace(factors=factors), _Target(work))
        back = kernels.SWAP_STORED | (kernels.SWAP_AFTER_STORE_FACTOR if backward else 0)
        self._smooth(
            size,
            _Source(work, size, swaps=kernels.SWAP_AFTER_LOAD_FACTOR, factors=product),
            target._replace(swaps=back, factors=factors),
        )

    def _smooth(self, length: int, source: _Source, target: _Target) -> None:
        """Compute transforms of a length that passes are there for."""
        context = self.context
        dtype = complex_of(source.array.dtype)
        shared = 0 if context.is_cpu else context.limits["max-compute-workgroup-storage-size"]
        plan = passes(length, Resources(dtype.itemsize, shared))
        turns = self._turns(length, plan, dtype)
        done = 1
        for one in plan[:-1]:
            work = context.empty((*source.array.shape[:-1], length), dtype)
            self._pass(length, one, done, turns, source, _Target(work))
            source = _Source(work, length)
            done *= one.size
        self._pass(length, plan[-1], done, turns, source, target)

    def _pass(
        self, length: int, one: Pass, done: int, turns: _Turns, source: _Source, target: _Target
    ) -> None:
        """Run the kernel of a pass, of which ``done`` is the product of the sizes of those before."""
        context = self.context
        array = source.array
        walk = Walk(array.shape[:-1], [array.strides[:-1]])
        per = length // one.size
        stride = array.strides[-1]
        across = (True, True)
        if len(one.radices) > 1:
            beside = bool(walk.lengths) and abs(walk.steps[0][-1]) < abs(stride)
            across = (per > 1 or beside, done >= _BESIDE)
        variant = kernels.Variant(
            complex_of(array.dtype),
            one.radices,
            one.lines,
            walk.rank,
            source.input,
            target.output,
            load_factors=source.factors is not None,
            store_factors=target.factors is not None,
            turned=done > 1,
            coarse=done > 1 and length > 1 << _SHIFT,
            across=across,
        )
        arrays = [array, target.array, turns.table, source.factors, target.factors]
        bound = [context.bind(each, "fft") for each in arrays if each is not None]
        count = math.prod(array.shape[:-1]) * per
        groups, row = context.grid(-(-count // one.lines), 1)
        params = kernels.parameters(walk.rank).pack(
            *(row, count, length, per, done, per // done, bound[0].start, stride, source.given),
            *(bound[1].start, target.array.shape[-1], source.swaps | target.swaps),
            *(turns.places.get(one.size, 0), turns.fine, turns.coarse, _SHIFT),
            *walk.packed(),
        )
        context.run(kernels.text(variant), [each.binding for each in bound], params, groups)

    def _turns(self, length: int, plan: tuple[Pass, ...], dtype: DType) -> _Turns:
        """The factors that the passes of a plan take."""
        # How many, numerators from one to the next, and the denominator.
        parts = [(size, 1, size) for size in {one.size: 0 for one in plan if len(one.radices) > 1}]
        places, end = {}, 0
        for size, _, _ in parts:
            places[size] = end
            end += size
        fine = min(length, 1 << _SHIFT)
        if len(plan) > 1:
            parts += [(fine, 1, length), (-(-length >> _SHIFT), 1 << _SHIFT, length)]

        def make() -> np.ndarray[Any, Any]:
            every = [turns(np.arange(count) * step, of) for count, step, of in parts]
            return np.concatenate(every or [np.ones(1, np.complex128)])

        table = self._table(("turns", *parts), dtype, make)
        return _Turns(table, places, end, end + fine)

    def _table(
        self, key: Hashable, dtype: DType, make: Callable[[], np.ndarray[Any, Any]]
    ) -> DeviceArray:
        return self._tables.get((key, dtype), lambda: make().astype(dtype))


def _bindable(
    context: DeviceContext, source: DeviceArray, target: DeviceArray, points: int, dtype: DType
) -> Iterator[tuple[DeviceArray, DeviceArray]]:
    """The parts of both arrays along the axes before the last that fit into bindings, with what lies between them."""
    lead = source.shape[:-1]
    size = points if is_smooth(points) else convolution_length(points)
    work = math.prod(lead) * size * dtype.itemsize
    fits = work <= context.max_binding and context.fits(source) and context.fits(target)
    axis = next((i for i, length in enumerate(lead) if length > 1), None)
    if fits or axis is None:
        yield source, target
        return
    half = lead[axis] // 2
    for start, stop in ((0, half), (half, lead[axis])):
        parts = (narrowed(source, axis, start, stop), narrowed(target, axis, start, stop))
        yield from _bindable(context, *parts, points, dtype)
