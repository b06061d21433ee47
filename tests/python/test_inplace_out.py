"""In-place operators and methods, and out=, write where they are asked to and nowhere else."""

import operator

import backplane as bp
import numpy as np
import pytest

INPLACE = [operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv, operator.imod, operator.ipow]
OPS_WITH_FORMS = [bp.add, bp.multiply, bp.exp, bp.tanh, bp.maximum]


@pytest.mark.parametrize("op", INPLACE)
def test_operators_change_the_object_and_its_memory(op):
    array = np.array([1.5, 2.0, 3.5], dtype=np.float32)
    x = bp.asarray(array.copy())
    before, view = x, x[1:]
    x = op(x, 2)
    assert x is before
    np.testing.assert_allclose(x.numpy(), op(array, np.float32(2)), rtol=1e-6)
    np.testing.assert_array_equal(view.numpy(), x.numpy()[1:])


@pytest.mark.parametrize("op", OPS_WITH_FORMS, ids=lambda op: op.__name__)
def test_three_forms_agree(op):
    x = bp.asarray([[0.5, -1.0], [2.0, 0.25]])
    arguments = (x, x.T) if "y" in op.__text_signature__ else (x,)
    expected = op(*arguments).tolist()
    out = bp.empty((2, 2))
    assert op(*arguments, out=out) is out
    assert out.tolist() == expected
    target = bp.asarray(x, copy=True)
    result = getattr(target, op.__name__ + "_")(*(bp.asarray(a, copy=True) for a in arguments[1:]))
    assert result is target and target.tolist() == expected


def test_the_dtype_stays():
    x = bp.asarray([1, 2])
    x += 1
    assert x.dtype is bp.int64
    with pytest.raises(TypeError, match="int64"):
        x += 0.5
    half = bp.asarray([1.0], dtype=bp.float16)
    half += bp.asarray([1.0], dtype=bp.float64)
    assert half.dtype is bp.float16 and half.item() == 2


def test_overlapping_memory_is_handled():
    array = np.arange(6.0)
    x = bp.asarray(array.copy())
    part = x[1:]
    part += x[:-1]
    np.testing.assert_array_equal(x.numpy(), np.concatenate([array[:1], array[1:] + array[:-1]]))


def test_without_an_in_place_form_the_name_is_rebound():
    x = bp.ones((2, 2))
    before = x
    x @= x
    assert x is not before and before.tolist() == [[1, 1], [1, 1]] and x.tolist() == [[2, 2], [2, 2]]


def test_out_is_refused_while_recording():
    with pytest.raises((ValueError, RuntimeError)):
        bp.add(bp.ones(2).requires_grad_(), 1, out=bp.empty(2))
    assert bp.add(bp.ones(2), 1, out=None).tolist() == [2, 2]


def test_shape_stays():
    x = bp.ones(3)
    with pytest.raises(ValueError):
        x += bp.ones((2, 3))


def test_a_refused_out_leaves_no_memory_behind():
    """Of a composite, whose result exists before it is copied."""
    x = bp.ones((1000,))
    out = bp.zeros(3)
    before = bp.memory_stats()["allocated_bytes"]
    with pytest.raises(bp.ShapeError):
        bp.ops.bp.celu(x, out=out)
    assert bp.memory_stats()["allocated_bytes"] == before


def test_a_quotient_may_change_before_the_backward_pass():
    """The derivative is of the operands alone, as in PyTorch."""
    x, w = (bp.asarray([1.0, 2.0]).requires_grad_() for _ in "xw")
    y = x / w
    y += 1
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 0.5] and w.grad.tolist() == [-1.0, -0.5]
    for function in (bp.nn.functional.normalize, lambda x: bp.nn.functional.cosine_similarity(x, x[:, ::-1])):
        x, z = (bp.asarray([[3.0, 4.0]]).requires_grad_() for _ in "xz")
        y = function(x)
        y *= 2
        y.sum().backward()
        (function(z) * 2).sum().backward()
        assert x.grad.tolist() == z.grad.tolist()
