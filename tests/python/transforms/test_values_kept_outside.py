"""Values that a checkpoint or a function with rules leaves outside of its results: in a list, or written into another tensor.

Nothing is known of their derivatives. So they are refused where a derivative is wanted, and are values elsewhere.
"""

import backplane as bp
import pytest

X = bp.asarray([1.0, 2.0])


def tape(f, x):
    leaf = x.copy().requires_grad_()
    f(leaf).backward()
    return leaf.grad


DERIVATIVES = {
    "grad": lambda f, x: bp.grad(f)(x),
    "backward": tape,
    "grad of grad": lambda f, x: bp.grad(lambda x: bp.grad(f)(x).sum())(x),
    "vmap of grad": lambda f, x: bp.vmap(bp.grad(f))(bp.stack([x, x])),
    "grad of vmap": lambda f, x: bp.grad(lambda xs: bp.vmap(f)(xs).sum())(bp.stack([x, x])),
}


def kept_in_a_list(wrap, use):
    """x -> the sum of a function's result and of what it kept."""
    log = []

    def f(a):
        log.append(bp.sin(a))
        return log[-1] * 2

    def whole(x):
        log.clear()
        return wrap(f)(x).sum() + use(log[0])

    return whole


@pytest.mark.parametrize("derive", DERIVATIVES)
def test_a_tensor_that_a_checkpoint_keeps_outside_has_no_derivative(derive):
    with pytest.raises(bp.ArgumentValueError, match="f: a tensor made inside it is used outside of it.*return the tensor"):
        DERIVATIVES[derive](kept_in_a_list(bp.checkpoint, lambda kept: kept.sum()), X)


@pytest.mark.parametrize("use", [lambda kept: kept.detach().sum(), lambda kept: bp.stop_gradient(kept).sum(), lambda kept: float(kept.detach().sum())])
@pytest.mark.parametrize("derive", DERIVATIVES)
def test_its_value_may_be_used(derive, use):
    if derive in ("vmap of grad", "grad of vmap") and use(X).__class__ is float:
        pytest.skip("a row of a batch has no single value")
    found = DERIVATIVES[derive](kept_in_a_list(bp.checkpoint, use), X)
    assert found.tolist() == DERIVATIVES[derive](kept_in_a_list(lambda f: f, use), X).tolist()


def test_forward_mode_has_its_derivative():
    whole = kept_in_a_list(bp.checkpoint, lambda kept: kept.sum())
    expected = kept_in_a_list(lambda f: f, lambda kept: kept.sum())
    assert bp.jvp(whole, (X,), (X,))[1].tolist() == bp.jvp(expected, (X,), (X,))[1].tolist()


def test_a_gradient_with_respect_to_another_input_meets_it_too():
    log = []
    x, w = X.copy().requires_grad_(), bp.ones(2).requires_grad_()
    bp.checkpoint(lambda a: (log.append(a * w), a * 2)[1])(x)
    with pytest.raises(bp.ArgumentValueError, match="used outside"):
        bp.gradients([log[0].sum()], [w])


def writes_in_place(x):
    made = bp.zeros(2)
    made[:] = x * 2
    made += x
    part = made[1:]
    part *= 3
    return made * float(made.detach().mean())


@pytest.mark.parametrize("derive", ["grad", "backward"])
@pytest.mark.parametrize("wrap", [lambda f: bp.checkpoint(f), lambda f: bp.checkpoint(lambda x: bp.checkpoint(f)(x))], ids=["one", "nested"])
def test_writes_inside_of_a_checkpoint_are_its_own(derive, wrap):
    found = DERIVATIVES[derive](lambda x: wrap(writes_in_place)(x).sum(), X)
    assert found.tolist() == DERIVATIVES[derive](lambda x: writes_in_place(x).sum(), X).tolist()


WRITES = {
    "an element": lambda y, a: y.__setitem__(0, a[0] * 2),
    "all": lambda y, a: y.__setitem__(..., a),
    "a sum": lambda y, a: y.add_(a),
    "a view": lambda y, a: y[1:].__setitem__(0, a[1]),
}
FUNCTIONAL = {
    "grad": lambda f: bp.grad(lambda x: f(x).sum())(X),
    "jvp": lambda f: bp.jvp(f, (X,), (X,))[1],
    "grad of vmap": lambda f: bp.grad(lambda xs: bp.vmap(f)(xs).sum())(bp.stack([X, X])),
    "grad of a checkpoint": lambda f: bp.grad(lambda x: bp.checkpoint(f)(x).sum())(X),
    "grad in a trace": lambda f: bp.compile(bp.grad(lambda x: f(x).sum()))(X),
}


@pytest.mark.parametrize("derive", FUNCTIONAL)
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("made", [lambda x: x * 2, lambda x: bp.zeros(2)], ids=["dependent", "constant"])
def test_a_function_with_rules_writes_no_value_into_a_tensor_from_outside(write, derive, made):
    def whole(x):
        y = made(x)

        def f(a):
            WRITES[write](y, a)
            return a.sum()

        g = bp.custom_function(f)
        g.defvjp(lambda a: (f(a), a), lambda a, cotangent: (bp.ones_like(a) * cotangent,))
        g.defjvp(lambda primals, tangents: (f(*primals), tangents[0].sum()))
        g(x)
        return y

    with pytest.raises(bp.ArgumentValueError, match="f writes into a tensor from outside|uses a tensor from outside"):
        FUNCTIONAL[derive](whole)


def test_it_writes_into_what_it_makes():
    def f(a):
        y = bp.zeros(2)
        y[0] = a[0]
        return y

    g = bp.custom_function(f)
    g.defvjp(lambda a: (f(a), ()), lambda _, cotangent: (cotangent,))
    g.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
    assert bp.grad(lambda x: g(x).sum())(X).tolist() == [1.0, 1.0]
    assert bp.jvp(g, (X,), (X,))[1].tolist() == X.tolist()
