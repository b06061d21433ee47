"""First-class dimensions: dims() makes objects that name axes.

    i, j, k = bp.dims(3)
    (A[i, k] * B[k, j]).sum(k).order(i, j)

Indexing with a Dim names an axis. Functions are batched over named axes, and match them by the Dim, not by position. order() makes
named axes positional again. The design follows torchdim (functorch.dim): DeVito, "First-class dimensions", 2022.
"""

from __future__ import annotations

from .. import _core
from . import _members
from ._calls import asarray, call
from ._index import get_item, set_item
from ._tensor import Dim, DimTensor, dims

__all__ = ["Dim", "DimTensor", "dims"]

_members.add_to(DimTensor)
_core.set_named_dims(DimTensor, call, get_item, set_item, asarray)
