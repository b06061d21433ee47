"""Staleness in training programs: running statistics, modes, counters, data and configurations, as users write them."""

import dataclasses
import random
import types

import backplane as bp
from staleness_kinds import GUARDED, X, kind


def loss(w, x):
    return ((w * x - 1.0) ** 2).sum()


class Parameters:
    def __init__(self):
        self.w, self.b = bp.asarray([0.5, -0.5, 1.0]), bp.zeros(())


@kind(GUARDED)
def test_training_mode_of_modules(run):
    class Layer:
        def __init__(self):
            self.training, self.scale = True, 2.0

        def __call__(self, x):
            return x * self.scale if self.training else x

    class Model:
        def __init__(self):
            self.layers = [Layer(), Layer()]

        def train(self, mode=True):
            for layer in self.layers:
                layer.training = mode

        def __call__(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    m = Model()
    f = run(m)
    for mode in (True, False, True):
        m.train(mode)
        yield f(X)
    m.layers.append(Layer())
    yield f(X)


@kind
def test_number_of_batches_that_were_seen(run):
    class Norm:
        def __init__(self):
            self.seen, self.mean = 0, bp.zeros(())

        def __call__(self, x):
            self.seen += 1
            self.mean += (x.mean() - self.mean) / self.seen
            return x - self.mean

    n = Norm()
    f = run(n, state=lambda: (n.seen, n.mean))
    for i in range(4):
        yield f(X * (i + 1))


@kind(GUARDED)
def test_running_mean_in_place(run):
    o = types.SimpleNamespace(mean=bp.zeros(()), momentum=0.5)

    def step(x):
        o.mean[...] = o.mean * (1 - o.momentum) + x.mean() * o.momentum
        return x - o.mean

    f = run(step, state=lambda: o.mean)
    for o.momentum in (0.5, 0.5, 0.25):
        yield f(X)


@kind
def test_history_of_losses(run):
    o = types.SimpleNamespace(w=bp.ones(3), history=[])

    def step(x):
        value, g = bp.value_and_grad(loss)(o.w, x)
        o.w -= 0.1 * g
        o.history.append(value)
        return value

    f = run(step, state=lambda: (o.w, o.history))
    for _ in range(3):
        yield f(X)


@kind
def test_dropout_by_random_numbers_of_python(run):
    random.seed(3)

    def layer(x):
        keep = [random.random() > 0.5 for _ in range(3)]
        return x * bp.asarray([2.0 if k else 0.0 for k in keep])

    f = run(layer)
    for _ in range(5):
        yield f(X)


@kind(GUARDED)
def test_dropout_of_backplane(run):
    f = run(lambda x: bp.nn.functional.dropout(x, 0.5))
    for _ in range(5):
        yield f(bp.ones(20))


@kind
def test_data_loader(run):
    batches = iter([X, X + 1, X + 2])
    f = run(lambda w: loss(w, next(batches)))
    for _ in range(3):
        yield f(bp.ones(3))


@kind
def test_epoch_loop_with_an_index(run):
    data, o = bp.arange(12.0).reshape(4, 3), types.SimpleNamespace(i=0)

    def step(w):
        x = data[o.i]
        o.i = (o.i + 1) % 4
        return loss(w, x)

    f = run(step, state=lambda: o.i)
    for _ in range(5):
        yield f(bp.ones(3))


@kind(GUARDED)
def test_configuration(run):
    @dataclasses.dataclass
    class Config:
        act: str = "tanh"
        layers: int = 2
        scales: dict = dataclasses.field(default_factory=lambda: {"in": 1.0})

    c = Config()
    acts = {"tanh": bp.tanh, "relu": bp.relu}

    def model(x):
        for _ in range(c.layers):
            x = acts[c.act](x * c.scales["in"])
        return x

    f = run(model)
    yield f(X)
    c.act = "relu"
    yield f(X)
    c.layers = 3
    yield f(X)
    c.scales["in"] = 2.0
    yield f(X)
    acts["relu"] = abs
    yield f(X)


@kind(GUARDED)
def test_frozen_parameters(run):
    p = Parameters()
    frozen = {"b"}

    def step(x):
        return {name: value if name in frozen else value - 0.1 * x.sum() for name, value in vars(p).items()}

    f = run(lambda x: {name: value * 1 for name, value in step(x).items()})
    yield f(X)
    frozen.add("w")
    yield f(X)
    frozen.clear()
    yield f(X)


@kind
def test_clipping_that_remembers(run):
    o = types.SimpleNamespace(largest=bp.zeros(()))

    def clip(x):
        o.largest = bp.maximum(o.largest, x.max())
        return x / o.largest

    f = run(clip, state=lambda: o.largest)
    for scale in (1.0, 3.0, 2.0):
        yield f(X * scale)
