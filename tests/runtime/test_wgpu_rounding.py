"""Quotients and roots of float32 that are corrected where a device does not round them, on every adapter."""

from __future__ import annotations

import numpy as np
import pytest

from numr import dtypes as dt
from numr.codegen.wgsl_rounding import rounding
from numr.runtime.wgpu import texts
from numr.runtime.wgpu.pipelines import KernelText
from numr.runtime.wgpu.texts import Parameters
from tests.runtime.wgpu_support import require_adapter, variant

pytestmark = pytest.mark.wgpu
require_adapter()

COUNT = 200_000

_QUOTIENT = "bitcast<f32>(a | 0x3f000000u) / bitcast<f32>(b | 0x3f000000u)"
_ROOT = "sqrt(bitcast<f32>(a | select(0x3f800000u, 0x40000000u, odd)))"


@pytest.fixture(scope="module")
def client():
    rt = variant()
    return rt.Client(rt.default_device())


def operands():
    """Numbers of all sizes, of like sizes, subnormal ones, and all pairs of special ones."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 1 << 32, (2, COUNT), np.uint64).astype(np.uint32)
    part = COUNT // 4
    y[:part] = (x[:part] & 0x7F800000) | rng.integers(0, 1 << 23, part, np.uint32)
    x[part : 2 * part] &= 0x807FFFFF
    y[part : 2 * part] = rng.integers(1, 1000, part).astype(np.float32).view(np.uint32)
    x, y = x.view(np.float32), y.view(np.float32)
    info = np.finfo(np.float32)
    special = [0.0, 1.0, 3.0, 4.0, np.inf, np.nan, info.smallest_subnormal, info.smallest_normal]
    special += [info.max, 2.0 - info.eps, 1.0 - info.epsneg, 4.0 - 2 * info.eps, 16777215.0]
    special = np.asarray([*special, *(-value for value in special)], np.float32)
    return (
        np.concatenate([x, np.repeat(special, special.size)]),
        np.concatenate([y, np.tile(special, special.size)]),
    )


def computed(client, functions, x, y):
    """Quotients and roots by the functions ``corrected_quotient`` and ``corrected_root``."""
    context = client.context
    params = Parameters("count", "row")
    text = (
        f"{params.text}{functions}{texts.invocation()}"
        "    if (i >= params.count) { return; }\n"
        "    quotients[i] = corrected_quotient(x[i], y[i]);\n"
        "    roots[i] = corrected_root(x[i]);\n}\n"
    )
    buffers = [texts.source(name, dt.float32) for name in "xy"]
    buffers += [texts.target(name, dt.float32) for name in ("quotients", "roots")]
    arrays = [client.from_host(value, copy=True) for value in (x, y)]
    arrays += [context.empty(x.shape, dt.float32) for _ in range(2)]
    groups, row = context.grid(x.size)
    bindings = [context.bind(array, "test").binding for array in arrays]
    kernel = KernelText(text, tuple(buffers), params.size)
    context.run(kernel, bindings, params.pack(x.size, row), groups)
    return [client.to_host(array) for array in arrays[2:]]


@pytest.mark.parametrize("off", [0, 2, -2, 5])
def test_corrected_results_are_those_of_ieee_754(client, off):
    text = rounding("divided(", exact=False)
    # As a device would give it that is as far off as WebGPU allows for quotients.
    for own in (_QUOTIENT, _ROOT):
        assert text.count(own) == 1
        moved = f"bitcast<f32>(u32(i32(bitcast<u32>({own})) + {off}))"
        text = text.replace(own, moved)
    text = text.replace("divided", "corrected_quotient").replace("rooted", "corrected_root")
    text = text.replace("about", "near_quotient")
    x, y = operands()
    with np.errstate(all="ignore"):
        expected = x / y, np.sqrt(x)
    for got, correct in zip(computed(client, text, x, y), expected, strict=True):
        np.testing.assert_array_equal(got, correct)
        number = ~np.isnan(correct)
        np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(correct[number]))


def test_other_quotients_are_right_for_all_divisors(client):
    text = rounding("divided(", exact=False)
    text = text.replace("divided", "other").replace("about", "corrected_quotient")
    x, y = operands()
    got, _ = computed(client, text.replace("rooted", "corrected_root"), x, y)
    with np.errstate(all="ignore"):
        expected = x / y
    info = np.finfo(np.float32)
    # Of the smallest numbers some devices see zeros.
    sure = (np.abs(x) >= info.smallest_normal) | (x == 0) | np.isnan(x)
    sure &= (np.abs(y) >= info.smallest_normal) | (y == 0) | np.isnan(y)
    with np.errstate(all="ignore"):
        error = np.abs(got.astype(float) - expected)
        close = error <= 3 * float(info.eps) * np.abs(expected.astype(float)) + info.smallest_normal
    same = (got == expected) | (np.isnan(got) & np.isnan(expected)) | close
    # Next to the end of the range a result may be infinite.
    same |= np.isinf(got) & (np.abs(expected) >= info.max * (1 - 4 * info.eps))
    assert (same | ~sure).all()


def test_only_modules_that_call_the_functions_have_them():
    for exact in (True, False):
        assert rounding("let undivided = mean(x / y);", exact=exact) == ""
        for call in ("about(x, y)", "divided(x, y)", "rooted(x)"):
            text = rounding(call, exact=exact)
            assert text.count("fn divided(") == text.count("fn rooted(") == 1
    assert "x / y" in rounding("rooted(x)", exact=True)
