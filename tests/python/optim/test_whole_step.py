"""A step over all parameters is one compiled call that writes each tensor where it is, and does what the step op by op does."""

import copy
import pickle

import numpy as np
import pytest

import backplane as bp
from backplane import optim
from backplane.optim import _whole_step

SHAPES = [(3, 4), (5,), (2, 3, 4), (), (1, 7)]
MADE = {
    "SGD": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.3, weight_decay=0.1),
    "Adam": lambda p: optim.Adam(p, lr=0.1, amsgrad=True),
    "AdamW": lambda p: optim.AdamW(p, lr=0.1),
    "Lion": lambda p: optim.Lion(p, lr=0.1),
    "RMSprop": lambda p: optim.RMSprop(p, lr=0.1, centered=True, momentum=0.9),
    "Adafactor": lambda p: optim.Adafactor(p, lr=0.1),
    "Rprop": lambda p: optim.Rprop(p, lr=0.1),
}


def parameters(seed=0, dtype=bp.float64):
    draw = np.random.default_rng(seed)
    return [bp.asarray(draw.standard_normal(shape), dtype=dtype).requires_grad_() for shape in SHAPES]


def gradients(step):
    draw = np.random.default_rng(100 + step)
    return [bp.asarray(draw.standard_normal(shape)) for shape in SHAPES]


@pytest.fixture
def traces(monkeypatch):
    """A function that gives the number of traces of steps since the test began."""
    seen, change = [], _whole_step.change

    def counted(*given):
        bp.unguarded(seen.append, None)
        return change(*given)

    monkeypatch.setattr(_whole_step, "change", counted)
    return lambda: len(seen)


def run(made, steps, before=lambda step, optimizer: None):
    p = parameters()
    optimizer = made(p)
    for step in range(steps):
        before(step, optimizer)
        optimizer.update(p, gradients(step))
    return p, optimizer


def same(a, b, rtol=1e-12):
    for x, y in zip(a, b, strict=True):
        np.testing.assert_allclose(x.detach().numpy(), y.detach().numpy(), rtol=rtol, atol=1e-14)


@pytest.fixture
def op_by_op(monkeypatch):
    """A function that runs its argument with steps op by op."""

    def apart(function):
        with monkeypatch.context() as changed:
            changed.setattr(_whole_step, "_kept_step", lambda *given: None)
            return function()

    return apart


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_it_does_what_the_step_op_by_op_does(made, op_by_op):
    p, optimizer = run(made, 5)
    q, other = op_by_op(lambda: run(made, 5))
    same(p, q)
    for x, y in zip(p, q):
        assert optimizer.state[x].keys() == other.state[y].keys()
        same([v for v in optimizer.state[x].values() if v is not None], [v for v in other.state[y].values() if v is not None])


def test_tensors_stay_where_they_are():
    p, optimizer = run(MADE["AdamW"], 2)
    arrays = [x.detach().numpy() for x in p] + [optimizer.state[x]["exp_avg"].numpy() for x in p]
    before = [a.copy() for a in arrays]
    optimizer.update(p, gradients(7))
    assert all((a != b).all() for a, b in zip(arrays, before))  # views of the tensors' memory


def test_a_rate_that_changes_makes_no_new_graph(traces):
    rates = [0.1, 0.05, 0.2, 0.01]

    def before(step, optimizer):
        optimizer.param_groups[0]["lr"] = rates[step]

    count = traces()
    _, optimizer = run(MADE["AdamW"], 4, before)
    assert traces() - count == 1
    assert optimizer.state[optimizer.param_groups[0]["params"][0]]["step"].item() == 4


@pytest.mark.parametrize("made", ["SGD", "Adam"])
def test_cyclic_momentum_makes_no_new_graph(made, op_by_op, traces):
    """The rate and the momentum of OneCycleLR, with a step in compile(state=), an eager one, and one op by op."""

    def trained(compiled):
        p = parameters()
        optimizer = MADE[made](p)
        scheduler = optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=20)
        run = (lambda grads: optimizer.update(p, grads)) if not compiled else bp.compile(lambda grads: optimizer.update(p, grads), state=[p, optimizer])
        count = traces()
        for number in range(5):
            run(gradients(number))
            scheduler.step()
        return p, traces() - count

    expected = op_by_op(lambda: trained(False))[0]
    for compiled in (False, True):
        found, count = trained(compiled)
        assert count == 1
        same(found, expected)


def test_options_that_change_hold_at_once(op_by_op):
    def before(step, optimizer):
        optimizer.param_groups[0].update(betas=(0.9, 0.99 - 0.01 * step), weight_decay=0.1 * step)

    made = MADE["Adam"]
    same(run(made, 5, before)[0], op_by_op(lambda: run(made, 5, before)[0]))


