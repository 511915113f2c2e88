"""Promotion, categories and the dtype rules of the op table, against the standard's tables."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest

from numr import dtypes as dt
from numr.dtypes import DefaultDTypes
from numr.errors import DTypeError
from numr.ir import ops

DEFAULTS = DefaultDTypes(dt.float64, dt.complex128, dt.int64, dt.int64)
SMALL = DefaultDTypes(dt.float32, dt.complex64, dt.int32, dt.int32)

# The standard's tables, row by row, in the order of their headers.
SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
MIXED = {
    "int8": ["int16", "int32", "int64"],
    "int16": ["int16", "int32", "int64"],
    "int32": ["int32", "int32", "int64"],
    "int64": ["int64", "int64", "int64"],
}
FLOATING = {
    "float32": ["float32", "float64", "complex64", "complex128"],
    "float64": ["float64", "float64", "complex128", "complex128"],
    "complex64": ["complex64", "complex128", "complex64", "complex128"],
    "complex128": ["complex128", "complex128", "complex128", "complex128"],
}


def table() -> list[tuple[str, str, str]]:
    rows = []
    for family in (SIGNED, UNSIGNED):
        for i, j in itertools.product(range(4), repeat=2):
            rows.append((family[i], family[j], family[max(i, j)]))
    for signed, results in MIXED.items():
        for unsigned, result in zip(UNSIGNED[:3], results, strict=True):
            rows.append((signed, unsigned, result))
    for first, results in FLOATING.items():
        for second, result in zip(FLOATING, results, strict=True):
            rows.append((first, second, result))
    rows.append(("bool", "bool", "bool"))
    return rows


@pytest.mark.parametrize(("first", "second", "result"), table())
def test_promotion_follows_the_tables_of_the_standard(first: str, second: str, result: str) -> None:
    one, two = np.dtype(first), np.dtype(second)
    assert dt.promote(one, two) == dt.promote(two, one) == np.dtype(result)


@pytest.mark.parametrize("signed", SIGNED)
def test_uint64_with_a_signed_integer_raises_and_names_both(signed: str) -> None:
    with pytest.raises(DTypeError, match=rf"(?=.*uint64)(?=.*{signed}).*astype"):
        dt.promote(np.dtype(signed), dt.uint64)


@pytest.mark.parametrize("integer", [*SIGNED, *UNSIGNED, "bool"])
@pytest.mark.parametrize("floating", [*FLOATING, "float16"])
def test_an_integer_with_a_floating_dtype_gives_the_floating_dtype(
    integer: str, floating: str
) -> None:
    assert dt.promote(np.dtype(integer), np.dtype(floating)) == np.dtype(floating)


def test_promotion_of_three_does_not_depend_on_their_order() -> None:
    for dtypes in itertools.permutations((dt.uint64, dt.int8, dt.float32)):
        assert dt.promote_kinds(dtypes, DEFAULTS) == dt.float32


@pytest.mark.parametrize("dtype", dt.ALL_DTYPES, ids=str)
@pytest.mark.parametrize("defaults", [DEFAULTS, SMALL], ids=["64-bit", "32-bit"])
def test_scalars_never_widen(dtype: np.dtype, defaults: DefaultDTypes) -> None:
    for scalar_type in (bool, int, float, complex):
        result = dt.promote_scalar(dtype, scalar_type, defaults)
        order = [bool, int, float, complex]
        own = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}[dtype.kind]
        if order.index(scalar_type) <= own:
            assert result == dtype
        elif scalar_type is complex and dtype.kind == "f":
            assert result == dt.complex_of(dtype)
        else:
            assert result == defaults.of_scalar(scalar_type)


@pytest.mark.parametrize("op", ops.OPS.values(), ids=lambda op: op.name)
@pytest.mark.parametrize("dtype", dt.ALL_DTYPES, ids=str)
def test_every_row_accepts_its_domain_and_refuses_the_rest(op: ops.Op, dtype: np.dtype) -> None:
    kinds = (dt.bool_, dtype, dtype) if op is ops.SELECT else (dtype,) * op.arity
    allowed = dtype.kind in dt.CATEGORIES[op.domain]
    converted = dtype.kind in "biu" and "floating" in op.domain
    if not (allowed or converted):
        with pytest.raises(DTypeError, match=rf"{op.name}: got .*{dtype}.*{op.domain}"):
            op.signature(kinds, DEFAULTS)
        return
    signature = op.signature(kinds, DEFAULTS)
    assert signature.compute == (dtype if allowed else dt.float64)
    if op.result is ops.Result.BOOL:
        assert signature.result == dt.bool_
    elif op.result is ops.Result.REAL:
        assert signature.result == dt.real_of(signature.compute)
    else:
        assert signature.result == signature.compute


def test_the_condition_of_where_must_be_boolean() -> None:
    with pytest.raises(DTypeError, match=r"where: the condition has dtype int8.*boolean"):
        ops.SELECT.signature((dt.int8, dt.float32, dt.float32), DEFAULTS)


@pytest.mark.parametrize(
    ("given", "expected"),
    [(bool, "bool"), (int, "int64"), (float, "float64"), (complex, "complex128")]
    + [(name, name) for name in ("int8", "float32", "complex64", "bool")]
    + [(np.float32, "float32"), (np.dtype(">f4"), "float32")],
)
def test_dtypes_by_type_and_name(given: object, expected: str) -> None:
    assert dt.as_dtype(given, "f") == np.dtype(expected)
    assert dt.as_dtype(given, "f").isnative


@pytest.mark.parametrize("bad", ["U4", "datetime64[s]", "no such", object, "O", 3.5, None])
def test_what_is_no_dtype_raises(bad: object) -> None:
    with pytest.raises(DTypeError, match="zeros: "):
        dt.as_dtype(bad, "zeros")


def test_isdtype_kinds() -> None:
    for kind, letters in dt.ISDTYPE_KINDS.items():
        for dtype in dt.STANDARD_DTYPES:
            assert dt.isdtype(dtype, kind) == (dtype.kind in letters)
    assert dt.isdtype(dt.int8, ("bool", dt.int8))
    with pytest.raises(ValueError, match="isdtype: 'floating' is not a kind"):
        dt.isdtype(dt.int8, "floating")


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "complex64", "complex128"])
def test_finfo_has_python_numbers(name: str) -> None:
    info = dt.finfo_of(np.dtype(name))
    expected = np.finfo(name)
    for field in ("eps", "max", "min", "smallest_normal"):
        value = getattr(info, field)
        assert type(value) is float
        assert value == float(getattr(expected, field))
    assert info.bits == expected.bits
    assert info.dtype == dt.real_of(np.dtype(name))


def test_finfo_and_iinfo_refuse_the_other_kind() -> None:
    with pytest.raises(DTypeError, match=r"finfo: int8.*iinfo"):
        dt.finfo_of(dt.int8)
    with pytest.raises(DTypeError, match=r"iinfo: float32.*finfo"):
        dt.iinfo_of(dt.float32)
    assert dt.iinfo_of(dt.uint64).max == 2**64 - 1


def test_dtypes_are_numpy_dtypes_and_pickle() -> None:
    for dtype in dt.ALL_DTYPES:
        assert isinstance(dtype, np.dtype)
        assert pickle.loads(pickle.dumps(dtype)) == dtype
