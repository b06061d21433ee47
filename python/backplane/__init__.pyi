# Types of the package. The ops, as functions and as methods of Tensor, come from the registry: _registry.pyi is made
# by backplane-codegen.
import builtins
from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from types import ModuleType
from typing import Any, TypeVar

from . import fft as fft
from . import linalg as linalg
from . import nn as nn
from . import types as types
from ._registry import *
from ._registry import TensorMethods
from .linalg import tensordot as tensordot

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Number = builtins.bool | int | float | complex
_Operand = Tensor | _Number

class DType:
    @property
    def name(self) -> str: ...
    @property
    def itemsize(self) -> int: ...
    @property
    def kind(self) -> str: ...

class Device:
    def __init__(self, name: str) -> None: ...
    @property
    def backend(self) -> str: ...
    @property
    def ordinal(self) -> int: ...

device = Device

bool: DType
int8: DType
int16: DType
int32: DType
int64: DType
uint8: DType
uint16: DType
uint32: DType
uint64: DType
float16: DType
bfloat16: DType
float32: DType
float64: DType
complex64: DType
complex128: DType
DTYPES: dict[str, DType]

e: float
pi: float
inf: float
nan: float
newaxis: None

class HookHandle:
    def remove(self) -> None: ...

class Tensor(TensorMethods):
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def itemsize(self) -> int: ...
    @property
    def dtype(self) -> DType: ...
    @property
    def device(self) -> Device: ...
    @property
    def is_contiguous(self) -> builtins.bool: ...
    @property
    def T(self) -> Tensor: ...
    @property
    def mT(self) -> Tensor: ...
    @property
    def is_leaf(self) -> builtins.bool: ...
    @property
    def version(self) -> int: ...
    @property
    def grad_op(self) -> str | None: ...
    requires_grad: builtins.bool
    grad: Tensor | None
    def item(self) -> Any: ...
    def tolist(self) -> Any: ...
    def numpy(self) -> Any: ...
    def astype(
        self, dtype: DType, /, *, copy: builtins.bool = True, device: Device | str | None = None
    ) -> Tensor: ...
    def to(self, target: Device | DType | str, /) -> Tensor: ...
    def to_device(self, device: Device | str, /, *, stream: None = None) -> Tensor: ...
    def detach(self) -> Tensor: ...
    def requires_grad_(self, wanted: builtins.bool = True) -> Tensor: ...
    def backward(
        self, gradient: Tensor | None = None, retain_graph: builtins.bool = False, create_graph: builtins.bool = False
    ) -> None: ...
    def register_hook(self, function: Callable[[Tensor], Tensor | None], /) -> HookHandle: ...
    def __array_namespace__(self, /, *, api_version: str | None = None) -> ModuleType: ...
    def __array__(self, dtype: Any = None, copy: builtins.bool | None = None) -> Any: ...
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: builtins.bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __getitem__(self, key: Any, /) -> Tensor: ...
    def __setitem__(self, key: Any, value: Any, /) -> None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __contains__(self, value: _Operand, /) -> builtins.bool: ...
    def __bool__(self) -> builtins.bool: ...
    def __int__(self) -> int: ...
    def __float__(self) -> float: ...
    def __index__(self) -> int: ...
    def __neg__(self) -> Tensor: ...
    def __pos__(self) -> Tensor: ...
    def __abs__(self) -> Tensor: ...
    def __invert__(self) -> Tensor: ...
    def __add__(self, other: _Operand, /) -> Tensor: ...
    def __radd__(self, other: _Operand, /) -> Tensor: ...
    def __sub__(self, other: _Operand, /) -> Tensor: ...
    def __rsub__(self, other: _Operand, /) -> Tensor: ...
    def __mul__(self, other: _Operand, /) -> Tensor: ...
    def __rmul__(self, other: _Operand, /) -> Tensor: ...
    def __truediv__(self, other: _Operand, /) -> Tensor: ...
    def __rtruediv__(self, other: _Operand, /) -> Tensor: ...
    def __floordiv__(self, other: _Operand, /) -> Tensor: ...
    def __rfloordiv__(self, other: _Operand, /) -> Tensor: ...
    def __mod__(self, other: _Operand, /) -> Tensor: ...
    def __rmod__(self, other: _Operand, /) -> Tensor: ...
    def __pow__(self, other: _Operand, /) -> Tensor: ...
    def __rpow__(self, other: _Operand, /) -> Tensor: ...
    def __matmul__(self, other: Tensor, /) -> Tensor: ...
    def __and__(self, other: _Operand, /) -> Tensor: ...
    def __rand__(self, other: _Operand, /) -> Tensor: ...
    def __or__(self, other: _Operand, /) -> Tensor: ...
    def __ror__(self, other: _Operand, /) -> Tensor: ...
    def __xor__(self, other: _Operand, /) -> Tensor: ...
    def __rxor__(self, other: _Operand, /) -> Tensor: ...
    def __lshift__(self, other: _Operand, /) -> Tensor: ...
    def __rlshift__(self, other: _Operand, /) -> Tensor: ...
    def __rshift__(self, other: _Operand, /) -> Tensor: ...
    def __rrshift__(self, other: _Operand, /) -> Tensor: ...
    def __lt__(self, other: _Operand, /) -> Tensor: ...
    def __le__(self, other: _Operand, /) -> Tensor: ...
    def __gt__(self, other: _Operand, /) -> Tensor: ...
    def __ge__(self, other: _Operand, /) -> Tensor: ...
    def __eq__(self, other: object, /) -> Tensor: ...  # type: ignore[override]
    def __ne__(self, other: object, /) -> Tensor: ...  # type: ignore[override]
    def __hash__(self) -> int: ...

