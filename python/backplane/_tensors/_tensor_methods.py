"""Methods of Tensor under NumPy's and PyTorch's names that neither an op nor a function of the package has: casts, fillings.

Calls whose meaning differs between the two are refused with both spellings: x.repeat(2) of a vector, x.sort(), x.transpose(0, 1) of a matrix.
"""

from __future__ import annotations

from .. import _core
from .._api._elementwise_functions import round
from .._transforms._grad import no_grad
from .._api._joining_functions import split
from .._api._manipulation_functions import normalized_axis, repeat, reshape, row_major, swapaxes
from ._members import extend
from .._calls._ops import NAMESPACE, ops
from .._calls._tensor_argument import name_function, require_real, require_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .._core import Device, DType, Generator, Operand, Tensor

op = getattr(ops, NAMESPACE)


def _cast(name: str) -> Callable[[Tensor], Tensor]:
    dtype = getattr(_core, name)

    def cast(x):
        return x if x.dtype is dtype else op.cast(x, dtype)

    cast.__doc__ = f"The tensor in {name}; itself where it is of that dtype."
    return cast


def _transpose(x: Tensor, *axes: int | Sequence[int] | None, dim0: int | None = None, dim1: int | None = None) -> Tensor:
    """x with its axes in reverse order, or in the order of axes; a view. Two ints are PyTorch's two axes to exchange.

    Of a matrix, where NumPy takes them for the order of both axes, they are refused unless both mean the same.
    """
    if dim0 is not None or dim1 is not None:
        axes = (*axes, *(dim for dim in (dim0, dim1) if dim is not None))
        if len(axes) != 2:
            raise _core.ArgumentTypeError(f"transpose: found {len(axes)} axes beside dim0 or dim1, expected two to exchange")
        return swapaxes(x, *axes)
    if len(axes) == 2:
        first, second = (normalized_axis("transpose", axis, x.ndim) for axis in axes)
        if x.ndim == 2 and (first, second) != (1, 0):
            raise _core.ArgumentTypeError(
                "transpose: found two ints for a matrix, which NumPy takes for the order of the axes and PyTorch for two axes to exchange; "
                "use permute_dims or swapaxes"
            )
        return swapaxes(x, first, second)
    if len(axes) == 1 and axes[0] is None:
        axes = ()
    return op.permute_dims(x, *axes) if axes else op.permute_dims(x, list(range(x.ndim))[::-1])


def _view(x: Tensor, *shape: int | Sequence[int] | DType) -> Tensor:
    """x's elements in row-major order at another shape, or its bits as another dtype, over the same memory.

    Raises ValueError if strides do not allow it. Without an argument x itself.
    """
    if len(shape) == 1 and (isinstance(shape[0], (str, type)) or hasattr(shape[0], "kind")):
        return op.bitcast(x, shape[0])
    if not shape:
        return x[...]
    try:
        return reshape(x, shape[0] if len(shape) == 1 else shape, copy=False)
    except _core.BackplaneError as error:
        name_function(error, "view")
        raise


def _expand_as(x: Tensor, other: Tensor) -> Tensor:
    """x broadcast to the shape of other; a view."""
    require_tensor("expand_as", "other", other)
    return op.broadcast_to(x, other.shape)


def _reshape_as(x: Tensor, other: Tensor) -> Tensor:
    """x's elements in row-major order at the shape of other."""
    require_tensor("reshape_as", "other", other)
    return op.reshape(x, other.shape)


def _view_as(x: Tensor, other: Tensor) -> Tensor:
    """x at the shape of other, over the same memory."""
    require_tensor("view_as", "other", other)
    return _view(x, other.shape)


def _type_as(x: Tensor, other: Tensor) -> Tensor:
    """x in the dtype of other; itself where it is of that dtype."""
    require_tensor("type_as", "other", other)
    return x.astype(other.dtype, copy=False)


def _cpu(x: Tensor) -> Tensor:
    """The tensor on the host; itself where it is there."""
    return x.to("cpu")


