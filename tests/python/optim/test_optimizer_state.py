"""Groups, states and models of optimisers, and state that compiles: one graph, no other trace, and nothing changed by a failed call."""

import numpy as np
import optimizer_cases as cases
import pytest

import backplane as bp
from backplane import nn, optim


def network():
    bp.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 1))


X, Y = (bp.asarray(a[:, :n].astype("float32")) for a, n in zip(cases.data()[1:], (3, 1)))


def loss_of(model, x, y):
    return ((model(x) - y) ** 2).mean()


def values(model):
    return {name: x.numpy().copy() for name, x in model.state_dict().items()}


def same(a, b, **how):
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_allclose(a[name], b[name], err_msg=name, **how)


def trained(optimizer_of, steps, compiled):
    model = network()
    optimizer = optimizer_of(model.parameters())
    scheduler = optim.lr_scheduler.ExponentialLR(optimizer, 0.9)

    traces = []

    def step(x, y):
        bp.unguarded(traces.append, None)
        loss, gradients = bp.value_and_grad(loss_of)(model, x, y)
        gradients, _ = nn.utils.clip_grad_norm(gradients, 1.0)
        optimizer.update(model, gradients)
        return loss

    run = bp.compile(step, state=[model, optimizer]) if compiled else step
    for _ in range(steps):
        run(X, Y)
        scheduler.step()
    return model, optimizer, len(traces)


@pytest.mark.parametrize(
    "optimizer_of",
    [lambda p: optim.SGD(p, 0.1, momentum=0.9, dampening=0.1), lambda p: optim.AdamW(p, 0.01), lambda p: optim.NAdam(p, 0.01),
     lambda p: optim.RAdam(p, 0.1), lambda p: optim.Adafactor(p, 0.01), lambda p: optim.Lion(p, 0.01)],
)  # fmt: skip
def test_a_compiled_step_is_the_step_and_traced_once(optimizer_of):
    eager, _, _ = trained(optimizer_of, 8, False)
    model, _, traces = trained(optimizer_of, 8, True)
    same(values(model), values(eager), rtol=2e-5, atol=1e-6)
    assert traces == 1


def test_update_does_what_step_does():
    one, other = network(), network()
    a, b = optim.AdamW(one.parameters(), 0.01), optim.AdamW(other.parameters(), 0.01)
    for _ in range(3):
        a.zero_grad()
        loss_of(one, X, Y).backward()
        a.step()
        b.update(other, bp.grad(loss_of)(other, X, Y))
    same(values(one), values(other), rtol=1e-6)


@pytest.mark.parametrize("kind", [optim.SGD, optim.LBFGS])
def test_gradients_given_to_step_are_refused(kind):
    model = nn.Linear(2, 1)
    optimizer = kind(model.parameters(), lr=0.1)
    before = model.weight.tolist()
    gradients = bp.grad(lambda m: m(bp.ones((1, 2))).sum())(model)
    for given in (gradients, {"weight": gradients.weight}, [gradients.weight, gradients.bias]):
        with pytest.raises(bp.ArgumentTypeError, match=rf"{kind.__name__}.step: argument closure: found {type(given).__name__}, .*update\(model, gradients\)"):
            optimizer.step(given)
    assert model.weight.tolist() == before


def test_a_state_continues_a_run():
    model, optimizer, _ = trained(lambda p: optim.AdamW(p, 0.01), 3, False)
    other = network()
    other.load_state_dict(model.state_dict())
    again = optim.AdamW(other.parameters(), 0.5)
    again.load_state_dict(optimizer.state_dict())
    for one, by in ((model, optimizer), (other, again)):
        by.update(one, bp.grad(loss_of)(one, X, Y))
    same(values(model), values(other), rtol=0)


def test_parameters_that_moved_are_followed():
    model = network()
    optimizer = optim.Adam(model.parameters(), 0.1)
    optimizer.update(model, bp.grad(loss_of)(model, X, Y))
    model.double()
    before = values(model)
    loss_of(model, X.astype(bp.float64), Y.astype(bp.float64)).backward()
    optimizer.step()
    assert np.abs(values(model)["0.weight"] - before["0.weight"]).max() > 1e-3


def test_frozen_and_foreign_parameters():
    model = network()
    optimizer = optim.SGD(model.parameters(), 0.1)
    model[0].weight.requires_grad_(False)
    before = values(model)
    optimizer.update(model, bp.grad(loss_of)(model, X, Y))
    after = values(model)
    assert (after["0.weight"] == before["0.weight"]).all() and (after["3.weight"] != before["3.weight"]).any()
    with pytest.raises(bp.ArgumentValueError, match="a parameter that the optimiser does not have"):
        optimizer.update(network(), bp.grad(loss_of)(network(), X, Y))
    with pytest.raises(bp.ArgumentValueError, match="argument lr: found -1"):
        optim.SGD(model.parameters(), lr=-1)


