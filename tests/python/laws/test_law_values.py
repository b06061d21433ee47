"""decompose: the decomposition = the kernel. native: generated C++ of a formula = its evaluation, bit for bit.

numpy: NumPy's function of the same meaning gives the same in float64. dtypes: every dtype = the widest of its kind within
tolerance. zero_size: samples without elements or without axes run, and their gradients have the inputs' shapes.
errors: a sample that names an error raises it; shapes that do not fit, axes that are not there and words
that mean nothing are refused in the name of the op.
"""

import contextlib

import backplane as bp
import numpy as np
import pytest
from backplane import _core
from law_inputs import arrays_of, is_array, is_array_list, leaves, tensors_of
from law_numpy import REFERENCE
from law_registry import cases, widest
from law_running import assert_same, call, call_arrays, differentiable_results, function_of, to_array, without_phases

WIDE = {"f": "float64", "i": "int64", "u": "uint64", "c": "complex128", "b": "bool"}
KINDS = {"float16": "f", "bfloat16": "f", "float32": "f", "float64": "f", "complex64": "c", "complex128": "c", "bool": "b"}


def kind_of(dtype):
    return KINDS.get(dtype) or ("u" if dtype.startswith("u") else "i")


def accepted(case):
    """Dtypes that every promoting tensor argument of the sample takes."""
    sets = [set(arg.accepts) for arg in case.entry.args if arg.is_tensor and arg.promote and arg.name in case.sample]
    return sorted(set.intersection(*sets)) if sets else []


def first_dtype(case):
    found = accepted(case)
    return widest(found)


def repeatable(case):
    return case.entry.compare not in ("distribution", "metadata") or any(arg.type == "Generator" for arg in case.entry.args)


@contextlib.contextmanager
def setting(switch, value):
    before = switch(value)
    try:
        yield
    finally:
        switch(before)


def has_decomposition(case):
    return case.entry.rules["decompose"] and "composite" not in case.entry.flags and repeatable(case)


@pytest.mark.parametrize("case", cases("decompose", has_decomposition))
def test_decomposition_is_the_kernel(case):
    for dtype in {first_dtype(case), *({"float32"} & set(accepted(case)))}:
        arrays = arrays_of(case, dtype)
        expected = call_arrays(case, arrays)
        arguments = tensors_of(case, arrays)
        given = [(tensor, to_array(tensor).tobytes()) for _, _, tensor in leaves(arguments, arguments)]
        with setting(_core.force_decomposition, True):
            found = call(case, arguments)
        assert all(to_array(tensor).tobytes() == before for tensor, before in given), "it wrote into an argument"
        for result, reference in zip(found, expected):
            assert_same(case, to_array(result), reference, result.dtype if result.dtype.name in KINDS else bp.float32)


def has_native(case):
    """Generated code that calls can reach: that of forward mode runs with its transform."""
    return any(rule.startswith(("vjp", "decompose")) for rule in case.entry.rules["native"]) and repeatable(case)


def forward_and_backward(case, arrays):
    arguments = tensors_of(case, arrays)
    inputs = [tensor.requires_grad_() for _, _, tensor in leaves(arguments, [arg.name for arg in case.entry.differentiable])]
    with setting(_core.force_decomposition, True):
        results = call(case, arguments)
    ends = [result for result in differentiable_results(case, results) if result.requires_grad]
    gradients = bp.gradients(ends, inputs, [bp.ones_like(end) for end in ends]) if ends and inputs else []
    return [to_array(tensor) for tensor in (*results, *(g for g in gradients if g is not None))]


@pytest.mark.parametrize("case", cases("native", has_native))
def test_generated_formulas_are_the_evaluator_bit_for_bit(case):
    arrays = arrays_of(case, first_dtype(case))
    with setting(_core.use_native_formulas, False):
        evaluated = forward_and_backward(case, arrays)
    native = forward_and_backward(case, arrays)
    assert [a.tobytes() for a in native] == [a.tobytes() for a in evaluated]


