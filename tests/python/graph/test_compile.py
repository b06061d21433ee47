"""Laws of compile: the same values as the function, a trace per kind of call and no more, and a log that says why."""

import backplane as bp
import numpy as np
import pytest
from test_make_graph import same, tensor


class Counted:
    """A function that counts how often Python runs it."""

    def __init__(self, function):
        self.function, self.calls, self.__qualname__ = function, 0, "counted"

    def __call__(self, *args, **kwargs):
        bp.unguarded(self.count)
        return self.function(*args, **kwargs)

    def count(self):
        self.calls += 1


def test_a_kind_of_call_is_traced_once():
    counted = Counted(lambda x, scale=1.0: bp.tanh(x) * scale)
    compiled = bp.compile(counted)
    for seed in range(4):
        same(compiled(tensor(3, seed=seed)), bp.tanh(tensor(3, seed=seed)))
    assert counted.calls == 1
    same(compiled(tensor(4)), bp.tanh(tensor(4)))
    same(compiled(tensor(3), scale=2.0), bp.tanh(tensor(3)) * 2.0)
    same(compiled(tensor(3), scale=3.0), bp.tanh(tensor(3)) * 3.0)
    assert counted.calls == 4
    same(compiled(tensor(3)), bp.tanh(tensor(3)))
    assert counted.calls == 4


@pytest.mark.parametrize(
    ("again", "guard"),
    [
        (lambda: (tensor(4), 1), r"x: found shape \(4,\), had \(3,\)"),
        (lambda: (tensor(3).astype(bp.float64), 1), "x: found dtype float64, had float32"),
        (lambda: (tensor(3), 2), "static argument n: found 2, had 1"),
        (lambda: (tensor(3), True), "static argument n: found True, had 1"),
        (lambda: ((tensor(3),), 1), "x has another structure"),
    ],
)
def test_the_log_names_the_guard_with_its_values(again, guard):
    def function(x, n):
        return bp.tree.map(lambda leaf: leaf * n, x)

    compiled = bp.compile(function)
    compiled(tensor(3), 1)
    compiled(*again())
    import re

    assert re.search(guard, bp.compile_log()[-1]), bp.compile_log()[-1]


@pytest.mark.parametrize("kind", [float, np.float64, np.float32, lambda n: complex(n, 0.0), lambda n: complex(1.0, n)])
def test_numbers_that_an_op_tells_apart_are_two_kinds_of_call(kind):
    compiled = bp.compile(lambda x, n: bp.full(x.shape, n))
    for n in (0.0, -0.0, 0.0, -0.0):
        found = compiled(bp.ones((1,)), kind(n)).numpy()
        assert repr(found) == repr(bp.full((1,), kind(n)).numpy())


@pytest.mark.parametrize("nan", [float("nan"), np.float32("nan"), complex(0.0, float("nan"))])
def test_a_nan_is_one_kind_of_call(nan):
    counted = Counted(lambda x, n: x * n)
    compiled = bp.compile(counted)
    for again in range(4):
        compiled(tensor(2), type(nan)(nan) + again * 0)
    assert counted.calls == 1


@pytest.mark.parametrize("dtype", [bp.float16, bp.float32, bp.float64, bp.int32, bp.complex64])
@pytest.mark.parametrize("number", [np.float32(2), np.float64(2.5), np.int64(3), np.uint8(3), np.bool_(True), np.float16(0.5), np.complex128(2j)])
def test_numpys_scalars_are_numbers_as_they_are_eagerly(dtype, number):
    def function(x, n):
        return x * n, n + x, bp.where(x > 0, x, x)

    x = tensor(3).astype(dtype) if dtype is not bp.complex64 else tensor(3).astype(bp.complex64)
    if dtype is bp.complex64:
        function = lambda x, n: (x * n, n + x)
    try:
        expected = function(x, number)
    except bp.BackplaneError as refused:
        with pytest.raises(type(refused)):
            bp.compile(function)(x, number)
        return
    same(bp.compile(function)(x, number), expected)
    same(bp.make_graph(function)(x, number)(x, number), expected)
    assert len(bp.make_graph(function)(x, number).inputs) == 1


def test_an_array_without_dimensions_is_an_input():
    counted = Counted(lambda x, n: x * n)
    compiled = bp.compile(counted)
    for n in (2.0, 3.0):
        same(compiled(tensor(3), np.array(n, dtype="float32")), tensor(3) * n)
    assert counted.calls == 1


@pytest.mark.parametrize(
    ("shape", "mask", "value"),
    [((5,), lambda b: b > 0, 0.0), ((4, 3), lambda b: b > 0, 2), ((4, 3), lambda b: b[:, 0] > 0, 1.5), ((4, 3), lambda b: b[:, 0] > 0, tensor(3, seed=8))],
)
def test_one_value_is_written_where_a_mask_holds(shape, mask, value):
    def function(x):
        b = x * 2.0
        b[mask(b)] = value
        return b

    x, rows = tensor(*shape), tensor(2, *shape, seed=5)
    same(bp.compile(function)(x), function(x))
    same(bp.vmap(function)(rows), bp.stack([function(row) for row in rows]))
    same(bp.grad(lambda y: (function(y) ** 2).sum())(x), bp.compile(bp.grad(lambda y: (function(y) ** 2).sum()))(x))


