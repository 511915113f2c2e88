"""The example of docs/scaling.md at a small size: right results within the memory that is allowed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import array_api_strict
import numpy as np
import pytest

import numr
from examples.scaling import patterns
from tests.ecosystem.cubed_support import BACKEND, cubed

ROOT = Path(__file__).resolve().parents[2]
GRID = patterns.Grid(3000, 8, 12)


@pytest.fixture
def spec(tmp_path) -> cubed.Spec:
    executor = cubed.runtime.create.create_executor("single-threaded")
    return cubed.Spec(str(tmp_path), allowed_mem="500kB", executor=executor, zarr_compressor=None)


def test_the_patterns_are_those_of_the_whole_field(spec, tmp_path) -> None:
    store = tmp_path / "field.zarr"
    patterns.stored_field(GRID, store, spec)
    lazy = cubed.from_zarr(str(store), spec=spec)
    assert lazy.shape == (3000, 96)
    assert lazy.nbytes == GRID.nbytes > 2 * spec.allowed_mem
    field = np.asarray(lazy.compute()).astype(np.float64)
    deviations = (field - field.mean(axis=0)) / field.std(axis=0)
    values, vectors = np.linalg.eigh(deviations.T @ deviations / 3000)

    result = patterns.analyse(GRID, store, spec)
    np.testing.assert_allclose(result.explained, values[::-1][:4] / 96, rtol=1e-4)
    overlaps = np.abs(np.sum(result.patterns * vectors[:, ::-1][:, :4].T, axis=1))
    np.testing.assert_allclose(overlaps, 1, atol=1e-4)
    assert 0.99 < result.agreement <= 1 + 1e-6


def test_the_field_does_not_depend_on_who_makes_it(spec, tmp_path) -> None:
    fields = []
    for name in ("one", "two"):
        patterns.stored_field(GRID, tmp_path / name, spec)
        fields.append(np.asarray(cubed.from_zarr(str(tmp_path / name), spec=spec).compute()))
    np.testing.assert_array_equal(*fields)
    blocks = np.split(fields[0][: 2 * patterns.block_rows(GRID, spec)], 2)
    assert not np.array_equal(*blocks)


def test_blocks_fit_into_what_is_allowed(spec) -> None:
    rows = patterns.block_rows(GRID, spec)
    assert rows * GRID.points * 4 * patterns.BLOCKS_IN_MEMORY <= spec.allowed_mem
    with pytest.raises(ValueError, match="Allow more, or take a coarser grid"):
        patterns.block_rows(patterns.Grid(10, 20, 20), spec)


def test_leading_eigenvectors_by_any_library() -> None:
    host = np.diag([1.0, 5.0, 3.0])
    for namespace in (array_api_strict, numr.cpu):
        values, vectors = patterns.leading(namespace.asarray(host), 2)
        np.testing.assert_allclose(np.asarray(values), [5, 3])
        np.testing.assert_allclose(np.abs(np.asarray(vectors)), [[0, 1, 0], [0, 0, 1]])


def test_agreement_is_the_cosine_of_the_largest_angle() -> None:
    true = np.eye(3)[:2]
    assert patterns.agreement(np.array([[1.0, 1.0, 0.0], [1.0, -1.0, 0.0]]), true) == pytest.approx(
        1
    )
    assert patterns.agreement(np.array([[1.0, 0, 0], [0, 1.0, 1.0]]), true) == pytest.approx(
        0.5**0.5
    )
    assert patterns.agreement(np.array([[1.0, 0, 0], [0, 0, 1.0]]), true) == pytest.approx(0)


def test_each_gpu_has_a_worker() -> None:
    names = [patterns.worker_environment("numr.cuda", i)["CUDA_VISIBLE_DEVICES"] for i in range(2)]
    assert names == ["0", "1"]
    assert "CUDA_VISIBLE_DEVICES" not in patterns.worker_environment("numr.cpu", 0)
    assert patterns.worker_environment("numr.cpu", 0)["NUMR_CPU_CACHE_BYTES"] == "0"


def run_program(*arguments: str, **environ: str) -> str:
    """What the program prints, with a field of 6 MB in 2 MB."""
    result = subprocess.run(
        [
            *(sys.executable, "-m", "examples.scaling.patterns", "--times", "10000"),
            *("--latitudes", "10", "--longitudes", "15", "--allowed-mem", "2MB", *arguments),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **environ},
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.mark.parametrize("executor", ["threads", "processes", "dask", "ray"])
def test_the_program(executor: str) -> None:
    if executor in ("dask", "ray"):
        pytest.importorskip({"dask": "distributed"}.get(executor, executor))
    printed = run_program("--executor", executor)
    assert "field: 10000 times x 150 points, 6 MB" in printed
    for step in ("simulate", "analyse"):
        (figures,) = re.findall(
            rf"{step}: .*task: ([\d,]+) MB, peak of a process: ([\d,]+) MB", printed
        )
        planned, peak = (int(figure.replace(",", "")) for figure in figures)
        assert 1 <= planned <= 2
        assert 50 < peak < 1500
    assert "100.0%" in printed  # the progress bar
    assert float(printed.rpartition(" ")[2]) > 0.99


def test_the_program_on_webgpu() -> None:
    if "wgpu" not in numr.available() or BACKEND != "numr.cpu":
        pytest.skip(str(numr.unavailable().get("wgpu", f"the backend is {BACKEND}")))
    printed = run_program("--executor", "single-threaded", "--namespace", "numr.wgpu", "--quiet")
    assert "100.0%" not in printed
    assert float(printed.rpartition(" ")[2]) > 0.99
