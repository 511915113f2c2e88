"""Kernels: WGSL text made into pipelines, once for each text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from numr.codegen.wgsl_rounding import rounding
from numr.errors import BackendLimitation

if TYPE_CHECKING:
    from numr.runtime.wgpu.devices import Adapter
    from numr.runtime.wgpu.queue import Queue

__all__ = ["Kernel", "KernelText", "Pipelines", "StorageBuffer"]


class StorageBuffer(NamedTuple):
    """A buffer that a kernel binds: its name in the text, what the kernel does with it, and its type."""

    name: str
    access: Literal["read", "read_write"]
    type: str = "array<u32>"


@dataclass(frozen=True)
class KernelText:
    """A kernel, complete but for the declarations of what it binds.

    Attributes
    ----------
    body : str
        WGSL with a function ``main``, and a struct ``Params`` if there are parameters. They are read as
        ``params``; all members of the struct have a size that is a multiple of 16 or are scalars, so that
        it has the same layout as an immediate and in a uniform buffer.
    buffers : tuple of StorageBuffer
        Buffers in the order in which they are given to a dispatch.
    params_size : int
        Bytes in ``Params``, a multiple of 4; 0 if there are no parameters.
    """

    body: str
    buffers: tuple[StorageBuffer, ...]
    params_size: int = 0


class Kernel:
    """A pipeline with what a dispatch needs to know of it.

    Attributes
    ----------
    pipeline, layout : wgpu.GPUComputePipeline, wgpu.GPUBindGroupLayout
        What is run, and the layout of its bindings.
    text : KernelText
        What it was made from.
    writes : tuple of bool
        For each buffer, whether the kernel may write it.
    immediates : bool
        Whether parameters are immediates, as they are where the device has them and they fit; else they are
        in a uniform buffer, as the last binding.
    """

    __slots__ = ("immediates", "layout", "pipeline", "text", "uniform", "writes")

    def __init__(self, text: KernelText, pipeline: Any, layout: Any, *, immediates: bool) -> None:
        self.text = text
        self.pipeline = pipeline
        self.layout = layout
        self.immediates = immediates
        self.uniform = bool(text.params_size) and not immediates
        self.writes = tuple(buffer.access == "read_write" for buffer in text.buffers)


class Pipelines:
    """The kernels of an open device.

    Parameters
    ----------
    gpu : wgpu.GPUDevice
        The device.
    adapter : Adapter
        Its features and limits.
    queue : Queue
        The device's queue. Its lock is held while a kernel is compiled, so that no thread compiles while
        another forks.

    Attributes
    ----------
    hits, misses : int
        How often a kernel was there already, and how often it was compiled.
    """

    def __init__(self, gpu: Any, adapter: Adapter, queue: Queue) -> None:
        self.hits = 0
        self.misses = 0
        self._gpu = gpu
        self._adapter = adapter
        self._limits = adapter.limits
        self._immediates = (
            adapter.limits["max-immediate-size"] if "immediates" in adapter.features else 0
        )
        self._kernels: dict[KernelText, Kernel] = {}
        self._layouts: dict[tuple[str, ...], Any] = {}
        self._queue = queue

    def get(self, text: KernelText) -> Kernel:
        """The kernel of a text, compiled if it is the first of its kind.

        Raises
        ------
        BackendLimitation
            If it binds more than the device allows.
        wgpu.GPUError
            If the text is not valid.
        """
        found = self._kernels.get(text)
        if found is not None:
            self.hits += 1
            return found
        with self._queue.lock, self._queue.errors():
            found = self._kernels.get(text)
            if found is None:
                self.misses += 1
                found = self._kernels[text] = self._compile(text)
            return found

    def objects(self) -> list[Any]:
        """All objects of wgpu that are held."""
        kernels = self._kernels.values()
        return [*self._layouts.values(), *(kernel.pipeline for kernel in kernels)]

    def _compile(self, text: KernelText) -> Kernel:
        count = len(text.buffers)
        self._require("max-storage-buffers-per-shader-stage", count, "storage buffers")
        immediates = 0 < text.params_size <= self._immediates
        types = [
            "storage" if buffer.access == "read_write" else "read-only-storage"
            for buffer in text.buffers
        ]
        lines = ["enable f16;"] if "shader-f16" in self._adapter.features else []
        lines += [
            f"@group(0) @binding({i}) var<storage, {buffer.access}> {buffer.name}: {buffer.type};"
            for i, buffer in enumerate(text.buffers)
        ]
        if immediates:
            lines.append("var<immediate> params: Params;")
        elif text.params_size:
            self._require(
                "max-uniform-buffer-binding-size", text.params_size, "bytes of parameters"
            )
            lines.append(f"@group(0) @binding({count}) var<uniform> params: Params;")
            types.append("uniform")
        lines.append(rounding(text.body, exact=self._adapter.is_cpu))
        layout = self._layout(tuple(types))
        module = self._gpu.create_shader_module(code="\n".join([*lines, text.body]))
        pipeline = self._gpu.create_compute_pipeline(
            layout=self._gpu.create_pipeline_layout(
                bind_group_layouts=[layout], immediate_size=text.params_size if immediates else 0
            ),
            compute={"module": module, "entry_point": "main"},
        )
        return Kernel(text, pipeline, layout, immediates=immediates)

    def _layout(self, types: tuple[str, ...]) -> Any:
        found = self._layouts.get(types)
        if found is None:
            entries = [
                {"binding": i, "visibility": "COMPUTE", "buffer": {"type": kind}}
                for i, kind in enumerate(types)
            ]
            found = self._layouts[types] = self._gpu.create_bind_group_layout(entries=entries)
        return found

    def _require(self, limit: str, needed: int, what: str) -> None:
        if needed > self._limits[limit]:
            raise BackendLimitation(
                "wgpu",
                "dispatch",
                f"a kernel needs {needed} {what}, but {self._adapter} has the limit {limit} of "
                f"{self._limits[limit]}. Work in smaller pieces.",
            )
