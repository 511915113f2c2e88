"""Tables of factors for Fourier transforms, computed in double precision on the host and kept on the device."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from numr.runtime.storage import DeviceArray
    from numr.runtime.wgpu.launch import DeviceContext

__all__ = ["Tables", "chirp", "convolution_factors", "turns"]

#: Bytes of tables that are kept on a device.
KEPT_BYTES: Final = 64 << 20


class Tables:
    """Tables on a device: those used last, up to a number of bytes.

    Parameters
    ----------
    context : DeviceContext
        The device.
    upload : callable
        Brings an array of the host to the device.
    """

    def __init__(
        self,
        context: DeviceContext,
        upload: Callable[[np.ndarray[Any, Any]], DeviceArray],
    ) -> None:
        self._context = context
        self._upload = upload
        self._kept: OrderedDict[Hashable, DeviceArray] = OrderedDict()
        self._opened: object = None
        self._lock = threading.RLock()

    def get(self, key: Hashable, make: Callable[[], np.ndarray[Any, Any]]) -> DeviceArray:
        """The table of a key; it is made if it is not there."""
        opened = self._context.opened
        with self._lock:
            if self._opened is not opened:
                # The memory of a device that was lost went with it.
                self._kept.clear()
                self._opened = opened
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
                self._context.keep(found)
                return found
        table = self._upload(make())
        with self._lock:
            if self._opened is opened:
                self._kept[key] = table
                size = sum(kept.nbytes for kept in self._kept.values())
                while size > KEPT_BYTES:
                    size -= self._kept.popitem(last=False)[1].nbytes
        return table


def turns(numerators: np.ndarray[Any, Any], length: int) -> np.ndarray[Any, Any]:
    """The factors ``exp(-2j * pi * numerators / length)``, of numerators from 0 to below ``length``.

    Sines and cosines are taken of an eighth of a turn at most, so that they are as exact near the axes as anywhere,
    and in more than double precision where the host has that.
    """
    quarters = (8 * numerators + length) // (2 * length)
    eighth = np.arctan(np.longdouble(1))
    angles = (8 * numerators - 2 * length * quarters) * eighth / length
    result = np.empty(numerators.shape, np.complex128)
    result.real, result.imag = np.cos(angles), -np.sin(angles)
    # Times powers of -1j, which is exact.
    odd = quarters % 2 == 1
    result[odd] = result[odd].imag - 1j * result[odd].real
    result[quarters % 4 >= 2] *= -1
    return result


def chirp(length: int) -> np.ndarray[Any, Any]:
    """The factors ``exp(-1j * pi * k**2 / length)`` of a transform that is computed as a convolution."""
    numbers = np.arange(length, dtype=np.int64)
    return turns(numbers * numbers % (2 * length), 2 * length)


def convolution_factors(length: int, size: int) -> np.ndarray[Any, Any]:
    """What the transform of ``size`` points is multiplied by, to be convolved with the conjugate of the chirp.

    The division by ``size`` of the transform back is in it.
    """
    conjugate = np.conj(chirp(length))
    circle = np.zeros(size, np.complex128)
    circle[:length] = conjugate
    circle[size - length + 1 :] = conjugate[:0:-1]
    return np.asarray(np.fft.fft(circle)) / size
