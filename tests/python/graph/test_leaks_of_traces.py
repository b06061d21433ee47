"""What a trace leaves behind: tensors that escape, state after a trace that fails or that only looks, objects that compare by code of Python."""

import copy
import dataclasses
import pickle

import backplane as bp
import pytest


@pytest.mark.parametrize("run", [
    lambda keep: bp.scan(lambda c, x: (c + x, keep(c * x)), bp.asarray(0.0), bp.ones((3,))),
    lambda keep: bp.map(lambda x: (keep(x), x)[1], bp.ones((3,))),
    lambda keep: bp.cond(bp.asarray(True), lambda x: (keep(x), x)[1], lambda x: x, bp.ones(2)),
    lambda keep: bp.while_loop(lambda c: c < 3, lambda c: (keep(c), c + 1)[1], bp.asarray(0)),
], ids=["scan", "map", "cond", "while_loop"])  # fmt: skip
def test_a_tensor_that_escapes_keeps_its_name(request, run):
    kept = []
    for _ in range(20):
        run(lambda x: kept.append(x) or x)
    name = request.node.callspec.id
    for tensor in kept:
        assert f"inside={name}" in repr(tensor)
        with pytest.raises(bp.BackplaneError, match=f"belongs to a {name} that has ended"):
            tensor + 1


class Model:
    def __init__(self):
        self.h = bp.zeros(2)
        self.parts = {"h": bp.zeros(2)}


def test_a_trace_that_fails_leaves_state_as_it_was():
    model = Model()

    def step(x, shape):
        model.h = model.h + x
        model.parts["h"] = model.parts["h"] + x
        return model.h @ bp.ones(shape)

    for trace in (bp.compile(step), bp.make_graph(step), bp.explain_plan(step), bp.cost_analysis(step)):
        with pytest.raises(bp.ShapeError):
            trace(bp.ones(2), (3,))
        assert model.h.tolist() == model.parts["h"].tolist() == [0.0, 0.0]


def test_a_function_that_cannot_be_traced_runs_with_its_state():
    state = {"h": bp.zeros(2)}

    def step(x):
        state["h"] = state["h"] + x
        return state["h"] if float(x.sum()) > 0 else x

    lenient = bp.compile(step, fullgraph=False)
    assert lenient(bp.ones(2)).tolist() == [1.0, 1.0] and lenient(bp.ones(2)).tolist() == state["h"].tolist() == [2.0, 2.0]


STATE = {"h": bp.zeros(2)}


def of_global(x):
    STATE["h"] = STATE["h"] + x
    return STATE["h"] * 2


@pytest.mark.parametrize("look", [bp.make_graph, bp.explain_plan, bp.cost_analysis, bp.draw_graph, lambda f: lambda x: bp.export(f, [x], "/dev/null")])
def test_who_only_looks_refuses_state_that_is_replaced_and_puts_it_back(look):
    with pytest.raises(bp.ArgumentValueError, match="replaces global STATE.*which it reads"):
        look(of_global)(bp.ones(2))
    assert STATE["h"].tolist() == [0.0, 0.0]


@dataclasses.dataclass
class Linear:
    w: bp.Tensor
    b: bp.Tensor

    @bp.compile
    def __call__(self, x):
        return x @ self.w + self.b


@dataclasses.dataclass
class Scaled:
    name: str
    k: float = dataclasses.field(compare=False, default=1.0)


class Named:
    def __init__(self, name, weight):
        self.name, self.weight, self.h = name, weight, bp.zeros(())

    def __eq__(self, other):
        return self.name == other.name

    def __hash__(self):
        return hash(self.name)

    @bp.compile
    def product(self, x):
        return x * self.weight

    @bp.compile
    def count(self, x):
        self.h += x
        return self.h * 1


