"""The benchmarks' own logic: fair turns, honest ratios, goals judged by all that they cover."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from collections import OrderedDict
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import numr
from benchmarks import (
    add,
    capture,
    device,
    first,
    goals,
    importing,
    large,
    peers,
    programs,
    report,
    small,
    wgpu,
)
from benchmarks.__main__ import ALL, BENCHMARKS, main
from benchmarks.environment import Environment
from benchmarks.goals import GOALS, Goal, State, evaluate
from benchmarks.timing import (
    Contender,
    Effort,
    Measurement,
    Series,
    alternate,
    calls_that_fill,
    compare,
    constant,
    ratio,
    short,
)
from numr.runtime import client_of, runtime
from numr.runtime.cpu import fused

ROOT = Path(__file__).resolve().parents[2]
NUMR = peers.numr_on("cpu")


class FakeClock:
    """Time passes only where work is done; ``slowdown`` makes all work slower as a busy machine does."""

    def __init__(self):
        self.now = 0.0
        self.slowdown = 1.0

    def __call__(self):
        return self.now

    def work(self, seconds):
        self.now += seconds * self.slowdown


def series(*rounds):
    return Series(tuple(tuple(samples) for samples in rounds))


def measurement(mine, theirs, **changes):
    """One of ``large`` whose ratio is mine / theirs."""
    fields = {
        "benchmark": large.NAME,
        "group": "reduction",
        "label": "sum",
        "subject": "numr.cpu",
        "series": {"numr.cpu": series([mine]), "numpy": series([theirs])},
        "dtype": "float64",
        "elements": 10_000_000,
    }
    return Measurement(**{**fields, **changes})


# ---- timing


def test_best_and_median_are_over_all_samples():
    found = series([3.0, 1.0], [2.0, 9.0], [4.0, 5.0])
    assert (found.best, found.median) == (1.0, 3.5)
    assert found.scaled(2.0).rounds == ((6.0, 2.0), (4.0, 18.0), (8.0, 10.0))
    assert found.as_json() == {
        "best": 1.0,
        "median": 3.5,
        "rounds": [[3.0, 1.0], [2.0, 9.0], [4.0, 5.0]],
    }


def test_a_ratio_is_taken_within_each_round():
    mine = series([1.0, 3.0], [30.0, 10.0], [2.0, 2.0])
    theirs = series([4.0, 4.0], [20.0, 20.0], [8.0, 8.0])
    assert ratio(mine, theirs) == (0.5, 0.25, 1.0)
    assert ratio(theirs, mine) == (2.0, 1.0, 4.0)


def test_series_of_different_runs_have_no_ratio():
    with pytest.raises(ValueError, match="2 and 1 rounds"):
        ratio(series([1.0], [1.0]), series([1.0]))


def test_contenders_take_turns_in_alternating_order():
    turns = []
    samplers = {name: lambda name=name: turns.append(name) or 1.0 for name in "abc"}
    found = alternate(samplers, rounds=2, samples=2)
    assert "".join(turns) == "abccba" * 2
    assert found == {name: series([1.0, 1.0], [1.0, 1.0]) for name in "abc"}


def test_seconds_are_those_of_one_call():
    clock = FakeClock()
    names = {"work": clock.work}
    found = compare(
        [Contender("slow", "work(2.0)", names), Contender("quick", "work(0.25)", names)],
        Effort(rounds=3, samples=2, seconds=10.0),
        clock=clock,
    )
    assert found == {"slow": series(*[[2.0] * 2] * 3), "quick": series(*[[0.25] * 2] * 3)}


def test_a_drift_of_the_machine_does_not_change_the_ratio():
    clock = FakeClock()

    @contextmanager
    def getting_slower():
        yield
        clock.slowdown *= 1.001

    names = {"work": clock.work}
    found = compare(
        [
            Contender("a", "work(1.0)", names, setting=getting_slower),
            Contender("b", "work(1.0)", names, setting=getting_slower),
        ],
        Effort(rounds=101, samples=2, seconds=0.5),
        clock=clock,
    )
    assert found["a"].rounds[-1][0] > 1.4 * found["a"].rounds[0][0]
    assert ratio(found["a"], found["b"]).value == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize(("count_wait", "expected"), [(True, 1.5), (False, 1.0)])
def test_waiting_is_counted_on_demand(count_wait, expected):
    clock = FakeClock()
    contender = Contender("a", "work(1.0)", {"work": clock.work}, wait=lambda: clock.work(0.5))
    found = compare([contender], Effort(1, 1, 0.1), count_wait=count_wait, clock=clock)
    assert found["a"].median == expected


def test_a_setting_holds_around_the_calls_and_is_not_timed():
    clock = FakeClock()
    inside = []

    @contextmanager
    def setting():
        clock.work(100.0)
        inside.append(True)
        yield
        inside.append(False)

    def call():
        assert inside[-1]
        clock.work(1.0)

    found = compare(
        [Contender("a", "call()", {"call": call}, setting=setting)], Effort(1, 1, 0.5), clock=clock
    )
    assert found["a"].median == 1.0
    assert inside
    assert not inside[-1]


def test_contenders_of_one_name_are_refused():
    with pytest.raises(ValueError, match="'a'"):
        compare([Contender("a", "1", {}), Contender("a", "2", {})], Effort(1, 1, 1e-6))


@pytest.mark.parametrize("cost", [0.0001, 0.003, 0.5, 2.0])
def test_calls_fill_the_length_of_a_sample(cost):
    calls = calls_that_fill(1.0, lambda calls: cost)
    assert calls * cost >= 1.0
    assert calls == 1 or calls * cost < 2.5


def test_a_clock_too_coarse_for_one_call_asks_for_more():
    assert calls_that_fill(1.0, lambda calls: 0.01 if calls >= 50 else 0.0) == 100


def test_numbers_of_elements_are_short():
    assert [short(n) for n in (4, 999, 1000, 1500, 10_000_000)] == ["4", "999", "1K", "1.5K", "10M"]


# ---- what is timed


def agree(mine, theirs):
    """The same values, dtype and shape."""
    mine = mine.to_numpy() if hasattr(mine, "to_numpy") else np.asarray(mine)
    theirs = np.asarray(theirs)
    assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
    tolerance = 1e-5 if mine.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(mine, theirs, rtol=tolerance)


CASES = [(case, dtype) for case in large.CASES for dtype in case.dtypes]


@pytest.mark.parametrize(
    ("case", "dtype"), CASES, ids=[f"{c.group}-{c.label}-{d}" for c, d in CASES]
)
def test_large_statements_do_the_same_in_numr_and_numpy(case, dtype):
    mine, theirs = (large.operands(lib, 720, dtype) for lib in (NUMR, peers.numpy()))
    exec(f"result = {case.statement}", mine)
    exec(f"result = {case.in_numpy or case.statement}", theirs)
    agree(mine["result"], theirs["result"])
    agree(mine["c"], theirs["c"])


def test_large_measures_each_statement_once():
    names = [(case.group, case.label, dtype) for case, dtype in CASES]
    assert len(set(names)) == len(names)


def test_transposed_copies_move_the_elements():
    names = large.operands(NUMR, 720, "float64")
    assert not names["t"].is_contiguous
    assert names["t"].contiguous().is_contiguous
    assert np.ascontiguousarray(
        large.operands(peers.numpy(), 720, "float64")["t"]
    ).flags.c_contiguous


@pytest.mark.parametrize(
    ("elements", "shape"),
    [(720, (24, 30)), (7, (1, 7)), (1_000_000, (1000, 1000)), (30_000_000, (5000, 6000))],
)
def test_matrices_are_nearly_square(elements, shape):
    assert large.matrix_shape(elements) == shape


@pytest.mark.parametrize("label", list(small.CALLS))
def test_small_calls_do_the_same_in_numr_and_numpy(label):
    mine, theirs = (small.operands(library) for library in (NUMR, peers.numpy()))
    agree(eval(small.CALLS[label], mine), eval(small.CALLS[label], theirs))


@pytest.mark.parametrize("raises", [False, True])
def test_cupy_without_a_device_is_absent_with_the_reason(monkeypatch, raises):
    class CUDARuntimeError(RuntimeError):
        pass

    def count():
        if raises:
            raise CUDARuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")
        return 0

    runtime = SimpleNamespace(getDeviceCount=count, CUDARuntimeError=CUDARuntimeError)
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=SimpleNamespace(runtime=runtime)))
    present, absent = peers.load(("cupy",), peers.ON_CUDA)
    assert not present
    assert "cupy has no CUDA device" in absent["cupy"]
    assert ("cudaErrorNoDevice" in absent["cupy"]) is raises


IN_CUPYS_WORDS = peers.Library("cupy", np, np.copy, lambda: None)
#: What no other library gives as one array: all results of ``nonzero`` alike, and sorted values without indices.
FIRST_OF = ("nonzero", "sort")


@pytest.mark.parametrize(
    "case", [*device.CASES, *device.CALLS], ids=lambda case: f"{case.group}-{case.label}"
)
def test_device_statements_do_the_same_in_numr_and_in_the_words_of_its_peers(case):
    torch = pytest.importorskip("torch")
    in_torchs = peers.Library("torch", torch, torch.from_numpy, lambda: None)
    libraries = (NUMR, IN_CUPYS_WORDS, in_torchs)
    results = []
    for library in libraries:
        names = device.operands(library, device.QUICK_SIZES)
        result = eval(device.in_words_of(case, library.name), names)
        if case.label in FIRST_OF and isinstance(result, tuple):
            result = result[0]
        results.append(result)
    mine, theirs, torchs = results
    if case.group in device.LIBRARIES:
        np.testing.assert_allclose(mine.to_numpy(), theirs, rtol=1e-2, atol=1e-3)
        np.testing.assert_allclose(mine.to_numpy(), np.asarray(torchs), rtol=1e-2, atol=1e-3)
    else:
        agree(mine, theirs)
        agree(mine, np.asarray(torchs)[..., 0] if case.label == "nonzero" else torchs)


def test_device_measures_each_statement_once_and_counts_its_elements():
    names = [(case.group, case.label) for case in (*device.CASES, *device.CALLS)]
    assert len(set(names)) == len(names)
    groups = {group for group, _ in names}
    assert groups == {*device.MEMORY, *device.LIBRARIES, device.HOST}
    assert all(bool(case.moved) == (case.group in device.MEMORY) for case in device.CASES)
    for sizes in (device.SIZES, device.QUICK_SIZES):
        assert np.prod(sizes.cube) == sizes.side**2
        assert sizes.side >= 3
    (sort,) = (case for case in device.CASES if case.group == "sort")
    assert device.elements_of(sort, device.SIZES) == 10_000_000
    assert device.elements_of(device.CASES[0], device.SIZES) == 100_000_000


def test_device_measures_what_its_tables_show(monkeypatch):
    monkeypatch.setattr(peers, "load", lambda names, makers: ([], {"cupy": "no cupy here"}))
    found = device.measure(NUMR, quick=True, say=lambda line: None)
    assert len(found) == len(device.CASES) + len(device.CALLS) + 1
    for m in found[:-1]:
        assert (add.FLOOR in m.series) == (m.group in device.MEMORY)
    shares = {m.label: m.ratio(add.FLOOR).value for m in found if add.FLOOR in m.series}
    assert all(share > 0 for share in shares.values())
    bound, libraries, host, overlap = report.device_tables(found)
    assert bound.columns == ("group", "operation", "floor", "numr.cpu", "numr of floor")
    assert bound.rows[0][:2] == ("elementwise", "a + b")
    assert bound.rows[0][-1].endswith("%")
    assert [row[0] for row in libraries.rows] == list(device.LIBRARIES)
    assert [row[1] for row in host.rows] == [case.label for case in device.CALLS]
    assert overlap.columns[:3] == ("compute", "copy", "both")
    assert libraries.notes == ("not measured: no cupy here",)


def test_a_floor_is_scaled_to_the_bytes_that_are_moved(monkeypatch):
    times = {"numr.cpu": series([2.0]), add.FLOOR: series([8.0])}
    monkeypatch.setattr(peers, "load", lambda names, makers: ([], {}))
    monkeypatch.setattr(device, "compare", lambda *args, **options: dict(times))
    monkeypatch.setattr(device, "overlap", lambda *args: None)
    found = device.measure(NUMR, quick=True, say=lambda line: None)
    assert found[0].label == "a + b"
    assert found[0].series[add.FLOOR] == series([12.0])
    assert times[add.FLOOR] == series([8.0])


def test_the_longer_part_of_an_overlap_is_found():
    parts = {"compute": series([3.0]), "copy": series([2.0]), "both": series([3.5])}
    assert device.longer_of(parts) == "compute"
    assert device.longer_of({**parts, "copy": series([4.0])}) == "copy"


@pytest.mark.parametrize("label", list(wgpu.STATEMENTS))
def test_chains_do_the_same_in_numr_and_numpy(label):
    values = [np.random.default_rng(k).random(50) + 0.5 for k in range(3)]
    results = [
        eval(
            wgpu.STATEMENTS[label],
            {"xp": library.xp, **dict(zip("abc", map(library.convert, values), strict=True))},
        )
        for library in (NUMR, peers.numpy())
    ]
    agree(*results)


def test_software_adapters_are_measured_in_the_dtypes_that_they_have(monkeypatch):
    found = wgpu.on_software(NUMR, quick=True, say=lambda line: None)
    assert [(m.label, m.dtype) for m in found] == [
        (label, dtype) for dtype in wgpu.DTYPES for label in wgpu.STATEMENTS
    ]
    assert {m.elements for m in found} == {wgpu.QUICK_ELEMENTS}
    (table,) = report.wgpu_tables(found)
    assert table.columns[:4] == ("", "dtype", "numr.cpu", "numpy")
    assert len(table.rows) == len(found)
    narrow = [np.dtype("float32")]
    monkeypatch.setattr(wgpu, "_dtypes", lambda subject: narrow)
    fewer = wgpu.on_software(NUMR, quick=True, say=lambda line: None)
    assert {m.dtype for m in fewer} == {"float32"}


def test_gpus_are_measured_in_the_words_of_the_device_benchmark(monkeypatch):
    monkeypatch.setattr(peers, "load", lambda names, makers: ([], {"cupy": "no cupy here"}))
    found = wgpu.on_gpu(NUMR, quick=True, say=lambda line: None)
    cases = [*wgpu.CASES, *device.CALLS]
    assert set(wgpu.CASES) < set(device.CASES)
    labels = [(case.group, case.label) for case in cases]
    assert [(m.group, m.label) for m in found[:-2]] == labels
    for m in found[:-2]:
        assert (add.FLOOR in m.series) == (m.group in device.MEMORY)
        assert (wgpu.BOUND in m.series) == (m.group == "matmul")
        assert not any(name.startswith(f"{add.FLOOR} of") for name in m.series)
    assert [m.group for m in found[-2:]] == [wgpu.CHAINED, wgpu.LARGE]
    memory, libraries, host, chained, together = report.wgpu_tables(found)
    assert memory.columns == ("group", "operation", "floor", "numr.cpu", "numr of floor")
    assert [row[0] for row in libraries.rows] == ["sort", "matmul", "fft"]
    assert libraries.columns == ("group", "operation", "numr.cpu")
    assert [row[1] for row in host.rows] == [case.label for case in device.CALLS]
    assert chained.columns == ("numr.cpu",)
    assert together.columns == ("floor", "numr.cpu", "numr.cpu of floor")
    verdicts = evaluate(found, runtime=wgpu.RUNTIME, quick=False)
    states = {v.goal.groups: v for v in verdicts if v.goal.runtime == wgpu.RUNTIME}
    assert states[("sort",)].reason == "no cupy here"
    assert "does not do that on this device" in states[(wgpu.SOFTWARE,)].reason
    for groups in (("matmul",), ("scan",), ("copy",), (wgpu.LARGE,), (wgpu.CHAINED,)):
        assert states[groups].state is not State.NOT_MEASURED


def test_the_floor_is_the_quickest_copy():
    found = wgpu.with_floor(
        {
            "numr.wgpu": series([2.0]),
            "floor of numr.wgpu": series([9.0]),
            "floor of torch": series([8.0]),
        },
        1.5,
    )
    assert found == {"numr.wgpu": series([2.0]), add.FLOOR: series([12.0])}


def test_copies_are_numrs_and_those_of_pytorch_into_memory_that_is_there():
    class Torch:
        empty_like = staticmethod(np.empty_like)

    class Array(np.ndarray):
        def copy_(self, other):
            self[...] = other

    array = np.arange(5.0).view(Array)
    torch = peers.Library("torch", Torch, None, lambda: None)
    cupy = peers.Library("cupy", np, None, lambda: None)
    arrays = {"numr.cpu": NUMR.convert(np.arange(5.0)), "torch": array}
    mine, torchs = wgpu.copies([NUMR, cupy, torch], arrays)
    assert (mine.name, torchs.name) == ("floor of numr.cpu", "floor of torch")
    agree(eval(mine.statement, dict(mine.names)), array)
    eval(torchs.statement, dict(torchs.names))
    assert np.array_equal(torchs.names["b"], array)


def test_chained_additions_depend_on_each_other_and_are_read():
    seen = []
    assert wgpu.chain(1, 2, lambda x: seen.append(x) or "read", count=5) == "read"
    assert seen == [11]


def test_a_bound_has_as_many_rounds_as_the_contenders():
    bound = constant(0.5, {"numr.wgpu": series([1.0, 3.0], [1.0, 1.0])})
    assert bound == series([0.5], [0.5])
    assert ratio(series([1.0, 3.0], [1.0, 1.0]), bound) == (3.0, 2.0, 4.0)


# ---- captured programs

PROGRAMS = (programs.CHAIN, programs.SUM_OF_EXP, *programs.NORMS, programs.SHORT, programs.LAUNCHED)


def result_of(program, library, compiled=lambda function: function):
    values = programs.operands(library, 720, (24, 30), "float64")
    function = compiled(program.for_library(library))
    result = function(*(values[name] for name in program.arguments))
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_programs_do_the_same_in_all_libraries_and_jitted(program):
    theirs = result_of(program, peers.numpy())
    found = [result_of(program, NUMR), result_of(program, NUMR, numr.jit)]
    present, _ = peers.load(("torch", "jax"))
    found += [result_of(program, library) for library in present]
    for results in found:
        for mine, expected in zip(results, theirs, strict=True):
            agree(mine, expected)


@pytest.mark.parametrize(
    "program", [p for p in PROGRAMS if p.in_numexpr], ids=lambda program: program.name
)
def test_expressions_of_numexpr_are_the_programs(program):
    pytest.importorskip("numexpr")
    library = peers.OPTIONAL["numexpr"]()
    contender = capture.in_numexpr(
        library, program, programs.operands(library, 9, (3, 3), "float64")
    )
    (expected,) = result_of(program, peers.numpy())
    values = programs.operands(library, 720, (24, 30), "float64")
    contender = capture.in_numexpr(library, program, values)
    agree(eval(contender.statement, dict(contender.names)), expected)


def test_other_new_programs_are_other_programs():
    values = programs.operands(NUMR, 5, (1, 1), "float64")
    makers = (programs.CHAIN.of, *programs.FURTHER)
    graphs = [numr.capture(maker(NUMR.xp), *(values[x] for x in "abc")) for maker in makers]
    assert [len(graph.nodes) for graph in graphs] == [1] * len(makers)
    assert len({str(graph) for graph in graphs}) == len(makers)


def test_jax_is_waited_for():
    pytest.importorskip("jax")
    library = peers.OPTIONAL["jax"]()
    values = programs.operands(library, 720, (24, 30), "float64")
    contender = capture.in_jax(library, programs.MEAN_AND_VARIANCE, values)
    assert contender.statement == "done(compiled(m))"
    expected = result_of(programs.MEAN_AND_VARIANCE, peers.numpy())
    for mine, theirs in zip(
        eval(contender.statement, dict(contender.names)), expected, strict=True
    ):
        agree(mine, theirs)


class Torch:
    """As much of PyTorch as captured programs take; its arrays are NumPy's."""

    def __init__(self, failure=""):
        self.failure = failure
        self.modes = []

    def __getattr__(self, name):
        return getattr(np, name)

    def compile(self, function, *, dynamic, mode):
        assert not dynamic
        self.modes.append(mode)

        def compiled(*arguments):
            if self.failure:
                raise RuntimeError(self.failure)
            return function(*arguments)

        return compiled


