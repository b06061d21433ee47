"""checkpoint: equal to the plain function under every transform, with the same random numbers, for less memory."""

import gc
import threading
import weakref

import backplane as bp
import numpy as np
import pytest


def plain(x):
    return bp.sum(bp.sin(x) * bp.exp(x) * x)


again = bp.checkpoint(plain)


def values(tensor):
    with bp.no_grad():
        return np.asarray(tensor)


def eager(f):
    def gradient(x):
        x = bp.asarray(values(x), copy=True).requires_grad_()
        f(x).backward()
        return x.grad

    return gradient


def eager_twice(f):
    def second(x):
        x = bp.asarray(values(x), copy=True).requires_grad_()
        g = bp.gradients(f(x), x, create_graph=True)
        return bp.gradients((g * g).sum(), x)

    return second


NESTINGS = {
    "value": lambda f: f,
    "eager": eager,
    "eager twice": eager_twice,
    "grad": bp.grad,
    "grad of grad": lambda f: bp.grad(lambda x: (bp.grad(f)(x) ** 2).sum()),
    "third": lambda f: bp.grad(lambda x: bp.grad(lambda y: (bp.grad(f)(y) ** 2).sum())(x).sum()),
    "jvp": lambda f: lambda x: bp.jvp(f, (x,), (bp.cos(x),))[1],
    "jvp of grad": lambda f: lambda x: bp.jvp(bp.grad(f), (x,), (bp.cos(x),))[1],
    "grad of jvp": lambda f: bp.grad(lambda x: bp.jvp(f, (x,), (bp.cos(x),))[1]),
    "vmap": lambda f: lambda x: bp.vmap(f)(x),
    "vmap of grad": lambda f: lambda x: bp.vmap(bp.grad(f))(x),
    "grad of vmap": lambda f: bp.grad(lambda x: bp.vmap(f)(x).sum()),
    "eager of vmap": lambda f: eager(lambda x: bp.vmap(f)(x).sum()),
    "vmap of vmap of grad": lambda f: lambda x: bp.vmap(bp.vmap(bp.grad(f)))(bp.stack([x, 2 * x])),
    "vmap of jvp of grad": lambda f: bp.vmap(lambda x: bp.jvp(bp.grad(f), (x,), (x,))[1]),
    "hessian": bp.hessian,
    "jacrev": bp.jacrev,
    "jacfwd": bp.jacfwd,
    "eager of grad": lambda f: eager(lambda x: (bp.grad(f)(x) ** 2).sum()),
}


@pytest.mark.parametrize("nesting", NESTINGS)
def test_equals_the_plain_function(nesting):
    x = bp.asarray(np.linspace(-1.0, 1.5, 6).reshape(2, 3))
    expected = NESTINGS[nesting](plain)(x)
    np.testing.assert_allclose(values(NESTINGS[nesting](again)(x)), values(expected), rtol=1e-12)
    np.testing.assert_allclose(values(NESTINGS[nesting](bp.checkpoint(again))(x)), values(expected), rtol=1e-12)


@pytest.mark.parametrize("nesting", NESTINGS)
def test_a_checkpoint_inside_of_other_ops(nesting):
    inner = bp.checkpoint(lambda x, scale: {"y": [bp.tanh(x) * scale], "n": 3})
    x = bp.asarray(np.linspace(-1.0, 1.5, 6).reshape(2, 3))

    def composed(inner):
        return lambda x: plain(inner(x * x, scale=bp.cos(x))["y"][0] + x)

    expected = NESTINGS[nesting](composed(inner.__wrapped__))(x)
    np.testing.assert_allclose(values(NESTINGS[nesting](composed(inner))(x)), values(expected), rtol=1e-12)


