"""Unchanged array-API programs on every runtime, compared with NumPy.

Run it with ``make demo``, or ``python -m examples.demo``. On each runtime that this machine has, it runs
scikit-learn's own PCA and Ridge, :mod:`examples.kmeans` and :mod:`examples.spectral_denoise` on the images of
handwritten digits that come with scikit-learn. None of the four knows numr. Each result is compared with
that of the same program, in the same dtype, on NumPy. A second table compares the steps of
:mod:`examples.predator_prey` with the same steps by ``numr.jit``.

The exit status is 1 if a difference exceeds the tolerance of its dtype, :data:`TOLERANCES`.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import array_api_compat.numpy as numpy_namespace
import numpy as np

import numr
from examples import predator_prey
from examples.kmeans import kmeans
from examples.spectral_denoise import denoise
from numr.runtime import client_of
from numr.runtime import runtime as runtime_of

# SciPy and scikit-learn read this when they are imported, which happens below, in functions.
os.environ["SCIPY_ARRAY_API"] = "1"

Array = Any

#: Largest difference to NumPy that is accepted, for the dtype that the programs compute in.
TOLERANCES = {"float64": 1e-9, "float32": 2e-3}

#: Standard deviation of the noise that is laid over the digits; the pixels are between 0 and 16.
NOISE = 6.0
#: Rows and columns of digits in the image that is denoised.
MONTAGE = (40, 40)
#: Members of the ensemble of differential equations, and steps that are timed.
MEMBERS, STEPS = 20_000, 20


class Data(NamedTuple):
    """The digits as one library has them."""

    #: One row of 64 pixels for each image, (1797, 64).
    pixels: Array
    #: The digit that each image shows, as floating-point numbers, (1797,).
    digits: Array
    #: Many images as one, (320, 320).
    picture: Array
    #: The same under noise.
    noisy: Array


class Outcome(NamedTuple):
    """What a program gives."""

    #: The arrays that are compared with NumPy's.
    arrays: tuple[Array, ...]
    #: What a person wants to know of the result.
    summary: str


class Steps(NamedTuple):
    """One line of the table of eager and jitted steps."""

    device: str
    dtype: str
    #: What a launch of the graph does, one entry a kernel or library call.
    kernels: int
    error: float
    eager: float
    jitted: float

    @property
    def holds(self) -> bool:
        """Whether eager and jitted steps agree within the tolerance; NaN does not."""
        return self.error <= TOLERANCES[self.dtype]


class Row(NamedTuple):
    """One line of the table."""

    program: str
    runtime: str
    device: str
    dtype: str
    summary: str
    error: float
    seconds: float
    numpy_seconds: float

    @property
    def holds(self) -> bool:
        """Whether the difference to NumPy is within the tolerance; NaN is not."""
        return self.error <= TOLERANCES[self.dtype]


#: A program: the namespace and the digits in, the outcome out.
Program = Callable[[Any, Data], Outcome]


def pca(xp: Any, data: Data) -> Outcome:
    """Run scikit-learn's principal component analysis."""
    from sklearn.decomposition import PCA

    model = PCA(n_components=16, svd_solver="full")
    scores = model.fit(data.pixels).transform(data.pixels)
    explained = model.explained_variance_ratio_
    summary = f"{100 * float(xp.sum(explained)):.1f} % of the variance"
    return Outcome((scores, model.components_, explained), summary)


def ridge(xp: Any, data: Data) -> Outcome:
    """Run scikit-learn's ridge regression, of the digit on the pixels."""
    from sklearn.linear_model import Ridge

    model = Ridge(alpha=1.0, solver="svd").fit(data.pixels, data.digits)
    predicted = model.predict(data.pixels)
    residual = float(xp.sum((predicted - data.digits) ** 2))
    total = float(xp.sum((data.digits - xp.mean(data.digits)) ** 2))
    return Outcome((predicted, model.coef_), f"R2 = {1 - residual / total:.3f}")


def cluster(xp: Any, data: Data) -> Outcome:
    """Run :func:`examples.kmeans.kmeans` with one cluster for each digit."""
    found = kmeans(data.pixels, 10, xp=xp, iterations=20)
    spread = float(found.inertia) / data.pixels.shape[0]
    return Outcome((found.centres, found.inertia), f"mean square distance {spread:.1f}")


