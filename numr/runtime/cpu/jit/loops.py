"""Fused computations as compiled kernels, run on arrays in parts over threads."""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Callable, Sequence
from ctypes import addressof, c_char
from operator import and_
from typing import Any, Final, NamedTuple

import numpy as np

from numr.errors import DTypeError, ShapeError
from numr.ir.fused import Computation
from numr.layout import broadcast_shapes
from numr.runtime.cpu.blockwise import COSTLY_OPS
from numr.runtime.cpu.jit.arrays import Walk
from numr.runtime.cpu.jit.compiler import Compiler, Kernel
from numr.runtime.cpu.jit.geometry import Part, Plan, plan_of
from numr.runtime.cpu.jit.texts import ALIGNMENT, kernel_text
from numr.runtime.cpu.threads import run_blocks

__all__ = ["STREAMED_BYTES", "KernelLoop"]

Array = np.ndarray[Any, Any]

#: Results of so many bytes in all go past the caches, which would have to read the memory first and keep it.
STREAMED_BYTES: Final = 1 << 25

#: What one part of the work should take, and an element about, in nanoseconds.
_PART: Final = 50_000.0
_COSTLY: Final = 1.5
_CHEAP: Final = 0.1

_FIRST_BYTE: Final[Any] = c_char.from_buffer
_YES: Final = (1).to_bytes(8, "little")
_NO: Final = bytes(8)

#: So many layouts of operands are remembered.
_LAYOUTS: Final = 64


class _Layout(NamedTuple):
    """What is known of operands and results from their shapes and strides."""

    plan: Plan
    kernel: Kernel
    #: The parts that threads do, and those that one thread does.
    parts: list[Part]
    serial: list[Part]
    #: Whether results may go past the caches, if they lie at the right addresses.
    streamed: bool
    #: Whether elements lie at their natural places, if the arrays do.
    aligned: bool
    #: Whether the arrays are C-contiguous.
    contiguous: bool


