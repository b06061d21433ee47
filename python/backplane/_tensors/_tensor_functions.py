"""Functions of the package as methods of Tensor, whose first argument is the tensor."""

from __future__ import annotations

from .. import _core
from .._api import _array_edits, _elementwise_functions, _indexing_functions, _joining_functions, _linear_algebra_functions, _manipulation_functions, _padding, _quantiles, _searching_functions, _set_functions, _statistical_functions, _utility_functions
from ._members import extend
from .._calls._ops import NAMESPACE, ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .._core import Tensor

op = getattr(ops, NAMESPACE)


def _outer(x1: Tensor, x2: Tensor) -> Tensor:
    """Each element of one vector times each of the other."""
    return op.outer(x1, x2)


class TensorMembers:
    """In the order of their names."""

    aminmax = _statistical_functions.aminmax
    argpartition = _array_edits.argpartition
    bincount = _statistical_functions.bincount
    chunk = _joining_functions.chunk
    corrcoef = _statistical_functions.corrcoef
    cov = _statistical_functions.cov
    diag = _manipulation_functions.diag
    diagflat = _manipulation_functions.diagflat
    expand = _manipulation_functions.expand
    flatnonzero = _searching_functions.flatnonzero
    flatten = _manipulation_functions.flatten
    gather = _indexing_functions.gather
    index_copy = _indexing_functions.index_copy
    index_copy_ = _indexing_functions.index_copy_
    index_fill = _indexing_functions.index_fill
    index_fill_ = _indexing_functions.index_fill_
    index_select = _indexing_functions.index_select
    is_complex = _utility_functions.is_complex
    is_floating_point = _utility_functions.is_floating_point
    kthvalue = _searching_functions.kthvalue
    masked_select = _indexing_functions.masked_select
    median = _quantiles.median
    nanmedian = _quantiles.nanmedian
    nanquantile = _quantiles.nanquantile
    narrow = _manipulation_functions.narrow
    nonzero = _searching_functions.nonzero
    norm = _linear_algebra_functions.norm
    numel = _utility_functions.numel
    outer = _outer
    pad = _padding.pad
    quantile = _quantiles.quantile
    ravel = _manipulation_functions.ravel
    repeat_interleave = _manipulation_functions.repeat_interleave
    rot90 = _manipulation_functions.rot90
    round = _elementwise_functions.round
    scatter = _indexing_functions.scatter
    scatter_ = _indexing_functions.scatter_
    scatter_add = _indexing_functions.scatter_add
    scatter_add_ = _indexing_functions.scatter_add_
    scatter_reduce = _indexing_functions.scatter
    squeeze = _manipulation_functions.squeeze
    swapaxes = _manipulation_functions.swapaxes
    swapdims = _manipulation_functions.swapdims
    t = _manipulation_functions.t
    take_along_dim = _indexing_functions.take_along_dim
    tensor_split = _joining_functions.tensor_split
    topk = _searching_functions.topk
    unbind = _joining_functions.unbind
    unflatten = _manipulation_functions.unflatten
    unique = _set_functions.unique


extend(_core.Tensor, TensorMembers)
