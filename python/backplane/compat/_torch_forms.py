"""What calls of backplane.compat.torch mean where it takes statements: the list of names (python/spellings/torch.txt) calls these functions.

Making tensors stands in _torch_creation.py, positions and edits in _torch_edits.py.
"""

from __future__ import annotations

import math

from .. import _core, linalg
from .._api._lower_median import lower_median
from .._api._einsum import einsum as einsum_of
from .._api._linear_algebra_functions import norm as norm_of
from .._api._manipulation_functions import broadcast_arrays, normalized_axis, ravel, swapaxes
from .._api._numeric_functions import cumulative_trapezoid, logaddexp2, polar  # noqa: F401
from .._api._numeric_functions import gradient as gradient_of
from .._calls._ops import NAMESPACE, ops
from .._api._statistical_functions import histogram as histogram_of
from .._runtime._system import devices
from .._runtime._wraps import named_tuple
from . import _torch_autograd_functional as functional_derivatives  # noqa: F401
from . import _torch_amp as amp  # noqa: F401
from . import _torch_checkpoint as checkpointing  # noqa: F401
from . import _torch_cuda_amp as cuda_amp  # noqa: F401
from ._numpy_bits import frexp  # noqa: F401
from ._numpy_forms import tensorinv, tensorsolve  # noqa: F401
from ._torch_autograd import *
from ._torch_creation import *
from ._torch_edits import *
from ._torch_linalg import *
from ._torch_signal import *
from ._torch_special import *
from ._torch_files import *
from ._torch_function import *

op = getattr(ops, NAMESPACE)


# ---- arguments ----------------------------------------------------------------------------------------------------


def dims(dim):
    """The axes. PyTorch reads an empty list as all axes."""
    return None if isinstance(dim, (tuple, list)) and not dim else dim


