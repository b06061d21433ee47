"""Ops defined in Python are ops: called, recorded, explained, refused and replaced like those of a registry file."""

import gc
import inspect
import subprocess
import sys
import textwrap
import threading
from typing import Optional

import backplane as bp
import numpy as np
import pytest

_names = iter(range(10**6))


@pytest.fixture
def name():
    """A full name that no test has used."""
    return f"custom::op{next(_names)}"


def values(tensor):
    return np.asarray(bp.to_numpy(tensor.detach()))


def scaled(name, **options):
    """x times a number, with all rules."""

    @bp.custom_op(name, **options)
    def scale(x: bp.Tensor, factor: bp.types.Scalar = 2) -> bp.Tensor:
        """Scales a tensor."""
        return bp.asarray(x.numpy() * np.asarray(factor, dtype=x.numpy().dtype))

    @scale.register_shape
    def scale_shape(x):
        return x

    @scale.register_vjp
    def scale_vjp(g, factor):
        return bp.multiply(g, factor)

    @scale.register_jvp
    def scale_jvp(t_x, factor):
        return bp.multiply(t_x, factor)

    return scale


# ---- calling -----------------------------------------------------------------------------------------------------


def test_it_is_called_as_a_function(name):
    scale = scaled(name)
    x = bp.asarray([1.0, 2.0])
    assert values(scale(x)).tolist() == [2.0, 4.0]
    assert values(scale(x, factor=3)).tolist() == [3.0, 6.0]


def test_it_is_an_op_like_any_other(name):
    scale = scaled(name)
    namespace, base = name.split("::")
    assert isinstance(scale, bp.Op)
    assert getattr(getattr(bp.ops, namespace), base) is scale
    assert scale.full_name == name
    assert "Scales a tensor." in scale.__doc__
    assert list(inspect.signature(scale).parameters) == ["x", "factor"]
    text = bp.explain(scale)
    assert 'plugin "python"' in text and __file__.rpartition("/")[2] in text and "scale_vjp" in text


def test_arguments_are_checked_as_those_of_any_op(name):
    scale = scaled(name)
    with pytest.raises(TypeError, match="argument 'factor': found a Tensor|argument 'factor': found a value of type backplane.Tensor"):
        scale(bp.asarray([1.0]), bp.asarray(2.0))
    with pytest.raises(TypeError, match="missing argument 'x'"):
        scale()
    with pytest.raises(TypeError, match="found an argument 'y', expected one of: x, factor"):
        scale(bp.asarray([1.0]), y=1)


def test_infer_says_shape_and_dtype_without_running(name):
    ran = []

    @bp.custom_op(name)
    def rows(x: bp.Tensor) -> bp.Tensor:
        ran.append(x)
        return bp.sum(x, axis=1).astype(bp.float64)

    @rows.register_shape
    def rows_shape(x):
        return bp.types.TensorSpec(x.shape[:1], bp.float64)

    assert rows.infer(bp.zeros((3, 4))) == [(bp.float64, (3,))]
    assert not ran
    assert rows(bp.zeros((3, 4))).shape == (3,)


@pytest.mark.parametrize("shape", [(0,), (), (2, 0, 3), (4, 5)])
def test_any_shape(name, shape):
    assert scaled(name)(bp.ones(shape)).shape == shape


def test_strided_arguments_reach_the_kernel_as_they_are(name):
    x = bp.reshape(bp.arange(12, dtype=bp.float32), (3, 4))
    assert values(scaled(name)(x.T)).tolist() == (2 * values(x).T).tolist()