def torch_peers(torch, quick=False):
    library = peers.Library("torch", torch, np.copy, lambda: None)
    return capture.Peers(
        ("torch", "jax"), {"torch": lambda: library, "jax": missing_jax}, quick=quick
    )


def missing_jax():
    raise ModuleNotFoundError("No module named 'jax'", name="jax")


def test_compilers_are_contenders_where_they_work():
    torch = Torch()
    others = torch_peers(torch)
    values = {"torch": programs.operands(others.libraries["torch"], 20, (4, 5), "float64")}
    (found,) = others.compiled(programs.CHAIN, values, "reduce-overhead")
    assert (found.name, found.statement) == (capture.TORCH, "compiled(a, b, c)")
    assert torch.modes == ["reduce-overhead"]
    expected = programs.CHAIN.of(np)(*(values["torch"][x] for x in "abc"))
    agree(eval(found.statement, dict(found.names)), expected)
    assert others.absent == {"jax": "jax is not installed", capture.JAX: "jax is not installed"}


def test_a_compiler_that_fails_is_absent_and_says_why():
    others = torch_peers(Torch("no C++ here\nand a long story"))
    values = {"torch": programs.operands(others.libraries["torch"], 20, (4, 5), "float64")}
    assert others.compiled(programs.CHAIN, values) == []
    assert others.absent[capture.TORCH] == "torch.compile fails: no C++ here"
    assert others.compiled(programs.CHAIN, values) == []


