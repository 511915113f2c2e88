"""What the parts of ``Tensor`` know of the whole."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numr.dtypes import DType
    from numr.runtime.client import RuntimeClient
    from numr.runtime.device import Device
    from numr.tensor.core import Tensor


class TensorPart:
    """Base of the classes that ``Tensor`` is put together from.

    It has no code of its own: it declares, for type checkers, what each part may use of the others.
    """

    __slots__ = ()

    if TYPE_CHECKING:
        _client: RuntimeClient[Any]
        _data: Any

        @property
        def device(self) -> Device:
            """The device."""

        @property
        def dtype(self) -> DType:
            """The dtype."""

        @property
        def ndim(self) -> int:
            """Number of axes."""

        @property
        def shape(self) -> tuple[int, ...]:
            """The shape."""

        @property
        def size(self) -> int:
            """Number of elements."""

        def _like(self, data: Any) -> Tensor:
            """A tensor of another native array on the same device."""

        def __array_namespace__(self, /, *, api_version: str | None = None) -> ModuleType:
            """The namespace."""

        def __getitem__(self, key: Any, /) -> Tensor:
            """A part of the tensor."""