def test_types_of_arguments_and_their_defaults(name):
    seen = {}

    @bp.custom_op(name)
    def everything(
        x: bp.Tensor,
        xs: list[bp.Tensor],
        y: Optional[bp.Tensor],
        axis: bp.types.Axis = -1,
        axes: Optional[bp.types.Axes] = None,
        *,
        shape: bp.types.Shape = (1, 2),
        size: bp.types.Size = 3,
        position: int = -4,
        factor: float = 0.5,
        phase: complex = 1j,
        flag: bool = True,
        word: str = "ab",
        dtype: Optional[bp.DType] = None,
        sizes: list[int] = (5, 6),
    ) -> bp.Tensor:
        seen.update(locals())
        return bp.zeros(())

    x = bp.asarray([1.0])
    everything(x, [x, x], None)
    del seen["seen"], seen["x"]
    assert len(seen.pop("xs")) == 2
    assert seen == dict(y=None, axis=-1, axes=None, shape=(1, 2), size=3, position=-4, factor=0.5, phase=1j, flag=True,
                        word="ab", dtype=None, sizes=(5, 6))  # fmt: skip
    everything(x, [], x, 0, 1, shape=7, dtype=bp.int8)
    assert seen["axes"] == (1,) and seen["shape"] == (7,) and seen["dtype"] is bp.int8 and seen["xs"] == ()
    with pytest.raises(TypeError, match="argument 'position': found a value of type float, expected an int"):
        everything(x, [], None, position=1.5)


def test_the_signature_may_be_a_string(name):
    base = name.partition("::")[2]
    op = bp.custom_op(name, f"{base}(Tensor x, Scalar factor=2, *, Axes? axes=none, Index[] at=[1, 2]) -> (Tensor low, Tensor high)")
    assert str(inspect.signature(op)).startswith("(x: 'Tensor', factor: 'Scalar' = 2, *, axes: 'Axes | None' = None, at:")

    @op.register_kernel("cpu")
    def kernel(x, factor, *, axes, at):
        return bp.subtract(x, factor), bp.add(x, factor)

    found = op(bp.asarray([1.0]))
    assert values(found.low).tolist() == [-1.0] and values(found.high).tolist() == [3.0]


def test_a_body_that_is_none_is_a_signature(name):
    @bp.custom_op(name)
    def stated(x: bp.Tensor) -> bp.Tensor:
        """Nothing here."""

    with pytest.raises(NotImplementedError, match=r'no kernel on device cpu(.|\n)*@op.register_kernel\("cpu"\)'):
        stated(bp.ones(2))

    @stated.register_kernel("cpu")
    def stated_kernel(x):
        return bp.add(x, 1)

    assert values(stated(bp.ones(2))).tolist() == [2.0, 2.0]


def test_the_kernel_of_a_device_comes_before_that_of_all(name):
    @bp.custom_op(name)
    def which(x: bp.Tensor) -> bp.Tensor:
        return bp.zeros(())

    assert which(bp.ones(1)).item() == 0

    @which.register_kernel("cpu")
    def which_cpu(x):
        return bp.ones(())

    assert which(bp.ones(1)).item() == 1


def rows_of(name):
    @bp.custom_op(name)
    def rows(x: bp.Tensor) -> list[bp.Tensor]:
        return [bp.add(x[i], 0) for i in range(x.shape[0])]

    return rows


def test_a_list_of_tensors_is_a_list(name):
    rows = rows_of(name)
    found = rows(bp.asarray([[1.0, 2.0], [3.0, 4.0]]))
    assert isinstance(found, list) and [values(row).tolist() for row in found] == [[1.0, 2.0], [3.0, 4.0]]
    assert rows(bp.zeros((0, 2))) == []
    with pytest.raises(NotImplementedError, match="no shape rule"):
        rows.infer(bp.ones((1, 1)))