def test_quick_runs_leave_out_what_takes_seconds_to_compile():
    assert "left out of quick runs" in torch_peers(Torch(), quick=True).absent[capture.TORCH]


def none_at_hand(names, makers):
    return [], {name: f"no {name} here" for name in names}


def test_programs_on_the_cpu(monkeypatch):
    monkeypatch.setattr(peers, "load", none_at_hand)
    asked = {}

    def calls(benchmark, names, absent, **options):
        asked.update(names)
        times = {"numr.cpu": series([0.05])}
        fields = {"benchmark": benchmark, "elements": 1000, "dtype": "float32"}
        return [
            measurement(1, 1, group=first.GROUP, label=first.FIRST, series=times, **fields),
            measurement(
                1,
                1,
                group=first.ON_DISK,
                label=first.FIRST,
                series=times,
                counts={first.COMPILED: 0, first.LOADED: 4},
                **fields,
            ),
        ]

    monkeypatch.setattr(first, "measure", calls)
    found = capture.measure(NUMR, quick=True, say=lambda line: None)
    assert asked == {"numr.cpu": "numr.cpu"}
    large_ones = (programs.CHAIN, programs.SUM_OF_EXP, *programs.NORMS)
    assert [(m.group, m.dtype) for m in found[:-2]] == [
        (program.name, dtype) for dtype in capture.DTYPES for program in large_ones
    ]
    for m in found[:-2]:
        assert list(m.series) == [
            "numr.cpu",
            "numr.cpu, graph",
            "numr.cpu, eager",
            "numr.cpu, without llvmlite",
            "numpy",
            "floor",
        ]
        assert m.counts[capture.STEPS] >= 1
        assert m.elements == 720
    assert found[-2].series[capture.BOUND] == series([0.1])
    assert capture.BOUND not in found[-1].series
    verdicts = {v.goal.name: v for v in evaluate(found, runtime="cpu", quick=False)}
    mine = {name: v for name, v in verdicts.items() if v.goal.benchmark == capture.NAME}
    for verdict in mine.values():
        if verdict.goal.runtime == "cpu" and verdict.goal.peer in ("numexpr", capture.TORCH):
            library = verdict.goal.peer.removesuffix(".compile")
            assert verdict.reason == f"no {library} here"
        else:
            expected = verdict.goal.runtime != "cpu"
            assert (verdict.state is State.NOT_MEASURED) == expected, verdict.goal
    assert mine["first two calls of a new program on the CPU"].found[0][1].value == 0.5
    assert mine["compiled kernels on disk, on the CPU"].state is State.MET
    large_table, calls_table, disk_table = report.capture_tables(found)
    assert large_table.columns[:5] == ("", "dtype", "elements", "numr.cpu", "numr.cpu, graph")
    assert large_table.columns[-1] == capture.STEPS
    assert len(large_table.rows) == len(found) - 2
    assert calls_table.rows == ((first.FIRST, "50 (50)"),)
    assert disk_table.rows == ((first.FIRST, "50 (50)", "0", "4"),)
    assert "not measured: no torch here" in large_table.notes


