"""Entries of compile's state that share memory with each other, with arguments, with captured tensors and with what callers hold: each
program gives what it gives without compile."""

import functools

import backplane as bp
import numpy as np
import pytest
from backplane import nn

PROGRAMS = {}


def program(*calls):
    """Of a function that gives (the function to compile, its state, further tensors to look at). calls: functions that give the arguments
    of each call, some of them of the state."""

    def add(make):
        PROGRAMS[make.__name__] = make, calls or [lambda: (bp.ones(3),)] * 3
        return make

    return add


def run(make, calls, wrap):
    """Values of the results and of what stood in the state before each call, both looked at when all calls are over."""
    function, state, others = make()
    compiled, seen = wrap(function, state), list(others)
    for arguments in calls:
        seen += [x for x in bp.tree.leaves(state) if isinstance(x, bp.Tensor)]
        arguments = arguments(state) if arguments.__code__.co_varnames[:1] == ("s",) else arguments()
        seen += [x for x in bp.tree.leaves([compiled(*arguments), arguments]) if isinstance(x, bp.Tensor)]
    seen += [x for x in bp.tree.leaves(state) if isinstance(x, bp.Tensor)]
    return [x.detach().numpy() for x in seen]


def base(n=4):
    return bp.arange(1.0, n + 1)


def adds(d, *others):
    def f(x):
        d["a"] = d["a"] + x
        return sum((y for y in others), d["a"] * 1)

    return f


@program()
def two_views_of_one_tensor():
    whole = base()
    d = {"a": whole[:3], "b": whole[1:]}

    def f(x):
        d["a"], d["b"] = d["a"] + x, d["b"] * 2
        return d["a"].sum() + d["b"].sum()

    return f, [d], [whole]


@program()
def views_in_two_states():
    whole = base()
    d, e = {"a": whole[:3]}, [whole[1:]]

    def f(x):
        d["a"] = d["a"] + x
        e[0] = e[0] * 2
        return d["a"].sum() + e[0].sum()

    return f, [d, e], [whole]


@program()
def an_entry_that_is_read_beside():
    whole = base()
    d = {"a": whole[:3], "b": whole[1:]}
    return adds(d, d["b"]), [d], [whole]


@program()
def an_entry_that_is_changed_in_place_beside():
    whole = base()
    d = {"a": whole[:3], "b": whole[1:]}

    def f(x):
        d["b"] += 1
        d["a"] = d["a"] * 2 + x
        return d["a"].sum() + d["b"].sum()

    return f, [d], [whole]


@program(lambda: (bp.ones(2),), lambda: (bp.ones(2),), lambda: (bp.ones(2),))
def views_that_change_places():
    whole = base()
    d = {"a": whole[:2], "b": whole[2:]}

    def f(x):
        d["a"], d["b"] = d["b"], d["a"]
        return d["a"] * x

    return f, [d], [whole]


@program()
def a_captured_tensor():
    w = base(3)
    d = {"a": w}
    return adds(d, w), [d], [w]


@program()
def a_captured_view():
    w = base(5)
    d = {"a": w[:3]}
    return adds(d, w[2:]), [d], [w]


@program()
def captured_in_a_list_and_a_tuple():
    w = base(3)
    d, listed, packed = {"a": w}, [w], (w,)

    def f(x):
        d["a"] = d["a"] + x
        return sum(listed) * d["a"] + sum(packed) + list(map(lambda y: y * x, listed))[0]

    return f, [d], [w]


@program()
def captured_as_a_default_and_by_partial():
    w = base(3)
    d = {"a": w}
    product = functools.partial(lambda a, b: a * b, w)

    def f(x, w=w):
        d["a"] = d["a"] + x
        return product(d["a"]) + w

    return f, [d], [w]


@program(*[lambda: (bp.ones((2, 3)),)] * 3)
def the_weights_of_a_module():
    layer = nn.Linear(3, 3)
    layer.requires_grad_(False)
    d = {"a": layer.weight}

    def f(x):
        d["a"] = d["a"] * 0.5
        return layer(x) @ d["a"]

    return f, [d], [layer.weight]


@program(*[lambda: (bp.ones((2, 3)),)] * 3)
def an_average_that_begins_with_the_weights():
    layer = nn.Linear(3, 3)
    average = {name: p.detach() for name, p in layer.named_parameters()}

    def f(x):
        for name, p in layer.named_parameters():
            average[name] = (0.5 * average[name] + 0.25 * p).detach()
        return layer(x).detach()

    return f, [average], list(layer.parameters())


@program()
def tied_buffers():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("a", base(3))
            self.register_buffer("b", self.a[1:])

        def forward(self, x):
            self.a, self.b = self.a + x, self.b * 2
            return self.a.sum() + self.b.sum()

    module = Tied()
    return (lambda x: module(x)), [module], [module.a, module.b]


@program(lambda s: (s[0]["a"],), lambda s: (s[0]["a"],), lambda: (bp.ones(3),), lambda s: (s[0]["a"],))
def an_argument_that_is_the_entry():
    d = {"a": base(3)}
    return adds(d), [d], []