def test_a_list_is_followed_by_transforms_through_a_decomposition_alone(name):
    rows = rows_of(name)
    x = bp.asarray([[1.0, 2.0], [3.0, 4.0]])
    for use in (
        lambda: rows(bp.copy(x).requires_grad_()),
        lambda: bp.grad(lambda v: bp.sum(rows(v)[1]))(x),
        lambda: bp.jvp(lambda v: rows(v)[1], (x,), (x,)),
    ):
        with pytest.raises(NotImplementedError, match="follows a list of tensors only through a decomposition"):
            use()
    rows.register_decomposition(lambda x: [x[i] for i in range(x.shape[0])])
    assert values(bp.grad(lambda v: bp.sum(rows(v)[1]))(x)).tolist() == [[0.0, 0.0], [1.0, 1.0]]
    assert values(bp.jvp(lambda v: rows(v)[1], (x,), (x,))[1]).tolist() == [3.0, 4.0]
    assert values(bp.vmap(lambda v: rows(v)[1])(bp.reshape(x, (2, 2, 1)))).tolist() == [[2.0], [4.0]]
    assert bp.opcheck(rows, (x,))


def test_wrong_elements_of_a_list(name):
    @bp.custom_op(name)
    def rows(x: bp.Tensor) -> list[bp.Tensor]:
        return [x]

    with pytest.raises(ValueError, match="its kernel returned memory of 'x'"):
        rows(bp.ones(2))
    rows.register_kernel("cpu")(lambda x: [bp.add(x, 1), 2])
    with pytest.raises(TypeError, match="returned a value of type int as result 0; expected a Tensor"):
        rows(bp.ones(2))


def test_several_results(name):
    @bp.custom_op(name)
    def halves(x: bp.Tensor) -> tuple[bp.Tensor, bp.Tensor]:
        return bp.add(x, 0), bp.multiply(x, 2)

    low, high = halves(bp.ones(2))
    assert values(low).tolist() == [1, 1] and values(high).tolist() == [2, 2]


def test_random_numbers_come_from_the_generator(name):
    @bp.custom_op(name)
    def noise(x: bp.Tensor, *, generator: bp.Generator) -> bp.Tensor:
        return bp.add(x, bp.uniform(x.shape, generator=generator))

    bp.manual_seed(3)
    first = values(noise(bp.zeros(4)))
    second = values(noise(bp.zeros(4)))
    bp.manual_seed(3)
    assert (values(noise(bp.zeros(4))) == first).all() and (first != second).any()


# ---- derivatives -------------------------------------------------------------------------------------------------


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
    """So a change of what it does not read is no error, and a change of what it reads is one."""
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


# ---- levels ------------------------------------------------------------------------------------------------------


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


# ---- in place ----------------------------------------------------------------------------------------------------


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


# ---- what is missing, and what is wrong --------------------------------------------------------------------------


def bare(name):
    @bp.custom_op(name)
    def bare_op(x: bp.Tensor) -> bp.Tensor:
        return bp.add(x, 1)

    return bare_op


def test_a_missing_vjp_is_an_error_that_names_the_line_to_add(name):
    op, base = bare(name), name.partition("::")[2]
    out = op(bp.asarray(1.0).requires_grad_())
    with pytest.raises(NotImplementedError, match=f'{name}.*"x".*no vjp rule is registered; add one with @{base}.register_vjp'):
        out.backward()


def test_a_missing_shape_rule_is_an_error_where_it_is_needed(name):
    op, base = bare(name), name.partition("::")[2]
    op(bp.ones(1))
    with pytest.raises(NotImplementedError, match=f"{name}: no shape rule is registered; add one with @{base}.register_shape"):
        op.infer(bp.ones(1))


def test_a_taken_name_names_both_owners(name):
    bare(name)
    with pytest.raises(ValueError, match=rf"{name}: the name is taken by the Python op of .*test_custom_op.py:\d+; the one of .*test_custom_op.py:\d+"):
        bare(name)
    with pytest.raises(ValueError, match="namespace bp is Backplane's"):
        bare("bp::add")


