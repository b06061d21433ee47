"""Modules and optimisers as arguments and results of compiled functions: they stay the objects that they are."""

import numpy as np
import pytest

import backplane as bp
from backplane import nn


def _parts():
    bp.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    return model, bp.optim.AdamW(model.parameters(), lr=0.1), bp.normal((8, 3))


_traces = []  # an element for each trace


def _step(model, optimizer, x, *, scale=1.0):
    bp.unguarded(_traces.append, None)
    loss, gradients = bp.value_and_grad(lambda m: (m(x) ** 2).mean() * scale)(model)
    optimizer.update(model, gradients)
    return loss


def test_an_optimiser_is_an_argument():
    model, optimizer, x = _parts()
    eager = [_step(model, optimizer, x).item() for _ in range(4)]
    model, optimizer, x = _parts()
    step = bp.compile(_step)
    traces = len(_traces)
    assert np.allclose([step(model, optimizer, x).item() for _ in range(2)], eager[:2], rtol=1e-5)
    assert len(_traces) - traces == 1
    optimizer.param_groups[0]["lr"] = 0.1  # the same number again: no other kind of call
    assert np.allclose([step(model, optimizer=optimizer, x=x).item() for _ in range(2)], eager[2:], rtol=1e-5)
    other, other_optimizer, _ = _parts()
    assert np.allclose(step(other, other_optimizer, x).item(), eager[0], rtol=1e-5)
    expected = 2 * (model(x) ** 2).mean().item()
    assert np.allclose(step(model, optimizer, x, scale=2.0).item(), expected, rtol=1e-5)


def test_positions_of_donated_arguments_are_refused_beside_an_optimiser():
    model, optimizer, x = _parts()
    with pytest.raises(bp.ArgumentValueError, match="donate"):
        bp.compile(_step, donate=2)(model, optimizer, x)


def test_objects_of_the_state_are_returned_themselves():
    model, optimizer, x = _parts()

    @bp.compile(state=[model, optimizer])
    def step(x):
        return _step(model, optimizer, x), model, {"optimizer": [optimizer]}

    losses = []
    for _ in range(3):
        loss, found, rest = step(x)
        losses.append(loss.item())
        assert found is model and rest["optimizer"][0] is optimizer
    assert losses[-1] < losses[0]


def test_an_ensemble_trains_in_one_graph():
    members = [nn.Linear(3, 2) for _ in range(3)]
    stacked = bp.tree.map(lambda *leaves: bp.stack(leaves).detach().requires_grad_(), *members)
    optimizer = bp.optim.SGD(stacked.parameters(), lr=0.01)
    x = bp.normal((5, 3))

    def loss(members):
        return (bp.vmap(lambda member: member(x))(members) ** 2).sum()

    def step():
        bp.unguarded(_traces.append, None)
        value, gradients = bp.value_and_grad(loss)(stacked)
        optimizer.update(stacked, gradients)
        return value

    compiled = bp.compile(step, state=[stacked, optimizer])
    before = len(_traces)
    losses = [compiled().item() for _ in range(4)]
    assert losses == sorted(losses, reverse=True)
    assert len(_traces) - before == 1