def test_objects_that_are_equal_are_not_taken_for_one_another():
    first, second = (Linear(bp.ones((2, 2)) * k, bp.zeros(2)) for k in (1, 2))
    assert second(first(bp.ones(2))).tolist() == [8.0, 8.0] and second(bp.ones(2)).tolist() == [4.0, 4.0]
    scaled = bp.compile(lambda p, x: x * p.k)
    assert [scaled(Scaled("a", k), bp.ones(1)).item() for k in (2.0, 3.0, 4.0)] == [2.0, 3.0, 4.0]
    layers = [Named("layer", float(k)) for k in (1, 2, 3)]
    assert [layer.product(bp.ones(1)).item() for layer in layers] == [1.0, 2.0, 3.0]
    a, b, _ = layers
    a.count(bp.ones(())), a.count(bp.ones(())), b.count(bp.ones(()))
    assert (a.h.item(), b.h.item()) == (2.0, 1.0)


def test_a_rule_for_batches_is_not_lost():
    @bp.custom_function
    def f(x):
        return bp.sin(x)

    f.defvmap(lambda size, batched, x: (x * 1000, True))
    x = bp.ones(2)
    expected = bp.vmap(f)(x).tolist()
    assert expected == [1000.0, 1000.0] == bp.vmap(bp.compile(f))(x).tolist() == bp.compile(bp.vmap(f))(x).tolist()
    assert bp.vmap(lambda x: bp.cond(x > 0, f, f, x))(x).tolist() == expected
    lost = bp.make_graph(f)(x[0])
    with pytest.raises(bp.BackplaneError, match="a function with its own batch rule"):
        bp.vmap(lost)(x)
    assert bp.abs(lost(x[0]) - bp.sin(x[0])).item() == 0


@pytest.mark.parametrize("function, sizes", [
    (lambda x: bp.roll(x, 1, axis=0), (3, 1, 5)), (lambda x: bp.concat([x[1:], x]), (4, 0, 2)), (lambda x: bp.diff(x, axis=0), (4, 0, 3)),
    (lambda x: x[-3:] * 2, (5, 1, 7)), (lambda x: x + 1 if x.shape[0] == 1 else x * 2, (3, 1, 4)),
])  # fmt: skip
def test_a_size_at_which_the_function_does_otherwise_is_a_kind_of_its_own(function, sizes):
    compiled = bp.compile(function, dynamic={"x": {0: "n"}})
    for n in (*sizes, *sizes):
        x = bp.arange(n, dtype=bp.float32)
        assert compiled(x).tolist() == function(x).tolist(), n


def test_a_loaded_model_draws_other_numbers_at_each_run(tmp_path):
    path = str(tmp_path / "dropout.safetensors")
    bp.export(lambda x: bp.dropout(x, p=0.5), [bp.ones(50)], path)
    model, x = bp.load(path), bp.ones(50)

    def runs(run, **seeds):
        bp.manual_seed(5)
        return [run(x, **seeds)[0].tolist() for _ in range(2)]

    first, second = runs(model)
    assert first != second and [first, second] == runs(model) == runs(bp.compile(lambda x: model(x)))
    assert len(set(map(tuple, runs(model, seed=1)))) == 1
    assert copy.deepcopy(model) is model


def test_a_graph_is_copied_as_itself_and_edited_with_tensors_alone():
    graph = bp.make_graph(lambda x: bp.tanh(x) * 2)(bp.ones(2))
    assert copy.deepcopy(graph) is graph and copy.copy(graph) is graph
    for wrong in (3, [3.0], "x"):
        with pytest.raises(bp.ArgumentTypeError, match=r"edit: node 0 \(bp::tanh\): found a value of type .*, expected None, a Tensor"):
            graph.edit(lambda node, *tensors: wrong if node.op == "bp::tanh" else None)
    with pytest.raises(TypeError):
        pickle.dumps(graph)


def test_a_graph_that_is_made_inside_a_trace_takes_no_guards_of_it():
    class Gains:
        first, second = 2.0, 2.0

    gains = Gains()

    def inner(x):
        return x * 3

    @bp.compile
    def outer(x):
        y = bp.make_graph(inner)(x)(x) * gains.first
        return y * later(x)

    def later(x):
        return x * gains.second

    assert outer(bp.ones(1)).item() == 12.0
    gains.second = 5.0
    assert outer(bp.ones(1)).item() == 30.0
