"""Programs of compile(state=) that change parameters, gradients, flags and batches by hand beside backward()."""

import pytest
from stateful_programs import Program, check_same, mlp, outcome, squared

import backplane as bp
from backplane import nn, optim


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


class FrozenInside(Program):
    """The critic is frozen while the generator learns."""

    def __init__(self):
        self.generator, self.critic = mlp(), mlp()
        self.first = optim.Adam(self.generator.parameters(), lr=0.01)
        self.second = optim.RMSprop(self.critic.parameters(), lr=0.01)
        self.state = [self.generator, self.critic, self.first, self.second]

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


class OneGradientForTwo(Program):
    """Both parameters, and the batch, have the same values as gradients; a change of one leaves the others."""

    def __init__(self):
        self.v, self.w = (bp.ones((16, 4)).requires_grad_() for _ in range(2))
        self.state = {"v": self.v, "w": self.w}

    def step(self, x, y):
        self.v.grad = self.w.grad = None
        ((self.v + self.w) * x).sum().backward()
        self.v.grad *= 0.5
        with bp.no_grad():
            for p in (self.v, self.w):
                p -= 0.1 * p.grad
        return x


class OldEntry(OwnUpdates):
    """What is detached of an entry keeps its values when another tensor takes the entry's place."""

    def __init__(self):
        super().__init__()
        self.state["mean"], self.state["copy"] = bp.zeros((4, 1)), bp.zeros((4, 1))

    def around(self, i):
        self.state["copy"].add_(1)

    def step(self, x, y):
        old = self.state["mean"].detach()
        self.w.grad = old
        self.state["mean"] = self.state["mean"] + x.mean()
        self.state["copy"] = self.w.detach()
        return old


PROGRAMS = [
    OldEntry,
    OneGradientForTwo,
    OwnUpdates,
    ThroughData,
    TwoStepsInOne,
    ChangedGradients,
    Frozen,
    FrozenInside,
    FrozenFromNowOn,
    DataOfParameters,
    Written,
    IntoTheBatch,
    Attack,
    Kept,
]


@pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)
def test_the_same_values_compiled(make):
    check_same(list(outcome(make, True)), list(outcome(make, False)))


def test_a_gradient_is_not_the_batch():
    w = bp.ones((4,)).requires_grad_()

    @bp.compile(state=[w])
    def step(x):
        w.grad = None
        (w * x).sum().backward()

    x = bp.ones((4,))
    step(x)
    w.grad.zero_()
    assert x.tolist() == [1, 1, 1, 1]


def test_a_tensor_of_the_state_with_a_history_is_not_a_parameter():
    w = bp.ones((4,)).requires_grad_()
    state = [w, w * 2]
    step = bp.compile(lambda x: (state[1] * w * x).sum().backward(), state=state)
    with pytest.raises(bp.ArgumentValueError, match="not a parameter in the state.*no_grad"):
        step(bp.ones((4,)))
    assert w.grad is None
