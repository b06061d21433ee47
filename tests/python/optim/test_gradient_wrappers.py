"""masked, multi_transform, MultiSteps and inject_hyperparams: against the parts alone, eagerly and compiled."""

import pytest

import backplane as bp
from backplane import nn, optim
from backplane.optim import schedules

WAYS = pytest.mark.parametrize("way", [lambda f: f, bp.compile], ids=["eager", "compiled"])


def start():
    return {"a": bp.asarray([1.0, -2.0, 3.0]), "b": {"w": bp.asarray([[0.5, 1.0], [2.0, -1.0]]), "c": bp.asarray([0.1])}}


def gradients(params, t):
    return bp.tree.map(lambda p: bp.sin(p * (t + 1)) + 0.3 * t, params)


def trained(optimizer, way, steps=6, params=None, given=gradients):
    params = start() if params is None else params
    state = optimizer.init(params)
    update = way(lambda g, state, params: optimizer.update(g, state, params))
    for t in range(steps):
        updates, state = update(given(params, t), state, params)
        params = optim.apply_updates(params, updates)
    return params


def same(found, expected):
    assert bp.tree.structure(found) == bp.tree.structure(expected)
    return all(bp.allclose(a, b, rtol=1e-6) for a, b in zip(bp.tree.leaves(found), bp.tree.leaves(expected)))


@WAYS
def test_each_group_has_its_own_transformation(way):
    labels = {"a": "fast", "b": {"w": "slow", "c": "still"}}
    parts = {"fast": optim.adam(lr=0.1), "slow": optim.sgd(lr=0.2, momentum=0.9), "still": optim.set_to_zero()}
    found = trained(optim.multi_transform(parts, labels), way)
    expected = {"a": trained(parts["fast"], way)["a"], "b": {"w": trained(parts["slow"], way)["b"]["w"], "c": start()["b"]["c"]}}
    assert same(found, expected)
    whole = {"a": "still", "b": "fast"}  # one label for a part
    assert same(trained(optim.multi_transform(parts, lambda params: whole), way), {"a": start()["a"], "b": trained(parts["fast"], way)["b"]})


@WAYS
def test_a_group_has_a_norm_of_its_own(way):
    clipped = trained(optim.multi_transform({0: optim.chain(optim.clip_by_global_norm(0.1), optim.sgd(lr=1.0)), 1: optim.sgd(lr=1.0)}, {"a": 0, "b": 1}), way, 1)
    assert bp.allclose(bp.linalg.vector_norm(clipped["a"] - start()["a"]), 0.1) and same(clipped["b"], trained(optim.sgd(lr=1.0), way, 1)["b"])


@WAYS
def test_masked_leaves_other_gradients_as_they_are(way):
    decay = optim.masked(optim.add_decayed_weights(0.5), lambda params: bp.tree.map(lambda p: p.ndim > 1, params))
    found = trained(optim.chain(decay, optim.sgd(lr=0.1)), way)
    plain, decayed = trained(optim.sgd(lr=0.1), way), trained(optim.sgd(lr=0.1, weight_decay=0.5), way)
    assert same(found, {"a": plain["a"], "b": {"w": decayed["b"]["w"], "c": plain["b"]["c"]}})
    assert same(
        trained(optim.masked(optim.adam(lr=0.1), False), way, 1),
        {"a": start()["a"] + gradients(start(), 0)["a"], "b": bp.tree.map(lambda p, g: p + g, start()["b"], gradients(start(), 0)["b"])},
    )


def test_modules():
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    optimizer = optim.multi_transform({"train": optim.sgd(lr=0.5), "freeze": optim.set_to_zero()}, {"0": "freeze", "1": "train", "1.bias": "freeze"})
    slopes = bp.grad(lambda model: model(bp.ones((4, 2))).sum())(model)
    updates, _ = optimizer.update(slopes, optimizer.init(model), model)
    after = optim.apply_updates(model, updates)
    assert bp.array_equal(after[0].weight, model[0].weight) and bp.array_equal(after[1].bias, model[1].bias)
    assert bp.allclose(after[1].weight, model[1].weight - 0.5 * slopes[1].weight)
    with pytest.raises(bp.ArgumentValueError, match=r"param_labels: found nothing for the parameter '1\.weight'"):
        optim.multi_transform({"train": optim.sgd(lr=0.5)}, {"0": "train"}).init(model)


