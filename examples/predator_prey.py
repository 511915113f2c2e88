"""An ensemble of predators and prey, stepped through time as an array-API program.

Each member of the ensemble is a solution of the Lotka-Volterra equations with parameters of its own; a step of the
classical Runge-Kutta method advances all of them. Nothing here knows which library computes:

    python -m examples.predator_prey --namespace numr.cpu
    python -m examples.predator_prey --namespace array_api_compat.numpy

A step is some fifty operations on arrays. Where the namespace is one of numr's, ``numr.jit`` makes one kernel of
them; the program prints both times then.
"""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Callable
from typing import Any

Array = Any

#: Growth of prey, hunting, growth of predators by what they hunt, and death of predators.
Rates = tuple[Array, Array, Array, Array]


def slopes(prey: Array, predators: Array, rates: Rates) -> tuple[Array, Array]:
    """How fast both populations change.

    Parameters
    ----------
    prey, predators : array, shape (members,)
        The populations.
    rates : tuple of array
        Growth, hunting, gain and death, each of shape (members,) or broadcasting to it.

    Returns
    -------
    tuple of array
        Their derivatives by time.
    """
    growth, hunting, gain, death = rates
    met = prey * predators
    return growth * prey - hunting * met, gain * met - death * predators


def step(prey: Array, predators: Array, rates: Rates, dt: float) -> tuple[Array, Array]:
    """Advance an ensemble by one step of the classical Runge-Kutta method, of fourth order.

    Parameters
    ----------
    prey, predators : array, shape (members,)
        The populations.
    rates : tuple of array
        See :func:`slopes`.
    dt : float
        Length of the step.

    Returns
    -------
    tuple of array
        The populations after the step.

    Examples
    --------
    >>> import array_api_compat.numpy as xp
    >>> balance = (xp.asarray([1.0]),) * 4
    >>> prey, predators = step(xp.asarray([1.0]), xp.asarray([1.0]), balance, 0.1)
    >>> float(prey[0]), float(predators[0])
    (1.0, 1.0)
    """
    a, b = slopes(prey, predators, rates)
    c, d = slopes(prey + dt / 2 * a, predators + dt / 2 * b, rates)
    e, f = slopes(prey + dt / 2 * c, predators + dt / 2 * d, rates)
    g, h = slopes(prey + dt * e, predators + dt * f, rates)
    return (
        prey + dt / 6 * (a + 2 * c + 2 * e + g),
        predators + dt / 6 * (b + 2 * d + 2 * f + h),
    )


def ensemble(members: int, *, xp: Any, dtype: Any = None, device: Any = None) -> tuple[Any, ...]:
    """Populations and rates of an ensemble, whose members differ in how fast prey grows.

    Parameters
    ----------
    members : int
        How many.
    xp : module
        The namespace of the result.
    dtype : dtype, optional
        A real floating-point dtype; by default the namespace's.
    device : device, optional
        Where the arrays are.

    Returns
    -------
    tuple
        ``prey``, ``predators`` and ``rates``.
    """
    ones = xp.ones(members, dtype=dtype, device=device)
    growth = xp.linspace(0.5, 1.5, members, dtype=dtype, device=device)
    return 10 * ones, 5 * ones, (growth, 0.1 * ones, 0.075 * ones, 1.5 * ones)


def advance(
    state: tuple[Any, ...],
    steps: int,
    dt: float,
    stepper: Callable[..., tuple[Array, Array]] = step,
) -> tuple[Array, Array]:
    """Advance an ensemble by some steps.

    Parameters
    ----------
    state : tuple
        What :func:`ensemble` gives.
    steps : int
        How many.
    dt : float
        Length of each.
    stepper : callable, optional
        :func:`step`, or what stands for it.

    Returns
    -------
    tuple of array
        The populations in the end.
    """
    prey, predators, rates = state
    for _ in range(steps):
        prey, predators = stepper(prey, predators, rates, dt)
    return prey, predators


def main(argv: list[str] | None = None) -> None:
    """Advance an ensemble and print where it went, and how long that took."""
    parser = argparse.ArgumentParser(prog="python -m examples.predator_prey", description=__doc__)
    parser.add_argument("--namespace", default="numr.cpu", help="module of an array namespace")
    parser.add_argument("--members", type=int, default=20000)
    parser.add_argument("--steps", type=int, default=50)
    options = parser.parse_args(argv)
    xp = importlib.import_module(options.namespace)
    state = ensemble(options.members, xp=xp)
    steppers: dict[str, Callable[..., tuple[Array, Array]]] = {"as it is": step}
    if options.namespace.startswith("numr."):
        import numr

        steppers["jitted"] = numr.jit(step)
    for name, stepper in steppers.items():
        float(xp.mean(advance(state, 1, 0.02, stepper)[0]))  # warms up
        start = time.perf_counter()
        prey, predators = advance(state, options.steps, 0.02, stepper)
        means = float(xp.mean(prey)), float(xp.mean(predators))
        seconds = time.perf_counter() - start
        print(
            f"{xp.__name__}, {name}: prey {means[0]:.6f}, predators {means[1]:.6f}, "
            f"{1e6 * seconds / options.steps:.0f} us a step"
        )


if __name__ == "__main__":
    main()