class Generator:
    state: tuple[int, int]
    def __init__(self, seed: int | None = None) -> None: ...
    def manual_seed(self, seed: int, /) -> Generator: ...

class Op:
    full_name: str
    parameters: tuple[tuple[str, builtins.bool, builtins.bool, Any, str], ...]
    def __init__(self, full_name: str, name: str, inplace: builtins.bool = False) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def infer(self, *args: Any, **kwargs: Any) -> list[tuple[DType, tuple[int, ...]]]: ...
    def register_kernel(self, *devices: Any, dtypes: str | Sequence[DType] = "any") -> Any:
        """The kernel for devices (all without their own, where none is named): from arguments to new tensors."""
    def register_shape(self, function: _Function, /) -> _Function:
        """The results' shape and dtype: a function of arguments, by name, with tensors as types.TensorSpec."""
    def register_vjp(self, function: _Function, /) -> _Function:
        """The reverse derivative: a function of g, arguments, out and needs, by name, to a cotangent per tensor."""
    def register_jvp(self, function: _Function | str, /) -> _Function | str:
        """The forward derivative: a function of t_x, arguments and out, by name, to a tangent per result; or "linear"."""
    def register_batch(self, function: _Function | str, /) -> _Function | str:
        """The batch rule: a function of arguments with the batch at axis 0, and batched, by name; or "loop"."""
    def register_decomposition(self, function: _Function, /) -> _Function:
        """The same result from other ops: a function of arguments, by name."""

class BackplaneError(Exception): ...
class ArgumentValueError(BackplaneError, ValueError): ...
class ArgumentTypeError(BackplaneError, TypeError): ...
class ShapeError(BackplaneError, ValueError): ...
class DtypeError(BackplaneError, TypeError): ...
class OutOfRangeError(BackplaneError, IndexError): ...
class MissingRuleError(BackplaneError, NotImplementedError): ...
class OutOfMemoryError(BackplaneError, MemoryError): ...
class DeviceError(BackplaneError, RuntimeError): ...
class DeviceLostError(BackplaneError, RuntimeError): ...
class DataError(BackplaneError, ValueError): ...
class VersionError(BackplaneError, ImportError): ...
class BusyError(BackplaneError, RuntimeError): ...
class InternalError(BackplaneError, RuntimeError): ...

