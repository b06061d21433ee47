"""What explain_plan, draw_graph and cost_analysis say is what there is."""

import re
import shutil

import backplane as bp
import numpy as np
import pytest


def layer(parameters, x, *, scale=2.0):
    return bp.tanh(x @ parameters["w"] + parameters["b"]) * scale


PARAMETERS = {"w": bp.ones((3, 4)), "b": bp.zeros((4,))}


def test_a_plan_is_explained_for_a_functions_arguments():
    text = bp.explain_plan(layer)(PARAMETERS, bp.ones((2, 3)), scale=3.0)
    assert "1 regions of 3 nodes" in text and "bp::matmul" in text and "cpu, the kernel of plugin" in text
    assert re.search(r"bp::matmul.*\n.*the kernel of plugin.*\n    in no region: \w+", text)
    assert bp.explain_plan(bp.grad(lambda x: (x**2).sum()))(np.ones(3, "float32")).startswith("graph")


def test_a_plan_is_explained_with_the_options_of_compile():
    def step(state, x):
        return {name: bp.tanh(value) + x.mean(0) for name, value in state.items()}

    state, x = {"a": bp.ones((3,)), "b": bp.zeros((3,))}, bp.ones((5, 3))
    assert "donated" not in bp.explain_plan(step)(state, x)
    assert re.search(r"memory taken of donated inputs: .*'a'.*'b'", bp.explain_plan(step, donate=0)(state, x))
    anysize = bp.explain_plan(step, dynamic={"x": {0: "batch"}})
    for batch in (2, 7):
        assert re.search(rf"float32\[3\] .*= bp::mean\(.*\n.*; {batch * 3 + 3} FLOP", anysize(state, bp.ones((batch, 3))))
    with pytest.raises(bp.ArgumentTypeError, match="argument donate: found 'x'"):
        bp.explain_plan(step, donate="x")


def test_a_node_shows_its_arguments():
    add, total = bp.make_graph(lambda x: (x + 1).sum(0, keepdims=True))(bp.ones((2, 3)))
    assert add.arguments == {"x": "%0", "y": "1"}
    assert total.arguments == {"x": total.inputs[0], "axis": "[0]", "keepdims": "true"}
    assert repr(add) == "<GraphNode bp::add(x=%0, y=1)>"


@pytest.mark.parametrize("color", ["backend", "bytes", "flops"])
def test_a_graph_is_drawn_whole(color):
    graph = bp.make_graph(layer)(PARAMETERS, bp.ones((2, 3)))
    text = graph.dot(PARAMETERS["b"], PARAMETERS["w"], bp.ones((2, 3)), color=color)
    nodes = re.findall(r"^ +(n\d+) \[label=.*fillcolor=\"(\w|#)", text, re.MULTILINE)
    assert len(nodes) == len(graph) and text.count("shape=ellipse") == 4
    assert "subgraph cluster_0" in text and "its compiler" in text
    for line in re.findall(r"(\w+) -> (\w+)", text):
        assert all(re.search(rf"^ +{name} \[", text, re.MULTILINE) for name in line)


def test_a_picture_is_svg_where_graphviz_is():
    picture = bp.draw_graph(layer)(PARAMETERS, bp.ones((2, 3)))
    assert ("<svg" in picture) if shutil.which("dot") else picture.startswith("digraph")


