"""Ops defined in Python are recorded, batched and changed in place by their rules."""

import backplane as bp
import numpy as np
import pytest
from custom_op_toys import bare, name, scaled, values  # noqa: F401


# ---- derivatives ----------------------------------------------------------------------------------------------------


def test_backward_runs_the_vjp(name):
    x = bp.asarray([1.0, 2.0]).requires_grad_()
    scaled(name)(x, 5).sum().backward()
    assert values(x.grad).tolist() == [5.0, 5.0]


def test_second_order(name):
    @bp.custom_op(name)
    def cube(x: bp.Tensor) -> bp.Tensor:
        return bp.asarray(x.numpy() ** 3)

    @cube.register_vjp
    def cube_vjp(g, x):
        return bp.multiply(g, bp.multiply(bp.square(x), 3))

    x = bp.asarray(2.0).requires_grad_()
    (first,) = bp.gradients([cube(x)], [x], create_graph=True)
    (second,) = bp.gradients([first], [x])
    assert (first.item(), second.item()) == (12.0, 12.0)


def test_a_cotangent_is_fitted_to_its_argument(name):
    @bp.custom_op(name)
    def plus(x: bp.Tensor, y: bp.Tensor) -> bp.Tensor:
        return bp.add(x, y)

    @plus.register_vjp
    def plus_vjp(g):
        return g, g

    x, y = bp.ones((3, 1)).requires_grad_(), bp.ones(4, dtype=bp.float64).requires_grad_()
    plus(x, y).sum().backward()
    assert values(x.grad).tolist() == [[4.0]] * 3 and x.grad.dtype is bp.float32
    assert values(y.grad).tolist() == [3.0] * 4 and y.grad.dtype is bp.float64


def test_only_what_the_vjp_names_is_kept(name):
    """A change of a tensor that it does not read is not an error, and a change of one that it reads is an error."""
    scale = scaled(name)
    x = bp.asarray([1.0]).requires_grad_()
    y = bp.multiply(x, 1)
    z = scale(y)
    y.add_(1)
    z.sum().backward()
    assert values(x.grad).tolist() == [2.0]


def test_results_that_the_vjp_names_are_kept(name):
    @bp.custom_op(name)
    def grow(x: bp.Tensor) -> bp.Tensor:
        return bp.exp(x)

    @grow.register_vjp
    def grow_vjp(g, out, needs):
        assert needs.x
        return bp.multiply(g, out)

    x = bp.asarray(0.0).requires_grad_()
    y = grow(x)
    y.backward()
    assert x.grad.item() == 1.0
    z = grow(x)
    z.add_(1)
    with pytest.raises(ValueError, match="changed in place"):
        z.backward()


def test_several_results_have_several_cotangents(name):
    @bp.custom_op(name)
    def parts(x: bp.Tensor) -> tuple[bp.Tensor, bp.Tensor]:
        return bp.multiply(x, 2), bp.multiply(x, 3)

    @parts.register_vjp
    def parts_vjp(g):
        low, high = g
        return bp.add(bp.multiply(low, 2), bp.multiply(high, 3))

    x = bp.asarray(1.0).requires_grad_()
    parts(x)[1].backward()  # the other cotangent is made
    assert x.grad.item() == 3.0


def test_lists_of_tensors_have_lists_of_cotangents(name):
    @bp.custom_op(name)
    def total(xs: list[bp.Tensor]) -> bp.Tensor:
        return bp.add(xs[0], xs[1])

    @total.register_vjp
    def total_vjp(g):
        return [g, bp.multiply(g, 2)]

    a, b = bp.asarray(1.0).requires_grad_(), bp.asarray(1.0).requires_grad_()
    total([a, b]).backward()
    assert (a.grad.item(), b.grad.item()) == (1.0, 2.0)