@program(*[lambda s: (s[1]["x"],)] * 3)
def an_argument_that_is_a_view_beside():
    whole = base()
    d = {"a": whole[1:]}
    return adds(d), [d, {"x": whole[:3]}], [whole]


@program()
def what_numpy_holds():
    memory = np.arange(4, dtype=np.float32)
    d = {"a": bp.from_numpy(memory[:3]), "b": bp.from_numpy(memory[1:])}

    def f(x):
        d["a"], d["b"] = d["a"] + x, d["b"] * 2
        return d["a"].sum() + d["b"].sum()

    return f, [d], [bp.from_numpy(memory)]


@program()
def a_bit_cast():
    a = base(3)
    d = {"a": a, "b": a.view(bp.int32)}

    def f(x):
        d["a"], d["b"] = d["a"] + x, d["b"] + 1
        return d["a"].sum() + d["b"].sum()

    return f, [d], [a]


@program()
def a_leaf_and_its_detached_self():
    a = base(3).requires_grad_()
    d = {"a": a, "b": a.detach()}

    def f(x):
        d["a"], d["b"] = d["a"] + x, d["b"] * 2
        return (d["a"] * d["b"]).detach()

    return f, [d], [a]


@program()
def changed_in_place_and_then_replaced():
    d = {"a": base(3)}

    def f(x):
        d["a"][1:] += 1
        d["a"] = d["a"] * 2 + x
        return d["a"].sum()

    return f, [d], []


@program()
def results_that_lie_in_the_new_tensor():
    d = {"a": base(3)}

    def f(x):
        d["a"] = d["a"] + x
        return d["a"], d["a"][1:], d["a"][:2]

    return f, [d], []


@program()
def results_that_lie_in_the_old_tensor():
    d = {"a": base(3)}

    def f(x):
        old = d["a"]
        d["a"] = old + x
        return old, old[1:], d["a"]

    return f, [d], []


@program()
def the_latest_and_the_one_before():
    d = {"before": bp.zeros(3), "a": base(3)}

    def f(x):
        d["before"] = d["a"]
        d["a"] = d["a"] * 2 + x
        return d["before"] + d["a"]

    return f, [d], []


@program()
def views_of_what_it_replaces():
    d = {"a": base(3), "m": bp.reshape(base(), (2, 2))}

    def f(x):
        d["a"], d["m"] = bp.flip(d["a"], axis=0), d["m"].T
        return d["a"] * x, d["m"] * 1

    return f, [d], []


@program(*[lambda how=how: (bp.ones(3), how) for how in (True, True, False, True, False, False)])
def one_entry_becomes_another():
    d = {"a": bp.zeros(3), "b": base(3)}

    def f(x, moves):
        if moves:
            d["b"] = d["b"] + x
        d["a"] = d["b"]
        return d["a"] + x

    return f, [d], []


@program(*[lambda how=how: (bp.ones(3), how) for how in (1, 0, 1, 1, 0, 0, 1)])
def entries_that_become_one():
    d = {"a": base(3), "b": bp.zeros(3)}

    def f(x, how):
        if how:
            d["a"] = d["b"] = d["a"] + x
        else:
            d["a"] += 1
        return d["a"] + d["b"]

    return f, [d], []


@program(*[lambda how=how: (bp.ones(3), how) for how in ("in place", "new", "in place", "", "both", "both", "new", "", "in place", "both")])
def kinds_of_calls():
    d = {"a": base(3), "count": 0}

    def f(x, how):
        if how in ("in place", "both"):
            d["a"] *= 2
        if how in ("new", "both"):
            d["a"] = d["a"] * 0.5 + x
        d["count"] += 1
        return d["a"] * d["count"]

    return f, [d], []


@program(*[lambda n=n: (bp.ones(1) * n,) for n in range(4)])
def another_shape_at_each_call():
    d = {"a": bp.ones(1)}

    def f(x):
        d["a"] = bp.concat([d["a"], x])
        return d["a"].sum()

    return f, [d], []


@program()
def another_dtype():
    d = {"a": bp.ones(3, dtype=bp.int32)}

    def f(x):
        d["a"] = d["a"] * 0.5 + x
        return d["a"].sum()

    return f, [d], []


@program()
def containers_in_containers():
    d = {"l": [base(3), {"k": bp.zeros(3)}], "t": (bp.ones(3),)}

    def f(x):
        d["l"][0] = d["l"][0] + d["l"][1]["k"]
        d["l"][1]["k"] = d["l"][1]["k"] + x * d["t"][0]
        return d["l"][0] * 1

    return f, [d], []


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_compiled_program_gives_what_it_gives(name):
    values = []
    for wrap in (lambda f, state: f, lambda f, state: bp.compile(f, state=state)):
        bp.manual_seed(0)
        values.append(run(*PROGRAMS[name], wrap))
    assert len(values[0]) == len(values[1])
    for expected, found in zip(*values):
        np.testing.assert_array_equal(found, expected)
