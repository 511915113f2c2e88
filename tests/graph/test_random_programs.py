"""Eager, captured and jitted runs of random programs agree to the bit."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings

import numr
from numr.ir.graph import verify
from numr.ir.passes import FusionLimits, common_subexpressions, dead_code, fuse, fuse_rows
from numr.runtime.graphs.recording import recording
from tests.graph.conftest import same
from tests.graph.programs import SHAPES, function_of, programs


def inputs(xp, seed):
    rng = np.random.default_rng(seed)
    return [xp.asarray(rng.integers(-4, 5, shape).astype(np.float32) / 2) for shape in SHAPES]


def copies(xp, tensors):
    return [xp.asarray(x, copy=True) for x in tensors]


def assert_same(got, expected):
    assert len(got) == len(expected)
    for x, y in zip(got, expected, strict=True):
        assert same(x, y), (x, y)


SETTINGS = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@SETTINGS
@given(programs())
def test_captured(xp, program):
    f = function_of(xp, program)
    eager, captured = inputs(xp, 1), inputs(xp, 1)
    graph = numr.capture(f, *captured)
    for seed in (2, 3):
        assert_same(graph.outputs, f(*eager))
        assert_same(captured, eager)
        for x, y, new in zip(eager, captured, inputs(xp, seed), strict=True):
            x[...] = new
            y[...] = new
        graph.launch()
    assert_same(graph.outputs, f(*eager))
    assert_same(captured, eager)


@SETTINGS
@given(programs())
def test_jitted(xp, program):
    f = function_of(xp, program)
    jitted = numr.jit(f)
    for seed in (1, 2, 3):
        eager, given_ = inputs(xp, seed), inputs(xp, seed)
        assert_same(jitted(*given_), f(*eager))
        assert_same(given_, eager)
    assert jitted.cache_info().misses == 1


@SETTINGS
@given(programs())
def test_programs_are_valid_after_every_pass(xp, program):
    tensors = inputs(xp, 1)
    client = tensors[0]._client
    with recording(client, [x._data for x in tensors]) as recorder:
        results = function_of(xp, program)(*tensors)
        recorded = recorder.finish([x._data for x in results])
    verify(recorded)
    count = len(recorded.nodes)
    fuses = lambda op, dtype: True
    limits = FusionLimits(8, 5, recomputes=True, rows=lambda *_: True, epilogues=True)
    for change in (
        dead_code,
        common_subexpressions,
        lambda p: fuse(p, fuses, limits),
        lambda p: fuse_rows(p, fuses, limits),
    ):
        recorded = change(recorded)
        verify(recorded)
        assert len(recorded.nodes) <= count
        count = len(recorded.nodes)
