"""range: a number just outside the integer dtype of the tensors beside it is refused, or the result is what wide integers give.

In every position that promotes and takes a number at all, by kernels and by decompositions.
"""

import backplane as bp
import numpy as np
import pytest
from backplane import _core
from law_inputs import arrays_of, is_array, tensors_of
from law_registry import cases
from law_running import call, to_array
from test_law_values import accepted, setting

NARROW = ("int8", "uint8", "int16", "uint16", "int32", "uint32")
EXACT = {"int64": (2**63, -(2**63) - 1), "uint64": (-1, 2**64)}


def positions(case):
    """Of the tensors that promote: those in whose place a number may stand, another tensor being left to say the dtype."""
    names = [arg.name for arg in case.entry.args if arg.is_tensor and arg.promote and not arg.is_list and "tensor" in case.sample.get(arg.name, {})]
    return names if len(names) > 1 else []


def integers(case):
    return [dtype for dtype in accepted(case) if dtype in NARROW or dtype in EXACT]


def outcome(case, arrays, dtype=None):
    """Arrays of integers and floats, or the error."""
    try:
        return [to_array(result) for result in call(case, tensors_of(case, arrays, dtype)) if isinstance(result, bp.Tensor)]
    except bp.BackplaneError as error:
        return error


def takes_numbers(case):
    return bool(positions(case)) and bool(integers(case)) and case.entry.compare != "distribution"


def check(case, dtype, name):
    arrays = arrays_of(case, dtype)
    if isinstance(outcome(case, {**arrays, name: 1}), bp.BackplaneError):
        return  # no number stands here
    wide = {key: value.astype(np.int64 if dtype in NARROW else np.float32) if key in positions(case) and is_array(value) and value.dtype.kind in "iu" else value for key, value in arrays.items()}
    limits = np.iinfo(dtype)
    for number in EXACT.get(dtype) or (int(limits.max) + 1, int(limits.min) - 1):
        found = outcome(case, {**arrays, name: number})
        if isinstance(found, bp.BackplaneError):
            assert isinstance(found, ValueError), (name, number, found)  # as "64 bits", or of the call with that number at all
            continue
        for result, expected in zip(found, outcome(case, {**wide, name: number if dtype in NARROW else float(number)}), strict=True):
            np.testing.assert_allclose(result.astype(float), expected.astype(float), rtol=1e-5, err_msg=f"{name}={number}")


@pytest.mark.parametrize("case", cases("range", takes_numbers))
def test_a_number_beyond_the_dtype_never_wraps(case):
    for decomposed in (False, True):
        with setting(_core.force_decomposition, decomposed):
            for dtype in integers(case):
                for name in positions(case):
                    check(case, dtype, name)
