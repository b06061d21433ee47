"""loss.backward() and .grad in a function of compile(state=): each program runs as it is and compiled, and leaves the same values."""

import numpy as np
import pytest

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


class ZeroGradAtEnd(Program):
    def step(self, x, y):
        loss = squared(self.model, x, y)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss


class ZeroGradToZeros(Program):
    def step(self, x, y):
        self.optimizer.zero_grad(set_to_none=False)
        loss = squared(self.model, x, y)
        loss.backward()
        self.optimizer.step()
        return loss


class TwoParts(Program):
    def step(self, x, y):
        self.optimizer.zero_grad()
        losses = [squared(self.model, x[:8], y[:8]), squared(self.model, x[8:], y[8:])]
        for loss in losses:
            (loss / 2).backward()
        self.optimizer.step()
        return losses


class AcrossCalls(Program):
    """Every second call changes the parameters."""

    def around(self, i):
        self.changes = i % 2 == 1

    def step(self, x, y):
        loss = squared(self.model, x, y)
        loss.backward()
        if self.changes:
            self.optimizer.step()
            self.optimizer.zero_grad()
        return loss


class TwoPasses(Program):
    def step(self, x, y):
        self.optimizer.zero_grad()
        prediction = self.model(x)
        ((prediction - y) ** 2).mean().backward(retain_graph=True)
        (prediction - y).abs().mean().backward()
        self.optimizer.step()
        return prediction.detach()


class GivenCotangent(Program):
    def step(self, x, y):
        self.optimizer.zero_grad()
        prediction = self.model(x)
        prediction.backward(2 * (prediction.detach() - y) / 16)
        self.optimizer.step()
        return prediction


class Adversaries(Program):
    def __init__(self):
        self.generator, self.critic = mlp(), mlp()
        self.first = optim.Adam(self.generator.parameters(), lr=0.01)
        self.second = optim.RMSprop(self.critic.parameters(), lr=0.01)
        self.state = [self.generator, self.critic, self.first, self.second]

    def step(self, x, y):
        self.second.zero_grad()
        made = self.generator(x)
        real, found = self.critic(x), self.critic(bp.concat([made.detach()] * 4, axis=1))
        loss = (found - real).mean()
        loss.backward()
        self.second.step()
        with bp.no_grad():
            for p in self.critic.parameters():
                p.clip_(-0.3, 0.3)
        self.first.zero_grad()
        other = -self.critic(bp.concat([made] * 4, axis=1)).mean()
        other.backward()
        self.first.step()
        return loss, other


class OwnUpdates(Program):
    def __init__(self):
        self.w = bp.linspace(-1, 1, 4).reshape((4, 1)).requires_grad_()
        self.b = bp.zeros((1,)).requires_grad_()
        self.state = {"w": self.w, "b": self.b}

    def step(self, x, y):
        loss = ((x @ self.w + self.b - y) ** 2).mean()
        loss.backward()
        with bp.no_grad():
            self.w -= 0.1 * (self.w.grad + 0.01 * self.w)
            self.b.sub_(0.1 * self.b.grad)
            self.w[0] = self.w[0] * 0.5
        self.w.grad = None
        self.b.grad = None
        return loss


class ThroughData(OwnUpdates):
    def step(self, x, y):
        for p in (self.w, self.b):
            if p.grad is not None:
                p.grad.zero_()
        loss = ((x @ self.w + self.b - y) ** 2).mean()
        loss.backward()
        self.w.data -= 0.1 * self.w.grad.data
        self.b.data.sub_(0.1 * self.b.grad)
        self.w.data.clip_(-1, 1)
        return loss


class TwoStepsInOne(OwnUpdates):
    def step(self, x, y):
        losses = []
        for _ in range(3):
            self.w.grad = self.b.grad = None
            loss = ((x @ self.w + self.b - y) ** 2).mean()
            loss.backward()
            with bp.no_grad():
                self.w -= 0.1 * self.w.grad
                self.b -= 0.1 * self.b.grad
            losses.append(loss)
        return losses


class ChangedGradients(Program):
    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = squared(self.model, x, y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), 0.1)
        first, *_, last = self.model.parameters()
        first.grad *= 0.5
        last.grad = bp.sign(last.grad)
        self.model[0].bias.grad = None
        nn.utils.clip_grad_value_(self.model.parameters(), 0.05)
        self.optimizer.step()
        return loss, norm, first.grad


