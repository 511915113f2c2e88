"""The leading patterns of a field that is larger than the memory allowed to the job.

A field of a simulated climate, one row for each time and one column for each point of a grid, is written to a Zarr store
on disk. cubed plans standardisation and covariance so that no task needs more than the memory allowed, and runs the
tasks in processes, threads, on a cluster of dask or on one of ray. In each task numr computes. The eigenvectors of the
covariance, which is small, are the patterns; that they are those that the field was made of is checked at the end.

    python -m examples.scaling.patterns
    python -m examples.scaling.patterns --executor threads --times 20000 --latitudes 20 --allowed-mem 50MB
    python -m examples.scaling.patterns --namespace numr.cuda --workers 2

It needs cubed, and for clusters dask or ray: ``pip install "cubed[diagnostics]" distributed``.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import cubed

Array = Any

#: Standard deviations of the amplitudes of the patterns; the noise has 1.
STRENGTHS = (3.0, 2.5, 2.0, 1.5)
#: A task of standardisation and product holds several blocks at a time; this many fit into what is allowed.
BLOCKS_IN_MEMORY = 12
#: A task that adds up products of blocks, with a row and a column for each point, holds this many.
PRODUCTS_IN_MEMORY = 8


class Grid(NamedTuple):
    """The size of a field."""

    times: int
    latitudes: int
    longitudes: int

    @property
    def points(self) -> int:
        """Columns of the field."""
        return self.latitudes * self.longitudes

    @property
    def nbytes(self) -> int:
        """Bytes of the field in single precision."""
        return 4 * self.times * self.points


class Result(NamedTuple):
    """What the job finds."""

    #: Patterns of the standardised field, a row for each, the strongest first.
    patterns: np.ndarray
    #: Share of the variance that each explains.
    explained: np.ndarray
    #: Cosine of the largest angle between the space of these patterns and that of the true ones.
    agreement: float


# ------------------------------------------------------------------- the field
def true_patterns(grid: Grid) -> np.ndarray:
    """The patterns that the field is made of: waves on the grid, a row of unit length for each."""
    latitude = np.linspace(-1, 1, grid.latitudes)[:, None]
    longitude = 2 * np.pi * np.arange(grid.longitudes)[None, :] / grid.longitudes
    waves = [
        np.cos(np.pi * latitude / 2) * np.cos(longitude),
        np.cos(np.pi * latitude / 2) * np.sin(longitude),
        np.sin(np.pi * latitude) * np.cos(2 * longitude),
        latitude + 0 * longitude,
    ]
    rows = np.stack([wave.ravel() for wave in waves])
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def simulated(block: Array, grid: Grid, seed: int, block_id: tuple[int, ...]) -> Array:
    """Some times of the field, in the place of a block of zeros of cubed's.

    Each block has random numbers of its own, so that it does not matter which worker makes it.
    """
    xp = block.__array_namespace__()
    rows = block.shape[0]
    generator = np.random.default_rng([seed, *block_id])
    amplitudes = generator.normal(size=(rows, len(STRENGTHS))) * np.asarray(STRENGTHS)
    signal = amplitudes * np.sqrt(grid.points) @ true_patterns(grid)
    climate = 15 + 10 * np.cos(np.linspace(-1.5, 1.5, grid.points))
    field = climate + signal + generator.normal(size=(rows, grid.points))
    return xp.asarray(field.astype(np.float32), device=block.device)


def stored_field(grid: Grid, store: Path, spec: cubed.Spec, **run: Any) -> None:
    """Write a simulated field to a Zarr store."""
    import cubed
    import cubed.array_api as xp

    rows = block_rows(grid, spec)
    zeros = xp.zeros(
        (grid.times, grid.points), dtype=xp.float32, chunks=(rows, grid.points), spec=spec
    )
    field = cubed.map_blocks(simulated, zeros, dtype=xp.float32, grid=grid, seed=7)
    cubed.to_zarr(field, str(store), **run)


def block_rows(grid: Grid, spec: cubed.Spec) -> int:
    """How many times are in a block, for the memory that a task may use."""
    data = spec.allowed_mem - spec.reserved_mem
    products = PRODUCTS_IN_MEMORY * 4 * grid.points**2
    rows = data // (BLOCKS_IN_MEMORY * 4 * grid.points)
    if rows < 1 or products > data:
        raise ValueError(
            f"block_rows: {data} bytes are allowed for the data of a task. The covariance of {grid.points} points "
            f"takes {products}, and one time {BLOCKS_IN_MEMORY * 4 * grid.points}. Allow more, or take a coarser grid."
        )
    return min(int(rows), grid.times)


# -------------------------------------------------------------------- analysis
def standardised(field: cubed.Array) -> tuple[cubed.Array, cubed.Array]:
    """Deviations from the mean of all times, in units of the standard deviation, for each point; and these units."""
    import cubed.array_api as xp

    deviation = xp.astype(xp.std(field, axis=0), xp.float32)
    return (field - xp.mean(field, axis=0)) / deviation, deviation


def covariance(field: cubed.Array) -> cubed.Array:
    """Covariance of the points of a standardised field."""
    import cubed.array_api as xp

    return xp.matmul(xp.permute_dims(field, (1, 0)), field) / float(field.shape[0])


def leading(matrix: Array, count: int) -> tuple[Array, Array]:
    """The largest eigenvalues of a symmetric matrix and their eigenvectors, a row for each.

    Parameters
    ----------
    matrix : array
        Of any library that follows the array API.
    count : int
        How many.
    """
    xp = matrix.__array_namespace__()
    values, vectors = xp.linalg.eigh(matrix)
    return xp.flip(values)[:count], xp.flip(vectors, axis=1)[:, :count].T


def agreement(found: np.ndarray, true: np.ndarray) -> float:
    """Cosine of the largest angle between the spaces that rows span: 1 where they are the same."""
    bases = [np.linalg.qr(rows.T).Q for rows in (found, true)]
    return float(np.linalg.svd(bases[0].T @ bases[1], compute_uv=False).min())


def analyse(grid: Grid, store: Path, spec: cubed.Spec, **run: Any) -> Result:
    """Find the leading patterns of a stored field."""
    import cubed

    field, deviations = standardised(cubed.from_zarr(str(store), spec=spec))
    # One plan for both, so that they share what they read and compute.
    covariances, scales = cubed.compute(covariance(field), deviations, **run)
    values, patterns = leading(covariances, len(STRENGTHS))
    rows = np.asarray(patterns)
    true = true_patterns(grid) / np.asarray(scales)
    return Result(rows, np.asarray(values) / grid.points, agreement(rows, true))


# ------------------------------------------------------------------- execution
def memory_callback() -> Any:
    """What notes the peak memory of each process that ran a task."""
    from cubed import Callback
    from cubed.utils import peak_measured_mem

    class PeakMemory(Callback):
        """The largest resident memory of a process that ran tasks, and what the plan said of a task."""

        def __init__(self) -> None:
            self.peak = 0
            self.planned = 0
            self.tasks = 0

        def on_compute_start(self, event: Any) -> None:
            for _, node in event.dag.nodes(data=True):
                if (operation := node.get("primitive_op")) is not None:
                    needed = operation.projected_mem - operation.reserved_mem
                    self.planned = max(self.planned, needed)

        def on_task_end(self, event: Any) -> None:
            self.tasks += event.num_tasks
            # Executors in this process do not measure.
            self.peak = max(self.peak, event.peak_measured_mem_end or peak_measured_mem())

    return PeakMemory()


def worker_environment(namespace: str, number: int) -> dict[str, str]:
    """Environment variables of a worker: one thread, no memory kept for later, and on GPUs one GPU."""
    environment = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    environment |= {"NUMR_NUM_THREADS": "1", "NUMR_CPU_CACHE_BYTES": "0"}
    if namespace == "numr.cuda":
        environment["CUDA_VISIBLE_DEVICES"] = str(number)
    return environment


@contextmanager
def dask_cluster(namespace: str, workers: int, memory: int) -> Iterator[dict[str, Any]]:
    """Executor options for a cluster of dask on this machine, one process for each worker."""
    import cubed.runtime.executors.dask as executor
    from distributed import Nanny, Scheduler, SpecCluster

    # cubed 0.27 asks its asynchronous client how much memory the workers have, and recent versions of distributed
    # have not told the client of any worker by then. The cluster below is made with what the plan may use.
    executor.check_runtime_memory = lambda spec, client: None
    specification = {
        number: {
            "cls": Nanny,
            "options": {
                "nthreads": 1,
                "memory_limit": 2 * memory,  # where dask restarts a worker
                "silence_logs": logging.WARNING,
                "env": worker_environment(namespace, number),
            },
        }
        for number in range(workers)
    }
    scheduler = {"cls": Scheduler, "options": {"dashboard": False, "port": 0}}
    with SpecCluster(
        workers=specification, scheduler=scheduler, silence_logs=logging.WARNING
    ) as cluster:
        yield {"compute_kwargs": {"address": cluster.scheduler_address}}


@contextmanager
def executor_options(
    name: str, namespace: str, workers: int, memory: int
) -> Iterator[dict[str, Any]]:
    """What cubed's executor is made with, while the cluster that it needs is up."""
    if name == "dask":
        with dask_cluster(namespace, workers, memory) as options:
            yield options
    elif name == "ray":
        import ray

        ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False)
        try:
            yield {}
        finally:
            ray.shutdown()
    else:
        yield {} if name == "single-threaded" else {"max_workers": workers}


