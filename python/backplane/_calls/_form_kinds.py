"""The operands that entries refuse and another form of the op takes (_other_forms.py), by kind, so that a call chooses before anything runs."""

from .. import _core
from ._ops import NAMESPACE

_OF_KIND = {
    "bool": "diff",
    "integer": "matrix_power",
    "number": "cumulative_prod cumulative_sum log_softmax softmax",
    "no_axis": "cumulative_prod cumulative_sum",
}

_core.set_form_kinds({kind: [f"{NAMESPACE}::{name}" for name in names.split()] for kind, names in _OF_KIND.items()})
