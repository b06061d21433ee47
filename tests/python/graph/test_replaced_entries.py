"""Entries of compile's state that a function replaces: the number of traces, refusals, and writes of callers between calls."""

import backplane as bp
import pytest


def adding(state, traces=None):
    def f(x):
        if traces is not None:
            bp.unguarded(traces.append, None)
        state["a"] = state["a"] + x
        return state["a"].sum()

    return bp.compile(f, state=[state])


def test_it_is_traced_twice_and_then_no_more():
    state, traces = {"a": bp.ones(2)}, []
    step = adding(state, traces)
    for i in range(5):
        held = state["a"]
        assert step(bp.ones(2)).item() == 2 * (i + 2) and held.tolist() == [i + 1, i + 1]
    assert len(traces) == 2


def test_the_old_tensor_may_not_be_kept():
    state, log = {"a": bp.ones(2)}, []

    def f(x):
        log.append(state["a"])
        state["a"] = state["a"] + x

    with pytest.raises(bp.ArgumentValueError, match="keeps the old tensor of an entry of its state in .*Fix: keep a copy"):
        bp.compile(f, state=[state])(bp.ones(2))
    assert log == [] and state["a"].tolist() == [1, 1]


def test_a_step_in_another_trace_needs_its_state_there():
    state = {"a": bp.ones(2)}
    step = adding(state)
    with pytest.raises(bp.ArgumentValueError, match="replaces"):
        bp.compile(lambda x: step(x) + 1)(bp.ones(2))
    assert state["a"].tolist() == [1, 1]
    outer = bp.compile(lambda x: step(x) + 1, state=[state])
    assert [outer(bp.ones(2)).item() for _ in range(3)] == [5, 7, 9] and state["a"].tolist() == [4, 4]


def test_a_tensor_of_a_transform_does_not_stay_in_the_state():
    state = {"a": bp.ones(2)}
    step = adding(state)
    step(bp.ones(2))
    for transform, x in ((bp.grad, bp.ones(2)), (bp.vmap, bp.ones((2, 2)))):
        with pytest.raises(bp.ArgumentValueError, match="cannot be written|which ends before the state"):
            transform(step)(x)
    assert state["a"].tolist() == [2, 2]


def test_what_callers_write_between_calls_counts():
    results = []
    for wrap in (lambda f, state: f, lambda f, state: bp.compile(f, state=[state])):
        state = {"a": bp.ones(2)}

        def f(x, state=state):
            state["a"] = state["a"] * 0.5 + x
            return state["a"].sum()

        step, found = wrap(f, state), []
        for i in range(5):
            found.append(step(bp.ones(2)).item())
            state["a"][0] = 7.0
            array = state["a"].numpy()
            if i == 2:
                state["a"] = bp.asarray([3.0, 4.0])
            found += [step(bp.ones(2)).item(), array.tolist()]
        results.append(found)
    assert results[0] == results[1]


def test_an_error_leaves_the_entry():
    state, table = {"a": bp.ones(2)}, bp.arange(4.0)

    def f(x, i):
        state["a"] = state["a"] + x
        return state["a"].sum() + bp.take(table, i)

    step, held = bp.compile(f, state=[state]), []
    for i, expected in ((9, None), (1, 5), (9, None), (2, 8), (9, None), (9, None), (0, 8)):
        held.append((state["a"], state["a"].tolist()))
        if expected is None:
            with pytest.raises(bp.BackplaneError):
                step(bp.ones(2), bp.asarray(i))
            assert state["a"] is held[-1][0]
        else:
            assert step(bp.ones(2), bp.asarray(i)).item() == expected
    assert all(tensor.tolist() == values for tensor, values in held)


def test_what_the_function_counts_is_counted_once_a_call():
    state, counts = {"a": bp.ones(2), "calls": 0}, []

    def f(x):
        state["calls"] += 1
        counts.append(state["calls"])
        state["a"] = state["a"] + x

    step = bp.compile(f, state=[state], fullgraph=False)
    for _ in range(4):
        step(bp.ones(2))
    assert counts == [1, 2, 3, 4] and state["calls"] == 4 and state["a"].tolist() == [5, 5]


def test_dynamic_names_arguments_that_are_given_by_position():
    state = {"weight": bp.ones(3, 1)}

    def step(x, y):
        state["weight"] = state["weight"] * 2
        return ((x @ state["weight"]) * y).sum()

    traces = []
    compiled = bp.compile(lambda x, y: (bp.unguarded(traces.append, None), step(x, y))[1], state=state, dynamic={"x": {0: "n"}, "y": {0: "n"}})
    assert [compiled(bp.ones(n, 3), bp.ones(n, 1)).item() for n in (2, 3, 4)] == [12, 36, 96]
    count = len(traces)
    assert compiled(bp.ones(5, 3), y=bp.ones(5, 1)).item() == 240 and len(traces) == count
    with pytest.raises(TypeError, match="'x' was given twice"):
        compiled(bp.ones(2, 3), bp.ones(2, 1), x=bp.ones(2, 3))