def test_what_a_mask_selects_is_refused_in_the_users_words():
    def chosen(x):
        return x[x > 0]

    def written(x):
        y = x.copy()
        y[x > 0] = tensor(2)
        return y

    for function in (chosen, written):
        with pytest.raises(bp.MissingRuleError, match=r"^index: .*mask.*compile.*Fix: .*where") as caught:
            bp.compile(function)(bp.ones((2,)))
        assert "argwhere" not in str(caught.value)


def test_the_cache_is_bounded():
    counted = Counted(lambda x, text: x * len(text))
    compiled = bp.compile(counted)
    for n in range(40):
        compiled(tensor(2), n * "n")
    assert counted.calls == 40
    compiled(tensor(2), 39 * "n")
    assert counted.calls == 40
    compiled(tensor(2), "")
    assert counted.calls == 41


@pytest.mark.parametrize("transform", ["grad", "vmap", "jvp", "make_graph", "backward"])
def test_it_composes_with_the_transforms(transform):
    def function(x):
        return bp.tanh(x * x).sum()

    compiled = bp.compile(function)
    x = tensor(4)
    compiled(x)
    if transform == "grad":
        same(bp.grad(compiled)(x), bp.grad(function)(x))
        same(bp.compile(bp.grad(compiled))(x), bp.grad(function)(x))
    elif transform == "vmap":
        same(bp.vmap(compiled)(tensor(3, 4)), bp.vmap(function)(tensor(3, 4)))
    elif transform == "jvp":
        same(bp.jvp(compiled, (x,), (x,)), bp.jvp(function, (x,), (x,)))
    elif transform == "make_graph":
        assert [n.op for n in bp.make_graph(compiled)(x)] == [n.op for n in bp.make_graph(function)(x)]
    else:
        leaf = tensor(4).requires_grad_()
        compiled(leaf).backward()
        same(leaf.grad, bp.grad(function)(x))


def test_a_captured_tensor_that_requires_a_gradient_gets_one():
    weight = tensor(3).requires_grad_()
    compiled = bp.compile(lambda x: (weight * x).sum())
    x = tensor(3, seed=2)
    for _ in range(2):
        weight.grad = None
        compiled(x).backward()
        same(weight.grad, x)


def test_what_cannot_be_traced_is_an_error_or_runs_as_it_is():
    def function(x):
        return x * float(x.sum())

    with pytest.raises(bp.ArgumentValueError, match="compile"):
        bp.compile(function)(tensor(3))
    lenient = bp.compile(function, fullgraph=False)
    same(lenient(tensor(3)), function(tensor(3)))
    assert "runs as it is" in bp.compile_log()[-1]
    assert f"test_compile.py:{function.__code__.co_firstlineno + 1} in function)" in bp.compile_log()[-1]
    same(lenient(tensor(3, seed=2)), function(tensor(3, seed=2)))


def test_an_optimiser_step_is_one_graph():
    def step(parameters, moments, x):
        gradients = bp.grad(lambda p: (bp.tanh(x @ p["w"]) ** 2).mean())(parameters)
        moments = bp.tree.map(lambda m, g: 0.9 * m + g, moments, gradients)
        return bp.tree.map(lambda p, m: p - 0.1 * m, parameters, moments), moments

    compiled = bp.compile(step)
    parameters = {"w": tensor(4, 3)}
    state = eager = (parameters, bp.tree.map(bp.zeros_like, parameters))
    for i in range(5):
        state = compiled(*state, tensor(8, 4, seed=i))
        eager = step(*eager, tensor(8, 4, seed=i))
    same(state, eager)


def test_methods_and_looks():
    class Model:
        def __init__(self):
            self.scale = 2.0

        @bp.compile
        def run(self, x):
            """Doubles."""
            return x * self.scale

    assert Model.run.__doc__ == "Doubles."
    same(Model().run(tensor(3)), tensor(3) * 2.0)


def test_threads_share_a_compiled_function():
    import threading

    compiled = bp.compile(lambda x, n: bp.sin(x) * n)
    failures = []

    def work(seed):
        for k in range(30):
            n = 1 + (seed + k) % 12
            try:
                np.testing.assert_allclose(compiled(tensor(5, seed=seed), n).numpy(), np.sin(tensor(5, seed=seed).numpy()) * n, rtol=1e-5)
            except BaseException as failure:
                failures.append(failure)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_donated_memory_is_used_where_nobody_else_holds_it():
    x, kept = tensor(1000), tensor(1000)
    view = kept[1:]
    compiled = bp.compile(lambda a, b: (bp.sin(a) + 1, bp.sin(b) + 1), donate=(0, 1))
    expected = bp.sin(x) + 1, bp.sin(kept) + 1
    before = view.numpy().copy()
    same(compiled(x, kept), expected)
    np.testing.assert_array_equal(view.numpy(), before)
    with pytest.raises(bp.ArgumentTypeError, match="donate"):
        bp.compile(lambda a: a, donate="a")


