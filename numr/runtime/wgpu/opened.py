"""``OpenDevice``: a GPUDevice with its queue, kernels and staging buffers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numr.errors import DeviceLostError
from numr.runtime.wgpu.native import abandon, api_for
from numr.runtime.wgpu.pipelines import Pipelines
from numr.runtime.wgpu.queue import Queue
from numr.runtime.wgpu.staging import Staging
from numr.runtime.wgpu.submitting import PublicApi

if TYPE_CHECKING:
    from collections.abc import Callable

    from numr.runtime.wgpu.devices import Adapter, WgpuDevice

__all__ = ["OpenDevice"]


class OpenDevice:
    """A device in use, with all that goes when it is lost.

    Parameters
    ----------
    device : WgpuDevice
        The device.
    adapter : Adapter
        What it is opened on; all its features and limits are asked for.
    api : callable, optional
        Makes the way to submit and wait; by default the quickest there is.

    Attributes
    ----------
    gpu : wgpu.GPUDevice
        The device itself.
    features : frozenset of str
        Features in use.
    limits : dict of str to int
        By WebGPU's names.
    queue, pipelines, staging
        What works on it.
    max_buffer_size : int
        Largest allocation.
    """

    def __init__(
        self,
        device: WgpuDevice,
        adapter: Adapter,
        api: Callable[[Any], PublicApi] = api_for,
    ) -> None:
        try:
            self.gpu = adapter.gpu.request_device_sync(
                label=str(device),
                required_features=sorted(adapter.features),
                required_limits=adapter.limits,
            )
        except RuntimeError as error:
            raise DeviceLostError(
                f"{device}: {adapter} cannot be opened: {' '.join(str(error).split())}"
            ) from error
        self.device = device
        self.adapter = adapter
        self.features = adapter.features
        self.limits = adapter.limits
        self.api = api(self.gpu)
        self.queue = Queue(device, adapter, self.api)
        self.pipelines = Pipelines(self.gpu, adapter, self.queue)
        self.staging = Staging(self.gpu, self.queue, self.api)
        self.max_buffer_size = self.limits["max-buffer-size"] & -16
        self._own: list[Any] = []

    def create_buffer(self, size: int, usage: str) -> Any:
        """A new buffer of wgpu."""
        with self.queue.errors():
            return self.gpu.create_buffer(size=size, usage=usage)

    def own_buffer(self, size: int) -> Any:
        """A new buffer that stays with the device and is in no figures of its allocator; it holds zeros."""
        buffer = self.create_buffer(size, "STORAGE|COPY_SRC|COPY_DST")
        self._own.append(buffer)
        return buffer

    def abandon(self) -> None:
        """Leave the device to the process that this one was forked from."""
        gpu_queue = self.gpu.queue
        abandon(
            [
                *self._own,
                *self.queue.objects(),
                *self.pipelines.objects(),
                *self.staging.objects(),
                *self.api.objects(),
                gpu_queue,
                self.gpu,
            ]
        )

    def __repr__(self) -> str:
        return f"OpenDevice({self.device}, {self.adapter})"