def test_kernels_are_not_recorded(name):
    seen = []

    @bp.custom_op(name)
    def twice(x: bp.Tensor) -> bp.Tensor:
        seen.append((x.requires_grad, bp.multiply(x, 2).requires_grad))
        return bp.multiply(x, 2)

    out = twice(bp.asarray(1.0).requires_grad_())
    assert seen == [(False, False)] and out.requires_grad


def test_a_decomposition_brings_what_is_not_stated(name):
    @bp.custom_op(name)
    def poly(x: bp.Tensor) -> bp.Tensor: ...

    @poly.register_decomposition
    def poly_parts(x):
        return bp.add(bp.multiply(x, x), x)

    x = bp.asarray(3.0).requires_grad_()
    out = poly(x)
    out.backward()
    assert (out.item(), x.grad.item()) == (12.0, 7.0)


# ---- levels ---------------------------------------------------------------------------------------------------------


def test_forward_mode_runs_the_jvp(name):
    x = bp.asarray([1.0, 2.0])
    value, tangent = bp.jvp(lambda v: scaled(name)(v, 3), (x,), (bp.ones(2),))
    assert values(value).tolist() == [3.0, 6.0] and values(tangent).tolist() == [3.0, 3.0]


def test_a_linear_jvp_is_the_op_itself(name):
    @bp.custom_op(name)
    def difference(x: bp.Tensor, y: bp.Tensor, *, factor: float = 1.0) -> bp.Tensor:
        return bp.multiply(bp.subtract(x, y), factor)

    difference.register_jvp("linear")
    _, tangent = bp.jvp(lambda x: difference(x, bp.ones(2), factor=2.0), (bp.ones(2),), (bp.asarray([5.0, 6.0]),))
    assert values(tangent).tolist() == [10.0, 12.0]


def test_vmap_runs_the_batch_rule(name):
    seen = []

    @bp.custom_op(name)
    def total(x: bp.Tensor, y: bp.Tensor) -> bp.Tensor:
        return bp.sum(bp.multiply(x, y))

    @total.register_batch
    def total_batch(x, y, batched):
        seen.append((batched.x, batched.y, x.shape, y.shape))
        return bp.sum(bp.multiply(x, y), axis=1)

    x = bp.reshape(bp.arange(6, dtype=bp.float32), (3, 2))
    assert values(bp.vmap(total, in_axes=(1, None))(bp.matrix_transpose(x), bp.ones(2))).tolist() == [1.0, 5.0, 9.0]
    assert seen == [(True, False, (3, 2), (2,))]


def test_a_stated_shape_gives_the_batch_rule(name):
    base = name.partition("::")[2]
    plus = bp.custom_op(name, f"{base}(Tensor x, Tensor y) -> Tensor", shape="broadcast(x, y)")
    plus.register_kernel(lambda x, y: bp.add(x, y))
    found = bp.vmap(plus, in_axes=(0, None))(bp.ones((3, 2)), bp.ones(2))
    assert found.shape == (3, 2) and plus.infer(bp.ones((3, 1)), bp.ones(4)) == [(bp.float32, (3, 4))]


def test_a_stated_shape_that_says_too_little_gives_none(name):
    base = name.partition("::")[2]
    op = bp.custom_op(name, f"{base}(Tensor x, Tensor y) -> Tensor", shape="same(x)")
    op.register_kernel(lambda x, y: bp.add(x, y))
    x = bp.ones((3, 2))
    with pytest.raises(NotImplementedError, match=rf"follows from the shape rule same; add one with @{base}.register_batch"):
        bp.vmap(op)(x, x)
    op.register_decomposition(lambda x, y: bp.add(x, y))
    assert values(bp.vmap(op)(x, x)).tolist() == [[2.0, 2.0]] * 3


def test_a_loop_is_a_batch_rule(name):
    scale = scaled(name)
    scale.register_batch("loop")
    assert values(bp.vmap(scale)(bp.asarray([[1.0], [2.0]]))).tolist() == [[2.0], [4.0]]