@pytest.mark.parametrize("case", cases("numpy", lambda case: case.entry.python_name in REFERENCE))
def test_numpy_agrees(case):
    arrays = arrays_of(case, first_dtype(case))
    found = call_arrays(case, arrays)
    with np.errstate(all="ignore"):
        expected = REFERENCE[case.entry.python_name](**arrays)
    expected = expected if isinstance(expected, (tuple, list)) else [expected]
    if case.entry.compare == "up_to_phase":
        expected = [to_array(result) for result in without_phases([bp.asarray(np.array(item)) for item in expected])]
    for result, reference in zip(found, expected):
        reference = np.asarray(reference)
        assert_same(case, result, reference, bp.float64 if result.dtype.itemsize >= 8 else bp.float32)


def comparable(case):
    return case.entry.compare not in ("distribution", "metadata") and len(accepted(case)) > 1 and "dynamic" not in case.entry.flags


def widened(arrays, case, dtype):
    def wide(value, arg):
        return value.astype(WIDE[kind_of(dtype)]) if arg.promote else value

    found = {}
    for name, value in arrays.items():
        arg = case.entry.arg(name)
        if is_array(value):
            found[name] = wide(value, arg)
        elif arg.is_tensor and is_array_list(value):
            found[name] = [item if item is None else wide(item, arg) for item in value]
        else:
            found[name] = value
    return found


@pytest.mark.parametrize("case", cases("dtypes", comparable))
def test_every_dtype_is_the_widest_within_tolerance(case):
    for dtype in accepted(case):
        rounded = tensors_of(case, arrays_of(case, dtype, own_dtype=False), dtype=getattr(bp, dtype))
        found = call(case, rounded)
        arrays = {name: read_back(value) for name, value in rounded.items()}
        arrays = {name: case_value(case, name, value) for name, value in arrays.items()}
        expected = call(case, tensors_of(case, widened(arrays, case, dtype)))
        for result, reference in zip(found, expected):
            assert (result.dtype.kind == reference.dtype.kind) and result.shape == reference.shape, f"{dtype}: {result.dtype}"
            compared = to_array(reference).astype(np.asarray(to_array(result)).dtype)
            inexact = result.dtype.name in KINDS and result.dtype is not bp.bool
            assert_same(case, to_array(result), compared, result.dtype if inexact else bp.float32)


def read_back(value):
    if isinstance(value, bp.Tensor):
        return to_array(value)
    if isinstance(value, list) and any(isinstance(item, bp.Tensor) for item in value):
        return [item if item is None else to_array(item) for item in value]
    return value


def case_value(case, name, value):
    """Generators and dtypes go in again as the sample writes them."""
    written = case.sample[name]
    if "generator" in written:
        return (written["generator"]["key"], written["generator"]["counter"])
    return written["value"] if "value" in written else value


def without_elements(case):
    specs = [spec for value in case.sample.values() for spec in (value.get("tensors") or [value.get("tensor")]) if spec]
    return any(not spec["shape"] or 0 in spec["shape"] for spec in specs)


@pytest.mark.parametrize("case", cases("zero_size", without_elements))
def test_no_elements_and_no_axes_are_ordinary(case):
    arguments = tensors_of(case, arrays_of(case, first_dtype(case)))
    inputs = [tensor.requires_grad_() for _, _, tensor in leaves(arguments, [arg.name for arg in case.entry.differentiable])]
    results = call(case, arguments)
    ends = [result for result in differentiable_results(case, results) if result.requires_grad]
    if not ends or not inputs:
        return
    for tensor, gradient in zip(inputs, bp.gradients(ends, inputs, [bp.ones_like(end) for end in ends])):
        assert gradient is None or (gradient.shape == tensor.shape and gradient.dtype is tensor.dtype)


