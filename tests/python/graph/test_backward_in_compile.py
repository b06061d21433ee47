"""loss.backward() and .grad in a function of compile(state=): each program runs as it is and compiled, and leaves the same values."""

import numpy as np
import pytest
from stateful_programs import Program, check_same, data, mlp, outcome, squared, trained, usual

import backplane as bp
from backplane import nn, optim


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


class Tied(Program):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
        self.model[2].weight = self.model[0].weight
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)
        self.state = (self.model, self.optimizer)


class Averaged(Program):
    """A teacher whose weights follow the model's, and another model that is not part of the state, and not differentiated."""

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


class InnerTransform(Program):
    """A penalty on the gradient of the input, by grad inside of the function that calls backward."""

    def step(self, x, y):
        self.optimizer.zero_grad()
        slope = bp.grad(lambda a: self.model(a).sum())(x)
        loss = squared(self.model, x, y) + ((slope**2).sum(axis=1) - 1).mean() ** 2
        loss.backward()
        self.optimizer.step()
        return loss


class Halves(Program):
    def step(self, x, y):
        self.optimizer.zero_grad()
        with bp.autocast(dtype=bp.bfloat16):
            loss = squared(self.model, x, y)
        loss.backward()
        self.optimizer.step()
        return loss


def programs(base):
    """The class and those that this file derives from it."""
    mine = [one for one in base.__subclasses__() if one.__module__ == __name__]
    return [base, *(each for one in mine for each in programs(one))]


@pytest.mark.parametrize("make", programs(Program), ids=lambda make: make.__name__)
def test_a_compiled_function_that_calls_backward(make):
    check_same(list(outcome(make, True)), list(outcome(make, False)))


def test_one_trace_serves_all_calls_whatever_gradients_the_parameters_hold():
    model = mlp()
    optimizer = optim.SGD(model.parameters(), lr=0.1)

    @bp.compile(state=(model, optimizer))
    def traced_only_once(x, y):
        return usual(model, optimizer, x, y)

    traced_only_once(*data())
    for p in model.parameters():
        p.grad = None
    traced_only_once(*data())
    traced_only_once(*data())
    assert sum("traced_only_once: traced" in line for line in bp.compile_log()) == 1


def test_the_objects_may_be_arguments():
    model = mlp()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    step = bp.compile(usual)
    losses = [step(model, optimizer, *data()).item() for _ in range(3)]
    assert losses[2] < losses[0]
    assert model[0].weight.grad is not None


def test_sizes_may_be_dynamic():
    model, step = trained(usual, dynamic=True)
    other = mlp()
    other.load_state_dict(model.state_dict())
    optimizer = optim.SGD(other.parameters(), lr=0.1)
    for n in (16, 5, 9):
        np.testing.assert_allclose(step(*data(n)).item(), usual(other, optimizer, *data(n)).item(), rtol=1e-5)


def test_gradients_of_inputs():
    def step(model, optimizer, x, y):
        hidden = model[0](x)
        loss = (hidden**2).sum()
        of_hidden, of_weight = bp.gradients(loss, [hidden, model[0].weight])
        return of_hidden - 2 * hidden, of_weight - (2 * hidden).T @ x, model[3].weight.grad is None

    _, compiled = trained(step)
    hidden, weight, untouched = compiled(*data())
    assert float(bp.abs(hidden).max()) < 1e-6 and float(bp.abs(weight).max()) < 1e-4 and untouched


def test_a_call_that_raises_leaves_gradients_and_parameters():
    def step(model, optimizer, x, y):
        loss = usual(model, optimizer, x, y)
        if x.shape[0] == 3:
            raise RuntimeError("stop")
        return loss

    model, compiled = trained(step)
    compiled(*data())
    before = [(p.detach().numpy().copy(), p.grad) for p in model.parameters()]
    with pytest.raises(RuntimeError, match="stop"):
        compiled(*data(3))
    for p, (value, grad) in zip(model.parameters(), before):
        assert np.array_equal(p.detach().numpy(), value)
        assert np.array_equal(p.grad.numpy(), grad.numpy())


def of_another(model, optimizer, x, y):
    (squared(model, x, y) + (OTHER * x).sum()).backward()


OTHER = bp.ones((4,)).requires_grad_()


def in_a_loop(model, optimizer, x, y):
    def body(c, row):
        model[0](x).sum().backward()
        return c, row

    return bp.scan(body, bp.zeros(()), x)[1]


def in_a_transform(model, optimizer, x, y):
    def loss(a):
        value = model(a).sum()
        value.backward()
        return value

    return bp.grad(loss)(x)


def change_a_leaf(model, optimizer, x, y):
    model(x).sum().backward()
    model[0].weight.mul_(2)


def change_and_go_back(model, optimizer, x, y):
    loss = (model[3].weight * model[3].weight).sum()
    with bp.no_grad():
        model[3].weight.mul_(2)
    loss.backward()


def go_back_twice(model, optimizer, x, y):
    loss = squared(model, x, y)
    loss.backward()
    loss.backward()


def read_a_gradient(model, optimizer, x, y):
    squared(model, x, y).backward()
    return float(model[0].weight.grad.sum())


def gradient_of_another(model, optimizer, x, y):
    squared(model, x, y).backward()
    return OTHER.grad


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (of_another, r"not a parameter in the state.*add it"),
        (in_a_loop, r"value_and_grad"),
        (in_a_transform, r"value_and_grad"),
        (change_a_leaf, r"in-place change of a tensor that requires a gradient"),
        (change_and_go_back, r"changed in place since"),
        (go_back_twice, r"retain_graph"),
        (read_a_gradient, r"no value yet"),
        (gradient_of_another, r"not part of the state"),
        (lambda model, optimizer, x, y: model(x).backward(), r"16 elements"),
        (lambda model, optimizer, x, y: x.sum().backward(), r"has no history"),
        (lambda model, optimizer, x, y: squared(model, x, y).backward(create_graph=True), r"create_graph.*grad or value_and_grad"),
    ],
)
def test_what_is_refused(step, words):
    _, compiled = trained(step)
    with pytest.raises(bp.ArgumentValueError, match=words):
        compiled(*data())


def test_without_state_it_is_refused():
    model = mlp()
    with pytest.raises(bp.ArgumentValueError, match=r"compile\(state=\)"):
        bp.compile(lambda x: squared(model, x, 0).backward())(bp.ones((16, 4)))