class CheckRow:
    """One check on one device: verdict is 'passed', 'failed' or 'not stated'; text says what was found and expected."""
    device: str
    check: str
    verdict: str
    text: str

class OpCheckReport:
    """The rows of opcheck's checks; true where none failed."""
    op: str
    rows: list[CheckRow]
    @property
    def failed(self) -> list[CheckRow]: ...
    def __bool__(self) -> builtins.bool: ...

class OpCheckError(BackplaneError, AssertionError):
    """An op is not what it declares."""
    report: OpCheckReport

class finfo:
    dtype: DType
    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    def __init__(self, dtype: DType | Tensor) -> None: ...

class iinfo:
    dtype: DType
    bits: int
    max: int
    min: int
    def __init__(self, dtype: DType | Tensor) -> None: ...

class DeviceInfo:
    device: Device
    name: str
    description: str
    plugin: str
    total_memory: int

class PluginInfo:
    name: str
    version: str
    path: str
    state: str
    why: str
    backends: list[str]
    ops: list[str]
    leases: int

class CallCounts:
    kernels: int
    decompositions: int
    host_fallbacks: int
    batch_loops: int

class no_grad:
    def __enter__(self) -> no_grad: ...
    def __exit__(self, *failure: object) -> None: ...
    def __call__(self, function: _Function) -> _Function: ...

class enable_grad:
    def __enter__(self) -> enable_grad: ...
    def __exit__(self, *failure: object) -> None: ...
    def __call__(self, function: _Function) -> _Function: ...

ops: Any
default_generator: Generator
__version__: str
__array_api_version__: str