def test_replace_takes_the_place_of_a_python_op(name):
    old = bare(name)
    kept = bp.asarray(1.0).requires_grad_()

    @old.register_vjp
    def old_vjp(g):
        return g

    recorded = old(kept)

    @bp.custom_op(name, replace=True)
    def anew(x: bp.Tensor) -> bp.Tensor:
        return bp.add(x, 10)

    assert anew(bp.zeros(())).item() == 10 and old(bp.zeros(())).item() == 10
    recorded.backward()  # by the rule of the definition that recorded it
    assert kept.grad.item() == 1.0


def test_replacing_with_another_signature_leaves_the_old_handle_an_error(name):
    old = bare(name)

    @bp.custom_op(name, replace=True)
    def anew(x: bp.Tensor, y: bp.Tensor) -> bp.Tensor:
        return bp.add(x, y)

    assert anew(bp.ones(()), bp.ones(())).item() == 2
    with pytest.raises(NotImplementedError, match="defined anew with another signature"):
        old(bp.ones(()))


@pytest.mark.parametrize(
    "define, message",
    [
        (lambda x: None, "the argument 'x': found no type hint"),
        (lambda: None, "the result: found no type hint"),
    ],
)
def test_missing_hints(name, define, message):
    with pytest.raises(TypeError, match=message):
        bp.custom_op(name)(define)


def test_wrong_signatures(name):
    base = name.partition("::")[2]
    for text, message in {
        "other(Tensor x) -> Tensor": f"the name in the signature: found 'other', expected '{base}'",
        f"{base}(Matrix x) -> Tensor": "an argument of the signature: found 'Matrix x'",
        f"{base}(Tensor x) -> int": "the results of the signature: found 'int'",
        f"{base} x": "expected the form name",
        f"{base}(Tensor g) -> Tensor": "the name of an argument: found 'g'",
        f"{base}(Tensor x, Scalar k=what) -> Tensor": "the default of 'k': found what",
    }.items():
        with pytest.raises(TypeError, match=message):
            bp.custom_op(name, text)
    with pytest.raises(TypeError, match="type hint of 'x': found dict"):

        @bp.custom_op(name)
        def f(x: dict) -> bp.Tensor: ...


def test_wrong_options(name):
    base = name.partition("::")[2]
    with pytest.raises(ValueError, match="mutates_args: found .'y',., expected the first argument"):
        bp.custom_op(name, f"{base}(Tensor x, Tensor y) -> ()", mutates_args=("y",))
    with pytest.raises(ValueError, match="mutates_args: found ...*returns tensors, or changes"):
        bp.custom_op(name, f"{base}(Tensor x) -> ()")
    with pytest.raises(ValueError, match="alias: found 'z'"):
        bp.custom_op(name, f"{base}(Tensor x) -> Tensor", alias="z")
    with pytest.raises(ValueError, match="no shape rule 'brodcast'"):
        bp.custom_op(name, f"{base}(Tensor x) -> Tensor", shape="brodcast(x)")
    bp.custom_op(name, f"{base}(Tensor x) -> Tensor")  # nothing of the above stayed


def test_rules_with_unknown_parameters_are_refused_when_registered(name):
    op = bare(name)
    with pytest.raises(ValueError, match="a parameter of its vjp rule: found y, expected one of x, out, g, needs"):
        op.register_vjp(lambda g, y: g)
    with pytest.raises(ValueError, match="a parameter of its jvp rule: found t_y"):
        op.register_jvp(lambda t_y: t_y)
    with pytest.raises(TypeError, match="does not take the op's arguments"):
        op.register_kernel("cpu")(lambda: None)
    with pytest.raises(TypeError, match="bp::add was not defined in Python"):
        bp.add.register_vjp(lambda g: g)


def test_wrong_results_of_rules(name):
    @bp.custom_op(name)
    def f(x: bp.Tensor, y: bp.Tensor) -> bp.Tensor:
        return bp.add(x, y)

    x = bp.ones((2, 3)).requires_grad_()
    for rule, message in [
        (lambda g: g, "what its vjp rule returned: found a Tensor, expected a tuple of 2: x, y"),
        (lambda g: (bp.ones((5,)), None), r"the cotangent of 'x' from its vjp rule: found shape \(5,\), expected \(2, 3\)"),
        (lambda g: {"x": g}, "found a dict of x, expected x, y"),
        (lambda g: (3, g), "found a value of type int, expected a Tensor or None"),
    ]:
        f.register_vjp(rule)
        with pytest.raises(ValueError, match=message):
            f(x, x).sum().backward()