def tensors_of(tensors):
    """The tensors, which a call may give as one list."""
    return tuple(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors


def broadcast_tensors(tensors):
    return broadcast_arrays(*tensors_of(tensors))


def cast(x, dtype):
    return x if dtype is None else op.cast(x, dtype)


def functional(name):
    from .. import nn

    return getattr(nn.functional, name)


def device_count(backend):
    return sum(1 for device in devices() if device.device.backend == backend)


# ---- elementwise --------------------------------------------------------------------------------------------------


def changed(name, x, args, more):
    """The in-place method of this name."""
    return getattr(x, name)(*args, **more)


def imag(x):
    if x.dtype.kind != "complex floating":
        raise _core.DtypeError(f"imag: argument input: found {x.dtype.name}, expected complex elements")
    return op.imag(x)


def scaled(function, x, y, alpha):
    return function(x, y) if type(alpha) is int and alpha == 1 else function(x, y, alpha=alpha)


def quotient(x, y, rounding_mode):
    return op.divide(x, y) if rounding_mode is None else op.divide(x, y, rounding_mode=rounding_mode)


def clamp(x, low, high):
    if low is None and high is None:
        raise _core.ArgumentValueError("clamp: found no min and no max, expected at least one")
    return op.clip(x, low, high)


def equal(x, y):
    """Have two tensors the same shape and the same elements? A bool of Python's."""
    if x.shape != y.shape:
        return False
    same = op.all(op.equal(x, y))
    if not _core.has_values(same):
        raise _core.ArgumentValueError("equal: found a transform, inside which there is no one answer; use eq(input, other).all()")
    return bool(same)


def where(condition, x, y):
    if x is None and y is None:
        return nonzero(condition, True)
    if x is None or y is None:
        raise _core.ArgumentTypeError("where: found one of input and other, expected both or neither")
    return op.where(condition, x, y)


def addmv(x, matrix, vector, beta, alpha):
    """beta x + alpha (matrix @ vector), by addmm, which does not read x if beta is 0."""
    column = op.expand_dims(x, [-1]) if x.ndim else x
    return op.squeeze(op.addmm(column, matrix, op.expand_dims(vector, [-1]), beta=beta, alpha=alpha), [-1])


def addr(x, first, second, beta, alpha):
    return op.addmm(x, op.expand_dims(first, [-1]), op.expand_dims(second, [0]), beta=beta, alpha=alpha)


def addbmm(x, first, second, beta, alpha):
    """The sum of a batch of products is one product, over the batch and the inner axis together."""
    joined = op.reshape(op.moveaxis(first, 0, 1), [first.shape[1], -1])
    return op.addmm(x, joined, op.reshape(second, [-1, second.shape[-1]]), beta=beta, alpha=alpha)


def xlog1py(x, y):
    x, y = _core.asarray(x), _core.asarray(y)
    return op.where(op.logical_and(op.equal(x, 0), op.logical_not(op.isnan(y))), 0.0, op.multiply(x, op.log1p(y)))


def entropy_terms(x):
    return op.where(op.less(x, 0), -math.inf, op.negative(op.xlogy(x, x)))


# ---- reductions ---------------------------------------------------------------------------------------------------


def mean(function, x, dim, keepdim, dtype):
    if dtype is None and "floating" not in x.dtype.kind:
        raise _core.DtypeError(f"mean: argument input: found {x.dtype.name}, expected a floating or complex dtype; give dtype=, or cast it")
    return function(cast(x, dtype), dims(dim), keepdims=keepdim)


def extreme(name, x, dim, keepdim, other):
    """The largest element; over a dim a pair of values and indices; of two tensors the larger of each two elements."""
    if isinstance(dim, _core.Tensor):
        dim, other = None, dim
    if other is not None:
        return getattr(op, f"{name}imum")(x, other)
    return getattr(op, name)(x) if dim is None else getattr(op, name)(x, dim=dim, keepdim=keepdim)


def position(function, x, dim, keepdim):
    return function(x, dim, keepdims=keepdim)


def spread(name, x, dim, unbiased, keepdim, correction):
    """std and var, unbiased unless a call says otherwise: std(x, False), std(x, dim, unbiased=False), std(x, dim, correction=0)."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if unbiased is not None and correction is not None:
        raise _core.ArgumentTypeError(f"{name}: found unbiased and correction, expected one of them")
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    return getattr(op, name)(x, dims(dim), correction=correction, keepdims=keepdim)


def median(name, x, dim, keepdim):
    """The middle element, of two the smaller; over a dim with its position."""
    if dim is not None:
        return lower_median(name, x, dim, keepdim)
    return lower_median(name, ravel(x), 0, False).values


def mode(x, dim, keepdim):
    """The most frequent element along dim, of several the smallest, and the last position where it stands."""
    axis = normalized_axis("mode", dim, max(x.ndim, 1), "dim")
    pair = named_tuple("mode", ("values", "indices"))
    if x.ndim == 0:
        return pair(x, op.full([], 0, dtype=_core.int64))
    rows = op.moveaxis(x, axis, -1)
    counts = op.sum(op.equal(op.expand_dims(rows, -1), op.expand_dims(rows, -2)), -1, dtype=_core.int64)
    most = op.equal(counts, op.max(counts, -1, keepdims=True))
    value = op.min(op.where(most, rows, op.max(rows, -1, keepdims=True)), -1, keepdims=True)
    places = op.iota(rows.shape[-1], device=x.device)
    last = op.max(op.where(op.equal(rows, value), places, -1), -1, keepdims=True)
    found = (op.moveaxis(value, -1, axis), op.moveaxis(last, -1, axis))
    return pair(*(found if keepdim else (op.squeeze(part, [axis]) for part in found)))


def running(function, x, dim, dtype):
    return function(x, dim, dtype=dtype)


def gradient(x, spacing, dim, edge_order):
    """Always a list of tensors, one for each axis."""
    steps = tuple(spacing) if isinstance(spacing, (tuple, list)) else (spacing,)
    found = gradient_of(x, *steps, axis=dim, edge_order=edge_order)
    return list(found) if isinstance(found, (tuple, list)) else [found]


def histc(x, bins, low, high):
    """Counts of the elements in bins of one width, in x's dtype; between the least and the largest element where low is high."""
    limits = None if low == high else (float(low), float(high))
    counts, edges = histogram_of(ravel(x), bins, limits)
    return op.cast(counts, x.dtype)


def histogram(x, bins, range, weight, density):
    """Counts in the dtype of x, and the edges, by name."""
    counts, edges = histogram_of(ravel(x), bins, range, density, None if weight is None else ravel(weight))
    return named_tuple("histogram", ("hist", "bin_edges"))(op.cast(counts, x.dtype), op.cast(edges, x.dtype))


# ---- shapes -------------------------------------------------------------------------------------------------------


def exchanged(name, x, dim0, dim1):
    order = list(range(x.ndim)) or [0]
    first, second = (normalized_axis(name, dim, len(order), argument) for dim, argument in ((dim0, "dim0"), (dim1, "dim1")))
    return swapaxes(x, first, second) if x.ndim else x[...]


def cat(tensors, dim):
    """The tensors one after the other along dim; an empty vector adds nothing, whatever the shape of the others."""
    tensors = list(tensors)
    filled = [x for x in tensors if x.shape != (0,)]
    return op.concat(filled if filled and len(filled) < len(tensors) and filled[0].ndim > 1 else tensors, axis=dim)


def block_diag(tensors):
    """The matrices along the diagonal of one, zeros elsewhere."""
    blocks = [op.reshape(x, [1] * (2 - x.ndim) + list(x.shape)) for x in tensors]
    width, rows, before = sum(x.shape[1] for x in blocks), [], 0
    for x in blocks:
        left = op.full([x.shape[0], before], 0, dtype=x.dtype, device=x.device)
        before += x.shape[1]
        rows.append(op.concat([left, x, op.full([x.shape[0], width - before], 0, dtype=x.dtype, device=x.device)], axis=1))
    return op.concat(rows, axis=0)


def cartesian_prod(tensors):
    tensors = tensors_of(tensors)
    if len(tensors) == 1:
        return tensors[0]
    from .._api._creation_functions import meshgrid

    return op.reshape(op.stack(meshgrid(*tensors, indexing="ij"), axis=-1), [-1, len(tensors)])


def combinations(x, r, with_replacement):
    """The combinations of r elements of a vector, as rows."""
    import itertools

    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = [list(row) for row in choose(range(x.shape[0]), r)]
    return x[_core.asarray(places, dtype=_core.int64)] if places else op.full([0, r], 0, dtype=x.dtype)


def diag_embed(x, offset, dim1, dim2):
    """Matrices over dim1 and dim2 with the vectors along x's last axis on a diagonal."""
    size = x.shape[-1] + abs(offset)
    zeros = op.full([*x.shape[:-1], size, size], 0, dtype=x.dtype, device=x.device)
    found = op.diagonal_put(zeros, x, offset=offset, axis1=-2, axis2=-1)
    first, second = (normalized_axis("diag_embed", dim, found.ndim) for dim in (dim1, dim2))
    return op.moveaxis(found, [-2, -1], [first, second])


# ---- products -----------------------------------------------------------------------------------------------------


def vector_product(function, x, y):
    if x.ndim != 1 or y.ndim != 1:
        raise _core.ShapeError(f"{function.__name__}: found {x.ndim} and {y.ndim} dimensions, expected two vectors; use matmul")
    return function(x, y)


def cross(x, y, dim):
    """Along dim, or the first axis of size 3."""
    if dim is None:
        dim = next((axis for axis, size in enumerate(x.shape) if size == 3), None)
        if dim is None:
            raise _core.ShapeError(f"cross: argument input: found shape {tuple(x.shape)}, expected an axis of size 3")
    return linalg.cross(x, y, axis=dim)


def einsum(args):
    """einsum(text, x, y), or einsum(text, [x, y])."""
    text, *operands = args
    return einsum_of(text, *tensors_of(tuple(operands)))


def of_matrix(name, x):
    if name == "logdet":
        sign, log = linalg.slogdet(x)
        return op.where(op.less(sign, 0), math.nan, log)
    return getattr(linalg, {"inverse": "inv"}.get(name, name))(x)


def svd(x, some, compute_uv):
    """U, S and V, whose transpose is Vh."""
    if not compute_uv:
        raise _core.ArgumentValueError("svd: argument compute_uv: found False, expected True; use linalg.svdvals")
    u, s, vh = linalg.svd(x, full_matrices=not some)
    return named_tuple("svd", ("U", "S", "V"))(u, s, vh.mH)


def lstsq(a, b, rcond):
    if b.ndim == 1:
        raise _core.ShapeError("lstsq: argument B: found a vector, expected a matrix; use B[:, None]")
    return named_tuple("lstsq", ("solution", "residuals", "rank", "singular_values"))(*linalg.lstsq(a, b, rcond))


def norm(x, ord, dim, keepdim, dtype):
    x = cast(x, dtype)
    if ord is None and dim is None:
        found = linalg.vector_norm(ravel(x))
        return op.reshape(found, [1] * x.ndim) if keepdim else found
    return linalg.norm(x, ord, tuple(dim) if isinstance(dim, list) else dim, keepdim)


def cdist(x, y, p):
    """The p-norms of the differences between the rows of x and those of y."""
    return linalg.vector_norm(op.subtract(op.expand_dims(x, -2), op.expand_dims(y, -3)), axis=-1, ord=p)


# ---- questions and transforms -------------------------------------------------------------------------------------


def is_nonzero(x):
    if x.size != 1:
        raise _core.ArgumentValueError(f"is_nonzero: argument input: found {x.size} elements, expected one")
    return bool(x)


_RANKS = ("bool", "unsigned integer", "signed integer", "real floating", "complex floating")


def can_cast(from_, to):
    """May values be cast without the loss of a kind: a fraction, an imaginary part, a sign?"""
    source, target = (_core.as_dtype(dtype, "can_cast").kind for dtype in (from_, to))
    source, target = ("signed integer" if kind == "unsigned integer" else kind for kind in (source, target))
    return _RANKS.index(source) <= _RANKS.index(target)


def stacked_state(models):
    """The parameters and the buffers of several modules of one kind, stacked, by name."""
    models = list(models)
    parameters, buffers = ([dict(getattr(model, part)()) for model in models] for part in ("named_parameters", "named_buffers"))
    stacked = {name: op.stack([one[name].detach() for one in parameters]).requires_grad_(parameters[0][name].requires_grad) for name in parameters[0]}
    return stacked, {name: op.stack([one[name] for one in buffers]) for name in buffers[0]}


def variable(data, requires_grad=False):
    """Variable: the tensor itself, as tensors carry their own gradients."""
    return data.requires_grad_() if requires_grad else data


class _Switches:
    """Settings of a library that Backplane does not have: Backplane's kernels are always deterministic."""

    def __init__(self, available, **settings):
        self._available = available
        self.__dict__.update(settings)

    def is_available(self):
        """Is there a device for which the library would be used?"""
        return self._available()


class backends:
    """torch.backends: which devices there are, and settings without effect."""

    cudnn = _Switches(lambda: device_count("cuda") > 0, enabled=True, benchmark=False, deterministic=True, allow_tf32=False)
    mps = _Switches(lambda: False)
    cuda = _Switches(lambda: device_count("cuda") > 0, matmul=_Switches(lambda: device_count("cuda") > 0, allow_tf32=False))