def asarray(
    obj: Any, /, *, dtype: DType | None = None, device: Device | str | None = None, copy: builtins.bool | None = None
) -> Tensor: ...
def from_dlpack(x: Any, /, *, device: Device | str | None = None, copy: builtins.bool | None = None) -> Tensor: ...
def empty(
    shape: int | Sequence[int], *, dtype: DType | None = None, device: Device | str | None = None
) -> Tensor: ...
def empty_like(x: Tensor, /, *, dtype: DType | None = None, device: Device | str | None = None) -> Tensor: ...
def astype(
    x: Tensor, dtype: DType, /, *, copy: builtins.bool = True, device: Device | str | None = None
) -> Tensor: ...
def to_numpy(x: Tensor, /) -> Any: ...
def isdtype(dtype: DType, kind: DType | str | tuple[DType | str, ...]) -> builtins.bool: ...
def result_type(*arrays_and_dtypes: Tensor | DType | _Number) -> DType: ...
def can_cast(from_: Tensor | DType, to: DType, /) -> builtins.bool: ...
def __array_namespace_info__() -> Any: ...
def broadcast_shapes(*shapes: Sequence[int | None]) -> tuple[int | None, ...]: ...
def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]: ...
def meshgrid(*arrays: Tensor, indexing: str = "xy") -> tuple[Tensor, ...]: ...
def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor: ...
def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]: ...
def nonzero(x: Tensor, /) -> tuple[Tensor, ...]: ...
def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor: ...
def reshape(x: Tensor, /, shape: int | Sequence[int], *, copy: builtins.bool | None = None) -> Tensor: ...
def allclose(
    x: _Operand, y: _Operand, /, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: builtins.bool = False
) -> builtins.bool: ...
def array_equal(x: _Operand, y: _Operand, /, equal_nan: builtins.bool = False) -> builtins.bool: ...
def isclose(
    x: _Operand, y: _Operand, /, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: builtins.bool = False
) -> Tensor: ...
def einsum(subscripts: Any, /, *operands: Any, optimize: builtins.bool = True) -> Tensor: ...
def geomspace(
    start: float, stop: float, num: int = 50, *, endpoint: builtins.bool = True, dtype: DType | None = None, device: Device | str | None = None
) -> Tensor: ...
def indices(
    dimensions: Sequence[int], dtype: DType | None = None, sparse: builtins.bool = False, *, device: Device | str | None = None
) -> Any: ...
def logspace(
    start: float, stop: float, num: int = 50, *, endpoint: builtins.bool = True, base: float = 10.0, dtype: DType | None = None, device: Device | str | None = None
) -> Tensor: ...
def ravel_multi_index(
    multi_index: Sequence[Tensor], dims: Sequence[int], /, mode: str | Sequence[str] = "raise", order: str = "C"
) -> Tensor: ...
def tri(
    n: int, m: int | None = None, /, k: int = 0, *, dtype: DType | None = None, device: Device | str | None = None
) -> Tensor: ...
def tril_indices(
    n: int, k: int = 0, m: int | None = None, *, device: Device | str | None = None
) -> tuple[Tensor, Tensor]: ...
def triu_indices(
    n: int, k: int = 0, m: int | None = None, *, device: Device | str | None = None
) -> tuple[Tensor, Tensor]: ...
def unravel_index(
    positions: Tensor | int | Sequence[int], shape: int | Sequence[int], /, order: str = "C"
) -> tuple[Tensor, ...]: ...
def vander(x: Tensor, /, n: int | None = None, increasing: builtins.bool = False) -> Tensor: ...
def nanargmax(x: Tensor, /, axis: int | None = None, *, keepdims: builtins.bool = False) -> Tensor: ...
def nanargmin(x: Tensor, /, axis: int | None = None, *, keepdims: builtins.bool = False) -> Tensor: ...
def nanmax(x: Tensor, /, axis: int | Sequence[int] | None = None, *, keepdims: builtins.bool = False) -> Tensor: ...
def nanmean(x: Tensor, /, axis: int | Sequence[int] | None = None, *, keepdims: builtins.bool = False) -> Tensor: ...
def nanmin(x: Tensor, /, axis: int | Sequence[int] | None = None, *, keepdims: builtins.bool = False) -> Tensor: ...
def nanprod(
    x: Tensor, /, axis: int | Sequence[int] | None = None, *, dtype: DType | None = None, keepdims: builtins.bool = False
) -> Tensor: ...
def nanstd(
    x: Tensor, /, axis: int | Sequence[int] | None = None, *, correction: float = 0, keepdims: builtins.bool = False
) -> Tensor: ...
def nansum(
    x: Tensor, /, axis: int | Sequence[int] | None = None, *, dtype: DType | None = None, keepdims: builtins.bool = False
) -> Tensor: ...
def nanvar(
    x: Tensor, /, axis: int | Sequence[int] | None = None, *, correction: float = 0, keepdims: builtins.bool = False
) -> Tensor: ...
def convolve(x: Tensor, y: Tensor, /, mode: str = "full") -> Tensor: ...
def correlate(x: Tensor, y: Tensor, /, mode: str = "valid") -> Tensor: ...
def gradient(
    f: Tensor, /, *spacing: Tensor | float, axis: int | Sequence[int] | None = None, edge_order: int = 1
) -> Any: ...
def interp(
    x: Tensor | float, xp: Tensor, fp: Tensor, /, left: float | None = None, right: float | None = None, period: float | None = None
) -> Tensor: ...
def trapezoid(y: Tensor, /, x: Tensor | None = None, dx: float = 1.0, axis: int = -1) -> Tensor: ...
def median(x: Tensor, /, axis: int | Sequence[int] | None = None, *, keepdims: builtins.bool = False) -> Tensor: ...
def nanmedian(x: Tensor, /, axis: int | Sequence[int] | None = None, *, keepdims: builtins.bool = False) -> Tensor: ...
def nanpercentile(
    x: Tensor, q: Tensor | float | Sequence[Any], /, axis: int | Sequence[int] | None = None, *, method: str = "linear", keepdims: builtins.bool = False
) -> Tensor: ...
def nanquantile(
    x: Tensor, q: Tensor | float | Sequence[Any], /, axis: int | Sequence[int] | None = None, *, method: str = "linear", keepdims: builtins.bool = False
) -> Tensor: ...
def percentile(
    x: Tensor, q: Tensor | float | Sequence[Any], /, axis: int | Sequence[int] | None = None, *, method: str = "linear", keepdims: builtins.bool = False
) -> Tensor: ...
def ptp(x: Tensor, /, axis: int | Sequence[int] | None = None, *, keepdims: builtins.bool = False) -> Tensor: ...
def quantile(
    x: Tensor, q: Tensor | float | Sequence[Any], /, axis: int | Sequence[int] | None = None, *, method: str = "linear", keepdims: builtins.bool = False
) -> Tensor: ...
def scatter(
    x: Tensor, dim: int, index: Tensor, src: Tensor | float, reduce: str | None = None, *, include_self: builtins.bool = True
) -> Tensor: ...
def array_split(x: Tensor, indices_or_sections: int | Sequence[int], /, axis: int = 0) -> list[Tensor]: ...
def atleast_1d(*arrays: Tensor) -> Any: ...
def atleast_2d(*arrays: Tensor) -> Any: ...
def atleast_3d(*arrays: Tensor) -> Any: ...
def chunk(x: Tensor, chunks: int, /, dim: int = 0) -> tuple[Tensor, ...]: ...
def diag(x: Tensor, /, k: int = 0) -> Tensor: ...
def diagflat(x: Tensor, /, k: int = 0) -> Tensor: ...
def dstack(arrays: Sequence[Tensor], /) -> Tensor: ...
def fliplr(x: Tensor, /) -> Tensor: ...
def flipud(x: Tensor, /) -> Tensor: ...
def hstack(arrays: Sequence[Tensor], /) -> Tensor: ...
def ravel(x: Tensor, /) -> Tensor: ...
def rot90(x: Tensor, /, k: int = 1, axes: Sequence[int] = (0, 1)) -> Tensor: ...
def split(x: Tensor, indices_or_sections: int | Sequence[int], /, axis: int = 0) -> list[Tensor]: ...
def swapaxes(x: Tensor, /, axis1: int, axis2: int) -> Tensor: ...
def transpose(x: Tensor, /, axes: Sequence[int] | None = None) -> Tensor: ...
def vstack(arrays: Sequence[Tensor], /) -> Tensor: ...
def average(
    x: Tensor, /, axis: int | Sequence[int] | None = None, weights: Tensor | None = None, returned: builtins.bool = False, *, keepdims: builtins.bool = False
) -> Any: ...
def bincount(x: Tensor, /, weights: Tensor | None = None, minlength: int = 0) -> Tensor: ...
def corrcoef(x: Tensor, /, y: Tensor | None = None, rowvar: builtins.bool = True) -> Tensor: ...
def cov(
    x: Tensor, /, y: Tensor | None = None, rowvar: builtins.bool = True, bias: builtins.bool = False, ddof: int | None = None, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor: ...
def digitize(x: Tensor, bins: Tensor, /, right: builtins.bool = False) -> Tensor: ...
def histogram(
    x: Tensor, /, bins: int | Tensor | Sequence[float] = 10, range: tuple[float, float] | None = None, density: builtins.bool = False, weights: Tensor | None = None
) -> tuple[Tensor, Tensor]: ...
def gradients(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    cotangents: Tensor | Sequence[Tensor | None] | None = None,
    *,
    retain_graph: builtins.bool = False,
    create_graph: builtins.bool = False,
) -> Any: ...
def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: builtins.bool = False,
    holomorphic: builtins.bool = False,
) -> Callable[..., Any]:
    """The gradient of a function, as a function of the same arguments.

    fun: returns a real floating tensor without dimensions; with has_aux a pair of that and anything else.
    argnums: the position of the argument to differentiate, or a tuple of positions; negative ones count from the end. The
        argument is a floating or complex tensor, a Python float or complex, or a container of these.
    has_aux: the result is the pair (gradient, aux).
    holomorphic: fun is holomorphic, from complex tensors to a complex tensor; the result is its complex derivative.

    The gradient has the argument's structure, shapes and dtypes; zeros where the value does not depend on it. With a tuple of
    positions it is a tuple. Of a real function of a complex z = x + iy it is df/dx + i df/dy, the direction of steepest
    ascent. Keyword arguments are passed on and not differentiated.

    Errors: DtypeError for integer and boolean arguments or values, and for complex values without holomorphic; ShapeError
        for a value with dimensions; ArgumentValueError where argnums names no positional argument.
    Source: reverse mode, Griewank and Walther, "Evaluating Derivatives", 2nd ed., 2008, section 3.2.
    """

