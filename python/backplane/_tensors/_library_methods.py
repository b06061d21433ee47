"""Methods that one library alone has, with that library's meaning: PyTorch's call backplane.compat.torch, NumPy's backplane.compat.numpy.

The functions of these modules have the signatures. The modules are imported at the first call.
"""

from __future__ import annotations

import sys

from .. import _core
from .._calls._ops import NAMESPACE, ops
from . import _namespace
from ._members import extend
from ._tensor_methods import _cast, _write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .._core import Generator, Operand, Tensor

op = getattr(ops, NAMESPACE)


def _compat(module):
    """A module of backplane.compat, which is built on the tensors."""
    name = f"{_namespace.package.__name__}.compat.{module}"
    if name not in sys.modules:
        import importlib  # slow to import

        importlib.import_module(name)
    return sys.modules[name]


def _pytorchs(name: str) -> Callable[..., Any]:
    def method(x, *args, **more):
        return getattr(_compat("torch"), name)(x, *args, **more)

    method.__doc__ = f"PyTorch's method: backplane.compat.torch.{name} of the tensor."
    return method


def _in_place(name: str) -> Callable[..., Tensor]:
    def method(x, *args, **more):
        return _write(f"{name}_", x, getattr(_compat("torch"), name)(x, *args, **more))

    method.__doc__ = f"PyTorch's method: writes backplane.compat.torch.{name} of the tensor into it; returns it."
    return method


def _numpys(name: str) -> Callable[..., Any]:
    def method(x, *args, **more):
        return getattr(_compat("numpy"), name)(x, *args, **more)

    method.__doc__ = f"NumPy's method: backplane.compat.numpy.{name} of the tensor."
    return method


class FlatElements:
    """The elements of a tensor in row-major order, as NumPy's x.flat: indices and loops read them, assignments write them."""

    def __init__(self, base: Tensor) -> None:
        self.base = base

    def __len__(self) -> int:
        return self.base.size

    def __iter__(self) -> Any:
        return iter(op.reshape(self.base, [-1]))

    def __getitem__(self, key: Any) -> Tensor:
        return op.copy(op.reshape(self.base, [-1])[key])

    def __setitem__(self, key: Any, value: Operand) -> None:
        flat = op.copy(op.reshape(self.base, [-1]))
        value = _core.asarray(value, dtype=flat.dtype) if isinstance(value, (list, tuple)) else value
        places = op.iota(flat.size)[key]
        if isinstance(value, _core.Tensor) and value.size > 1 and value.size != places.size:
            value = op.take(op.reshape(value, [-1]), op.remainder(op.iota(places.size), value.size), axis=0)  # repeated, as NumPy does
        flat[key] = value
        self.base[...] = op.reshape(flat, self.base.shape)

    def copy(self) -> Tensor:
        """The elements as a vector of their own."""
        return op.copy(op.reshape(self.base, [-1]))


def _choose(x: Tensor, choices: Any, out: Tensor | None = None, mode: str = "raise") -> Tensor:
    """NumPy's: of each position the element of the choice that x names there."""
    return _compat("numpy").choose(x, choices, out, mode)


def _compress(x: Tensor, condition: Any, axis: int | None = None, out: Tensor | None = None) -> Tensor:
    """NumPy's: the slices along axis (of the flattened tensor without one) where the condition holds."""
    return _compat("numpy").compress(condition, x, axis, out)


def _partition(x: Tensor, kth: int, axis: int = -1) -> None:
    """NumPy's: reorders x itself along axis, so that the element at kth is the one that sorting puts there."""
    _write("partition", x, _compat("numpy").partition(x, kth, axis))