def test_parameters_without_gradients_stay():
    p = parameters()
    optimizer = MADE["AdamW"](p)
    before = [x.detach().numpy().copy() for x in p]
    for x, g in zip(p[1:], gradients(0)[1:]):
        x.grad = g
    optimizer.step()
    assert (p[0].detach().numpy() == before[0]).all() and (p[1].detach().numpy() != before[1]).all()
    assert optimizer.state[p[1]]["step"].item() == 1


def test_views_of_one_tensor_as_parameters(op_by_op):
    def made():
        whole = bp.asarray(np.arange(12.0))
        p = [whole[:6].detach(), whole[6:].detach()]
        optimizer = optim.SGD(p, lr=0.1, momentum=0.9)
        for x in p:
            x.requires_grad_()
        for _ in range(3):
            optimizer.update(p, [bp.ones(6, dtype=bp.float64), bp.full(6, 2.0, dtype=bp.float64)])
        return [whole]

    same(made(), op_by_op(made))


def test_a_step_that_fails_changes_nothing():
    p = parameters()
    optimizer = MADE["AdamW"](p)
    optimizer.update(p, gradients(0))
    before = [x.detach().numpy().copy() for x in p]
    with pytest.raises(bp.ShapeError, match="gradient of shape"):
        optimizer.update(p, [bp.ones((9,), dtype=bp.float64), *gradients(1)[1:]])
    assert all((x.detach().numpy() == y).all() for x, y in zip(p, before))
    assert optimizer.state[p[0]]["step"].item() == 1


def test_copies_and_pickles_continue_alike():
    p, optimizer = run(MADE["AdamW"], 2)
    q, other = copy.deepcopy((p, optimizer))
    r, third = pickle.loads(pickle.dumps((p, optimizer)))
    for own, one in ((p, optimizer), (q, other), (r, third)):
        one.update(own, gradients(9))
    same(p, q, 0)
    same(p, r, 0)


def test_a_run_that_fails_leaves_what_it_would_update():
    """The index is refused after the sums were computed, and before anything is written."""

    @bp.compile
    def step(total, table, index):
        total[...] = total + table.sum()
        return bp.take(table, index, axis=0)

    total, table = bp.ones((4,)), bp.ones((3, 2))
    step(total, table, bp.asarray([1]))
    assert total.tolist() == [7.0] * 4
    with pytest.raises(bp.BackplaneError):
        step(total, table, bp.asarray([5]))
    assert total.tolist() == [7.0] * 4


def test_an_old_value_that_is_read_later_is_the_old_one():
    @bp.compile
    def step(x, y):
        before = x @ y
        x[...] = x * 2
        return before, x @ y, x.T

    x, y = bp.ones((3, 3)), bp.ones((3, 3))
    before, after, turned = step(x, y)
    assert before.tolist() == [[3.0] * 3] * 3 and after.tolist() == [[6.0] * 3] * 3 and x.tolist() == [[2.0] * 3] * 3
    assert turned.tolist() == x.T.tolist()


def test_values_that_change_places():
    @bp.compile
    def swap(x, y):
        x[...], y[...] = y * 2, x * 3

    for n in (3, 100000):
        x, y = bp.full(n, 5.0), bp.full(n, 7.0)
        swap(x, y)
        assert bool((x == 14).all()) and bool((y == 15).all())


@pytest.mark.parametrize("compiled", [False, True])
def test_a_model_on_another_device_than_the_default(simulator, compiled):
    """The counters and rates lie where the parameters do; parameters of several devices run op by op."""
    x, y = bp.asarray(np.ones((4, 3), np.float32)), bp.zeros((4, 2))

    def trained(device):
        bp.manual_seed(0)
        model = bp.nn.Sequential(bp.nn.Linear(3, 4), bp.nn.Tanh(), bp.nn.Linear(4, 2)).to(device)
        optimizer = bp.optim.AdamW(model.parameters(), lr=0.1)

        def step(x, y):
            loss, gradients = bp.value_and_grad(lambda model: ((model(x) - y) ** 2).mean())(model)
            optimizer.update(model, gradients)
            return loss

        run = bp.compile(step, state=[model, optimizer]) if compiled else step
        losses = [run(x.to(device), y.to(device)).item() for _ in range(3)]
        optimizer.load_state_dict(optimizer.state_dict())
        return [*losses, run(x.to(device), y.to(device)).item()]

    np.testing.assert_allclose(trained("sim:1"), trained("cpu"), rtol=1e-5)


def test_parameters_on_several_devices(simulator):
    params = [bp.ones(2, device=device).requires_grad_() for device in ("cpu", "sim:0", "sim:1")]
    optimizer = bp.optim.Adam(params, lr=0.5)
    for p in params:
        p.grad = bp.ones(2, device=p.device)
    optimizer.step()
    for p in params:
        np.testing.assert_allclose(p.detach().numpy(), [0.5, 0.5], rtol=1e-6)
