"""expect: a sample that states results gets them. padding: from the count on, a padded result is zero."""

import backplane as bp
import numpy as np
import pytest
from law_inputs import array_of, arrays_of, is_array, is_array_list, tensors_of
from law_registry import cases
from law_running import assert_same, call, to_array


def dtypes_of(case):
    """Real dtypes of every promoting tensor; no dtype in particular where no tensor promotes."""
    sets = [set(arg.accepts) for arg in case.entry.args if arg.is_tensor and arg.promote and arg.name in case.sample]
    return [name for name in sorted(set.intersection(*sets)) if not name.startswith("complex")] if sets else ["float64"]


def holds_stated_values(case, arrays):
    """An integer dtype holds no fraction that a sample states."""
    for name, value in arrays.items():
        spec = case.sample[name]
        stated = spec.get("tensors") or [spec.get("tensor")]
        values = [value] if is_array(value) else value if is_array_list(value) else []
        for one, array in zip(stated, values):
            if array is None or array.dtype.kind not in "biu":
                continue
            if not np.array_equal(array_of({**one, "dtype": "float64"}, "float64", np.random.default_rng(0)), array.astype(np.float64)):
                return False
    return True


@pytest.mark.parametrize("case", cases("expect", lambda case: case.expect))
def test_a_sample_gets_the_results_that_it_states(case):
    tried = 0
    for dtype in dtypes_of(case):
        arrays = arrays_of(case, dtype)
        if not holds_stated_values(case, arrays):
            continue
        results = call(case, tensors_of(case, arrays, dtype=getattr(bp, dtype)))
        assert len(results) == len(case.expect)
        for result, stated in zip(results, case.expect):
            expected = array_of({**stated, "dtype": "float64"}, "float64", np.random.default_rng(0))
            found = to_array(result)
            assert_same(case, found, expected.astype(found.dtype), result.dtype if found.dtype.kind == "f" else None)
        tried += 1
    assert tried, "no dtype of the op holds the values that the sample states"


@pytest.mark.parametrize("case", cases("padding", lambda case: case.entry.padded))
def test_rows_beyond_the_count_are_zero(case):
    for dtype in dtypes_of(case):
        *results, count = call(case, tensors_of(case, arrays_of(case, dtype)))
        for result, padded in zip(results, case.entry.padded):
            if padded:
                assert 0 <= int(count) <= result.shape[0]
                assert not to_array(result)[int(count) :].any()
