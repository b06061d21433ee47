"""Calling ops and comparing results, in the terms of the registry: tolerance = c * eps(dtype) * growth(n)."""

import backplane as bp
import numpy as np
from law_inputs import tensors_of

INEXACT = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")


def function_of(entry):
    namespace, _, _ = entry.name.partition("::")
    return getattr(getattr(bp.ops, namespace), entry.python_name)


def results_of(value):
    return list(value) if isinstance(value, tuple) else [value]


def call(case, arguments, **more):
    """The op's results as a list."""
    return results_of(function_of(case.entry)(**arguments, **more))


def call_arrays(case, arrays, dtype=None):
    return [to_array(result) for result in call(case, tensors_of(case, arrays, dtype))]


def to_array(tensor):
    tensor = tensor.detach()
    if tensor.dtype is bp.bfloat16:
        tensor = tensor.astype(bp.float32)
    return np.array(tensor.numpy())


def differentiable_results(case, results):
    """The results that have a gradient: inexact and not declared constant."""
    return [
        result
        for result, (_, _, nondiff) in zip(results, case.entry.results)
        if not nondiff and result.dtype.name in INEXACT
    ]


def eps_of(dtype):
    return float(bp.finfo(dtype).eps)


def bound(case, dtype, expected):
    """How far a result in `dtype` may lie from `expected`, absolutely."""
    finite = np.abs(expected[np.isfinite(expected)]) if expected.size else expected
    scale = float(finite.max()) if finite.size else 1.0
    growth = max(1.0, float(expected.size) ** 0.5)
    return case.entry.tolerance * eps_of(dtype) * growth * max(scale, 1.0)


def assert_same(case, found, expected, dtype, exact=False):
    """Equal up to the entry's tolerance; integers, bools and `exact` in every bit but the sign of zero."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape, f"shape {found.shape}, expected {expected.shape}"
    if exact or expected.dtype.kind in "biu" or found.dtype.kind in "biu":
        np.testing.assert_array_equal(found, expected)
        return
    wide = np.complex128 if found.dtype.kind == "c" or expected.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(found.astype(wide), expected.astype(wide), rtol=0, atol=bound(case, dtype, expected.astype(wide)))