@pytest.mark.parametrize("nesting", NESTINGS)
def test_captured_tensors_are_differentiated(nesting):
    def captures(wrap):
        def f(x):
            w = bp.sin(x)
            return plain(wrap(lambda y: y * w + x)(bp.exp(x)))

        return f

    x = bp.asarray(np.linspace(-1.0, 1.5, 6).reshape(2, 3))
    expected = NESTINGS[nesting](captures(lambda f: f))(x)
    np.testing.assert_allclose(values(NESTINGS[nesting](captures(bp.checkpoint))(x)), values(expected), rtol=1e-12)


def test_captured_parameters_get_their_gradients():
    w = bp.asarray([2.0, 3.0]).requires_grad_()
    x = bp.asarray([1.0, 4.0])
    (bp.checkpoint(lambda x: x * w)(x)).sum().backward()
    assert w.grad.tolist() == [1.0, 4.0]


def test_containers_and_static_leaves_pass_through():
    seen = []

    @bp.checkpoint
    def f(tree, *, flag, scale=2.0):
        """The documentation."""
        seen.append((flag, scale, tree["name"]))
        return (tree["a"] * scale, None, {"name": tree["name"], "b": tree["b"][0] + 1})

    a, b = bp.asarray(3.0).requires_grad_(), bp.asarray(4)
    out = f({"a": a, "b": (b,), "name": "n"}, flag=True)
    assert out[0].item() == 6 and out[1] is None and out[2]["name"] == "n" and out[2]["b"].item() == 5
    out[0].backward()
    assert a.grad.item() == 2
    assert seen == [(True, 2.0, "n")] * 2
    assert f.__name__ == "f" and f.__doc__ == "The documentation."


@pytest.mark.parametrize("inner", [lambda f: f, bp.checkpoint])
def test_random_numbers_are_replayed(inner):
    generator = bp.Generator(11)
    masks = []

    def f(x):
        y = bp.dropout(x, p=0.5, generator=generator)
        masks.append((values(bp.stop_gradient(y)) != 0).tolist())
        return inner(lambda z: bp.dropout(z, p=0.25, generator=generator) * z)(y)

    x = bp.asarray(np.linspace(1, 2, 64)).requires_grad_()
    loss = bp.checkpoint(f)(x).sum()
    bp.uniform([3], generator=generator)
    state = generator.state
    loss.backward()
    assert generator.state == state
    assert masks[0] == masks[1]
    fresh = bp.Generator(11)
    y = bp.asarray(values(x)).requires_grad_()
    z = bp.dropout(y, p=0.5, generator=fresh)
    (bp.dropout(z, p=0.25, generator=fresh) * z).sum().backward()
    assert x.grad.tolist() == y.grad.tolist()


def test_random_numbers_are_replayed_at_levels():
    def f(x):
        return (bp.dropout(x * x, p=0.5) * x).sum()

    x = bp.asarray(np.linspace(1, 2, 64))
    state = bp.default_generator.state
    expected = bp.jacrev(bp.grad(f))(x)
    after = bp.default_generator.state
    bp.default_generator.state = state
    found = bp.jacrev(bp.grad(bp.checkpoint(f)))(x)
    assert bp.default_generator.state == after
    np.testing.assert_allclose(values(found), values(expected))


def test_other_random_numbers_are_an_error():
    sizes = iter([3, 4])
    f = bp.checkpoint(lambda x: x * bp.uniform([next(sizes)], dtype=x.dtype).sum())
    x = bp.asarray(1.0).requires_grad_()
    with pytest.raises(ValueError, match="other random numbers"):
        f(x).backward()


def alive(tensors):
    gc.collect()
    return sum(ref() is not None for ref in tensors)


def test_nothing_inside_stays_alive():
    kept = []

    def f(x):
        for _ in range(10):
            x = bp.exp(bp.sin(x))
            kept.append(weakref.ref(x))
        return x

    x = bp.asarray(np.ones(1000)).requires_grad_()
    loss = bp.checkpoint(f)(x).sum()
    assert alive(kept) == 0
    loss.backward()
    assert len(kept) == 20 and alive(kept) == 0


