"""Values inside transforms: single elements are read and the primal is printed, whole tensors only through stop_gradient;
a batch has no single value."""

import copy
import math
import pickle

import backplane as bp
import numpy as np
import pytest
from backplane import _core


def inside(transform, function):
    """What `function` returns for a tensor [1., 2.] inside the transform."""
    seen = []

    def watched(x):
        seen.append(function(x))
        return x.sum()

    x = bp.asarray([1.0, 2.0])
    if transform == "grad":
        bp.grad(watched)(x)
    elif transform == "jvp":
        bp.jvp(watched, (x,), (x,))
    elif transform == "grad of grad":
        bp.grad(lambda x: bp.grad(watched)(x).sum())(x)
    else:
        bp.vmap(watched)(x[None])
    return seen[0]


PLAIN = ["grad", "jvp", "grad of grad"]


@pytest.mark.parametrize("transform", PLAIN)
def test_the_primal_is_read(transform):
    assert inside(transform, lambda x: x[1].item()) == 2.0
    assert inside(transform, lambda x: (float(x[0]), int(x[1]), bool(x[0] > 0))) == (1.0, 2, True)
    assert inside(transform, lambda x: f"{x[1]:.2f}") == "2.00"
    assert inside(transform, lambda x: 2.0 in x)
    assert inside(transform, lambda x: [v.item() for v in x]) == [1.0, 2.0]
    assert inside(transform, lambda x: (x.shape, x.dtype, x.ndim, x.size, len(x))) == ((2,), bp.float32, 1, 2, 2)


