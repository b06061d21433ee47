"""optim.swa_utils: averages of models, batch norm's statistics anew, and the schedule SWALR."""

import math

import pytest

import backplane as bp
from backplane import nn, optim
from backplane.optim import swa_utils

EMA = 0.7


def model():
    return nn.Sequential(nn.Linear(2, 3, dtype=bp.float64), nn.BatchNorm1d(3, dtype=bp.float64))


HOW = {
    "default": ({}, "mean"),
    "swa": ({"avg_fn": swa_utils.get_swa_avg_fn()}, "mean"),
    "several swa": ({"multi_avg_fn": swa_utils.get_swa_multi_avg_fn()}, "mean"),
    "ema": ({"avg_fn": swa_utils.get_ema_avg_fn(EMA)}, "ema"),
    "several ema": ({"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(EMA)}, "ema"),
}


@pytest.mark.parametrize("is_compiled", [False, True])
@pytest.mark.parametrize("use_buffers", [False, True])
@pytest.mark.parametrize("how", HOW)
def test_averages_follow_the_model(how, use_buffers, is_compiled):
    bp.manual_seed(0)
    options, kind = HOW[how]
    source = model()
    averaged = swa_utils.AveragedModel(source, use_buffers=use_buffers, **options)

    def train(x):
        source(x)
        averaged.update_parameters(source)

    train = bp.compile(train, state=[source, averaged]) if is_compiled else train
    seen = []
    for step in range(4):
        with bp.no_grad():
            source[0].weight[...] = bp.normal((3, 2), dtype=bp.float64)
        train(bp.normal((5, 2), dtype=bp.float64) + step)
        seen.append({name: bp.copy(x) for name, x in source.state_dict().items()})
    assert averaged.n_averaged.item() == 4 and sorted(averaged.state_dict()) == sorted(["n_averaged", *(f"module.{name}" for name in seen[0])])
    for name in ("0.weight", "1.running_mean"):
        values = [state[name] for state in seen]
        expected = values[0]
        for step, value in enumerate(values[1:], 1):
            expected = (expected * step + value) / (step + 1) if kind == "mean" else EMA * expected + (1 - EMA) * value
        if name == "1.running_mean" and not use_buffers:
            expected = values[-1]
        assert bp.allclose(averaged.state_dict()[f"module.{name}"], expected, rtol=1e-12), name
    if not use_buffers:
        assert averaged.module[1].num_batches_tracked.item() == 4
    again = swa_utils.AveragedModel(model(), **options)
    again.load_state_dict(averaged.state_dict())
    x = bp.ones((1, 2), dtype=bp.float64)
    assert bp.all(again.eval()(x) == averaged.eval()(x))


def test_half_floats_keep_their_dtype():
    source = nn.Linear(2, 2, dtype=bp.bfloat16)
    averaged = swa_utils.AveragedModel(source)
    for _ in range(2):
        averaged.update_parameters(source)
    assert averaged.module.weight.dtype == bp.bfloat16 and bp.all(averaged.module.weight == source.weight)


def test_statistics_of_batch_norm_are_means_over_the_loader():
    source = model().eval()
    training = source.append(nn.BatchNorm1d(3, dtype=bp.float64))[2]  # a layer keeps its own mode
    batches = [bp.normal((4, 2), dtype=bp.float64) + i for i in range(3)]
    hidden = [source[0](x).detach() for x in batches]
    swa_utils.update_bn([(x, None) for x in batches], source)
    assert bp.allclose(source[1].running_mean, bp.stack([h.mean(0) for h in hidden]).mean(0), rtol=1e-12)
    assert bp.allclose(source[1].running_var, bp.stack([bp.var(h, axis=0, correction=1) for h in hidden]).mean(0), rtol=1e-12)
    assert not source.training and training.training and source[1].momentum == 0.1 and source[1].num_batches_tracked.item() == 3
    with pytest.raises(bp.ShapeError):
        swa_utils.update_bn([bp.ones((4, 3), dtype=bp.float64)], source)
    assert source[1].momentum == 0.1 and not source[1].training


@pytest.mark.parametrize("strategy", ["cos", "linear"])
@pytest.mark.parametrize("epochs", [0, 1, 5])
def test_rates_go_to_the_rate_of_each_group(strategy, epochs):
    groups = [{"params": [bp.zeros(1).requires_grad_()], "lr": rate} for rate in (0.1, 0.5)]
    optimizer = optim.SGD(groups, lr=0.1)
    schedule = swa_utils.SWALR(optimizer, [0.05, 0.02], epochs, strategy)
    for step in range(8):
        done = 1.0 if epochs == 0 else min(1.0, step / epochs)
        share = done if strategy == "linear" else (1 - math.cos(math.pi * done)) / 2
        expected = [0.1 + share * (0.05 - 0.1), 0.5 + share * (0.02 - 0.5)]
        assert schedule.get_last_lr() == pytest.approx(expected, rel=1e-12), step
        if step == 3:
            state = schedule.state_dict()
        optimizer.step()
        schedule.step()
    schedule.load_state_dict(state)
    assert schedule.last_epoch == 3


def test_what_is_refused():
    source = nn.Linear(2, 2)
    optimizer = optim.SGD(source.parameters(), lr=0.1)
    with pytest.raises(bp.ArgumentValueError, match="found avg_fn and multi_avg_fn"):
        swa_utils.AveragedModel(source, avg_fn=swa_utils.get_swa_avg_fn(), multi_avg_fn=swa_utils.get_swa_multi_avg_fn())
    with pytest.raises(bp.ArgumentValueError, match="found parameters of shapes"):
        swa_utils.AveragedModel(source).update_parameters(nn.Linear(3, 2))
    with pytest.raises(bp.ArgumentValueError, match="decay: found 1.5"):
        swa_utils.get_ema_multi_avg_fn(1.5)
    with pytest.raises(bp.ArgumentValueError, match="anneal_strategy: found 'step'"):
        swa_utils.SWALR(optimizer, 0.05, anneal_strategy="step")
    with pytest.raises(bp.ArgumentValueError, match="anneal_epochs: found -1"):
        swa_utils.SWALR(optimizer, 0.05, anneal_epochs=-1)
    with pytest.raises(bp.ArgumentValueError, match="found 2 values, expected one per group, 1"):
        swa_utils.SWALR(optimizer, [0.05, 0.1])