def test_a_released_graph_releases_the_function():
    class Callable:
        def __call__(self, x):
            return x * x

    function = Callable()
    watched = weakref.ref(function)
    x = bp.asarray(1.0).requires_grad_()
    y = bp.checkpoint(function)(x)
    del function
    assert watched() is not None
    box = [y]
    del y
    thread = threading.Thread(target=box.clear)
    thread.start()
    thread.join()
    gc.collect()
    assert watched() is None


def test_exceptions_unwind():
    runs = []

    def f(x):
        runs.append(x)
        if len(runs) % 2 == 0:
            raise KeyError("second")
        return x * x

    x = bp.asarray(1.0)
    with pytest.raises(KeyError, match="second"):
        bp.grad(bp.checkpoint(f))(x)
    y = bp.checkpoint(f)(bp.asarray(1.0).requires_grad_())
    with pytest.raises(KeyError, match="second"):
        y.backward()
    runs.append(None)
    with pytest.raises(KeyError, match="second"):
        bp.vmap(bp.checkpoint(f))(bp.asarray([1.0, 2.0]))
    assert bp.grad(plain)(x).item() == pytest.approx(bp.grad(again)(x).item())
    with pytest.raises(TypeError, match="checkpoint: argument fun"):
        bp.checkpoint(3)


def test_saved_arguments_that_changed_are_an_error():
    x = bp.asarray([1.0, 2.0]).requires_grad_()
    y = x * 2
    loss = bp.checkpoint(lambda y: (y * y).sum())(y)
    with bp.no_grad():
        y += 1
    with pytest.raises(ValueError, match="changed in place"):
        loss.backward()


def test_without_gradients_it_is_the_function():
    runs = []
    f = bp.checkpoint(lambda x: runs.append(1) or x * 2)
    x = bp.asarray(2.0)
    assert f(x).item() == 4 and not f(x).requires_grad
    with bp.no_grad():
        assert not f(bp.asarray(1.0).requires_grad_()).requires_grad
    assert len(runs) == 3


def test_several_threads():
    x = bp.asarray(np.linspace(-1.0, 1.5, 6))
    expected = values(bp.grad(plain)(x))
    wrong = []

    def work():
        for _ in range(30):
            if not np.allclose(values(bp.grad(again)(x)), expected) or not np.allclose(values(eager(again)(x)), expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


RUNS = {
    "grad": lambda f, x: bp.grad(f)(x),
    "jvp": lambda f, x: bp.jvp(f, (x,), (bp.ones(x.shape),))[1],
    "vmap": lambda f, x: bp.vmap(f)(bp.stack([x, x])),
    "vmap of grad": lambda f, x: bp.vmap(bp.grad(f))(bp.stack([x, x])),
    "grad of vmap": lambda f, x: bp.grad(lambda y: bp.vmap(f)(bp.stack([y, y * 2])).sum())(x),
    "grad of grad": lambda f, x: bp.grad(lambda y: bp.grad(f)(y).sum())(x),
    "compiled grad": lambda f, x: bp.compile(bp.grad(f))(x),
    "tape": lambda f, x: bp.gradients(f(y := bp.copy(x).requires_grad_()), y),
}  # fmt: skip


@pytest.mark.parametrize("change", [lambda x: x.__imul__(x), lambda x: x[1:].__iadd__(1.0), lambda x: x.reshape(2, 1).T.__iadd__(1.0)])
@pytest.mark.parametrize("run", sorted(set(RUNS) - {"compiled grad", "tape"}))
def test_a_function_that_changes_its_argument_is_refused(run, change):
    def changing(x):
        s = bp.sin(x)
        change(x)
        return (s * x).sum()

    x = bp.asarray([1.0, 2.0])
    with pytest.raises(ValueError, match="checkpoint: .*changing: changes its argument 0 in place, and (grad|jvp|vmap) would lose|is refused inside"):
        RUNS[run](bp.checkpoint(changing), x)
    assert x.tolist() == [1.0, 2.0]


def test_a_changed_argument_without_a_gradient_is_refused_by_the_tape():
    def changing(x, n):
        n += 1
        return (x * n).sum()

    x = bp.ones(2).requires_grad_()
    with pytest.raises(ValueError, match="checkpoint: .*changing: .* changed in place"):
        bp.checkpoint(changing)(x, bp.asarray([1.0, 1.0]))


W = bp.asarray([3.0, 5.0])


def writes_a_constant(x):
    h = x * 2
    h += bp.ones(2)
    return (h * h).sum()


def writes_a_part(x):
    h, b = bp.sin(x), bp.asarray([0.5, 0.25])
    b *= 2
    h[1:] = b[1:]
    return (h * x).sum()


def writes_what_it_makes(x):
    b = bp.zeros(2)
    b[:1] = x[1:]
    b += W
    return (b * b * x).sum()


def writes_what_it_captures(x):
    h = x * W
    h *= W
    return (h * h).sum()


@pytest.mark.parametrize("function", [writes_a_constant, writes_a_part, writes_what_it_makes, writes_what_it_captures])
@pytest.mark.parametrize("run", RUNS)
def test_what_it_makes_inside_may_be_written(run, function):
    x = bp.asarray([1.0, 2.0])
    found, expected = RUNS[run](bp.checkpoint(function), x), RUNS[run](function, x)
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-6)


