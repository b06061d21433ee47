"""fori_loop, switch, ravel_pytree, hvp, and trees with paths, eagerly, in gradients and compiled."""

import pytest

import backplane as bp


def test_fori_loop():
    def power(x, n):
        return bp.fori_loop(0, n, lambda i, value: value * x + i, bp.ones(()))

    assert power(bp.asarray(2.0), 3).item() == 12.0
    assert power(bp.asarray(2.0), 0).item() == 1.0
    assert bp.grad(power)(bp.asarray(2.0), 3).item() == 13.0
    assert bp.compile(lambda x, n: power(x, n))(bp.asarray(2.0), bp.asarray(3)).item() == 12.0
    assert bp.fori_loop(1, bp.asarray(4), lambda i, v: v + i, bp.asarray(0)).item() == 6


@pytest.mark.parametrize("index, expected", [(0, 3.0), (1, 9.0), (2, -3.0), (7, -3.0), (-2, 3.0)])
def test_switch(index, expected):
    branches = [lambda x: x, lambda x: x * x, lambda x: -x]
    assert bp.switch(index, branches, bp.asarray(3.0)).item() == expected
    assert bp.switch(bp.asarray(index), branches, bp.asarray(3.0)).item() == expected
    assert bp.compile(lambda i, x: bp.switch(i, branches, x))(bp.asarray(index), bp.asarray(3.0)).item() == expected


def test_ravel_pytree():
    tree = {"a": bp.ones((2, 2)), "b": [bp.asarray(3), 4.0]}
    vector, unravel = bp.ravel_pytree(tree)
    assert vector.tolist() == [1, 1, 1, 1, 3, 4]
    again = unravel(vector * 2)
    assert again["b"][0].item() == 6 and again["b"][0].dtype == tree["b"][0].dtype and again["a"].shape == (2, 2)
    with pytest.raises(bp.ShapeError, match=r"expected \(6,\)"):
        unravel(vector[1:])


def test_hvp():
    value, product = bp.hvp(lambda x: (x**3).sum(), (bp.asarray([1.0, 2.0]),), (bp.asarray([1.0, 0.5]),))
    assert value.item() == 9.0 and product.tolist() == [6.0, 6.0]


def test_trees_with_paths():
    tree = {"b": [1, 2], "a": (3, None)}
    paths, structure = bp.tree.flatten_with_path(tree)
    assert paths == [(("a", 0), 3), (("b", 0), 1), (("b", 1), 2)] and structure == bp.tree.structure(tree)
    assert bp.tree.map_with_path(lambda path, x: (path[-1], x), tree) == {"b": [(0, 1), (1, 2)], "a": ((0, 3), None)}
    assert bp.tree.reduce(lambda a, b: a + b, tree, 10) == 16


def test_scan_over_a_tensor_without_axes_says_so():
    with pytest.raises(bp.ShapeError, match="scan: argument xs: found a tensor without axes"):
        bp.scan(lambda k, x: (k, x), bp.asarray(0.0), bp.asarray(1.0))


def test_closure_convert_makes_captured_tensors_arguments():
    w, at = bp.asarray([2.0, 3.0]), bp.asarray(1.0)
    fun = lambda p: {"y": (p["x"] * w).sum() + at + p["k"]}  # noqa: E731
    converted, captured = bp.closure_convert(fun, {"x": bp.ones(2), "k": 1})
    assert [x.tolist() for x in captured] == [[2.0, 3.0], 1.0]
    given = {"x": bp.asarray([5.0, 7.0]), "k": 2}
    assert converted(given, *captured)["y"].item() == fun(given)["y"].item()
    by_captured = bp.grad(lambda w: converted(given, w, at)["y"])(w)
    assert by_captured.tolist() == [5.0, 7.0]
    assert bp.vmap(lambda w: converted(given, w, at)["y"])(bp.stack([w, 2 * w])).tolist() == [34.0, 65.0]


def test_closure_convert_inside_transforms():
    def f(w, x):
        converted, captured = bp.closure_convert(lambda x: bp.sin(w * x).sum(), x)
        return converted(x, *captured)

    w, x = bp.asarray([2.0, 3.0]), bp.asarray([0.5, 0.25])
    expected = bp.grad(lambda w, x: bp.sin(w * x).sum(), (0, 1))(w, x)
    for found in bp.grad(f, (0, 1))(w, x), bp.compile(bp.grad(f, (0, 1)))(w, x):
        assert all(bp.allclose(one, other) for one, other in zip(found, expected))
    assert bp.allclose(bp.vmap(bp.grad(f), in_axes=(0, None))(bp.stack([w, w]), x)[1], expected[0])


def test_closure_convert_refuses_arguments_of_another_structure():
    converted, captured = bp.closure_convert(lambda x: x * 2, bp.ones(2))
    with pytest.raises(bp.ArgumentTypeError, match="closure_convert: found arguments of the structure"):
        converted((bp.ones(2), bp.ones(2)), *captured)
