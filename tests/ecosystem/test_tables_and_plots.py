"""pandas and matplotlib on tensors: everything in host memory, a clear refusal or one explicit copy elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import numr
import numr.cpu as cpu
from numr.errors import HostCopyError

ELSEWHERE = [name for name in numr.available() if name != "cpu"]


@pytest.fixture(params=numr.available())
def xp(request: pytest.FixtureRequest) -> ModuleType:
    return numr.namespace(request.param)


@pytest.fixture(params=ELSEWHERE)
def device_xp(request: pytest.FixtureRequest) -> ModuleType:
    return numr.namespace(request.param)


def data(xp: ModuleType) -> tuple[Any, Any]:
    """A line and a matrix."""
    return (
        xp.asarray([1.0, 2.0, 4.0], dtype=xp.float32),
        xp.asarray([[1.0, 2.0, 0.0], [3.0, 5.0, 1.0]], dtype=xp.float32),
    )


# ---------------------------------------------------------------------- pandas
pandas = pytest.importorskip("pandas", reason="pandas is not installed")

TABLES: dict[str, Callable[[Any, Any], Any]] = {
    "Series": lambda v, m: pandas.Series(v),
    "Series with an index": lambda v, m: pandas.Series(v, index=v),
    "Index": lambda v, m: pandas.Index(v),
    "DataFrame": lambda v, m: pandas.DataFrame(m, columns=["a", "b", "c"]),
    "DataFrame of columns": lambda v, m: pandas.DataFrame({"a": v, "b": 2 * v}),
    "assign": lambda v, m: pandas.DataFrame({"a": [1, 2, 3]}).assign(b=v),
    "cut": lambda v, m: pandas.cut(v, 2),
    "factorize": lambda v, m: pandas.Series(v).factorize()[0],
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_take_tensors_in_host_memory(name: str) -> None:
    line, matrix = data(cpu)
    found = TABLES[name](line, matrix)
    expected = TABLES[name](line.to_numpy(), matrix.to_numpy())
    if isinstance(expected, pandas.Series):
        pandas.testing.assert_series_equal(found, expected)
    elif isinstance(expected, pandas.DataFrame):
        pandas.testing.assert_frame_equal(found, expected)
    elif isinstance(expected, pandas.Index):
        pandas.testing.assert_index_equal(found, expected)
    else:
        assert list(found) == list(expected)


@pytest.mark.parametrize("name", TABLES)
def test_tables_refuse_tensors_elsewhere(device_xp: ModuleType, name: str) -> None:
    line, matrix = data(device_xp)
    with pytest.raises(TypeError, match=r"to_numpy\(\).*NUMR_ALLOW_HOST_COPIES"):
        TABLES[name](line, matrix)
    with numr.config.override(allow_host_copies=True):
        TABLES[name](line, matrix)


def test_columns_become_tensors(xp: ModuleType) -> None:
    frame = pandas.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}, dtype="float32")
    for x in (xp.asarray(frame["a"]), xp.asarray(frame.to_numpy())[:, 0]):
        assert isinstance(x, numr.Tensor)
        assert x.tolist() == [1.0, 2.0]


def test_operators_with_a_series(xp: ModuleType) -> None:
    line, series = data(xp)[0], pandas.Series([1.0, 1.0, 1.0])
    for add in (lambda: line + series, lambda: series + line):
        if xp is cpu:
            pandas.testing.assert_series_equal(add(), pandas.Series([2.0, 3.0, 5.0]))
        else:
            with pytest.raises(TypeError, match=r"to_numpy\(\)"):
                add()


# ------------------------------------------------------------------ matplotlib
matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
matplotlib.use("Agg")

PLOTS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "plot": lambda ax, v, m: ax.plot(v, 2 * v),
    "step": lambda ax, v, m: ax.step(v, v),
    "hist": lambda ax, v, m: ax.hist(v),
    "boxplot": lambda ax, v, m: ax.boxplot(v),
    "scatter": lambda ax, v, m: ax.scatter(v, v, c=v),
    "bar": lambda ax, v, m: ax.bar(v, v),
    "errorbar": lambda ax, v, m: ax.errorbar(v, v, yerr=v),
    "fill_between": lambda ax, v, m: ax.fill_between(v, v),
    "imshow": lambda ax, v, m: ax.imshow(m),
    "contour": lambda ax, v, m: ax.contour(m),
    "pcolormesh": lambda ax, v, m: ax.pcolormesh(m),
    "quiver": lambda ax, v, m: ax.quiver(v, v, v, v),
    "axvline": lambda ax, v, m: ax.axvline(v[1]),
    "set_xlim": lambda ax, v, m: ax.set_xlim(v[0], v[2]),
    "text": lambda ax, v, m: ax.text(v[0], v[1], "here"),
}
#: What matplotlib converts by to_numpy() or element by element, so that it is on its own account that data moves.
EXPLICIT = {"plot", "step", "hist", "boxplot", "set_xlim", "text"}


@pytest.fixture
def draw():
    """Draw with a function and give the picture as bytes of its pixels."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    def picture(plot: Callable[[Any, Any, Any], Any], xp: ModuleType) -> np.ndarray:
        figure = Figure()
        plot(figure.subplots(), *data(xp))
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        return np.asarray(canvas.buffer_rgba()).copy()

    return picture


@pytest.mark.parametrize("name", PLOTS)
def test_plots_of_tensors_are_those_of_arrays(draw, name: str) -> None:
    drawn = draw(PLOTS[name], cpu)
    expected = draw(lambda ax, v, m: PLOTS[name](ax, v.to_numpy(), m.to_numpy()), cpu)
    np.testing.assert_array_equal(drawn, expected)


@pytest.mark.parametrize("name", PLOTS)
def test_plots_of_tensors_elsewhere(draw, device_xp: ModuleType, name: str) -> None:
    expected = draw(PLOTS[name], cpu)
    if name not in EXPLICIT:
        with pytest.raises(HostCopyError, match=r"to_numpy\(\).*NUMR_ALLOW_HOST_COPIES"):
            draw(PLOTS[name], device_xp)
    with numr.config.override(allow_host_copies=name not in EXPLICIT):
        np.testing.assert_array_equal(draw(PLOTS[name], device_xp), expected)