def value_and_grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: builtins.bool = False,
    holomorphic: builtins.bool = False,
) -> Callable[..., Any]:
    """A function's value and its gradient, as a function of the same arguments.

    Arguments and errors are those of grad. The result is the pair (value, gradient), with has_aux ((value, aux), gradient).
    """

def vjp(fun: Callable[..., Any], *primals: Any, has_aux: builtins.bool = False) -> tuple[Any, ...]:
    """The value of fun(*primals), and its pullback: from a cotangent of the value to cotangents of the primals.

    fun: returns a tensor or a container of tensors, of any shapes; with has_aux a pair of that and anything else.
    primals: floating or complex tensors, Python floats or complexes, or containers of these.

    The result is (value, pullback), with has_aux (value, pullback, aux). pullback(cotangent) takes what has the structure,
    shapes and dtypes of the value (None for a zero) and returns a tuple, one cotangent per primal. It may be called again, later, and
    inside other transforms. It is the adjoint under the product <a, b> = Re sum(conj(a) b).

    Errors: DtypeError for integer and boolean primals; ValueError, ShapeError and DtypeError for a cotangent that does not fit.
    Source: Griewank and Walther, "Evaluating Derivatives", 2nd ed., 2008, section 3.2.
    """

def jvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: builtins.bool = False
) -> tuple[Any, ...]:
    """The value of fun(*primals), and its derivative along tangents, in one forward pass.

    fun: returns a tensor or a container of tensors; with has_aux a pair of that and anything else.
    primals, tangents: tuples or lists with one element per argument of fun. An element of primals is a floating or complex
        tensor, a Python float or complex, or a container of these; that of tangents has its structure, shapes and dtypes.

    The result is (value, derivative), with has_aux (value, derivative, aux). The derivative has the structure of the value; zeros
    where it does not depend on primals.

    Errors: DtypeError for integer and boolean primals; ValueError, ShapeError and DtypeError for a tangent that does not fit.
    Source: Griewank and Walther, "Evaluating Derivatives", 2nd ed., 2008, section 3.1.
    """

