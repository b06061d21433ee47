"""Modules and optimisers as results of compiled functions: they stay the objects that they are."""

import backplane as bp
from backplane import nn


def _parts():
    bp.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    return model, bp.optim.AdamW(model.parameters(), lr=0.1), bp.normal((8, 3))


def _step(model, optimizer, x):
    loss, gradients = bp.value_and_grad(lambda m: (m(x) ** 2).mean())(model)
    optimizer.update(model, gradients)
    return loss


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