def test_programs_without_a_compiler_run_in_blocks_of_numpy(monkeypatch):
    values = programs.operands(NUMR, 50, (5, 10), "float64")
    contender = capture.without_compiler(NUMR, programs.CHAIN, values)
    asked = []
    monkeypatch.setattr(fused, "_compiler", lambda: asked.append(True))
    with contender.setting():
        for _ in range(2):
            result = eval(contender.statement, dict(contender.names))
    agree(result, programs.CHAIN.of(np)(*(values[x].to_numpy() for x in "abc")))
    assert not asked


@pytest.mark.parametrize("runtime", ["cuda", "wgpu"])
def test_programs_on_gpus(monkeypatch, runtime):
    monkeypatch.setattr(peers, "load", none_at_hand)
    subject = dataclasses.replace(NUMR, name=f"numr.{runtime}")
    found = capture.on_gpu(subject, quick=True, say=lambda line: None)
    groups = [programs.CHAIN.name, *(p.name for p in programs.NORMS)]
    assert [m.group for m in found] == [*groups, capture.SHORT, capture.LAUNCH]
    assert [add.FLOOR in m.series for m in found] == [True] * len(groups) + [False] * 2
    assert [capture.BOUND in m.series for m in found] == [False] * len(groups) + [True] * 2
    assert found[-1].subject == capture.graph_of(subject.name)
    assert found[-1].counts[capture.STEPS] == 100
    assert found[-2].elements == programs.FEW
    for verdict in evaluate(found, runtime=runtime, quick=False):
        if verdict.goal.benchmark != capture.NAME or verdict.goal.runtime != runtime:
            continue
        if verdict.goal.peer == capture.TORCH:
            assert verdict.reason == "no torch here"
        else:
            assert verdict.state is not State.NOT_MEASURED, verdict
    tables = report.capture_tables(found)
    assert [len(table.rows) for table in tables] == [len(groups), 1, 1]
    assert tables[-1].columns == ("", capture.graph_of(subject.name), capture.STEPS)