def test_nested_transforms(name):
    @bp.custom_op(name)
    def cube(x: bp.Tensor) -> bp.Tensor:
        return bp.asarray(x.numpy() ** 3)

    cube.register_shape(lambda x: x)
    cube.register_vjp(lambda g, x: bp.multiply(g, bp.multiply(bp.square(x), 3)))
    cube.register_jvp(lambda t_x, x: bp.multiply(t_x, bp.multiply(bp.square(x), 3)))
    cube.register_batch(lambda x: cube(x))
    x = bp.asarray([1.0, 2.0])
    assert values(bp.vmap(bp.grad(bp.grad(cube)))(x)).tolist() == [6.0, 12.0]
    _, tangent = bp.jvp(bp.vmap(bp.grad(cube)), (x,), (bp.ones(2),))
    assert values(tangent).tolist() == [6.0, 12.0]


def test_what_a_kernel_makes_belongs_to_no_level(name):
    """It runs below all transforms, also where its arguments are of none."""
    seen = []

    @bp.custom_op(name)
    def plus_one(x: bp.Tensor) -> bp.Tensor:
        seen.append(values(bp.ones(2)).tolist())
        return bp.add(x, bp.ones(2))

    captured = bp.zeros(2)
    found = bp.vmap(lambda x: bp.add(plus_one(captured), x))(bp.zeros((3, 2)))
    assert seen == [[1.0, 1.0]] and found.shape == (3, 2)


def test_a_mutating_op_inside_transforms(name):
    @bp.custom_op(name, mutates_args=("x",))
    def triple(x: bp.Tensor) -> None:
        x.multiply_(3)

    triple.register_vjp(lambda g: bp.multiply(g, 3))
    triple.register_batch(lambda x: bp.multiply(x, 3))

    def function(x):
        y = bp.multiply(x, 1)
        triple(y)
        return bp.sum(y)

    assert values(bp.grad(function)(bp.ones(2))).tolist() == [3.0, 3.0]
    assert values(bp.vmap(function)(bp.ones((3, 2)))).tolist() == [6.0] * 3


@pytest.mark.parametrize("rule, use", [
    ("jvp", lambda op, x: bp.jvp(op, (x,), (x,))),
    ("batch", lambda op, x: bp.vmap(op)(x)),
])  # fmt: skip
def test_a_missing_rule_is_an_error_of_its_transform(name, rule, use):
    op, base = bare(name), name.partition("::")[2]
    with pytest.raises(NotImplementedError, match=f"{name}.*no {rule} rule is registered; add one with @{base}.register_{rule}"):
        use(op, bp.ones(2))
    assert values(op(bp.ones(()))).tolist() == 2.0  # the levels are gone


# ---- in place -------------------------------------------------------------------------------------------------------


def test_a_mutating_op_changes_its_first_argument(name):
    @bp.custom_op(name, mutates_args=("x",))
    def negate(x: bp.Tensor) -> None:
        np.negative(x.numpy(), out=x.numpy())

    x = bp.asarray([1.0, -2.0])
    version = x.version
    assert negate(x) is x
    assert values(x).tolist() == [-1.0, 2.0] and x.version > version


def test_a_mutating_op_is_recorded(name):
    @bp.custom_op(name, mutates_args=("x",))
    def triple(x: bp.Tensor) -> None:
        x.multiply_(3)

    @triple.register_vjp
    def triple_vjp(g):
        return bp.multiply(g, 3)

    x = bp.asarray([1.0, 2.0]).requires_grad_()
    y = bp.multiply(x, 1)
    triple(y)
    y.sum().backward()
    assert values(y).tolist() == [3.0, 6.0] and values(x.grad).tolist() == [3.0, 3.0]


def test_views_are_stated_not_computed(name):
    flip = bp.custom_op(name, f"{name.partition('::')[2]}(Tensor x, Axes axes) -> Tensor", alias="x", shape="view.permute(x, axes)")
    x = bp.zeros((2, 3))
    y = flip(x, (1, 0))
    y[0, 0] = 5.0
    assert y.shape == (3, 2) and x[0, 0].item() == 5.0