def clean(xp: Any, data: Data) -> Outcome:
    """Run :func:`examples.spectral_denoise.denoise` on the montage."""
    result = denoise(data.noisy, xp=xp, keep=0.6)

    def deviation(image: Array) -> float:
        return float(xp.mean((image - data.picture) ** 2)) ** 0.5

    summary = f"noise {deviation(data.noisy):.2f} -> {deviation(result):.2f}"
    return Outcome((result,), summary)


PROGRAMS: dict[str, Program] = {
    "sklearn PCA": pca,
    "sklearn Ridge": ridge,
    "k-means": cluster,
    "spectral denoise": clean,
}


def load(dtype: str) -> Data:
    """Read the digits that come with scikit-learn as NumPy arrays of one dtype."""
    from sklearn.datasets import load_digits

    pixels, digits = load_digits(return_X_y=True)
    rows, columns = MONTAGE
    tiles = pixels[: rows * columns].reshape(rows, columns, 8, 8)
    picture = tiles.transpose(0, 2, 1, 3).reshape(8 * rows, 8 * columns)
    # The seed is fixed, so that every run shows the same figures.
    noisy = picture + np.random.default_rng(0).normal(0, NOISE, picture.shape)
    return Data(*(np.ascontiguousarray(a, dtype=dtype) for a in (pixels, digits, picture, noisy)))


def fastest(run: Callable[[], Outcome], wait: Callable[[], None], repeats: int) -> float:
    """Time a program: the best of some runs, in seconds, after it has been warmed up."""
    times = []
    for _ in range(repeats):
        wait()
        start = time.perf_counter()
        run()
        wait()
        times.append(time.perf_counter() - start)
    return min(times)


