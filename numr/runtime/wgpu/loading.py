"""How kernels of reductions and scans read what they join."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from numr.runtime.wgpu import texts, vectors, windows
from numr.runtime.wgpu.folding import VALUE, Fold
from numr.runtime.wgpu.lines import WIDTH
from numr.runtime.wgpu.pipelines import StorageBuffer
from numr.runtime.wgpu.windows import Pattern, Windows

if TYPE_CHECKING:
    from numr.runtime.storage import DeviceArray
    from numr.runtime.wgpu.launch import DeviceContext

__all__ = ["Elements", "Loads"]

#: Loads that an invocation has under way at most, and their bytes.
_AT_ONCE: Final = 8
_BYTES_AT_ONCE: Final = 64


@dataclass(frozen=True)
class Loads:
    """What a kernel loads: elements, four elements, or values that another kernel left.

    Attributes
    ----------
    fold : Fold
        Its functions make values of elements.
    of_values : bool
        Whether values are loaded.
    wide, apart : bool
        Whether four elements are loaded at once, and whether these belong to four lines.
    pattern : Pattern
        Windows of the source.
    """

    fold: Fold
    of_values: bool
    wide: bool
    apart: bool
    pattern: Pattern

    @property
    def lines(self) -> int:
        """How many lines one load serves."""
        return WIDTH if self.apart else 1

    def at_once(self, *, software: bool) -> int:
        """How many loads to have under way; on software adapters more only take longer to compile."""
        itemsize = (self.fold.stored if self.of_values else self.fold.source).itemsize
        count = _BYTES_AT_ONCE // (itemsize * (WIDTH if self.wide else 1))
        return max(min(count, 2 if software else _AT_ONCE), 1)

    @property
    def words(self) -> int:
        """How many words of parameters the loads take."""
        return 0

    @property
    def types(self) -> frozenset[str]:
        """The types of expressions that the functions of :meth:`source` have."""
        return frozenset()

    def source(self, start: int = 0) -> tuple[tuple[StorageBuffer, ...], str]:
        """The buffers of the source, and the functions that read from them where there are any.

        Parameters
        ----------
        start : int
            The first word of the parameters' array that belongs to the loads.
        """
        if self.wide:
            return (vectors.source("source0", self.fold.source),), ""
        type = VALUE if self.of_values else texts.memory_type(self.fold.source)
        return (
            windows.buffers("source", "read", type, self.pattern),
            windows.reader("source", type, self.pattern),
        )

    def load(self, name: str, place: str, position: str) -> tuple[list[str], list[str]]:
        """Statements that load once, and the values of what was loaded.

        Parameters
        ----------
        name : str
            What the names of variables begin with.
        place, position : str
            Number of the load in memory and along its line; names or text in parentheses.
        """
        fold, source = self.fold, self.fold.source
        if self.of_values:
            return [f"let {name} = source_at({place});"], [name]
        if not self.wide:
            shift = texts.lanes(source).bit_length() - 1
            index = f"{place} >> {shift}u" if shift else place
            lines = [f"let {name}_word = source_at({index});"]
            lines += texts.unpacked(name, source, f"{name}_word", place)
            return lines, [fold.taken(name, position)]
        lines, values = vectors.loads(name, source, "source0", place), []
        for lane in range(WIDTH):
            element, word = f"{name}v{lane}", vectors.element(name, source, lane)
            lines += texts.unpacked(element, source, word, f"{lane}u")
            at = position if self.apart else f"{WIDTH}u * {position} + {lane}u"
            values.append(fold.taken(element, at))
        return lines, values


class Elements:
    """What is reduced: the elements of an array.

    Parameters
    ----------
    array : DeviceArray
        The array.
    seen : Windows
        What is bound of it.
    """

    def __init__(self, array: DeviceArray, seen: Windows) -> None:
        self.array = array
        self.seen = seen

    @classmethod
    def of(cls, context: DeviceContext, array: DeviceArray, function: str) -> Elements:
        """The elements of an array that is not empty."""
        return cls(array, Windows.of(context, array, function))

    @property
    def bound(self) -> tuple[Windows, ...]:
        """What kernels bind."""
        return (self.seen,)

    @property
    def numbers(self) -> tuple[int, ...]:
        """Words of parameters, as many as the loads take."""
        return ()

    def loads(self, fold: Fold, *, wide: bool, apart: bool) -> Loads:
        """How a kernel loads elements for a fold."""
        return Loads(fold, self.array.dtype == fold.stored, wide, apart, self.seen.pattern)