def test_the_floor_of_a_program_is_that_of_its_bytes(monkeypatch):
    monkeypatch.setattr(peers, "load", none_at_hand)
    times = {"numr.cpu": series([2.0]), add.FLOOR: series([8.0])}
    monkeypatch.setattr(capture, "compare", lambda *args, **options: dict(times))
    monkeypatch.setattr(first, "measure", lambda *args, **options: [])
    found = capture.measure(NUMR, quick=True, say=lambda line: None)
    floors = {m.group: m.series[add.FLOOR].median for m in found}
    assert floors == {
        "chain": 16.0,
        "sum of exp": 4.0,
        "softmax": 8.0,
        "layer norm": 8.0,
        "mean and variance": 4.0,
    }


def test_a_launch_is_timed_after_one_that_is_not():
    log = []
    contender = Contender("a", "log.append('call')", {"log": log}, lambda: log.append("wait"))
    with capture._after_a_call(contender):
        log.append("timed")
    assert log == ["call", "wait", "timed"]


def test_software_adapters_have_no_goals_for_programs():
    found = capture.on_software_adapter(NUMR, quick=True, say=lambda line: None)
    assert all("numpy" in m.series and "software" in m.group for m in found)
    verdicts = evaluate(found, runtime=wgpu.RUNTIME, quick=False)
    (chain,) = (
        v
        for v in verdicts
        if "chain" in v.goal.name
        and v.goal.runtime == wgpu.RUNTIME
        and v.goal.benchmark == capture.NAME
    )
    assert chain.reason == "the benchmark capture does not do that on this device"
    (table,) = report.capture_tables(found)
    assert len(table.rows) == len(found)


