"""Laws of compiled functions under transforms and on the tape: the values and derivatives of the function, from graphs of its kind of call."""

import threading

import backplane as bp
import numpy as np
import pytest
from test_compile import Counted
from test_make_graph import same, tensor


def close(found, expected, rtol=2e-5, atol=2e-6):
    for ours, eager in zip(bp.tree.leaves(found), bp.tree.leaves(expected), strict=True):
        assert ours.dtype is eager.dtype and ours.shape == eager.shape
        wide = "complex128" if np.iscomplexobj(eager.astype(bp.complex128).numpy()) else "float64"
        np.testing.assert_allclose(ours.astype(bp.complex128).numpy().astype(wide), eager.astype(bp.complex128).numpy().astype(wide), rtol=rtol, atol=atol)


def mixed(x, y):
    """Products, reductions, views, a choice, a cast and a loop, of two arguments."""
    h = bp.tanh(x @ y.T + x.sum(axis=-1, keepdims=True))
    z = bp.where(h > 0.1, h * h, bp.exp(h) - 1.0)[:, ::2]
    last, rows = bp.scan(lambda c, row: (c * 0.5 + row, c), bp.zeros_like(z[0]), z)
    return (rows * z).sum() + bp.cond(last.sum() > 0, lambda v: v.sum(), lambda v: (v * v).sum(), last)


def polynomial(x, y):
    return (x * x * y + bp.stop_gradient(x) * y[::-1]).sum() + (x.astype(bp.complex128) ** 2).sum().real.astype(x.dtype)


TRANSFORMS = {
    "grad": lambda f: bp.grad(f),
    "both": lambda f: bp.value_and_grad(f, argnums=(0, 1)),
    "second": lambda f: bp.grad(lambda x, y: f(x, y * 2.0) + x.sum() * 3.0, argnums=1),
    "grad of grad": lambda f: bp.grad(lambda x, y: (bp.grad(f)(x, y) ** 2).sum(), argnums=(0, 1)),
    "third": lambda f: bp.grad(lambda x, y: bp.grad(lambda u, v: bp.grad(f)(u, v).sum())(x, y).sum()),
    "jvp": lambda f: lambda x, y: bp.jvp(f, (x, y), (bp.ones_like(x), y)),
    "jvp of grad": lambda f: lambda x, y: bp.jvp(bp.grad(f), (x, y), (bp.ones_like(x), y)),
    "grad of jvp": lambda f: bp.grad(lambda x, y: bp.jvp(lambda u: f(u, y), (x,), (bp.ones_like(x),))[1]),
    "vmap": lambda f: lambda x, y: bp.vmap(f, in_axes=(0, None))(bp.stack([x, x * 0.5]), y),
    "vmap of grad": lambda f: lambda x, y: bp.vmap(bp.grad(f), in_axes=(None, 0))(x, bp.stack([y, y * 0.5, -y])),
    "grad of vmap": lambda f: bp.grad(lambda x, y: bp.vmap(f, in_axes=(0, None))(bp.stack([x, x * 0.5]), y).sum(), argnums=(0, 1)),
    "vmap of vmap": lambda f: lambda x, y: bp.vmap(bp.vmap(f, in_axes=(None, 0)), in_axes=(0, None))(bp.stack([x, -x]), bp.stack([y, y * 2])),
    "vjp": lambda f: lambda x, y: bp.vjp(f, x, y)[1](bp.asarray(2.0).astype(x.dtype)),
    "hessian": lambda f: lambda x, y: bp.hessian(f)(x, y),
    "jacfwd": lambda f: lambda x, y: bp.jacfwd(bp.grad(f))(x, y),
    "checkpoint": lambda f: bp.grad(lambda x, y: bp.checkpoint(f)(x, y)),
}