class Frozen(Program):
    """Some parameters are frozen, other ones in later calls."""

    def around(self, i):
        self.model[0].requires_grad_(i % 2 == 0)

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = squared(self.model, x, y)
        loss.backward()
        self.optimizer.step()
        return loss, self.model[0].weight.grad is None


class Tied(Program):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
        self.model[2].weight = self.model[0].weight
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)
        self.state = (self.model, self.optimizer)


class Averaged(Program):
    """A teacher whose weights follow the model's, and another model that is no part of the state and is not differentiated."""

    def __init__(self):
        super().__init__()
        self.teacher, self.judge = mlp(), mlp().eval()
        self.state = (self.model, self.optimizer, self.teacher)

    def step(self, x, y):
        self.optimizer.zero_grad()
        with bp.no_grad():
            target = self.teacher(x) + self.judge(x)
        loss = squared(self.model, x, target)
        loss.backward()
        self.optimizer.step()
        with bp.no_grad():
            for mean, p in zip(self.teacher.parameters(), self.model.parameters()):
                mean.mul_(0.9).add_(0.1 * p)
        return loss


class Schedule(Program):
    def __init__(self):
        super().__init__()
        self.scheduler = optim.lr_scheduler.StepLR(self.optimizer, 2, gamma=0.5)
        self.state = (self.model, self.optimizer, self.scheduler)

    def step(self, x, y):
        loss = super().step(x, y)
        self.scheduler.step()
        return loss


class Hooks(Program):
    def __init__(self):
        super().__init__()
        self.model[0].weight.register_hook(lambda g: g * 0.5)

    def step(self, x, y):
        self.optimizer.zero_grad()
        hidden = self.model[0](x)
        hidden.register_hook(lambda g: bp.clip(g, -0.01, 0.01))
        loss = ((self.model[3](hidden) - y) ** 2).mean()
        loss.backward()
        self.optimizer.step()
        return loss


class Checkpoints(Program):
    def step(self, x, y):
        self.optimizer.zero_grad()
        hidden = bp.checkpoint(lambda a: bp.tanh(self.model[0](a)))(x)
        scaled, _ = bp.scan(lambda c, row: (c + row * self.model[3].weight.sum(), row), bp.zeros((6,)), hidden)
        loss = ((self.model[3](hidden) - y) ** 2).mean() + scaled.mean()
        loss.backward()
        self.optimizer.step()
        return loss


class OwnRule(Program):
    def step(self, x, y):
        @bp.custom_function
        def doubled(a):
            return a * self.model[3].weight.detach().sum() * 0 + 2 * a

        doubled.defvjp(lambda a: (doubled(a), None), lambda _, g: (3 * g,))
        self.optimizer.zero_grad()
        loss = ((doubled(self.model[0](x)).sum(axis=1, keepdims=True) - y) ** 2).mean()
        loss.backward()
        self.optimizer.step()
        return loss


class Kept(Program):
    """What the function stores in its state and returns is without the tape."""

    def __init__(self):
        super().__init__()
        self.model.last = bp.zeros(())
        self.state = (self.model, self.optimizer)

    def step(self, x, y):
        loss = super().step(x, y)
        self.model.last = loss
        return {"loss": loss, "gradients": [p.grad for p in self.model.parameters()], "weight": self.model[0].weight.T}


class InnerTransform(Program):
    """A penalty on the gradient of the input, by grad inside of the function that calls backward."""

    def step(self, x, y):
        self.optimizer.zero_grad()
        slope = bp.grad(lambda a: self.model(a).sum())(x)
        loss = squared(self.model, x, y) + ((slope**2).sum(axis=1) - 1).mean() ** 2
        loss.backward()
        self.optimizer.step()
        return loss


class Written(Program):
    """Values with a history go into tensors that the function makes."""

    def step(self, x, y):
        self.optimizer.zero_grad()
        columns = bp.zeros((16, 2))
        columns[:, :1] = self.model(x)
        columns[:, 1:] = self.model(-x)
        total = bp.zeros(())
        total += ((columns - y) ** 2).mean()
        total.backward()
        self.optimizer.step()
        return total


class Halves(Program):
    def step(self, x, y):
        self.optimizer.zero_grad()
        with bp.autocast(dtype=bp.bfloat16):
            loss = squared(self.model, x, y)
        loss.backward()
        self.optimizer.step()
        return loss


def programs(base=Program):
    yield base
    for one in base.__subclasses__():
        yield from programs(one)


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


@pytest.mark.parametrize("make", list(programs()), ids=lambda make: make.__name__)
def test_a_compiled_function_that_calls_backward(make):
    check_same(list(outcome(make, True)), list(outcome(make, False)))
