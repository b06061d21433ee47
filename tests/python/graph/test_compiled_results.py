"""What a compiled function gives belongs to its caller, as what the function itself gives: a change of it is not seen by the next call."""

import backplane as bp
import numpy as np
import pytest


def direct(x):
    return bp.asarray([1.0, 2.0, 3.0])


def in_containers(x):
    return x, {"m": bp.tensor([0.0, 0.0]), "t": bp.asarray(0.0)}


def used_beside(x):
    start = bp.asarray([1.0, 2.0, 3.0])
    return x + start, start


def view(x):
    return bp.asarray([1.0, 2.0, 3.0])[1:]


def view_of_a_view(x):
    return bp.asarray([1.0, 2.0, 3.0, 4.0]).reshape(2, 2).T[0]


def the_tensor_and_its_view(x):
    made = bp.asarray([1.0, 2.0, 3.0])
    return made, made[:2]


def of_numpy(x):
    return bp.asarray(np.zeros(3, np.float32))


def under_a_gradient(x):
    return bp.grad(lambda y: (y * x).sum())(bp.asarray([1.0, 2.0, 3.0])), bp.asarray([5.0])


FUNCTIONS = [direct, in_containers, used_beside, view, view_of_a_view, the_tensor_and_its_view, of_numpy, under_a_gradient]


OF_ANY_SIZE = [function for function in FUNCTIONS if function not in (used_beside, under_a_gradient)]


@pytest.mark.parametrize("function, dynamic", [(f, None) for f in FUNCTIONS] + [(f, {"x": {0: "n"}}) for f in OF_ANY_SIZE])
def test_tensors_that_it_makes_are_new_at_each_call(function, dynamic):
    x = bp.asarray([1.0, 1.0, 1.0])
    compiled = bp.compile(function, dynamic=dynamic)
    expected = [leaf.numpy().copy() for leaf in bp.tree.leaves(function(x))]
    for _ in range(3):
        found = bp.tree.leaves(compiled(x))
        for ours, eager in zip(found, expected, strict=True):
            np.testing.assert_array_equal(ours.numpy(), eager)
        for ours in found:
            if ours is not x:
                ours += 7.0
        x = bp.asarray([1.0, 1.0, 1.0])


def test_a_tensor_from_outside_is_given_itself():
    w = bp.asarray([1.0, 2.0])
    whole, part = bp.compile(lambda x: (w, w[1:]))(bp.ones(1))
    whole += 1.0
    part *= 10.0
    assert w.tolist() == [2.0, 30.0]


def test_a_tensor_that_the_function_keeps_is_given_itself():
    kept = []

    @bp.compile
    def function(x):
        kept.append(bp.asarray([1.0]))
        return kept[-1]

    for calls in (1, 2):
        assert function(bp.ones(1)).tolist() == [1.0]
        assert [one.tolist() for one in kept] == [[1.0]] * calls


# `view` is PyTorch's reshape, and refuses a copy: what a trace shows has strides, and no memory.
def heads(x, w):
    return (x @ w).view(x.shape[0], 2, -1).permute(1, 0, 2)


@pytest.mark.parametrize("dynamic", [None, {"x": {0: "batch"}}], ids=["static", "dynamic"])
def test_view_reshapes_what_is_computed(dynamic):
    x, w = bp.reshape(bp.arange(12.0), (4, 3)), bp.reshape(bp.arange(18.0), (3, 6))
    compiled = bp.compile(heads, dynamic=dynamic)
    for rows in (4, 2):
        assert compiled(x[:rows], w).tolist() == heads(x[:rows], w).tolist()
    gradient = bp.compile(bp.grad(lambda x, w: (heads(x, w) ** 2).sum(), argnums=1))(x, w)
    assert gradient.tolist() == bp.grad(lambda x, w: (heads(x, w) ** 2).sum(), argnums=1)(x, w).tolist()
    assert bp.compile(bp.vmap(lambda row: (row * 2).view(3, 1)))(x).shape == (4, 3, 1)


VIEWS = [(lambda y: y, (12,)), (lambda y: y, (2, 3, 2)), (lambda y: y[:2], (6,)), (lambda y: y[:, None], (4, 3)), (lambda y: y.T[:, None], (3, 2, 2)),
         (lambda y: bp.expand(y[:, :1], 4, 3), (2, 2, 3)), (lambda y: y[::2], (2, 3, 1)), (lambda y: y[:0], (3, 0))]  # fmt: skip
COPIES = [(lambda y: y.T, (12,)), (lambda y: y[:, 1:], (8,)), (lambda y: y[::2], (6,)), (lambda y: bp.expand(y[:, :1], 4, 3), (12,)),
          (lambda y: y.T[:, None], (12,))]  # fmt: skip


@pytest.mark.parametrize("part, shape", VIEWS + COPIES)
def test_view_in_a_trace_is_refused_where_it_is_refused_without(part, shape):
    def function(x):
        return part(x + 1).view(*shape)

    x = bp.reshape(bp.arange(12.0), (4, 3))
    if (part, shape) in VIEWS:
        assert bp.compile(function)(x).tolist() == function(x).tolist()
    else:
        for call in (function, bp.compile(function)):
            with pytest.raises(bp.ArgumentValueError, match="view: .*these strides need a copy"):
                call(x)


@pytest.mark.parametrize("part, shape", VIEWS + COPIES)
def test_view_of_a_captured_tensor_is_refused_where_it_is_refused_without(part, shape):
    held = bp.reshape(bp.arange(12.0), (4, 3))

    def function(x):
        return part(held).view(*shape) + x

    if (part, shape) in VIEWS:
        assert bp.compile(function)(bp.ones(())).tolist() == function(bp.ones(())).tolist()
    else:
        for call in (function, bp.compile(function)):
            with pytest.raises(bp.ArgumentValueError, match="view: .*these strides need a copy"):
                call(bp.ones(()))


def test_a_copying_reshape_in_a_trace_is_no_view():
    def function(x):
        y = x + 1
        z = bp.reshape(y, (4,), copy=True)
        z *= 10
        return y, z

    x = bp.ones((2, 2))
    assert [t.tolist() for t in bp.compile(function)(x)] == [t.tolist() for t in function(x)] == [[[2.0, 2.0]] * 2, [20.0] * 4]


def test_a_donated_position_is_one_of_the_call():
    compiled = bp.compile(lambda x: x + 1, donate=7)
    with pytest.raises(bp.ArgumentTypeError, match=r"compile: argument donate: found 7, but the call of .*<lambda> has 1 argument, counted from 0 on"):
        compiled(bp.ones(2))
    with pytest.raises(bp.ArgumentTypeError, match="explain_plan: argument donate: found 7, but the call has 1 argument, counted from 0 on"):
        bp.explain_plan(lambda x: x + 1, donate=7)(bp.ones(2))
    both = bp.compile(lambda x, y: x + y, donate=[0, 1])
    assert both(bp.ones(2), y=bp.ones(2)).tolist() == [2, 2]
    with pytest.raises(bp.ArgumentTypeError, match="found 1, but .* has 1 argument"):
        both(bp.ones(2))


def test_options_alone_make_a_decorator():
    @bp.compile(dynamic={"x": {0: "n"}}, donate=())
    def double(x):
        return x * 2

    assert double(bp.ones(3)).tolist() == [2, 2, 2] and double(bp.ones(5)).shape == (5,)
    assert sum("double: traced" in line for line in bp.compile_log()[-2:]) == 1
    with pytest.raises(TypeError, match="nope"):
        bp.compile(nope=1)(lambda x: x)