@pytest.mark.parametrize("dtype", [bp.float32, bp.float64])
@pytest.mark.parametrize("function", [mixed, polynomial])
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_transforms_of_a_compiled_function_are_those_of_the_function(transform, function, dtype):
    x, y = tensor(3, 4, seed=1).astype(dtype), (tensor(3, 4, seed=2) * 0.5).astype(dtype)
    counted = Counted(function)
    compiled = bp.compile(counted)
    expected = TRANSFORMS[transform](function)(x, y)
    for _ in range(2):
        close(TRANSFORMS[transform](compiled)(x, y), expected, rtol=1e-4, atol=1e-5)
    if transform != "checkpoint":
        assert counted.calls == 1
    close(compiled(x, y), function(x, y))
    close(bp.compile(TRANSFORMS[transform](compiled))(x, y), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [bp.float16, bp.bfloat16, bp.float32, bp.float64])
def test_the_tape_gets_what_it_gets_from_the_function(dtype):
    def function(x, w, n):
        h = bp.tanh(x @ w)
        return (h * h).sum(), {"h": h, "n": n * 2, "x": x}

    counted = Counted(function)
    compiled = bp.compile(counted)
    x, n = tensor(2, 3).astype(dtype), bp.asarray([1, 2])
    gradients = []
    for f in (function, compiled, compiled):
        w = (tensor(3, 4, seed=3) * 0.5).astype(dtype).requires_grad_()
        loss, rest = f(x, w, n)
        assert loss.requires_grad and rest["h"].requires_grad and not rest["n"].requires_grad and not rest["x"].requires_grad
        (loss + rest["h"].sum()).backward()
        gradients.append(w.grad)
    rtol = 2e-2 if dtype in (bp.float16, bp.bfloat16) else 1e-5
    close(gradients[1], gradients[0], rtol=rtol, atol=rtol)
    close(gradients[2], gradients[0], rtol=rtol, atol=rtol)
    assert counted.calls == 1


def test_complex_numbers():
    def function(z):
        return bp.abs(bp.exp(z) * z).sum()

    z = bp.asarray(np.array([1.0 + 2.0j, -0.5 + 0.1j]))
    close(bp.grad(bp.compile(function))(z), bp.grad(function)(z))
    leaf = z.copy().requires_grad_()
    bp.compile(function)(leaf).backward()
    close(leaf.grad, bp.grad(function)(z))


def test_weights_from_outside_are_differentiated_as_they_are():
    weight = tensor(3).requires_grad_()
    counted = Counted(lambda x: (bp.sin(weight) * x).sum())
    compiled = bp.compile(counted)
    for step in range(3):
        weight.grad = None
        x = tensor(3, seed=step)
        compiled(x).backward()
        close(weight.grad, bp.cos(weight.detach()) * x)
        with bp.no_grad():
            weight -= 0.1 * weight.grad
    assert counted.calls == 1


def test_a_result_that_nothing_moves_has_no_history():
    def function(x):
        hits = (bp.argmax(x) == 1).astype(bp.float32)
        return (x * 2).sum(), x.detach() * 3, bp.argmax(x), hits, bp.ones((2,)), bp.stop_gradient(x) + 1

    compiled = bp.compile(function)
    x = tensor(3).requires_grad_()
    found = compiled(x)
    assert [t.requires_grad for t in found] == [t.requires_grad for t in function(x)] == [True] + [False] * 5
    found[3].numpy()
    with bp.no_grad():
        assert not compiled(x)[0].requires_grad


def test_higher_orders_on_the_tape():
    function = lambda x: (bp.tanh(x) ** 3).sum()
    x = tensor(4)
    leaf = x.copy().requires_grad_()
    bp.compile(function)(leaf).backward(create_graph=True)
    first = leaf.grad
    leaf.grad = None
    (first**2).sum().backward()
    close(leaf.grad, bp.grad(lambda y: (bp.grad(function)(y) ** 2).sum())(x))


