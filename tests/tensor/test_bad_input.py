"""Bad input: the right exception, naming function, values, rule and way out, and nothing lost afterwards."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import numr
from numr import errors
from numr.runtime import Runtime, runtime


def dtypes(xp: ModuleType) -> Any:
    return xp.__array_namespace_info__().dtypes().values()


Body = Callable[[ModuleType], Any]


@pytest.fixture(params=numr.available())
def xp(request: pytest.FixtureRequest) -> ModuleType:
    return numr.namespace(request.param)


@pytest.fixture
def allocator(xp: ModuleType) -> Iterator[Any]:
    """The default device's allocator, left without limit and unfrozen."""
    cls: type[Runtime] = runtime(xp.__name__.rsplit(".", 1)[1])
    allocator = cls.allocator(cls.default_device())
    yield allocator
    allocator.unfreeze()
    allocator.set_limit(None)


def figures(allocator: Any) -> tuple[int, int]:
    gc.collect()
    stats = allocator.stats()
    return stats.active_allocations, stats.active_bytes


LARGE = 1 << 16  # elements; results of this size come from the allocator

CASES: dict[str, tuple[type[Exception], str, Body]] = {
    "dtype kind": (
        errors.DTypeError,
        r"bitwise_and: got float32, float32; only integer or boolean dtypes are allowed.*astype",
        lambda xp: xp.bitwise_and(*[xp.ones(LARGE, dtype=xp.float32)] * 2),
    ),
    "arithmetic of booleans": (
        errors.DTypeError,
        r"subtract: got bool, bool; only numeric dtypes.*logical functions",
        lambda xp: xp.asarray([True]) - xp.asarray([False]),
    ),
    "order of complex numbers": (
        errors.DTypeError,
        r"less: got complex64, a Python int; only real-valued.*abs\(\), real\(\) or imag\(\)",
        lambda xp: xp.asarray([1j], dtype=xp.complex64) < 0,
    ),
    "shapes that do not broadcast": (
        errors.ShapeError,
        r"\(2, 3\).*\(2,\)",
        lambda xp: xp.zeros((2, 3)) + xp.zeros(2),
    ),
    "large shapes that do not broadcast": (
        errors.ShapeError,
        rf"\({LARGE},\).*\({LARGE + 1},\)",
        lambda xp: xp.zeros(LARGE) + xp.zeros(LARGE + 1),
    ),
    "axis out of range": (
        errors.AxisError,
        r"sum: axis 2.*",
        lambda xp: xp.sum(xp.zeros((2, 3)), axis=2),
    ),
    "axis named twice": (
        errors.AxisError,
        r"max: ",
        lambda xp: xp.max(xp.zeros((2, 3)), axis=(0, -2)),
    ),
    "ragged list": (
        errors.ShapeError,
        r"asarray: the nested sequence is ragged",
        lambda xp: xp.asarray([[1, 2], [3]]),
    ),
    "ragged list of tensors": (
        errors.ShapeError,
        r"asarray: the nested sequence is ragged.*\(\), \(2,\)",
        lambda xp: xp.asarray([xp.zeros(2), 1.0]),
    ),
    "strings": (
        errors.DTypeError,
        r"asarray: numr has no dtype '<U1'",
        lambda xp: xp.asarray(["a", "b"]),
    ),
    "objects": (
        errors.DTypeError,
        r"asarray: numr has no dtype 'object'",
        lambda xp: xp.asarray([None]),
    ),
    "unsupported dtype": (
        errors.DTypeError,
        r"zeros: numr has no dtype 'datetime64\[s\]'",
        lambda xp: xp.zeros(3, dtype="datetime64[s]"),
    ),
    "integer that fits no dtype": (
        OverflowError,
        r"asarray: an integer is out of the range of int64",
        lambda xp: xp.asarray([2**70]),
    ),
    "copy=False of a list": (
        errors.CopyError,
        r"asarray: copy=False, but a list has no memory",
        lambda xp: xp.asarray([1.0], copy=False),
    ),
    "copy=False with a cast": (
        errors.CopyError,
        r"asarray: copy=False, but a tensor of dtype float32.*int32",
        lambda xp: xp.asarray(xp.ones(3, dtype=xp.float32), dtype=xp.int32, copy=False),
    ),
    "a device that does not exist": (
        errors.DeviceMismatch,
        r"nowhere",
        lambda xp: xp.zeros(3, device="nowhere"),
    ),
    "a foreign array": (
        TypeError,
        r"add: got numpy\.ndarray; expected a numr tensor.*asarray\(\)",
        lambda xp: xp.add(xp.zeros(3), np.zeros(3)),
    ),
    "only scalars": (TypeError, r"add: got only Python scalars", lambda xp: xp.add(1, 2)),
    "calling the class": (TypeError, r"Tensor: tensors are made by", lambda xp: numr.Tensor([1])),
    "truth of many": (
        TypeError,
        r"bool: the tensor has shape \(2,\).*any\(\), all\(\)",
        lambda xp: bool(xp.zeros(2)),
    ),
    "index of a float": (
        TypeError,
        r"index: the tensor has dtype float32; only integer",
        lambda xp: [1, 2][xp.asarray(1.0, dtype=xp.float32)],
    ),
    "float of a complex": (
        TypeError,
        r"float: the tensor is complex",
        lambda xp: float(xp.asarray(1j, dtype=xp.complex64)),
    ),
    "index out of range": (
        errors.IndexingError,
        r"getitem: index 3 is out of range for axis 0 of length 3",
        lambda xp: xp.zeros(3)[3],
    ),
    "index array out of range": (
        errors.IndexingError,
        r"index",
        lambda xp: xp.zeros((3, 2))[xp.asarray([0, 3])],
    ),
    "too many indices": (
        errors.IndexingError,
        r"getitem: too many indices",
        lambda xp: xp.zeros(3)[0, 0],
    ),
    "float index": (errors.IndexingError, r"getitem: .*float", lambda xp: xp.zeros(3)[1.0]),
    "mask of another shape": (
        errors.IndexingError,
        r"getitem: a boolean index of shape \(2,\).*\(3,\)",
        lambda xp: xp.zeros(3)[xp.asarray([True, False])],
    ),
    "assigning a float to integers": (
        errors.DTypeError,
        r"setitem: a Python float does not fit a tensor of dtype int32",
        lambda xp: xp.zeros(3, dtype=xp.int32).__setitem__(0, 1.5),
    ),
    "assigning floats to integers": (
        errors.DTypeError,
        r"setitem: values of dtype float32 do not fit a tensor of dtype int32",
        lambda xp: xp.zeros(3, dtype=xp.int32).__setitem__(..., xp.zeros(3, dtype=xp.float32)),
    ),
    "assigning another shape": (
        errors.ShapeError,
        r"setitem: .*\(2,\)",
        lambda xp: xp.zeros(3).__setitem__(..., xp.zeros(2)),
    ),
    "in place, another dtype": (
        errors.DTypeError,
        r"divide: in place, the result has dtype .* does not fit the tensor's int32",
        lambda xp: xp.ones(3, dtype=xp.int32).__itruediv__(2),
    ),
    "in place, another shape": (
        errors.ShapeError,
        r"add: in place, the result has shape \(2, 3\).*\(3,\)",
        lambda xp: xp.ones(3).__iadd__(xp.ones((2, 3))),
    ),
    "reshape to another size": (
        errors.ShapeError,
        r"reshape: .*6",
        lambda xp: xp.reshape(xp.zeros(6), (4, -1)),
    ),
    "negative length": (errors.ShapeError, r"zeros: .*-1", lambda xp: xp.zeros((2, -1))),
    "more elements than 64 bits count": (
        errors.ShapeError,
        r"empty: ",
        lambda xp: xp.empty((2**40, 2**40)),
    ),
    "step of zero": (ValueError, r"arange: step is 0", lambda xp: xp.arange(0, 1, 0)),
    "T of three axes": (errors.ShapeError, r"T: .*permute_dims", lambda xp: xp.zeros((1, 2, 3)).T),
    "matmul of other lengths": (
        errors.ShapeError,
        r"matmul: shapes \(2, 3\) and \(2, 3\) do not fit",
        lambda xp: xp.zeros((2, 3)) @ xp.zeros((2, 3)),
    ),
    "unsigned with signed 64 bits": (
        errors.DTypeError,
        r"add: uint64 and int8|add: .*uint64.*int8",
        lambda xp: xp.asarray([1], dtype=xp.uint64) + xp.asarray([1], dtype=xp.int8),
    ),
    "another version of the standard": (
        ValueError,
        r"__array_namespace__: the version '2030.12'",
        lambda xp: xp.zeros(1).__array_namespace__(api_version="2030.12"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input(name: str, xp: ModuleType, allocator: Any) -> None:
    expected, message, body = CASES[name]
    if name == "unsigned with signed 64 bits" and xp.uint64 not in dtypes(xp):
        pytest.skip("the device has no uint64")
    before = figures(allocator)
    with pytest.raises(expected, match=f"(?s){message}") as caught:
        body(xp)
    if expected.__module__ == "numr.errors":
        assert isinstance(caught.value, errors.NumrError)
    caught.value.__traceback__ = None
    del caught
    assert figures(allocator) == before
    assert float(xp.sum(xp.ones(4, dtype=xp.float32))) == 4.0


def test_a_read_only_source_refuses_writes(xp: ModuleType) -> None:
    if not xp.zeros(1)._client.host_memory:
        pytest.skip("only host memory is shared with NumPy arrays")
    source = np.arange(3.0)
    source.flags.writeable = False
    for x in (xp.asarray(source), xp.from_dlpack(source), numr.from_numpy(source)):
        with pytest.raises(errors.ReadOnlyError, match=r"setitem: .*read-only.*copy=True"):
            x[0] = 5.0
        with pytest.raises(errors.ReadOnlyError, match=r"add: .*read-only"):
            x += 1.0
    np.testing.assert_array_equal(source, [0, 1, 2])


def test_out_of_memory_leaves_everything_usable(xp: ModuleType, allocator: Any) -> None:
    before = figures(allocator)
    with pytest.raises(
        errors.OutOfMemoryError, match=r"allocate: .* bytes (do not fit|are not)"
    ) as caught:
        xp.empty(2**56, dtype=xp.uint8)
    assert isinstance(caught.value, MemoryError)
    assert caught.value.asked == 2**56
    assert figures(allocator) == before
    assert float(xp.ones(3, dtype=xp.float32)[2]) == 1.0


def test_a_limit_holds_for_every_result(xp: ModuleType, allocator: Any) -> None:
    x = xp.ones(LARGE, dtype=xp.float32)
    allocator.trim()
    active = allocator.stats().active_bytes
    allocator.set_limit(active + 4 * LARGE + (1 << 16))
    y = x + 1.0  # fits once
    with pytest.raises(errors.OutOfMemoryError) as caught:
        [x + y, x * y]
    assert caught.value.limit == active + 4 * LARGE + (1 << 16)
    caught.value.__traceback__ = None
    del caught, y
    gc.collect()
    z = x + 2.0  # fits again
    assert float(z[0]) == 3.0


def test_a_frozen_allocator_refuses_even_small_results(xp: ModuleType, allocator: Any) -> None:
    x = xp.ones(4, dtype=xp.float32)
    allocator.freeze()
    for body in (
        lambda: x + x,
        lambda: xp.zeros(3),
        lambda: xp.sum(x),
        lambda: xp.sort(x),
        lambda: xp.matmul(x, x),
        lambda: xp.astype(x, xp.int32),
    ):
        with pytest.raises(errors.AllocatorFrozen, match=r"allocate: .*unfreeze"):
            body()
    y = x[1:]  # views need no memory
    assert y.shape == (3,)
    allocator.unfreeze()
    assert float((x + x)[0]) == 2.0


def test_mixed_devices_raise() -> None:
    x = numr.namespace("cpu").ones(2)
    other = numr.namespace("cpu").ones(2)
    object.__setattr__(other, "_client", _ClientOf(x._client))
    with pytest.raises(errors.DeviceMismatch, match=r"add: .*cpu, elsewhere:0.*to_device"):
        x + other
    with pytest.raises(errors.DeviceMismatch, match=r"concat: .*to_device"):
        numr.namespace("cpu").concat([x, other])
    with pytest.raises(errors.DeviceMismatch, match=r"setitem: .*elsewhere:0"):
        x[0] = other


class _ClientOf:
    """A client of another device that has the attributes of the first one's."""

    def __init__(self, client: Any) -> None:
        self._wrapped = client
        self.device = "elsewhere:0"

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wrapped, name)


def test_errors_pickle_with_their_fields() -> None:
    import pickle

    for error in (
        errors.OutOfMemoryError(1, 2, 3, 4, "cpu"),
        errors.AllocatorFrozen(5, "cpu"),
        errors.AllocatorBusy(1, 2, "cpu"),
        errors.BackendLimitation("cpu", "eig", "why"),
        errors.RuntimeUnavailable("cuda", "no GPU", "Install one."),
        errors.ShapeError("text"),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert again.args == error.args
        assert again.__dict__ == error.__dict__
