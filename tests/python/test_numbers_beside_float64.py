"""A number in the position of a tensor counts in float64 beside float64 tensors: as a float64 tensor without axes does, in every entry.

A formula that hands the number to a call without a tensor must not round it to float32 on the way.
"""

import sys
from pathlib import Path

import backplane as bp
import numpy as np
import pytest
from backplane import _core

sys.path.insert(0, str(Path(__file__).resolve().parent / "laws"))

from law_inputs import arrays_of, is_array, tensors_of  # noqa: E402
from law_registry import registry  # noqa: E402
from law_running import call, to_array  # noqa: E402

NUMBER = 0.30000000000000004  # far from every float32


def promoting(case):
    return [arg.name for arg in case.entry.args if arg.is_tensor and not arg.is_list and arg.promote and "float64" in arg.accepts and arg.name in case.sample]


def takes_numbers(case):
    return not case.error and "host" not in case.entry.flags and case.entry.compare not in ("distribution", "metadata", "up_to_phase") and len(promoting(case)) > 1


CASES = [case for case in registry() if takes_numbers(case)]


def values_and_gradients(case, arguments, name):
    """None where the op refuses the arguments."""
    followed = [other for other in promoting(case) if other != name and isinstance(arguments.get(other), bp.Tensor) and arguments[other].dtype is bp.float64]
    for other in followed:
        arguments[other].requires_grad = True
    try:
        results = call(case, arguments)
        ends = [r for r in results if r.requires_grad]
        slopes = bp.gradients(ends, [arguments[other] for other in followed], [bp.ones_like(end) for end in ends]) if ends and followed else []
    except (bp.BackplaneError, TypeError):
        return None
    return [to_array(r) for r in (*results, *(s for s in slopes if s is not None))]


@pytest.mark.parametrize("forced", [False, True], ids=["kernel", "primitives"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_number_counts_as_a_float64_tensor(case, forced):
    arrays = arrays_of(case, "float64", own_dtype=False)
    before = _core.force_decomposition(forced)
    try:
        for name in promoting(case):
            rest = tensors_of(case, {k: v for k, v in arrays.items() if k != name}, bp.float64)
            if not is_array(arrays[name]) or not any(isinstance(rest.get(other), bp.Tensor) for other in promoting(case)):
                continue
            found, expected = (
                values_and_gradients(case, {**rest, name: value}, name)
                for value in (NUMBER, bp.asarray(NUMBER, dtype=bp.float64))
            )
            if found is None or expected is None:
                continue
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14, err_msg=name)
    finally:
        _core.force_decomposition(before)