class KernelLoop:
    """A computation as a kernel for each way that arrays are walked; a ``FusedLoop``.

    Parameters
    ----------
    computation : Computation
        No dtype is complex.
    compiler : Compiler
        Makes the kernels.
    """

    def __init__(self, computation: Computation, compiler: Compiler) -> None:
        self._computation = computation
        self._compiler = compiler
        sources = computation.sources
        dtypes = [source.dtype for source in sources if source.is_array]
        self._dtypes = dtypes + list(computation.result_dtypes)
        self._arrays = [i for i, source in enumerate(sources) if source.is_array]
        self._scalars = [(i, s.dtype) for i, s in enumerate(sources) if not s.is_array]
        self._sizes = [dtype.itemsize for dtype in self._dtypes]
        costs = [_COSTLY if step.op in COSTLY_OPS else _CHEAP for step in computation.steps]
        self._cost = sum(costs) + _CHEAP * len(self._dtypes)
        self._addresses = struct.Struct(f"{len(self._dtypes)}Q")
        # An address that is no multiple of an element's size has a bit below it.
        self._below = [size - 1 for size in self._sizes]
        self._kernels: dict[tuple[Walk, ...], Kernel] = {}
        self._layouts: OrderedDict[tuple[Any, ...], _Layout] = OrderedDict()

    def __call__(self, operands: Sequence[Any], results: Sequence[Array]) -> None:
        """Compute and write the results, over threads where that pays."""
        prepared = self._prepared(operands, results)
        if prepared is not None:
            words, layout = prepared
            run, parts = layout.kernel.run, layout.parts
            if len(parts) == 1:
                run(words, *parts[0])
            else:
                run_blocks(
                    lambda part: run(words, *parts[part.start]),
                    [slice(i, i + 1) for i in range(len(parts))],
                )

    def serial(self, operands: Sequence[Any], results: Sequence[Array]) -> None:
        """Compute and write the results in the calling thread."""
        prepared = self._prepared(operands, results)
        if prepared is not None:
            words, layout = prepared
            for part in layout.serial:
                layout.kernel.run(words, *part)

    def bound(
        self, operands: Sequence[Any], results: Sequence[Array], *, streams: bool = False
    ) -> Callable[..., None] | None:
        """What computes the same, in the calling thread, on arrays of the same strides that lie elsewhere.

        It takes the addresses of the operands that are arrays, and of the results: multiples of their elements' sizes.
        None where there is nothing to compute, or elements do not lie at their natural places.

        Parameters
        ----------
        operands, results : sequence
            What such arrays look like; nothing is computed of them. The scalars are those that are taken.
        streams : bool
            Whether results go past the caches where they are one row; they lie at multiples of ``ALIGNMENT`` then.
        """
        prepared = self._prepared(operands, results, streams=streams, elsewhere=True)
        if prepared is None:
            return None
        words, layout = prepared
        rest, pack = words[self._addresses.size :], self._addresses.pack
        run, parts = layout.kernel.run, layout.serial
        if len(parts) == 1:
            (part,) = parts
            return lambda *addresses: run(pack(*addresses) + rest, *part)

        def compute(*addresses: int) -> None:
            own = pack(*addresses) + rest
            for part in parts:
                run(own, *part)

        return compute

    def rows(self, operands: Sequence[Any], result: Array, count: int) -> None:
        """Compute ``count`` rows of the one result, in the calling thread, each into the same array with one axis.

        One row comes after the other, so that the result may be an operand as well: what the last row gave.
        """
        target = np.broadcast_to(result, (count, *result.shape))
        prepared = self._prepared(operands, [target], in_order=True)
        if prepared is not None:
            words, layout = prepared
            layout.kernel.run(words, 0, layout.plan.rows, 0, layout.plan.length)

    def _prepared(
        self,
        operands: Sequence[Any],
        results: Sequence[Array],
        in_order: bool = False,
        streams: bool = False,
        elsewhere: bool = False,
    ) -> tuple[bytes, _Layout] | None:
        """The words that a kernel is given, and what is known of the arrays; None where nothing is left to do."""
        arrays = [operands[i] for i in self._arrays]
        arrays += results
        for x, dtype in zip(arrays, self._dtypes, strict=True):
            if x.dtype is not dtype and x.dtype != dtype:
                raise DTypeError(
                    f"fused: got arrays of dtypes {[str(a.dtype) for a in arrays]}; the computation takes "
                    f"and gives {[str(d) for d in self._dtypes]}."
                )
        if not results[0].size:
            return None
        key = (in_order, *[(x.shape, x.strides) for x in arrays])
        layout = self._layouts.get(key)
        if layout is None:
            layout = self._layouts[key] = self._layout(arrays, len(results), in_order)
            if len(self._layouts) > _LAYOUTS:
                self._layouts.popitem(last=False)
        addresses = _addresses(arrays, layout.contiguous)
        if not layout.aligned or any(map(and_, addresses, self._below)):
            if not elsewhere:
                self._unaligned(operands, results)
            return None
        streamed = layout.streamed or (streams and layout.plan.rows == 1)
        streamed = streamed and not any(x % ALIGNMENT for x in addresses[-len(results) :])
        scalars = [
            np.asarray(operands[i], dtype).tobytes().ljust(8, b"\0") for i, dtype in self._scalars
        ]
        plan = layout.plan
        return b"".join(
            (
                self._addresses.pack(*addresses),
                plan.steps,
                *scalars,
                _YES if streamed else _NO,
                plan.axes,
            )
        ), layout

    def _layout(self, arrays: list[Array], results: int, in_order: bool) -> _Layout:
        shape = arrays[-1].shape
        given = [x.shape for x in arrays[:-results]]
        same = all(x.shape == shape for x in arrays[-results:])
        if not same or (given and broadcast_shapes(*given, shape) != shape):
            raise ShapeError(
                f"fused: got operands of shapes {given} and results of "
                f"{[x.shape for x in arrays[-results:]]}; operands must broadcast to the one shape of the results."
            )
        strides = [_strides(x, shape) for x in arrays]
        plan = plan_of(shape, strides, self._sizes, results, in_order=in_order)
        kernel = self._kernels.get(plan.walks)
        if kernel is None:
            host = self._compiler.host
            text = kernel_text(self._computation, plan.walks, host.bits, host.attributes)
            kernel = self._kernels[plan.walks] = self._compiler.kernel(text)
        parts = plan.parts(max(1 << 12, int(_PART / self._cost)))
        one: list[Part] = [(0, plan.rows, 0, plan.length)]
        size = arrays[-1].size
        return _Layout(
            plan,
            kernel,
            parts if plan.tiled or size * self._cost > 2 * _PART else one,
            parts if plan.tiled else one,
            plan.rows == 1 and sum([x.nbytes for x in arrays[-results:]]) >= STREAMED_BYTES,
            not any(
                stride % itemsize
                for own, itemsize in zip(strides, self._sizes, strict=True)
                for stride in own
            ),
            all(x.flags.c_contiguous for x in arrays),
        )

    def _unaligned(self, operands: Sequence[Any], results: Sequence[Array]) -> None:
        """The same where elements lie across their natural places, by way of copies that do not."""
        copies = [np.empty(x.shape, x.dtype) for x in results]
        aligned = [np.array(x) if isinstance(x, np.ndarray) else x for x in operands]
        self(aligned, copies)
        for target, source in zip(results, copies, strict=True):
            target[...] = source


def _addresses(arrays: list[Array], contiguous: bool) -> list[int]:
    """Where the arrays begin."""
    if contiguous:
        try:
            # A third of the time that NumPy takes to tell.
            return [addressof(_FIRST_BYTE(x)) for x in arrays]
        except TypeError:
            pass  # one of them is read-only
    return [x.__array_interface__["data"][0] for x in arrays]


def _strides(array: Array, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of an array that is broadcast to a shape."""
    missing = (0,) * (len(shape) - array.ndim)
    own = zip(array.shape, array.strides, strict=True)
    return missing + tuple([0 if n == 1 else stride for n, stride in own])