@WAYS
def test_multi_steps_update_once_in_several_steps(way):
    seen = []

    def given(params, t):
        seen.append(gradients(params, t))
        return seen[-1]

    found = trained(optim.MultiSteps(optim.adam(lr=0.1), 3), way, 7, given=given)
    means = [bp.tree.map(lambda *parts: sum(parts) / 3, *seen[i : i + 3]) for i in (0, 3)]
    assert same(found, trained(optim.adam(lr=0.1), lambda f: f, 2, given=lambda params, t: means[t]))
    assert same(seen[0], gradients(start(), 0)) and same(seen[2], gradients(start(), 2))  # nothing changed in between


@WAYS
def test_multi_steps_with_a_schedule_and_sums(way):
    optimizer = optim.MultiSteps(optim.sgd(lr=1.0), lambda n: n + 1, use_grad_mean=False)
    state, changed, total = optimizer.init(bp.zeros(1)), [], bp.zeros(1)
    update = way(optimizer.update)
    for t in range(6):
        updates, state = update(bp.asarray([float(t)]), state, total)
        total = total + updates
        changed.append(bool(optimizer.has_updated(state)))
    assert changed == [True, False, True, False, False, True] and total.tolist() == [-15.0] and state.gradient_step == 3


def test_multi_steps_sum_half_floats_in_float32():
    optimizer = optim.MultiSteps(optim.sgd(lr=1.0), 300, use_grad_mean=False)
    params = bp.zeros(1, dtype=bp.bfloat16)
    state = optimizer.init(params)
    for _ in range(300):
        updates, state = optimizer.update(bp.ones(1, dtype=bp.bfloat16), state, params)
    assert updates.dtype == bp.bfloat16 and updates.tolist() == [-300.0]  # bfloat16 alone would stay at 256


@WAYS
def test_inject_hyperparams_follows_schedules_and_takes_changes(way):
    schedule = schedules.linear_schedule(0.2, 0.0, 6)
    found = trained(optim.inject_hyperparams(optim.adamw)(lr=schedule, weight_decay=0.05), way)
    assert same(found, trained(optim.adamw(lr=schedule, weight_decay=0.05), way))
    optimizer = optim.inject_hyperparams(optim.sgd, static_args="momentum")(0.5, momentum=0.0)
    state, x = optimizer.init(bp.zeros(1)), bp.zeros(1)
    update = way(optimizer.update)
    for size in (0.5, 0.25, 0.125):
        state.hyperparams["lr"] = bp.asarray(size, dtype=bp.float64)
        updates, state = update(bp.ones(1), state, x)
        assert updates.tolist() == [-size] and updates.dtype == bp.float32 and state.hyperparams["lr"].item() == size
    assert state.count == 3


def test_inject_hyperparams_keeps_dtypes():
    optimizer = optim.inject_hyperparams(optim.adam)(lr=0.1, eps=1e-6, weight_decay=0.1)
    params = {"a": bp.ones(2), "b": bp.ones(2, dtype=bp.bfloat16)}
    state = optimizer.init(params)
    assert set(state.hyperparams) == {"lr", "eps", "weight_decay"}
    updates, after = optimizer.update(params, state, params)
    for one in (updates, after.inner_state["exp_avg"], after.inner_state["exp_avg_sq"]):
        assert one["a"].dtype == bp.float32 and one["b"].dtype == bp.bfloat16
    clipped = optim.inject_hyperparams(optim.clip)(0.5)
    assert clipped.update(bp.ones(2), clipped.init(bp.ones(2)))[0].dtype == bp.float32


def test_refusals():
    for call, match in (
        (lambda: optim.multi_transform({"a": optim.sgd()}, "b").init(start()), "param_labels: found 'b', expected one of 'a'"),
        (lambda: optim.masked(optim.sgd(), {"a": True}).init(start()), "masked: argument mask: expected a container with the structure of the parameters"),
        (lambda: optim.MultiSteps(optim.sgd(), 0), "every_k_schedule: found 0, expected an int of at least 1"),
        (lambda: optim.inject_hyperparams(optim.sgd, static_args="beta"), r"static_args: found \['beta'\], expected names among lr, momentum"),
    ):
        with pytest.raises(bp.ArgumentValueError, match=match):
            call()
    with pytest.raises(bp.ArgumentTypeError, match="MultiSteps: argument opt: found AdamW"):
        optim.MultiSteps(optim.AdamW([bp.ones(1)]), 2)