def test_wrong_results_of_kernels(name):
    base = name.partition("::")[2]
    f = bp.custom_op(name, f"{base}(Tensor x, Tensor y) -> Tensor", shape="broadcast(x, y)")
    x = bp.ones((2, 3))
    for kernel, error, message in [
        (lambda x, y: 1, TypeError, "its kernel returned a value of type int as result 0; expected a Tensor"),
        (lambda x, y: (x, y), TypeError, "its kernel returned a value of type tuple"),
        (lambda x, y: bp.zeros((3, 2)), ValueError, r"made result 0 float32 of shape \(3, 2\); its shape rule says float32 of shape \(2, 3\)"),
        (lambda x, y: bp.zeros((2, 3), dtype=bp.int8), ValueError, "made result 0 int8 of shape"),
        (lambda x, y: x, ValueError, "its kernel returned memory of 'x', which its definition does not say"),
        (lambda x, y: bp.zeros_like(x.add_(1)), ValueError, "its kernel changed 'x' in place, which its definition does not say"),
    ]:
        f.register_kernel("cpu")(kernel)
        with pytest.raises(error, match=message):
            f(x, bp.ones((2, 3)))


class Stop(Exception):
    pass


def test_exceptions_of_kernels_and_rules_arrive_as_they_are(name):
    @bp.custom_op(name)
    def fails(x: bp.Tensor) -> bp.Tensor:
        if x.ndim:
            raise Stop("kernel")
        return bp.add(x, 0)

    @fails.register_vjp
    def fails_vjp(g):
        raise Stop("vjp")

    with pytest.raises(Stop, match="kernel"):
        fails(bp.ones(1))
    with pytest.raises(Stop, match="vjp"):
        fails(bp.asarray(1.0).requires_grad_()).backward()
    assert fails(bp.asarray(1.0)).item() == 1.0  # the next call works


# ---- lives -------------------------------------------------------------------------------------------------------


def test_calls_from_threads(name):
    scale = scaled(name)
    failures = []

    def work():
        try:
            for i in range(50):
                x = bp.asarray([float(i)]).requires_grad_()
                scale(x, 3).sum().backward()
                assert values(x.grad).tolist() == [3.0]
        except Exception as failure:  # noqa: BLE001
            failures.append(failure)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_large_calls_which_give_up_the_interpreter_lock(name):
    x = bp.ones(1 << 18).requires_grad_()
    scaled(name)(x).sum().backward()
    assert x.grad[0].item() == 2.0


def test_kernels_may_call_custom_ops(name):
    inner = scaled(name + "_inner")

    @bp.custom_op(name)
    def outer(x: bp.Tensor) -> bp.Tensor:
        return inner(inner(x))

    assert outer(bp.ones(())).item() == 4.0


def test_the_interpreter_ends_cleanly_with_custom_ops_alive():
    script = textwrap.dedent("""
        import backplane as bp

        @bp.custom_op("end::grow")
        def grow(x: bp.Tensor) -> bp.Tensor:
            return bp.add(x, 1)

        @grow.register_vjp
        def grow_vjp(g):
            return g

        kept = grow(bp.asarray([1.0]).requires_grad_())
        handle = bp.ops.end.grow
        print(kept.tolist())
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[2.0]\n", "")


def test_results_are_freed(name):
    scale = scaled(name)
    gc.collect()
    x = bp.ones(4)
    before = sys.getrefcount(x)
    for _ in range(100):
        scale(x)
    assert sys.getrefcount(x) == before
