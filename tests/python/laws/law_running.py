"""Calling ops and comparing results, in the terms of the registry: tolerance = c * eps(dtype) * growth(n)."""

import re

import backplane as bp
import numpy as np
from law_inputs import tensors_of

INEXACT = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")

# What a formula calls its steps by, and what becomes of them: no error shows that.
INTERNALS = re.compile(r"in its formula (?!;)\w|\(in \w+\)|for a list of|\b(getitem|getslice|truediv|floordiv|normalize_axis|normalize_axes)\b")


class ByName:
    """An op whose every argument may be given by name: those before '/' are then passed on by position."""

    def __init__(self, op):
        self.op = op
        self._listed = [name for name, *_, positional_only in op.parameters if positional_only]

    def __call__(self, *args, **arguments):
        return self._pass_on(self.op, list(args), arguments)

    def infer(self, **arguments):
        return self._pass_on(self.op.infer, [], arguments)

    def _pass_on(self, function, args, arguments):
        for name in self._listed[len(args) :]:
            if name not in arguments:
                break
            args.append(arguments.pop(name))
        return function(*args, **arguments)


def function_of(entry, inplace=False):
    if inplace:
        return ByName(bp.Op(entry.name, entry.python_name + "_", inplace=True))
    namespace, _, _ = entry.name.partition("::")
    return ByName(getattr(getattr(bp.ops, namespace), entry.python_name))


def results_of(value):
    return list(value) if isinstance(value, tuple) else [value]


def without_phases(results):
    """The results of a decomposition with the phase (sign) of each vector fixed: U's columns have a positive first element.

    Vectors are columns of the first matrix among the results; where there is a second one (Vh), its rows take the same
    phases the other way, so that the product stays. Its further rows, and U's further columns, have phases of their own.
    """
    results = list(results)
    rank = max(result.ndim for result in results)
    matrices = [i for i, result in enumerate(results) if result.ndim == rank and rank >= 2]
    if not matrices or any(0 in result.shape for result in results):
        return results
    u = results[matrices[0]]
    phase = bp.sign(u[..., :1, :])
    results[matrices[0]] = u * bp.conj(phase)
    if len(matrices) > 1:
        vh = results[matrices[1]]
        shared = min(u.shape[-1], vh.shape[-2])
        rows = bp.concat([bp.matrix_transpose(phase[..., :shared]), bp.conj(bp.sign(vh[..., shared:, :1]))], axis=-2)
        results[matrices[1]] = rows * vh
    return results


def call(case, arguments, **more):
    """The op's results as a list."""
    results = results_of(function_of(case.entry)(**arguments, **more))
    return without_phases(results) if case.entry.compare == "up_to_phase" else results


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