def _dim(x: Tensor) -> int:
    """How many axes it has."""
    return x.ndim


def _element_size(x: Tensor) -> int:
    """Bytes of one element."""
    return x.itemsize


def _nelement(x: Tensor) -> int:
    """How many elements it has."""
    return x.size


def _round(x: Tensor, ndigits: int | None = None) -> Tensor:
    """Python's round. Without ndigits, rounds to whole numbers."""
    return round(x, ndigits or 0)


def _contiguous(x: Tensor) -> Tensor:
    """x itself where its elements lie in row-major order without gaps, else a copy that does."""
    return row_major(x)


def _write(method, x, value):
    try:
        x[...] = value
    except _core.BackplaneError as error:
        name_function(error, method)
        raise
    return x


def _filled(x: Tensor, value: Operand) -> Tensor:
    """Writes a number to every element; returns x."""
    return _write("fill_", x, value)


def _zero(x: Tensor) -> Tensor:
    """Writes zero to every element; returns x."""
    return _filled(x, 0)


def _copied(x: Tensor, src: Tensor) -> Tensor:
    """Writes src, broadcast and cast to x's dtype, into x; returns x."""
    require_tensor("copy_", "src", src)
    if x.dtype.kind not in ("complex floating", "bool"):
        require_real("copy_", "src", src)
    return _write("copy_", x, src if src.dtype is x.dtype else op.cast(src, x.dtype))


def _repeat(x: Tensor, /, *counts: int | Sequence[int], axis: int | None = None, repeats: int | Sequence[int] | None = None) -> Tensor:
    """NumPy's x.repeat(n, axis), which repeats elements, or PyTorch's x.repeat(n, m), which repeats the whole tensor along each axis.

    A call that means something in both libraries is refused: x.repeat(2) of a vector, and x.repeat(2, 1) of a matrix. axis= selects NumPy's meaning.
    """
    numbers = counts[0] if len(counts) == 1 and isinstance(counts[0], (tuple, list)) else counts
    in_numpy, in_torch = False, axis is None and repeats is None and len(numbers) >= x.ndim
    if axis is not None or repeats is not None or (len(counts) == 1 and isinstance(counts[0], _core.Tensor)):
        in_numpy, in_torch = True, False
    elif numbers is not counts:
        in_numpy = len(numbers) in (1, x.size)
    else:
        in_numpy = len(counts) == 1 or (len(counts) == 2 and -x.ndim <= counts[1] < x.ndim)
        in_torch = in_torch and not (len(counts) == 2 and in_numpy and counts[1] <= 0)
    if in_numpy and in_torch and not (len(numbers) == 1 and (x.size == 1 or numbers[0] == 1)):
        raise _core.ArgumentTypeError("repeat: it means different things in NumPy and PyTorch. Fix: use backplane.repeat(x, n) for NumPy's, x.tile(n, m) for PyTorch's")
    if in_torch:
        return op.tile(x, list(numbers))
    given = [*counts, *([] if repeats is None else [repeats])]
    if axis is not None:
        given.append(axis)
    if not in_numpy or len(given) > 2:
        raise _core.ArgumentTypeError(f"repeat: found {len(given)} counts for a tensor of {x.ndim} dimensions, expected x.repeat(n, axis) or a count for each axis")
    return repeat(x, given[0], given[1] if len(given) == 2 else None)


def _sort(x: Tensor, /, *args: object, **more: object) -> Any:
    """PyTorch's pair of values and indices, x.sort(dim=-1) or x.sort(descending=True). Without such a word refused: NumPy's sorts in place."""
    if "dim" not in more and "descending" not in more:
        raise _core.ArgumentTypeError(
            "sort: it means different things in NumPy and PyTorch. Fix: use backplane.sort(x) for a sorted copy, x[...] = backplane.sort(x) "
            "for NumPy's, which sorts x itself, x.sort(dim=-1) for PyTorch's pair of values and indices"
        )
    if "dim" not in more:
        args, more["dim"] = args[1:], args[0] if args else -1
    return op.sort(x, *args, **more)