def test_random_numbers_are_those_of_the_function_and_the_same_backwards():
    def function(x, generator):
        return (bp.sin(x) * bp.normal(x.shape, generator=generator) * bp.nn.functional.dropout(x, 0.5, training=True)).sum()

    x = tensor(32)
    counted = Counted(lambda x, generator: (bp.sin(x) * bp.normal(x.shape, generator=generator)).sum())
    compiled = bp.compile(counted)
    one, two = bp.Generator(3), bp.Generator(3)
    for _ in range(3):
        leaf, eager = x.copy().requires_grad_(), x.copy().requires_grad_()
        compiled(leaf, one).backward()
        counted.function(eager, two).backward()
        close(leaf.grad, eager.grad)
        close(bp.grad(compiled)(x, one), bp.grad(counted.function)(x, two))
    assert one.state == two.state and counted.calls == 1
    leaf = x.copy().requires_grad_()
    loss = bp.compile(function)(leaf, one)
    loss.backward()
    close((leaf.grad * 0).sum(), bp.asarray(0.0))


@pytest.mark.parametrize("randomness", ["same", "different"])
def test_a_batch_of_random_numbers(randomness):
    def function(x, generator):
        return x + bp.normal(x.shape, generator=generator)

    rows = tensor(4, 3)
    one, two = bp.Generator(5), bp.Generator(5)
    compiled = bp.compile(function)
    for _ in range(2):
        same(
            bp.vmap(lambda row: compiled(row, one), randomness=randomness)(rows),
            bp.vmap(lambda row: function(row, two), randomness=randomness)(rows),
        )


def straight_through():
    @bp.custom_function
    def rounded(x):
        return bp.round(x)

    rounded.defvjp(lambda x: (bp.round(x), None), lambda residuals, g: (g,))
    return lambda x: (rounded(x) * x).sum()


def half_recorded(x):
    with bp.no_grad():
        scale = bp.exp(x)
    return (scale * x).sum()


@pytest.mark.parametrize("make", [straight_through, lambda: half_recorded, lambda: lambda x: bp.checkpoint(lambda y: bp.sin(y).sum())(x)])
def test_what_has_another_derivative_than_its_ops_is_called_itself(make):
    function = make()
    compiled = bp.compile(function)
    x = tensor(3)
    leaf = x.copy().requires_grad_()
    eager = x.copy().requires_grad_()
    compiled(leaf).backward()
    function(eager).backward()
    close(leaf.grad, eager.grad)
    close(bp.grad(compiled)(x), bp.grad(function)(x))
    assert "runs as it is" in bp.compile_log()[-1]


def test_a_tensor_of_a_transform_from_outside_is_differentiated_and_not_kept():
    kept = []

    @bp.compile
    def scaled(x):
        return x * kept[-1]

    def loss(w):
        kept.append(w)
        return scaled(x).sum()

    x = tensor(3)
    for seed in range(2):
        same(bp.grad(loss)(tensor(3, seed=seed)), x)
    kept.append(tensor(3, seed=4))
    same(scaled(x), x * kept[-1])


def test_what_has_no_derivative_is_an_error_of_the_backward_pass():
    def function(x):
        return bp.while_loop(lambda s: s.sum() < 10.0, lambda s: s * 2.0, x)

    x = bp.abs(tensor(3)) + 0.5
    with pytest.raises(bp.MissingRuleError, match="scan"):
        bp.grad(lambda y: bp.compile(function)(y).sum())(x)
    leaf = x.copy().requires_grad_()
    found = bp.compile(function)(leaf)
    close(found.detach(), function(x))
    with pytest.raises(bp.MissingRuleError, match="scan"):
        found.sum().backward()
    close(bp.jvp(bp.compile(function), (x,), (x,)), bp.jvp(function, (x,), (x,)))


def test_a_value_that_changed_before_the_backward_pass_is_an_error():
    w = tensor(3).requires_grad_()
    loss = bp.compile(lambda w: (w * w).sum())(w)
    with bp.no_grad():
        w += 1.0
    with pytest.raises(bp.BackplaneError, match="in place|changed"):
        loss.backward()


def test_only_what_is_wanted_is_computed():
    x, w = tensor(64, 32), tensor(32, 16, seed=1)
    compiled = bp.compile(lambda x, w: bp.tanh(x @ w).sum())

    def products(call):
        call()
        with bp.profile() as profile:
            call()
        return sum(event["name"] == "bp::matmul" for event in profile.events)

    leaf = w.copy().requires_grad_()
    assert products(lambda: compiled(x, leaf).backward()) == 2
    both = x.copy().requires_grad_()
    assert products(lambda: compiled(both, leaf).backward()) == 3


