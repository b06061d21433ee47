"""GradScaler in compiled functions does the same as in eager mode: the same steps, scales and steps left out."""

import math

import numpy as np
import pytest

import backplane as bp
from backplane import nn, optim

OPTIMIZERS = {
    "sgd": lambda params: optim.SGD(params, lr=0.1, momentum=0.9),
    "adamw": lambda params: optim.AdamW(params, lr=0.01),
    "groups": lambda params: optim.Adam([{"params": params[:1], "lr": 0.1}, {"params": params[1:]}], lr=0.01),
}
FACTORS = [1.0, 1.0, math.inf, 1.0, math.nan, 1.0, 1.0, 1.0, 1.0]


def made(make, scale=2.0**10):
    bp.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    return model, make(list(model.parameters())), optim.GradScaler(init_scale=scale, growth_interval=2)


def step_of(model, optimizer, scaler, clips=False):
    def step(x, factor):
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean() * factor
        scaler.scale(loss).backward()
        if clips:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        scaler.step(optimizer)
        scaler.update()
        return loss

    return step


def seen(model, optimizer, scaler):
    slots = [x for p in model.parameters() for x in optimizer.state[p].values() if isinstance(x, bp.Tensor)]
    return [x.tolist() for x in [*model.parameters(), *slots]], scaler.state_dict()


@pytest.mark.parametrize("clips", [False, True])
@pytest.mark.parametrize("make", OPTIMIZERS)
def test_a_compiled_step_is_the_eager_one(make, clips):
    both = [made(OPTIMIZERS[make]) for _ in range(2)]
    steps = [step_of(*one, clips) for one in both]
    steps[1] = bp.compile(steps[1], state=list(both[1]))
    x = bp.randn(5, 3)
    scales = []
    for factor in FACTORS:
        factor = bp.asarray(factor)
        found = [step(x, factor) for step in steps]
        np.testing.assert_allclose(*(loss.item() for loss in found), rtol=1e-6)
        (tensors, scale), (expected, expected_scale) = seen(*both[1]), seen(*both[0])
        assert scale == expected_scale
        for a, b in zip(tensors, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-7)
        scales.append(scale["scale"])
    assert scales == [2.0**e for e in (10, 11, 10, 10, 9, 9, 10, 10, 11)]


def test_a_compiled_step_is_traced_once():
    model, optimizer, scaler = made(OPTIMIZERS["adamw"])
    traces = []
    step = step_of(model, optimizer, scaler)

    def counted(x, factor):
        bp.unguarded(traces.append, None)
        return step(x, factor)

    compiled = bp.compile(counted, state=[model, optimizer, scaler])
    compiled(bp.ones((5, 3)), bp.asarray(1.0))
    count = len(traces)
    for factor in FACTORS:
        compiled(bp.ones((5, 3)), bp.asarray(factor))
    assert len(traces) == count


def test_an_update_outside_of_the_function():
    both = [made(OPTIMIZERS["sgd"]) for _ in range(2)]

    def step_without_update(model, optimizer, scaler):
        def step(x, factor):
            optimizer.zero_grad()
            scaler.scale((model(x) ** 2).mean() * factor).backward()
            scaler.step(optimizer)

        return step

    steps = [step_without_update(*one) for one in both]
    steps[1] = bp.compile(steps[1], state=list(both[1]))
    for factor in FACTORS:
        for step, (_, _, scaler) in zip(steps, both):
            step(bp.ones((5, 3)), bp.asarray(factor))
            scaler.update()
        assert both[0][2].get_scale() == both[1][2].get_scale()


def test_a_scale_stays_finite():
    weight = bp.ones(2).requires_grad_()
    scaler, optimizer = optim.GradScaler(init_scale=2.0**127, growth_interval=1), optim.SGD([weight], lr=0.0)
    scaler.scale((weight * 1e-30).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 2.0**127


def test_a_scale_may_be_set():
    scaler = optim.GradScaler(init_scale=4.0)
    scaler.update(16.0)
    assert scaler.get_scale() == 16.0 and scaler.scale(bp.asarray(1.0)).item() == 16.0
    scaler.update(bp.asarray(2.0))
    assert scaler.get_scale() == 2.0


def test_half_precision_beyond_its_range():
    """The scale and the division are float32: 1 / 2^15 loses digits in float16."""
    weight = bp.ones(2, dtype=bp.float16).requires_grad_()
    scaler, optimizer = optim.GradScaler(init_scale=2.0**15), optim.SGD([weight], lr=1.0)
    scaler.scale((weight * 2.0**-12).astype(bp.float32).sum()).backward()
    assert weight.grad.tolist() == [8.0, 8.0]
    scaler.step(optimizer)
    np.testing.assert_allclose(weight.tolist(), 1 - 2.0**-12, rtol=1e-3)


@pytest.mark.parametrize("name", ["cuda", "none_of_this_name"])
def test_a_device_that_is_not_there(name):
    try:
        bp.device(name)
        pytest.skip(f"there is a device {name!r}")
    except (bp.DeviceError, bp.ArgumentValueError):
        pass
    with pytest.warns(UserWarning, match="GradScaler does nothing: .*" + name):
        scaler = optim.GradScaler(name)
    assert not scaler.is_enabled() and scaler.get_scale() == 1.0