def _split(x: Tensor, /, split_size: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """PyTorch's pieces along dim: of so many elements, the last of what is left, or of the sizes that are listed; views. NumPy has no such method."""
    return tuple(split(x, split_size, dim=dim))


def _new(x, shape, value, dtype, device, requires_grad=False):
    found = op.full(shape[0] if len(shape) == 1 else shape, value, dtype=dtype or x.dtype, device=device or x.device)
    return found.requires_grad_() if requires_grad else found


def _new_zeros(
    x: Tensor, /, *size: int | Sequence[int], dtype: DType | None = None, device: Device | str | None = None, requires_grad: bool = False
) -> Tensor:
    """Zeros of this size, and unless stated of x's dtype and on its device."""
    return _new(x, size, 0, dtype, device, requires_grad)


def _new_ones(
    x: Tensor, /, *size: int | Sequence[int], dtype: DType | None = None, device: Device | str | None = None, requires_grad: bool = False
) -> Tensor:
    """Ones of this size. dtype and device default to the dtype and device of x."""
    return _new(x, size, 1, dtype, device, requires_grad)


def _set_data(x, value):
    """Writes the elements, as x.data -= step has done already; the history stays, and does not see it."""
    require_tensor("data", "value", value)
    if value.shape != x.shape or value.dtype is not x.dtype:
        raise _core.ArgumentValueError(
            f"data: found a {value.dtype.name} tensor of shape {tuple(value.shape)}, expected {x.dtype.name} of shape {tuple(x.shape)}, as the "
            "tensor's own; make a new tensor for another shape or dtype"
        )
    with no_grad():
        x[...] = op.copy(value) if _core.shares_memory(x, value) else value


def _new_empty(x: Tensor, /, *size: int | Sequence[int], dtype: DType | None = None, device: Device | str | None = None) -> Tensor:
    """A tensor of this size whose elements are whatever its memory holds, unless stated of x's dtype and on its device."""
    shape = size[0] if len(size) == 1 else size
    return _core.empty(shape, x.dtype if dtype is None else dtype, x.device if device is None else device)


def _new_full(
    x: Tensor, /, size: int | Sequence[int], fill_value: float, *, dtype: DType | None = None, device: Device | str | None = None
) -> Tensor:
    """A tensor of this size of fill_value, unless stated of x's dtype and on its device."""
    return _new(x, (size,), fill_value, dtype, device)


def _new_tensor(x: Tensor, /, data: Any, *, dtype: DType | None = None, device: Device | str | None = None) -> Tensor:
    """A copy of data, unless stated of x's dtype and on its device."""
    return _core.asarray(data, dtype=x.dtype if dtype is None else dtype, device=x.device if device is None else device, copy=True)


def _where(x: Tensor, condition: Tensor, other: Operand) -> Tensor:
    """PyTorch's: x where the condition holds, other elsewhere."""
    require_tensor("where", "condition", condition)
    return op.where(condition, x, other)


def _uniform(x: Tensor, low: float = 0.0, high: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Writes uniform random numbers in [low, high) into x; returns x."""
    x[...] = op.uniform(x.shape, low=low, high=high, dtype=x.dtype, device=x.device, generator=generator)
    return x


def _normal(x: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Writes random numbers of a normal distribution into x; returns x."""
    x[...] = op.normal(x.shape, mean=mean, std=std, dtype=x.dtype, device=x.device, generator=generator)
    return x


def _stride(x: Tensor, dim: int | None = None) -> Any:
    """PyTorch's: the steps along the axes, in elements, as a tuple; of one axis a number."""
    steps = tuple(step // x.itemsize for step in x.strides)
    return steps if dim is None else steps[dim]


def _tobytes(x: Tensor) -> bytes:
    """The elements in row-major order, in this machine's representation."""
    return _core.to_bytes(_core.exportable(x, "tobytes").detach())


def _absent(kind, name):
    """What no object of the kind has: reading it says what to write instead. An AttributeError, so that hasattr says False."""

    def get(x):
        from .._calls._object_hints import of_object

        raise AttributeError(f"'backplane.{kind}' object has no attribute '{name}'{of_object(kind, name)}")

    return property(get)


def _divmod(x: Tensor, other: Operand, /) -> tuple[Tensor, Tensor]:
    """The quotient rounded down, and the remainder."""
    return x // other, x % other


def _reflected_divmod(x: Tensor, other: Operand, /) -> tuple[Tensor, Tensor]:
    """divmod with the tensor as the divisor."""
    return other // x, other % x


# Names of NumPy and PyTorch that _object_hints.py answers.
_ABSENT = {
    "Tensor": "apply_ base block_until_ready byteswap coalesce ctypes data_ptr detach_ dump dumps flags getfield indices "
    "is_meta is_mps is_nested is_shared is_vulkan is_xpu itemset lstsq map_ name names new newbyteorder put record_stream "
    "register_post_accumulate_grad_hook resize resize_ resize_as_ retains_grad set_ setfield setflags share_memory_ solve squeeze_ "
    "storage storage_offset swapaxes_ swapdims_ t_ to_dense to_sparse tofile transpose_ unsqueeze_ untyped_storage values",
    "Op": "accumulate at outer reduce reduceat",
    "Generator": "beta binomial bit_generator choice exponential gamma get_state integers lognormal multinomial multivariate_normal normal "
    "permutation permuted poisson randint random seed set_state shuffle standard_exponential standard_normal uniform",
}


def _dir_without(names: list[str]):
    """__dir__ without the names that say what to write instead."""
    return lambda x: sorted({*object.__dir__(x)}.difference(names))


class TensorMembers:
    """Casts, fillings and words of NumPy and PyTorch that no function of the package says."""

    __divmod__ = _divmod
    __rdivmod__ = _reflected_divmod
    __round__ = _round
    bfloat16 = _cast("bfloat16")
    bool = _cast("bool")
    byte = _cast("uint8")
    contiguous = _contiguous
    copy_ = _copied
    cpu = _cpu
    dim = _dim
    double = _cast("float64")
    element_size = _element_size
    expand_as = _expand_as
    fill = _filled
    fill_ = _filled
    float = _cast("float32")
    half = _cast("float16")
    int = _cast("int32")
    long = _cast("int64")
    ndimension = _dim
    nelement = _nelement
    new_empty = _new_empty
    new_full = _new_full
    new_ones = _new_ones
    new_tensor = _new_tensor
    new_zeros = _new_zeros
    normal_ = _normal
    repeat = _repeat
    reshape_as = _reshape_as
    short = _cast("int16")
    sort = _sort
    split = _split
    stride = _stride
    tobytes = _tobytes
    transpose = _transpose
    type_as = _type_as
    uniform_ = _uniform
    view = _view
    view_as = _view_as
    where = _where
    zero_ = _zero

    @property
    def data(x: Tensor) -> Tensor:
        """The same memory without the history; what is assigned is written into it."""
        return x.detach()

    @data.setter
    def data(x: Tensor, value: Tensor) -> None:
        _set_data(x, value)

    @property
    def real(x: Tensor) -> Tensor:
        """The real part; of a real tensor itself."""
        return op.real(x)

    @property
    def imag(x: Tensor) -> Tensor:
        """The imaginary part; zeros for a real tensor."""
        return op.imag(x) if x.dtype.kind == "complex floating" else op.zeros_like(x)

    @property
    def H(x: Tensor) -> Tensor:
        """The matrices transposed and conjugated, as mH."""
        return op.conj(x).mT

    @property
    def mH(x: Tensor) -> Tensor:
        """The matrices transposed and conjugated."""
        return op.conj(x).mT


extend(_core.Tensor, TensorMembers)


def refuse_names():
    """Called last: the registry's ops with these names are not methods."""
    for kind, text in _ABSENT.items():
        of_kind, names = getattr(_core, kind), text.split()
        for name in names:
            setattr(of_kind, name, _absent(kind, name))
        of_kind.__dir__ = _dir_without(names)
