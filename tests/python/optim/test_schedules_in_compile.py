"""Schedulers in compiled functions: one trace, the rates of the eager loop, and refusals where the order would matter."""

import itertools

import numpy as np
import pytest

import backplane as bp
from backplane import nn
from backplane.optim import AdamW, lr_scheduler

NUMBERS = itertools.count()
MADE = {
    "cosine": lambda o: lr_scheduler.CosineAnnealingLR(o, 5),
    "one cycle": lambda o: lr_scheduler.OneCycleLR(o, 0.1, total_steps=20),
    "sequence": lambda o: lr_scheduler.SequentialLR(o, [lr_scheduler.LinearLR(o, 0.1, total_iters=3), lr_scheduler.ExponentialLR(o, 0.9)], [3]),
    "plateau": lambda o: lr_scheduler.ReduceLROnPlateau(o, patience=0, threshold=0.5),
    "restarts": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 3),
    "chain": lambda o: lr_scheduler.ChainedScheduler([lr_scheduler.ConstantLR(o, 0.5, 3), lr_scheduler.ExponentialLR(o, 0.9)]),
}


def _run(make, is_compiled):
    """(losses and rates of eight steps, traces)."""
    bp.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = AdamW(model.parameters(), lr=0.1)
    scheduler = make(optimizer)
    x = bp.normal((8, 3))

    def step(x):
        loss, gradients = bp.value_and_grad(lambda m: (m(x) ** 2).mean())(model)
        optimizer.update(model, gradients)
        scheduler.step(loss) if isinstance(scheduler, lr_scheduler.ReduceLROnPlateau) else scheduler.step()
        return loss

    step.__qualname__ = f"step_{next(NUMBERS)}"  # the log keeps the latest lines of all functions
    run = bp.compile(step, state=[model, optimizer, scheduler]) if is_compiled else step
    found = [(run(x).item(), optimizer.param_groups[0]["lr"]) for _ in range(8)]
    return found, sum(f"{step.__qualname__}: traced, " in line for line in bp.compile_log())


@pytest.mark.parametrize("name", MADE)
def test_a_scheduler_is_part_of_a_compiled_step(name):
    eager, _ = _run(MADE[name], is_compiled=False)
    compiled, traces = _run(MADE[name], is_compiled=True)
    np.testing.assert_allclose(compiled, eager, rtol=1e-5)
    assert traces == 1 and len({rate for _, rate in eager}) > 2


@pytest.fixture
def parts():
    model = nn.Linear(3, 1)
    optimizer = AdamW(model.parameters(), lr=0.1)
    return model, optimizer, lr_scheduler.ExponentialLR(optimizer, 0.5)


def test_a_rate_that_an_optimiser_would_read_later_is_refused(parts):
    model, optimizer, scheduler = parts

    @bp.compile(state=parts)
    def step(x):
        scheduler.step()
        optimizer.update(model, bp.grad(lambda m: m(x).sum())(model))

    with pytest.raises(bp.ArgumentValueError, match="call the scheduler after the optimiser"):
        step(bp.ones((2, 3)))
    assert scheduler.last_epoch == 0 and optimizer.param_groups[0]["lr"] == 0.1


def test_a_rate_that_is_read_in_the_function_is_refused(parts):
    scheduler = parts[2]

    @bp.compile(state=parts)
    def step(x):
        scheduler.step()
        return x * scheduler.get_last_lr()[0]

    with pytest.raises(bp.ArgumentValueError, match="get_last_lr"):
        step(bp.ones(3))


def test_loops_that_are_compiled_are_refused(parts):
    model, optimizer, scheduler = parts
    for inner in (scheduler.step, lambda: optimizer.update(model, bp.grad(lambda m: m(bp.ones((2, 3))).sum())(model))):

        @bp.compile(state=parts)
        def steps(x, inner=inner):
            def body(carry, _):
                inner()
                return carry + 1, carry

            return bp.scan(body, x, None, length=3)[0]

        with pytest.raises(bp.ArgumentValueError, match="control flow"):
            steps(bp.zeros(()))
    assert scheduler.last_epoch == 0


def test_a_call_that_fails_makes_no_step(parts):
    @bp.compile(state=parts)
    def step(x):
        parts[2].step()
        raise KeyError(x.shape)

    with pytest.raises(KeyError):
        step(bp.ones(3))
    assert parts[2].last_epoch == 0