def megabytes(size: float) -> str:
    """A size as people read it."""
    return f"{size / 1e6:,.0f} MB"


def run(arguments: argparse.Namespace, work: Path, show: Callable[[str], None] = print) -> Result:
    """Make the field and find its patterns, and tell about size, time and memory."""
    import cubed
    from cubed.diagnostics import ProgressBar
    from cubed.runtime.create import create_executor
    from cubed.utils import convert_to_bytes

    grid = Grid(arguments.times, arguments.latitudes, arguments.longitudes)
    allowed = convert_to_bytes(arguments.allowed_mem)
    reserved = convert_to_bytes(arguments.reserved_mem)
    field = work / "field.zarr"
    show(
        f"field: {grid.times} times x {grid.points} points, {megabytes(grid.nbytes)}; allowed for the data of a "
        f"task: {megabytes(allowed)}, for a process without data: {megabytes(reserved)}"
    )
    with executor_options(
        arguments.executor, arguments.namespace, arguments.workers, allowed + reserved
    ) as options:
        spec = cubed.Spec(
            str(work),
            allowed_mem=allowed + reserved,
            reserved_mem=reserved,
            executor=create_executor(arguments.executor, options),
            zarr_compressor=None,  # noise does not compress
        )
        result: Result | None = None
        for name, step in (("simulate", stored_field), ("analyse", analyse)):
            memory = memory_callback()
            callbacks = [memory] if arguments.quiet else [memory, ProgressBar()]
            start = time.perf_counter()
            result = step(grid, field, spec, callbacks=callbacks)
            seconds = time.perf_counter() - start
            show(
                f"{name}: {memory.tasks} tasks, {seconds:.1f} s; planned for the data of a task: "
                f"{megabytes(memory.planned)}, peak of a process: {megabytes(memory.peak)}"
            )
    assert result is not None
    shares = ", ".join(f"{100 * share:.1f} %" for share in result.explained)
    show(
        f"patterns explain {shares} of the variance; agreement with the true ones {result.agreement:.4f}"
    )
    return result