def test_values_from_outside_may_be_written_into_what_it_computes():
    def loss(w, x, wrap):
        def block(v):
            h = bp.tanh(v)
            h += w
            h[:1] *= w[1:]
            return h

        return (wrap(block)(x * w) ** 2).sum()

    w, x = bp.asarray([0.5, 0.25]), bp.asarray([1.0, 2.0])
    kept, plain = (bp.grad(lambda w, x, wrap=wrap: loss(w, x, wrap), argnums=(0, 1)) for wrap in (bp.checkpoint, lambda f: f))
    batch = bp.stack([x, x * 3])
    for call, reference, given in ((kept, plain, x), (bp.vmap(kept, in_axes=(None, 0)), bp.vmap(plain, in_axes=(None, 0)), batch)):
        for found, expected in zip(call(w, given), reference(w, given), strict=True):
            np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-6)


def test_a_view_that_is_first_looked_at_inside_keeps_its_history():
    def loss(x, wrapped):
        y = x * 1
        v = y[1:]
        y *= x
        block = wrapped(lambda z: (z * v).sum())
        return block(x[1:]) + (v * v).sum()

    x = bp.asarray([1.0, 2.0, 3.0], dtype=bp.float64)
    wanted = bp.grad(lambda x: loss(x, lambda f: f))(x).tolist()
    assert wanted == [0, 3 * 4 + 4 * 8, 3 * 9 + 4 * 27]
    assert bp.grad(lambda x: loss(x, bp.checkpoint))(x).tolist() == wanted
    assert bp.grad(lambda x: loss(x, lambda f: bp.checkpoint(bp.checkpoint(f))))(x).tolist() == wanted
    second = bp.grad(lambda x: bp.grad(lambda x: loss(x, bp.checkpoint))(x).sum())
    assert second(x).tolist() == bp.grad(lambda x: bp.grad(lambda x: loss(x, lambda f: f))(x).sum())(x).tolist()
    leaf = x.copy().requires_grad_()
    loss(leaf, bp.checkpoint).backward()
    assert leaf.grad.tolist() == wanted
    leaf = x.copy().requires_grad_()
    bp.grad(lambda s: loss(leaf * s, bp.checkpoint))(bp.ones((), dtype=bp.float64)).backward()
    twin = x.copy().requires_grad_()
    bp.grad(lambda s: loss(twin * s, lambda f: f))(bp.ones((), dtype=bp.float64)).backward()
    assert leaf.grad.tolist() == twin.grad.tolist()
