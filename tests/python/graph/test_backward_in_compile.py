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


class IntoTheBatch(Program):
    """A value with a history is added to one that is computed from the batch alone."""

    def step(self, x, y):
        self.optimizer.zero_grad()
        total = x * 2
        total += self.model(x)
        loss = ((total - y) ** 2).mean()
        loss.backward()
        self.optimizer.step()
        return loss


class Attack(Program):
    """The gradient of a tensor that the function makes a leaf (adversarial examples)."""

    def step(self, x, y):
        self.optimizer.zero_grad()
        bent = x.clone().requires_grad_()
        assert bent.requires_grad
        squared(self.model, bent, y).backward()
        self.optimizer.zero_grad()
        loss = squared(self.model, x + 0.1 * bp.sign(bent.grad), y)
        loss.backward()
        self.optimizer.step()
        return loss, bent.grad


class FrozenInside(Adversaries):
    """The critic is frozen while the generator learns."""

    def step(self, x, y):
        self.critic.requires_grad_(False)
        self.first.zero_grad()
        other = -self.critic(bp.concat([self.generator(x)] * 4, axis=1)).mean()
        other.backward()
        self.first.step()
        self.critic.requires_grad_(True)
        self.second.zero_grad()
        loss = (self.critic(bp.concat([self.generator(x).detach()] * 4, axis=1)) - self.critic(x)).mean()
        loss.backward()
        self.second.step()
        return loss, other


class FrozenFromNowOn(Program):
    def step(self, x, y):
        loss = super().step(x, y)
        self.model[0].requires_grad_(not self.model[0].weight.requires_grad)
        return loss


class DataOfParameters(Program):
    def step(self, x, y):
        self.model.zero_grad()
        loss = squared(self.model, x, y)
        loss.backward()
        for p in self.model.parameters():
            p.data = p.data - 0.1 * p.grad
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
        (of_another, r"not part of the state.*add it"),
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
