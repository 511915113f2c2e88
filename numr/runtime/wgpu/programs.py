"""Sequences of kernels that were run once on an array, to be run again on others of the same layout."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from numr import dtypes as dt
from numr.layout import Layout
from numr.runtime.storage import DeviceArray
from numr.runtime.wgpu.windows import Windows

if TYPE_CHECKING:
    from numr.dtypes import DType
    from numr.runtime.wgpu.launch import DeviceContext, Plan
    from numr.runtime.wgpu.opened import OpenDevice
    from numr.runtime.wgpu.pipelines import KernelText

__all__ = ["Programs", "Recording"]

#: Programs that are kept.
_KEPT: Final = 256
#: Of new arrays only the storage counts.
_ANY: Final = Layout((0,), (1,))


class Recording:
    """Runs kernels on arrays and on new ones, and takes down what it does.

    Parameters
    ----------
    context : DeviceContext
        Where kernels run.
    sources : sequence of DeviceArray
        The arrays that exist already.
    """

    def __init__(self, context: DeviceContext, sources: Sequence[DeviceArray]) -> None:
        self.context = context
        self._sources = len(sources)
        self.arrays = [*sources]
        self.steps: list[tuple[Plan, tuple[int, ...]]] = []

    def empty(self, shape: tuple[int, ...], dtype: DType) -> DeviceArray:
        """A new C-contiguous array."""
        array = self.context.empty(shape, dtype)
        self.arrays.append(array)
        return array

    def run(
        self,
        text: KernelText,
        bound: Sequence[Windows],
        params: bytes,
        groups: tuple[int, int, int],
    ) -> None:
        """Record a kernel on the windows of arrays, which are sources or new ones."""
        bindings = [binding for windows in bound for binding in windows.bindings]
        plan = self.context.run_first(text, bindings, params, groups)
        handles = [array.storage.handle for array in self.arrays]
        places = [
            place
            for windows in bound
            for place in [handles.index(windows.handle)] * len(windows.bindings)
        ]
        self.steps.append((plan, tuple(places)))

    def program(self, results: Sequence[DeviceArray]) -> _Program:
        """What was done, and which arrays are its results."""
        sizes = tuple(array.nbytes for array in self.arrays[self._sources :])
        places = {id(array): place for place, array in enumerate(self.arrays)}
        found = tuple((places[id(array)], array.layout, array.dtype) for array in results)
        return _Program(self.context.opened, sizes, tuple(self.steps), found)


class _Program(NamedTuple):
    """What a recording did, but for the arrays."""

    #: The device as it was open then; the program ends with it.
    opened: OpenDevice
    #: Bytes of the new arrays.
    sizes: tuple[int, ...]
    #: Kernels, with the array of each binding: first the sources, then new ones.
    steps: tuple[tuple[Plan, tuple[int, ...]], ...]
    #: Which arrays are the results, with their layouts and dtypes.
    results: tuple[tuple[int, Layout, DType], ...]


class Programs:
    """Programs by what was asked for.

    Parameters
    ----------
    context : DeviceContext
        The device.
    """

    def __init__(self, context: DeviceContext) -> None:
        self._context = context
        self._kept: dict[Hashable, _Program] = {}

    def run(
        self,
        key: Hashable,
        source: DeviceArray,
        build: Callable[[Recording], Sequence[DeviceArray]],
    ) -> Sequence[DeviceArray]:
        """The results of a program on an array.

        Parameters
        ----------
        key : hashable
            What is asked for; ``build`` does the same for equal keys and arrays of equal layout and dtype.
        source : DeviceArray
            The array.
        build : callable
            Runs the kernels where there is no program yet, and returns the results: the source or new arrays.
        """
        return self._run((key, source.layout), (source,), build)

    def run_on(
        self,
        key: Hashable,
        sources: Sequence[DeviceArray],
        build: Callable[[Recording], Sequence[DeviceArray]],
    ) -> Sequence[DeviceArray]:
        """The results of a program on several arrays; see :meth:`run`."""
        handles = [array.storage.handle for array in sources]
        same = tuple(map(handles.index, handles))
        layouts = tuple([array.layout for array in sources])
        return self._run((key, same, layouts), sources, build)

    def _run(
        self,
        key: Hashable,
        sources: Sequence[DeviceArray],
        build: Callable[[Recording], Sequence[DeviceArray]],
    ) -> Sequence[DeviceArray]:
        context = self._context
        program = self._kept.get(key)
        if program is not None and program.opened is context.table.opened:
            return self._again(program, sources)
        recording = Recording(context, sources)
        results = build(recording)
        if len(self._kept) >= _KEPT:
            self._kept.clear()
        self._kept[key] = recording.program(results)
        return results

    def _again(self, program: _Program, sources: Sequence[DeviceArray]) -> list[DeviceArray]:
        context = self._context
        arrays = [*sources, *(context.fresh(_ANY, size, dt.uint8) for size in program.sizes)]
        for plan, places in program.steps:
            context.run_again(plan, [arrays[place] for place in places], plan.params)
        return [
            DeviceArray(arrays[place].storage, layout, dtype)
            for place, layout, dtype in program.results
        ]