def test_threads_differentiate_one_compiled_function():
    compiled = bp.compile(lambda x, n: (bp.sin(x) ** n).sum())
    failures = []

    def work(seed):
        for k in range(20):
            n = 2 + (seed + k) % 3
            try:
                x = tensor(5, seed=seed)
                leaf = x.copy().requires_grad_()
                compiled(leaf, n).backward()
                close(leaf.grad, n * bp.sin(x) ** (n - 1) * bp.cos(x), rtol=1e-4, atol=1e-5)
            except BaseException as failure:
                failures.append(failure)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_an_argument_that_the_backward_pass_does_not_need_may_change_before_it():
    weight, x = bp.ones(2).requires_grad_(), bp.ones(2)
    result = bp.compile(lambda w, x: w * 2.0 + x)(weight, x)
    x *= 3
    result.sum().backward()
    assert weight.grad.tolist() == [2, 2]
    result = bp.compile(lambda w, x: w * x)(weight, x)
    x *= 2
    with pytest.raises(ValueError, match="changed in place"):
        result.sum().backward()


def test_what_a_result_does_not_depend_on_has_no_gradient():
    """None, as op by op: optimisers pass over it, where zeros would have momentum."""
    w, v, u = (bp.ones(2).requires_grad_() for _ in range(3))
    f = bp.compile(lambda a, b, c: ((a * 2).sum(), (b * 3).sum() + bp.stop_gradient(c).sum()))
    f(w, v, u)[0].backward()
    assert w.grad.tolist() == [2, 2] and v.grad is None and u.grad is None
    f(w, v, u)[1].backward()
    assert v.grad.tolist() == [3, 3] and u.grad is None
    first, second = f(w, v, u)
    (first + second).backward()
    assert w.grad.tolist() == [4, 4] and v.grad.tolist() == [6, 6] and u.grad is None


def test_a_captured_parameter_that_nothing_depends_on_has_no_gradient():
    parameters = {"used": bp.ones(2).requires_grad_(), "shown": bp.ones(2).requires_grad_()}
    loss, _ = bp.compile(lambda x: ((x * parameters["used"]).sum(), parameters["shown"] * 2))(bp.ones(2))
    loss.backward()
    assert parameters["used"].grad.tolist() == [1, 1] and parameters["shown"].grad is None


def beside(x):
    """A result, and one whose derivative is infinite at 0."""
    return x * 2.0, bp.sqrt(x)


# Ways to call `beside`, or a part of it, as one function with rules.
AS_ONE = {
    "compile": lambda x: bp.compile(beside)(x)[0],
    "cond": lambda x: bp.cond(bp.asarray(True), beside, lambda x: (x, x), x)[0],
    "scan": lambda x: bp.scan(lambda s, _: beside(s), x, None, length=1)[0],
    "carry": lambda x: bp.scan(lambda s, _: (beside(s[0]), None), (x, x), None, length=1)[0][0],
    "map": lambda x: bp.map(beside, x[None])[0][0],
    "defjvp": lambda x: with_jvp(x)[0],
}
WITH_JVP = bp.custom_function(beside)
WITH_JVP.defjvp(lambda primals, tangents: bp.jvp(beside, primals, tangents))


def with_jvp(x):
    return WITH_JVP(x)


