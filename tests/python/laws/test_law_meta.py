"""meta: the dtypes and shapes that the entry's rules give, without running anything, are those of the results.

Over every dtype that the entry accepts, and over pairs of dtypes that promote.
"""

import backplane as bp
import numpy as np
import pytest
from law_inputs import arrays_of, tensors_of
from law_registry import cases
from law_running import function_of, results_of

INTEGERS = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")


def inferable(case):
    return "dynamic" not in case.entry.flags


def dtypes_of(case):
    found = [set(arg.accepts) for arg in case.entry.args if arg.is_tensor and arg.promote and arg.name in case.sample]
    return sorted(set.intersection(*found)) if found else ["float64"]


@pytest.mark.parametrize("case", cases("meta", inferable))
def test_inferred_is_real(case):
    function = function_of(case.entry)
    for dtype in dtypes_of(case):
        arrays = arrays_of(case, dtype, own_dtype=False)
        arguments = tensors_of(case, arrays, dtype=getattr(bp, dtype))
        inferred = function.infer(**arguments)
        results = results_of(function(**tensors_of(case, arrays, dtype=getattr(bp, dtype))))
        assert [(r.dtype, r.shape) for r in results] == inferred, dtype


def promotes_two(case):
    return sum(arg.is_tensor and arg.promote and "tensor" in case.sample.get(arg.name, {}) for arg in case.entry.args) == 2


def compute_dtype(case, a, b):
    """By the array API's table, and the design's where that is silent; None where there is none."""
    try:
        return bp.result_type(getattr(bp, a), getattr(bp, b))
    except bp.DtypeError:
        return None


@pytest.mark.parametrize("case", cases("meta", lambda case: promotes_two(case) and "elementwise" in case.entry.flags))
def test_two_dtypes_promote_as_the_table_says(case):
    names = [arg.name for arg in case.entry.args if arg.is_tensor and arg.promote and "tensor" in case.sample.get(arg.name, {})]
    rule = case.entry.results[0][1]
    accepts = case.entry.arg(names[0]).accepts
    for a in accepts:
        for b in accepts:
            arrays = arrays_of(case, a, own_dtype=False)
            arrays[names[1]] = np.abs(arrays[names[1]]) if np.asarray(arrays[names[1]]).dtype.kind != "b" else arrays[names[1]]
            arguments = tensors_of(case, arrays, dtype=bp.bool if a == "bool" else getattr(bp, a))
            arguments[names[1]] = arguments[names[1]].astype(getattr(bp, b))
            common = compute_dtype(case, a, b)
            if common is None or common.name not in accepts:
                with pytest.raises(bp.DtypeError):
                    function_of(case.entry).infer(**arguments)
            elif rule == "compute" and "to_floating" not in case.entry.flags:
                assert function_of(case.entry).infer(**arguments)[0][0] is common, (a, b)
