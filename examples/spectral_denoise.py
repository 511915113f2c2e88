"""Removing noise from images in the frequency domain, as an array-API program.

Nothing here knows which library computes. The functions take ``xp``, a namespace of the Python array API
standard with its ``fft`` extension, and arrays of that namespace on any device:

    python -m examples.spectral_denoise --namespace numr.cpu
    python -m examples.spectral_denoise --namespace array_api_compat.numpy
"""

from __future__ import annotations

import argparse
import importlib
import math
from typing import Any

Array = Any

#: Steepness of the roll-off: the filter's order.
ORDER = 4


def lowpass(shape: tuple[int, int], *, xp: Any, keep: float, dtype: Any, device: Any) -> Array:
    """Weights of a Butterworth low-pass filter for the spectrum that ``rfftn`` gives of an image.

    The weight is 1 for the frequency 0, one half at the edge of the band that is kept, and falls towards 0
    beyond. It falls smoothly, so that edges in the image do not ring.

    Parameters
    ----------
    shape : tuple of int
        Rows and columns of the image.
    xp : module
        The namespace of the result.
    keep : float
        Edge of the band, as a fraction of the highest frequency.
    dtype : dtype
        A real floating-point dtype of the namespace.
    device : device
        A device of the namespace.

    Returns
    -------
    array, shape (rows, columns // 2 + 1)
        The weights.
    """
    rows, columns = shape
    # Frequencies count in cycles per pixel, of which one half is the highest.
    y = xp.fft.fftfreq(rows, dtype=dtype, device=device)[:, None]
    x = xp.fft.rfftfreq(columns, dtype=dtype, device=device)[None, :]
    return 1 / (1 + ((x * x + y * y) / (keep / 2) ** 2) ** ORDER)


def denoise(image: Array, *, xp: Any, keep: float) -> Array:
    """Weaken the frequencies of images in which noise drowns the picture.

    A picture's energy sits in its low frequencies, while noise spreads over all of them alike.

    Parameters
    ----------
    image : array, shape (..., rows, columns)
        One image or a stack of them, of a real floating-point dtype.
    xp : module
        The array namespace of ``image``; only functions of the standard are used.
    keep : float
        How much of the band of frequencies to keep along each axis, from just above 0 to 1.

    Returns
    -------
    array, shape (..., rows, columns)
        The images without their high frequencies, in the dtype and on the device of ``image``.

    Raises
    ------
    ValueError
        If ``image`` has fewer than two axes, or ``keep`` is out of range.

    Examples
    --------
    >>> import array_api_compat.numpy as xp
    >>> checkers = xp.asarray([[1.0, 0.0], [0.0, 1.0]])
    >>> flat = denoise(checkers, xp=xp, keep=0.1)
    >>> float(xp.max(xp.abs(flat - 0.5))) < 1e-6
    True
    """
    if image.ndim < 2 or not 0 < keep <= 1:
        raise ValueError(
            f"denoise: image has shape {image.shape} and keep is {keep}; image must be (..., rows, columns) "
            "and keep in (0, 1]."
        )
    shape = (image.shape[-2], image.shape[-1])
    weights = lowpass(shape, xp=xp, keep=keep, dtype=image.dtype, device=image.device)
    spectrum = xp.fft.rfftn(image, axes=(-2, -1))
    return xp.fft.irfftn(spectrum * weights, s=shape, axes=(-2, -1))


def main(argv: list[str] | None = None) -> None:
    """Denoise waves under a fine pattern and print how much of the pattern is left."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.spectral_denoise", description=__doc__
    )
    parser.add_argument("--namespace", default="numr.cpu", help="module of an array namespace")
    xp = importlib.import_module(parser.parse_args(argv).namespace)
    turns = xp.linspace(0, 2 * math.pi, 128, endpoint=False)
    picture = xp.sin(2 * turns)[:, None] + xp.cos(3 * turns)[None, :]
    pattern = xp.cos(50 * turns)[:, None] * xp.cos(40 * turns)[None, :] / 2
    result = denoise(picture + pattern, xp=xp, keep=0.25)
    before = float(xp.max(xp.abs(pattern)))
    after = float(xp.max(xp.abs(result - picture)))
    print(f"largest deviation from the picture with {xp.__name__}: {before:.3g}, now {after:.3g}")


if __name__ == "__main__":
    main()
