"""Laws of dynamic sizes: one graph does what the function does at every size that its constraints take, and says no to others."""

import json
import math
import shutil
import struct
import subprocess

import backplane as bp
import numpy as np
import pytest


def tensor(*shape, seed=0):
    return bp.asarray(np.random.default_rng(seed).standard_normal(shape).astype("float32"))


def same(found, expected):
    for ours, eager in zip(bp.tree.leaves(found), bp.tree.leaves(expected), strict=True):
        assert ours.dtype is eager.dtype and ours.shape == eager.shape
        np.testing.assert_array_equal(ours.numpy(), eager.numpy())


W, B = tensor(3, 4, seed=1), tensor(4, seed=2)
IMAGE, KERNEL = {"x": {0: "batch", 2: "height"}}, tensor(5, 2, 3, 3, seed=4)


def loss(w, x):
    return (bp.tanh(x @ w + B) ** 2).mean()


# Function, its dynamic sizes, the argument at a pair of sizes.
BATCH = {"x": {0: "batch"}}
FUNCTIONS = {
    "layer": (lambda x: bp.tanh(x @ W + B), BATCH, lambda n, m: tensor(n, 3)),
    "flattened": (lambda x: bp.reshape(x, (x.shape[0] * 7,)), BATCH, lambda n, m: tensor(n, 7)),
    "twice": (lambda x: bp.concat([x, x]), BATCH, lambda n, m: tensor(n, 3)),
    "mean": (lambda x: (x - x.mean(0)) / x.shape[0], BATCH, lambda n, m: tensor(n, 3)),
    "var gradient": (bp.grad(lambda x: bp.var(x)), [{0: "batch"}], lambda n, m: tensor(n, 3)),
    "root": (lambda x: x / math.sqrt(x.shape[0]) + x * x.shape[0] ** 0.5, BATCH, lambda n, m: tensor(n, 3)),
    "reciprocal root": (lambda x: x * (1.0 / math.sqrt(2 * x.shape[0])), BATCH, lambda n, m: tensor(n, 3)),
    "even part": (lambda x: x[: x.shape[0] // 2 * 2].reshape(-1, 2, 3).sum(1), BATCH, lambda n, m: tensor(n, 3)),
    "reciprocal": (lambda x: x * (1.0 / x.shape[0]) + float(x.shape[0]), BATCH, lambda n, m: tensor(n, 3)),
    "arange": (lambda x: x + bp.arange(x.shape[0])[:, None], BATCH, lambda n, m: tensor(n, 3)),
    "zeros": (lambda x: bp.concat([x, bp.zeros((2 * x.shape[0] + 1, 3))]), BATCH, lambda n, m: tensor(n, 3)),
    "half": (lambda x: x[::2], BATCH, lambda n, m: tensor(n, 3)),
    "first half": (lambda x: x[: x.shape[0] // 2, 1:], BATCH, lambda n, m: tensor(n, 3)),
    "gradient": (lambda x: bp.grad(loss, argnums=(0, 1))(W, x), BATCH, lambda n, m: tensor(n, 3)),
    "batched": (lambda x: bp.vmap(lambda row: bp.tanh(row @ W).sum())(x), BATCH, lambda n, m: tensor(n, 3)),
    "per sample gradients": (lambda x: bp.vmap(bp.grad(lambda row: loss(W, row)))(x), BATCH, lambda n, m: tensor(n, 3)),
    "convolution": (lambda x: bp.nn.functional.conv2d(x, KERNEL, stride=2, padding=1), IMAGE, lambda n, m: tensor(n, 2, m, 6)),
    "flattened convolution": (
        lambda x: bp.reshape(bp.nn.functional.conv2d(x, KERNEL, stride=2), (x.shape[0], -1)), IMAGE, lambda n, m: tensor(n, 2, m, 6)),
    "matrix": (lambda x: x @ x.T, {"x": {0: "n", 1: "m"}}, lambda n, m: tensor(n, m)),
    "scan": (lambda x: bp.scan(lambda c, row: (c + row, c * row), bp.zeros((3,)), x), BATCH, lambda n, m: tensor(n, 3)),
    "scan over the other axis": (
        lambda x: bp.scan(lambda c, row: (c + row, c.mean()), bp.zeros((x.shape[0],)), x.T), BATCH, lambda n, m: tensor(n, 3)),
    "in place": (lambda x: put_first(x), BATCH, lambda n, m: tensor(n, 3)),
    "random": (lambda x: x + bp.normal(x.shape, generator=bp.Generator(3)), BATCH, lambda n, m: tensor(n, 3)),
}  # fmt: skip


def put_first(x):
    y = bp.copy(x)
    y[0] = 1
    return y


@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_graph_is_the_function_at_every_size(name):
    function, dynamic, argument = FUNCTIONS[name]
    graph = bp.make_graph(function, dynamic=dynamic)(argument(4, 9))
    for n, m in ((4, 9), (2, 8), (7, 13), (3, 10), (12, 5), (64, 21)):
        same(graph(argument(n, m)), function(argument(n, m)))


def test_sizes_stand_in_the_text_as_expressions():
    def function(x):
        y = bp.concat([bp.tanh(x @ W), x @ W])
        return bp.reshape(y, (-1,)), x[::2]

    text = str(bp.make_graph(function, dynamic=BATCH)(tensor(4, 3)))
    assert "symbol batch of %0 axis 0 example 4" in text
    for expected in ('"x": float32[batch, 3]', "float32[batch, 4]", "float32[2*batch, 4]", "float32[8*batch]", "float32[((batch + 1)//2), 3]"):
        assert expected in text, text


def test_a_text_and_a_file_give_the_same_graph(tmp_path):
    def function(x):
        return x[::2] / float(x.shape[0]), x[: x.shape[0] // 2, 1:], x * (1.0 / x.shape[0]), bp.scan(lambda c, row: (c + row, c), bp.zeros((x.shape[0],)), x.T)

    graph = bp.make_graph(function, dynamic=BATCH)(tensor(4, 3))
    graph.save(str(tmp_path / "model.safetensors"))
    loaded = bp.load(tmp_path / "model.safetensors")
    assert [line for line in str(loaded).splitlines() if "constant" not in line] == [
        line for line in str(graph).splitlines() if "constant" not in line]
    for n in (4, 3, 10):
        same(list(loaded(tensor(n, 3))), bp.tree.leaves(function(tensor(n, 3))))


def test_a_size_where_the_function_does_otherwise_is_a_constraint():
    def function(x):
        if x.shape[0] > 100:
            return x * 2
        return x + 1

    graph = bp.make_graph(function, dynamic=BATCH)(tensor(4, 3))
    assert 'constraint batch <= 100 "' in str(graph)
    same(graph(tensor(100, 3)), function(tensor(100, 3)))
    line = function.__code__.co_firstlineno + 2
    with pytest.raises(ValueError, match=rf"relies on batch <= 100, found 101 .*at batch = 101: .*multiply.*{__file__}:{line}"):
        graph(tensor(101, 3))
    above = bp.make_graph(function, dynamic=BATCH)(tensor(101, 3))
    assert 'constraint 101 <= batch "' in str(above)
    same(above(tensor(1000, 3)), function(tensor(1000, 3)))


@pytest.mark.parametrize("example", [6, 7])
def test_a_size_that_has_to_be_a_multiple_is_a_constraint(example):
    def function(x):
        return bp.reshape(x, (-1, 2)) if x.shape[0] % 2 == 0 else x

    graph = bp.make_graph(function, dynamic={"x": {0: "n"}})(tensor(example))
    assert f"constraint n{' - 1' if example % 2 else ''} divisible by 2" in str(graph)
    same(graph(tensor(example + 20)), function(tensor(example + 20)))
    with pytest.raises(ValueError, match="divisible by 2, found"):
        graph(tensor(example + 1))
    pairs = bp.make_graph(lambda x: bp.reshape(x, (-1, 3)).sum(1), dynamic={"x": {0: "n"}})(tensor(6))
    assert "float32[(n//3), 3]" in str(pairs) and "constraint n divisible by 3" in str(pairs)
    with pytest.raises(ValueError, match="reshape"):
        pairs(tensor(7))


def test_a_size_that_an_op_refuses_is_a_constraint():
    graph = bp.make_graph(lambda x: x + x[0], dynamic=BATCH)(tensor(4, 3))
    assert 'constraint 1 <= batch "' in str(graph)
    same(graph(tensor(1, 3)), tensor(1, 3) * 2)
    with pytest.raises(ValueError, match="1 <= batch"):
        graph(tensor(0, 3))


def test_sizes_that_go_together_are_a_constraint():
    graph = bp.make_graph(lambda x, y: x + y, dynamic={"x": {0: "n"}, "y": {0: "m"}})(tensor(4, 3), tensor(4, 3, seed=1))
    assert "constraint m == n" in str(graph)
    same(graph(tensor(6, 3), tensor(6, 3, seed=1)), tensor(6, 3) + tensor(6, 3, seed=1))
    with pytest.raises(ValueError, match="m == n"):
        graph(tensor(6, 3), tensor(5, 3))
    named = bp.make_graph(lambda x, y: x + y, dynamic={"x": {0: "n"}, "y": {0: "n"}})(tensor(4, 3), tensor(4, 3, seed=1))
    with pytest.raises(ValueError, match="expected n = 6"):
        named(tensor(6, 3), tensor(5, 3))


def test_a_size_within_another_is_a_constraint():
    def function(x, y):
        return x[: y.shape[0]] + y

    graph = bp.make_graph(function, dynamic={"x": {0: "n"}, "y": {0: "m"}})(tensor(9, 3), tensor(4, 3))
    assert "constraint m <= n" in str(graph)
    same(graph(tensor(50, 3), tensor(20, 3)), function(tensor(50, 3), tensor(20, 3)))
    with pytest.raises(ValueError, match="m <= n"):
        graph(tensor(20, 3), tensor(21, 3))


def test_what_has_to_know_a_size_is_refused_with_its_line():
    def loop(x):
        total = x[0]
        for i in range(1, x.shape[0]):
            total = total + x[i]
        return total

    def added(x):
        return x + bp.ones((4, 3))

    for function in (loop, added, lambda x: (x, x.shape[0]), lambda x: x * bp.asarray(np.arange(x.shape[0])[:, None])):
        with pytest.raises(ValueError, match='the size "batch" cannot be dynamic, because the function depends on its value 4') as caught:
            bp.make_graph(function, dynamic=BATCH)(tensor(4, 3))
        if function in (loop, added):
            assert __file__ in str(caught.value)


def test_containers_and_positions_name_tensors():
    def function(data, scale):
        return {"sum": data["x"] + data["y"][0], "scaled": data["x"] * scale}

    def arguments(n):
        return {"x": tensor(n, 3), "y": [tensor(n, 3, seed=1)]}, 2.0

    for dynamic in ({"data": {0: "n"}}, {"data['x']": {0: "n"}, "data['y'][0]": {-2: "n"}}, ({0: "n"},), [{0: "n"}, None]):
        graph = bp.make_graph(function, dynamic=dynamic)(*arguments(4))
        same(graph(*arguments(9)), function(*arguments(9)))
        assert [value.dims for value in graph.inputs] == [["n", "3"], ["n", "3"]]
    for dynamic, error, text in (
        ({"other": {0: "n"}}, ValueError, "no tensor in argument \"other\"; the call's tensors are data"),
        ({"data": {2: "n"}}, IndexError, "has no axis 2"),
        ({"data": {0: "n", -2: "m"}}, ValueError, "two names"),
        ({"data": {0: "n", 1: "n"}}, ValueError, 'the size "n" is 4 in .* and 3 in'),
        ({"data": {0: "of"}}, ValueError, "word of a graph's text"),
        ({"data": {0: "a b"}}, ValueError, "letters, digits"),
        ({"data": ["n"]}, TypeError, "expected a dict from axes"),
        ({"data": {"n": 0}}, TypeError, "expected an axis and"),
        (3, TypeError, "expected a dict"),
    ):
        with pytest.raises(error, match=text):
            bp.make_graph(function, dynamic=dynamic)(*arguments(4))


def test_a_dynamic_graph_can_be_transformed():
    graph = bp.make_graph(lambda x: bp.tanh(x @ W).mean(), dynamic=BATCH)(tensor(4, 3))
    for n in (4, 6):
        same(bp.grad(graph)(tensor(n, 3)), bp.grad(lambda x: bp.tanh(x @ W).mean())(tensor(n, 3)))
        rows = tensor(2, n, 3)
        same(bp.vmap(graph)(rows), bp.vmap(lambda x: bp.tanh(x @ W).mean())(rows))


def test_compile_traces_once_for_all_sizes():
    runs = []

    def step(w, x):
        bp.unguarded(runs.append, x.shape[0])
        value, gradient = bp.value_and_grad(loss)(w, x)
        return value, w - 0.1 * gradient

    compiled = bp.compile(step, dynamic=BATCH)
    compiled(W, tensor(4, 3))
    traced = len(runs)
    assert "traced for any size" in bp.compile_log()[-1]
    for n in (4, 5, 6, 32, 5, 7, 8, 9, 10, 11, 12, 4):
        found = compiled(W, tensor(n, 3))
        for ours, eager in zip(found, bp.compile(step)(W, tensor(n, 3))):
            np.testing.assert_array_equal(ours.numpy(), eager.numpy())
    assert len(runs) == traced + 12, "only the runs of the compiled functions without dynamic sizes"


def test_compile_traces_again_beyond_a_constraint():
    compiled = bp.compile(lambda x: x * 2 if x.shape[0] > 10 else x + 1, dynamic=BATCH)
    for n in (4, 20, 5, 30, 10, 11):
        expected = tensor(n, 3) * 2 if n > 10 else tensor(n, 3) + 1
        same(compiled(tensor(n, 3)), expected)
    assert sum("<lambda>: traced for any size" in line for line in bp.compile_log()[-2:]) == 2
    assert "relies on batch <= 10, found 20" in bp.compile_log()[-1]


@pytest.mark.parametrize("outer", ["grad", "vmap", "tape", "jvp"])
def test_compiled_for_all_sizes_inside_of_transforms(outer):
    runs = []

    def function(x):
        bp.unguarded(runs.append, 1)
        return bp.tanh(x @ W).sum()

    compiled = bp.compile(function, dynamic=BATCH)
    compiled(tensor(4, 3))
    traced = len(runs)
    plain = lambda x: bp.tanh(x @ W).sum()  # noqa: E731
    for n in (4, 6, 9):
        x = tensor(n, 3)
        if outer == "grad":
            found, expected = bp.grad(compiled)(x), bp.grad(plain)(x)
        elif outer == "vmap":
            rows = tensor(2, n, 3)
            found, expected = bp.vmap(compiled)(rows), bp.vmap(plain)(rows)
        elif outer == "jvp":
            found, expected = bp.jvp(compiled, (x,), (x,))[1], bp.jvp(plain, (x,), (x,))[1]
        else:
            x.requires_grad = True
            compiled(x).backward()
            found, expected = x.grad, bp.grad(plain)(tensor(n, 3))
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)
    assert len(runs) == traced


def model(x):
    return bp.tanh(x @ W + B), x[::2].sum()


@pytest.fixture
def exported(tmp_path):
    path = tmp_path / "model.safetensors"
    bp.export(model, [tensor(5, 3)], path, dynamic=BATCH)
    return path


def test_an_exported_model_takes_other_sizes(exported):
    loaded = bp.load(exported)
    for n in (5, 1, 8):
        same(list(loaded(tensor(n, 3))), list(model(tensor(n, 3))))
    assert [value.dims for value in loaded.inputs] == [["batch", "3"]]
    with pytest.raises(ValueError, match="size 4 at axis 1, expected 3"):
        loaded(tensor(5, 4))


def version_of(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    return json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["backplane.graph"])["version"]


def test_a_file_is_of_the_least_version_that_reads_it(exported, tmp_path):
    assert version_of(exported) == 2, "a quotient"
    path = tmp_path / "other.safetensors"
    bp.export(lambda x: bp.tanh(x @ W), [tensor(5, 3)], path, dynamic=BATCH)
    assert version_of(path) == 1
    bp.export(lambda x: x / math.sqrt(x.shape[0]), [tensor(5, 3)], path, dynamic=BATCH)
    assert version_of(path) == 3
    bp.export(lambda x: bp.tanh(x @ W), [tensor(5, 3)], path)
    assert version_of(path) == 1


@pytest.mark.skipif(shutil.which("backplane") is None, reason="the backplane command is not on the PATH")
def test_the_runner_takes_other_sizes(exported, tmp_path):
    for n in (5, 3, 12):
        np.save(tmp_path / "x.npy", tensor(n, 3).numpy())
        files = ["--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy"]
        subprocess.run(["backplane", "run", exported, *files], capture_output=True, text=True, check=True)
        np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), model(tensor(n, 3))[0].numpy())


class Model:
    def __call__(self, x):
        return self.forward(x)

    def forward(self, x):
        return bp.tanh(x)


def test_names_are_those_of_the_function_behind():
    """A transform, a method, an object that is called."""
    for function in (bp.value_and_grad(lambda x: (x * x).sum()), bp.vmap(lambda x: x * 2), Model().forward, Model()):
        compiled = bp.compile(function, dynamic={"x": {0: "n"}})
        for n in (3, 5):
            compiled(bp.ones((n, 2)))
        assert "traced for any size" in bp.compile_log()[-1]


def test_a_quotient_is_found_where_few_sizes_are_allowed():
    def halves(x):
        if x.shape[0] > 100:
            return x.sum(0)
        return x.reshape((x.shape[0] // 2, 2, -1)).sum(0).sum(0)

    graph = bp.make_graph(halves, dynamic={"x": {0: "n"}})(bp.ones((6, 3)))
    for n in (2, 8, 100):
        assert graph(bp.ones((n, 3))).tolist() == [float(n)] * 3
    for n, says in ((7, "divisible by 2"), (102, "n <= 100")):
        with pytest.raises(bp.ShapeError, match=says):
            graph(bp.ones((n, 3)))


def sees_equal_sizes(q, k):
    scores = q @ k.T
    return scores + 100 if q.shape[0] == k.shape[0] else scores


@pytest.mark.parametrize("sizes", [(5, 40), (5, 7), (6, 7), (40, 3), (2, 3)])
def test_sizes_that_become_equal_may_be_a_case_of_their_own(sizes):
    def arguments(t, s):
        return bp.ones((t, 2)), bp.ones((s, 2))

    function = bp.compile(sees_equal_sizes, dynamic={"q": {0: "t"}, "k": {0: "s"}})
    for t, s in [sizes, (6, 6), (9, 11), (8, 8), (12, 5)]:
        assert function(*arguments(t, s)).tolist() == sees_equal_sizes(*arguments(t, s)).tolist(), (t, s)
    graph = bp.make_graph(sees_equal_sizes, dynamic={"q": {0: "t"}, "k": {0: "s"}})(*arguments(*sizes))
    assert "t != s" in str(graph) and "divisible" not in str(graph)
    with pytest.raises(bp.ShapeError, match="t != s"):
        graph(*arguments(6, 6))


def test_equal_sizes_that_are_no_case_of_their_own_are_taken():
    graph = bp.make_graph(lambda q, k: q @ k.T, dynamic={"q": {0: "t"}, "k": {0: "s"}})(bp.ones((5, 2)), bp.ones((7, 2)))
    assert "!=" not in str(graph) and graph(bp.ones((6, 2)), bp.ones((6, 2))).shape == (6, 6)
