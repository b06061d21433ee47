"""The operands that entries refuse and another form of the op takes (_other_forms.py), by kind, so that a call chooses before anything runs."""

from .. import _core
from ._ops import NAMESPACE

_REDUCTIONS = "all any argmax argmin count_nonzero logsumexp max mean min nanmax nanmean nanmin nanprod nanstd nansum nanvar prod ptp std sum var"
_OF_KIND = {
    "bool": "abs ceil diff dot floor inner isfinite isinf isnan isneginf isposinf matmul signbit trunc vdot",
    "integer": "matrix_power",
    "complex": "std var",
    "number": f"cumulative_prod cumulative_sum log_softmax softmax {_REDUCTIONS}",
    "no_axis": "cumulative_prod cumulative_sum",
}

_core.set_form_kinds({kind: [f"{NAMESPACE}::{name}" for name in names.split()] for kind, names in _OF_KIND.items()})
