"""The example programs give on every runtime what they give on NumPy, and the demo says so."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from pathlib import Path

import array_api_compat.numpy as numpy_namespace
import array_api_strict
import numpy as np
import pytest

import numr
from examples import demo, kmeans, spectral_denoise

ROOT = Path(__file__).resolve().parents[1]
NAMESPACES = {
    "array_api_strict": array_api_strict,
    **{f"numr.{name}": numr.namespace(name) for name in numr.available()},
}
#: Largest accepted difference to NumPy, over the largest magnitude in NumPy's result.
TOLERANCE = {"float32": 1e-4, "float64": 1e-11}


@pytest.fixture(params=sorted(NAMESPACES))
def xp(request):
    return NAMESPACES[request.param]


@pytest.fixture(params=["float32", "float64"])
def dtype(request, xp):
    names = xp.__array_namespace_info__().dtypes(kind="real floating")
    if request.param not in names:
        pytest.skip(f"{xp.__name__} has no {request.param} on this machine")
    return request.param


def to_numpy(array):
    return array.to_numpy() if isinstance(array, numr.Tensor) else np.asarray(array)


def assert_close(actual, expected, dtype):
    actual = to_numpy(actual)
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    bound = TOLERANCE[dtype] * np.max(np.abs(expected))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=bound)


# --------------------------------------------------------------------- k-means
def blobs(dtype, k=4, points=40, features=3):
    rng = np.random.default_rng(5)
    places = 20 * rng.permutation(np.eye(max(k, features)))[:k, :features]
    x = np.repeat(places, points, axis=0) + rng.normal(size=(k * points, features))
    return rng.permutation(x).astype(dtype)


def test_kmeans_agrees_with_numpy(xp, dtype):
    x = blobs(dtype)
    expected = kmeans.kmeans(x, 4, xp=numpy_namespace, iterations=5)
    found = kmeans.kmeans(xp.asarray(x), 4, xp=xp, iterations=5)
    assert_close(found.centres, expected.centres, dtype)
    assert_close(found.inertia, expected.inertia, dtype)
    assert np.array_equal(to_numpy(found.labels), expected.labels)


def test_kmeans_finds_the_clusters(xp, dtype):
    x = blobs(dtype, k=3)
    found = kmeans.kmeans(xp.asarray(x), 3, xp=xp)
    labels, centres = to_numpy(found.labels), to_numpy(found.centres)
    assert sorted(np.bincount(labels)) == [40, 40, 40]
    for i in range(3):
        np.testing.assert_allclose(centres[i], x[labels == i].mean(axis=0), rtol=1e-4, atol=1e-4)
    distances = ((x - centres[labels]) ** 2).sum()
    np.testing.assert_allclose(float(found.inertia), distances, rtol=1e-4)


def test_kmeans_keeps_a_centre_without_points(xp):
    # Of three equal points, two clusters can have but one; the other centre stays where it started.
    found = kmeans.kmeans(xp.asarray([[2.0, 3.0]] * 3), 2, xp=xp, iterations=3)
    assert to_numpy(found.centres).tolist() == [[2.0, 3.0], [2.0, 3.0]]
    assert to_numpy(found.labels).tolist() == [0, 0, 0]
    assert float(found.inertia) == 0


def test_kmeans_starts_from_points_that_lie_far_apart(xp):
    x = xp.asarray([[0.0], [1.0], [10.0], [4.0]])
    assert to_numpy(kmeans.farthest_points(x, 3, xp=xp)).tolist() == [[10.0], [0.0], [4.0]]


def test_squared_distances_are_never_negative(xp):
    x = xp.asarray([[1e8 + 1.0, 1e-3], [3.3, 7.7]])
    distances = to_numpy(kmeans.squared_distances(x, x, xp=xp))
    assert (distances >= 0).all()
    assert distances[0, 1] == pytest.approx(1e16, rel=1e-6)


@pytest.mark.parametrize(
    ("shape", "k", "iterations", "words"),
    [
        ((4,), 1, 1, r"x has shape \(4,\)"),
        ((4, 1), 0, 1, "k is 0"),
        ((4, 1), 5, 1, "k is 5"),
        ((4, 1), 2, 0, "iterations is 0"),
    ],
)
def test_kmeans_refuses_bad_arguments(xp, shape, k, iterations, words):
    with pytest.raises(ValueError, match=words):
        kmeans.kmeans(xp.zeros(shape), k, xp=xp, iterations=iterations)


# ------------------------------------------------------------ spectral denoise
@pytest.mark.parametrize("shape", [(12, 16), (9, 15), (2, 8, 7), (1, 1)])
def test_denoise_agrees_with_numpy(xp, dtype, shape):
    image = np.random.default_rng(6).normal(3, 1, shape).astype(dtype)
    expected = spectral_denoise.denoise(image, xp=numpy_namespace, keep=0.4)
    assert expected.dtype == dtype
    assert_close(spectral_denoise.denoise(xp.asarray(image), xp=xp, keep=0.4), expected, dtype)


def test_denoise_keeps_the_mean_and_low_frequencies_and_drops_high_ones(xp):
    turns = 2 * np.pi * np.arange(64) / 64
    slow = 5 + np.sin(2 * turns)[:, None] + np.cos(turns)[None, :]
    fast = np.cos(30 * turns)[:, None] * np.cos(31 * turns)[None, :]
    result = to_numpy(spectral_denoise.denoise(xp.asarray(slow + fast), xp=xp, keep=0.25))
    assert abs(result.mean() - 5) < 1e-4
    assert np.max(np.abs(result - slow)) < 0.01 * np.max(np.abs(fast))


def test_the_filter_is_one_half_at_the_edge_of_the_band(xp):
    info = xp.__array_namespace_info__()
    weights = to_numpy(
        spectral_denoise.lowpass(
            (8, 8), xp=xp, keep=0.5, dtype=xp.float32, device=info.default_device()
        )
    )
    assert weights.shape == (8, 5)
    assert weights.dtype == np.float32
    assert weights[0, 0] == 1
    assert weights[0, 2] == weights[2, 0] == weights[-2, 0] == pytest.approx(0.5)
    assert (np.diff(weights[0]) < 0).all()


@pytest.mark.parametrize(("shape", "keep"), [((4,), 0.5), ((4, 4), 0.0), ((4, 4), 1.5)])
def test_denoise_refuses_bad_arguments(xp, shape, keep):
    with pytest.raises(ValueError, match="denoise: image has shape"):
        spectral_denoise.denoise(xp.zeros(shape), xp=xp, keep=keep)


# -------------------------------------------------------------------- programs
@pytest.mark.parametrize("module", [kmeans, spectral_denoise], ids=["kmeans", "spectral_denoise"])
def test_programs_know_no_library(module):
    lines = Path(module.__file__).read_text(encoding="utf-8").splitlines()
    imports = {line.split()[1] for line in lines if line.startswith(("import ", "from "))}
    assert imports == {"__future__", "argparse", "importlib", "typing"} | (
        {"math"} if module is spectral_denoise else set()
    )


@pytest.mark.parametrize("module", [kmeans, spectral_denoise], ids=["kmeans", "spectral_denoise"])
def test_docstring_examples(module):
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0


def test_kmeans_as_a_program(xp, capsys):
    kmeans.main(["--namespace", xp.__name__])
    printed = capsys.readouterr().out
    assert f"100 points in 4 clusters with {xp.__name__}" in printed
    assert "inertia: 100\n" in printed


def test_spectral_denoise_as_a_program(xp, capsys):
    spectral_denoise.main(["--namespace", xp.__name__])
    printed = capsys.readouterr().out
    assert f"with {xp.__name__}: 0.5, now " in printed
    assert float(printed.rpartition(" ")[2]) < 0.01


# ------------------------------------------------------------------------ demo
def test_the_demo_as_a_whole():
    # A process of its own: SciPy reads SCIPY_ARRAY_API when it is imported, once.
    result = subprocess.run(
        [sys.executable, "-m", "examples.demo", "--repeats", "1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "too large" not in result.stdout
    table = [line for line in result.stdout.splitlines() if " ms" in line]
    assert len(table) == len(demo.PROGRAMS) * len(numr.available())
    for runtime in numr.available():
        for program in demo.PROGRAMS:
            assert any(line.startswith(program) and f" {runtime} " in line for line in table)
    for runtime, why in numr.unavailable().items():
        assert f"  {runtime}: {why.reason}. {why.remedy}" in result.stdout


def row(error, dtype="float64"):
    return demo.Row("program", "cpu", "cpu", dtype, "summary", error, 0.001, 0.002)


@pytest.mark.parametrize(
    ("error", "dtype", "holds"),
    [
        (0.0, "float64", True),
        (1e-6, "float64", False),
        (1e-6, "float32", True),
        (1.0, "float32", False),
        (float("nan"), "float64", False),
        (float("inf"), "float64", False),
    ],
)
def test_a_row_holds_within_the_tolerance_of_its_dtype(error, dtype, holds):
    assert row(error, dtype).holds is holds
    assert ("(too large)" in demo.table([row(error, dtype)])) is not holds


def test_the_table_has_a_line_for_each_row_and_straight_columns():
    head, rule, first, second = demo.table([row(0.0), row(1e-12)]).splitlines()
    columns = ["program", "runtime", "device", "dtype", "result", "max error", "time", "NumPy"]
    assert re.split("  +", head) == columns
    assert set(rule) == {"-", " "}
    cells = ["program", "cpu", "cpu", "float64", "summary", "0.0e+00", "1.00 ms", "2.00 ms"]
    assert re.split("  +", first) == cells
    assert len(head) == len(rule) == len(first) == len(second)


def test_the_error_is_relative_to_the_largest_magnitude():
    expected = [np.asarray([1.0, -4.0]), np.asarray(2.0)]
    assert demo.largest_error(expected, expected) == 0
    assert demo.largest_error([np.asarray([1.0, -4.5]), np.asarray(2.0)], expected) == 0.125
    assert demo.largest_error([np.asarray([1.0, -4.0]), np.asarray(1.0)], expected) == 0.5
    assert demo.largest_error([np.asarray([0.25])], [np.asarray([0.0])]) == 0.25


@pytest.mark.parametrize("position", [0, 1])
def test_nan_is_never_lost_in_the_error(position):
    expected = [np.asarray([1.0, 2.0]), np.asarray([3.0])]
    actual = [array.copy() for array in expected]
    actual[position][0] = np.nan
    assert np.isnan(demo.largest_error(actual, expected))


def test_results_of_another_shape_or_dtype_are_no_match():
    expected = [np.zeros(3)]
    with pytest.raises(ValueError, match=r"float64\(4,\), but NumPy's is float64\(3,\)"):
        demo.largest_error([np.zeros(4)], expected)
    with pytest.raises(ValueError, match=r"float32\(3,\), but NumPy's is float64\(3,\)"):
        demo.largest_error([np.zeros(3, "float32")], expected)
    with pytest.raises(ValueError, match="shorter"):
        demo.largest_error(expected * 2, expected)


def doubled(xp, data):
    return demo.Outcome((data.pixels * 2,), "doubled")


def wrong_off_numpy(xp, data):
    factor = 2 if xp is numpy_namespace else 2.5
    return demo.Outcome((data.pixels * factor,), "wrong")


def leaves_the_runtime(xp, data):
    return demo.Outcome((to_numpy(data.pixels),), "left")


@pytest.fixture
def small_data(monkeypatch):
    def load(dtype):
        return demo.Data(*(np.ones(shape, dtype) for shape in ((6, 4), (6,), (8, 8), (8, 8))))

    monkeypatch.setattr(demo, "load", load)


@pytest.mark.parametrize("runtime", numr.available())
def test_measure_compares_with_numpy(small_data, runtime):
    good = demo.measure("doubled", doubled, runtime, 1)
    assert (good.error, good.summary, good.holds) == (0, "doubled", True)
    assert good.seconds > 0
    assert good.numpy_seconds > 0
    wrong = demo.measure("wrong", wrong_off_numpy, runtime, 1)
    assert (wrong.error, wrong.holds) == (0.25, False)


@pytest.mark.parametrize("runtime", numr.available())
def test_measure_refuses_results_that_left_the_runtime(small_data, runtime):
    with pytest.raises(TypeError, match="left the runtime: it gave ndarray"):
        demo.measure("left", leaves_the_runtime, runtime, 1)


def test_the_exit_status_tells_of_an_error(small_data, monkeypatch, capsys):
    import contextlib

    import sklearn

    # The programs here are not scikit-learn's, so that its switch, which SciPy may refuse by now, is not needed.
    monkeypatch.setattr(sklearn, "config_context", lambda **_: contextlib.nullcontext())
    monkeypatch.setattr(demo, "PROGRAMS", {"doubled": doubled})
    assert demo.main(["--repeats", "1"]) == 0
    monkeypatch.setattr(demo, "PROGRAMS", {"doubled": doubled, "wrong": wrong_off_numpy})
    assert demo.main(["--repeats", "1"]) == 1
    assert "wrong on cpu: the error 2.5e-01 exceeds 1e-09" in capsys.readouterr().err


def test_no_run_is_refused(capsys):
    with pytest.raises(SystemExit) as exit_:
        demo.main(["--repeats", "0"])
    assert exit_.value.code == 2
    assert "at least one run" in capsys.readouterr().err
