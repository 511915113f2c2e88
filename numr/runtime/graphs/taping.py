"""Tapes: what a program dispatches on a device, taken down once to be dispatched again without the Python around it.

The first run of a program under a tape does its work and takes it down. What cannot be taken down, since the host has a
part in it, such as reading whether indices are in range, stays a call between segments of the tape.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias, TypeVar

from numr.dtypes import DType
from numr.layout import Layout
from numr.runtime.client import RuntimeClient
from numr.runtime.graphs.steps import Step
from numr.runtime.storage import Storage

__all__ = ["Memory", "Part", "Tape", "Taped"]

T = TypeVar("T")
Array = Any

#: Storages that take the place of others, by the handles of these.
Memory: TypeAlias = Mapping[int, Storage]
#: A part of a taped program: does its work again.
Part: TypeAlias = Callable[[Memory], None]


class Tape(ABC):
    """Takes down what the calling thread dispatches on a device.

    Memory that is allocated under a tape belongs to it, so that nobody else is given what its work is going to write.
    """

    @abstractmethod
    def take(self, action: Callable[[], T], *, lasting: bool = False) -> tuple[T, bool]:
        """Do something.

        Parameters
        ----------
        action : callable
            What to do.
        lasting : bool
            Whether the arrays that it makes are results of the program, and move from run to run.

        Returns
        -------
        tuple of Any and bool
            What the action returned, and whether all that it did was taken down; else nothing was.
        """

    @abstractmethod
    def cut(self) -> Part | None:
        """What was taken down since the last cut, to be done again once the tape is finished; None if nothing was."""

    @abstractmethod
    def finish(self, moving: Collection[int]) -> None:
        """End with taking down.

        Parameters
        ----------
        moving : collection of int
            Handles of memory that the tape neither keeps nor works on: each run names other memory for it.
        """

    @abstractmethod
    def abort(self) -> None:
        """End without a result; nothing happens if the tape is finished."""

    @abstractmethod
    def is_valid(self) -> bool:
        """Whether what was taken down can still be done."""

    @abstractmethod
    def touches(self, storage: Storage) -> bool:
        """Whether what was taken down works on some memory by itself: it cannot be named for a run then."""


class _Moving(NamedTuple):
    """An array in memory that is named for each run."""

    handle: int
    layout: Layout
    dtype: DType


class Taped:
    """A program whose first run was taken down.

    Parameters
    ----------
    client : RuntimeClient
        The device.
    tape : Tape
        A new tape.
    """

    def __init__(self, client: RuntimeClient[Any], tape: Tape) -> None:
        self._client = client
        self._tape = tape
        self._parts: list[Part] = []
        self._calls: list[_Call] = []

    @classmethod
    def new(cls, client: RuntimeClient[Any]) -> Taped | None:
        """A program to be taken down, None where the client has no tape for it."""
        tape = client.tape()
        return None if tape is None else cls(client, tape)

    # ------------------------------------------------------------- the first run
    @contextmanager
    def first_run(self) -> Iterator[None]:
        """Do the first run, which :meth:`finish` ends."""
        try:
            yield
        finally:
            self._tape.abort()

    def take(self, step: Step, operands: list[Any], results: list[Array], finish: Finish) -> None:
        """Do a step for the first time.

        Parameters
        ----------
        step : Step
            The step.
        operands, results : list
            What it works on.
        finish : callable
            Is given the arrays that the step has made, puts them in their places and returns, for each that is looked
            for there, its position and the array.
        """

        def action() -> Sequence[tuple[int, Array]]:
            made = step.run(operands, results)
            return () if made is None else finish(made)

        placed, taken = self._tape.take(action, lasting=step.lasting)
        if not taken:
            self._add(_Call(self._client, step.run, operands, results, placed))

    def assign(self, target: Array, source: Array) -> None:
        """Write an array into another for the first time."""
        client = self._client

        def run(operands: list[Any], results: list[Array]) -> None:
            client.assign(results[0], operands[0])

        _, taken = self._tape.take(lambda: run([source], [target]))
        if not taken:
            self._add(_Call(client, run, [source], [target], ()))

    def copy(self, array: Array) -> Array:
        """Copy an array for the first time."""
        client = self._client
        copied, taken = self._tape.take(lambda: client.copy(array), lasting=True)
        if not taken:

            def run(operands: list[Any], results: list[Array]) -> None:
                client.assign(results[0], operands[0])

            self._add(_Call(client, run, [array], [copied], ()))
        return copied

    def _add(self, call: _Call) -> None:
        self._cut()
        self._calls.append(call)
        self._parts.append(call)

    def _cut(self) -> None:
        part = self._tape.cut()
        if part is not None:
            self._parts.append(part)

    def finish(self, moving: Collection[int] = ()) -> None:
        """End the first run; see :meth:`Tape.finish`."""
        self._cut()
        self._tape.finish(moving)
        for call in self._calls:
            call.leave(moving)

    # --------------------------------------------------------------- other runs
    def is_valid(self) -> bool:
        """Whether the work can still be done."""
        return self._tape.is_valid()

    def takes(self, storages: Iterable[Storage]) -> bool:
        """Whether memory may be named for a run."""
        return not any(map(self._tape.touches, storages))

    def run(self, memory: Memory) -> None:
        """Do the work again."""
        for part in self._parts:
            part(memory)


#: What becomes of the arrays that a step has made.
Finish: TypeAlias = Callable[[Sequence[Array]], Sequence[tuple[int, Array]]]


class _Call:
    """A step that runs again as it is.

    What it makes is copied to where it was at first: what follows on the tape looks for it there.
    """

    def __init__(
        self,
        client: RuntimeClient[Any],
        run: Callable[[list[Any], list[Array]], Sequence[Array] | None],
        operands: list[Any],
        results: list[Array],
        placed: Sequence[tuple[int, Array]],
    ) -> None:
        self._client = client
        self._run = run
        self._operands = list(operands)
        self._results = list(results)
        self._targets = [array for _, array in placed]
        self._positions = [position for position, _ in placed]

    def leave(self, moving: Collection[int]) -> None:
        """Forget memory that is named for each run."""
        client = self._client
        for arrays in (self._operands, self._results, self._targets):
            for position, array in enumerate(arrays):
                if hasattr(array, "dtype") and client.storage(array).handle in moving:
                    handle = client.storage(array).handle
                    arrays[position] = _Moving(handle, client.layout(array), array.dtype)

    def __call__(self, memory: Memory) -> None:
        operands, results, targets = (
            [self._found(array, memory) for array in arrays]
            for arrays in (self._operands, self._results, self._targets)
        )
        made = self._run(operands, results)
        if made is not None:
            for position, target in zip(self._positions, targets, strict=True):
                self._client.assign(target, made[position])

    def _found(self, array: Any, memory: Memory) -> Any:
        if array.__class__ is not _Moving:
            return array
        return self._client.wrap(memory[array.handle], array.layout, array.dtype)
