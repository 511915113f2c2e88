"""``RuntimeClient``: the primitive families that a runtime implements for one device.

A client works on *native arrays*: objects that are a storage plus a layout in one. An ndarray is exactly that,
so the CPU uses ndarrays as they are; runtimes without an array type of their own use
:class:`numr.runtime.storage.DeviceArray`. A native array has ``shape``, ``dtype``, ``size`` and ``ndim``.

Everything of the standard is composed from these families, once, above the runtimes. Views are layout
arithmetic: the methods of the *view* family have default bodies in terms of :meth:`RuntimeClient.layout` and
:meth:`RuntimeClient.wrap`, which a runtime overrides only where its native arrays are quicker.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from numr.config import config
from numr.dtypes import ALL_DTYPES, DefaultDTypes, DType, Kind, Scalar, scalar_type_of
from numr.errors import BackendLimitation
from numr.ir import ops
from numr.ir.ops import Op, Reduction, Signature
from numr.layout import Layout
from numr.runtime.narrowing import stand_in

if TYPE_CHECKING:
    import numpy as np

    from numr.ir.fused import Computation
    from numr.ir.rows import RowComputation
    from numr.runtime.base import Allocator, Device, Runtime
    from numr.runtime.graph import Graph
    from numr.runtime.graphs.recording import Recorder
    from numr.runtime.graphs.replay import Bound
    from numr.runtime.graphs.taping import Tape
    from numr.runtime.storage import Storage

__all__ = ["FusedLoop", "Loop", "NativeArray", "RuntimeClient"]


class NativeArray(Protocol):
    """What every runtime's array offers."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""

    @property
    def dtype(self) -> DType:
        """Data type of the elements."""

    @property
    def size(self) -> int:
        """Number of elements."""

    @property
    def ndim(self) -> int:
        """Number of axes."""

    @property
    def strides(self) -> tuple[int, ...]:
        """Step of each axis, in elements or bytes as the library has it."""


A = TypeVar("A", bound=NativeArray)


class FusedLoop(Protocol):
    """A fused computation made ready: writes its results on broadcast operands into arrays of one shape.

    Operands are native arrays, and Python scalars where the computation's source is one. An operand may be one of
    the results' arrays, but not overlap them otherwise.
    """

    def __call__(self, operands: Sequence[Any], results: Sequence[Any]) -> None:
        """Compute and write the results."""


#: An elementwise operation made ready for operands of given kinds: native arrays or scalars in, array out.
Loop = Callable[..., Any]


