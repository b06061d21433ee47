"""compile(state=) with backward(): new tensors in the state, hooks, arguments with gradients, and options of optimisers between and inside of calls."""

import pytest

import backplane as bp
from backplane import nn, optim


def layer():
    model = nn.Linear(1, 1, bias=False)
    with bp.no_grad():
        model.weight[...] = 1.0
    return model


def leaf(x):
    return bp.asarray([float(x)]).requires_grad_()


def rounded(x):
    return None if x is None else round(x.item(), 4)


X = bp.ones((1, 1))

# Each gives (state, step, what is seen after a call, what happens before call i).


def nothing(i):
    pass


def new_tensors():
    s = {"w": leaf(2)}

    def step():
        (s["w"] ** 2).sum().backward()
        s["w"] = (s["w"] - 0.1 * s["w"].grad).detach().requires_grad_()

    return [s], step, lambda: (rounded(s["w"]), s["w"].grad is None, s["w"].requires_grad), nothing


def new_constants():
    s = {"w": leaf(2), "v": leaf(3)}

    def step():
        (s["v"] * s["w"].detach() ** 2).sum().backward()
        s["w"] = (s["w"] * 0.5).detach()

    return [s], step, lambda: (rounded(s["w"]), s["w"].requires_grad, rounded(s["v"].grad)), nothing


def swapped():
    s = {"a": leaf(2), "b": leaf(5)}

    def step():
        (s["a"] ** 2).sum().backward()
        s["a"], s["b"] = s["b"], s["a"]

    return [s], step, lambda: [(rounded(s[k]), rounded(s[k].grad)) for k in "ab"], nothing


def new_parameters():
    model = layer()

    def step():
        model(X).pow(2).sum().backward()
        model.weight = nn.Parameter((model.weight - 0.1 * model.weight.grad).detach())

    return [model], step, lambda: (rounded(model.weight), model.weight.grad is None), nothing


def kept_values():
    model, kept = layer(), {"before": bp.zeros((1, 1))}
    optimizer = optim.SGD(model.parameters(), lr=0.1)

    def step():
        model.zero_grad()
        (3 * model.weight - kept["before"]).pow(2).sum().backward()
        optimizer.step()
        kept["before"] = model.weight.detach()

    return [model, optimizer, kept], step, lambda: (rounded(model.weight.grad), kept["before"].requires_grad), nothing


def hooks_between():
    model, handles = layer(), []

    def before(i):
        if i == 1:
            handles.append(model.weight.register_hook(lambda g: g * 10))
        if i == 2:
            handles.pop().remove()

    def step():
        model.zero_grad()
        model(X).sum().backward()

    return [model], step, lambda: rounded(model.weight.grad), before


def gradient_of_the_batch():
    model, batch = layer(), bp.ones((1, 1)).requires_grad_()

    def step(x=batch):
        model.zero_grad()
        model(x).sum().backward()

    return [model], step, lambda: (rounded(model.weight.grad), rounded(batch.grad)), nothing


def plateau():
    model = layer()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    scheduler = optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)

    def step():
        model.zero_grad()
        loss = model(X).pow(2).mean()
        loss.backward()
        optimizer.step()
        scheduler.step(loss)

    return [model, optimizer, scheduler], step, lambda: (rounded(model.weight), optimizer.param_groups[0]["lr"]), nothing


def mean_teacher():
    model, teacher = layer(), layer().requires_grad_(False)
    optimizer = optim.SGD(model.parameters(), lr=0.1)

    def step():
        with bp.no_grad():
            teacher.weight.data = teacher.weight.data * 0.9
        model.zero_grad()
        (model(X) - teacher(X)).sum().backward()
        optimizer.step()

    return [model, teacher, optimizer], step, lambda: (rounded(model.weight), rounded(teacher.weight)), nothing


class OwnRule(optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {"lr": 0.1})

    def step(self):
        with bp.no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    p -= group["lr"] * p.grad