@pytest.mark.parametrize("call", AS_ONE.values(), ids=AS_ONE)
def test_a_result_that_nobody_differentiates_adds_no_zeros(call):
    zero, one = bp.asarray(0.0), bp.asarray(1.0)
    assert float(bp.grad(call)(zero)) == 2.0
    assert float(bp.vjp(call, zero)[1](one)[0]) == 2.0
    assert float(bp.jacrev(call)(zero)) == 2.0
    assert float(bp.grad(bp.grad(lambda x: call(x) * x))(zero)) == 4.0
    assert bp.vmap(bp.grad(call))(bp.asarray([0.0, 1.0])).tolist() == [2.0, 2.0]
    assert bp.grad(lambda x: bp.vmap(call)(x).sum())(bp.asarray([0.0, 1.0])).tolist() == [2.0, 2.0]
    assert float(bp.compile(bp.grad(call))(zero)) == 2.0
    leaf = bp.asarray(0.0).requires_grad_()
    call(leaf).backward()
    assert float(leaf.grad) == 2.0


def test_a_metric_beside_a_loss_changes_no_gradient():
    step = bp.compile(lambda w: {"loss": (w * w).sum(), "perplexity": bp.exp((w * 1000.0).sum())})
    w = bp.ones(2).requires_grad_()
    for _ in range(2):
        w.grad = None
        step(w)["loss"].backward()
        assert w.grad.tolist() == [2.0, 2.0]
    (loss, _), gradient = bp.value_and_grad(bp.compile(lambda w: ((w * w).sum(), bp.exp((w * 1000.0).sum()))), has_aux=True)(bp.ones(2))
    assert float(loss) == 2.0 and gradient.tolist() == [2.0, 2.0]


def test_second_derivatives_of_a_compiled_function_add_no_zeros():
    found = bp.grad(bp.grad(bp.compile(lambda x: x * bp.log(x))))(bp.asarray(-1.0))
    assert float(found) == -1.0


CONSTANT = {
    "cond": lambda x: bp.cond(bp.asarray(True), lambda a, b: a * 2.0 + bp.sqrt(b), lambda a, b: a, x, bp.asarray(0.0)),
    "while_loop": lambda x: bp.while_loop(lambda s: s[2] < 1, lambda s: (s[0] * 2.0 + bp.sqrt(s[1]), s[1], s[2] + 1), (x, bp.asarray(0.0), bp.asarray(0)))[0],
    "scan": lambda x: bp.scan(lambda s, e: (s * 2.0 + bp.sqrt(e), None), x, bp.zeros(1))[0],
    "carry": lambda x: bp.scan(lambda s, _: ((s[0] * 2.0 + bp.sqrt(s[1]), s[1]), None), (x, bp.asarray(0.0)), None, length=1)[0][0],
    "map": lambda x: bp.map(lambda e: e * 2.0 + bp.sqrt(bp.asarray(0.0)), x[None])[0],
    "compile": lambda x: bp.compile(lambda a, b: a * 2.0 + bp.sqrt(b))(x, bp.asarray(0.0)),
    "results": lambda x: sum(bp.cond(bp.asarray(True), lambda a, b: (a * 2.0, b), lambda a, b: (a, b), x, bp.asarray(0.0))[:1])
    + bp.sqrt(bp.cond(bp.asarray(True), lambda a, b: (a * 2.0, b), lambda a, b: (a, b), x, bp.asarray(0.0))[1]),
}


@pytest.mark.parametrize("call", CONSTANT.values(), ids=CONSTANT)
def test_an_operand_that_does_not_move_has_no_tangent(call):
    two, one = bp.asarray(2.0), bp.asarray(1.0)
    assert float(bp.jvp(call, (two,), (one,))[1]) == 2.0
    assert float(bp.compile(lambda x: bp.jvp(call, (x,), (one,))[1])(two)) == 2.0
    assert bp.vmap(lambda x: bp.jvp(call, (x,), (one,))[1])(bp.asarray([2.0, 3.0])).tolist() == [2.0, 2.0]


def test_what_has_no_derivative_raises_where_it_is_wanted_alone():
    both = bp.compile(lambda x: (x.sum(), bp.linalg.slogdet(x)[1], bp.nextafter(x, x + 1.0).sum()))
    singular = bp.zeros((2, 2))
    assert bp.grad(lambda x: both(x)[0])(singular).tolist() == [[1.0, 1.0], [1.0, 1.0]]
    with pytest.raises(bp.MissingRuleError):
        bp.grad(lambda x: both(x)[2])(singular)
