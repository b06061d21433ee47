"""Staleness in training programs: optimizers, schedules and parameters, as users write them."""

import math
import types

import backplane as bp
from staleness_kinds import GUARDED, X, kind


def loss(w, x):
    return ((w * x - 1.0) ** 2).sum()


class Parameters:
    def __init__(self):
        self.w, self.b = bp.asarray([0.5, -0.5, 1.0]), bp.zeros(())


@kind
def test_adam_over_groups(run):
    class Adam:
        def __init__(self, groups):
            self.groups, self.state = groups, {}

        def step(self, gradients):
            for group in self.groups:
                for index, p in enumerate(group["params"]):
                    s = self.state.setdefault((id(group), index), {"t": 0, "m": bp.zeros(3)})
                    s["t"] += 1
                    s["m"][...] = 0.9 * s["m"] + 0.1 * gradients[index]
                    p -= group["lr"] * s["m"] / (1 - 0.9 ** s["t"])
            return gradients[0] * 1

    w = bp.ones(3)
    o = Adam([{"params": [w], "lr": 0.1}])
    f = run(o.step, state=lambda: (w, [s["t"] for s in o.state.values()]))
    for o.groups[0]["lr"] in (0.1, 0.1, 0.05):
        yield f([X])


@kind
def test_adam_in_one_function(run):
    o = types.SimpleNamespace(t=0, m=bp.zeros(3), v=bp.zeros(3), w=bp.ones(3))

    def step(x):
        value, g = bp.value_and_grad(loss)(o.w, x)
        o.t += 1
        o.m[...] = 0.9 * o.m + 0.1 * g
        o.v[...] = 0.99 * o.v + 0.01 * g * g
        o.w -= 0.1 * (o.m / (1 - 0.9**o.t)) / (bp.sqrt(o.v / (1 - 0.99**o.t)) + 1e-8)
        return value

    f = run(step, state=lambda: (o.t, o.m, o.v, o.w))
    for _ in range(4):
        yield f(X)


@kind(GUARDED)
def test_step_counter_that_the_caller_advances(run):
    o = types.SimpleNamespace(t=0, w=bp.ones(3))

    def step(x):
        o.w -= 0.1 / (1 - 0.9**o.t) * bp.grad(loss)(o.w, x)
        return o.w * 1

    f = run(step, state=lambda: o.w)
    for o.t in (1, 2, 3, 4):
        yield f(X)


@kind(GUARDED)
def test_step_counter_as_an_argument(run):
    def step(w, x, t):
        return w - 0.1 / (1 - 0.9**t) * bp.grad(loss)(w, x)

    f, w = run(step), bp.ones(3)
    for t in range(1, 7):
        w = f(w, X, t)
        yield w


@kind(GUARDED)
def test_schedule_object(run):
    class Cosine:
        def __init__(self):
            self.epoch, self.warm_up, self.base = 0, 2, 0.1

        def rate(self):
            if self.epoch < self.warm_up:
                return self.base * (self.epoch + 1) / self.warm_up
            return self.base * 0.5 * (1 + math.cos(math.pi * self.epoch / 10))

    schedule = Cosine()
    f = run(lambda w, x: w - schedule.rate() * bp.grad(loss)(w, x))
    for schedule.epoch in range(6):
        yield f(X, X)
    schedule.base = 0.2
    yield f(X, X)


@kind
def test_accumulation_of_gradients(run):
    o = types.SimpleNamespace(calls=0, w=bp.ones(3), g=bp.zeros(3))

    def step(x):
        o.g += bp.grad(loss)(o.w, x)
        o.calls += 1
        if o.calls % 2 == 0:
            o.w -= 0.1 * o.g
            o.g[...] = 0.0
        return o.w * 1

    f = run(step, state=lambda: (o.calls, o.w, o.g))
    for _ in range(5):
        yield f(X)


@kind(GUARDED)
def test_parameters_that_are_replaced(run):
    p = Parameters()
    f = run(lambda x: x * p.w + p.b)
    for _ in range(3):
        yield f(X)
        p.w, p.b = p.w * 0.5, p.b + 1.0


@kind
def test_parameters_that_the_step_replaces(run):
    p = Parameters()

    def step(x):
        g, h = bp.grad(lambda w, b: loss(w + b, x), argnums=(0, 1))(p.w, p.b)
        p.w, p.b = p.w - 0.1 * g, p.b - 0.1 * h
        return p.w * 1

    f = run(step, state=lambda: (p.w, p.b))
    for _ in range(3):
        yield f(X)


@kind
def test_moving_average_of_parameters(run):
    p, o = Parameters(), types.SimpleNamespace(steps=0, average=bp.zeros(3))

    def step(x):
        o.steps += 1
        decay = min(0.9, (1 + o.steps) / (10 + o.steps))
        o.average[...] = decay * o.average + (1 - decay) * p.w
        return o.average * x

    f = run(step, state=lambda: (o.steps, o.average))
    for _ in range(4):
        yield f(X)
