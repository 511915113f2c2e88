"""Passes over programs, each a function from one program to another that does the same in less."""

from __future__ import annotations

from numr.ir.passes.fuse import FusionLimits, fuse
from numr.ir.passes.memory import Arena, plan_memory
from numr.ir.passes.rows import fuse_rows
from numr.ir.passes.simplify import common_subexpressions, dead_code

__all__ = [
    "Arena",
    "FusionLimits",
    "common_subexpressions",
    "dead_code",
    "fuse",
    "fuse_rows",
    "plan_memory",
]
