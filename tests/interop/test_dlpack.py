"""DLPack: what capsules say for each question that a consumer may ask, and what is taken from producers."""

from __future__ import annotations

import operator
from types import ModuleType
from typing import Any

import array_api_strict
import numpy as np
import pytest

import numr
import numr.cpu as cpu
from numr.runtime import client_of
from tests.interop import capsules
from tests.interop.capsules import IS_COPIED, READ_ONLY

HOST = (1, 0)
ELSEWHERE = [name for name in numr.available() if name != "cpu"]


@pytest.fixture(params=numr.available())
def xp(request: pytest.FixtureRequest) -> ModuleType:
    return numr.namespace(request.param)


@pytest.fixture(params=ELSEWHERE)
def device_xp(request: pytest.FixtureRequest) -> ModuleType:
    return numr.namespace(request.param)


def read_only() -> Any:
    host = np.arange(3.0)
    host.flags.writeable = False
    return cpu.asarray(host)


# -------------------------------------------------------------------- consumers
#: Questions and what a writable tensor in host memory answers: version and flags of the capsule.
QUESTIONS: list[tuple[dict[str, Any], int | None, int]] = [
    ({}, None, 0),
    ({"max_version": None}, None, 0),
    ({"max_version": (0, 8)}, None, 0),
    ({"max_version": (1, 0)}, 1, 0),
    ({"max_version": (1, 3)}, 1, 0),
    ({"max_version": (1, 0), "dl_device": HOST}, 1, 0),
    ({"max_version": (1, 0), "copy": False}, 1, 0),
    ({"max_version": (1, 0), "copy": True}, 1, IS_COPIED),
    ({"max_version": (1, 0), "copy": True, "dl_device": HOST}, 1, IS_COPIED),
    ({"copy": True}, None, 0),
    ({"stream": None}, None, 0),
]


@pytest.mark.parametrize(("question", "major", "flags"), QUESTIONS, ids=str)
@pytest.mark.parametrize("dtype", numr.dtypes.ALL_DTYPES, ids=str)
def test_capsules_of_host_memory(
    question: dict[str, Any], major: int | None, flags: int, dtype: np.dtype
) -> None:
    x = cpu.asarray(np.arange(24).reshape(2, 3, 4).astype(dtype))[:, ::-1, 1::2]
    found = capsules.read(x.__dlpack__(**question))
    assert (found.version or (None,))[0] == major
    assert (found.flags, found.device, found.dtype) == (flags, HOST, dtype)
    assert found.shape == (2, 3, 2)
    own = x.to_numpy()
    if question.get("copy"):
        assert not np.shares_memory(own, _memory(found))
    else:
        assert found.address == own.ctypes.data
        assert found.strides == x.strides == (12, -4, 2)


def _memory(found: capsules.Capsule) -> np.ndarray:
    """The first byte of a capsule's array, as an array over it."""
    import ctypes

    return np.frombuffer((ctypes.c_uint8 * 1).from_address(found.address), np.uint8)


#: The same for a read-only tensor; None where the answer is a refusal.
READ_ONLY_QUESTIONS: list[tuple[dict[str, Any], int | None]] = [
    ({}, None),
    ({"max_version": (0, 8)}, None),
    ({"max_version": (1, 0)}, READ_ONLY),
    ({"max_version": (1, 0), "copy": False}, READ_ONLY),
    ({"max_version": (1, 0), "copy": True}, IS_COPIED),
    ({"copy": True}, 0),
]


@pytest.mark.parametrize(("question", "flags"), READ_ONLY_QUESTIONS, ids=str)
def test_capsules_of_read_only_memory(question: dict[str, Any], flags: int | None) -> None:
    if flags is None:
        with pytest.raises(BufferError, match=r"read-?only"):
            read_only().__dlpack__(**question)
    else:
        assert capsules.read(read_only().__dlpack__(**question)).flags == flags


def test_a_question_that_host_memory_cannot_answer() -> None:
    x = cpu.zeros(3)
    for question, words in (
        ({"stream": 1}, "stream=1"),
        ({"stream": -1}, "stream=-1"),
        ({"dl_device": (2, 0)}, r"dl_device=\(2, 0\)"),
    ):
        with pytest.raises(BufferError, match=words):
            x.__dlpack__(**question)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1, 1)])
def test_capsules_of_small_shapes(shape: tuple[int, ...]) -> None:
    x = cpu.ones(shape, dtype=cpu.int16)
    for version in (None, (1, 0)):
        assert capsules.read(x.__dlpack__(max_version=version)).shape == shape
    np.testing.assert_array_equal(np.from_dlpack(x), np.ones(shape, np.int16), strict=True)
    np.testing.assert_array_equal(
        cpu.from_dlpack(np.ones(shape, np.int16)).to_numpy(), np.ones(shape, np.int16), strict=True
    )


@pytest.mark.parametrize("question", [{}, {"max_version": (1, 0)}, {"copy": True}], ids=str)
def test_capsules_of_a_device_in_host_memory(
    device_xp: ModuleType, question: dict[str, Any]
) -> None:
    x = device_xp.asarray(np.arange(12, dtype=np.int32).reshape(3, 4))[::-1, ::2]
    found = capsules.read(x.__dlpack__(dl_device=HOST, **question))
    assert found.device == HOST
    assert found.flags == (IS_COPIED if found.version else 0)
    expected = np.arange(12, dtype=np.int32).reshape(3, 4)[::-1, ::2]
    copied = np.from_dlpack(x, device="cpu")
    np.testing.assert_array_equal(copied, expected, strict=True)
    assert copied.flags.writeable
    with pytest.raises(BufferError, match="copy=False"):
        x.__dlpack__(dl_device=HOST, copy=False)
    with pytest.raises((BufferError, RuntimeError)):
        np.from_dlpack(x)  # which asks for no device, and cannot read any other