def test_first_calls_are_timed_and_kernels_counted(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMR_CACHE_DIR", str(tmp_path))
    # As in a process that has compiled nothing.
    fresh = cache(fused._compiler.__wrapped__)
    monkeypatch.setattr(fused, "_compiler", fresh)
    monkeypatch.setattr(client_of(runtime("cpu").default_device()), "_fused", OrderedDict())
    found = first.in_this_process("numr.cpu")
    assert min(found[first.FIRST], found[first.FURTHER], found[first.LONG]) > 0
    if fresh() is None:
        assert found["kernels"] == {}
    else:
        count = len(programs.FURTHER) + 2
        assert found["kernels"] == {first.COMPILED: count, first.LOADED: 0}


def test_the_worst_round_counts(monkeypatch):
    runs = iter(range(100))
    kernels = {2: (0, 4), 4: (1, 3), 6: (0, 4)}

    def fresh(name, folder):
        number = next(runs)
        compiled, loaded = kernels.get(number, (4, 0))
        return {
            first.FIRST: float(number),
            first.FURTHER: 2.0,
            first.LONG: 7.0,
            "kernels": {first.COMPILED: compiled, first.LOADED: loaded},
        }

    monkeypatch.setattr(first, "in_fresh_interpreter", fresh)
    names = {"numr.cpu": "numr.cpu"}
    found = first.measure("capture", names, {}, quick=False, say=lambda line: None)
    assert [(m.group, m.label) for m in found] == [
        (first.GROUP, first.FIRST),
        (first.GROUP, first.FURTHER),
        (first.GROUP, first.LONG),
        (first.ON_DISK, first.FIRST),
    ]
    times = [m.series["numr.cpu"] for m in found]
    assert times == [
        series([1.0], [3.0], [5.0]),
        series([2.0], [2.0], [2.0]),
        series([7.0], [7.0], [7.0]),
        series([2.0], [4.0], [6.0]),
    ]
    assert found[-1].counts == {first.COMPILED: 1, first.LOADED: 3}


def test_a_failed_first_call_is_not_timed(tmp_path):
    with pytest.raises(RuntimeError, match="no-such-library"):
        first.in_fresh_interpreter("no-such-library", str(tmp_path))


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_the_floor_copies_everything(threads):
    source = np.arange(20.0)
    target = np.zeros(20)
    add.split_copy(source, target, threads, map)
    assert np.array_equal(target, source)


@pytest.mark.parametrize(
    ("most", "counts"), [(1, [1]), (2, [1, 2]), (3, [1, 2, 3]), (16, [1, 2, 16])]
)
def test_numbers_of_threads(most, counts):
    assert add.thread_counts(most) == counts


def test_a_failed_import_is_not_timed():
    with pytest.raises(RuntimeError, match="no_such_module_of_numr"):
        importing.seconds_in_fresh_interpreter("import no_such_module_of_numr")


# ---- peers


def test_absent_peers_are_named(monkeypatch):
    def missing():
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    def broken():
        raise ImportError("libfoo.so: cannot open")

    monkeypatch.setitem(peers.OPTIONAL, "torch", missing)
    monkeypatch.setitem(peers.OPTIONAL, "jax", broken)
    present, absent = peers.load(("torch", "jax"))
    assert present == []
    assert absent == {
        "torch": "torch is not installed",
        "jax": "jax cannot be imported: libfoo.so: cannot open",
    }


def test_a_peer_that_lacks_a_module_of_its_own_is_not_called_absent():
    error = ModuleNotFoundError("No module named 'jaxlib'", name="jaxlib")
    assert peers.why_absent("jax", error) == "jax cannot be imported: No module named 'jaxlib'"


# ---- goals

REDUCTIONS = Goal(
    name="reductions",
    target="at most 1.1",
    benchmark=large.NAME,
    groups=("reduction",),
    peer="numpy",
    at_most=1.1,
    elements=(1_000_000, 30_000_000),
)


def judge(*measurements, goal=REDUCTIONS, runtime="cpu", quick=False):
    (verdict,) = evaluate(measurements, runtime=runtime, quick=quick, goals=[goal])
    return verdict


@pytest.mark.parametrize(
    ("mine", "state"), [(1.0, State.MET), (1.1, State.MET), (1.2, State.MISSED)]
)
def test_a_goal_is_met_within_its_bound(mine, state):
    assert judge(measurement(mine, 1.0)).state is state


@pytest.mark.parametrize(
    ("rounds", "outcome"),
    [
        ([0.9, 1.0, 1.05], "met"),
        ([0.9, 1.0, 1.2], "met, not in every round"),
        ([1.0, 1.2, 1.3], "missed, not in every round"),
        ([1.2, 1.3, 1.4], "missed"),
    ],
)
def test_an_outcome_that_rounds_disagree_on_says_so(rounds, outcome):
    times = {"numr.cpu": series(*[[s] for s in rounds]), "numpy": series([1.0], [1.0], [1.0])}
    verdict = judge(measurement(1, 1, series=times))
    assert report.goals_table([verdict]).rows[0][-1] == outcome


@pytest.mark.parametrize(
    ("counts", "state", "outcome"),
    [
        ({"steps": 2}, State.MET, "met"),
        ({"steps": 3}, State.MISSED, "missed"),
        ({}, State.NOT_MEASURED, "not measured: there was nothing to count as steps"),
    ],
)
def test_counts_have_goals_too(counts, state, outcome):
    goal = Goal("steps", "two or fewer", "large", ("reduction",), "", 2, count="steps")
    verdict = judge(measurement(1.0, 1.0, counts=counts), goal=goal)
    assert verdict.state is state
    shown = str(counts["steps"]) if counts else "-"
    assert report.goals_table([verdict]).rows[0][2:] == ("2 steps", shown, outcome)


def test_counts_beyond_their_bound_are_listed_as_counts():
    goal = Goal("steps", "two or fewer", "large", ("reduction",), "", 2, count="steps")
    verdict = judge(
        measurement(1.0, 1.0, counts={"steps": 4}),
        measurement(1.0, 1.0, counts={"steps": 1}, label="max"),
        goal=goal,
    )
    (note,) = report.goals_table([verdict]).notes
    assert note == "Beyond 2 steps, steps: sum 10M float64 4."


def test_one_measurement_beyond_the_bound_misses_the_goal():
    verdict = judge(
        measurement(0.5, 1.0),
        measurement(1.5, 1.0, label="max"),
        measurement(1.2, 1.0, label="any"),
    )
    assert verdict.state is State.MISSED
    assert [m.label for m, _ in verdict.found] == ["max", "any", "sum"]
    assert verdict.as_json()["missed"] == {"max 10M float64": 1.5, "any 10M float64": 1.2}


def test_measurements_that_a_goal_does_not_cover_are_left_out():
    verdict = judge(
        measurement(1.0, 1.0),
        measurement(9.0, 1.0, group="scan"),
        measurement(9.0, 1.0, benchmark="small"),
        measurement(9.0, 1.0, elements=720),
    )
    assert verdict.state is State.MET
    assert len(verdict.found) == 1


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"quick": True}, "quick run"),
        ({"runtime": "cuda"}, "set for the runtime cpu"),
    ],
)
def test_runs_that_cannot_be_judged(arguments, reason):
    verdict = judge(measurement(0.5, 1.0), **arguments)
    assert verdict.state is State.NOT_MEASURED
    assert reason in verdict.reason


