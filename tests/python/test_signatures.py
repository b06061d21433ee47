"""Ops tell the truth about themselves to inspect, help and pickle."""

import inspect
import pickle

import backplane as bp
import pytest

OPS = {name: value for name, value in vars(bp).items() if isinstance(value, bp.Op)}


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_signature_name_and_doc(op):
    signature = inspect.signature(op)
    assert str(signature).startswith("(")
    assert hasattr(bp, op.__name__) and op.__qualname__ == op.__name__
    assert op.__module__ == "backplane"
    assert op.__doc__.startswith(op.__name__ + "(")
    assert callable(op)
    assert op.full_name.startswith("bp::")
    text = inspect.Signature([p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()])
    assert op.__text_signature__.replace("backplane.", "") == str(text).replace("backplane.", "")


def test_a_signature_is_what_a_call_takes():
    signature = inspect.signature(bp.sum)
    assert list(signature.parameters)[:2] == ["x", "axis"]
    assert signature.parameters["keepdims"].default is False
    assert signature.parameters["keepdims"].kind is inspect.Parameter.KEYWORD_ONLY
    bound = signature.bind(bp.ones((2, 3)), axis=0, keepdims=True)
    assert bp.sum(*bound.args, **bound.kwargs).shape == (1, 3)


def test_methods_lack_the_tensor():
    x = bp.ones((2, 3))
    assert "x" not in inspect.signature(x.sum).parameters
    assert list(inspect.signature(bp.Tensor.sum).parameters)[0] == "x"
    assert x.sum(axis=0).tolist() == bp.sum(x, 0).tolist()


@pytest.mark.parametrize("function", [bp.asarray, bp.from_dlpack, bp.Tensor.backward, bp.Tensor.item, bp.Generator])
def test_functions_outside_the_registry_have_signatures_too(function):
    assert inspect.signature(function).parameters is not None
    assert function.__doc__


def test_ops_are_picklable_and_comparable():
    again = pickle.loads(pickle.dumps(bp.add))
    assert again.full_name == "bp::add" and again(bp.ones(1), 1).item() == 2
    inplace = pickle.loads(pickle.dumps(bp.Tensor.add_))
    x = bp.ones(1)
    assert inplace(x, 1) is x and x.item() == 2


@pytest.mark.parametrize("shape", [(2, 3), [2, 3], range(2, 4), (bp.asarray(2), 3)])
def test_any_sequence_of_integers_is_a_shape(shape):
    assert bp.zeros(shape).shape == (2, 3)


def test_shapes_from_numpy_and_from_one_int():
    import numpy as np

    assert bp.zeros(np.array([2, 3])).shape == (2, 3)
    assert bp.zeros((np.int64(2), 3)).shape == (2, 3)
    assert bp.zeros(4).shape == (4,) and bp.zeros(()).shape == ()


def test_ints_beyond_the_last_position_join_the_shape():
    x = bp.ones((2, 3))
    assert x.reshape(3, 2).shape == x.reshape((3, 2)).shape == x.reshape([3, -1]).shape == (3, 2)
    assert bp.permute_dims(x, 1, 0).shape == (3, 2)


def test_optional_and_absent_arguments():
    x = bp.asarray([-2.0, 0.5, 3.0])
    assert bp.clip(x, None, 1).tolist() == [-2, 0.5, 1]
    assert bp.clip(x, max=1, min=-1).tolist() == [-1, 0.5, 1]
    assert bp.clip(x, -1).tolist() == [-1, 0.5, 3]
    assert bp.sum(x, None).shape == ()


def test_several_results_are_named():
    result = bp.topk(bp.asarray([3.0, 1.0, 2.0]), 2)
    values, indices = result
    assert result.values is values and result.indices is indices
    assert values.tolist() == [3, 2] and indices.tolist() == [0, 2]
    assert "values=" in repr(result)


@pytest.mark.parametrize("alias, name", [("absolute", "abs"), ("arctan2", "atan2"), ("mul", "multiply"), ("clamp", "clip"),
                                         ("unsqueeze", "expand_dims"), ("permute", "permute_dims"), ("neg", "negative"), ("invert", "bitwise_invert")])
def test_an_alias_is_the_op_itself(alias, name):
    assert getattr(bp, alias) is getattr(bp, name) and getattr(bp.ops.bp, alias).full_name == "bp::" + name
    assert getattr(bp.Tensor, alias) is getattr(bp.Tensor, name) and alias in dir(bp) and alias in dir(bp.ops.bp)


def test_the_in_place_form_has_the_aliases_too():
    x = bp.asarray([1.0, -2.0])
    assert x.mul_(3) is x and x.clamp_(min=0).tolist() == [3.0, 0.0]
    assert bp.Tensor.sub_ is bp.Tensor.subtract_


def test_dim_and_keepdim_are_axis_and_keepdims():
    x = bp.asarray([[1.0, 3.0], [2.0, 4.0]])
    assert x.sum(dim=0, keepdim=True).tolist() == [[3.0, 7.0]] and bp.softmax(x, dim=0).tolist() == bp.softmax(x, axis=[0]).tolist()
    assert x.argmax(dim=1, keepdim=True).shape == (2, 1) and x.sort(dim=0).values.tolist() == [[1.0, 3.0], [2.0, 4.0]]
    assert x.unsqueeze(dim=1).shape == (2, 1, 2) and x.flip(dim=0).tolist() == [[2.0, 4.0], [1.0, 3.0]]
    with pytest.raises(TypeError, match="given twice"):
        x.sum(0, dim=1)
    with pytest.raises(TypeError, match="given twice"):
        x.sum(axis=0, dim=1)


def test_dim_is_no_name_where_there_are_two_axes_or_none():
    for call in (lambda: bp.diagonal(bp.ones((2, 2)), dim=0), lambda: bp.add(1, 2, dim=0), lambda: bp.add(1, 2, keepdim=True)):
        with pytest.raises(TypeError, match="found an argument '(dim|keepdim)'"):
            call()
