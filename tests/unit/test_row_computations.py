"""Computations of rows: their sweeps and parts, and what may not become one."""

from __future__ import annotations

import pytest

from numr import dtypes as dt
from numr.ir import ops
from numr.ir.fused import Step
from numr.ir.ops import Reduction, Signature
from numr.ir.rows import RowComputation, RowSource, RowStep, Sweep
from tests import row_programs

F32 = dt.float32
BOTH = Signature(F32, F32)
X = RowSource(F32, is_array=True, per_row=False)
PER_ROW = RowSource(F32, is_array=True, per_row=True)
SCALAR = RowSource(F32, is_array=False, per_row=True)


def test_sweeps_of_a_softmax():
    softmax = row_programs.softmax()
    assert softmax.sweeps == (
        Sweep((), (1,), ()),
        Sweep((), (4,), ()),
        Sweep((), (), (5,)),
    )
    # x - max and its exponential belong to elements; the maximum and the sum to rows.
    assert softmax.per_row == (False, True, False, False, True, False)
    assert [softmax.targets(sweep) for sweep in softmax.sweeps] == [(0,), (3,), (5,)]
    # The elements are held until their exponentials are, and these to the end.
    assert softmax.held == ((0,), (3,), ())


def test_sweeps_of_a_layer_norm():
    norm = row_programs.layer_norm()
    assert [sweep.rows for sweep in norm.sweeps] == [(), (6,), (10, 11, 12)]
    assert [sweep.reductions for sweep in norm.sweeps] == [(5,), (9,), ()]
    assert norm.held == ((0,), (7,), ())


def test_a_result_may_be_stored_before_the_last_sweep():
    steps = (
        RowStep(ops.EXP, BOTH, (0,)),
        RowStep(Reduction.SUM, BOTH, (1,)),
        RowStep(ops.DIVIDE, BOTH, (1, 2)),
    )
    both = RowComputation((X,), steps, (1, 3))
    assert both.sweeps == (Sweep((), (2,), (1,)), Sweep((), (), (3,)))
    assert both.held == ((1,), ())


def test_parts():
    softmax = row_programs.softmax()
    part, sources = softmax.part((3,), [0, 1])
    assert sources == [0, 1]
    assert part.steps == (Step(ops.SUBTRACT, BOTH, (0, 1)), Step(ops.EXP, BOTH, (2,)))
    # From what is held, and in another order, with sources that are not needed.
    part, sources = softmax.part((5,), [0, 1, 3, 4], [4, 0, 3])
    assert sources == [4, 0, 3]
    assert part.steps == (Step(ops.DIVIDE, BOTH, (2, 0)),)
    # What is given is taken as it is.
    part, sources = softmax.part((0,), [0])
    assert part.steps == (Step(None, BOTH, (0,)),)
    assert part.results == (1,)


@pytest.mark.parametrize(
    ("program", "epilogue"), [("norm", 2), ("mean", 1), ("softmax", None), ("variance", None)]
)
def test_single_reductions(program, epilogue):
    computation = row_programs.PROGRAMS[program]()
    single = computation.single_reduction()
    if epilogue is None:
        assert single is None
        return
    assert single is not None
    assert single.scalars == (1,)
    assert len(single.prologue.sources) == 2
    assert single.epilogue is not None
    assert len(single.epilogue.steps) == epilogue


def test_what_follows_a_single_reduction_reads_no_array():
    steps = (RowStep(Reduction.SUM, BOTH, (0,)), RowStep(ops.MULTIPLY, BOTH, (2, 1)))
    assert RowComputation((X, PER_ROW), steps, (3,)).single_reduction() is None
    before = (
        RowStep(ops.MULTIPLY, BOTH, (0, 1)),
        RowStep(Reduction.SUM, BOTH, (2,)),
    )
    single = RowComputation((X, PER_ROW), before, (3,)).single_reduction()
    assert single is not None
    assert single.epilogue is None


def test_what_is_no_computation():
    with pytest.raises(ValueError, match="do not all precede it"):
        RowComputation((X,), (RowStep(ops.ADD, BOTH, (0, 1)),), (1,))
    with pytest.raises(ValueError, match="one for a whole row"):
        RowComputation((PER_ROW,), (RowStep(Reduction.SUM, BOTH, (0,)),), (1,))
    with pytest.raises(ValueError, match="one for a whole row"):
        RowComputation((SCALAR,), (RowStep(Reduction.SUM, BOTH, (0,)),), (1,))
    with pytest.raises(ValueError, match="not all values of steps"):
        RowComputation((X,), (RowStep(Reduction.SUM, BOTH, (0,)),), (0,))


def test_text():
    assert str(row_programs.norm()).splitlines() == [
        "v2 = square(v0: float32)",
        "v3 = sum(v2: float32) of each row",
        "v4 = add(v1: float32, v3: float32)",
        "v5 = sqrt(v4: float32)",
        "results: v5: float32",
    ]
    assert row_programs.norm().title == "square+sum+add+sqrt"