def test_webgpu_memory_leaves_only_as_a_copy_that_was_asked_for() -> None:
    if "wgpu" not in numr.available():
        pytest.skip(str(numr.unavailable()["wgpu"]))
    x = numr.namespace("wgpu").zeros(3)
    kind, number = x.__dlpack_device__()
    assert kind in (7, 8, 15)  # Vulkan, Metal, WebGPU
    for question in ({}, {"max_version": (1, 0)}, {"dl_device": (kind, number)}):
        with pytest.raises(BufferError, match=r"dl_device=\(1, 0\).*to_numpy\(\)"):
            x.__dlpack__(**question)
    with pytest.raises(BufferError, match="stream=1"):
        x.__dlpack__(dl_device=HOST, stream=1)


# ------------------------------------------------------------------- producers
class Producer:
    """What exports by DLPack as an older library does: without versions, devices and copies."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, stream: Any = None) -> Any:
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return HOST


class Elsewhere:
    """An array in memory that only its own library reaches, which copies it to the host when asked to."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.questions: list[dict[str, Any]] = []

    def __dlpack__(self, **question: Any) -> Any:
        self.questions.append(question)
        if question.get("dl_device") != HOST or question.get("copy") is False:
            raise BufferError("only copies, and only to the host")
        return self.array.__dlpack__(max_version=question.get("max_version"), copy=True)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (15, 3)


@pytest.mark.parametrize("make", [np.asarray, array_api_strict.asarray, Producer, Elsewhere])
@pytest.mark.parametrize("copy", [None, True])
def test_tensors_of_what_others_export(xp: ModuleType, make: Any, copy: bool | None) -> None:
    host = np.arange(12, dtype=np.float32).reshape(3, 4)
    for options in ({}, {"device": xp.zeros(1).device}, {"device": str(xp.zeros(1).device)}):
        x = xp.from_dlpack(make(host), copy=copy, **options)
        assert isinstance(x, numr.Tensor)
        assert x.device == xp.zeros(1).device
        np.testing.assert_array_equal(x.to_numpy(), host, strict=True)


def test_memory_is_shared_copied_or_refused_as_asked(xp: ModuleType) -> None:
    host = np.zeros(3, np.float32)
    if xp is cpu:
        for options in ({}, {"copy": False}, {"device": "cpu"}):
            assert np.shares_memory(cpu.from_dlpack(host, **options).to_numpy(), host)
    else:
        with pytest.raises(BufferError, match="copy=False"):
            xp.from_dlpack(host, copy=False)
    copied = xp.from_dlpack(host, copy=True)
    host[0] = 1.0
    assert copied.tolist() == [0.0, 0.0, 0.0]
    copied[1] = 2.0
    assert host.tolist() == [1.0, 0.0, 0.0]


def test_read_only_memory_stays_read_only(xp: ModuleType) -> None:
    host = np.zeros(3, np.float32)
    host.flags.writeable = False
    x = xp.from_dlpack(host)
    if xp is cpu:
        with pytest.raises(numr.errors.ReadOnlyError):
            x[0] = 1.0
        x = cpu.from_dlpack(host, copy=True)
    x[0] = 1.0
    assert host[0] == 0.0


def test_a_producer_elsewhere_is_asked_for_the_host_once(xp: ModuleType) -> None:
    producer = Elsewhere(np.arange(3, dtype=np.float32))
    xp.from_dlpack(producer)
    assert [question["dl_device"] for question in producer.questions] == [HOST]
    with pytest.raises(BufferError, match="only copies" if xp is cpu else "copy=False"):
        xp.from_dlpack(producer, copy=False)


class WithoutCounterpart:
    """An array of bfloat16, which NumPy does not have."""

    dtype = "bfloat16"

    def __dlpack__(self, **_: Any) -> Any:
        raise RuntimeError("Unsupported dtype in DLTensor.")

    def __dlpack_device__(self) -> tuple[int, int]:
        return HOST


def test_a_dtype_without_counterpart_is_named(xp: ModuleType) -> None:
    with pytest.raises(BufferError, match=r"WithoutCounterpart.*bfloat16"):
        xp.from_dlpack(WithoutCounterpart())


def test_arrays_of_others_are_never_just_unequal(xp: ModuleType) -> None:
    x, other = xp.zeros(3), Producer(np.zeros(3, np.float32))
    for compare in (operator.eq, operator.ne):
        for left, right in ((x, other), (other, x)):
            with pytest.raises(TypeError, match=r"equal: got .*Producer.*asarray\(\)"):
                compare(left, right)


def test_tensors_of_one_runtime_come_to_another(xp: ModuleType) -> None:
    for name in numr.available():
        other = numr.namespace(name)
        x = other.asarray([[1, 2], [3, 4]], dtype=other.int32)
        y = xp.from_dlpack(x, device=xp.zeros(1).device)
        assert y.device == xp.zeros(1).device
        assert y.tolist() == [[1, 2], [3, 4]]
    assert client_of("cpu").dlpack_device() == HOST
