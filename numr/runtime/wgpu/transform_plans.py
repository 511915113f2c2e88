"""How a Fourier transform of a length is carried out: which passes over memory, and which steps within each.

A transform of length ``n = a * b * c`` takes passes of the sizes ``a``, ``b`` and ``c``. Each pass reads and writes all
elements once and does many transforms of its size, each of them in steps of the sizes of its *radices*; the order
is that of Stockham, where no reordering is left at the end. Lengths with larger prime factors than there are radices
become a convolution (Bluestein), by transforms of a power of two.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Final, NamedTuple

__all__ = ["LARGEST_RADIX", "Pass", "Resources", "convolution_length", "is_smooth", "passes"]

#: Elements that one invocation transforms in registers.
LARGEST_RADIX: Final = 16
#: Prime numbers that radices are made of.
_PRIMES: Final = (2, 3, 5, 7, 11, 13)
_MOST_INVOCATIONS: Final = 256
#: Bytes that neighbouring lines should have beside each other in memory.
_RUN: Final = 128


class Resources(NamedTuple):
    """What a plan may use.

    Attributes
    ----------
    itemsize : int
        Bytes in a complex number.
    shared : int
        Bytes of shared memory in a workgroup; 0 where it does not pay, so that every step is a pass.
    """

    itemsize: int
    shared: int


class Pass(NamedTuple):
    """One pass over memory.

    Attributes
    ----------
    radices : tuple of int
        Sizes of its steps, whose product is that of the pass.
    lines : int
        Transforms in a workgroup.
    """

    radices: tuple[int, ...]
    lines: int

    @property
    def size(self) -> int:
        """Length of the transforms."""
        return math.prod(self.radices)

    @property
    def buffers(self) -> int:
        """Arrays in shared memory between the steps."""
        return min(len(self.radices) - 1, 2)

    @property
    def invocations(self) -> int:
        """Size of the workgroup."""
        return min(self.lines * self.size // max(self.radices), _MOST_INVOCATIONS)

    def places(self, interleaved: bool) -> int:
        """Elements of an array in shared memory, with gaps that keep invocations out of each other's way."""
        if interleaved:
            return self.size * (self.lines | 1)
        return self.lines * (self.size + self.size // LARGEST_RADIX)


def is_smooth(length: int) -> bool:
    """Whether a length is a product of radices."""
    for prime in _PRIMES:
        while length % prime == 0:
            length //= prime
    return length == 1


def convolution_length(length: int) -> int:
    """The power of two that a convolution for a transform of a length takes."""
    return 1 << (2 * length - 2).bit_length()


@cache
def passes(length: int, resources: Resources) -> tuple[Pass, ...]:
    """The passes of a transform of a smooth length.

    Examples
    --------
    >>> [one.radices for one in passes(1000, Resources(8, 0))]
    [(10,), (10,), (10,)]
    >>> [one.radices for one in passes(1000, Resources(8, 32768))]
    [(10, 10, 10)]
    >>> [one.radices for one in passes(2**20, Resources(8, 32768))]
    [(16, 8), (16, 8), (8, 8)]
    """
    if not resources.shared:
        return tuple(Pass((radix,), 64) for radix in _radices(length))
    whole = Pass(_radices(length), 1)
    if _fits(whole, resources):
        return (_widened(whole, resources, _MOST_INVOCATIONS),)
    most = _RUN // resources.itemsize
    return tuple(_widened(Pass(_radices(size), 1), resources, most) for size in _sizes(length))


def _fits(one: Pass, resources: Resources) -> bool:
    places = max(one.places(interleaved=False), one.places(interleaved=True))
    return places * one.buffers * resources.itemsize <= resources.shared


def _widened(one: Pass, resources: Resources, most: int) -> Pass:
    """A pass with more lines in a workgroup, for as long as there are invocations and memory for them."""
    if len(one.radices) == 1:
        return one._replace(lines=_MOST_INVOCATIONS)
    while one.lines < most:
        wider = one._replace(lines=2 * one.lines)
        busy = wider.lines * wider.size // max(wider.radices)
        if busy > _MOST_INVOCATIONS or not _fits(wider, resources):
            break
        one = wider
    return one


def _radices(length: int) -> tuple[int, ...]:
    return _fewest(length, tuple(range(2, LARGEST_RADIX + 1)))


def _sizes(length: int) -> tuple[int, ...]:
    return _fewest(length, _pass_sizes())


@cache
def _pass_sizes() -> tuple[int, ...]:
    """Sizes of passes that take up to two steps."""
    every = range(2, LARGEST_RADIX**2 + 1)
    return tuple(size for size in every if is_smooth(size) and len(_radices(size)) <= 2)


@cache
def _fewest(length: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """As few factors out of some sizes as there can be, largest first, and of those the most even ones."""
    if length <= sizes[-1] and (length in sizes or length == 1):
        return (length,)
    products = (
        tuple(sorted((size, *_fewest(length // size, sizes)), reverse=True))
        for size in sizes
        if length % size == 0
    )
    return min(products, key=lambda factors: (len(factors), factors))