ERRORS = {
    "ShapeError": bp.ShapeError,
    "DtypeError": bp.DtypeError,
    "DataError": bp.DataError,
    "ValueError": ValueError,
    "TypeError": TypeError,
    "IndexError": IndexError,
    "NotImplementedError": NotImplementedError,
}


@pytest.mark.parametrize("case", cases("errors", lambda case: True, errors=True))
def test_bad_arguments_raise_the_stated_error(case):
    arguments = tensors_of(case, arrays_of(case, first_dtype(case)))
    with pytest.raises(ERRORS[case.error]) as raised:
        call_and_wait(case, arguments)
    assert case.entry.python_name in str(raised.value)


def reshaped(array):
    """The array with an axis more, with one less, and with another size along each axis."""
    yield array[None]
    if array.ndim:
        yield array[0] if array.shape[0] else np.zeros(array.shape[1:], array.dtype)
    for axis in range(array.ndim):
        more = array.take([0], axis) if array.shape[axis] else np.zeros((*array.shape[:axis], 3, *array.shape[axis + 1 :]), array.dtype)
        yield np.concatenate([array, more], axis)


def refusal(function, *args, **arguments):
    try:
        function(*args, **arguments)
    except (bp.ShapeError, ValueError, IndexError, TypeError) as error:  # what shapes cause; values cause a DataError
        return None if isinstance(error, bp.DataError) else str(error)
    except bp.BackplaneError:
        return None
    return ""


def has_shapes(case):
    return "dynamic" not in case.entry.flags and any(arg.is_tensor for arg in case.entry.args)


@pytest.mark.parametrize("case", cases("errors", has_shapes))
def test_a_bad_shape_is_reported_in_the_terms_of_the_op_that_was_called(case):
    """What the shape rule refuses, the call refuses in its words. What an op further down refuses, names the argument found."""
    arrays = arrays_of(case, first_dtype(case))
    for name in [name for name, value in arrays.items() if is_array(value) and case.entry.arg(name).is_tensor]:
        for other in reshaped(np.asarray(arrays[name])):
            changed = {**arrays, name: other}
            by_rule = refusal(function_of(case.entry).infer, **tensors_of(case, changed))
            said = refusal(call_and_wait, case, tensors_of(case, changed))
            if by_rule:
                assert said in (by_rule, None), f"{name} of shape {other.shape}"
            if said:
                about_this = f"{case.entry.name}: "
                assert said.startswith(about_this), f"{name} of shape {other.shape}: {said}"
                inner = "::" in said[len(about_this) :].partition(" ")[0]
                assert not inner, f"{name} of shape {other.shape}: {said}"


def axes_of(case):
    return [arg for arg in case.entry.args if arg.type in ("Axis", "Axes")]


@pytest.mark.parametrize("case", cases("errors", axes_of))
def test_an_axis_out_of_range_is_refused_by_the_op_that_was_called(case):
    arrays = arrays_of(case, first_dtype(case))
    for arg in axes_of(case):
        given = arrays.get(arg.name)
        if given == []:
            continue
        for axis in (65, -66, 2**40):
            one = [axis, *given[1:]] if isinstance(given, list) else [axis] if arg.type == "Axes" else axis
            arguments = tensors_of(case, {**arrays, arg.name: one})
            with pytest.raises(IndexError, match=rf"{case.entry.python_name}: .*{axis}"):
                call_and_wait(case, arguments)


def words_of(case):
    return [arg.name for arg in case.entry.args if arg.type == "str"]


@pytest.mark.parametrize("case", cases("errors", words_of))
def test_a_word_that_means_nothing_is_refused_by_the_op_that_was_called(case):
    arrays = arrays_of(case, first_dtype(case))
    for name in words_of(case):
        with pytest.raises(ValueError, match=rf"{case.entry.name}: "):
            call_and_wait(case, tensors_of(case, {**arrays, name: "no such word"}))


def call_and_wait(case, arguments):
    for result in call(case, arguments):
        to_array(result)
