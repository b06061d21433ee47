"""What a custom op computes of a tensor that requires a gradient and is no argument of it: refused where the gradient would be lost,
recorded where it is not."""

import backplane as bp
import numpy as np
import pytest
from custom_op_toys import name  # noqa: F401


def one(make):
    """An op of x whose kernel is `make`."""
    def op(name, w):
        @bp.custom_op(name)
        def kernel(x: bp.Tensor) -> bp.Tensor:
            return make(x, w)

        kernel.register_shape(lambda x: x)
        kernel.register_vjp(lambda g: g)
        kernel.register_jvp(lambda t_x: t_x)
        kernel.register_batch("loop")
        return kernel

    return op


def whole(name, w):
    """An op with a vjp, whose decomposition is what a call runs."""
    op = bp.custom_op(name, f"{name.partition('::')[2]}(Tensor x) -> Tensor", shape="broadcast(x)")
    op.register_decomposition(lambda x: x * w)
    op.register_vjp(lambda g: g)
    return op


def changing(name, w):
    @bp.custom_op(name, mutates_args=("x",))
    def kernel(x: bp.Tensor) -> None:
        x *= w

    kernel.register_vjp(lambda g: g)
    return kernel


def listing(name, w):
    @bp.custom_op(name)
    def kernel(xs: list[bp.Tensor]) -> bp.Tensor:
        return xs[0] * xs[1] * w

    kernel.register_shape(lambda xs: xs[0])
    return lambda x: kernel([x, x])


def filled(x, w):
    made = bp.zeros(3)
    made[:] = x * w
    return made


WAYS = {
    "an op": one(lambda x, w: x * w),
    "the tensor itself": one(lambda x, w: w),
    "a view of it": one(lambda x, w: w[::-1]),
    "written into a new tensor": one(filled),
    "a history of its own": one(lambda x, w: bp.exp(w) + x),
    "a list of arguments": listing,
    "a decomposition below a vjp": whole,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_lost_gradient_is_refused_by_the_ops_name(way, name):
    op = WAYS[way](name, bp.ones(3).requires_grad_())
    with pytest.raises(ValueError, match=f"{name}: its (kernel|decomposition) used a tensor that requires a gradient.*pass it as an argument"):
        op(bp.ones(3).requires_grad_())


def test_it_is_refused_without_a_followed_argument_as_well(name):
    op = WAYS["an op"](name, bp.ones(3).requires_grad_())
    with pytest.raises(ValueError, match=name):
        op(bp.ones(3))


def test_a_kernel_that_changes_its_argument_is_refused_too(name):
    op = changing(name, bp.ones(3).requires_grad_())
    with pytest.raises(ValueError, match=f"{name}: its kernel used a tensor"):
        op(bp.ones(3))


def test_reading_it_is_refused_as_anywhere(name):
    op = one(lambda x, w: bp.asarray(w.numpy() * x.numpy()))(name, bp.ones(3).requires_grad_())
    with pytest.raises(ValueError, match="requires a gradient.*detach"):
        op(bp.ones(3))


@pytest.mark.parametrize("transform", [bp.grad, lambda f: lambda x: bp.jvp(f, (x,), (x,)), lambda f: bp.vmap(f, in_axes=None, axis_size=2), bp.checkpoint])
def test_it_is_refused_under_every_transform(transform, name):
    op = WAYS["an op"](name, bp.ones(3).requires_grad_())
    with pytest.raises(ValueError, match=name):
        transform(lambda x: op(x).sum())(bp.ones(3))


@pytest.mark.parametrize("transform", [bp.grad, lambda f: lambda x: bp.jvp(f, (x,), (x,)), lambda f: lambda x: bp.vmap(f)(x[None])])
def test_a_transforms_tensor_is_refused_with_what_to_do(transform, name):
    def function(w):
        return WAYS["an op"](name, w)(bp.ones(3)).sum()

    with pytest.raises(ValueError, match="give it to a custom op as an argument"):
        transform(function)(bp.ones(3))


@pytest.mark.parametrize("make", [
    lambda x, w: x * w.detach(),
    lambda x, w: bp.asarray(x.numpy() * w.detach().numpy()),
    lambda x, w: x * w.sum().item(),
], ids=["op", "numpy", "item"])  # fmt: skip
def test_a_constant_is_taken(make, name):
    op = one(make)(name, bp.full(3, 1.0).requires_grad_())
    x = bp.ones(3).requires_grad_()
    op(x).sum().backward()
    assert x.grad.tolist() == [1, 1, 1]


def test_without_recording_it_is_taken(name):
    op = WAYS["an op"](name, bp.full(3, 2.0).requires_grad_())
    with bp.no_grad():
        assert op(bp.ones(3)).tolist() == [2, 2, 2]


def test_a_kernel_may_learn_inside(name):
    def kernel(x, _):
        p = bp.zeros(3).requires_grad_()
        ((p - x) ** 2).sum().backward()
        return bp.asarray(p.grad.numpy())

    x = bp.ones(3).requires_grad_()
    op = one(kernel)(name, None)
    assert op(x).tolist() == [-2, -2, -2]
    assert op(x).requires_grad


def test_a_tensor_that_a_kernel_keeps_gets_no_history(name):
    kept = bp.full(3, 5.0)
    op = one(lambda x, _: kept)(name, None)
    for _ in range(2):
        assert op(bp.ones(3).requires_grad_()).requires_grad
    assert kept.is_leaf and not kept.requires_grad


def test_a_decomposition_alone_is_recorded_through(name):
    w = bp.full(3, 2.0).requires_grad_()
    op = bp.custom_op(name, f"{name.partition('::')[2]}(Tensor x) -> Tensor", shape="broadcast(x)")
    op.register_decomposition(lambda x: x * w)
    x = bp.full(3, 3.0).requires_grad_()
    op(x).sum().backward()
    assert (x.grad.tolist(), w.grad.tolist()) == ([2, 2, 2], [3, 3, 3])
    w.grad = None
    op(bp.ones(3)).sum().backward()
    assert np.asarray(w.grad).tolist() == [1, 1, 1]