def test_a_goal_without_measurements_is_not_met():
    verdict = judge()
    assert (verdict.state, verdict.reason) == (
        State.NOT_MEASURED,
        "the benchmark large was not run",
    )


def test_a_goal_against_an_absent_peer_is_not_met():
    goal = Goal("x + y", "at most 0.9", "small", ("call",), "torch", 0.9, label="x + y")
    absent = {"torch": "torch is not installed"}
    found = measurement(0.1, 1.0, benchmark="small", group="call", label="x + y", absent=absent)
    verdict = judge(found, goal=goal)
    assert (verdict.state, verdict.reason) == (State.NOT_MEASURED, "torch is not installed")
    assert "not measured: torch is not installed" in report.goals_table([verdict]).as_text()


def test_a_goal_for_two_threads_needs_them():
    (goal,) = (goal for goal in GOALS if goal.benchmark == add.NAME)
    one = {"numr.cpu, 1 thread": series([1.0]), "numpy": series([1.0])}
    two = {**one, "numr.cpu, 2 threads": series([0.4])}
    alike = {"benchmark": add.NAME, "group": "add", "label": "a + b"}
    alone = measurement(1, 1, series=one, subject="numr.cpu, 1 thread", **alike)
    both = measurement(1, 1, series=two, subject="numr.cpu, 2 threads", **alike)
    assert judge(alone, goal=goal).reason == "there was no 'numr.cpu, 2 threads' in this run"
    assert judge(both, goal=goal).found[0][1].value == 0.4
    assert judge(both, goal=goal).state is State.MET


@pytest.mark.parametrize("goal", GOALS, ids=lambda goal: goal.name)
def test_every_goal_is_about_something_that_is_measured(goal):
    assert goal.benchmark in ALL
    if goal.benchmark == device.NAME:
        assert set(goal.groups) <= {case.group for case in (*device.CASES, *device.CALLS)}
        assert goal.label in (None, *(case.label for case in device.CALLS))
        assert goal.peer in (add.FLOOR, *peers.ON_CUDA)
    if goal.benchmark == wgpu.NAME:
        groups = {case.group for case in wgpu.CASES} | {wgpu.LARGE, wgpu.CHAINED, wgpu.SOFTWARE}
        assert set(goal.groups) <= groups
        assert goal.label in (None, *(case.label for case in wgpu.CASES))
        assert goal.peer in (add.FLOOR, wgpu.BOUND, "cupy", "numpy")
    if goal.benchmark == capture.NAME:
        chosen = (programs.CHAIN, programs.SUM_OF_EXP, *programs.NORMS)
        groups = {program.name for program in chosen}
        groups |= {capture.SHORT, capture.LAUNCH, first.GROUP, first.ON_DISK}
        assert set(goal.groups) <= groups
        known = {"", "numpy", "numexpr", add.FLOOR, capture.BOUND, capture.TORCH}
        assert goal.peer in known | {capture.eager_of("numr.wgpu")}
        assert goal.count in (None, capture.STEPS, first.COMPILED)
        assert bool(goal.peer) == (goal.count is None)
    if goal.benchmark == large.NAME:
        assert set(goal.groups) <= {case.group for case in large.CASES}
        assert all(goal.elements[0] <= size <= goal.elements[1] for size in large.SIZES)
    if goal.benchmark == small.NAME:
        assert goal.label in small.CALLS
    if goal.benchmark == importing.NAME:
        assert goal.peer in importing.STATEMENTS