@pytest.mark.parametrize("layout", [lambda w: w, lambda w: w.T, lambda w: w[::2]])
def test_a_weight_from_outside_is_seen_as_it_is_in_any_layout(layout):
    weight = tensor(4, 4)
    seen = layout(weight)
    compiled = bp.compile(lambda x: bp.exp(x) * seen)
    x = tensor(*seen.shape, seed=3)
    for _ in range(3):
        same(compiled(x), bp.exp(x) * seen)
        weight += 1.0


def test_the_default_device_is_a_guard():
    devices = [info.device for info in bp.devices()]
    if len(devices) < 2:
        pytest.skip("there is one device")
    compiled = bp.compile(lambda: bp.ones((2,)))
    assert compiled().device == bp.ones((2,)).device
    with devices[1]:
        assert compiled().device == devices[1]
    assert "default device" in bp.compile_log()[-1]


class Layer:
    def __init__(self, weight):
        self.weight, self.steps = weight, 0


class Model:
    bias = 0.0

    def __init__(self):
        self.scale, self.layers, self.options, self.unread = 2.0, [Layer(tensor(3))], {"shift": 1.0}, 0
        self.traces = 0

    def count(self):
        self.traces += 1

    def run(self, x):
        bp.unguarded(self.count)
        for layer in self.layers:
            x = x * layer.weight
        return x * self.scale + self.options["shift"] + self.bias


CHANGES = {
    "a number": (lambda m: setattr(m, "scale", 3.0), "self.scale: found 3.0, had 2.0"),
    "its sign of zero": (lambda m: setattr(m, "scale", -0.0), "self.scale: found -0.0, had 2.0"),
    "another tensor": (lambda m: setattr(m.layers[0], "weight", tensor(3, seed=9)), r"self.layers\[0\].weight: found another tensor"),
    "a dict's entry": (lambda m: m.options.update(shift=5.0), r"self.options\['shift'\]: found 5.0, had 1.0"),
    "another dict": (lambda m: setattr(m, "options", {"shift": 5.0}), "self.options: found"),
    "a longer list": (lambda m: m.layers.append(Layer(tensor(3, seed=7))), "self.layers: found 2 elements, had 1"),
    "one of its own": (lambda m: setattr(m, "bias", 4.0), "self.bias: found 4.0, had none"),
}


@pytest.mark.parametrize("call", ["method", "bound", "argument"])
@pytest.mark.parametrize("change", CHANGES)
def test_an_attribute_that_is_rebound_makes_another_kind_of_call(change, call):
    import re

    model, x = Model(), tensor(3, seed=2)
    if call == "method":
        compiled = bp.compile(Model.run)
        run = lambda: compiled(model, x)
    elif call == "bound":
        compiled = bp.compile(model.run)
        run = lambda: compiled(x)
    else:
        compiled = bp.compile(lambda self, x: self.run(x))
        run = lambda: compiled(model, x)
    for _ in range(3):
        same(run(), model.run(x))
        model.unread += 1
        model.layers[0].steps += 1
    traces = model.traces
    assert traces == 1 + 3
    rebind, says = CHANGES[change]
    rebind(model)
    same(run(), model.run(x))
    assert re.search(says, bp.compile_log()[-1]), bp.compile_log()[-1]
    same(run(), model.run(x))
    assert model.traces == traces + 3


def test_an_attribute_of_the_class_counts_too():
    class Own(Model):
        pass

    model, x = Own(), tensor(3)
    compiled = bp.compile(Own.run)
    same(compiled(model, x), model.run(x))
    Own.bias = 2.5
    same(compiled(model, x), model.run(x))


def test_a_weight_that_changes_in_place_makes_no_other_kind_of_call():
    model, x = Model(), tensor(3)
    compiled = bp.compile(model.run)
    for _ in range(3):
        same(compiled(x), model.run(x))
        model.layers[0].weight += 1.0
    assert model.traces == 1 + 3


def test_names_that_are_made_while_it_runs_are_guarded():
    class Named:
        def __init__(self):
            self.w0 = 2.0

    named = Named()
    compiled = bp.compile(lambda model, x: x * getattr(model, f"w{0}"))
    x = tensor(3)
    same(compiled(named, x), x * 2.0)
    named.w0 = 3.0
    same(compiled(named, x), x * 3.0)


def test_a_profiler_of_the_user_stays():
    import sys

    events = []
    sys.setprofile(lambda *event: events.append(event[1]))
    try:
        model = Model()
        compiled = bp.compile(model.run)
        compiled(tensor(3))
        assert sys.getprofile() is not None
    finally:
        sys.setprofile(None)
    model.scale = 3.0
    same(compiled(tensor(3)), model.run(tensor(3)))
    assert "call" in events


def test_a_plan_that_finds_no_memory_raises():
    huge = bp.compile(lambda x: bp.ones(2**40).sum() + x)
    for _ in range(2):
        with pytest.raises(MemoryError):
            huge(bp.ones((4,)))
    assert bp.compile(lambda x: bp.ones((4,)).sum() + x)(bp.ones((4,))).tolist() == [5, 5, 5, 5]
