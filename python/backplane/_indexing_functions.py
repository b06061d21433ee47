"""Elements chosen by position or value, and products of vectors, under NumPy's and PyTorch's names: all by ops."""

from . import _core
from ._array_functions import nonzero
from ._ops import NAMESPACE, ops
from ._scatter import scatter
from ._manipulation_functions import normalized_axis, ravel
from ._tensor_argument import require_tensor, takes_tensor, tensor_like

op = getattr(ops, NAMESPACE)

__all__ = [
    "bucketize",
    "dot",
    "ediff1d",
    "flatnonzero",
    "gather",
    "index_select",
    "inner",
    "intersect1d",
    "polyval",
    "scatter_add",
    "setdiff1d",
    "take_along_dim",
    "union1d",
    "unique",
    "vdot",
]


@takes_tensor
def gather(x, dim, index):
    """The elements of x at position index[i, j, ...] along dim and at i, j, ... of the other axes; index's shape.

    index has x's number of axes, and is nowhere longer than x but along dim.
    """
    require_tensor("gather", "index", index)
    axis = normalized_axis("gather", dim, x.ndim, "dim")
    if index.ndim != x.ndim or any(n > m for place, (n, m) in enumerate(zip(index.shape, x.shape)) if place != axis):
        raise _core.ShapeError(f"gather: argument index: found shape {tuple(index.shape)}, expected at most {tuple(x.shape)} but along dim")
    stops = [x.shape[axis] if place == axis else size for place, size in enumerate(index.shape)]
    part = x if stops == list(x.shape) else op.slice(x, list(range(x.ndim)), [0] * x.ndim, stops, [1] * x.ndim)
    return op.take_along_axis(part, index, axis=axis)


@takes_tensor
def index_select(x, dim, index):
    """The parts of x at the positions of a vector, along dim."""
    require_tensor("index_select", "index", index)
    return op.take(x, index, axis=dim)


@takes_tensor
def take_along_dim(x, indices, dim=None):
    """The elements of x at positions along dim, the other axes broadcast; without dim, of x and indices flattened."""
    require_tensor("take_along_dim", "indices", indices)
    return op.take_along_axis(ravel(x), ravel(indices), axis=0) if dim is None else op.take_along_axis(x, indices, axis=dim)


@takes_tensor
def scatter_add(x, dim, index, src):
    """x with src[i, j, ...] added at position index[i, j, ...] of dim and at i, j, ... of the others."""
    return scatter(x, dim, index, src, "sum")


@takes_tensor
def flatnonzero(x, /):
    """The positions, in row-major order, of the elements other than 0."""
    return nonzero(ravel(x))[0]


@takes_tensor
def bucketize(x, boundaries, *, right=False):
    """For each element the number of rising boundaries below it; with right, of those not above it."""
    require_tensor("bucketize", "boundaries", boundaries)
    return op.searchsorted(boundaries, x, side="right" if right else "left")


@takes_tensor
def unique(x, /, return_index=False, return_inverse=False, return_counts=False):
    """The elements of x, each once and in rising order; each NaN is one of its own.

    On request a tuple with them: the first positions of each in x flattened, positions that rebuild x from them, and how often
    each occurs.
    """
    if not (return_index or return_inverse or return_counts):
        return op.unique_values(x)
    values, first, inverse, counts = op.unique_all(x)
    wanted = zip((return_index, return_inverse, return_counts), (first, inverse, counts))
    return (values, *(found for wish, found in wanted if wish))


@takes_tensor
def union1d(x, y, /):
    """The elements of x or y, each once and in rising order."""
    return op.unique_values(op.concat([ravel(x), ravel(y)], axis=0))


@takes_tensor
def intersect1d(x, y, /):
    """The elements of both x and y, each once and in rising order."""
    require_tensor("intersect1d", "y", y)
    once = op.unique_values(x)
    return once[op.isin(once, y)]


@takes_tensor
def setdiff1d(x, y, /):
    """The elements of x that y has not, each once and in rising order."""
    require_tensor("setdiff1d", "y", y)
    once = op.unique_values(x)
    return once[op.isin(once, y, invert=True)]


@takes_tensor
def ediff1d(x, /, to_end=None, to_begin=None):
    """The differences of neighbours among x's elements in row-major order, between to_begin and to_end."""
    parts = [to_begin, op.diff(ravel(x)), to_end]
    return op.concat([ravel(tensor_like(part, x)) for part in parts if part is not None], axis=0)


@takes_tensor
def polyval(p, x, /):
    """The polynomial with coefficients p, the highest power's first, at x."""
    if p.ndim != 1:
        raise _core.ShapeError(f"polyval: argument p: found {p.ndim} dimensions, expected a vector")
    x = tensor_like(x, p)
    value = op.zeros_like(op.add(x, op.sum(p)))
    for place in range(p.shape[0]):
        value = op.add(op.multiply(value, x), p[place])
    return value


@takes_tensor
def dot(x, y, /):
    """NumPy's product: of vectors their sum of products (without conjugates), of matrices matmul, with a number multiply.

    Of more axes the sums over x's last and y's last but one.
    """
    require_tensor("dot", "y", y)
    if x.ndim == 0 or y.ndim == 0:
        return op.multiply(x, y)
    if y.ndim <= 2:
        return op.matmul(x, y)
    from .linalg import tensordot

    return tensordot(x, y, axes=((-1,), (-2,)))


@takes_tensor
def inner(x, y, /):
    """Sums of products over the last axes of x and y, without conjugates; with a number multiply."""
    require_tensor("inner", "y", y)
    if x.ndim == 0 or y.ndim == 0:
        return op.multiply(x, y)
    from .linalg import tensordot

    return tensordot(x, y, axes=((-1,), (-1,)))


@takes_tensor
def vdot(x, y, /):
    """The sum of products of x's conjugate and y, both flattened."""
    require_tensor("vdot", "y", y)
    return op.vecdot(ravel(x), ravel(y))
