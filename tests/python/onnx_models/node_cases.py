"""onnx's own node tests as cases, those with tensors of numbers only, and how each ends.

python node_cases.py [WORD...] counts them and prints why the others do not pass.
"""

import collections
import dataclasses
import functools
import sys
import warnings

import backplane as bp
import numpy as np
import onnx
import onnx.numpy_helper
from onnx.backend.test.loader import load_model_tests

# These draw random numbers, and no two libraries draw the same ones.
RANDOM = {"test_bernoulli", "test_bernoulli_double", "test_bernoulli_seed"}
RANDOM |= {name + "_expanded" for name in RANDOM}


@dataclasses.dataclass
class Case:
    model: onnx.ModelProto
    data_sets: list
    rtol: float
    atol: float


def _is_tensor(value):
    kind = value.type.WhichOneof("value")
    tensor = value.type.optional_type.elem_type if kind == "optional_type" else value.type
    return tensor.WhichOneof("value") == "tensor_type" and tensor.tensor_type.elem_type != onnx.TensorProto.STRING


def _as_arrays(values):
    return [onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value for value in values]


@functools.cache
def node_cases():
    """The cases by name, of models whose inputs and outputs are tensors of numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tests = load_model_tests(kind="node")
    found = {}
    for test in tests:
        if test.name not in RANDOM and all(map(_is_tensor, [*test.model.graph.input, *test.model.graph.output])):
            sets = [(_as_arrays(inputs), _as_arrays(outputs)) for inputs, outputs in test.data_sets]
            found[test.name] = Case(test.model, sets, test.rtol, max(test.atol, 1e-6))
    return found


def as_numbers(array):
    """An array in a dtype that NumPy computes with."""
    name = array.dtype.name
    if name.startswith(("float8", "float4", "bfloat")):
        return array.astype(np.float32)
    return array.astype(np.int8) if name in ("int4", "int2") else array.astype(np.uint8) if name in ("uint4", "uint2") else array


def _array_of(tensor):
    if tensor is None:
        return None
    return bp.cast(tensor, bp.float32).numpy() if tensor.dtype == bp.bfloat16 else tensor.numpy()


def difference(found, expected, rtol, atol):
    """Why a result differs; empty if it does not. Half floats may differ by two units in the last place: Backplane rounds once."""
    if expected is None or found is None:
        return "" if found is expected else f"found {found}, expected {expected}"
    expected = np.asarray(expected)
    rtol = max(rtol, {"bfloat16": 2**-6, "float16": 2**-9}.get(expected.dtype.name, 0))
    expected = as_numbers(expected)
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return f"found {found.dtype}{found.shape}, expected {expected.dtype}{expected.shape}"
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    exact = found.dtype.kind in "iub" and np.array_equal(found, expected)
    if exact or np.allclose(found.astype(wide), expected.astype(wide), rtol, atol, equal_nan=True):
        return ""
    return f"found {found.reshape(-1)[:6]}, expected {expected.reshape(-1)[:6]}"


def outcome(case):
    """(kind, why): kind is "pass", "refused", "wrong" or "error"."""
    try:
        f = bp.onnx.load(case.model)
        for inputs, expected in case.data_sets:
            found = f(*inputs)
            if len(found) != len(expected):
                return "wrong", f"{len(found)} results, expected {len(expected)}"
            for got, want in zip(found, expected):
                if why := difference(_array_of(got), want, case.rtol, case.atol):
                    return "wrong", why
    except bp.MissingRuleError as error:
        return "refused", str(error)
    except Exception as error:
        return "error", f"{type(error).__name__}: {error}"
    return "pass", ""


def main(words):
    kinds = collections.Counter()
    for name, case in node_cases().items():
        if not words or any(word in name for word in words):
            kind, why = outcome(case)
            kinds[kind] += 1
            if why:
                print(f"{name}: {kind}: {why[:300]}")
    print(f"onnx node tests with tensors only: {sum(kinds.values())}; " + ", ".join(f"{kind} {count}" for kind, count in kinds.most_common()))


if __name__ == "__main__":
    main(sys.argv[1:])