def test_a_picture_without_graphviz_is_its_text(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert bp.draw_graph(layer, color="bytes")(PARAMETERS, bp.ones((2, 3))).startswith('digraph "')


def test_the_format_is_handed_to_graphviz(monkeypatch, tmp_path):
    dot = tmp_path / "dot"
    dot.write_text("#!/bin/sh\n/bin/cat > /dev/null\nprintf '%s' \"$1\"\n")
    dot.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert bp.draw_graph(layer, format="png")(PARAMETERS, bp.ones((2, 3))) == b"-Tpng"
    assert bp.draw_graph(layer)(PARAMETERS, bp.ones((2, 3))) == "-Tsvg"


def test_another_format_is_refused():
    with pytest.raises(bp.ArgumentValueError, match='argument format: found "pdf", expected "svg" or "png"'):
        bp.draw_graph(layer, format="pdf")


def test_another_color_is_refused():
    with pytest.raises(bp.ArgumentValueError, match='expected "backend", "bytes" or "flops"'):
        bp.draw_graph(layer, color="pink")(PARAMETERS, bp.ones((2, 3)))


@pytest.mark.parametrize(("function", "shapes", "flops"), [
    (bp.matmul, [(8, 16), (16, 4)], 2 * 8 * 16 * 4),
    (bp.matmul, [(5, 8, 16), (16,)], 2 * 5 * 8 * 16),
    (bp.exp, [(3, 7)], 21),
    (bp.sum, [(3, 7)], 21),
    (lambda x: x.T, [(3, 7)], 0),
    (bp.nn.functional.conv2d, [(2, 3, 8, 8), (4, 3, 3, 3)], 2 * (2 * 4 * 6 * 6) * (3 * 3 * 3)),
    (bp.softmax, [(4, 16)], 5 * 64),  # the largest, its subtraction, exp, sum, division
])  # fmt: skip
def test_operations_are_counted_by_family_and_decomposition(function, shapes, flops):
    cost = bp.cost_analysis(function)(*(bp.ones(shape) for shape in shapes))
    assert cost["flops"] == flops and cost["unknown"] == []


def test_a_gradient_costs_its_products():
    def loss(w, x):
        return bp.sum(bp.tanh(x @ w))

    cost = bp.cost_analysis(bp.grad(loss))(bp.ones((64, 32)), bp.ones((16, 64)))
    assert cost["ops"]["bp::matmul"] == {"nodes": 2, "flops": 2 * 2 * 16 * 64 * 32, "bytes": 4 * 2 * (16 * 64 + 64 * 32 + 16 * 32)}
    assert cost["bytes"] == sum(row["bytes"] for row in cost["ops"].values())


def test_what_nothing_says_is_named():
    cost = bp.cost_analysis(lambda x: bp.linalg.cholesky(x) + 1)(bp.eye(4))
    assert cost["unknown"] == ["bp::cholesky"] and cost["flops"] == 16
    assert "unknown FLOP" in bp.explain_plan(bp.linalg.cholesky)(bp.eye(4))
    assert "1.0 kFLOP" in bp.explain_plan(bp.matmul)(bp.ones((8, 16)), bp.ones((16, 4)))


def every_family(x):
    y = bp.where(x < 1, bp.exp(x) + bp.cumulative_sum(x, axis=0), bp.sort(x))
    y = bp.concat([y, bp.astype(bp.astype(x, "float64"), "float32"), bp.full((1, 3), 2.0), bp.copy(x)])
    y = bp.index_put(y, [bp.argmax(x, axis=0)], x[0])[bp.asarray([0, 1])]
    return bp.slice_put(y, bp.ones((1, 3)), [0], [0], [1], [1]) @ bp.reshape(bp.astype(bp.arange(9), "float32"), (3, 3)), bp.uniform((2,))


def test_every_family_of_primitives_counts():
    cost = bp.cost_analysis(every_family)(bp.ones((4, 3)))
    assert cost["unknown"] == [] and len(cost["ops"]) >= 12


def test_costs_are_of_the_sizes_asked_for():
    graph = bp.make_graph(lambda x: bp.tanh(x) @ x.T, dynamic={"x": {0: "n"}})(bp.ones((4, 3)))
    for n in (4, 7):
        assert sum(flops for _, flops, _ in graph.costs(bp.ones((n, 3)))) == 3 * n + 2 * n * n * 3
        assert f"[{n}, {n}]" in graph.dot(bp.ones((n, 3)), color="flops")
