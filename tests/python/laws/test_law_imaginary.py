"""imaginary: a complex number in the place of a Scalar counts, in results of the dtype that is inferred, or is refused.

By kernels and by decompositions, in a real and a complex dtype. It counts where the imaginary part changes the result, or
not even the real part does.
"""

import backplane as bp
import numpy as np
import pytest
from backplane import _core
from law_inputs import arrays_of, tensors_of
from law_registry import cases
from law_running import function_of, results_of, to_array
from test_law_values import accepted, setting


def scalars(case):
    return [arg.name for arg in case.entry.args if arg.type == "Scalar" and not arg.is_list]


def outcome(case, arrays):
    """The results, or the error."""
    try:
        return results_of(function_of(case.entry)(**tensors_of(case, arrays)))
    except bp.BackplaneError as error:
        return error


def same(found, expected):
    return all(np.array_equal(to_array(a), to_array(b), equal_nan=True) for a, b in zip(found, expected, strict=True))


def check(case, arrays, name):
    stated = arrays.get(name)
    number = stated if isinstance(stated, (int, float)) and abs(stated) < 100 else 1
    found = outcome(case, {**arrays, name: number + 1j})
    if isinstance(found, bp.BackplaneError):
        assert isinstance(found, TypeError) or isinstance(outcome(case, {**arrays, name: number}), bp.BackplaneError), (name, found)
        return
    inferred = function_of(case.entry).infer(**tensors_of(case, {**arrays, name: number + 1j}))
    assert [result.dtype for result in found] == [dtype for dtype, _ in inferred], name
    assert found[0].dtype is bp.bool or found[0].dtype.kind == "complex floating", name
    if same(found, outcome(case, {**arrays, name: number})):
        assert same(found, outcome(case, {**arrays, name: number + 1})), name


@pytest.mark.parametrize("case", cases("imaginary", scalars))
def test_an_imaginary_part_counts_or_is_refused(case):
    for decomposed in (False, True):
        with setting(_core.force_decomposition, decomposed):
            for dtype in {"float32", "int64", "complex64"} & set(accepted(case)) or {"float64"}:
                for name in scalars(case):
                    check(case, arrays_of(case, dtype), name)
