"""chain and its parts, and schedules as functions: against formulas, in compiled functions, loops and vmap."""

import math

import pytest

import backplane as bp
from backplane import nn, optim
from backplane.optim import schedules


def cosine(share):
    return (1 + math.cos(math.pi * min(max(share, 0), 1))) / 2


SCHEDULES = {
    "constant": (schedules.constant_schedule(3.0), lambda t: 3.0),
    "polynomial": (schedules.polynomial_schedule(1.0, 0.1, 2, 10, 3), lambda t: 0.1 + 0.9 * (1 - min(max(t - 3, 0), 10) / 10) ** 2),
    "linear": (schedules.linear_schedule(1.0, 0.1, 10), lambda t: 1 - 0.9 * min(t, 10) / 10),
    "no steps": (schedules.linear_schedule(1.0, 0.1, 0), lambda t: 1.0),
    "cosine": (schedules.cosine_decay_schedule(2.0, 10, 0.1, 2.0), lambda t: 2 * (0.9 * cosine(t / 10) ** 2 + 0.1)),
    "exponential": (schedules.exponential_decay(1.0, 5, 0.5, 3), lambda t: 0.5 ** max((t - 3) / 5, 0)),
    "stairs": (schedules.exponential_decay(1.0, 5, 0.5, 3, True, 0.2), lambda t: max(0.5 ** max((t - 3) // 5, 0), 0.2)),
    "rising": (schedules.exponential_decay(1.0, 5, 2.0, end_value=3.0), lambda t: min(2 ** (t / 5), 3)),
    "pieces": (schedules.piecewise_constant_schedule(1.0, {8: 0.1, 5: 0.5}), lambda t: (0.5 if t >= 5 else 1) * (0.1 if t >= 8 else 1)),
    "warm constant": (schedules.warmup_constant_schedule(0.0, 1.0, 5), lambda t: min(t / 5, 1)),
    "warm cosine": (schedules.warmup_cosine_decay_schedule(0.0, 2.0, 5, 15, 0.2), lambda t: 2 * t / 5 if t < 5 else 2 * (0.9 * cosine((t - 5) / 10) + 0.1)),
    "warm exponential": (schedules.warmup_exponential_decay_schedule(0.0, 1.0, 5, 4, 0.5), lambda t: t / 5 if t < 5 else 0.5 ** ((t - 5) / 4)),
    "one cycle": (schedules.cosine_onecycle_schedule(10, 1.0, 0.3), lambda t: 0.04 + 0.96 * (1 - cosine(t / 3)) if t < 3 else 4e-6 + (1 - 4e-6) * cosine((t - 3) / 7)),
    "lines of one cycle": (schedules.linear_onecycle_schedule(20, 1.0, 0.25, 0.75), lambda t: 0.04 + 0.96 * t / 5 if t < 5 else 1 - 0.96 * (t - 5) / 10 if t < 15 else 0.04 - (0.04 - 4e-6) * min(t - 15, 5) / 5),
    "restarts": (schedules.sgdr_schedule([{"init_value": 0.0, "peak_value": 1.0, "warmup_steps": 2, "decay_steps": 8}] * 2), lambda t: (t % 8) / 2 if t % 8 < 2 and t < 16 else cosine((t % 8 - 2) / 6) if t < 16 else 0),
}  # fmt: skip


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_are_their_formulas(name):
    schedule, formula = SCHEDULES[name]
    exact = [formula(t) for t in range(20)]
    assert [schedule(t).item() for t in range(20)] == pytest.approx(exact, abs=1e-12)
    compiled = bp.compile(schedule)
    assert [compiled(bp.asarray(t)).item() for t in range(20)] == pytest.approx(exact, abs=1e-12)
    assert bp.vmap(schedule)(bp.arange(20)).tolist() == pytest.approx(exact, abs=1e-12)


def test_what_schedules_refuse():
    for call, match in (
        (lambda: schedules.cosine_decay_schedule(1.0, 0), "decay_steps: found 0"), (lambda: schedules.exponential_decay(1.0, 0, 0.5), "transition_steps: found 0"),
        (lambda: schedules.join_schedules([schedules.constant_schedule(1.0)], [3]), "boundaries: found 1, expected 0"),
        (lambda: schedules.piecewise_interpolate_schedule("cubic", 1.0), "interpolate_type: found 'cubic'"),
    ):  # fmt: skip
        with pytest.raises(bp.ArgumentValueError, match=match):
            call()


def run(optimizer, steps, transform=lambda f: f):
    update = transform(lambda g, s, p: optimizer.update(g, s, p))
    params = {"a": bp.asarray([1.0, -2.0], dtype=bp.float64), "b": bp.asarray([[0.5]], dtype=bp.float64)}
    state = optimizer.init(params)
    for t in range(steps):
        gradients = {"a": bp.asarray([1.0, 2.0], dtype=bp.float64) * (t + 1), "b": bp.asarray([[t - 3.0]], dtype=bp.float64)}
        updates, state = update(gradients, state, params)
        params = optim.apply_updates(params, updates)
    return params


@pytest.mark.parametrize("transform", [lambda f: f, bp.compile])
def test_a_chain_is_its_parts_one_after_the_other(transform):
    schedule = schedules.linear_schedule(0.1, 0.0, 4)
    found = run(optim.chain(optim.clip_by_global_norm(1.0), optim.add_decayed_weights(0.1), optim.sgd(lr=schedule), optim.scale(0.5)), 3, transform)
    a, b = [1.0, -2.0], 0.5
    for t in range(3):
        g = [1.0 * (t + 1), 2.0 * (t + 1), t - 3.0]
        norm = math.sqrt(sum(x * x for x in g))
        g = [x / norm if norm > 1 else x for x in g]
        rate = 0.5 * 0.1 * (1 - t / 4)
        a, b = [x - rate * (y + 0.1 * x) for x, y in zip(a, g)], b - rate * (g[2] + 0.1 * b)
    assert found["a"].tolist() == pytest.approx(a, rel=1e-12) and found["b"].item() == pytest.approx(b, rel=1e-12)


def test_a_rate_may_be_a_function():
    by_function, by_hand = optim.adam(lr=schedules.cosine_decay_schedule(0.1, 5)), optim.adam(lr=0.1)
    params = {"w": bp.ones(2)}
    states = [by_function.init(params), by_hand.init(params)]
    values = [params, params]
    for t in range(6):
        gradients = {"w": bp.asarray([1.0, -2.0]) * (t + 1)}
        first, states[0] = by_function.update(gradients, states[0], values[0])
        second, states[1] = by_hand.update(gradients, states[1], values[1], lr=0.1 * cosine(t / 5))
        values = [optim.apply_updates(p, u) for p, u in zip(values, (first, second))]
    assert bp.allclose(values[0]["w"], values[1]["w"])


def test_parts_of_a_chain():
    u = {"w": bp.asarray([3.0, -4.0, bp.nan])}
    assert optim.clip(2.0).update({"w": bp.asarray([3.0, -1.0])}, ())[0]["w"].tolist() == [2, -1]
    assert optim.zero_nans().update(u, ())[0]["w"].tolist() == [3, -4, 0]
    assert optim.clip_by_global_norm(10.0).update({"w": bp.asarray([3.0, -4.0])}, ())[0]["w"].tolist() == [3, -4]
    assert bp.allclose(optim.clip_by_global_norm(1.0).update({"w": bp.asarray([3.0]), "v": bp.asarray([-4.0])}, ())[0]["v"], -0.8)
    by_step = optim.scale_by_schedule(schedules.linear_schedule(1.0, 0.0, 4))
    found, state = by_step.update({"w": bp.ones(1)}, by_step.init({"w": bp.ones(1)}) + 2)
    assert found["w"].item() == 0.5 and state.item() == 3


def test_a_chain_over_a_module_in_a_loop():
    model, x = nn.Linear(2, 1), bp.ones((3, 2))
    optimizer = optim.chain(optim.clip_by_global_norm(1.0), optim.adam(lr=schedules.linear_schedule(0.1, 0.0, 40)))

    def body(carry, _):
        model, state = carry
        gradients = bp.grad(lambda model: ((model(x) - 1) ** 2).mean())(model)
        updates, state = optimizer.update(gradients, state, model)
        return (optim.apply_updates(model, updates), state), None

    trained, _ = bp.scan(body, (model, optimizer.init(model)), None, length=40)[0]
    assert ((trained(x) - 1) ** 2).mean().item() < 0.01


def test_what_a_chain_refuses():
    with pytest.raises(bp.ArgumentTypeError, match="found float, expected transformations"):
        optim.chain(0.1)
    with pytest.raises(bp.ArgumentValueError, match="found 0 states, expected 1"):
        optim.chain(optim.clip(1.0)).update({"w": bp.ones(1)}, ())
    with pytest.raises(bp.ArgumentValueError, match="params: found None"):
        optim.add_decayed_weights(0.1).update({"w": bp.ones(1)}, ())