def largest_error(arrays: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> float:
    """Compare results: the largest difference, over the largest magnitude in the expected array if not 0.

    Raises
    ------
    ValueError
        If there are not as many results, or one has another shape or dtype.
    """
    error = 0.0
    for ours, theirs in zip(arrays, expected, strict=True):
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            raise ValueError(
                f"a result is {ours.dtype}{ours.shape}, but NumPy's is {theirs.dtype}{theirs.shape}."
            )
        difference = np.max(np.abs(ours - theirs)) / (np.max(np.abs(theirs)) or 1)
        error = float(np.maximum(error, difference))  # which keeps NaN, unlike max()
    return error


def measure(name: str, program: Program, runtime: str, repeats: int) -> Row:
    """Run one program on the default device of a runtime, and on NumPy."""
    xp = numr.namespace(runtime)
    info = xp.__array_namespace_info__()
    device = info.default_device()
    dtype = str(info.default_dtypes(device=device)["real floating"])
    host = load(dtype)
    data = Data(*(xp.asarray(a, device=device) for a in host))

    expected = program(numpy_namespace, host)
    outcome = program(xp, data)
    foreign = [type(a).__name__ for a in outcome.arrays if not isinstance(a, numr.Tensor)]
    if foreign:
        raise TypeError(f"{name} on {device} left the runtime: it gave {', '.join(foreign)}.")
    return Row(
        name,
        runtime,
        str(device),
        dtype,
        outcome.summary,
        largest_error([a.to_numpy() for a in outcome.arrays], [*map(np.asarray, expected.arrays)]),
        fastest(lambda: program(xp, data), client_of(device).synchronize, repeats),
        fastest(lambda: program(numpy_namespace, host), lambda: None, repeats),
    )


def measure_steps(runtime: str, repeats: int) -> Steps:
    """Advance :mod:`examples.predator_prey` eagerly and jitted, on the default device of a runtime."""
    xp = numr.namespace(runtime)
    info = xp.__array_namespace_info__()
    device = info.default_device()
    state = predator_prey.ensemble(MEMBERS, xp=xp)
    dtype = str(info.default_dtypes(device=device)["real floating"])
    graph = numr.capture(
        lambda prey, predators, *rates: predator_prey.step(prey, predators, rates, 0.02),
        *(xp.asarray(x, copy=True) for x in (*state[:2], *state[2])),
    )
    jitted = numr.jit(predator_prey.step)
    steppers = {"eager": predator_prey.step, "jitted": jitted}
    arrays = {
        name: [x.to_numpy() for x in predator_prey.advance(state, STEPS, 0.02, stepper)]
        for name, stepper in steppers.items()
    }

    def seconds(stepper: Callable[..., Any]) -> float:
        def run() -> Outcome:
            return Outcome(predator_prey.advance(state, STEPS, 0.02, stepper), "")

        return fastest(run, client_of(device).synchronize, repeats) / STEPS

    return Steps(
        str(device),
        dtype,
        len(graph.nodes),
        largest_error(arrays["jitted"], arrays["eager"]),
        seconds(predator_prey.step),
        seconds(jitted),
    )


def table_of_steps(rows: Sequence[Steps]) -> str:
    """Lay the comparison of eager and jitted steps out as text."""
    head = ("device", "dtype", "kernels", "max error", "eager", "jitted")
    body = [
        (
            row.device,
            row.dtype,
            str(row.kernels),
            f"{row.error:.1e}" + ("" if row.holds else " (too large)"),
            f"{1e6 * row.eager:.0f} us",
            f"{1e6 * row.jitted:.0f} us",
        )
        for row in rows
    ]
    return laid_out(head, body, right={2, 3, 4, 5})


def table(rows: Sequence[Row]) -> str:
    """Lay rows out as text."""
    head = ("program", "runtime", "device", "dtype", "result", "max error", "time", "NumPy")
    body = [
        (
            row.program,
            row.runtime,
            row.device,
            row.dtype,
            row.summary,
            f"{row.error:.1e}" + ("" if row.holds else " (too large)"),
            f"{1e3 * row.seconds:.2f} ms",
            f"{1e3 * row.numpy_seconds:.2f} ms",
        )
        for row in rows
    ]
    return laid_out(head, body, right={5, 6, 7})


def laid_out(head: tuple[str, ...], body: Sequence[tuple[str, ...]], right: set[int]) -> str:
    """Lay cells out in columns, of which some are flush right."""
    widths = [max(len(cells[i]) for cells in (head, *body)) for i in range(len(head))]
    rule = tuple("-" * width for width in widths)
    return "\n".join(
        "  ".join(
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ).rstrip()
        for cells in (head, rule, *body)
    )


def main(argv: list[str] | None = None) -> int:
    """Run all programs on all runtimes, print the table and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m examples.demo", description=__doc__)
    parser.add_argument(
        "--repeats", type=int, default=3, help="timed runs, of which the best counts"
    )
    repeats = parser.parse_args(argv).repeats
    if repeats < 1:
        parser.error(f"--repeats is {repeats}; at least one run is needed")

    import sklearn

    print(f"numr {numr.__version__}, NumPy {np.__version__}, scikit-learn {sklearn.__version__}")
    for runtime in numr.available():
        device = numr.namespace(runtime).__array_namespace_info__().default_device()
        print(f"{device}: {device.name}")
    print()
    with sklearn.config_context(array_api_dispatch=True):
        rows = [
            measure(name, program, runtime, repeats)
            for runtime in numr.available()
            for name, program in PROGRAMS.items()
        ]
    print(table(rows))
    print()
    print("max error: largest difference to NumPy, over the largest magnitude in NumPy's result;")
    print("accepted: " + ", ".join(f"{bound:g} in {name}" for name, bound in TOLERANCES.items()))
    print(f"time, NumPy: best of {repeats} after a warm-up, data on the device")
    steps = [
        measure_steps(runtime, repeats)
        for runtime in numr.available()
        if runtime_of(runtime).supports_graph_capture()
    ]
    print(f"\nA step of examples.predator_prey, {MEMBERS} members: as it is, and by numr.jit")
    print(table_of_steps(steps))
    absent = numr.unavailable()
    if absent:
        print("\nRuntimes that are absent")
    for runtime, why in absent.items():
        print(f"  {runtime}: {why.reason}. {why.remedy}")
    wrong = [row for row in rows if not row.holds]
    for row in wrong:
        print(
            f"{row.program} on {row.device}: the error {row.error:.1e} exceeds {TOLERANCES[row.dtype]:g}.",
            file=sys.stderr,
        )
    apart = [row for row in steps if not row.holds]
    for row in apart:
        print(
            f"jitted steps on {row.device}: they differ from eager ones by {row.error:.1e}, more than "
            f"{TOLERANCES[row.dtype]:g}.",
            file=sys.stderr,
        )
    return 1 if wrong or apart else 0


if __name__ == "__main__":
    sys.exit(main())