# Every way in which the elements leave our sight, as a list of the same numbers.
DOORS = {
    "numpy": lambda x: x.numpy().tolist(),
    "tolist": lambda x: x.tolist(),
    "asarray": lambda x: np.asarray(x).tolist(),
    "array": lambda x: np.array(x, dtype=np.float64).tolist(),
    "buffer": lambda x: memoryview(x).tolist(),
    "bytes": lambda x: np.frombuffer(bytes(x), np.float32).tolist(),
    "from_dlpack": lambda x: np.from_dlpack(x).tolist(),
    "dlpack copy": lambda x: np.from_dlpack(x, copy=True).tolist(),
    "a function of NumPy alone": lambda x: np.require(x).tolist(),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("of", [lambda x: x, lambda x: 3 * x, lambda x: x[:], lambda x: bp.concat([x[1:], x[:1]])])
@pytest.mark.parametrize("transform", PLAIN)
def test_what_would_lose_its_derivative_is_refused(transform, of, door):
    with pytest.raises((BufferError, ValueError), match=r"inside (grad|jvp).*stop_gradient"):
        inside(transform, lambda x: DOORS[door](of(x)))
    assert len(inside(transform, lambda x: DOORS[door](bp.stop_gradient(of(x))))) == 2


@pytest.mark.parametrize("transform", [bp.grad, bp.value_and_grad, bp.jacrev, bp.jacfwd, bp.hessian,
                                       lambda f: lambda x: bp.vjp(f, x), lambda f: lambda x: bp.jvp(f, (x,), (x,)),
                                       lambda f: bp.vmap(bp.grad(f), in_axes=None, axis_size=2)])
def test_no_gradient_is_zero_because_numpy_computed(transform):
    with pytest.raises(ValueError, match="stop_gradient"):
        transform(lambda x: bp.asarray(np.require(x)).sum())(bp.asarray([1.0, 2.0, 3.0]))


def test_a_function_of_numpy_that_we_have_is_differentiated():
    x = bp.asarray([1.0, 2.0, 3.0])
    assert bp.grad(lambda x: np.dot(x, x))(x).tolist() == [2, 4, 6]
    assert bp.jvp(lambda x: np.sum(np.multiply(x, np.ones(3, np.float32))), (x,), (x,))[1].item() == 6
    assert bp.vmap(np.sum)(x[None]).tolist() == [6]


@pytest.mark.parametrize("transform", PLAIN)
def test_what_is_not_differentiated_is_read(transform):
    def constants(x):
        captured = bp.asarray([1.0, 2.0])
        return captured.tolist(), np.asarray(bp.ones_like(x)).tolist(), (x > 1).numpy().tolist(), bp.argmax(x).tolist()

    assert inside(transform, constants) == ([1.0, 2.0], [1.0, 1.0], [False, True], 1)


def test_a_view_of_what_became_differentiated_is_refused():
    def f(x):
        y = bp.zeros_like(x)
        view = y[0:2]
        y[...] = 2 * x
        with pytest.raises(ValueError, match="inside grad.*stop_gradient"):
            view.tolist()
        return x.sum()

    bp.grad(f)(bp.asarray([1.0, 2.0, 3.0]))


def test_a_leaf_of_the_tape_inside_a_transform_is_refused():
    leaf = bp.asarray([1.0, 2.0])
    leaf.requires_grad = True
    with pytest.raises(ValueError, match="requires a gradient"):
        bp.jvp(lambda x: (bp.asarray((leaf * 2).numpy()), x)[1], (bp.ones(2),), (bp.ones(2),))


@pytest.mark.parametrize("transform", PLAIN)
def test_the_array_is_read_only(transform):
    assert not inside(transform, lambda x: bp.stop_gradient(x).numpy().flags.writeable)
    with pytest.raises(ValueError):
        inside(transform, lambda x: np.from_dlpack(bp.stop_gradient(x)).__setitem__(0, 1.0))


def test_a_static_number_from_a_tensor_says_that_it_is_a_constant():
    with pytest.raises(TypeError, match=r"x\.item\(\).*no gradient flows"):
        bp.uniform((2,), high=bp.ones((2,)))


@pytest.mark.parametrize("bounds", [lambda x: (x[0],), lambda x: (0, x[1]), lambda x: (0, 4, x[1])], ids=["stop", "stop after start", "step"])
@pytest.mark.parametrize("transform", PLAIN)
def test_arange_loses_no_derivative_of_its_bounds(transform, bounds):
    with pytest.raises(ValueError, match=r"arange: found a tensor inside (grad|jvp).*stop_gradient.*linspace"):
        inside(transform, lambda x: bp.arange(*bounds(x)))
    assert len(inside(transform, lambda x: bp.arange(*(bp.stop_gradient(bound) for bound in bounds(x))))) > 0
    assert len(inside(transform, lambda x: bp.arange((x > 1).sum() + 1))) == 2


def test_arange_loses_no_gradient_of_the_tape():
    x = bp.asarray(3.0).requires_grad_()
    for bound in (x, 2 * x):
        with pytest.raises(ValueError, match="arange: found a bound that requires a gradient.*detach.*linspace"):
            bp.arange(bound)
    with bp.no_grad():
        assert bp.arange(x).tolist() == [0, 1, 2]
    assert bp.arange(x.detach()).tolist() == bp.arange(x.item()).tolist() == [0, 1, 2]


# Numbers of functions, each as a function of the tensor that is given for it.
NUMBERS = {
    "clip": lambda x: bp.clip(bp.arange(3.0), 0.5, x),
    "power": lambda x: bp.pow(bp.asarray(3.0), x),
    "full": lambda x: bp.full((2,), x),
    "full_like": lambda x: bp.full_like(bp.ones(2), x),
    "linspace": lambda x: bp.linspace(0, x, 3),
    "logspace": lambda x: bp.logspace(0, x, 3),
    "logspace's base": lambda x: bp.logspace(0, 2, 3, base=x),
    "geomspace": lambda x: bp.geomspace(1, x, 3),
    "where": lambda x: bp.where(bp.asarray([True, False]), x, 0),
    "pad": lambda x: bp.pad(bp.ones(2), 1, constant_values=x),
    "elu": lambda x: bp.nn.functional.elu(bp.asarray([-1.0]), x),
    "leaky_relu": lambda x: bp.nn.functional.leaky_relu(bp.asarray([-1.0]), x),
    "layer_norm": lambda x: bp.nn.functional.layer_norm(bp.arange(3.0), (3,), eps=x),
    "huber_loss": lambda x: bp.nn.functional.huber_loss(bp.asarray([9.0]), bp.asarray([1.0]), delta=x),
    "uniform": lambda x: bp.uniform((2,), high=x),
    "nan_to_num": lambda x: bp.nan_to_num(bp.asarray([math.nan]), nan=x),
    "std": lambda x: bp.std(bp.arange(3.0), correction=x),
    "quantile": lambda x: bp.quantile(bp.asarray([1.0, 2.0, 4.0]), x / 4),
    "gradient": lambda x: bp.gradient(bp.asarray([1.0, 2.0, 4.0]), x),
    "norm": lambda x: bp.linalg.vector_norm(bp.asarray([3.0, 4.0]), ord=x),
    "trapezoid": lambda x: bp.trapezoid(bp.asarray([1.0, 2.0, 4.0]), dx=x),
    "diff": lambda x: bp.diff(bp.asarray([1.0, 2.0]), append=x),
    "setitem": lambda x: bp.zeros(2).__setitem__(0, x),
    "fill": lambda x: bp.zeros(2).fill_(x),
    "asarray": lambda x: bp.asarray([x, 1.0]),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_tensor_for_a_number_keeps_its_derivative_or_is_refused(name):
    def found(x):
        result = NUMBERS[name](x)
        if result is not None:
            seen.append(bool(_core.transforms_of(result)))
        return x * 1

    seen = []
    try:
        bp.grad(found)(bp.asarray(2.0))
    except (TypeError, ValueError) as error:
        assert "x.item()" in str(error) and "no gradient flows" in str(error) or "stop_gradient" in str(error), error
    else:
        assert all(seen)


def test_branches_on_values_differentiate_the_branch_taken():
    def f(x):
        return x * x if x > 0 else -x

    assert bp.grad(f)(3.0).item() == 6 and bp.grad(f)(-3.0).item() == -1


def test_printing_names_the_transforms():
    assert inside("grad", repr) == "tensor([1., 2.], inside=grad)"
    assert inside("jvp", repr) == "tensor([1., 2.], inside=jvp)"
    assert inside("grad of grad", repr) == "tensor([1., 2.], inside=grad(grad))"
    assert inside("vmap", repr) == "tensor(<batched>, shape=(2,), dtype=float32, inside=vmap)"
    seen = []
    bp.vmap(bp.grad(lambda x: (seen.append(repr(x)), x)[1]))(bp.ones(2))
    assert seen == ["tensor(<batched>, shape=(), dtype=float32, inside=vmap(grad))"]


@pytest.mark.parametrize(
    "read", [lambda x: x.tolist(), lambda x: x[0].item(), lambda x: float(x[0]), lambda x: bool(x[0]), lambda x: x.numpy(),
             lambda x: int(x[0]), lambda x: np.asarray(x), lambda x: f"{x[0]:.2f}", lambda x: 1.0 in x]
)
def test_a_batch_is_not_read(read):
    with pytest.raises(bp.BackplaneError, match="differs from row to row of the batch of vmap.*where"):
        inside("vmap", read)


def test_what_is_the_same_for_all_rows_is_read():
    assert inside("vmap", lambda x: float(bp.asarray(2.0))) == 2.0


COPIES = {"pickle": lambda x: pickle.loads(pickle.dumps(x)), "deepcopy": copy.deepcopy}


@pytest.mark.parametrize("copied", COPIES)
@pytest.mark.parametrize("transform", PLAIN + ["vmap"])
def test_copies_by_pickle_are_refused(transform, copied):
    found = f"{copied}: the tensor differs from row to row of the batch of vmap" if transform == "vmap" else "inside (grad|jvp)"
    with pytest.raises(ValueError, match=found):
        inside(transform, COPIES[copied])


@pytest.mark.parametrize("copied", COPIES)
@pytest.mark.parametrize("transform", PLAIN)
def test_constants_are_copied_by_pickle(transform, copied):
    made = inside(transform, lambda x: COPIES[copied](bp.stop_gradient(3 * x)))
    assert made.tolist() == [3, 6] and made.is_leaf


def test_a_copied_structure_names_one_constant_once():
    first, second = inside("grad", lambda x: copy.deepcopy([bp.stop_gradient(x)] * 2))
    assert first is second


@pytest.mark.parametrize("transform", PLAIN + ["vmap"])
def test_sequences_are_stacked_with_their_derivatives(transform):
    made = inside(transform, lambda x: (bp.asarray([x[0], x[1]]).shape, bool(_core.transforms_of(bp.asarray([x[0], x[1]])))))
    assert made == ((2,), True)


@pytest.mark.parametrize("transform", PLAIN + ["vmap"])
def test_attributes_answer(transform):
    def ask(x):
        return (x.device == "cpu", x.itemsize, x.nbytes, x[None].T.shape, x.is_leaf in (True, False), isinstance(x.version, int),
                x.grad, x.to("cpu").shape, bp.asarray(x).shape, x[...].shape, x.astype(bp.float64).dtype)

    assert inside(transform, ask) == (True, 4, 8, (2, 1), True, True, None, (2,), (2,), (2,), bp.float64)


@pytest.mark.parametrize("transform", PLAIN + ["vmap"])
@pytest.mark.parametrize("leave", [lambda x: x.backward(), lambda x: x.requires_grad_()])
def test_what_makes_no_sense_inside_is_an_error(transform, leave):
    with pytest.raises(bp.BackplaneError):
        inside(transform, leave)


@pytest.mark.parametrize("constant", [lambda x: x.detach(), lambda x: x.data, lambda x: bp.stop_gradient(x)])
def test_a_detached_value_is_a_constant(constant):
    x = bp.asarray([1.0, 2.0])
    assert bp.grad(lambda x: (x * constant(x)).sum())(x).tolist() == [1, 2]
    assert bp.jvp(lambda x: x * constant(x), (x,), (x,))[1].tolist() == [1, 4]
    assert bp.vmap(bp.grad(lambda x: x * constant(x * x)))(x).tolist() == [1, 4]
    assert bp.hessian(lambda x: (x * x * constant(x)).sum())(x).tolist() == [[2, 0], [0, 4]]


@pytest.mark.parametrize("transform", PLAIN + ["vmap"])
def test_a_value_inside_is_not_exported(transform):
    with pytest.raises(BufferError, match="stop_gradient|differs from row to row"):
        inside(transform, lambda x: x.__dlpack__())


@pytest.mark.parametrize("transform", [bp.grad, bp.value_and_grad, bp.jacrev, lambda f: lambda x: bp.vjp(f, x)])
@pytest.mark.parametrize("result", [lambda x: np.require(x)[0], lambda x: float(np.dot(x, x)), lambda x: None])
def test_a_function_without_a_tensor_for_a_result_is_refused_by_checkpoint(transform, result):
    """Its second run, which would refuse to lose the derivative, would never come."""
    f = bp.checkpoint(result)
    with pytest.raises((TypeError, ValueError), match="returned no tensor|stop_gradient"):
        transform(lambda x: x.sum() * (f(x) or 1.0))(bp.asarray([1.0, 2.0, 3.0]))


def test_a_custom_function_without_a_tensor_for_a_result_is_refused():
    h = bp.custom_function(lambda x: float(np.dot(x, x)))
    h.defvjp(lambda x: (h(x), x), lambda x, g: (2 * x * g,))
    with pytest.raises((TypeError, ValueError), match="returned no tensor"):
        bp.grad(lambda x: x.sum() * h(x))(bp.asarray([1.0, 2.0, 3.0]))


@pytest.mark.parametrize("transform", PLAIN + ["vmap"])
def test_lists_of_tensors_are_assigned(transform):
    def assigned(x):
        z = bp.zeros(2)
        z[0:2] = [2 * x[1], x[0]]
        return z.sum()

    inside(transform, assigned)
    assert bp.grad(assigned)(bp.asarray([1.0, 5.0])).tolist() == [1.0, 2.0]


def test_spaced_numbers_between_tensors_are_differentiated():
    found = bp.grad(lambda x: bp.geomspace(x[0], x[1], 3).sum())(bp.asarray([1.0, 4.0]))
    np.testing.assert_allclose(found.numpy(), [2.0, 1.25], rtol=1e-6)


@pytest.mark.parametrize("function", [lambda a: (a * a).sum().item(), lambda a: float(a[0]), lambda a: math.sin(a[0])], ids=["item", "float", "math"])
def test_what_was_taken_as_a_number_is_no_result(function):
    x = bp.asarray([1.0, 2.0])
    for call in (lambda: bp.grad(function)(x), lambda: bp.value_and_grad(function)(x), lambda: bp.vjp(function, x), lambda: bp.jvp(function, (x,), (x,))):
        with pytest.raises(TypeError, match="elements of differentiated tensors were taken as numbers .* return a tensor"):
            call()


def test_numbers_beside_what_was_taken_are_results_where_they_lose_nothing():
    x = bp.asarray([1.0, 2.0])

    def loss(x):
        return x.sum(), {"shown": x.sum().item()}

    assert bp.value_and_grad(loss, has_aux=True)(x)[0][1] == {"shown": 3.0}
    value, slope = bp.jvp(lambda x: (x * x[0].item(), int(x[1])), (x,), (x,))
    assert value[1].item() == 2 and slope[0].tolist() == [1, 2]
    assert bp.grad(lambda x: 2.0 if x.sum() > 100 else bp.stop_gradient(x)[0].item())(x).tolist() == [0, 0]
