"""EMA and GradScaler."""

import math

import pytest

import backplane as bp
from backplane import nn, optim


def test_an_average_follows_the_parameters():
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    ema = optim.EMA(model, decay=0.9)
    first = model[0].weight.detach().clone()
    with bp.no_grad():
        model[0].weight[...] = first + 1
    model(bp.rand(4, 2))
    ema.update()
    assert bp.allclose(ema.average[0], first + 0.1, atol=1e-6) and bp.all(ema.module[1].running_mean == model[1].running_mean)
    with ema.average_parameters():
        assert bp.allclose(model[0].weight, first + 0.1, atol=1e-6)
    assert bp.all(model[0].weight == first + 1) and model[0].weight.requires_grad and not ema.average[0].requires_grad
    again = optim.EMA(model)
    again.load_state_dict(ema.state_dict())
    assert bp.all(again.average[0] == ema.average[0]) and again.decay == 0.9 and again.steps.item() == 1
    ema.copy_to()
    assert bp.allclose(model[0].weight, first + 0.1, atol=1e-6)
    warm = optim.EMA([bp.zeros(2)], decay=0.999, warmup=True)
    with bp.no_grad():
        warm._model[0][...] = 1.0
    warm.update()
    assert bp.allclose(warm.average[0], bp.full(2, 0.9))
    with pytest.raises(bp.ArgumentValueError, match="decay: found 2"):
        optim.EMA(model, decay=2)


def test_an_average_is_state_of_a_compiled_step():
    bp.manual_seed(0)
    model = nn.Linear(2, 1)
    optimizer, ema = optim.SGD(model.parameters(), lr=0.1), optim.EMA(model, decay=0.5)
    other = optim.EMA(model, decay=0.5)

    @bp.compile(state=[model, optimizer, ema])
    def step(x):
        loss, gradients = bp.value_and_grad(lambda model: (model(x) ** 2).mean())(model)
        optimizer.update(model, gradients)
        ema.update()
        return loss

    for _ in range(4):
        step(bp.ones((3, 2)))
        other.update()
    assert bp.allclose(ema.average[0], other.average[0]) and ema.steps.item() == 4


def test_a_scaled_loss_gives_the_same_step():
    weights = [bp.asarray([1.0, -2.0], dtype=bp.float32).requires_grad_() for _ in range(2)]
    optimizers = [optim.SGD([w], lr=0.1) for w in weights]
    scaler = bp.GradScaler(init_scale=8.0, growth_interval=2)
    for _ in range(3):
        (weights[0] ** 2).sum().backward()
        optimizers[0].step()
        scaler.scale((weights[1] ** 2).sum()).backward()
        scaler.step(optimizers[1])
        scaler.update()
        for optimizer in optimizers:
            optimizer.zero_grad()
    assert bp.allclose(weights[0], weights[1]) and scaler.get_scale() == 16.0
    before = weights[1].detach().clone()
    scaler.scale((weights[1] * math.inf).sum()).backward()
    scaler.unscale_(optimizers[1])
    with pytest.raises(bp.ArgumentValueError, match="unscaled already"):
        scaler.unscale_(optimizers[1])
    assert scaler.step(optimizers[1]) is None and bp.all(weights[1] == before)
    scaler.update()
    assert scaler.get_scale() == 8.0
    again = bp.GradScaler()
    again.load_state_dict(scaler.state_dict())
    assert again.get_scale() == 8.0 and again.state_dict() == scaler.state_dict()
    with pytest.raises(bp.ArgumentValueError, match="no step before"):
        again.update()
    off = bp.GradScaler(enabled=False)
    assert off.scale(before) is before and off.get_scale() == 1.0 and off.state_dict() == {}


def test_a_second_step_before_the_update_is_refused():
    weight = bp.ones(2).requires_grad_()
    scaler, optimizer = optim.GradScaler(init_scale=2.0), optim.SGD([weight], lr=0.1)
    scaler.scale(weight.sum()).backward()
    scaler.step(optimizer)
    with pytest.raises(bp.ArgumentValueError, match="call update"):
        scaler.step(optimizer)
    assert weight.tolist() == pytest.approx([0.9, 0.9])
    scaler.update()