def test_an_entry_in_the_memory_of_another():
    weight, state = bp.ones((2,)).requires_grad_(), {"last": bp.zeros((2,))}

    @bp.compile(state=[weight, state])
    def step(x):
        with bp.no_grad():
            state["last"].add_(x)
        state["last"] = weight.detach()

    for _ in range(4):
        step(bp.ones((2,)))
    assert weight.tolist() == state["last"].tolist() == [4, 4]


VIEWS = {
    "detached": lambda w: w.detach()[:2],
    "data": lambda w: w.data[1:3],
    "reshaped": lambda w: w.detach().reshape(2, 2)[1],
    "transposed": lambda w: w.detach().reshape(2, 2).T[0],
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("changes", [False, True])
def test_an_entry_that_is_a_view_of_another(view, changes):
    def values(run):
        weight, state = bp.ones((4,)).requires_grad_(), {"last": bp.zeros((2,))}

        def step(x):
            with bp.no_grad():
                state["last"].add_(x)
                if changes:
                    weight.multiply_(2)
            state["last"] = view(weight)
            return weight.sum()

        run_step, seen = run(step, [weight, state]), []
        for k in range(4):
            seen.append((run_step(bp.full((2,), k)).item(), weight.tolist(), state["last"].tolist()))
        return seen

    eager = values(lambda step, state: step)
    assert eager[-1][1] != [eager[-1][1][0]] * 4  # what the entry gets reaches the weight
    assert values(lambda step, state: bp.compile(step, state=state)) == eager


def values_of_calls(function, state, arguments, compiles, more=()):
    run = bp.compile(function, state=[state]) if compiles else function
    return [[run(x).tolist(), *(t.tolist() for t in (*state.values(), *more))] for x in arguments]


def test_an_entry_over_a_tensor_that_is_not_in_the_state():
    def seen(compiles):
        state, weight = {"a": bp.zeros(2)}, bp.full((2,), 6.0)

        def function(x):
            state["a"].add_(1.0)
            read = weight * x
            state["a"] = weight[:]
            return read

        return values_of_calls(function, state, [bp.ones(2)] * 5, compiles, [weight])

    assert seen(True) == seen(False)


def test_a_new_entry_over_an_argument():
    def seen(compiles):
        state, x = {}, bp.zeros(3)

        def function(x):
            if "a" in state:
                state["a"].add_(1.0)
            state["a"] = x.reshape(-1)[:2]
            return x * 1

        return values_of_calls(function, state, [x] * 4, compiles)

    assert seen(True) == seen(False)


@pytest.mark.parametrize("view", [lambda t: t[:], lambda t: t.reshape(2, 1)], ids=["slice", "reshape"])
def test_a_new_entry_that_is_a_view_of_another(view):
    def seen(compiles):
        state = {"a": bp.zeros(2)}

        def function(x):
            state["a"].add_(x)
            state["b"] = view(state["a"])
            return state["b"]

        run, values = bp.compile(function, state=[state]) if compiles else function, []
        for _ in range(4):
            run(bp.ones(2)).multiply_(2.0)
            values.append((state["a"].tolist(), state["b"].tolist()))
        return values

    assert seen(True) == seen(False)


def test_a_new_entry_beside_backward():
    model, state = bp.nn.Linear(2, 1), {}
    with bp.no_grad():
        model.weight[...] = 1.0

    @bp.compile(state=[model, state])
    def step(x):
        model(x).sum().backward()
        with bp.no_grad():
            model.weight.add_(1.0)
        state["seen"] = x * 2

    for k in range(3):
        step(bp.ones(2))
        assert model.weight.tolist() == [[2.0 + k] * 2] and model.weight.grad.tolist() == [[1.0 + k] * 2] and state["seen"].tolist() == [2, 2]


@pytest.mark.parametrize("device", ["sim", "simh"])
def test_a_replaced_entry_after_a_reset(simulator, device):
    state = {"mean": bp.zeros(3, device=device)}

    @bp.compile(state=[state])
    def step(x):
        state["mean"] = state["mean"] * 0.5 + x
        return state["mean"] * 1

    for _ in range(2):
        assert [step(bp.ones(3, device=device)).tolist()[0] for _ in range(3)] == [1, 1.5, 1.75]
        bp.device(device).reset()
        state["mean"] = bp.zeros(3, device=device)