def test_a_failed_call_leaves_all_state():
    model = network()
    optimizer = optim.AdamW(model.parameters(), 0.1)
    table = bp.zeros(4)
    tracker = {"total": bp.zeros(())}

    @bp.compile(state=[model, optimizer, tracker])
    def step(x, y, index):
        loss, gradients = bp.value_and_grad(loss_of)(model, x, y)
        optimizer.update(model, gradients)
        tracker["total"] = tracker["total"] + loss
        return loss + bp.take(table, index)

    step(X, Y, bp.asarray(1))
    model_before, state_before, total = values(model), optimizer.state_dict()["state"][0]["exp_avg"].tolist(), tracker["total"].item()
    total_tensor = tracker["total"]
    with pytest.raises(bp.BackplaneError):
        step(X, Y, bp.asarray(9))
    same(values(model), model_before, rtol=0)
    assert optimizer.state_dict()["state"][0]["exp_avg"].tolist() == state_before and tracker["total"].item() == total
    assert float(optimizer.state[model[0].weight]["step"]) == 1
    step(X, Y, bp.asarray(1))
    assert tracker["total"].item() > total and total_tensor.item() == total


def test_an_error_of_the_function_leaves_all_state():
    model = network()
    optimizer = optim.SGD(model.parameters(), 0.1)
    before, fails = values(model), [True]

    @bp.compile(state=[model, optimizer])
    def step(x, y):
        optimizer.update(model, bp.grad(loss_of)(model, x, y))
        model.note = "changed"
        if fails[0]:
            raise KeyError("mine")

    with pytest.raises(KeyError):
        step(X, Y)
    same(values(model), before, rtol=0)
    assert not hasattr(model, "note")
    fails[0] = False
    step(X, Y)
    assert model.note == "changed" and (values(model)["0.weight"] != before["0.weight"]).any()


def test_inputs_and_outputs_as_in_mlx():
    state = [bp.zeros(()), {"x": bp.ones(2)}]

    @bp.compile(inputs=state, outputs=state)
    def count(y):
        state[0] = state[0] + 1
        state[1]["x"] = state[1]["x"] * y
        return state[1]["x"].sum()

    assert [count(bp.asarray(2.0)).item() for _ in range(3)] == [4, 8, 16]
    assert state[0].item() == 3 and state[1]["x"].tolist() == [8, 8]


def test_random_numbers_of_a_compiled_step_differ_from_call_to_call():
    drop = nn.Dropout(0.5)
    run = bp.compile(lambda x: drop(x), state=[drop])
    assert run(bp.ones(200)).tolist() != run(bp.ones(200)).tolist()


def test_groups_and_their_options():
    a, b = nn.Parameter(bp.ones(1)), nn.Parameter(bp.ones(1))
    optimizer = optim.SGD([{"params": [a], "lr": 1.0}, {"params": [("b", b)]}], lr=0.5)
    a.grad, b.grad = bp.ones(1), bp.ones(1)
    optimizer.step()
    assert (a.item(), b.item()) == (0.0, 0.5)
    optimizer.param_groups[1]["lr"] = 0.25
    optimizer.step()
    assert (a.item(), b.item()) == (-1.0, 0.25)
    assert [group["params"] for group in optimizer.state_dict()["param_groups"]] == [[0], [1]]
    with pytest.raises(bp.ArgumentValueError, match="twice"):
        optimizer.add_param_group({"params": [a]})


def test_muon_takes_matrices_alone():
    weight = nn.Parameter(bp.eye(3) * 2)
    with pytest.raises(bp.ShapeError, match="Muon"):
        optim.Muon([nn.Parameter(bp.ones(3))])
    optimizer = optim.Muon([weight], lr=0.1, weight_decay=0)
    weight.grad = bp.asarray([[3.0, 1, 0], [0, 2, 0], [1, 0, 1]])
    optimizer.step()
    singular = bp.linalg.svdvals(bp.eye(3) * 2 - weight.detach()).tolist()
    assert all(0.05 < value < 0.13 for value in singular)


def frozen(model, optimizer):
    model[0].weight.requires_grad_(False)


def thawed(model, optimizer):
    model[0].weight.requires_grad_(True)


def loaded(model, optimizer):
    optimizer.load_state_dict(optim.AdamW(model.parameters(), 0.01).state_dict())


def cleared(model, optimizer):
    optimizer.state.clear()


def moved(model, optimizer):
    model.to(bp.float64)
    model.to(bp.float32)