def stop_gradient(x: Any, /) -> Any:  # type: ignore[no-redef]
    """x as a constant: no derivative passes, forward or in reverse, at any level. x is a tensor or a container.

    What is no tensor stays as it is.
    """
def vmap(
    fun: Callable[..., Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_size: int | None = None,
    *,
    randomness: str = "error",
) -> Callable[..., Any]:
    """A function for batches: fun sees one element, the result is called with all of them at once.

    fun: returns a tensor, a number, or a container of these.
    in_axes: the batch axis of the arguments: an int, None for what is the same for all elements, or a tuple with an entry
        per positional argument, each an int, None or a container that is a prefix of the argument's. Negative axes count
        from the end. Keyword arguments are mapped over axis 0.
    out_axes: where the batch goes in the results: an int, a prefix of the result's structure, or None for what is the same for
        all elements.
    axis_size: the number of elements, needed where nothing is mapped.
    randomness: what random ops do: 'error', 'same' numbers for all elements, or 'different' ones.

    The result equals fun on each element, stacked. Reading a batched value (float, bool, item) is an error; so is an op whose result's
    shape depends on values.

    Errors: OutOfRangeError for an axis that a tensor lacks; ShapeError where the mapped axes differ in size;
        ArgumentValueError where in_axes or out_axes is no prefix, naming the place.
    """

def jacrev(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: builtins.bool = False,
    holomorphic: builtins.bool = False,
) -> Callable[..., Any]:
    """The Jacobian of a function by reverse mode, as a function of the same arguments; cheap for few results.

    Arguments as for grad, but fun may return a tensor of any shape, or a container of tensors. For a result of shape
    (*m) and an argument of shape (*n) the Jacobian has shape (*m, *n) and the argument's dtype. Containers nest: the
    structure of the result, and at each of its leaves that of the argument (of several, a tuple). With has_aux the
    result is the pair (Jacobian, aux).

    Errors: DtypeError for integer and boolean arguments or results, and for complex results without holomorphic;
        ArgumentValueError where argnums names no positional argument.
    """

def jacfwd(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: builtins.bool = False,
    holomorphic: builtins.bool = False,
) -> Callable[..., Any]:
    """The Jacobian of a function by forward mode, as a function of the same arguments; cheap for few arguments.

    Arguments, result and errors as for jacrev, but the Jacobian has the result's dtype, and complex arguments need
    holomorphic.
    """

def hessian(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: builtins.bool = False,
    holomorphic: builtins.bool = False,
) -> Callable[..., Any]:
    """The matrix of second derivatives, as a function of the same arguments: jacfwd of jacrev.

    Arguments and errors as for jacrev. For a value without dimensions and an argument of shape (*n) it has shape
    (*n, *n); containers nest once for each derivative.
    """
def checkpoint(fun: Callable[..., Any]) -> Callable[..., Any]:  # type: ignore[no-redef]
    """fun, of whose run a gradient keeps the arguments alone: the backward pass runs it again. A decorator.

    fun: takes and returns tensors and containers of them; other leaves are passed through. It must do the same each time that
        it is called with the same arguments, and must not change tensors in place that are not its own. The second run takes the
        random numbers of the first; the generators stay as they are.

    The result is a function that computes what fun computes. It works under every transform and in any nesting, also of
    checkpoints; tensors that fun uses without being given them get their gradients too. Where nothing is differentiated it costs
    nothing; else the time of one more run, against the memory of what that run would have saved.

    Errors: ArgumentTypeError where fun is not callable; ArgumentValueError in the backward pass where the second run differs in
        its random numbers or number of results, or where a tensor that it needs was changed in place since.
    Source: Griewank and Walther, "Revolve", ACM Transactions on Mathematical Software 26, 2000.
    """

class custom_function:  # type: ignore[no-redef]
    """A function whose derivatives and batching are given by rules, as in jax.custom_vjp and jax.custom_jvp; a decorator.

    fun: takes arguments by position and returns tensors or containers of them; leaves that are no tensors are passed through.
    nondiff_argnums: positions of arguments that are never differentiated, such as functions and options. They come first in bwd
        and in the rule of defjvp.

    Rules are ordinary code: they are themselves differentiated for higher orders. A function with a jvp rule alone also has
    reverse mode, by transposing it. Batching needs no rule: it batches the function or the rule that is asked for.
    A transform that needs a rule which is missing raises MissingRuleError; a differentiated tensor that the function uses
    without having it as an argument is an ArgumentValueError, for the rules say nothing of it.
    """

    fun: Callable[..., Any]
    nondiff_argnums: tuple[int, ...]
    def __init__(self, fun: Callable[..., Any] | None = None, nondiff_argnums: int | Sequence[int] = ()) -> None: ...
    def defvjp(self, fwd: Callable[..., tuple[Any, Any]], bwd: Callable[..., tuple[Any, ...]]) -> None:
        """Gives the rule for reverse mode.

        fwd(*args) returns (result, residuals): what the function returns, and whatever bwd needs.
        bwd(*nondiff, residuals, cotangent) returns a tuple with a cotangent per differentiable argument, of its structure,
            shapes and dtypes; None is zero. cotangent has the structure of the result, None where that is no floating tensor.
        """

    def defjvp(self, rule: Callable[..., tuple[Any, Any]]) -> Callable[..., tuple[Any, Any]]:
        """Gives the rule for forward mode, rule(*nondiff, primals, tangents) -> (result, tangent), and returns it: a decorator.

        primals and tangents are tuples of one structure; an integer tensor has the tangent None. tangent has the result's
        structure, shapes and dtypes; None is zero.
        """

    def defvmap(self, rule: Callable[..., tuple[Any, Any]]) -> Callable[..., tuple[Any, Any]]:
        """Gives the rule for batching, rule(axis_size, in_batched, *args) -> (result, out_batched), and returns it: a decorator.

        in_batched: per argument a container of its structure that tells which tensors have the batch, always at axis 0.
        out_batched: the same for the result, or one bool for all of it.
        """

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

def grad_enabled() -> builtins.bool: ...
def set_grad_enabled(enabled: builtins.bool) -> builtins.bool: ...
def manual_seed(seed: int) -> Generator: ...
def devices() -> list[DeviceInfo]: ...
def default_device() -> Device: ...
def set_default_device(device: Device | str) -> None: ...
def synchronize(device: Device | str | None = None) -> None: ...
def plugins() -> list[PluginInfo]: ...
def load_plugin(path: str | PathLike[str]) -> PluginInfo: ...
def unload_plugin(name: str) -> None: ...
def add_plugin_path(folder: str | PathLike[str]) -> None: ...
def call_counts() -> CallCounts: ...
def reset_call_counts() -> None: ...
def allow_host_fallback(allowed: builtins.bool) -> builtins.bool: ...
def allow_batch_loop(allowed: builtins.bool) -> builtins.bool: ...
def explain(op: Op | str) -> str: ...
def custom_op(
    name: str,
    function: Callable[..., Any] | str | None = None,
    /,
    *,
    signature: str | None = None,
    mutates_args: str | Sequence[str] = (),
    alias: str | None = None,
    shape: str | Sequence[str] | None = None,
    dtypes: str | Sequence[DType] = "any",
    device_types: str | Device | Sequence[str | Device] | None = None,
    doc: str | None = None,
    replace: builtins.bool = False,
) -> Any:
    """Defines an op in Python; it is then one like any other: recorded, batched, explained, found in `backplane.ops`.

        @bp.custom_op("mine::scale")
        def scale(x: bp.Tensor, factor: bp.types.Scalar = 2) -> bp.Tensor:
            return bp.asarray(x.numpy() * factor)

    name: "namespace::name". function: the kernel for all devices (or those of device_types); one without a body is a
    signature alone. A string in its place is the signature of an op whose kernels come later.
    signature: "scale(Tensor x, Scalar factor=2) -> Tensor", as in a registry file, instead of type hints.
    mutates_args: ("x",): the kernels change their first argument in place and return None; no other can be changed.
    alias: "x" or "maybe x": the result is a view of x, by a `view.*` shape; such an op has no kernel.
    shape: a word of the registry's vocabulary, "broadcast(x, y)"; a list of them for several results. It gives the
    batch rule too. Without one, and without register_shape, the kernel decides.
    dtypes: what tensor arguments accept: a class ("floating") or a list of dtypes.
    replace: takes the place of a Python op of that name; otherwise a name that is taken is refused.

    Returns the Op, to which register_kernel, register_shape, register_vjp, register_jvp, register_batch and
    register_decomposition add; what is left out is an error where it is needed.
    """

def opcheck(
    op: Op | str,
    args: Sequence[Any] = (),
    kwargs: dict[str, Any] | None = None,
    *,
    devices: str | Device | Sequence[str | Device] | None = None,
    raise_exception: builtins.bool = True,
) -> OpCheckReport:
    """Checks an op against what it declares, on one sample of arguments: `bp.opcheck(scale, (x,), {"factor": 3})`.

    op: an Op, of a registry file or defined in Python. devices: where to run; by default where the sample is.
    Checked are, each where it is declared: mutation and aliasing, the shape and dtype rule (also strided and empty
    variants of the sample), the gradient and its gradient by finite differences in float64 and complex128, forward
    against reverse mode, batching against a loop over every axis, in-place and out= against the function, and the
    decomposition against the kernel.

    Returns the report; raises OpCheckError with it where a check failed, unless raise_exception is False.
    """
