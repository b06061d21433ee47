"""half: on float16 and bfloat16 an op that computes by a formula gives what float32 gives, rounded once; so do its derivatives.

Arguments are scaled so that steps of the formula leave the range of a half float where the result does not.
"""

import backplane as bp
import numpy as np
import pytest
from law_inputs import arrays_of, is_array, leaves, tensors_of
from law_registry import INEXACT, cases
from law_running import call, differentiable_results, to_array

HALF = ("float16", "bfloat16")
SCALES = (1.0, 180.0, 2.0**-9)


def rounds(case):
    promoting = [arg for arg in case.entry.args if arg.is_tensor and arg.promote and arg.name in case.sample]
    stated = case.entry.compare not in ("distribution", "metadata", "exact") and not any(arg.type in ("Generator", "Dtype") for arg in case.entry.args)
    return stated and bool(case.entry.rules["decompose"]) and any(set(HALF) <= set(arg.accepts) for arg in promoting)


def is_half(tensor):
    return tensor.dtype.name in HALF


def wide(value):
    if isinstance(value, list):
        return [wide(item) for item in value]
    return value.astype(bp.float32) if isinstance(value, bp.Tensor) and is_half(value) else value


def scaled(case, arrays, factor):
    return {name: value * factor if is_array(value) and value.dtype.kind == "f" and case.entry.arg(name).promote else value for name, value in arrays.items()}


def assert_rounded_once(found, expected):
    """Within one unit in the last place of what fits into found's dtype."""
    info, limit = bp.finfo(found.dtype), float(bp.finfo(found.dtype).max)
    found, expected = to_array(found).astype(np.float64), to_array(expected).astype(np.float64)
    fits = np.isfinite(expected) & (abs(expected) < limit)
    unit = float(info.eps) * np.maximum(abs(expected), float(info.smallest_normal))
    with np.errstate(invalid="ignore"):
        wrong = fits & ~(abs(found - expected) <= unit * 1.01)
    assert not wrong.any(), f"found {found[wrong][:4]}, of float32 {expected[wrong][:4]}"


@pytest.mark.parametrize("case", cases("half", rounds))
def test_results_are_rounded_once(case):
    for dtype in HALF:
        for factor in SCALES:
            arrays = scaled(case, arrays_of(case, dtype, own_dtype=False), factor)
            arguments = tensors_of(case, arrays, getattr(bp, dtype))
            try:
                expected = call(case, {name: wide(value) for name, value in arguments.items()})
            except bp.BackplaneError:  # scaled beyond what the op takes
                continue
            for found, reference in zip(call(case, arguments), expected):
                if is_half(found) and reference.dtype is bp.float32:
                    assert_rounded_once(found, reference)


def differentiates(case):
    return rounds(case) and bool(case.entry.differentiable)


def gradients_of(case, arguments):
    inputs = [tensor.requires_grad_() for _, _, tensor in leaves(arguments, [arg.name for arg in case.entry.differentiable]) if tensor.dtype.name in INEXACT]
    ends = [result for result in differentiable_results(case, call(case, arguments)) if result.requires_grad]
    weights = [bp.reshape(bp.remainder(bp.arange(end.size, dtype=bp.float32) * 5, 7) - 2.5, end.shape).astype(end.dtype) for end in ends]
    return bp.gradients(ends, inputs, weights) if ends and inputs else []


@pytest.mark.parametrize("case", cases("half", differentiates))
def test_gradients_are_those_of_float32(case):
    """To a few units of the largest, or of 0.05: a formula may read the op's result, which was rounded, and cotangents of several steps are summed."""
    for dtype in HALF:
        arrays = arrays_of(case, dtype, own_dtype=False)
        arguments = tensors_of(case, arrays, getattr(bp, dtype))
        expected = gradients_of(case, {name: wide(value) for name, value in arguments.items()})
        for found, reference in zip(gradients_of(case, arguments), expected):
            if found is None or not is_half(found) or reference is None or not found.size:
                continue
            found, reference, info = to_array(found).astype(np.float64), to_array(reference).astype(np.float64), bp.finfo(found.dtype)
            fits = abs(reference) < float(info.max)
            largest = abs(np.where(fits, reference, 0)).max()
            wrong = fits & ~(abs(found - reference) <= 8 * float(info.eps) * max(largest, 0.05))
            assert not wrong.any(), f"found {found[wrong][:4]}, of float32 {reference[wrong][:4]}"
