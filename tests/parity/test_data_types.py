"""Conversions between all pairs of dtypes, and the functions that answer questions about dtypes."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from numr import dtypes as dt
from numr.errors import DTypeError, RuntimeUnavailable, UnsupportedDType
from tests.parity import flushing, samples, support
from tests.parity.support import (
    Array,
    assert_same,
    default_dtype,
    for_dtypes,
    has,
    layouts,
    needs,
    raises,
    tensor,
)

PAIRS = [
    pytest.param(source, target, id=f"{source}-{target}")
    for source, target in itertools.product(support.ALL, support.ALL)
]

#: Pairs of which both have infinities and NaN, or the second says whether an element is zero.
SPECIAL_PAIRS = [
    pytest.param(source, target, id=f"{source}-{target}")
    for source, target in itertools.product(support.FLOATS, (dt.bool_, *support.FLOATS))
    if (source.kind, target.kind) != ("c", "f")
]

#: The standard's promotion tables, row and column by kind and bytes.
SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
FLOATING = ["float32", "float64", "complex64", "complex128"]
STANDARD: dict[tuple[str, str], str] = {("bool", "bool"): "bool"}
for table in (SIGNED, UNSIGNED):
    STANDARD.update({(a, b): max(a, b, key=table.index) for a in table for b in table})
MIXED = [
    ["int16", "int32", "int64", None],
    ["int16", "int32", "int64", None],
    ["int32", "int32", "int64", None],
    ["int64", "int64", "int64", None],
]
for signed, row in zip(SIGNED, MIXED, strict=True):
    for unsigned, joined in zip(UNSIGNED, row, strict=True):
        if joined:
            STANDARD[signed, unsigned] = STANDARD[unsigned, signed] = joined
FLOATING_TABLE = [
    ["float32", "float64", "complex64", "complex128"],
    ["float64", "float64", "complex128", "complex128"],
    ["complex64", "complex128", "complex64", "complex128"],
    ["complex128", "complex128", "complex128", "complex128"],
]
for one, row in zip(FLOATING, FLOATING_TABLE, strict=True):
    STANDARD.update({(one, two): joined for two, joined in zip(FLOATING, row, strict=True)})


def values_of(dtype: np.dtype[Any]) -> Array:
    """Values of all sizes, finite."""
    if dtype.kind == "b":
        return samples.booleans()
    draw = {"f": samples.reals, "c": samples.complexes}.get(dtype.kind, samples.integers)
    values = draw(dtype, seed=1)
    return np.concatenate([values, np.zeros(2, dtype), np.ones(2, dtype)])


def converted(value: Any, target: np.dtype[Any]) -> Any:
    """A Python number as the target holds it; None where that is not defined."""
    if target.kind == "b":
        return value != 0
    if isinstance(value, complex):
        parts = [converted(part, dt.real_of(target)) for part in (value.real, value.imag)]
        return complex(*parts)
    if target.kind in "iu":
        whole = math.trunc(value)
        info = np.iinfo(target)
        if info.min <= whole <= info.max:
            return whole
        # Integers wrap around; what floating-point numbers beyond the range become is open.
        return (
            None if isinstance(value, float) else (whole - info.min) % (1 << info.bits) + info.min
        )
    return nearest(Fraction(value), dt.real_of(target))


def nearest(value: Fraction, dtype: np.dtype[Any]) -> float:
    """The nearest floating-point number, ties to even."""
    info = np.finfo(dtype)
    if not value:
        return 0.0
    exponent = max(math.frexp(abs(float(value)))[1] - 1, int(info.minexp))
    unit = Fraction(2) ** (exponent - int(info.nmant))
    rounded = round(value / unit) * unit
    size = math.inf if abs(rounded) > float(info.max) else float(abs(rounded))
    return math.copysign(size, value)


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_astype(xp: ModuleType, source: np.dtype[Any], target: np.dtype[Any]) -> None:
    needs(xp, target)
    values = values_of(source)
    x = tensor(xp, values)
    if source.kind == "c" and target.kind not in "bc":
        with raises(DTypeError, "astype", f"{source}.*{target}"):
            xp.astype(x, target)
        return
    expected = [converted(value, target) for value in values.tolist()]
    defined = np.asarray([value is not None for value in expected])
    correct = np.empty(int(defined.sum()), target)
    correct[:] = [value for value in expected if value is not None]
    kept = values[defined]
    # Conversions are arithmetic: some devices have no subnormal numbers in it.
    flushed = correct
    if source.kind in "fc" and flushing.flushes(xp, source):
        zeros = flushing.without_subnormals(kept)
        with np.errstate(all="ignore"):
            flushed = np.where(zeros == kept, correct, zeros.astype(target))
    if target.kind in "fc" and flushing.flushes(xp, target):
        flushed = flushing.without_subnormals(flushed)

    def right(got: Any) -> Any:
        return flushing.chosen(got.to_numpy().reshape(-1), correct[: got.size], flushed[: got.size])

    for name, x in layouts(xp, kept):
        got = xp.astype(x, target)
        assert_same(got, right(got), name)
        assert_same(x, kept, name)
    matrix = kept[: len(kept) // 2 * 2].reshape(2, -1)
    for name, x in layouts(xp, matrix):
        got = xp.astype(x, target, copy=False)
        assert_same(got, right(got).reshape(2, -1), name)
        assert (got is x) == (source == target)
    for shape in ((), (0,), (2, 0)):
        x = tensor(xp, np.ones(shape, source))
        assert_same(xp.astype(x, target), np.ones(shape, target))
    x = tensor(xp, kept)
    copied = xp.astype(x, target)
    copied[...] = True
    assert_same(x, kept)


@pytest.mark.parametrize(("source", "target"), SPECIAL_PAIRS)
def test_astype_of_special_values(
    xp: ModuleType, source: np.dtype[Any], target: np.dtype[Any]
) -> None:
    needs(xp, target)
    values = np.asarray([0.0, -0.0, math.nan, math.inf, -math.inf], source)
    got = xp.astype(tensor(xp, values), target)
    if target.kind == "b":
        assert got.tolist() == [False, False, True, True, True]
        return
    expected = np.asarray([0.0, -0.0, math.nan, math.inf, -math.inf], target)
    assert_same(got, expected)
    if source.kind == "c":
        imaginary = np.zeros(5, source)
        imaginary.imag = values.real
        expected = np.zeros(5, target)
        expected.imag = np.asarray(values.real)
        assert_same(xp.astype(tensor(xp, imaginary), target), expected)


@for_dtypes(support.ALL)
def test_astype_with_a_device(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    device = xp.__array_namespace_info__().default_device()
    x = tensor(xp, np.ones(3, dtype))
    for place in (device, str(device)):
        got = xp.astype(x, dtype, device=place)
        assert_same(got, np.ones(3, dtype))
        assert got.device == device
    with pytest.raises(RuntimeUnavailable, match="nowhere"):
        xp.astype(x, dtype, device="nowhere")
    with raises(DTypeError, "astype", "object"):
        xp.astype(x, object)
    with raises(TypeError, "astype", "list"):
        xp.astype([1], dtype)


@pytest.mark.parametrize(("one", "two"), PAIRS)
def test_result_type(xp: ModuleType, one: np.dtype[Any], two: np.dtype[Any]) -> None:
    needs(xp, one)
    needs(xp, two)
    x, y = xp.ones(2, dtype=one), xp.ones((3, 1), dtype=two)
    known = STANDARD.get((str(one), str(two)))
    if {one.kind, two.kind} == {"i", "u"} and known is None:
        for arguments in ((x, y), (one, two), (x, two)):
            with raises(DTypeError, "result_type", "do not promote"):
                xp.result_type(*arguments)
        # A floating-point dtype settles what the integers do not.
        assert xp.result_type(one, two, xp.float32) == xp.float32
        return
    if known is None:
        # Beyond the standard: booleans and integers take the other's dtype, float16 is the smallest float.
        if "b" in (one.kind, two.kind):
            known = str(two if one.kind == "b" else one)
        elif one.kind in "iu" or two.kind in "iu":
            known = str(two if one.kind in "iu" else one)
        else:
            known = str(two if one == dt.float16 else one)
    assert xp.result_type(one, two) == np.dtype(known)
    for arguments in ((x, y), (x, two), (one, y), (y, one, x)):
        if has(xp, np.dtype(known)):
            assert xp.result_type(*arguments) == np.dtype(known)
        else:
            with raises(UnsupportedDType, "result_type", str(known)):
                xp.result_type(*arguments)


@for_dtypes(support.ALL)
def test_result_type_with_scalars(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    needs(xp, dtype)
    real, cplx, integral = (
        default_dtype(xp, kind) for kind in ("real floating", "complex floating", "integral")
    )
    x = xp.ones(2, dtype=dtype)
    rows: dict[type, dict[str, Any]] = {
        bool: {},
        int: {"b": integral},
        float: dict.fromkeys("biu", real),
        complex: {**dict.fromkeys("biu", cplx), "f": dt.complex_of(dtype)},
    }
    for scalar in (True, 2, 2.5, 1j):
        expected = rows[type(scalar)].get(dtype.kind, dtype)
        assert xp.result_type(x, scalar) == expected
        assert xp.result_type(scalar, x) == expected
        assert xp.result_type(x, scalar, x) == expected
    assert xp.result_type(x) == dtype
    assert xp.result_type(dtype) == dtype
    with raises(ValueError, "result_type"):
        xp.result_type(1, 2.5)
    with raises(ValueError, "result_type"):
        xp.result_type()


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_can_cast(xp: ModuleType, source: np.dtype[Any], target: np.dtype[Any]) -> None:
    # By the promotion tables of the standard, where both dtypes are in one of them.
    integers = SIGNED + UNSIGNED
    expected = source == target
    for family in (integers, ["float16", *FLOATING]):
        if str(source) in family and str(target) in family:
            promoted = STANDARD.get((str(source), str(target)))
            if "float16" in (str(source), str(target)):
                promoted = str(target if source == dt.float16 else source)
            expected = promoted == str(target)
    assert xp.can_cast(source, target) is expected
    assert xp.can_cast(str(source), str(target)) is expected
    if has(xp, source) and has(xp, target):
        assert xp.can_cast(xp.ones(1, dtype=source), target) is expected


@for_dtypes(support.ALL)
def test_limits(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    arguments = [dtype, str(dtype), dtype.type]
    if has(xp, dtype):
        arguments.append(xp.ones(1, dtype=dtype))
    for argument in arguments:
        if dtype.kind in "fc":
            info = xp.finfo(argument)
            digits = {2: (10, 15), 4: (23, 127), 8: (52, 1023)}[dt.real_of(dtype).itemsize]
            assert info.bits == 8 * dt.real_of(dtype).itemsize
            assert info.eps == 2.0 ** -digits[0]
            assert info.max == float((2 - Fraction(1, 2 ** digits[0])) * 2 ** digits[1])
            assert info.min == -info.max
            assert info.smallest_normal == 2.0 ** (1 - digits[1])
            assert info.dtype == dt.real_of(dtype)
            assert all(
                type(v) is float for v in (info.eps, info.max, info.min, info.smallest_normal)
            )
        else:
            with raises(DTypeError, "finfo", f"{dtype}"):
                xp.finfo(argument)
        if dtype.kind in "iu":
            bounds = xp.iinfo(argument)
            bits = 8 * dtype.itemsize
            signed = dtype.kind == "i"
            assert bounds.bits == bits
            assert bounds.min == (-(2 ** (bits - 1)) if signed else 0)
            assert bounds.max == 2 ** (bits - signed) - 1
            assert bounds.dtype == dtype
            assert type(bounds.max) is int
        else:
            with raises(DTypeError, "iinfo", f"{dtype}"):
                xp.iinfo(argument)


@for_dtypes(support.ALL)
def test_isdtype(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    kinds = {
        "bool": "b",
        "signed integer": "i",
        "unsigned integer": "u",
        "integral": "iu",
        "real floating": "f",
        "complex floating": "c",
        "numeric": "iufc",
    }
    for kind, letters in kinds.items():
        expected = dtype.kind in letters
        assert xp.isdtype(dtype, kind) is expected
        assert xp.isdtype(dtype, (kind,)) is expected
        assert xp.isdtype(dtype, (kind, dtype)) is True
        for other, more in kinds.items():
            assert xp.isdtype(dtype, (kind, other)) is (dtype.kind in letters + more)
    for other in support.ALL:
        assert xp.isdtype(dtype, other) is (dtype == other)
    assert xp.isdtype(dtype, ()) is False
    with raises(ValueError, "isdtype", "'real'"):
        xp.isdtype(dtype, "real")


@for_dtypes(support.ALL)
def test_dtypes_of_the_namespace(xp: ModuleType, dtype: np.dtype[Any]) -> None:
    name = str(dtype)
    assert getattr(xp, name) == dtype
    info = xp.__array_namespace_info__()
    listed = info.dtypes()
    assert (name in listed) == (has(xp, dtype) and dtype != dt.float16)
    for kind, letters in dt.ISDTYPE_KINDS.items():
        expected = {key: value for key, value in listed.items() if value.kind in letters}
        assert info.dtypes(kind=kind) == expected