@pytest.mark.parametrize("changes", [(frozen, thawed), (loaded, loaded), (cleared, frozen), (moved, cleared)])
def test_what_changes_between_calls_changes_a_compiled_step_as_the_step(changes):
    results = []
    for compiled in (False, True):
        model = network()
        optimizer = optim.AdamW(model.parameters(), 0.01)

        def step(x, y, model=model, optimizer=optimizer):
            optimizer.update(model, bp.grad(loss_of)(model, x, y))

        run = bp.compile(step, state=[model, optimizer]) if compiled else step
        for change in (None, *changes):
            if change is not None:
                change(model, optimizer)
            run(X, Y)
            run(X, Y)
        state = optimizer.state_dict()["state"]
        results.append({**values(model), **{f"{i} {name}": x.numpy().copy() for i, own in state.items() for name, x in own.items()}})
    same(results[1], results[0], rtol=2e-5, atol=1e-6)


def test_places_of_one_tensor_may_part():
    results = []
    for compiled in (False, True):
        x, y = bp.zeros(2), bp.zeros(2)
        state = {"a": x, "b": x, "c": [y, y, y]}

        def step(state=state):
            state["a"] = state["a"] + 1
            state["c"][0] = state["c"][1] = state["c"][2] + 2
            return state["b"] * 1

        run = bp.compile(step, state=[state]) if compiled else step
        results.append([[run().tolist(), state["a"].tolist(), state["b"].tolist(), [x.tolist() for x in state["c"]]] for _ in range(3)])
    assert results[0] == results[1]


def test_what_keeps_a_tensor_without_being_state_is_named():
    model = network()
    optimizer = optim.AdamW(model.parameters(), 0.01)
    step = bp.compile(lambda x, y: optimizer.update(model, bp.grad(loss_of)(model, x, y)), state=[model])
    with pytest.raises(bp.ArgumentValueError, match="add it to state="):
        step(X, Y)


@pytest.mark.parametrize(("saved", "other"), [("SGD", "Adam"), ("Adam", "SGD"), ("Adam", "Adamax"), ("Adamax", "Adam"), ("RMSprop", "AdamW")])
def test_a_state_of_another_optimiser_is_refused(saved, other):
    model = network()
    optimizer, target = getattr(optim, saved)(model.parameters()), getattr(optim, other)(model.parameters())
    optimizer.update(model, bp.grad(loss_of)(model, X, Y))
    before = target.state_dict()
    with pytest.raises(bp.ArgumentValueError, match="load_state_dict: argument state_dict: found"):
        target.load_state_dict(optimizer.state_dict())
    assert target.state_dict() == before


@pytest.mark.parametrize("kind", ["Adam", "AdamW", "Adagrad", "RMSprop", "NAdam"])
def test_parameters_without_a_gradient_keep_their_count(kind):
    """Two parameters of four are frozen for some steps: each is as if it alone were trained."""

    def trained_alone(steps):
        p = bp.ones(2).requires_grad_()
        optimizer = getattr(optim, kind)([p], lr=0.1)
        for _ in range(steps):
            optimizer.zero_grad()
            (p * p).sum().backward()
            optimizer.step()
        return p.detach().numpy()

    parameters = [bp.ones(2).requires_grad_() for _ in range(4)]
    optimizer = getattr(optim, kind)(parameters, lr=0.1)
    for used in (parameters, parameters[2:], parameters[2:], parameters):
        optimizer.zero_grad()
        sum((p * p).sum() for p in used).backward()
        optimizer.step()
    for p, steps in zip(parameters, (2, 2, 4, 4)):
        np.testing.assert_allclose(p.detach().numpy(), trained_alone(steps), rtol=1e-6)


def test_dampening_may_begin_between_steps():
    p = bp.ones(1).requires_grad_()
    optimizer = optim.SGD([p], lr=0.1, momentum=0.5)
    found = []
    for dampening in (0.0, 0.5, 0.5):
        optimizer.param_groups[0]["dampening"] = dampening
        optimizer.zero_grad()
        (p * 3).sum().backward()
        optimizer.step()
        found.append(p.item())
    np.testing.assert_allclose(found, [0.7, 0.4, 0.1], rtol=1e-6)


def test_an_old_tensor_that_is_returned_keeps_its_values():
    state = {"w": bp.zeros(2)}

    def f(x):
        before = state["w"]
        state["w"] = before + 1
        return before, before[:1], state["w"], before, x

    compiled = bp.compile(f, state=[state])
    for i in range(3):
        x = bp.ones(2)
        results = compiled(x)
        assert [y.tolist() for y in results] == [[i, i], [i], [i + 1, i + 1], [i, i], [1, 1]]
        assert results[0] is results[3] and results[4] is x and state["w"].tolist() == [i + 1, i + 1]


def test_a_container_of_the_state_is_returned_as_it_is():
    state = {"w": bp.zeros(2)}

    def f():
        state["w"] = state["w"] + 1
        return state

    assert bp.compile(f, state=[state])() is state