def own_optimizer():
    model = layer()
    optimizer = OwnRule(model.parameters())

    def step():
        optimizer.zero_grad()
        model(X).sum().backward()
        optimizer.step()

    return [model, optimizer], step, lambda: rounded(model.weight), nothing


PROGRAMS = [new_tensors, new_constants, swapped, new_parameters, kept_values, hooks_between, gradient_of_the_batch, plateau, mean_teacher, own_optimizer]


@pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("fullgraph", [True, False])
def test_the_same_values_compiled(make, fullgraph):
    seen = []
    for compiled in (False, True):
        state, step, see, before = make()
        call = bp.compile(step, state=state, fullgraph=fullgraph) if compiled else step
        values = []
        for i in range(4):
            before(i)
            call(*(step.__defaults__ or ()))
            values.append(see())
        seen.append(values)
    assert seen[0] == seen[1]


def test_a_function_that_reads_values_runs_as_it_is():
    model = layer()
    optimizer = optim.SGD(model.parameters(), lr=0.1)

    def step():
        model.zero_grad()
        loss = model(X).sum()
        loss.backward()
        optimizer.step()
        return loss.item()

    call = bp.compile(step, state=[model, optimizer], fullgraph=False)
    assert [round(call(), 4) for _ in range(3)] == [1.0, 0.9, 0.8]


def test_rates_and_frozen_parameters_cause_no_traces():
    model = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1))
    model[0].requires_grad_(False)
    optimizer = optim.AdamW(model.parameters(), lr=0.1)

    @bp.compile(state=[model, optimizer])
    def traced_for_all_rates():
        optimizer.zero_grad()
        model(X).sum().backward()
        optimizer.step()

    for i in range(4):
        optimizer.param_groups[0]["lr"] = 0.1 / (i + 1)
        traced_for_all_rates()
    assert sum("traced_for_all_rates: traced" in line for line in bp.compile_log()) == 1


def gradient_of_a_new_entry(model, optimizer, s):
    s["w"] = (s["w"].detach() * 0.5).requires_grad_()
    (s["w"] ** 2).sum().backward()


def rate_before_the_step(model, optimizer, s):
    model(X).sum().backward()
    optimizer.param_groups[0]["lr"] = 0.0
    optimizer.step()


def hook_inside(model, optimizer, s):
    model.weight.register_hook(lambda g: g * 2)
    model(X).sum().backward()


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (gradient_of_a_new_entry, "entry 'w' of its state, and computes its gradient"),
        (rate_before_the_step, "SGD: found an option that the compiled function changed"),
        (hook_inside, "register_hook: .* only once"),
    ],
)
def test_what_is_refused(step, words):
    model, s = layer(), {"w": leaf(2)}
    optimizer = optim.SGD(model.parameters(), lr=1.0)
    with pytest.raises(bp.ArgumentValueError, match=words):
        bp.compile(lambda: step(model, optimizer, s), state=[model, optimizer, s])()
    assert model.weight.item() == 1 and model.weight.grad is None and s["w"].item() == 2


def test_an_argument_does_not_become_a_leaf():
    model = layer()
    with pytest.raises(bp.ArgumentValueError, match="requires_grad: an argument"):
        bp.compile(lambda x: model(x.requires_grad_()).sum().backward(), state=[model])(bp.ones((1, 1)))


def test_the_order_of_the_state_may_change_between_calls():
    first, second = layer(), layer()
    state = [first, second]
    step = bp.compile(lambda: (2 * first.weight + 3 * second.weight).sum().backward(), state=state)
    for i in range(3):
        for model in state:
            model.zero_grad()
        step()
        assert (first.weight.grad.item(), second.weight.grad.item()) == (2, 3)
        state.reverse()


def test_tensors_that_are_kept_beside_cause_no_traces():
    model, log = layer(), []

    def traced_beside_a_log():
        model.weight.grad = None
        loss = model(X).sum()
        loss.backward()
        return loss

    step = bp.compile(traced_beside_a_log, state=[model, {"log": log}])
    for _ in range(4):
        log.append(step())
    assert sum("traced_beside_a_log: traced" in line for line in bp.compile_log()) == 1
