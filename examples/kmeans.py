"""K-means clustering as an array-API program.

Nothing here knows which library computes. The functions take ``xp``, a namespace of the Python array API
standard, and arrays of that namespace on any device:

    python -m examples.kmeans --namespace numr.cpu
    python -m examples.kmeans --namespace array_api_compat.numpy
"""

from __future__ import annotations

import argparse
import importlib
from typing import Any, NamedTuple

Array = Any


class Clusters(NamedTuple):
    """What :func:`kmeans` finds."""

    #: Centres of the clusters, of shape (k, features).
    centres: Array
    #: For each point the number of its cluster, of shape (points,).
    labels: Array
    #: Sum of the squared distances between the points and their centres, of shape ().
    inertia: Array


def squared_distances(x: Array, centres: Array, *, xp: Any) -> Array:
    """Squared Euclidean distances between points and centres.

    Parameters
    ----------
    x : array, shape (points, features)
        The points, of a real floating-point dtype.
    centres : array, shape (k, features)
        The centres, of the same dtype.
    xp : module
        The namespace of both.

    Returns
    -------
    array, shape (points, k)
        The squared distances, never negative.
    """
    # |x - c|^2 = |x|^2 - 2 x.c + |c|^2 is one matrix product and needs no (points, k, features) array.
    squares = xp.sum(x * x, axis=1, keepdims=True) + xp.sum(centres * centres, axis=1)
    # Rounding can push a distance of zero below it.
    return xp.clip(squares - 2 * (x @ centres.mT), min=0)


def farthest_points(x: Array, k: int, *, xp: Any) -> Array:
    """Pick ``k`` points that lie far apart, without chance.

    The first is the point farthest from the mean of all; each further one is the point farthest from
    those that are picked already. The first of equally far points is taken, so that every library picks the
    same ones.

    Parameters
    ----------
    x : array, shape (points, features)
        The points.
    k : int
        How many to pick.
    xp : module
        The namespace of ``x``.

    Returns
    -------
    array, shape (k, features)
        Points of ``x``.
    """
    picked = []
    nearest = squared_distances(x, xp.mean(x, axis=0, keepdims=True), xp=xp)[:, 0]
    for i in range(k):
        farthest = xp.reshape(xp.argmax(nearest), (1,))
        picked.append(xp.take(x, farthest, axis=0))
        distances = squared_distances(x, picked[-1], xp=xp)[:, 0]
        nearest = distances if i == 0 else xp.minimum(nearest, distances)
    return xp.concat(picked, axis=0)


def kmeans(x: Array, k: int, *, xp: Any, iterations: int = 20) -> Clusters:
    """Cluster points by Lloyd's algorithm from a deterministic start.

    Parameters
    ----------
    x : array, shape (points, features)
        The points, of a real floating-point dtype.
    k : int
        How many clusters to make, between 1 and the number of points.
    xp : module
        The array namespace of ``x``; only functions of the standard are used.
    iterations : int, optional
        How often points are assigned and centres moved. The number is fixed, so that nothing is read back from the
        device in between.

    Returns
    -------
    Clusters
        Centres, labels and inertia, on the device of ``x``.

    Raises
    ------
    ValueError
        If ``x`` is not a matrix, or ``k`` or ``iterations`` is out of range.

    Examples
    --------
    >>> import array_api_compat.numpy as xp
    >>> x = xp.asarray([[0.0], [1.0], [10.0], [11.0]])
    >>> kmeans(x, 2, xp=xp).centres
    array([[ 0.5],
           [10.5]])
    """
    if x.ndim != 2 or not 1 <= k <= x.shape[0]:
        raise ValueError(
            f"kmeans: x has shape {x.shape} and k is {k}; x must be (points, features) and k between 1 and "
            "the number of points."
        )
    if iterations < 1:
        raise ValueError(f"kmeans: iterations is {iterations}; at least one is needed.")
    centres = farthest_points(x, k, xp=xp)
    numbers = xp.arange(k, device=x.device)
    for _ in range(iterations):
        labels = xp.argmin(squared_distances(x, centres, xp=xp), axis=1)
        member = xp.astype(labels[:, None] == numbers[None, :], x.dtype)
        counts = xp.sum(member, axis=0)[:, None]
        means = (member.mT @ x) / xp.clip(counts, min=1)
        # A centre that lost all its points stays where it was.
        centres = xp.where(counts > 0, means, centres)
    distances = squared_distances(x, centres, xp=xp)
    return Clusters(centres, xp.argmin(distances, axis=1), xp.sum(xp.min(distances, axis=1)))


def main(argv: list[str] | None = None) -> None:
    """Cluster a small grid of points around four places and print what was found."""
    parser = argparse.ArgumentParser(prog="python -m examples.kmeans", description=__doc__)
    parser.add_argument("--namespace", default="numr.cpu", help="module of an array namespace")
    xp = importlib.import_module(parser.parse_args(argv).namespace)
    places = xp.asarray([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0], [8.0, 8.0]])
    offsets = xp.stack(xp.meshgrid(xp.linspace(-1, 1, 5), xp.linspace(-1, 1, 5)), axis=-1)
    points = xp.reshape(places[:, None, :] + xp.reshape(offsets, (1, -1, 2)), (-1, 2))
    found = kmeans(points, 4, xp=xp)
    print(f"{points.shape[0]} points in 4 clusters with {xp.__name__}")
    print(f"centres:\n{found.centres}\ninertia: {float(found.inertia):.6g}")


if __name__ == "__main__":
    main()
