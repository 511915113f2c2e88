"""cubed's executors run tasks on tensors: threads, processes, a cluster of dask and one of ray, all on one machine."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest

from tests.ecosystem.cubed_support import BACKEND, assert_same, cubed, fix_the_check_of_dask_workers

xp = cubed.array_api
HOST = np.random.default_rng(12).normal(size=(60, 40))


@pytest.fixture
def dask_cluster():
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    fix_the_check_of_dask_workers()
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        yield {"compute_kwargs": {"address": cluster.scheduler_address}}


@pytest.fixture
def ray_cluster():
    ray = pytest.importorskip("ray", reason="ray is not installed")
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=100_000_000,
        log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}},
    )
    try:
        yield {}
    finally:
        ray.shutdown()


@pytest.fixture
def options(request: pytest.FixtureRequest, executor: str) -> dict:
    """What the executor is made with."""
    if executor in ("dask", "ray"):
        return request.getfixturevalue(f"{executor}_cluster")
    return {"max_workers": 2}


@pytest.mark.parametrize(
    "executor",
    [
        "single-threaded",
        "threads",
        "processes",
        "dask",
        "ray",
    ],
)
def test_workers_compute_on_tensors(executor: str, options: dict, tmp_path) -> None:
    namespace = BACKEND

    def centred(block):
        # In a worker: the block is a tensor of the namespace, or the task fails.
        import numr

        assert isinstance(block, numr.Tensor), type(block)
        assert block.__array_namespace__().__name__ == namespace
        return block - block.mean(axis=0, keepdims=True)

    if executor == "single-threaded":
        options = {}
    spec = cubed.Spec(
        tmp_path, allowed_mem="100MB", executor_name=executor, executor_options=options
    )
    x = xp.asarray(HOST, chunks=(60, 10), spec=spec)
    deviations = cubed.map_blocks(centred, x, dtype=x.dtype)
    covariance = xp.matmul(xp.permute_dims(deviations, (1, 0)), deviations) / (HOST.shape[0] - 1)
    total = xp.sum(xp.sin(xp.asarray(HOST, chunks=(7, 11), spec=spec)))
    found, sine = cubed.compute(covariance, total)
    assert_same(np.asarray(found), np.cov(HOST, rowvar=False), rtol=1e-10)
    assert float(sine) == pytest.approx(np.sin(HOST).sum(), rel=1e-12)
