"""Optimisers and schedulers do what PyTorch's do, step by step, in float64; optimisers and their pure functions agree."""

import pathlib

import numpy as np
import optimizer_cases as cases
import pytest

import backplane as bp
from backplane import optim

STORE = np.load(pathlib.Path(__file__).with_name("optimizer_results.npz"))
PURE = [(name, constructor) for name, constructor in cases.cases(cases.OPTIMIZERS) if not name.startswith(("lbfgs", "groups"))]


def problem():
    first, x, y = cases.data()
    params = [bp.nn.Parameter(bp.asarray(p)) for p in first]
    x, y = bp.asarray(x), bp.asarray(y)
    return params, lambda values: cases.loss_of(bp, values, x, y)


def flat(params):
    return np.concatenate([p.detach().numpy().reshape(-1) for p in params])


@pytest.mark.parametrize(("name", "constructor"), cases.cases(cases.OPTIMIZERS))
def test_steps_are_those_of_torch(name, constructor):
    params, loss_of = problem()
    optimizer = eval(constructor, {**vars(optim), "params": params})

    def closure():
        optimizer.zero_grad()
        loss = loss_of(params)
        loss.backward()
        return loss

    found = []
    for _ in range(cases.STEPS):
        optimizer.step(closure)
        found.append(flat(params))
    np.testing.assert_allclose(np.stack(found), STORE[f"optimizer {name}"], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("name", "constructor"), PURE)
def test_pure_functions_take_the_same_steps(name, constructor):
    _, loss_of = problem()
    params = [bp.asarray(p) for p in cases.data()[0]]
    kind, _, rest = constructor.partition("(params, ")
    pure = eval(f"{kind.lower()}({rest}", dict(vars(optim)))
    state = pure.init(params)
    for step in range(10):
        updates, state = pure.update(bp.grad(loss_of)(params), state, params)
        params = optim.apply_updates(params, updates)
        np.testing.assert_allclose(flat(params), STORE[f"optimizer {name}"][step], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("name", "constructor"), cases.cases(cases.SCHEDULERS))
def test_rates_are_those_of_torch(name, constructor):
    optimizer = optim.SGD([bp.nn.Parameter(bp.zeros(1))], lr=0.1, momentum=0.9)
    scheduler = eval(constructor, {**vars(optim.lr_scheduler), "optimizer": optimizer})
    found = [(optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["momentum"])]
    for _ in range(cases.STEPS):
        optimizer.step()
        scheduler.step()
        found.append((optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["momentum"]))
    np.testing.assert_allclose(np.array(found), STORE[f"scheduler {name}"], rtol=1e-9, atol=1e-12)
