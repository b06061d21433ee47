"""Training steps that run as they are and compiled, for tests of compile(state=)."""

import numpy as np

import backplane as bp
from backplane import nn, optim


def mlp():
    return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 1))


def squared(model, x, y):
    return ((model(x) - y) ** 2).mean()


class Program:
    """state: what compile gets. step(x, y). Everything is made anew for each run, from the same seed."""

    def __init__(self):
        self.model = mlp()
        self.optimizer = optim.AdamW(self.model.parameters(), lr=0.01)
        self.state = (self.model, self.optimizer)

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = squared(self.model, x, y)
        loss.backward()
        self.optimizer.step()
        return loss

    def around(self, i):
        """Before call i."""


def plain(x):
    return None if x is None else np.asarray(x.detach().astype(bp.float32))


def outcome(make, compiled, calls=4, **options):
    bp.manual_seed(3)
    program = make()
    step = bp.compile(program.step, state=program.state, **options) if compiled else program.step
    numbers = np.random.default_rng(0)
    results = []
    for i in range(calls):
        program.around(i)
        x, y = (bp.asarray(numbers.normal(size=(16, n)).astype("float32")) for n in (4, 1))
        results.append([plain(r) if isinstance(r, bp.Tensor) else r for r in bp.tree.leaves(step(x, y))])
    models = [part for part in vars(program).values() if isinstance(part, nn.Module)]
    tensors = [x for model in models for x in model.state_dict().values()] or list(program.state.values())
    parameters = [p for model in models for p in model.parameters()] or tensors
    return results, [plain(x) for x in tensors], [plain(p.grad) for p in parameters]


def check_same(found, expected):
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        if isinstance(a, list):
            check_same(a, b)
        elif a is None or isinstance(a, bool):
            assert a is b
        else:
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


def trained(step, **options):
    """A model and a compiled step of it."""
    model = mlp()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    return model, bp.compile(lambda x, y: step(model, optimizer, x, y), state=(model, optimizer), **options)


def data(n=16):
    return bp.ones((n, 4)), bp.zeros((n, 1))


def usual(model, optimizer, x, y):
    optimizer.zero_grad()
    loss = squared(model, x, y)
    loss.backward()
    optimizer.step()
    return loss
