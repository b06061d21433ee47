"""inplace, out: the variants compute what the function does, into the tensor given, with its derivative. alias: what an entry says shares memory
does, and nothing else. zeros: an absent cotangent is a zero.
"""

import backplane as bp
import numpy as np
import pytest
from law_inputs import arrays_of, leaves, tensors_of
from law_registry import cases, widest
from law_running import assert_same, call, differentiable_results, function_of, to_array


def law_dtype(case):
    accepted = [name for arg in case.entry.args if arg.is_tensor and arg.promote for name in arg.accepts]
    return next((name for name in ("float32", "int32", "complex64", "bool") if name in accepted), widest(accepted))


def has_flag(flag):
    return lambda case: flag in case.entry.flags


def changes_arguments(case, arrays):
    """Of an op that changes several arguments: each gets the result of its name."""
    expected = [to_array(result) for result in call(case, tensors_of(case, arrays))]
    arguments = tensors_of(case, arrays)
    names = [name for name, _, _ in case.entry.results]
    results = function_of(case.entry, inplace=True)(**arguments)
    for name, result, wanted in zip(names, results, expected):
        assert result is arguments[name]
        assert_same(case, to_array(result), wanted, result.dtype, exact=True)


@pytest.mark.parametrize("case", cases("inplace", has_flag("inplace")))
def test_in_place_is_the_function_then_a_write(case):
    arrays = arrays_of(case, law_dtype(case))
    if len(case.entry.results) > 1:
        return changes_arguments(case, arrays)
    expected = to_array(call(case, tensors_of(case, arrays))[0])
    arguments = tensors_of(case, arrays)
    target = arguments.pop(case.entry.args[0].name)
    function = function_of(case.entry, inplace=True)
    if not isinstance(target, bp.Tensor):
        with pytest.raises(TypeError):
            function(target, **arguments)
        return
    before = (target.shape, target.dtype)
    if expected.shape != target.shape:
        with pytest.raises(bp.ShapeError):
            function(target, **arguments)
        return
    assert function(target, **arguments) is target
    assert (target.shape, target.dtype) == before
    assert_same(case, to_array(target), expected, target.dtype, exact=True)


def changes_a_history(case):
    first = case.entry.args[0]
    return "inplace" in case.entry.flags and first in case.entry.differentiable and "tensor" in case.sample.get(first.name, {})


def gradients_of(case, arrays, make_result):
    """Of a weighted sum of what `make_result(target, arguments)` gives, with respect to all that can be differentiated."""
    arguments = tensors_of(case, arrays)
    inputs = [tensor.requires_grad_() for _, _, tensor in leaves(arguments, [arg.name for arg in case.entry.differentiable])]
    result = make_result(arguments.pop(case.entry.args[0].name), arguments)
    weights = bp.reshape(bp.arange(1.0, result.size + 1, dtype=bp.float64), result.shape)
    return bp.gradients([bp.real(result * weights).sum()], inputs) if result.requires_grad else [None] * len(inputs)


@pytest.mark.parametrize("place", ["whole", "part"])
@pytest.mark.parametrize("case", cases("inplace", changes_a_history))
def test_a_change_in_place_has_the_derivative_of_the_function(case, place):
    arrays = arrays_of(case, law_dtype(case).replace("32", "64").replace("complex64", "complex128"))
    name = case.entry.args[0].name
    first = tensors_of(case, arrays)[name]
    expected = call(case, tensors_of(case, arrays))[0]
    if (expected.shape, expected.dtype) != (first.shape, first.dtype):
        return  # refused, as the law of the values says
    function, inplace = function_of(case.entry), function_of(case.entry, inplace=True)

    def outside(x, arguments):
        changed = function(x * 1, **arguments)
        return bp.stack([changed, x * 2]) if place == "part" else changed

    def inside(x, arguments):
        base = bp.stack([x, x * 2]) if place == "part" else x * 1
        inplace(base[0] if place == "part" else base, **arguments)
        return base

    for found, wanted in zip(gradients_of(case, arrays, inside), gradients_of(case, arrays, outside)):
        if wanted is None:
            assert found is None
        else:
            np.testing.assert_allclose(to_array(found), to_array(wanted), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("layout", ["contiguous", "strided"])
@pytest.mark.parametrize("case", cases("out", has_flag("out")))
def test_out_receives_what_the_function_returns(case, layout):
    arrays = arrays_of(case, law_dtype(case))
    expected = call(case, tensors_of(case, arrays))[0]
    if layout == "strided" and expected.ndim:
        target = bp.zeros((*expected.shape[:-1], 2 * expected.shape[-1]), dtype=expected.dtype)[..., ::2]
    else:
        target = bp.zeros(expected.shape, dtype=expected.dtype)
    found = function_of(case.entry)(**tensors_of(case, arrays), out=target)
    assert found is target
    assert_same(case, to_array(target), to_array(expected), target.dtype, exact=True)


def replaced(array):
    """Other values of the same dtype, so that a reader of the same memory shows them."""
    return ~array if array.dtype.kind == "b" else array + np.ones((), array.dtype)


def has_tensor(case):
    first = case.entry.alias or next((arg.name for arg in case.entry.args if arg.is_tensor and arg.type == "Tensor"), None)
    return bool(first) and "dynamic" not in case.entry.flags and "tensor" in case.sample.get(first, {})


@pytest.mark.parametrize("case", cases("alias", has_tensor))
def test_memory_is_shared_as_declared(case):
    name = case.entry.alias or next(arg.name for arg in case.entry.args if arg.is_tensor)
    arrays = arrays_of(case, law_dtype(case))
    arguments = tensors_of(case, arrays)
    results = call(case, arguments)
    before = [to_array(result) for result in results]
    base = arguments[name]
    if case.sample[name]["tensor"]["layout"] == "zero_stride":
        return
    bp.Op("bp::slice_put", "slice_put_", inplace=True)(base, bp.asarray(replaced(arrays[name]), dtype=base.dtype), (), (), (), ())
    after = [to_array(result) for result in results]
    changed = {**arguments, name: base}
    recomputed = [to_array(result) for result in call(case, changed)] if "view" in case.entry.flags else before
    for old, new, expected in zip(before, after, recomputed):
        if "composite" in case.entry.flags or "maybe_view" in case.entry.flags:
            continue  # may be a view or a copy; which, depends on strides
        np.testing.assert_array_equal(new, expected if "view" in case.entry.flags else old)


def several(case):
    nondiff = [nondiff for _, _, nondiff in case.entry.results]
    return nondiff.count(False) > 1 and bool(case.entry.differentiable)


@pytest.mark.parametrize("case", cases("zeros", several))
def test_absent_cotangents_are_zeros(case):
    arrays = arrays_of(case, law_dtype(case))
    names = [arg.name for arg in case.entry.differentiable if arg.name in arrays]

    def gradients(with_zeros):
        arguments = tensors_of(case, arrays)
        inputs = [arguments[name].requires_grad_() for name in names]
        results = differentiable_results(case, call(case, arguments))
        kept = results if with_zeros else results[:1]
        given = [bp.ones_like(results[0]), *(bp.zeros_like(result) for result in kept[1:])]
        return bp.gradients(kept, inputs, given)

    for absent, zero in zip(gradients(False), gradients(True)):
        np.testing.assert_array_equal(to_array(absent), to_array(zero))