def test_the_page_names_every_goal():
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8").replace("`", "")
    for goal in goals.GOALS:
        assert f"| {goal.name} | {goal.target} |" in page


# ---- report

ENVIRONMENT = Environment(
    date="2026-01-02",
    numr="0.1.0",
    runtime="cpu",
    device="cpu",
    python="3.11.7",
    versions={"numpy": "2.3.0", "torch": None},
    system="Linux x86_64",
    processor="A CPU",
    cpus=2,
    numr_threads=2,
    load=0.1,
    quick=False,
)


def test_a_text_table_is_aligned():
    table = report.Table("Title", ("name", "ms"), (("a", "1.5"), ("longer", "10.25")), ("a note",))
    assert table.as_text().splitlines() == [
        "Title",
        "=====",
        "name       ms",
        "------  -----",
        "a         1.5",
        "longer  10.25",
        "a note",
    ]


def test_a_markdown_table_escapes_what_markdown_reads():
    table = report.Table("Title", ("call", "ms"), (("a ** b | c", "1.5"),), ("a note",))
    assert table.as_markdown().splitlines() == [
        "### Title",
        "",
        "| call | ms |",
        "| --- | ---: |",
        r"| a \*\* b \| c | 1.5 |",
        "",
        "a note",
    ]


def test_times_have_three_digits_and_no_exponent():
    assert report.times(series([0.0123456, 0.2]), "ms") == "106 (12.3)"
    assert report.times(series([1.5e-6]), "us") == "1.5 (1.5)"
    assert report.times(series([12.3456]), "ms") == "12346 (12346)"


def test_a_ratio_is_shown_with_its_range():
    found = ratio(series([1.0], [2.0], [3.0]), series([2.0], [2.0], [2.0]))
    assert report.spread(found) == "1.00 [0.50-1.50]"


def test_small_table_has_times_ratios_and_who_is_absent():
    found = measurement(
        2e-6,
        4e-6,
        benchmark="small",
        label="x + y",
        absent={"torch": "torch is not installed"},
    )
    table = report.small_table([found])
    assert table.columns == ("4 float64", "numr.cpu", "numpy", "numr.cpu/numpy")
    assert table.rows == (("x + y", "2 (2)", "4 (4)", "0.50"),)
    assert table.notes == ("not measured: torch is not installed",)


def test_add_table_shows_bandwidth_and_the_ratio_to_the_floor():
    times = {
        "numr.cpu": series([0.002]),
        "numpy": series([0.004]),
        "floor": series([0.001]),
    }
    found = measurement(1, 1, benchmark="add", series=times, elements=1_000_000)
    assert report.add_table(found).rows == (
        ("numr.cpu", "2 (2)", "12.0", "0.50 [0.50-0.50]", "2.00"),
        ("numpy", "4 (4)", "6.0", "1.00 [1.00-1.00]", "4.00"),
        ("floor", "1 (1)", "24.0", "0.25 [0.25-0.25]", "1.00"),
    )


def test_large_summary_has_a_column_for_each_size_and_dtype():
    found = [
        measurement(1, 2, elements=1_000_000),
        measurement(3, 2, elements=10_000_000),
        measurement(1, 4, elements=1_000_000, dtype="float32"),
        measurement(2, 2, elements=10_000_000, label="any", dtype="bool"),
    ]
    table = report.large_summary(found)
    assert table.columns == (
        "group",
        "operation",
        "1M float64",
        "10M float64",
        "1M float32",
        "10M float32",
    )
    assert table.rows == (
        ("reduction", "sum", "0.50", "1.50", "0.25", ""),
        ("reduction", "any bool", "", "1.00", "", ""),
    )


def test_large_tables_are_by_group_in_order_of_first_appearance():
    found = [
        measurement(1, 2, group="scan", label="cumulative_sum"),
        measurement(1, 2),
        measurement(1, 2, group="scan", label="cumulative_sum", dtype="float32"),
    ]
    tables = report.large_tables(found)
    assert [len(table.rows) for table in tables] == [2, 1]
    assert "scan" in tables[0].title
    assert tables[1].rows == (
        ("sum", "float64", "10M", "1000 (1000)", "2000 (2000)", "0.50 [0.50-0.50]"),
    )


def test_the_report_ends_with_the_goals_and_lists_what_is_beyond():
    found = [measurement(1.5, 1.0), measurement(0.5, 1.0, label="max")]
    verdicts = evaluate(found, runtime="cpu", quick=False, goals=[REDUCTIONS])
    lines = report.text(ENVIRONMENT, found, verdicts).splitlines()
    assert "Goals" in lines[-6:]
    assert lines[-2].startswith("reductions")
    assert "missed, 1 of 2 beyond" in lines[-2]
    assert lines[-1] == "Beyond 1.10 x numpy, reductions: sum 10M float64 1.50."


def test_the_head_says_what_is_installed_and_whether_the_machine_was_busy():
    text = "\n".join(ENVIRONMENT.lines())
    assert "numpy 2.3.0" in text
    assert "torch" not in text
    assert "busy" not in text
    busy = Environment(**{**ENVIRONMENT.as_json(), "load": 1.5})
    assert busy.busy
    assert "The machine was busy" in "\n".join(busy.lines())


def test_results_are_put_between_the_markers_of_a_page():
    page = f"# Page\n\n{report.BEGIN}\nold\n{report.END}\n\nafter\n"
    assert report.updated(page, "new") == f"# Page\n\n{report.BEGIN}\nnew\n{report.END}\n\nafter\n"
    assert report.updated(report.updated(page, "1"), "2") == report.updated(page, "2")


@pytest.mark.parametrize(
    "page", ["", report.BEGIN, f"{report.END}\n{report.BEGIN}", f"{report.BEGIN}{report.END}" * 2]
)
def test_a_page_without_its_two_markers_is_refused(page):
    with pytest.raises(report.PageError, match="needs one line"):
        report.updated(page, "new")


def test_the_documentation_page_has_its_markers():
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert "new results" in report.updated(page, "new results")


# ---- the whole


def test_a_quick_run_goes_through(tmp_path):
    page, data = tmp_path / "page.md", tmp_path / "found.json"
    page.write_text(f"# Page\n{report.BEGIN}\n{report.END}\n", encoding="utf-8")
    command = [sys.executable, "-m", "benchmarks", "--quick"]
    done = subprocess.run(
        [*command, "--json", str(data), "--markdown", str(page)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "A quick run" in done.stdout
    assert done.stdout.splitlines()[-len(GOALS) - 4] == "Goals"
    assert done.stdout.count("not measured: a quick run is too short to judge") == len(GOALS)
    found = json.loads(data.read_text(encoding="utf-8"))
    assert {m["benchmark"] for m in found["measurements"]} == set(BENCHMARKS)
    assert all(
        m["seconds"] and min(s["best"] for s in m["seconds"].values()) > 0
        for m in found["measurements"]
    )
    assert len([m for m in found["measurements"] if m["benchmark"] == large.NAME]) == len(CASES)
    for name, version in found["environment"]["versions"].items():
        listed = {n for m in found["measurements"] for n in (*m["seconds"], *m["absent"])}
        assert name in listed, (name, version)
    written = page.read_text(encoding="utf-8")
    assert "From `python -m benchmarks --quick`." in written
    assert re.search(r"^### Goals$", written, re.MULTILINE)
    assert written.endswith(f"\n{report.END}\n")


def test_only_what_is_asked_for_is_run(capsys, monkeypatch):
    def missing():
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    monkeypatch.setitem(peers.OPTIONAL, "torch", missing)
    assert main(["--quick", "--only", "add"]) == 0
    printed = capsys.readouterr()
    assert "a + b of 1K float64" in printed.out
    assert "not measured: torch is not installed" in printed.out
    assert "Small calls" not in printed.out
    assert all(line.startswith("benchmarks: add: ") for line in printed.err.splitlines())


def test_a_runtime_that_is_not_there_is_named(capsys):
    assert main(["--quick", "--runtime", "no-such"]) == 2
    assert "--runtime no-such" in capsys.readouterr().err


def test_a_page_that_cannot_be_written_stops_the_run_before_it_starts(tmp_path, capsys):
    page = tmp_path / "page.md"
    assert main(["--quick", "--markdown", str(page)]) == 2
    page.write_text("no markers", encoding="utf-8")
    assert main(["--quick", "--markdown", str(page)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "needs one line" in captured.err


def test_a_file_in_no_folder_stops_the_run_before_it_starts(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["--quick", "--json", str(tmp_path / "absent" / "found.json")])
    assert "there is no folder" in capsys.readouterr().err