def _nan_to_num(x: Tensor, nan: float | None = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """NaNs and infinities replaced by finite numbers; infinities without one by the largest of the dtype."""
    return op.nan_to_num(x, nan=0.0 if nan is None else nan, **{word: value for word, value in (("posinf", posinf), ("neginf", neginf)) if value is not None})


def _polygamma(x: Tensor, n: int) -> Tensor:
    """PyTorch's: the n-th derivative of digamma."""
    return op.polygamma(n, x)


def _polygamma_in_place(x: Tensor, n: int) -> Tensor:
    """Writes the n-th derivative of digamma into x; returns x."""
    return _write("polygamma_", x, op.polygamma(n, x))


def _fill_diagonal(x: Tensor, fill_value: float, wrap: bool = False) -> Tensor:
    """Writes a number to the diagonal; returns x. wrap: a tall matrix has further diagonals below."""
    _compat("numpy").fill_diagonal(x, fill_value, wrap)
    return x


def _type(x: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """PyTorch's name of x's type, as 'torch.FloatTensor'; with a dtype (or such a name or class) x in it."""
    names = _compat("_torch_creation").TYPE_NAMES
    if dtype is None:
        where = "" if x.device.backend == "cpu" else f"{x.device.backend}."
        return f"torch.{where}{next((name for name, own in names.items() if own is x.dtype), x.dtype.name)}"
    if isinstance(dtype, str):
        dtype = names.get(dtype.removeprefix("torch."), dtype)
    return x.astype(getattr(dtype, "of_dtype", dtype), copy=False)


def _get_device(x: Tensor) -> int:
    """The number of the device; -1 on the host."""
    return -1 if x.device.backend == "cpu" else x.device.ordinal


def _cuda(x: Tensor, device: int | str | None = None, non_blocking: bool = False) -> Tensor:
    """The tensor on a CUDA device; itself where it is there."""
    return x.to("cuda" if device is None else f"cuda:{device}" if isinstance(device, int) else device, non_blocking=non_blocking)


def _drawn(name: str, draw: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def method(x, *args, generator=None, **more):
        return _write(name, x, draw(x, generator, *args, **more))

    method.__doc__ = f"{draw.__doc__} returns x."
    return method


def _uniform(x, generator):
    """Numbers above 0 and below 1, in x's dtype, or in float64 for integers."""
    dtype = x.dtype if x.dtype.kind == "real floating" else _core.float64
    return op.maximum(op.uniform(x.shape, dtype=dtype, device=x.device, generator=generator), 2.0**-25 if dtype is not _core.float64 else 2.0**-54)


def _bernoulli_draw(x: Tensor, generator: Generator | None, p: float | Tensor = 0.5) -> Tensor:
    """Writes 1 with the probability p, else 0;"""
    p = op.broadcast_to(_core.asarray(p, dtype=_core.float64), x.shape)
    return op.cast(op.bernoulli(p, generator=generator), x.dtype)


def _exponential_draw(x: Tensor, generator: Generator | None, lambd: float = 1.0) -> Tensor:
    """Writes numbers of the exponential distribution of rate lambd;"""
    return op.divide(op.negative(op.log(_uniform(x, generator))), lambd)


def _geometric_draw(x: Tensor, generator: Generator | None, p: float) -> Tensor:
    """Writes counts of trials until the first success, of probability p;"""
    if not 0 < p < 1:
        raise _core.ArgumentValueError(f"geometric_: argument p: found {p}, expected a number between 0 and 1")
    from math import log1p

    return op.cast(op.maximum(op.ceil(op.divide(op.log(_uniform(x, generator)), log1p(-p))), 1.0), x.dtype)


def _cauchy_draw(x: Tensor, generator: Generator | None, median: float = 0.0, sigma: float = 1.0) -> Tensor:
    """Writes numbers of a Cauchy distribution;"""
    from math import pi

    return op.add(op.multiply(op.tan(op.multiply(op.subtract(_uniform(x, generator), 0.5), pi)), sigma), median)


def _log_normal_draw(x: Tensor, generator: Generator | None, mean: float = 1.0, std: float = 2.0) -> Tensor:
    """Writes numbers whose logarithms are normal;"""
    return op.exp(op.normal(x.shape, mean=mean, std=std, dtype=x.dtype, device=x.device, generator=generator))


def _random_draw(x: Tensor, generator: Generator | None, start: int | None = None, to: int | None = None) -> Tensor:
    """Writes integers from `start` (0 unless stated) to below `to`; without limits the integers that the dtype holds exactly;"""
    low, high = (0, start) if to is None else (start, to)
    if high is None:
        bits = {"bool": 1, "uint8": 8, "int8": 7, "int16": 15, "int32": 31, "int64": 62, "float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
        high = 2 ** bits.get(x.dtype.name, 31) + ("floating" in x.dtype.kind)
    return op.cast(op.randint(low, high, x.shape, device=x.device, generator=generator), x.dtype)


def _retain_grad(x: Tensor) -> None:
    """PyTorch's: keeps the gradient of a tensor that is not a leaf in its grad, during each backward."""
    if not x.requires_grad:
        raise _core.ArgumentValueError("retain_grad: found a tensor that does not require a gradient, expected one that does")
    if x.is_leaf:
        return

    def keep(gradient: Tensor) -> None:
        x.grad = gradient.detach() if x.grad is None else x.grad + gradient.detach()

    x.register_hook(keep)


def _sum_to_size(x: Tensor, *size: int | Sequence[int]) -> Tensor:
    """PyTorch's: x summed over the axes that broadcasting from this size adds or repeats."""
    return _compat("_torch_linalg").sum_to_size(x, size)


def _take(x: Tensor, indices: Any, axis: int | None = None, *, mode: str | None = None, dim: int | None = None) -> Tensor:
    """The elements at the indices along axis; without one, of the flattened tensor."""
    axis = axis if dim is None else dim
    more = {} if mode is None else {"mode": mode}
    return op.take(op.reshape(x, [-1]), indices, axis=0, **more) if axis is None else op.take(x, indices, axis=axis, **more)


class GradFunction:
    """What x.grad_fn gives: the name of the op that made the tensor."""

    def __init__(self, name: str) -> None:
        self._name = name

    def name(self) -> str:
        """The op's name."""
        return self._name

    def __repr__(self) -> str:
        return f"<{self._name}>"


class TensorMembers:
    """Methods of PyTorch, then those of NumPy."""

    abs_ = _in_place("abs")
    absolute_ = _in_place("absolute")
    addbmm = _pytorchs("addbmm")
    addbmm_ = _in_place("addbmm")
    addmm_ = _in_place("addmm")
    addmv = _pytorchs("addmv")
    addmv_ = _in_place("addmv")
    addr = _pytorchs("addr")
    addr_ = _in_place("addr")
    adjoint = _pytorchs("adjoint")
    allclose = _pytorchs("allclose")
    as_strided = _pytorchs("as_strided")
    baddbmm_ = _in_place("baddbmm")
    bernoulli = _pytorchs("bernoulli")
    bernoulli_ = _drawn("bernoulli_", _bernoulli_draw)
    cauchy_ = _drawn("cauchy_", _cauchy_draw)
    cdouble = _cast("complex128")
    cfloat = _cast("complex64")
    char = _cast("int8")
    cholesky_inverse = _pytorchs("cholesky_inverse")
    cholesky_solve = _pytorchs("cholesky_solve")
    clamp_max = _pytorchs("clamp_max")
    clamp_max_ = _in_place("clamp_max")
    clamp_min = _pytorchs("clamp_min")
    clamp_min_ = _in_place("clamp_min")
    conj_physical = _pytorchs("conj_physical")
    conj_physical_ = _in_place("conj_physical")
    cross = _pytorchs("cross")
    cuda = _cuda
    cumprod_ = _in_place("cumprod")
    cumsum_ = _in_place("cumsum")
    diag_embed = _pytorchs("diag_embed")
    diagonal_scatter = _pytorchs("diagonal_scatter")
    dist = _pytorchs("dist")
    dsplit = _pytorchs("dsplit")
    eq_ = _in_place("eq")
    exponential_ = _drawn("exponential_", _exponential_draw)
    fill_diagonal_ = _fill_diagonal
    float_power = _pytorchs("float_power")
    float_power_ = _in_place("float_power")
    frexp = _pytorchs("frexp")
    ge_ = _in_place("ge")
    geometric_ = _drawn("geometric_", _geometric_draw)
    ger = _pytorchs("ger")
    get_device = _get_device
    greater_ = _in_place("greater")
    greater_equal_ = _in_place("greater_equal")
    gt_ = _in_place("gt")
    histc = _pytorchs("histc")
    histogram = _pytorchs("histogram")
    hsplit = _pytorchs("hsplit")
    igamma = _pytorchs("igamma")
    igamma_ = _in_place("igamma")
    igammac = _pytorchs("igammac")
    igammac_ = _in_place("igammac")
    index_reduce = _pytorchs("index_reduce")
    index_reduce_ = _in_place("index_reduce")
    is_conj = _pytorchs("is_conj")
    is_inference = _pytorchs("is_inference")
    is_neg = _pytorchs("is_neg")
    is_nonzero = _pytorchs("is_nonzero")
    is_same_size = _pytorchs("is_same_size")
    is_signed = _pytorchs("is_signed")
    istft = _pytorchs("istft")
    kron = _pytorchs("kron")
    ldexp_ = _in_place("ldexp")
    le_ = _in_place("le")
    less_ = _in_place("less")
    less_equal_ = _in_place("less_equal")
    log_normal_ = _drawn("log_normal_", _log_normal_draw)
    logaddexp2 = _pytorchs("logaddexp2")
    logdet = _pytorchs("logdet")
    lt_ = _in_place("lt")
    lu = _pytorchs("lu")
    lu_solve = _pytorchs("lu_solve")
    masked_scatter = _pytorchs("masked_scatter")
    masked_scatter_ = _in_place("masked_scatter")
    mode = _pytorchs("mode")
    msort = _pytorchs("msort")
    multinomial = _pytorchs("multinomial")
    mvlgamma = _pytorchs("mvlgamma")
    mvlgamma_ = _in_place("mvlgamma")
    nan_to_num = _nan_to_num
    narrow_copy = _pytorchs("narrow_copy")
    ne_ = _in_place("ne")
    not_equal_ = _in_place("not_equal")
    pinverse = _pytorchs("pinverse")
    polygamma = _polygamma
    polygamma_ = _polygamma_in_place
    put_ = _in_place("put")
    random_ = _drawn("random_", _random_draw)
    renorm = _pytorchs("renorm")
    renorm_ = _in_place("renorm")
    resolve_conj = _pytorchs("resolve_conj")
    resolve_neg = _pytorchs("resolve_neg")
    scatter_reduce_ = _in_place("scatter_reduce")
    select_scatter = _pytorchs("select_scatter")
    slice_scatter = _pytorchs("slice_scatter")
    split_with_sizes = _pytorchs("split_with_sizes")
    stft = _pytorchs("stft")
    sum_to_size = _sum_to_size
    triangular_solve = _pytorchs("triangular_solve")
    tril_ = _in_place("tril")
    triu_ = _in_place("triu")
    type = _type
    unique_consecutive = _pytorchs("unique_consecutive")
    unsafe_chunk = _pytorchs("unsafe_chunk")
    unsafe_split = _pytorchs("unsafe_split")
    vsplit = _pytorchs("vsplit")
    choose = _choose
    compress = _compress
    partition = _partition
    retain_grad = _retain_grad
    searchsorted = _numpys("searchsorted")
    take = _take

    @property
    def flat(x: Tensor) -> FlatElements:
        """NumPy's: the elements in row-major order, to read and to write."""
        return FlatElements(x)

    @property
    def grad_fn(x: Tensor) -> GradFunction | None:
        """PyTorch's: by its name the op that made a tensor with a history; None of a leaf."""
        return None if x.is_leaf or not x.requires_grad else GradFunction(x.grad_op)

    @property
    def is_cuda(x: Tensor) -> bool:
        """Is it on a CUDA device?"""
        return x.device.backend == "cuda"

    @property
    def is_cpu(x: Tensor) -> bool:
        """Is it on the host?"""
        return x.device.backend == "cpu"

    @property
    def is_sparse(x: Tensor) -> bool:
        """False: all tensors are dense."""
        return False

    @property
    def layout(x: Tensor) -> str:
        """PyTorch's name of it, 'torch.strided': all tensors are dense."""
        return "torch.strided"

    @property
    def is_quantized(x: Tensor) -> bool:
        """False: no tensor is quantized."""
        return False


extend(_core.Tensor, TensorMembers)