class RuntimeClient(ABC, Generic[A]):
    """Dispatches operations on one device.

    Parameters
    ----------
    device : Device
        The device; one client exists per device, see ``Runtime.default_client``.

    Attributes
    ----------
    loops : dict
        Prepared elementwise operations by ``(op, kind, ...)``. A miss is filled by
        :meth:`elementwise_loop`; a runtime may clear it whenever prepared loops become invalid.
    host_operations : dict of str to int
        How often an operation of this device ran on the host instead, by name; see :meth:`on_host`. Empty on most
        runtimes.
    """

    runtime: ClassVar[type[Runtime]]
    #: Writes down what one thread does on the device, while a graph is captured.
    recorder: Recorder | None = None
    #: How many operations, and how many arrays, a fused computation may have.
    fusion_steps: int = 128
    fusion_arrays: int = 16
    #: Whether computing again is cheaper than storing and loading, as on GPUs.
    fusion_recomputes: bool = False
    #: Whether it pays to compute something of a reduction's results in the kernel that reduces.
    fusion_epilogues: bool = False
    #: Whether a graph's intermediate values that are needed at one time lie in blocks of memory of their own, not in one.
    separate_memory: ClassVar[bool] = False
    #: Whether native arrays are NumPy arrays in host memory, so that NumPy may use them in place.
    host_memory: ClassVar[bool] = False
    #: The dtypes that the device computes with.
    dtypes: tuple[DType, ...] = ALL_DTYPES
    defaults: DefaultDTypes

    def __init__(self, device: Device) -> None:
        self.device = device
        self.loops: dict[tuple[Any, ...], Loop] = {}
        self._signatures: dict[tuple[Any, ...], Signature] = {}
        self.host_operations: dict[str, int] = {}

    # ---------------------------------------------------------------- device
    @property
    @abstractmethod
    def allocator(self) -> Allocator:
        """The device's allocator."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until all work that was dispatched on the device is done."""

    def compute_stream_handle(self) -> int | None:
        """The native handle of the stream that work is queued on; None where there are no streams."""
        return None

    def on_host(self, name: str) -> None:
        """Count an operation that is about to run on the host, because the device has no kernel for it.

        Raises
        ------
        BackendLimitation
            If ``numr.config.allow_host_operations`` is false.
        CaptureError
            If the calling thread captures a graph on the device.
        """
        if self.recorder is not None and self.recorder.here() is self.recorder:
            self.recorder.on_host(name)
        if not config.allow_host_operations:
            raise BackendLimitation(
                self.runtime.name(),
                name,
                f"it would run on the host, which numr.config.allow_host_operations forbids. Allow it, or move "
                f"the operands off {self.device} with to_device().",
            )
        self.host_operations[name] = self.host_operations.get(name, 0) + 1

    def require_dtype(self, dtype: DType, function: str, *, exact: bool = False) -> DType:
        """The dtype that stands for ``dtype`` on the device.

        That is itself where the device has it. Where it has not, and ``numr.config.float64`` is ``"downcast"``, it
        is the dtype of 32 bits for one of 64, with a warning; so callers go on with what is returned.

        Parameters
        ----------
        dtype : dtype
            What is needed.
        function : str
            The name that errors begin with.
        exact : bool
            Whether only the dtype itself will do.

        Raises
        ------
        UnsupportedDType
            If there is none.
        """
        if dtype in self.dtypes:
            return dtype
        feature = self.feature_of(dtype)
        return stand_in(dtype, self.dtypes, self.device, feature, function, exact=exact)

    def feature_of(self, dtype: DType) -> str:
        """What a device needs to have a dtype, for errors; empty where that is not known."""
        return ""

    def signature(self, op: Op, kinds: tuple[Kind, ...]) -> Signature:
        """The dtypes of a call of an operation, all of which the device has; see ``Op.signature``.

        Raises
        ------
        DTypeError
            If the operands do not promote, or the operation is not defined for their dtype.
        UnsupportedDType
            If they promote to a dtype that the device has not.
        """
        key = (op, *kinds)
        known = self._signatures.get(key)
        if known is not None:
            return known
        wanted = op.signature(kinds, self.defaults)
        signature = Signature(*(self.require_dtype(dtype, op.name) for dtype in wanted))
        if signature == wanted:
            self._signatures[key] = signature  # a dtype that stands in for another warns each time
        return signature

    def tape(self) -> Tape | None:
        """A tape for the calling thread; None where nothing is gained by one, or another thread has one just now."""
        return None

    def graph_of(self, bound: Bound) -> Graph | None:
        """The device's own graph of a program on given memory; None where the program is done step by step.

        It is launched in the place of the program, from the first time on, and keeps what it needs of it, but not
        ``bound`` itself.
        """
        return None

    def stages(self, steps: int, arrays: int, nbytes: int) -> bool:
        """Whether a program that is run on new memory each time should work on memory of its own.

        Inputs and outputs are copied then: so many ``arrays`` of ``nbytes`` in all, for as many ``steps`` that
        :meth:`graph_of` makes quicker.
        """
        return False

    # --------------------------------------------------- storage and host data
    @abstractmethod
    def storage(self, array: A) -> Storage:
        """The storage that an array lies in."""

    @abstractmethod
    def layout(self, array: A) -> Layout:
        """Where an array's elements lie in its storage, in elements from the storage's start."""

    @abstractmethod
    def wrap(self, storage: Storage, layout: Layout, dtype: DType) -> A:
        """The array that ``layout`` describes in ``storage``."""

    @abstractmethod
    def from_host(self, array: np.ndarray[Any, Any], *, copy: bool) -> A:
        """Bring a host array to the device; without ``copy`` the result may share the host's memory."""

    def take_host(self, array: np.ndarray[Any, Any]) -> A:
        """Bring a host array that nobody else holds to the device."""
        return self.from_host(array, copy=True)

    @abstractmethod
    def to_host(self, array: A) -> np.ndarray[Any, Any]:
        """The array's elements on the host, C-contiguous or not; on the CPU the array itself."""

    @abstractmethod
    def to_dlpack(
        self,
        array: A,
        stream: Any,
        max_version: tuple[int, int] | None,
        dl_device: tuple[int, int] | None,
        copy: bool | None,
    ) -> Any:
        """A DLPack capsule of the array; BufferError where the request cannot be met."""

    @abstractmethod
    def from_dlpack(self, producer: Any, copy: bool | None) -> A:
        """The array that another library exports by DLPack, brought to this device."""

    @abstractmethod
    def dlpack_device(self) -> tuple[Any, int]:
        """DLPack's numbers of the device: kind and id."""

    def cuda_array_interface(self, array: A) -> dict[str, Any] | None:
        """What ``__cuda_array_interface__`` gives, None where the memory is not CUDA's."""
        return None

    def from_other(self, other: RuntimeClient[Any], array: Any) -> A:
        """Bring an array of another client to this device: through the host, where no quicker way is known."""
        return self.from_host(other.to_host(array), copy=True)

    @abstractmethod
    def is_writable(self, array: A) -> bool:
        """Whether the array's memory may be written."""

    # ------------------------------------------------------------------- views
    def index(self, array: A, key: Any) -> A | None:
        """The view of a plain key where the native array resolves it quicker, None to have it parsed."""
        return None

    def slice(self, array: A, parts: Sequence[Any]) -> A:
        """The view that a normalised basic key selects."""
        return self._view(array, self.layout(array).slice(tuple(parts)))

    def permute(self, array: A, axes: tuple[int, ...]) -> A:
        """The view with its axes in another order."""
        return self._view(array, self.layout(array).permute(axes))

    def broadcast(self, array: A, shape: tuple[int, ...]) -> A:
        """The view broadcast to ``shape``."""
        return self._view(array, self.layout(array).broadcast_to(shape))

    def diagonal(self, array: A, offset: int, axis1: int, axis2: int) -> A:
        """The view of a diagonal over two axes, which becomes the last axis."""
        return self._view(array, self.layout(array).diagonal(offset, axis1, axis2))

    def reshape(self, array: A, shape: tuple[int, ...]) -> A | None:
        """The view in another shape, None where only a copy has it."""
        layout = self.layout(array).reshape(shape)
        return None if layout is None else self._view(array, layout)

    def bitcast(self, array: A, dtype: DType) -> A:
        """The view that reads the same memory as another dtype.

        Raises
        ------
        BackendLimitation
            On a runtime that has no such views.
        """
        raise BackendLimitation(
            self.runtime.name(),
            f"view({dtype})",
            "its arrays cannot be read as another dtype; use astype().",
        )

    def _view(self, array: A, layout: Layout) -> A:
        return self.wrap(self.storage(array), layout, array.dtype)

    # ---------------------------------------------------------------- creation
    @abstractmethod
    def empty(self, shape: tuple[int, ...], dtype: DType) -> A:
        """A new C-contiguous array whose elements are arbitrary."""

    @abstractmethod
    def full(self, shape: tuple[int, ...], value: Scalar, dtype: DType) -> A:
        """A new array filled with a scalar."""

    @abstractmethod
    def iota(self, size: int, start: Scalar, step: Scalar, dtype: DType) -> A:
        """The one-dimensional array ``start + i * step``, each value rounded once where that can be had."""

    # ------------------------------------------------------------- elementwise
    @abstractmethod
    def elementwise_loop(self, op: Op, kinds: tuple[Kind, ...]) -> Loop:
        """Prepare an operation of the op table for operands of the given dtypes and scalar types.

        The loop takes native arrays and Python scalars, broadcasts them and returns a new array of the dtype
        that ``op.signature`` gives.
        """

    def elementwise_into(
        self, op: Op, kinds: tuple[Kind, ...], operands: tuple[Any, ...], target: A
    ) -> None:
        """Write an operation's result into an array of its shape and dtype, which may be an operand."""
        loop = self.loops.get((op, *kinds)) or self.elementwise_loop(op, kinds)
        self.assign(target, loop(*operands))

    def fuses(self, op: Op | None, compute: DType) -> bool:
        """Whether :meth:`fused` takes an operation (None: a conversion) that computes in a dtype.

        What it takes it computes as the operation by itself does: to the bit, but for transcendental functions
        where a runtime has two libraries of them.
        """
        return False

    def fusion_weight(self, op: Op | None, compute: DType) -> int:
        """As how many operations one counts that :meth:`fused` takes, where some make kernels much longer."""
        return 1

    def fused(self, computation: Computation) -> FusedLoop:
        """Prepare a fused computation, whose operations :meth:`fuses` takes.

        Composed of the operations by themselves; a runtime that makes one kernel of it overrides it.
        """

        def loop(operands: Sequence[Any], results: Sequence[Any]) -> None:
            values = list(operands)
            for step in computation.steps:
                arguments = [values[i] for i in step.arguments]
                if step.op is None:
                    (value,), dtype = arguments, step.signature.result
                    is_scalar = scalar_type_of(value) is not None
                    values.append(
                        self.full((), value, dtype) if is_scalar else self.cast(value, dtype)
                    )
                    continue
                if all(scalar_type_of(x) is not None for x in arguments):
                    dtype = computation.dtype(step.arguments[0])
                    arguments[0] = self.full((), arguments[0], dtype)
                kinds = tuple(scalar_type_of(x) or x.dtype for x in arguments)
                prepared = self.loops.get((step.op, *kinds))
                if prepared is None:
                    prepared = self.elementwise_loop(step.op, kinds)
                values.append(prepared(*arguments))
            for target, number in zip(results, computation.results, strict=True):
                self.assign(target, values[number])

        return loop

    @abstractmethod
    def cast(self, array: A, dtype: DType) -> A:
        """A new array with the elements converted to ``dtype``."""

    # -------------------------------------------------------------------- copy
    @abstractmethod
    def copy(self, array: A) -> A:
        """A new C-contiguous array with the same elements."""

    @abstractmethod
    def assign(self, target: A, source: A) -> None:
        """Write ``source``, broadcast and cast, into ``target``; overlap behaves as if it were copied first."""

    @abstractmethod
    def concat(self, arrays: Sequence[A], axis: int) -> A:
        """Arrays of one dtype joined along an axis."""

    # -------------------------------------------------------------- reductions
    @abstractmethod
    def reduce(
        self, kind: Reduction, array: A, axes: tuple[int, ...], keepdims: bool, dtype: DType
    ) -> A:
        """Reduce over axes, computing in ``dtype``; ``max`` and ``min`` propagate NaN."""

    def reduce_fused(
        self,
        computation: Computation,
        operands: Sequence[Any],
        shape: tuple[int, ...],
        kind: Reduction,
        axes: tuple[int, ...],
        keepdims: bool,
        dtype: DType,
    ) -> A:
        """:meth:`reduce` of the one result of a fused computation on operands broadcast to ``shape``.

        The same as reducing a C-contiguous array of the results, to the bit. Composed of that; a runtime that needs
        no such array overrides it.
        """
        results = self.empty(shape, computation.result_dtypes[0])
        self.fused(computation)(operands, [results])
        return self.reduce(kind, results, axes, keepdims, dtype)

    def fuses_rows(
        self, shape: tuple[int, ...], axes: tuple[int, ...], dtypes: tuple[DType, ...]
    ) -> bool:
        """Whether :meth:`fused_rows` goes over the rows of a shape without leaving their values in memory between.

        Parameters
        ----------
        shape : tuple of int
            The shape, without lengths of 0.
        axes : tuple of int
            The axes along which rows lie.
        dtypes : tuple of dtype
            Of what is reduced.
        """
        return False

    def fused_rows(
        self, computation: RowComputation, shape: tuple[int, ...], axes: tuple[int, ...]
    ) -> FusedLoop:
        """Prepare a computation of rows of a shape that lie along some axes.

        Its operands broadcast to the shape. Results for each element have the shape, and those for each row have it
        with axes of length 1. The same as its operations and reductions one by one, as far as :meth:`fused` and
        :meth:`reduce_fused` are. Composed of these; a runtime that does more at once overrides it.
        """
        from numr.runtime.composed_rows import composed_rows

        return composed_rows(self, computation, shape, axes)

    def composes_distances(self, array: A, axes: tuple[int, ...]) -> bool:
        """Whether :meth:`squared_distances` of an array is the same to the bit as its composed form."""
        return type(self).squared_distances is RuntimeClient.squared_distances

    def squared_distances(self, array: A, center: A, axes: tuple[int, ...], keepdims: bool) -> A:
        """Sum over axes the squared absolute values of ``array - center``, which broadcast to ``array``'s shape.

        Composed of other families; a runtime that needs no array of the distances overrides it.
        """

        def run(op: Op, *operands: A) -> A:
            kinds = tuple(x.dtype for x in operands)
            loop = self.loops.get((op, *kinds)) or self.elementwise_loop(op, kinds)
            result: A = loop(*operands)
            return result

        distance = run(ops.SUBTRACT, array, center)
        if distance.dtype.kind == "c":
            parts = (run(ops.SQUARE, run(part, distance)) for part in (ops.REAL, ops.IMAG))
            squares = run(ops.ADD, *parts)
        else:
            squares = run(ops.SQUARE, distance)
        return self.reduce(Reduction.SUM, squares, axes, keepdims, squares.dtype)

    @abstractmethod
    def argreduce(self, kind: Reduction, array: A, axis: int, keepdims: bool) -> A:
        """Index of the first maximum or minimum along an axis; the first NaN counts as either."""

    @abstractmethod
    def scan(self, kind: Reduction, array: A, axis: int, dtype: DType) -> A:
        """Running sum, product, maximum or minimum along an axis, computing in ``dtype``."""

    # ------------------------------------------------------- gather and scatter
    @abstractmethod
    def gather(self, array: A, indices: Sequence[A]) -> A:
        """Elements at integer index arrays of one common shape, one for each leading axis.

        The result has the indices' shape followed by the axes that no index names. Indices may be negative.
        Raises IndexingError when one is out of range.
        """

    @abstractmethod
    def scatter(self, array: A, indices: Sequence[A], values: A) -> None:
        """Write ``values``, broadcast and cast, where :meth:`gather` would read; the last write to an element wins."""

    @abstractmethod
    def nonzero(self, array: A) -> tuple[A, ...]:
        """Index arrays of the elements that are not zero, in C order."""

    @abstractmethod
    def compress(self, array: A, mask: A) -> A:
        """Elements where a boolean mask over the leading axes is true, in C order."""

    # ----------------------------------------------------- sorting and searching
    @abstractmethod
    def sort(self, array: A, axis: int, descending: bool) -> A:
        """Sorted along an axis, NaN last in both directions."""

    @abstractmethod
    def argsort(self, array: A, axis: int, descending: bool) -> A:
        """Stable sorting indices along an axis, NaN last in both directions."""

    @abstractmethod
    def searchsorted(self, sorted_array: A, values: A, side: str) -> A:
        """Insertion points of values, of the same dtype, in a sorted one-dimensional array."""

    # ---------------------------------------------------------- linear algebra
    # Matrices and stacks of them may be empty. Where there is no result, numpy.linalg.LinAlgError is raised.
    @abstractmethod
    def matmul(self, left: A, right: A) -> A:
        """Matrix product of the last two axes, batched over broadcast leading axes; one dtype."""

    @abstractmethod
    def fft(self, array: A, kind: str, length: int) -> A:
        """Unnormalised transform along the last axis.

        ``kind`` is ``"forward"`` or ``"backward"`` (complex to complex), ``"real"`` (real to the non-negative
        frequencies) or ``"hermitian"`` (the inverse of that, giving ``length`` real values). The input has
        been cut or padded to what ``length`` needs. Backward transforms are not divided by the length.
        """

    @abstractmethod
    def cholesky(self, array: A) -> A:
        """Lower triangular factors of Hermitian positive definite matrices."""

    @abstractmethod
    def qr(self, array: A, complete: bool) -> tuple[A, A]:
        """Orthonormal and upper triangular factors."""

    @abstractmethod
    def eigh(self, array: A) -> tuple[A, A]:
        """Ascending eigenvalues and eigenvectors of Hermitian matrices (their lower triangles)."""

    def eigvalsh(self, array: A) -> A:
        """Ascending eigenvalues alone; a runtime that need not find the vectors for them says so here."""
        return self.eigh(array)[0]

    def eigvals(self, array: A) -> A:
        """Complex eigenvalues alone."""
        return self.eig(array)[0]

    @abstractmethod
    def eig(self, array: A) -> tuple[A, A]:
        """Complex eigenvalues and right eigenvectors of general matrices."""

    @abstractmethod
    def svd(self, array: A, full_matrices: bool) -> tuple[A, A, A]:
        """Singular value decomposition ``u, s, vh``."""

    @abstractmethod
    def svdvals(self, array: A) -> A:
        """Singular values, descending."""

    @abstractmethod
    def solve(self, left: A, right: A) -> A:
        """Solve ``left @ x = right`` for stacks of matrices ``right``."""

    @abstractmethod
    def inv(self, array: A) -> A:
        """Inverses of square matrices."""

    @abstractmethod
    def slogdet(self, array: A) -> tuple[A, A]:
        """Sign and logarithm of the absolute value of determinants."""

    @abstractmethod
    def det(self, array: A) -> A:
        """Determinants of square matrices."""