def parser() -> argparse.ArgumentParser:
    """The arguments."""
    result = argparse.ArgumentParser(prog="examples.scaling.patterns", description=__doc__)
    result.add_argument("--times", type=int, default=160_000, help="rows of the field")
    result.add_argument("--latitudes", type=int, default=30)
    result.add_argument("--longitudes", type=int, default=52)
    result.add_argument("--allowed-mem", default="100MB", help="memory for the data of a task")
    result.add_argument("--reserved-mem", default="150MB", help="memory of a process without data")
    result.add_argument(
        "--executor",
        default="dask",
        choices=["dask", "ray", "processes", "threads", "single-threaded"],
    )
    result.add_argument("--workers", type=int, default=2)
    result.add_argument("--namespace", default="numr.cpu", help="numr.cpu, numr.cuda or numr.wgpu")
    result.add_argument("--work-dir", type=Path, help="folder for field and intermediate arrays")
    result.add_argument("--quiet", action="store_true", help="show no progress bar")
    return result


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job; 1 where the patterns found are not those that the field was made of."""
    arguments = parser().parse_args(argv)
    # cubed and the workers, which inherit the environment, read these when they start.
    os.environ["CUBED_BACKEND_ARRAY_API_MODULE"] = arguments.namespace
    if arguments.namespace != "numr.cpu":
        # A task's result goes through host memory to the store, by numpy.asarray.
        os.environ["NUMR_ALLOW_HOST_COPIES"] = "1"
    with tempfile.TemporaryDirectory(dir=arguments.work_dir, prefix="patterns-") as folder:
        result = run(arguments, Path(folder))
    return 0 if result.agreement > 0.99 else 1


if __name__ == "__main__":
    sys.exit(main())
